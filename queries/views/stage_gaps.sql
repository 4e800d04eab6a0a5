-- view:    stage_gaps
-- answers: which stage runs were recorded outside every query, after their query, or not in full, and in which run?
-- grain:   one row per run, kind of gap and detail
-- column:  run         varchar  label of the service's configuration; null when it has none or is not known
-- column:  is_any_run  boolean  true: nothing says in which run it was (ingest side, or no query of its process), so it counts for every one
-- column:  gap         varchar  orphan_stages, detached_stages or capture_error
-- column:  detail      varchar  stage name; capture_error: and what could not be recorded
-- column:  n           bigint   stage runs concerned
-- column:  is_serious  boolean  true: rows are missing, and recall may be lower than it was
-- reads:   stages, queries
with

-- A stage outside every query and document: most often a pool that was not given the context.
strays as (

    select
        stages.stage_id,
        stages.query_id,
        stages.process_id,
        case when stages.is_orphan then 'orphan_stages' else 'detached_stages' end as gap,
        stages.name as detail,
        coalesce(stages.is_orphan, false) as is_serious
    from stages
    where (stages.is_orphan or stages.is_detached) and stages.probe is null

),

unread as (

    select
        stages.stage_id,
        stages.query_id,
        stages.process_id,
        stages.is_orphan,
        'capture_error' as gap,
        concat_ws(': ', stages.name, stages.capture_error) as detail,
        true as is_serious
    from stages
    where stages.capture_error is not null

),

-- What has no query is of the run its process was in: a process numbers queries and stage runs with one counter.
lone as (

    select
        strays.stage_id,
        strays.process_id
    from strays
    where strays.query_id is null
    union
    select
        unread.stage_id,
        unread.process_id
    from unread
    where unread.query_id is null and unread.is_orphan

),

known_queries as (

    select
        queries.process_id,
        queries.query_id,
        queries.run
    from queries
    where queries.process_id in (select lone.process_id from lone)

),

first_queries as (

    select
        known_queries.process_id,
        min(known_queries.query_id) as query_id
    from known_queries
    group by known_queries.process_id

),

nearest as (

    select
        lone.stage_id,
        coalesce(known_queries.query_id, first_queries.query_id) as query_id
    from lone
    asof left join known_queries
        on
            lone.process_id = known_queries.process_id
            and lone.stage_id >= known_queries.query_id
    left join first_queries on lone.process_id = first_queries.process_id

),

all_gaps as (

    select
        strays.stage_id,
        strays.query_id,
        strays.gap,
        strays.detail,
        strays.is_serious
    from strays
    union all
    select
        unread.stage_id,
        unread.query_id,
        unread.gap,
        unread.detail,
        unread.is_serious
    from unread

)

select
    queries.run,
    queries.query_id is null as is_any_run,
    all_gaps.gap,
    all_gaps.detail,
    count(*) as n,
    all_gaps.is_serious
from all_gaps
left join nearest on all_gaps.stage_id = nearest.stage_id
left join queries on coalesce(all_gaps.query_id, nearest.query_id) = queries.query_id
group by queries.run, queries.query_id is null, all_gaps.gap, all_gaps.detail, all_gaps.is_serious
