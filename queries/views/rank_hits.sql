-- view:    rank_hits
-- answers: at which rank does a list have what is relevant?
-- grain:   one row per ranked list, unit and relevant document or chunk in it, at its first rank; for spans one row per rank at which a candidate surely holds some of one (relevant null), and one per span at the rank that makes it whole
-- kept:    in the store
-- column:  query_id  bigint   queries.query_id
-- column:  place_no  integer  places.place_no
-- column:  unit      varchar  document, chunk or span
-- column:  relevant  varchar  rank_labels.relevant; null: a rank that holds some of a span
-- column:  rank      bigint   as recorded, never a sort of scores
-- column:  grade     double   rank_labels.grade
-- reads:   rank_labels, items, candidates, rank_lists, piece_hits, evidence_cuts, needed_evidence, setting_values
with

units as materialized (

    select distinct
        rank_labels.unit,
        rank_labels.relevant
    from rank_labels

),

wanted as materialized (

    select
        units.unit,
        units.relevant,
        items.item
    from units
    inner join items on units.relevant = items.doc_id
    where units.unit = 'document'

    union all

    select
        units.unit,
        units.relevant,
        items.item
    from units
    inner join items on units.relevant = items.chunk_id
    where units.unit = 'chunk'

),

found as materialized (

    select
        candidates.list_id,
        candidates.rank,
        candidates.item
    from candidates
    where candidates.item in (select wanted.item from wanted) and candidates.is_kept is distinct from false

),

named as (

    select
        rank_lists.query_id,
        rank_lists.place_no,
        wanted.unit,
        wanted.relevant,
        found.rank
    from found
    inner join rank_lists on found.list_id = rank_lists.list_id
    inner join wanted on found.item = wanted.item

),

-- ------------------------------------------------------------------ spans, by the ranges of what holds them
pieces as materialized (

    select distinct
        evidence_cuts.evidence_no,
        evidence_cuts.piece,
        evidence_cuts.weight,
        evidence_cuts.total
    from evidence_cuts

),

piece_ranks as materialized (

    select
        rank_lists.query_id,
        rank_lists.place_no,
        needed_evidence.evidence_id,
        pieces.piece,
        pieces.weight,
        pieces.total,
        piece_hits.rank
    from piece_hits
    inner join rank_lists on piece_hits.query_id = rank_lists.query_id and piece_hits.list_id = rank_lists.list_id
    inner join pieces on piece_hits.piece = pieces.piece
    inner join needed_evidence on pieces.evidence_no = needed_evidence.evidence_no
    where piece_hits.role = 'own' and not piece_hits.is_untimed

),

first_ranks as (

    select
        piece_ranks.query_id,
        piece_ranks.place_no,
        piece_ranks.evidence_id,
        piece_ranks.piece,
        min(piece_ranks.rank) as rank,
        max(piece_ranks.weight) as weight,
        max(piece_ranks.total) as total
    from piece_ranks
    group by piece_ranks.query_id, piece_ranks.place_no, piece_ranks.evidence_id, piece_ranks.piece

),

grown as (

    select
        first_ranks.query_id,
        first_ranks.place_no,
        first_ranks.evidence_id,
        first_ranks.rank,
        first_ranks.total,
        sum(first_ranks.weight) over (
            partition by first_ranks.query_id, first_ranks.place_no, first_ranks.evidence_id
            order by first_ranks.rank
        ) as weight
    from first_ranks

)

select
    rank_labels.query_id,
    named.place_no,
    rank_labels.unit,
    rank_labels.relevant,
    cast(min(named.rank) as bigint) as rank,
    max(rank_labels.grade) as grade
from named
inner join rank_labels
    on
        named.query_id = rank_labels.query_id
        and named.unit = rank_labels.unit
        and named.relevant = rank_labels.relevant
group by rank_labels.query_id, named.place_no, rank_labels.unit, rank_labels.relevant

union all

select
    grown.query_id,
    grown.place_no,
    'span' as unit,
    grown.evidence_id as relevant,
    cast(min(grown.rank) as bigint) as rank,
    max(rank_labels.grade) as grade
from grown
cross join setting_values
inner join rank_labels
    on
        grown.query_id = rank_labels.query_id
        and rank_labels.unit = 'span'
        and grown.evidence_id = rank_labels.relevant
where grown.weight >= setting_values.min_coverage * grown.total
group by grown.query_id, grown.place_no, grown.evidence_id

union all

select distinct
    piece_ranks.query_id,
    piece_ranks.place_no,
    'span' as unit,
    cast(null as varchar) as relevant,
    cast(piece_ranks.rank as bigint) as rank,
    cast(null as double) as grade
from piece_ranks
inner join rank_labels
    on
        piece_ranks.query_id = rank_labels.query_id
        and rank_labels.unit = 'span'
        and piece_ranks.evidence_id = rank_labels.relevant
