-- view:    stage_coverage
-- answers: how much of each span did each stage take and put out in a query?
-- grain:   one row per scored query, evidence span, stage (kind and name) and side where some of the span surely was
-- kept:    in the store
-- column:  query_id     bigint   queries.query_id
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  kind         varchar  the stage's kind; source, text, chunks, index for layers; final context
-- column:  stage        varchar  the user's name for it; the kind for layers and the final context
-- column:  side         varchar  in or out; layer; context
-- column:  coverage     double   share of the span in all runs of that stage together
-- reads:   piece_sightings, places, stages
with

sightings as (

    select
        piece_sightings.query_id,
        piece_sightings.evidence_no,
        piece_sightings.piece,
        piece_sightings.weight,
        piece_sightings.total,
        piece_sightings.place_order,
        piece_sightings.place_no
    from piece_sightings
    where piece_sightings.is_sure and piece_sightings.place_order > 0

),

named as (

    select distinct
        sightings.query_id,
        sightings.evidence_no,
        sightings.piece,
        sightings.weight,
        sightings.total,
        case
            when sightings.place_order = 1 then 'source'
            when sightings.place_order = 2 then 'text'
            when sightings.place_order = 3 then 'chunks'
            when sightings.place_order = 4 then 'index'
            when places.side = 'context' then 'final context'
            else stages.kind
        end as kind,
        stages.name as stage,
        coalesce(places.side, 'layer') as side
    from sightings
    left join places on sightings.query_id = places.query_id and sightings.place_no = places.place_no
    left join stages on places.stage_id = stages.stage_id

)

select
    named.query_id,
    named.evidence_no,
    named.kind,
    coalesce(named.stage, named.kind) as stage,
    named.side,
    cast(sum(named.weight) as double) / nullif(max(named.total), 0) as coverage
from named
group by named.query_id, named.evidence_no, named.kind, coalesce(named.stage, named.kind), named.side
