-- report:  chunk_cuts
-- answers: where did a chunk border fall inside a gold span, between which chunks, and what stands there?
-- grain:   one row per gold span that no chunk holds whole, and chunk that ends inside it
-- param:   evidence_id      varchar = null  evidence.evidence_id; null = every span
-- param:   n_characters     integer = 40    how much text before and after the border, in code points
-- column:  evidence_id      varchar  evidence.evidence_id
-- column:  doc_id           varchar  the document
-- column:  border_no        bigint   1-based, in the text's order
-- column:  start_at         integer  where the span stands in the chunked text, in code points
-- column:  end_at           integer  one past its last character
-- column:  chunk_before     varchar  the chunk that ends inside the span
-- column:  cut_at           integer  where it ends
-- column:  chunk_after      varchar  the next chunk that holds some of the span; null = none does
-- column:  next_at          integer  where that begins; smaller than cut_at where the two overlap
-- column:  share_before     double   share of the span's code points before the border
-- column:  text_before      varchar  the text up to the border; null when it was not captured
-- column:  text_between     varchar  what stands between the two and is in neither; empty when nothing does
-- column:  text_after       varchar  the text from the next chunk on, else from the border on
-- reads:   ingest_lists, candidates, item_ranges, items, needed_evidence, evidence_places, texts
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

standing as (

    select
        needed_evidence.evidence_id,
        evidence_places.doc_id,
        coalesce(evidence_places.text_hash, '') as text_hash,
        evidence_places.start_at,
        evidence_places.end_at
    from needed_evidence
    inner join evidence_places on needed_evidence.evidence_id = evidence_places.evidence_id
    where
        needed_evidence.level = 'span'
        and evidence_places.is_found
        and evidence_places.start_at is not null
        and (cast($evidence_id as varchar) is null or needed_evidence.evidence_id = cast($evidence_id as varchar))

),

holders as (

    select
        standing.evidence_id,
        standing.doc_id,
        standing.text_hash,
        standing.start_at,
        standing.end_at,
        items.chunk_id,
        chunks.start_at as chunk_start_at,
        chunks.end_at as chunk_end_at,
        lead(items.chunk_id) over borders as next_chunk_id,
        lead(chunks.start_at) over borders as next_at,
        bool_or(chunks.start_at <= standing.start_at and chunks.end_at >= standing.end_at) over (
            partition by standing.evidence_id, standing.text_hash, standing.start_at
        ) as is_whole_somewhere
    from standing
    inner join chunks
        on
            standing.doc_id = chunks.doc_id
            and standing.text_hash = coalesce(chunks.text_hash, '')
            and chunks.start_at < standing.end_at
            and chunks.end_at > standing.start_at
    inner join items on chunks.item = items.item
    window borders as (
        partition by standing.evidence_id, standing.text_hash, standing.start_at
        order by chunks.start_at, chunks.end_at, items.chunk_id
    )

)

select
    holders.evidence_id as evidence_id,
    holders.doc_id as doc_id,
    row_number() over (
        partition by holders.evidence_id order by holders.chunk_end_at, holders.chunk_start_at, holders.chunk_id
    ) as border_no,
    holders.start_at as start_at,
    holders.end_at as end_at,
    holders.chunk_id as chunk_before,
    holders.chunk_end_at as cut_at,
    holders.next_chunk_id as chunk_after,
    holders.next_at as next_at,
    cast(holders.chunk_end_at - holders.start_at as double) / nullif(holders.end_at - holders.start_at, 0)
        as share_before,
    substring(
        texts.text, greatest(holders.chunk_end_at - $n_characters, 0) + 1, least(holders.chunk_end_at, $n_characters)
    ) as text_before,
    substring(
        texts.text,
        holders.chunk_end_at + 1,
        greatest(coalesce(holders.next_at, holders.chunk_end_at) - holders.chunk_end_at, 0)
    ) as text_between,
    substring(texts.text, coalesce(holders.next_at, holders.chunk_end_at) + 1, $n_characters) as text_after
from holders
left join texts on holders.text_hash = texts.text_hash and texts.is_aligned
where not holders.is_whole_somewhere and holders.chunk_end_at < holders.end_at
order by holders.evidence_id, border_no
