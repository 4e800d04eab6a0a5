-- view:    rival_writes
-- answers: what else was written under the id of a chunk that holds a lost span, before the query?
-- grain:   one row per row of own_writes and other item that was written under its id
-- column:  query_id        bigint   queries.query_id
-- column:  evidence_no     bigint   needed_evidence.evidence_no
-- column:  sure_order      bigint   span_verdicts.sure_order
-- column:  item            integer  the item that holds the span
-- column:  index_name      varchar  the index
-- column:  rival_item      integer  the other item
-- column:  doc_id          varchar  its document
-- column:  place           varchar  its items.place
-- column:  item_text_hash  varchar  its text
-- column:  is_newest       boolean  it is what the index has under the id
-- column:  is_taken        boolean  the id was written again after the item that holds the span
-- column:  is_another      boolean  it is another chunk, not another version of this one
-- reads:   own_writes, id_writes

-- Another document's chunk, or another of the same go, is another chunk; else it is another version of this one.
select
    own_writes.query_id,
    own_writes.evidence_no,
    own_writes.sure_order,
    own_writes.item,
    own_writes.index_name,
    id_writes.item as rival_item,
    id_writes.doc_id,
    id_writes.place,
    id_writes.item_text_hash,
    id_writes.write_no = max(id_writes.write_no) over one_id as is_newest,
    max(id_writes.write_no) over one_id > own_writes.write_no as is_taken,
    coalesce(id_writes.doc_id <> own_writes.doc_id, false)
    or id_writes.list_id = own_writes.list_id
    or coalesce(id_writes.ingest_id = own_writes.ingest_id, false) as is_another
from own_writes
inner join id_writes
    on
        own_writes.chunk_id = id_writes.chunk_id
        and own_writes.index_name = id_writes.index_name
        and own_writes.item <> id_writes.item
        and id_writes.at_ns <= own_writes.started_at_ns
window one_id as (
    partition by own_writes.query_id, own_writes.evidence_no, own_writes.item, own_writes.index_name
)
