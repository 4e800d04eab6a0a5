-- report:  recall_by_tag
-- answers: how does recall differ between questions of different tags?
-- grain:   one row per run and tag
-- param:   run                   varchar = null  a run's label; null = every run
-- column:  run                   varchar  label of the service's configuration
-- column:  tag                   varchar  one of the question's tags; null = it has none
-- column:  n_queries             bigint   queries that are scored
-- column:  n_judged              bigint   of these, queries whose recalls nothing unrecorded could change
-- column:  candidate_recall      double   mean over the judged; null when there is none
-- column:  gained                double   mean share of needs in the final context that no retrieve run returned
-- column:  lost                  double   candidate_recall + gained - final_context_recall
-- column:  final_context_recall  double   mean over the judged
-- column:  final_complete        double   share of the judged with a complete set in the final context
-- reads:   query_recall, questions
with

tags as (

    select
        questions.question_id,
        unnest(list_distinct(questions.tags)) as tag
    from questions

),

grouped as (

    select
        query_recall.run,
        tags.tag,
        query_recall.is_judged,
        query_recall.candidate_recall,
        query_recall.final_context_recall,
        query_recall.gained,
        query_recall.lost,
        query_recall.final_complete
    from query_recall
    -- A question without tags stays, under null.
    left join tags on query_recall.question_id = tags.question_id
    where cast($run as varchar) is null or query_recall.run = cast($run as varchar)

)

select
    grouped.run as run,
    grouped.tag as tag,
    count(*) as n_queries,
    count(*) filter (where grouped.is_judged) as n_judged,
    avg(grouped.candidate_recall) filter (where grouped.is_judged) as candidate_recall,
    avg(grouped.gained) filter (where grouped.is_judged) as gained,
    avg(grouped.lost) filter (where grouped.is_judged) as lost,
    avg(grouped.final_context_recall) filter (where grouped.is_judged) as final_context_recall,
    avg(grouped.final_complete) filter (where grouped.is_judged) as final_complete
from grouped
group by grouped.run, grouped.tag
order by grouped.run, grouped.tag
