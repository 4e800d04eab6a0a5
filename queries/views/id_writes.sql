-- view:    id_writes
-- answers: what was written under the ids of lost items, in which index and order?
-- grain:   one row per write of an item in loss_rows to an index; ids made from a text are no index's keys
-- kept:    during a refresh
-- column:  item            integer  items.item
-- column:  chunk_id        varchar  items.chunk_id
-- column:  doc_id          varchar  items.doc_id
-- column:  place           varchar  items.place
-- column:  item_text_hash  varchar  items.item_text_hash
-- column:  index_name      varchar  the index
-- column:  ingest_id       bigint   documents.ingest_id
-- column:  list_id         bigint   lists.list_id
-- column:  at_ns           bigint   when
-- column:  write_no        bigint   of two writes of an id the one with the higher number holds it
-- reads:   loss_rows, ingest_lists, items
with

index_lists as materialized (

    select
        ingest_lists.list_id,
        ingest_lists.ingest_id,
        ingest_lists.index_name,
        ingest_lists.at_ns
    from ingest_lists
    where ingest_lists.layer = 'index'

)

select
    loss_rows.item,
    items.chunk_id,
    items.doc_id,
    items.place,
    items.item_text_hash,
    index_lists.index_name,
    index_lists.ingest_id,
    index_lists.list_id,
    index_lists.at_ns,
    -- Of two writes the later one holds the id.
    row_number() over (
        partition by index_lists.index_name, items.chunk_id
        order by index_lists.at_ns, index_lists.list_id, loss_rows.rank
    ) as write_no
from loss_rows
inner join index_lists on loss_rows.list_id = index_lists.list_id
inner join items on loss_rows.item = items.item
where items.chunk_id is not null and items.id_source is distinct from 'text'
