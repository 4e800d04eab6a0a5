-- report:  metrics
-- answers: how good are the ranked lists of each stage, by the measures of information retrieval?
-- grain:   one row per run, unit, depth and stage, in flow order
-- param:   run     varchar = null  a run's label; null = every run
-- param:   stage   varchar = null  a stage's name; null = every stage
-- param:   unit    varchar = null  document, chunk or span; null = each that is labelled
-- param:   k       bigint = null   one depth of rank_cutoffs; null = each
-- column:  run                     varchar  label of the service's configuration
-- column:  unit                    varchar  what is counted as relevant: document, chunk or span
-- column:  k                       bigint   depth
-- column:  kind                    varchar  the stage's kind
-- column:  stage                   varchar  the user's name for it
-- column:  n_queries               bigint   queries measured there
-- column:  n_lists                 bigint   lists measured there, the denominator of the means
-- column:  recall                  double   stage_metrics.recall, and so on
-- column:  precision               double   over k, however few were returned
-- column:  hit                     double   share of lists with something relevant
-- column:  mrr                     double   mean reciprocal rank
-- column:  ndcg_linear             double   gain grade
-- column:  ndcg_exponential        double   gain 2^grade - 1
-- column:  mean_average_precision  double   over the relevant of the corpus
-- column:  ragas_context_ap        double   over the hits found
-- column:  id_precision      double   of the ids returned
-- column:  n_useless               bigint   lists with nothing relevant within k
-- column:  n_nothing               bigint   lists with nothing in them
-- column:  n_incomplete            bigint   lists left out because not all of them is recorded
-- reads:   stage_metrics
select
    stage_metrics.run as run,
    stage_metrics.unit as unit,
    stage_metrics.k as k,
    stage_metrics.kind as kind,
    stage_metrics.stage as stage,
    stage_metrics.n_queries as n_queries,
    stage_metrics.n_lists as n_lists,
    stage_metrics.recall as recall,
    stage_metrics.precision as precision,
    stage_metrics.hit as hit,
    stage_metrics.mrr as mrr,
    stage_metrics.ndcg_linear as ndcg_linear,
    stage_metrics.ndcg_exponential as ndcg_exponential,
    stage_metrics.mean_average_precision as mean_average_precision,
    stage_metrics.ragas_context_ap as ragas_context_ap,
    stage_metrics.id_precision as id_precision,
    stage_metrics.n_useless as n_useless,
    stage_metrics.n_nothing as n_nothing,
    stage_metrics.n_incomplete as n_incomplete
from stage_metrics
where
    (cast($run as varchar) is null or stage_metrics.run = cast($run as varchar))
    and (cast($stage as varchar) is null or stage_metrics.stage = cast($stage as varchar))
    and (cast($unit as varchar) is null or stage_metrics.unit = cast($unit as varchar))
    and (cast($k as bigint) is null or stage_metrics.k = cast($k as bigint))
order by stage_metrics.run, stage_metrics.unit, stage_metrics.k, stage_metrics.stage_order, stage_metrics.stage
