-- view:    place_names
-- answers: what does a user call the place after which evidence was lost?
-- grain:   one row per place of a query, the final context apart
-- column:  query_id    bigint   queries.query_id
-- column:  place_no    integer  places.place_no
-- column:  lost_kind   varchar  kind of the stage that lost what was last seen there
-- column:  lost_stage  varchar  the user's name for it
-- column:  lost_at     varchar  in (it went in and did not come out) or after (it came out and did not arrive)
-- column:  words       varchar  in rerank, after dense
-- reads:   places, stages
select
    places.query_id,
    places.place_no,
    stages.kind as lost_kind,
    coalesce(stages.name, stages.kind) as lost_stage,
    case when places.side = 'in' then 'in' else 'after' end as lost_at,
    case when places.side = 'in' then 'in ' else 'after ' end || coalesce(stages.name, stages.kind) as words
from places
inner join stages on places.stage_id = stages.stage_id
