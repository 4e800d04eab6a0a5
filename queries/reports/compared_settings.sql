-- report:  compared_settings
-- answers: what else than the change differs between two runs, so that a difference may not be its?
-- grain:   one row per thing that may differ
-- param:   a      varchar  label of the first run
-- param:   b      varchar  label of the second run
-- column:  what   varchar  index versions, or characters of a retrieved chunk (median)
-- column:  in_a   varchar  in a; null when it is not recorded
-- column:  in_b   varchar  in b
-- reads:   queries, stages, lists, candidates, item_ranges
with

runs as (

    select
        queries.query_id,
        queries.run = cast($a as varchar) as is_a
    from queries
    where queries.run in (cast($a as varchar), cast($b as varchar))

),

retrieved as (

    select
        runs.is_a,
        stages.index_version,
        lists.list_id
    from runs
    inner join stages on runs.query_id = stages.query_id
    inner join lists on stages.stage_id = lists.stage_id
    where stages.kind = 'retrieve' and lists.role = 'out'

),

versions as (

    select
        retrieved.is_a,
        string_agg(distinct retrieved.index_version, ', ' order by retrieved.index_version) as said
    from retrieved
    group by retrieved.is_a

),

lengths as (

    select
        retrieved.is_a,
        cast(cast(median(item_ranges.end_at - item_ranges.start_at) as bigint) as varchar) as said
    from retrieved
    inner join candidates on retrieved.list_id = candidates.list_id
    inner join item_ranges on candidates.item = item_ranges.item
    where item_ranges.role = 'own' and item_ranges.start_at is not null
    group by retrieved.is_a

),

listed as (

    select
        'index versions' as what,
        versions.is_a,
        versions.said
    from versions

    union all

    select
        'characters of a retrieved chunk (median)' as what,
        lengths.is_a,
        lengths.said
    from lengths

)

select
    listed.what as what,
    max(listed.said) filter (where listed.is_a) as in_a,
    max(listed.said) filter (where not listed.is_a) as in_b
from listed
group by listed.what
order by listed.what
