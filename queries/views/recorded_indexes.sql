-- view:    recorded_indexes
-- answers: which indexes does the store know, and since when in full?
-- grain:   one row per index that is written to, declared or searched
-- column:  index_name        varchar  its name; empty when it has none
-- column:  only_index_name   varchar  the one name there is, when there is only one; what a missing name means
-- column:  complete_from_ns  bigint   recorded in full from here on; null = never
-- reads:   stages, inventories, ledger, losses, documents, queries
with

-- Records that are gone: from then on "every write is recorded" no longer proves that a chunk was not written.
gaps as (

    select
        ledger.process_id,
        ledger.merged_at_ns as at_ns
    from ledger
    where ledger.n_damaged_bytes > 0 or ledger.status in ('damaged', 'missing', 'unreadable')

    union all

    select
        losses.process_id,
        losses.last_at_ns as at_ns
    from losses
    where
        losses.reason in (
            'queue_full', 'encode_error', 'merge_error', 'newer_record', 'log_shrank', 'set_aside_documents',
            'set_aside_unknown'
        )

),

-- A process that is known for its queries and never for a document wrote no chunk.
write_gaps as materialized (

    select max(gaps.at_ns) as until_ns
    from gaps
    where
        gaps.process_id is null
        or exists (
            select 1 from documents
            where documents.process_id = gaps.process_id
        )
        or not exists (
            select 1 from queries
            where queries.process_id = gaps.process_id
        )

),

-- Grouped first: stages are many, indexes few.
mentions as materialized (

    select
        stages.index_name,
        stages.kind = 'index' as is_written,
        min(case
            when stages.kind = 'index' and stages.is_index_complete and write_gaps.until_ns is null
                then -4611686018427387904
        end) as complete_from_ns
    from stages
    cross join write_gaps
    where stages.kind in ('index', 'retrieve')
    group by stages.index_name, stages.kind

    union all

    select
        inventories.index_name,
        true as is_written,
        case when coalesce(write_gaps.until_ns < inventories.declared_at_ns, true) then inventories.declared_at_ns end
            as complete_from_ns
    from inventories
    cross join write_gaps
    where inventories.doc_id is null and (inventories.index_name is not null or inventories.chunk_id is not null)

),

only_index as (

    select case when count(distinct mentions.index_name) = 1 then min(mentions.index_name) end as index_name
    from mentions

)

select
    coalesce(mentions.index_name, only_index.index_name, '') as index_name,
    only_index.index_name as only_index_name,
    min(mentions.complete_from_ns) as complete_from_ns
from mentions
cross join only_index
-- A search without a name among several indexes names none.
where mentions.index_name is not null or only_index.index_name is not null or mentions.is_written
group by coalesce(mentions.index_name, only_index.index_name, ''), only_index.index_name
