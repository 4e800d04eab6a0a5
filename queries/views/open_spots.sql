-- view:    open_spots
-- answers: at which places of a query may anything have been, for all that is recorded?
-- grain:   one row per query and place, and per reason
-- column:  query_id      bigint   queries.query_id
-- column:  place_no      integer  places.place_no; 0 for an unknown final context, null for a retrieval nobody recorded
-- column:  place_order   bigint   places.place_order; 5 for a retrieval nobody recorded
-- column:  is_candidate  boolean  the place is the output of a retrieve run
-- column:  is_for_ids    boolean  also for evidence that is known by the id of its chunk
-- reads:   lists, place_lists, places, unplaced_lists, queries, retrieve_runs, query_flows
with

incomplete_lists as materialized (

    select
        lists.list_id,
        lists.stage_id,
        lists.role
    from lists
    where lists.is_complete = false

),

incomplete_places as (

    select
        place_lists.query_id,
        place_lists.place_no
    from place_lists
    inner join incomplete_lists on place_lists.list_id = incomplete_lists.list_id

    union

    select
        places.query_id,
        places.place_no
    from places
    inner join incomplete_lists
        on places.stage_id = incomplete_lists.stage_id and places.side = incomplete_lists.role

),

unplaced_places as (

    select distinct
        place_lists.query_id,
        place_lists.place_no
    from place_lists
    inner join unplaced_lists on place_lists.list_id = unplaced_lists.list_id

),

open_places as (

    select
        incomplete_places.query_id,
        incomplete_places.place_no,
        true as is_for_ids
    from incomplete_places

    union all

    select
        unplaced_places.query_id,
        unplaced_places.place_no,
        false as is_for_ids
    from unplaced_places

),

run_retrievals as (

    select distinct coalesce(queries.run, '') as run
    from queries
    inner join retrieve_runs on queries.query_id = retrieve_runs.query_id

),

-- A run without any retrieve run has retrieval that nobody recorded, unless it is meant to have none.
unrecorded as (

    select queries.query_id
    from queries
    left join run_retrievals on coalesce(queries.run, '') = run_retrievals.run
    where coalesce(queries.run_kind, 'actual') = 'actual' and run_retrievals.run is null

)

select
    open_places.query_id,
    open_places.place_no,
    places.place_order,
    retrieve_runs.stage_id is not null as is_candidate,
    open_places.is_for_ids
from open_places
inner join places on open_places.query_id = places.query_id and open_places.place_no = places.place_no
left join retrieve_runs on places.stage_id = retrieve_runs.stage_id and places.side = 'out'

union all

select
    queries.query_id,
    0 as place_no,
    1000000000 as place_order,
    not coalesce(query_flows.is_whole, true) as is_candidate,
    true as is_for_ids
from queries
left join query_flows on queries.query_id = query_flows.query_id
where coalesce(query_flows.final_how, 'unknown') = 'unknown' or not coalesce(query_flows.is_whole, true)

union all

select
    unrecorded.query_id,
    cast(null as integer) as place_no,
    5 as place_order,
    true as is_candidate,
    true as is_for_ids
from unrecorded
