-- view:    piece_ends
-- answers: where was each piece of the evidence seen last, for sure and possibly?
-- grain:   one row per query, piece, reading and place of its or (one for kept pieces and for layers)
-- kept:    during a refresh
-- column:  query_id       bigint   queries.query_id
-- column:  evidence_no    bigint   needed_evidence.evidence_no
-- column:  piece          bigint   evidence_cuts.piece; negative: a label that cannot be judged
-- column:  weight         bigint   evidence_cuts.weight
-- column:  total          bigint   evidence_cuts.total
-- column:  reading        varchar  sure (what is surely there) and possible (all that could be there), or both where these are the same for the whole span
-- column:  end_order      bigint   largest place_order where it was seen; negative: the label cannot be judged (-1 stale, -2 later, -3 deleted, -4 misaligned)
-- column:  end_place_no   integer  a place of the or; null for layers and kept pieces
-- column:  end_rank       integer  best rank of an item that holds it there
-- column:  end_item       integer  that item
-- column:  end_score      double   its score there
-- column:  end_tokens     integer  its tokens there
-- column:  is_first       boolean  true for one row of each query, piece and reading: sum weights over these
-- column:  is_candidate   boolean  in the union of what the retrieve runs returned
-- column:  is_final       boolean  in the final context
-- reads:   piece_presence, places
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
        piece_presence.is_branch,
        piece_presence.rank,
        piece_presence.item,
        piece_presence.score,
        piece_presence.tokens,
        piece_presence.is_sure,
        piece_presence.is_own,
        piece_presence.is_candidate,
        piece_presence.layer,
        piece_presence.open_layer
    from piece_presence

),

-- place_no rises with place_order, so one number holds the last place and the best rank there.
tops as materialized (

    select
        presence.query_id,
        presence.piece,
        max(presence.evidence_no) as evidence_no,
        max(presence.weight) as weight,
        max(presence.total) as total,
        max(case when presence.is_sure then presence.place_order end) as seen_order,
        max(presence.place_order) as spotted_order,
        max(case when presence.is_sure then 10000000 * cast(presence.place_no as bigint) + 9999999 - presence.rank end)
            as seen_last,
        max(10000000 * cast(presence.place_no as bigint) + 9999999 - coalesce(presence.rank, 9999999)) as spotted_last,
        max(presence.layer) as layer,
        max(presence.open_layer) as open_layer,
        max(case when presence.is_sure then 0 when presence.place_order is not null then 1 else 0 end) as n_open,
        max(case when presence.is_candidate and presence.is_own and presence.is_sure then 1 else 0 end)
            as sure_candidate,
        max(case when presence.is_candidate and presence.is_own then 1 else 0 end) as possible_candidate
    from presence
    group by presence.query_id, presence.piece

),

open_spans as materialized (

    select distinct
        tops.query_id,
        tops.evidence_no
    from tops
    where tops.n_open = 1 or (tops.seen_order is null and tops.layer <> tops.open_layer)

),

readings as materialized (

    select
        tops.query_id,
        tops.evidence_no,
        tops.piece,
        tops.weight,
        tops.total,
        case when open_spans.query_id is null then 'both' else 'sure' end as reading,
        coalesce(tops.seen_order, tops.layer) as end_order,
        case when tops.seen_order < 1000000000 then tops.seen_last end as last_place,
        tops.sure_candidate = 1 as is_candidate
    from tops
    left join open_spans on tops.query_id = open_spans.query_id and tops.evidence_no = open_spans.evidence_no

    union all

    select
        tops.query_id,
        tops.evidence_no,
        tops.piece,
        tops.weight,
        tops.total,
        'possible' as reading,
        case
            when tops.spotted_order >= 10 then tops.spotted_order
            -- A write so close to the start of the query that nobody can say what it could still find.
            when tops.open_layer = 9 then 1000000000
            -- What a layer that is complete lacks, a retrieval that nobody recorded cannot have found.
            when tops.open_layer < 4 then tops.open_layer
            else greatest(coalesce(tops.spotted_order, 0), tops.open_layer)
        end as end_order,
        case when tops.spotted_order between 10 and 999999999 then tops.spotted_last end as last_place,
        tops.possible_candidate = 1 as is_candidate
    from tops
    inner join open_spans on tops.query_id = open_spans.query_id and tops.evidence_no = open_spans.evidence_no

),

