-- report:  recall
-- answers: how much of the gold was among the candidates, and how much of it reached the answer?
-- grain:   one row per run
-- param:   run                         varchar = null  a run's label; null = every run
-- column:  run                         varchar  label of the service's configuration
-- column:  n_queries                   bigint   queries with gold that are scored
-- column:  n_judged                    bigint   of these, queries whose recalls nothing unrecorded could change
-- column:  n_unobserved                bigint   the others
-- column:  candidate_recall            double   mean over the judged; null when there is none
-- column:  gained                      double   mean share of needs in the final context that no retrieve run returned
-- column:  lost                        double   candidate_recall + gained - final_context_recall
-- column:  final_context_recall        double   mean over the judged; null when there is none
-- column:  candidate_complete          double   share of the judged with a complete set among the candidates
-- column:  final_complete              double   share of the judged with a complete set in the final context
-- column:  candidate_recall_low        double   mean over all: only what is surely there
-- column:  candidate_recall_high       double   mean over all: all that may be there
-- column:  final_context_recall_low    double   mean over all: only what is surely there
-- column:  final_context_recall_high   double   mean over all: all that may be there
-- reads:   recall_summary
select
    recall_summary.run as run,
    recall_summary.n_queries as n_queries,
    recall_summary.n_judged as n_judged,
    recall_summary.n_unobserved as n_unobserved,
    recall_summary.candidate_recall as candidate_recall,
    recall_summary.gained as gained,
    recall_summary.lost as lost,
    recall_summary.final_context_recall as final_context_recall,
    recall_summary.candidate_complete as candidate_complete,
    recall_summary.final_complete as final_complete,
    recall_summary.candidate_recall_low as candidate_recall_low,
    recall_summary.candidate_recall_high as candidate_recall_high,
    recall_summary.final_context_recall_low as final_context_recall_low,
    recall_summary.final_context_recall_high as final_context_recall_high
from recall_summary
where cast($run as varchar) is null or recall_summary.run = cast($run as varchar)
order by recall_summary.run
