-- view:    piece_presence
-- answers: where was each piece of the evidence seen in the query, and in which layers before it?
-- grain:   one row per query, piece, place and item that holds it there, or place that may hold anything; one per query and piece for the layers (place_order null); one per label that cannot be judged (piece negative)
-- kept:    during a refresh
-- column:  query_id          bigint   queries.query_id
-- column:  piece             bigint   evidence_cuts.piece; negative: a label that cannot be judged
-- column:  evidence_no       bigint   layer row: needed_evidence.evidence_no; null otherwise
-- column:  weight            bigint   layer row: evidence_cuts.weight; null otherwise
-- column:  total             bigint   layer row: evidence_cuts.total; null otherwise
-- column:  place_order       bigint   places.place_order; 5 for a retrieval nobody recorded; null for the layer row
-- column:  place_no          integer  places.place_no; 0 for an unknown final context
-- column:  is_branch         boolean  false: all later places of the query can be reached from here
-- column:  rank              integer  rank of the item
-- column:  item              integer  items.item
-- column:  score             double   its score there
-- column:  tokens            integer  its tokens there
-- column:  is_sure           boolean  false: may be there
-- column:  is_own            boolean  by its own ranges, not as what stands for it
-- column:  is_candidate      boolean  the list is the output of a retrieve run, wherever it stands
-- column:  layer             bigint   layer row: deepest one where it surely was: 0 nowhere, 1 source, 2 text, 3 chunks, 4 index; of labels that cannot be judged -1 stale, -2 later, -3 deleted, -4 misaligned
-- column:  open_layer        bigint   layer row: deepest one where it may have been; 9 when a write is too close to the query's start to tell
-- column:  source            integer  layer row: 2 surely there, 1 may be, 0 not
-- column:  text              integer  the same for the parsed text
-- column:  chunks            integer  the same for the chunks
-- column:  stored            integer  the same for the index
-- reads:   piece_hits, place_lists, places, query_flows, open_spots, label_states, evidence_cuts, piece_layers
with

list_places as (

    select
        place_lists.list_id,
        places.query_id,
        places.place_no,
        places.place_order,
        coalesce(places.counts_stands_for, false) as counts_stands_for,
        -- False: every later place of the query can be reached from here, so another is never its alternative.
        coalesce(len(places.later_nos) < query_flows.n_places - places.place_no, true) as is_branch
    from place_lists
    inner join places on place_lists.query_id = places.query_id and place_lists.place_no = places.place_no
    left join query_flows on places.query_id = query_flows.query_id

),

query_sightings as (

    select
        piece_hits.query_id,
        piece_hits.piece,
        list_places.place_order,
        list_places.place_no,
        list_places.is_branch,
        piece_hits.rank,
        piece_hits.item,
        piece_hits.score,
        piece_hits.tokens,
        piece_hits.role <> 'possible' and not piece_hits.is_untimed as is_sure,
        piece_hits.role <> 'stands_for' as is_own,
        piece_hits.is_candidate
    from piece_hits
    inner join list_places on piece_hits.list_id = list_places.list_id and piece_hits.query_id = list_places.query_id
    where piece_hits.role <> 'stands_for' or list_places.counts_stands_for

),

pieces as materialized (

    select distinct
        evidence_cuts.evidence_no,
        evidence_cuts.piece,
        evidence_cuts.weight,
        evidence_cuts.total
    from evidence_cuts

)

select
    query_sightings.query_id,
    query_sightings.piece,
    cast(null as bigint) as evidence_no,
    cast(null as bigint) as weight,
    cast(null as bigint) as total,
    query_sightings.place_order,
    query_sightings.place_no,
    query_sightings.is_branch,
    query_sightings.rank,
    query_sightings.item,
    query_sightings.score,
    query_sightings.tokens,
    query_sightings.is_sure,
    query_sightings.is_own,
    query_sightings.is_candidate,
    cast(null as bigint) as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from query_sightings

union all

select
    open_spots.query_id,
    pieces.piece,
    cast(null as bigint) as evidence_no,
    cast(null as bigint) as weight,
    cast(null as bigint) as total,
    cast(open_spots.place_order as bigint) as place_order,
    open_spots.place_no,
    true as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    false as is_sure,
    true as is_own,
    open_spots.is_candidate,
    cast(null as bigint) as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from open_spots
inner join label_states on open_spots.query_id = label_states.query_id
inner join pieces on label_states.evidence_no = pieces.evidence_no
where label_states.is_scored and (open_spots.is_for_ids or label_states.level <> 'chunk')

union all

select
    piece_layers.query_id,
    piece_layers.piece,
    piece_layers.evidence_no,
    piece_layers.weight,
    piece_layers.total,
    cast(null as bigint) as place_order,
    cast(null as integer) as place_no,
    cast(null as boolean) as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    cast(null as boolean) as is_sure,
    cast(null as boolean) as is_own,
    cast(null as boolean) as is_candidate,
    cast(piece_layers.layer as bigint) as layer,
    cast(piece_layers.open_layer as bigint) as open_layer,
    piece_layers.source,
    piece_layers.text,
    piece_layers.chunks,
    piece_layers.stored
from piece_layers

union all

-- Labels that cannot be judged pass by as one piece each.
select
    label_states.query_id,
    -label_states.evidence_no as piece,
    label_states.evidence_no,
    cast(1 as bigint) as weight,
    cast(1 as bigint) as total,
    cast(null as bigint) as place_order,
    cast(null as integer) as place_no,
    cast(null as boolean) as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    cast(null as boolean) as is_sure,
    cast(null as boolean) as is_own,
    cast(null as boolean) as is_candidate,
    cast(case label_states.state when 'stale' then -1 when 'later' then -2 when 'deleted' then -3 else -4 end as bigint)
        as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from label_states
where not label_states.is_scored
