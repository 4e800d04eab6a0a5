-- view:    recall_summary
-- answers: how much of the gold was among the candidates, and how much of it reached the answer?
-- grain:   one row per run
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
-- reads:   query_recall
with

recalls as (

    select
        query_recall.run,
        query_recall.is_judged,
        query_recall.candidate_recall,
        query_recall.final_context_recall,
        query_recall.gained,
        query_recall.candidate_complete,
        query_recall.final_complete,
        query_recall.candidate_recall_high,
        query_recall.final_context_recall_high
    from query_recall

),

summed as (

    select
        recalls.run,
        count(*) as n_queries,
        count(*) filter (where recalls.is_judged) as n_judged,
        sum(recalls.candidate_recall) filter (where recalls.is_judged) as candidate_sum,
        sum(recalls.final_context_recall) filter (where recalls.is_judged) as final_sum,
        sum(recalls.gained) filter (where recalls.is_judged) as gained_sum,
        sum(recalls.candidate_complete) filter (where recalls.is_judged) as candidate_complete_sum,
        sum(recalls.final_complete) filter (where recalls.is_judged) as final_complete_sum,
        avg(recalls.candidate_recall) as candidate_low,
        avg(recalls.candidate_recall_high) as candidate_high,
        avg(recalls.final_context_recall) as final_low,
        avg(recalls.final_context_recall_high) as final_high
    from recalls
    group by recalls.run

)

select
    summed.run,
    summed.n_queries,
    summed.n_judged,
    summed.n_queries - summed.n_judged as n_unobserved,
    summed.candidate_sum / nullif(summed.n_judged, 0) as candidate_recall,
    summed.gained_sum / nullif(summed.n_judged, 0) as gained,
    summed.candidate_sum / nullif(summed.n_judged, 0) + summed.gained_sum / nullif(summed.n_judged, 0)
    - summed.final_sum / nullif(summed.n_judged, 0) as lost,
    summed.final_sum / nullif(summed.n_judged, 0) as final_context_recall,
    cast(summed.candidate_complete_sum as double) / nullif(summed.n_judged, 0) as candidate_complete,
    cast(summed.final_complete_sum as double) / nullif(summed.n_judged, 0) as final_complete,
    summed.candidate_low as candidate_recall_low,
    summed.candidate_high as candidate_recall_high,
    summed.final_low as final_context_recall_low,
    summed.final_high as final_context_recall_high
from summed
