-- view:    piece_sightings
-- answers: where was each piece of the evidence seen, before the query and in it?
-- grain:   one row per query, piece and place or layer where it was or may have been
-- kept:    during a refresh
-- column:  query_id      bigint   queries.query_id
-- column:  evidence_no   bigint   needed_evidence.evidence_no
-- column:  piece         bigint   evidence_cuts.piece
-- column:  weight        bigint   evidence_cuts.weight
-- column:  total         bigint   evidence_cuts.total
-- column:  place_order   bigint   0 nowhere, 1 source, 2 text, 3 chunks, 4 index, 5 a retrieval nobody recorded, 9 written too close to the query's start to tell, then places.place_order
-- column:  place_no      integer  places.place_no; 0 for an unknown final context; null for layers
-- column:  rank          integer  best rank of an item that holds it there
-- column:  is_sure       boolean  false: may be there
-- column:  is_own        boolean  by its own ranges, not only as what stands for it
-- column:  is_candidate  boolean  the place is the output of a retrieve run
-- reads:   piece_presence
with

presence as materialized (

    select
        piece_presence.query_id,
        piece_presence.piece,
        piece_presence.evidence_no,
        piece_presence.weight,
        piece_presence.total,
        piece_presence.place_order,
        piece_presence.place_no,
        piece_presence.rank,
        piece_presence.is_sure,
        piece_presence.is_own,
        piece_presence.is_candidate,
        piece_presence.open_layer,
        piece_presence.source,
        piece_presence.text,
        piece_presence.chunks,
        piece_presence.stored
    from piece_presence
    where piece_presence.piece > 0

),

layers as (

    select
        presence.query_id,
        presence.piece,
        presence.evidence_no,
        presence.weight,
        presence.total,
        presence.open_layer,
        presence.source,
        presence.text,
        presence.chunks,
        presence.stored
    from presence
    where presence.place_order is null

),

seen as (

    select
        presence.query_id,
        presence.piece,
        presence.place_order,
        presence.place_no,
        min(presence.rank) as rank,
        max(case when presence.is_sure then 1 else 0 end) = 1 as is_sure,
        max(case when presence.is_own then 1 else 0 end) = 1 as is_own,
        max(case when presence.is_candidate then 1 else 0 end) = 1 as is_candidate
    from presence
    where presence.place_order is not null
    group by presence.query_id, presence.piece, presence.place_order, presence.place_no

),

numbers as (

    select 0 as place_order
    union all
    select 1 as place_order
    union all
    select 2 as place_order
    union all
    select 3 as place_order
    union all
    select 4 as place_order
    union all
    select 9 as place_order

),

spots as (

    select
        layers.query_id,
        layers.piece,
        numbers.place_order,
        case numbers.place_order
            when 0 then 2
            when 1 then layers.source
            when 2 then layers.text
            when 3 then layers.chunks
            when 4 then layers.stored
            when 9 then case when layers.open_layer = 9 then 1 else 0 end
        end as presence
    from layers
    cross join numbers

),

together as (

    select
        seen.query_id,
        seen.piece,
        seen.place_order,
        seen.place_no,
        seen.rank,
        seen.is_sure,
        seen.is_own,
        seen.is_candidate
    from seen

    union all

    select
        spots.query_id,
        spots.piece,
        cast(spots.place_order as bigint) as place_order,
        cast(null as integer) as place_no,
        cast(null as integer) as rank,
        spots.presence = 2 as is_sure,
        true as is_own,
        false as is_candidate
    from spots
    where spots.presence > 0

)

select
    together.query_id,
    layers.evidence_no,
    together.piece,
    layers.weight,
    layers.total,
    together.place_order,
    together.place_no,
    together.rank,
    together.is_sure,
    together.is_own,
    together.is_candidate
from together
inner join layers on together.query_id = layers.query_id and together.piece = layers.piece
