-- report:  chunk_density
-- answers: how much evidence do chunks hold?
-- grain:   one row per document with chunks, and one over all documents (doc_id null)
-- param:   doc_id                 varchar = null  a document; null = every document
-- column:  doc_id                 varchar  the document; null = all of them together
-- column:  n_chunks               bigint   chunks of its newest chunk run
-- column:  n_with_evidence        bigint   of these that hold any of a gold span
-- column:  n_characters           bigint   code points in all chunks; what overlaps counts in each
-- column:  n_evidence_characters  bigint   of these that belong to a gold span, each once a chunk
-- column:  evidence_per_chunk     double   mean over all chunks
-- column:  evidence_per_holder    double   mean over the chunks that hold any
-- column:  share_evidence         double   of the characters in chunks that hold any: what a reader must read for it
-- column:  n_unplaced             bigint   chunks left out: nothing says where in the document they stand
-- reads:   ingest_lists, candidates, item_ranges, items, needed_evidence, evidence_places
with

newest as (

    select
        ingest_lists.list_id,
        ingest_lists.doc_id
    from ingest_lists
    where ingest_lists.layer = 'chunks'
    qualify
        dense_rank() over (
            partition by coalesce(ingest_lists.doc_id, cast(ingest_lists.list_id as varchar)), ingest_lists.index_name
            order by ingest_lists.at_ns desc, ingest_lists.stage_id desc
        ) = 1

),

chunks as (

    select distinct
        candidates.item,
        item_ranges.doc_id,
        item_ranges.text_hash,
        item_ranges.start_at,
        item_ranges.end_at
    from newest
    inner join candidates on newest.list_id = candidates.list_id
    inner join item_ranges on candidates.item = item_ranges.item
    where item_ranges.role = 'own' and item_ranges.start_at is not null and candidates.is_kept is distinct from false

),

unplaced as (

    select
        coalesce(items.doc_id, newest.doc_id) as doc_id,
        count(distinct candidates.item) as n_unplaced
    from newest
    inner join candidates on newest.list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where candidates.item not in (select chunks.item from chunks) and candidates.is_kept is distinct from false
    group by coalesce(items.doc_id, newest.doc_id)

),

standing as (

    select distinct
        evidence_places.doc_id,
        evidence_places.text_hash,
        evidence_places.start_at,
        evidence_places.end_at
    from needed_evidence
    inner join evidence_places on needed_evidence.evidence_id = evidence_places.evidence_id
    where needed_evidence.level = 'span' and evidence_places.is_found and evidence_places.start_at is not null

),

held as (

    select
        chunks.item,
        chunks.start_at as chunk_start_at,
        greatest(chunks.start_at, standing.start_at) as from_at,
        least(chunks.end_at, standing.end_at) as to_at
    from chunks
    inner join standing
        on
            chunks.doc_id = standing.doc_id
            and coalesce(chunks.text_hash, '') = coalesce(standing.text_hash, '')
            and chunks.start_at < standing.end_at
            and chunks.end_at > standing.start_at

),

-- Labels of several questions overlap: a character counts once in a chunk.
reaches as (

    select
        held.item,
        held.from_at,
        held.to_at,
        coalesce(
            max(held.to_at) over (
                partition by held.item, held.chunk_start_at order by held.from_at, held.to_at
                rows between unbounded preceding and 1 preceding
            ),
            0
        ) as reached
    from held

),

evidence_sizes as (

    select
        reaches.item,
        sum(greatest(reaches.to_at - greatest(reaches.from_at, reaches.reached), 0)) as n_evidence
    from reaches
    group by reaches.item

),

sizes as (

    select
        chunks.item,
        chunks.doc_id,
        sum(chunks.end_at - chunks.start_at) as n_characters
    from chunks
    where cast($doc_id as varchar) is null or chunks.doc_id = cast($doc_id as varchar)
    group by chunks.item, chunks.doc_id

),

per_document as (

    select
        sizes.doc_id,
        count(*) as n_chunks,
        count(evidence_sizes.item) as n_with_evidence,
        sum(sizes.n_characters) as n_characters,
        coalesce(sum(sizes.n_characters) filter (where evidence_sizes.item is not null), 0) as n_holding,
        coalesce(sum(evidence_sizes.n_evidence), 0) as n_evidence
    from sizes
    left join evidence_sizes on sizes.item = evidence_sizes.item
    group by sizes.doc_id

)

select
    per_document.doc_id as doc_id,
    cast(sum(per_document.n_chunks) as bigint) as n_chunks,
    cast(sum(per_document.n_with_evidence) as bigint) as n_with_evidence,
    cast(sum(per_document.n_characters) as bigint) as n_characters,
    cast(sum(per_document.n_evidence) as bigint) as n_evidence_characters,
    cast(sum(per_document.n_evidence) as double) / nullif(sum(per_document.n_chunks), 0) as evidence_per_chunk,
    cast(sum(per_document.n_evidence) as double) / nullif(sum(per_document.n_with_evidence), 0)
        as evidence_per_holder,
    cast(sum(per_document.n_evidence) as double) / nullif(sum(per_document.n_holding), 0) as share_evidence,
    cast(coalesce(sum(unplaced.n_unplaced), 0) as bigint) as n_unplaced
from per_document
left join unplaced on per_document.doc_id = unplaced.doc_id
group by grouping sets ((), (per_document.doc_id))
having count(per_document.doc_id) > 0
order by per_document.doc_id nulls first
