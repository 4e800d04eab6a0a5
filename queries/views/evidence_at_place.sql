-- view:    evidence_at_place
-- answers: where did each span stand, place by place: at which rank, with which score, how much of it?
-- grain:   one row per scored query, evidence span and layer or place of the query
-- column:  run                varchar  label of the service's configuration
-- column:  query_id           bigint   queries.query_id
-- column:  evidence_id        varchar  evidence.evidence_id
-- column:  place_order        bigint   order of the places: layers below 10, the final context last
-- column:  place_no           integer  places.place_no; null for layers
-- column:  step               integer  step of the stage run; null for layers and the final context
-- column:  kind               varchar  source, text, chunks, index, a stage's kind, or final context
-- column:  name               varchar  the user's name for the stage; null for others
-- column:  side               varchar  in or out of a stage run, context, or layer
-- column:  is_on_path         boolean  on a recorded way to the final context
-- column:  rank               integer  best rank of an item that holds some of it
-- column:  score              double   that item's score
-- column:  coverage           double   share of the span surely there
-- column:  coverage_possible  double   with all that may be there
-- reads:   piece_sightings, label_states, query_scope, places, place_lists, stages, candidates, item_covers
with

labels as materialized (

    select
        label_states.query_id,
        label_states.evidence_no,
        label_states.evidence_id
    from label_states
    where label_states.is_scored

),

layers as (

    select
        1 as place_order,
        'source' as kind
    union all
    select
        2 as place_order,
        'text' as kind
    union all
    select
        3 as place_order,
        'chunks' as kind
    union all
    select
        4 as place_order,
        'index' as kind

),

spots as (

    select
        labels.query_id,
        labels.evidence_no,
        labels.evidence_id,
        cast(layers.place_order as bigint) as place_order,
        cast(null as integer) as place_no,
        cast(null as integer) as step,
        layers.kind,
        cast(null as varchar) as name,
        'layer' as side,
        cast(null as boolean) as is_on_path
    from labels
    cross join layers

    union all

    select
        labels.query_id,
        labels.evidence_no,
        labels.evidence_id,
        places.place_order,
        places.place_no,
        places.step,
        coalesce(stages.kind, 'final context') as kind,
        stages.name,
        places.side,
        places.is_on_path
    from labels
    inner join places on labels.query_id = places.query_id
    left join stages on places.stage_id = stages.stage_id

),

pieces as (

    select
        piece_sightings.query_id,
        piece_sightings.evidence_no,
        piece_sightings.place_order,
        piece_sightings.place_no,
        piece_sightings.piece,
        piece_sightings.weight,
        piece_sightings.total,
        max(case when piece_sightings.is_sure then 1 else 0 end) as is_sure
    from piece_sightings
    group by
        piece_sightings.query_id, piece_sightings.evidence_no, piece_sightings.place_order,
        piece_sightings.place_no, piece_sightings.piece, piece_sightings.weight, piece_sightings.total

),

coverages as (

    select
        pieces.query_id,
        pieces.evidence_no,
        pieces.place_order,
        coalesce(pieces.place_no, 0) as place_no,
        cast(sum(pieces.weight * pieces.is_sure) as double) / nullif(max(pieces.total), 0) as coverage,
        cast(sum(pieces.weight) as double) / nullif(max(pieces.total), 0) as coverage_possible
    from pieces
    group by pieces.query_id, pieces.evidence_no, pieces.place_order, coalesce(pieces.place_no, 0)

),

holders as (

    select distinct
        item_covers.evidence_no,
        item_covers.item
    from item_covers

),

ranks as (

    select
        labels.query_id,
        labels.evidence_no,
        place_lists.place_no,
        min(candidates.rank) as rank,
        arg_min(candidates.score, candidates.rank) as score
    from labels
    inner join place_lists on labels.query_id = place_lists.query_id
    inner join holders on labels.evidence_no = holders.evidence_no
    inner join candidates on place_lists.list_id = candidates.list_id and holders.item = candidates.item
    where candidates.is_kept is distinct from false
    group by labels.query_id, labels.evidence_no, place_lists.place_no

)

select
    query_scope.run,
    spots.query_id,
    spots.evidence_id,
    spots.place_order,
    spots.place_no,
    spots.step,
    spots.kind,
    spots.name,
    spots.side,
    spots.is_on_path,
    ranks.rank,
    ranks.score,
    coalesce(coverages.coverage, 0.0) as coverage,
    coalesce(coverages.coverage_possible, 0.0) as coverage_possible
from spots
inner join query_scope on spots.query_id = query_scope.query_id
left join coverages
    on
        spots.query_id = coverages.query_id
        and spots.evidence_no = coverages.evidence_no
        and spots.place_order = coverages.place_order
        and coalesce(spots.place_no, 0) = coverages.place_no
left join ranks
    on
        spots.query_id = ranks.query_id
        and spots.evidence_no = ranks.evidence_no
        and spots.place_no = ranks.place_no
