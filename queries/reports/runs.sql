-- report:  runs
-- answers: which runs are in the store, and from when?
-- grain:   one row per run
-- param:   run           varchar = null  a run's label; null = every run
-- column:  run           varchar    label of the service's configuration
-- column:  run_kind      varchar    actual, closed_book or oracle; several joined by comma
-- column:  n_queries     bigint     queries recorded
-- column:  n_sessions    bigint     conversations they belong to
-- column:  first_at      timestamp  start of the first one, UTC
-- column:  last_at       timestamp  start of the last one, UTC
-- reads:   queries
with

recorded as (

    select
        queries.run,
        queries.run_kind,
        queries.session_id,
        queries.started_at_ns
    from queries
    where cast($run as varchar) is null or queries.run = cast($run as varchar)

)

select
    recorded.run as run,
    string_agg(distinct recorded.run_kind, ', ' order by recorded.run_kind) as run_kind,
    count(*) as n_queries,
    count(distinct recorded.session_id) as n_sessions,
    make_timestamp(min(recorded.started_at_ns) // 1000) as first_at,
    make_timestamp(max(recorded.started_at_ns) // 1000) as last_at
from recorded
group by recorded.run
order by recorded.run