lost as materialized (

    select
        readings.query_id,
        readings.piece,
        readings.reading,
        readings.end_order,
        readings.last_place // 10000000 as last_no,
        9999999 - readings.last_place % 10000000 as last_rank
    from readings
    where readings.last_place is not null

),

last_items as (

    select
        lost.query_id,
        lost.piece,
        lost.reading,
        max(presence.item) as item,
        max(presence.score) as score,
        max(presence.tokens) as tokens
    from presence
    inner join lost
        on
            presence.query_id = lost.query_id
            and presence.piece = lost.piece
            and presence.place_no = lost.last_no
            and presence.rank = lost.last_rank
    group by lost.query_id, lost.piece, lost.reading

),

-- Only places that do not lead to all later ones can be alternatives to the last place.
branches as materialized (

    select
        lost.query_id,
        lost.piece,
        lost.reading,
        lost.last_no,
        presence.place_no,
        min(presence.rank) as rank
    from presence
    inner join lost on presence.query_id = lost.query_id and presence.piece = lost.piece
    where
        presence.is_branch
        and presence.place_no < lost.last_no
        and (presence.is_sure or lost.reading = 'possible')
        and presence.place_order >= case when lost.end_order >= 1000000 then 1000000 else 10 end
    group by lost.query_id, lost.piece, lost.reading, lost.last_no, presence.place_no

),

ends_apart as materialized (

    select
        branches.query_id,
        branches.piece,
        branches.reading,
        branches.place_no,
        branches.rank,
        places.later_nos
    from branches
    inner join places on branches.query_id = places.query_id and branches.place_no = places.place_no
    where not list_contains(places.later_nos, cast(branches.last_no as integer))

),

passed_on as (

    select distinct
        ends_apart.query_id,
        ends_apart.piece,
        ends_apart.reading,
        ends_apart.place_no
    from ends_apart
    inner join presence on ends_apart.query_id = presence.query_id and ends_apart.piece = presence.piece
    where
        (presence.is_sure or ends_apart.reading = 'possible')
        and list_contains(ends_apart.later_nos, presence.place_no)

)

select
    readings.query_id,
    readings.evidence_no,
    readings.piece,
    readings.weight,
    readings.total,
    readings.reading,
    readings.end_order,
    cast(readings.last_place // 10000000 as integer) as end_place_no,
    cast(nullif(9999999 - readings.last_place % 10000000, 9999999) as integer) as end_rank,
    last_items.item as end_item,
    last_items.score as end_score,
    last_items.tokens as end_tokens,
    true as is_first,
    readings.is_candidate,
    readings.end_order = 1000000000 as is_final
from readings
left join last_items
    on
        readings.query_id = last_items.query_id
        and readings.piece = last_items.piece
        and readings.reading = last_items.reading

union all

select
    readings.query_id,
    readings.evidence_no,
    readings.piece,
    readings.weight,
    readings.total,
    readings.reading,
    readings.end_order,
    ends_apart.place_no as end_place_no,
    ends_apart.rank as end_rank,
    cast(null as integer) as end_item,
    cast(null as double) as end_score,
    cast(null as integer) as end_tokens,
    false as is_first,
    readings.is_candidate,
    false as is_final
from ends_apart
inner join readings
    on
        ends_apart.query_id = readings.query_id
        and ends_apart.piece = readings.piece
        and ends_apart.reading = readings.reading
left join passed_on
    on
        ends_apart.query_id = passed_on.query_id
        and ends_apart.piece = passed_on.piece
        and ends_apart.reading = passed_on.reading
        and ends_apart.place_no = passed_on.place_no
where passed_on.place_no is null
