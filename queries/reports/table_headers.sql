-- report:  table_headers
-- answers: which tables lost their header row when they were cut, and which gold spans stand in such chunks?
-- grain:   one row per document with a table that its parser writes as Markdown, and one over all (doc_id null)
-- param:   doc_id                  varchar = null  a document; null = every document
-- column:  doc_id                  varchar  the document; null = all of them together
-- column:  n_tables                bigint   Markdown tables in its chunked text: a header row above a row of dashes
-- column:  n_cut                   bigint   of these with a chunk that holds rows without the header row
-- column:  n_chunks                bigint   chunks that hold rows of a table, once a table
-- column:  n_without_header        bigint   of these without its header row
-- column:  n_spans                 bigint   gold spans in rows of a table
-- column:  n_spans_without_header  bigint   of these that no chunk holds together with the header row
-- column:  n_texts_left_out        bigint   chunked texts that were not captured: nothing is known of their tables
-- reads:   ingest_lists, candidates, item_ranges, needed_evidence, evidence_places, texts
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

chunked as (

    select distinct
        chunks.doc_id,
        chunks.text_hash
    from chunks
    where cast($doc_id as varchar) is null or chunks.doc_id = cast($doc_id as varchar)

),

captured as (

    select
        chunked.doc_id,
        chunked.text_hash,
        texts.text
    from chunked
    left join texts on chunked.text_hash = texts.text_hash and texts.is_aligned

),

line_texts as (

    select
        captured.doc_id,
        captured.text_hash,
        unnest(string_split(captured.text, chr(10))) as line,
        generate_subscripts(string_split(captured.text, chr(10)), 1) as line_no
    from captured
    where captured.text like '%|%'

),

lines as (

    select
        line_texts.doc_id,
        line_texts.text_hash,
        line_texts.line_no,
        coalesce(
            sum(length(line_texts.line) + 1) over (
                partition by line_texts.doc_id, line_texts.text_hash order by line_texts.line_no
                rows between unbounded preceding and 1 preceding
            ),
            0
        ) as start_at,
        length(line_texts.line) as n_characters,
        line_texts.line like '%|%' as is_row,
        regexp_matches(line_texts.line, '^\s*\|?\s*:?-{2,}:?\s*(\|\s*:?-{2,}:?\s*)*\|?\s*$')
        and line_texts.line like '%|%' as is_dashes
    from line_texts

),

blocks as (

    select
        lines.doc_id,
        lines.text_hash,
        lines.line_no,
        lines.start_at,
        lines.n_characters,
        lines.is_dashes,
        lines.line_no - row_number() over (
            partition by lines.doc_id, lines.text_hash order by lines.line_no
        ) as block_no,
        lag(lines.start_at) over (partition by lines.doc_id, lines.text_hash order by lines.line_no) as header_start_at,
        lag(lines.line_no) over (partition by lines.doc_id, lines.text_hash order by lines.line_no) as header_no
    from lines
    where lines.is_row

),

headers as (

    select
        blocks.doc_id,
        blocks.text_hash,
        blocks.block_no,
        min(blocks.line_no) as dashes_no,
        arg_min(blocks.header_start_at, blocks.line_no) as header_start_at,
        arg_min(blocks.start_at - 1, blocks.line_no) as header_end_at
    from blocks
    where blocks.is_dashes and blocks.header_no = blocks.line_no - 1
    group by blocks.doc_id, blocks.text_hash, blocks.block_no

),

tables as (

    select
        headers.doc_id,
        headers.text_hash,
        headers.header_start_at,
        headers.header_end_at,
        min(blocks.start_at) as body_start_at,
        max(blocks.start_at + blocks.n_characters) as body_end_at
    from headers
    inner join blocks
        on
            headers.doc_id = blocks.doc_id
            and headers.text_hash = blocks.text_hash
            and headers.block_no = blocks.block_no
            and headers.dashes_no < blocks.line_no
    group by headers.doc_id, headers.text_hash, headers.header_start_at, headers.header_end_at

),

parts as (

    select
        tables.doc_id,
        tables.text_hash,
        tables.header_start_at,
        chunks.item,
        chunks.start_at,
        chunks.end_at,
        chunks.start_at <= tables.header_start_at and chunks.end_at >= tables.header_end_at as has_header
    from tables
    inner join chunks
        on
            tables.doc_id = chunks.doc_id
            and tables.text_hash = chunks.text_hash
            and chunks.start_at < tables.body_end_at
            and chunks.end_at > tables.body_start_at

),

in_tables as (

    select
        needed_evidence.evidence_id,
        tables.doc_id,
        tables.text_hash,
        tables.header_start_at,
        bool_or(
            parts.has_header and parts.start_at <= evidence_places.start_at and parts.end_at >= evidence_places.end_at
        ) as has_header
    from needed_evidence
    inner join evidence_places on needed_evidence.evidence_id = evidence_places.evidence_id
    inner join tables
        on
            evidence_places.doc_id = tables.doc_id
            and evidence_places.text_hash = tables.text_hash
            and evidence_places.start_at >= tables.body_start_at
            and evidence_places.end_at <= tables.body_end_at
    left join parts
        on
            tables.doc_id = parts.doc_id
            and tables.text_hash = parts.text_hash
            and tables.header_start_at = parts.header_start_at
    where needed_evidence.level = 'span' and evidence_places.is_found
    group by needed_evidence.evidence_id, tables.doc_id, tables.text_hash, tables.header_start_at

),

table_counts as (

    select
        tables.doc_id,
        count(distinct tables.header_start_at) as n_tables,
        count(distinct parts.header_start_at) filter (where not parts.has_header) as n_cut,
        count(parts.item) as n_chunks,
        count(parts.item) filter (where not parts.has_header) as n_without_header
    from tables
    left join parts
        on
            tables.doc_id = parts.doc_id
            and tables.text_hash = parts.text_hash
            and tables.header_start_at = parts.header_start_at
    group by tables.doc_id

),

span_counts as (

    select
        in_tables.doc_id,
        count(*) as n_spans,
        count(*) filter (where not coalesce(in_tables.has_header, false)) as n_without_header
    from in_tables
    group by in_tables.doc_id

),

left_out as (

    select
        captured.doc_id,
        count(*) filter (where captured.text is null) as n_texts
    from captured
    group by captured.doc_id

)

select
    left_out.doc_id as doc_id,
    cast(coalesce(sum(table_counts.n_tables), 0) as bigint) as n_tables,
    cast(coalesce(sum(table_counts.n_cut), 0) as bigint) as n_cut,
    cast(coalesce(sum(table_counts.n_chunks), 0) as bigint) as n_chunks,
    cast(coalesce(sum(table_counts.n_without_header), 0) as bigint) as n_without_header,
    cast(coalesce(sum(span_counts.n_spans), 0) as bigint) as n_spans,
    cast(coalesce(sum(span_counts.n_without_header), 0) as bigint) as n_spans_without_header,
    cast(coalesce(sum(left_out.n_texts), 0) as bigint) as n_texts_left_out
from left_out
left join table_counts on left_out.doc_id = table_counts.doc_id
left join span_counts on left_out.doc_id = span_counts.doc_id
group by grouping sets ((), (left_out.doc_id))
having count(left_out.doc_id) > 0 and (grouping(left_out.doc_id) = 1 or sum(table_counts.n_tables) > 0)
order by left_out.doc_id nulls first
