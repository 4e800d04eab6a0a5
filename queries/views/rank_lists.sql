-- view:    rank_lists
-- answers: which ranked lists does a query have, and how long are they?
-- grain:   one row per output of a stage run and per final context, of the queries that can be measured
-- column:  query_id     bigint   queries.query_id
-- column:  place_no     integer  places.place_no
-- column:  place_order  bigint   places.place_order
-- column:  kind         varchar  the stage's kind; final context
-- column:  stage        varchar  the user's name for it; final context
-- column:  list_id      bigint   the list that holds its rows
-- column:  n_returned   bigint   candidates it let through, repeats counted
-- column:  is_complete  boolean  false: not all of it is recorded, so it is not measured
-- reads:   label_states, places, place_lists, candidates, lists, stages
with

measured as (

    select distinct label_states.query_id
    from label_states
    where label_states.is_scored

),

-- A final context put together of several lists has no rank of its own.
single as (

    select
        place_lists.query_id,
        place_lists.place_no,
        min(place_lists.list_id) as list_id
    from place_lists
    group by place_lists.query_id, place_lists.place_no
    having count(*) = 1

),

losers as (

    select
        candidates.list_id,
        count(*) as n
    from candidates
    where candidates.is_kept = false
    group by candidates.list_id

)

select
    places.query_id,
    places.place_no,
    places.place_order,
    case when places.side = 'context' then 'final context' else stages.kind end as kind,
    case when places.side = 'context' then 'final context' else coalesce(stages.name, stages.kind) end as stage,
    single.list_id,
    cast(coalesce(lists.n_candidates, 0) - coalesce(losers.n, 0) as bigint) as n_returned,
    coalesce(lists.is_complete, true) as is_complete
from places
inner join measured on places.query_id = measured.query_id
inner join single on places.query_id = single.query_id and places.place_no = single.place_no
inner join lists on single.list_id = lists.list_id
left join losers on single.list_id = losers.list_id
left join stages on places.stage_id = stages.stage_id
where places.side in ('out', 'context')
