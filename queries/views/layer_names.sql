-- view:    layer_names
-- answers: what does a user call the step that lost what was last seen in a layer before the query?
-- grain:   one row per layer; for the index one row per query, since its retrieve runs are named
-- column:  query_id    bigint   queries.query_id for the index, 0 for the others
-- column:  end_order   bigint   0 nowhere, 1 source, 2 text, 3 chunks, 4 index, 5 a retrieval nobody recorded
-- column:  lost_kind   varchar  ingest, parse, chunk, index or retrieve
-- column:  lost_stage  varchar  the recorded stages of that kind, else the kind; for the index the retrieve runs of the query, else those of its run
-- column:  lost_at     varchar  in; after for the retrieval nobody recorded
-- column:  words       varchar  ingest, parse, chunk, index, in dense, after retrieve
-- reads:   queries, retrieve_runs, stages
with

searched as materialized (

    select distinct
        retrieve_runs.query_id,
        retrieve_runs.name
    from retrieve_runs

),

searched_names as (

    select
        searched.query_id,
        string_agg(searched.name, ' or ' order by searched.name) as names
    from searched
    group by searched.query_id

),

usual as (

    select distinct
        queries.run,
        searched.name
    from queries
    inner join searched on queries.query_id = searched.query_id

),

-- What a query that skipped retrieval would have run.
usual_names as (

    select
        usual.run,
        string_agg(usual.name, ' or ' order by usual.name) as names
    from usual
    group by usual.run

),

query_names as (

    select
        queries.query_id,
        coalesce(searched_names.names, usual_names.names) as names
    from queries
    left join searched_names on queries.query_id = searched_names.query_id
    left join usual_names on queries.run is not distinct from usual_names.run

),

-- What the user calls the steps of the ingest side.
ingest_steps as (

    select distinct
        stages.kind,
        stages.name
    from stages
    where stages.kind in ('ingest', 'parse', 'chunk', 'index')

),

ingest_names as (

    select
        ingest_steps.kind,
        string_agg(ingest_steps.name, ' or ' order by ingest_steps.name) as names
    from ingest_steps
    group by ingest_steps.kind

)

select
    query_names.query_id,
    cast(4 as bigint) as end_order,
    'retrieve' as lost_kind,
    coalesce(query_names.names, 'retrieve') as lost_stage,
    'in' as lost_at,
    coalesce('in ' || query_names.names, 'retrieve') as words
from query_names

union all

select
    cast(0 as bigint) as query_id,
    cast(layers.end_order as bigint) as end_order,
    layers.kind as lost_kind,
    coalesce(ingest_names.names, layers.kind) as lost_stage,
    layers.lost_at,
    layers.words
from (
    select
        0 as end_order,
        'ingest' as kind,
        'in' as lost_at,
        'ingest' as words
    union all
    select
        1 as end_order,
        'parse' as kind,
        'in' as lost_at,
        'parse' as words
    union all
    select
        2 as end_order,
        'chunk' as kind,
        'in' as lost_at,
        'chunk' as words
    union all
    select
        3 as end_order,
        'index' as kind,
        'in' as lost_at,
        'index' as words
    union all
    select
        5 as end_order,
        'retrieve' as kind,
        'after' as lost_at,
        'after retrieve' as words
) as layers
left join ingest_names on layers.kind = ingest_names.kind
