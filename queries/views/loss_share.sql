-- view:    loss_share
-- answers: how much of a span was lost at which place?
-- grain:   one row per scored query, evidence span and place (or or of places) where pieces of it were lost
-- kept:    in the store
-- column:  run            varchar  label of the service's configuration
-- column:  query_id       bigint   queries.query_id
-- column:  question_id    varchar  the labelled question
-- column:  kind           varchar  the question's kind
-- column:  set_no         integer  any complete set is enough
-- column:  need           varchar  all needs of a set are needed, any span of a need is enough
-- column:  evidence_id    varchar  evidence.evidence_id
-- column:  doc_id         varchar  the document
-- column:  lost_kind      varchar  kind of the stage that lost these pieces; null when it is not certain
-- column:  lost_stage     varchar  the user's name for it
-- column:  lost_at        varchar  in or after
-- column:  between_first  varchar  not certain: the last place where they surely were
-- column:  between_last   varchar  not certain: the last place where they may have been
-- column:  share          double   of the span's weight; with final_coverage the shares of a span sum to 1
-- reads:   piece_ends, place_names, layer_names, needed_evidence, query_scope
with

ends as (

    select
        piece_ends.query_id,
        piece_ends.evidence_no,
        piece_ends.piece,
        piece_ends.weight,
        piece_ends.total,
        piece_ends.reading,
        piece_ends.end_order,
        piece_ends.end_place_no
    from piece_ends
    where piece_ends.end_order >= 0

),

readings as (

    select 'sure' as reading
    union all
    select 'possible' as reading

),

named as (

    select
        ends.query_id,
        ends.evidence_no,
        ends.piece,
        ends.weight,
        ends.total,
        ends.reading,
        ends.end_order,
        string_agg(cast(ends.end_place_no as varchar), ' ' order by ends.end_place_no) as end_places,
        string_agg(distinct place_names.lost_kind, ' or ' order by place_names.lost_kind) as lost_kind,
        string_agg(distinct place_names.lost_stage, ' or ' order by place_names.lost_stage) as lost_stage,
        string_agg(distinct place_names.lost_at, ' or ' order by place_names.lost_at desc) as lost_at,
        string_agg(distinct place_names.words, ' or ' order by place_names.words) as words
    from ends
    left join place_names on ends.query_id = place_names.query_id and ends.end_place_no = place_names.place_no
    group by
        ends.query_id, ends.evidence_no, ends.piece, ends.weight, ends.total, ends.reading, ends.end_order

),

labelled as (

    select
        named.query_id,
        named.evidence_no,
        named.piece,
        named.weight,
        named.total,
        readings.reading,
        named.end_order,
        named.end_places,
        coalesce(named.lost_kind, layer_names.lost_kind) as lost_kind,
        coalesce(named.lost_stage, layer_names.lost_stage) as lost_stage,
        coalesce(named.lost_at, layer_names.lost_at) as lost_at,
        coalesce(named.words, layer_names.words) as words
    from named
    inner join readings on named.reading in (readings.reading, 'both')
    left join layer_names
        on
            named.end_order = layer_names.end_order
            and case when named.end_order = 4 then named.query_id else 0 end = layer_names.query_id

),

readings_together as (

    select
        labelled.query_id,
        labelled.evidence_no,
        labelled.piece,
        max(labelled.weight) as weight,
        max(labelled.total) as total,
        max(case when labelled.reading = 'sure' then labelled.end_order end) as end_order,
        max(case when labelled.reading = 'possible' then labelled.end_order end) as possible_order,
        max(case when labelled.reading = 'sure' then labelled.end_places end) as end_places,
        max(case when labelled.reading = 'possible' then labelled.end_places end) as possible_places,
        max(case when labelled.reading = 'sure' then labelled.lost_kind end) as lost_kind,
        max(case when labelled.reading = 'sure' then labelled.lost_stage end) as lost_stage,
        max(case when labelled.reading = 'sure' then labelled.lost_at end) as lost_at,
        max(case when labelled.reading = 'sure' then labelled.words end) as sure_words,
        max(case when labelled.reading = 'possible' then labelled.words end) as possible_words
    from labelled
    group by labelled.query_id, labelled.evidence_no, labelled.piece

),

paired as (

    select
        readings_together.query_id,
        readings_together.evidence_no,
        readings_together.weight,
        readings_together.total,
        readings_together.end_order,
        readings_together.end_places,
        readings_together.end_order = readings_together.possible_order
        and (readings_together.end_places is not distinct from readings_together.possible_places) as is_placed,
        readings_together.lost_kind,
        readings_together.lost_stage,
        readings_together.lost_at,
        readings_together.sure_words,
        readings_together.possible_words
    from readings_together
    where readings_together.end_order < 1000000000

),

placed as (

    select
        paired.query_id,
        paired.evidence_no,
        paired.weight,
        paired.total,
        case when paired.is_placed then paired.end_order end as end_order,
        case when paired.is_placed then paired.end_places end as end_places,
        case when paired.is_placed then paired.lost_kind end as lost_kind,
        case when paired.is_placed then paired.lost_stage end as lost_stage,
        case when paired.is_placed then paired.lost_at end as lost_at,
        case when not paired.is_placed then paired.sure_words end as between_first,
        case when not paired.is_placed then paired.possible_words end as between_last
    from paired

),

shares as (

    select
        placed.query_id,
        placed.evidence_no,
        placed.end_order,
        placed.end_places,
        placed.lost_kind,
        placed.lost_stage,
        placed.lost_at,
        placed.between_first,
        placed.between_last,
        cast(sum(placed.weight) as double) / nullif(max(placed.total), 0) as share
    from placed
    group by
        placed.query_id, placed.evidence_no, placed.end_order, placed.end_places, placed.lost_kind,
        placed.lost_stage, placed.lost_at, placed.between_first, placed.between_last

)

select
    query_scope.run,
    shares.query_id,
    query_scope.question_id,
    query_scope.kind,
    needed_evidence.set_no,
    needed_evidence.need,
    needed_evidence.evidence_id,
    needed_evidence.doc_id,
    shares.lost_kind,
    shares.lost_stage,
    shares.lost_at,
    shares.between_first,
    shares.between_last,
    shares.share
from shares
inner join needed_evidence on shares.evidence_no = needed_evidence.evidence_no
inner join query_scope on shares.query_id = query_scope.query_id
where shares.share > 0
