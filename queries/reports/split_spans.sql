-- report:  split_spans
-- answers: over how many chunks are gold spans split?
-- grain:   one row per number of chunks
-- param:   doc_id       varchar = null  a document; null = every document
-- column:  n_chunks     bigint   1: one chunk holds the span whole; else how many hold some of it; 0: none does
-- column:  n_spans      bigint   gold spans with that many
-- column:  share        double   of the spans that count
-- column:  n_counted    bigint   spans that count: found in a text whose chunks are recorded with their places
-- column:  n_left_out   bigint   spans that do not: their document was not chunked on record, or they are not in its text
-- reads:   ingest_lists, candidates, item_ranges, needed_evidence, evidence_places
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

spans as (

    select
        needed_evidence.evidence_id,
        needed_evidence.doc_id
    from needed_evidence
    where
        needed_evidence.level = 'span'
        and (cast($doc_id as varchar) is null or needed_evidence.doc_id = cast($doc_id as varchar))

),

chunked as (

    select distinct
        chunks.doc_id,
        coalesce(chunks.text_hash, '') as text_hash
    from chunks

),

standing as (

    select
        spans.evidence_id,
        chunked.doc_id,
        chunked.text_hash,
        evidence_places.start_at,
        evidence_places.end_at
    from spans
    inner join evidence_places on spans.evidence_id = evidence_places.evidence_id
    inner join chunked
        on
            evidence_places.doc_id = chunked.doc_id
            and coalesce(evidence_places.text_hash, '') = chunked.text_hash
    where evidence_places.is_found and evidence_places.start_at is not null

),

holders as (

    select
        standing.evidence_id,
        count(distinct chunks.item) as n_chunks,
        bool_or(chunks.start_at <= standing.start_at and chunks.end_at >= standing.end_at) as is_whole
    from standing
    left join chunks
        on
            standing.doc_id = chunks.doc_id
            and standing.text_hash = coalesce(chunks.text_hash, '')
            and chunks.start_at < standing.end_at
            and chunks.end_at > standing.start_at
    group by standing.evidence_id

),

counted as (

    select
        case when holders.is_whole then 1 else holders.n_chunks end as n_chunks,
        count(*) as n_spans
    from holders
    group by case when holders.is_whole then 1 else holders.n_chunks end

),

all_spans as (

    select count(*) as n_spans
    from spans

)

select
    counted.n_chunks as n_chunks,
    counted.n_spans as n_spans,
    counted.n_spans / nullif(sum(counted.n_spans) over (), 0) as share,
    cast(sum(counted.n_spans) over () as bigint) as n_counted,
    cast(all_spans.n_spans - sum(counted.n_spans) over () as bigint) as n_left_out
from counted
cross join all_spans
order by counted.n_chunks
