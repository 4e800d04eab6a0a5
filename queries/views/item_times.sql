-- view:    item_times
-- answers: from when to when did an item that holds evidence stand among the chunks, and in the index?
-- grain:   one row per item, layer and time
-- column:  layer      integer  3 among the chunks, 4 in the index
-- column:  item       integer  items.item
-- column:  from_ns    bigint   since when
-- column:  to_ns      bigint   when something else took its place
-- column:  from_host  varchar  host of the process that put it there
-- reads:   piece_entries, ingest_lists, chunk_times, processes, inventories, recorded_indexes, evidence_cuts, items
with

covering as materialized (

    select distinct evidence_cuts.item
    from evidence_cuts
    where evidence_cuts.item is not null

),

chunk_items as (

    select distinct
        piece_entries.item,
        chunk_times.from_ns,
        chunk_times.to_ns,
        chunk_times.from_host
    from piece_entries
    inner join ingest_lists on piece_entries.list_id = ingest_lists.list_id
    inner join chunk_times
        on
            ingest_lists.doc_id = chunk_times.doc_id
            and ingest_lists.index_name = chunk_times.index_name
            and ingest_lists.ingest_id = chunk_times.ingest_id
    where ingest_lists.layer = 'chunks'

    union all

    -- Chunks cut outside of a document's scope: nobody says when the next cut replaced them.
    select
        piece_entries.item,
        min(ingest_lists.at_ns) as from_ns,
        4611686018427387904 as to_ns,
        min(processes.host) as from_host
    from piece_entries
    inner join ingest_lists on piece_entries.list_id = ingest_lists.list_id
    left join processes on ingest_lists.process_id = processes.process_id
    where ingest_lists.layer = 'chunks' and ingest_lists.doc_id is null
    group by piece_entries.item

),

index_inventories as materialized (

    select
        inventories.inventory_id,
        coalesce(inventories.index_name, recorded_indexes.only_index_name, '') as index_name,
        min(inventories.declared_at_ns) as at_ns,
        min(inventories.process_id) as process_id
    from inventories
    inner join recorded_indexes
        on coalesce(inventories.index_name, recorded_indexes.only_index_name, '') = recorded_indexes.index_name
    where inventories.doc_id is null and (inventories.index_name is not null or inventories.chunk_id is not null)
    group by inventories.inventory_id, coalesce(inventories.index_name, recorded_indexes.only_index_name, '')

),

writes as materialized (

    select
        ingest_lists.index_name,
        items.chunk_id,
        items.id_source,
        piece_entries.item,
        ingest_lists.at_ns,
        ingest_lists.process_id,
        ingest_lists.list_id,
        piece_entries.rank
    from piece_entries
    inner join ingest_lists on piece_entries.list_id = ingest_lists.list_id
    inner join items on piece_entries.item = items.item
    where ingest_lists.layer = 'index'

),

only_index as (

    select min(recorded_indexes.only_index_name) as index_name
    from recorded_indexes

),

declarations as (

    select
        index_inventories.index_name,
        items.chunk_id,
        max(items.item) as item,
        index_inventories.inventory_id,
        index_inventories.at_ns,
        index_inventories.process_id,
        max(case when inventories.chunk_id is null then 0 else 1 end) as is_listed
    from index_inventories
    cross join covering
    inner join items on covering.item = items.item
    cross join only_index
    left join inventories
        on index_inventories.inventory_id = inventories.inventory_id and items.chunk_id = inventories.chunk_id
    where coalesce(items.index_name, only_index.index_name, '') = index_inventories.index_name
    group by
        index_inventories.index_name, items.chunk_id, index_inventories.inventory_id, index_inventories.at_ns,
        index_inventories.process_id

),

first_writes as (

    select
        writes.index_name,
        writes.chunk_id,
        min(writes.at_ns) as at_ns
    from writes
    group by writes.index_name, writes.chunk_id

),

-- A declared id keeps what was written under it; it stands for its item where no write is recorded.
events as (

    select
        writes.index_name,
        writes.chunk_id,
        writes.item,
        writes.at_ns,
        writes.process_id,
        writes.list_id,
        writes.rank
    from writes

    union all

    select
        declarations.index_name,
        declarations.chunk_id,
        case when declarations.is_listed = 1 then declarations.item end as item,
        declarations.at_ns,
        declarations.process_id,
        declarations.inventory_id as list_id,
        0 as rank
    from declarations
    left join first_writes
        on
            declarations.index_name = first_writes.index_name
            and declarations.chunk_id = first_writes.chunk_id
            and declarations.at_ns >= first_writes.at_ns
    where declarations.is_listed = 0 or first_writes.at_ns is null

),

-- An id that was made from the text itself is no index's key: chunks of one text stand side by side.
contested as materialized (

    select distinct taken.chunk_id
    from (
        select writes.chunk_id
        from writes
        where writes.id_source is distinct from 'text'
        group by writes.index_name, writes.chunk_id
        having min(writes.item) <> max(writes.item)
        union all
        select declarations.chunk_id
        from declarations
    ) as taken

),

index_items as (

    select
        events.item,
        events.at_ns as from_ns,
        coalesce(lead(events.at_ns) over later, 4611686018427387904) as to_ns,
        processes.host as from_host
    from events
    left join processes on events.process_id = processes.process_id
    where events.chunk_id in (select contested.chunk_id from contested)
    window
        later as (
            partition by events.index_name, events.chunk_id order by events.at_ns, events.list_id, events.rank
        )

    union all

    -- An id that nothing else ever took stays where it was written.
    select
        writes.item,
        writes.at_ns as from_ns,
        4611686018427387904 as to_ns,
        processes.host as from_host
    from writes
    left join processes on writes.process_id = processes.process_id
    where writes.chunk_id is null or writes.chunk_id not in (select contested.chunk_id from contested)

)

select
    3 as layer,
    chunk_items.item,
    chunk_items.from_ns,
    chunk_items.to_ns,
    chunk_items.from_host
from chunk_items
union all
select
    4 as layer,
    index_items.item,
    index_items.from_ns,
    index_items.to_ns,
    index_items.from_host
from index_items
where index_items.item is not null
