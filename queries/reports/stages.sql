-- report:  stages
-- answers: which stages are recorded, how often did they run, fail and how long did they take?
-- grain:   one row per run, kind and name of a stage of the query side
-- param:   run        varchar = null  a run's label; null = every run
-- column:  run        varchar  label of the service's configuration
-- column:  kind       varchar  the stage's kind
-- column:  stage      varchar  the user's name for it
-- column:  n_runs     bigint   how often it ran
-- column:  n_failed   bigint   of these, how often it failed or was cancelled
-- column:  n_lists    bigint   lists it put out
-- column:  median_ms  double   median of its own running time, in milliseconds
-- column:  p95_ms     double   95th percentile of it
-- reads:   stages, queries, lists
with

outputs as (

    select
        lists.stage_id,
        count(*) as n_lists
    from lists
    where lists.role = 'out'
    group by lists.stage_id

),

runs as (

    select
        queries.run,
        stages.kind,
        coalesce(stages.name, stages.kind) as stage,
        stages.status,
        stages.duration_ns / 1e6 as duration_ms,
        coalesce(outputs.n_lists, 0) as n_lists
    from stages
    inner join queries on stages.query_id = queries.query_id
    left join outputs on stages.stage_id = outputs.stage_id
    where stages.probe is null and (cast($run as varchar) is null or queries.run = cast($run as varchar))

)

select
    runs.run as run,
    runs.kind as kind,
    runs.stage as stage,
    count(*) as n_runs,
    count(*) filter (where runs.status <> 'ok') as n_failed,
    cast(sum(runs.n_lists) as bigint) as n_lists,
    quantile_cont(runs.duration_ms, 0.5) as median_ms,
    quantile_cont(runs.duration_ms, 0.95) as p95_ms
from runs
group by runs.run, runs.kind, runs.stage
order by runs.run, runs.kind, runs.stage
