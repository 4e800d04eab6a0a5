-- view:    own_writes
-- answers: where was a chunk that holds a lost span written, before the query?
-- grain:   one row per lost span, item that holds it and index
-- column:  query_id       bigint   queries.query_id
-- column:  evidence_no    bigint   needed_evidence.evidence_no
-- column:  sure_order     bigint   span_verdicts.sure_order
-- column:  started_at_ns  bigint   start of the query
-- column:  item           integer  items.item
-- column:  index_name     varchar  the index
-- column:  chunk_id       varchar  items.chunk_id
-- column:  doc_id         varchar  items.doc_id
-- column:  write_no       bigint   id_writes.write_no of the last write
-- column:  list_id        bigint   its list
-- column:  ingest_id      bigint   its ingest
-- reads:   placed_losses, queries, loss_items, id_writes
select
    placed_losses.query_id,
    placed_losses.evidence_no,
    placed_losses.sure_order,
    queries.started_at_ns,
    id_writes.item,
    id_writes.index_name,
    any_value(id_writes.chunk_id) as chunk_id,
    any_value(id_writes.doc_id) as doc_id,
    max(id_writes.write_no) as write_no,
    arg_max(id_writes.list_id, id_writes.write_no) as list_id,
    arg_max(id_writes.ingest_id, id_writes.write_no) as ingest_id
from placed_losses
inner join queries on placed_losses.query_id = queries.query_id
inner join loss_items on placed_losses.evidence_no = loss_items.evidence_no and loss_items.role = 'own'
inner join id_writes on loss_items.item = id_writes.item and id_writes.at_ns <= queries.started_at_ns
where placed_losses.sure_order in (3, 4)
group by
    placed_losses.query_id, placed_losses.evidence_no, placed_losses.sure_order, queries.started_at_ns, id_writes.item,
    id_writes.index_name
