-- view:    stage_metrics
-- answers: how good are the ranked lists of each stage, in the mean over the queries of a run?
-- grain:   one row per run, stage (kind and name), unit and depth
-- column:  run                  varchar  label of the service's configuration
-- column:  kind                 varchar  the stage's kind; final context
-- column:  stage                varchar  the user's name for it; final context
-- column:  stage_order          bigint   rising in flow order
-- column:  unit                 varchar  document, chunk or span
-- column:  k                    bigint   rank_cutoffs.k
-- column:  n_queries            bigint   queries measured there
-- column:  n_lists              bigint   lists measured there: a stage may run more than once a query
-- column:  n_incomplete         bigint   lists left out because not all of them is recorded
-- column:  n_useless            bigint   lists with nothing relevant within k
-- column:  n_nothing            bigint   lists with nothing in them
-- column:  recall               double   mean over the lists, as all that follow
-- column:  precision            double   rank_metrics.precision
-- column:  hit                  double   rank_metrics.hit
-- column:  mrr                  double   rank_metrics.reciprocal_rank
-- column:  ndcg_exponential     double   rank_metrics.ndcg_exponential
-- column:  ndcg_linear          double   rank_metrics.ndcg_linear
-- column:  mean_average_precision  double  rank_metrics.average_precision
-- column:  ragas_context_ap     double   rank_metrics.ragas_context_ap, where something was returned
-- column:  id_precision   double   rank_metrics.id_precision, where something was returned
-- reads:   rank_metrics, rank_lists, query_scope
with

incomplete as (

    select
        query_scope.run,
        rank_lists.kind,
        rank_lists.stage,
        count(*) as n
    from rank_lists
    inner join query_scope on rank_lists.query_id = query_scope.query_id
    where not rank_lists.is_complete
    group by query_scope.run, rank_lists.kind, rank_lists.stage

)

select
    query_scope.run,
    rank_lists.kind,
    rank_lists.stage,
    max(rank_lists.place_order) as stage_order,
    rank_metrics.unit,
    rank_metrics.k,
    count(distinct rank_metrics.query_id) as n_queries,
    count(*) as n_lists,
    coalesce(max(incomplete.n), 0) as n_incomplete,
    count(*) filter (where rank_metrics.outcome = 'useless') as n_useless,
    count(*) filter (where rank_metrics.outcome = 'nothing returned') as n_nothing,
    avg(rank_metrics.recall) as recall,
    avg(rank_metrics.precision) as precision,
    avg(rank_metrics.hit) as hit,
    avg(rank_metrics.reciprocal_rank) as mrr,
    avg(rank_metrics.ndcg_exponential) as ndcg_exponential,
    avg(rank_metrics.ndcg_linear) as ndcg_linear,
    avg(rank_metrics.average_precision) as mean_average_precision,
    avg(rank_metrics.ragas_context_ap) as ragas_context_ap,
    avg(rank_metrics.id_precision) as id_precision
from rank_metrics
inner join rank_lists
    on rank_metrics.query_id = rank_lists.query_id and rank_metrics.place_no = rank_lists.place_no
inner join query_scope on rank_metrics.query_id = query_scope.query_id
left join incomplete
    on
        query_scope.run is not distinct from incomplete.run
        and rank_lists.kind = incomplete.kind
        and rank_lists.stage = incomplete.stage
group by query_scope.run, rank_lists.kind, rank_lists.stage, rank_metrics.unit, rank_metrics.k
