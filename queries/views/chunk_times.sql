-- view:    chunk_times
-- answers: which cut of a document into chunks was the valid one from when to when?
-- grain:   one row per document with labels, index and ingest that cut it
-- column:  doc_id       varchar  the document
-- column:  index_name   varchar  the index it was cut for
-- column:  ingest_id    bigint   documents.ingest_id
-- column:  is_complete  integer  1: all its chunks are recorded, with their places
-- column:  from_ns      bigint   when it was cut
-- column:  to_ns        bigint   when the next cut replaced it
-- column:  from_host    varchar  host of the process that cut it
-- reads:   ingest_lists, unplaced_lists, label_states, processes
with

chunk_runs as (

    select
        ingest_lists.doc_id,
        ingest_lists.index_name,
        ingest_lists.ingest_id,
        max(ingest_lists.at_ns) as at_ns,
        max(ingest_lists.process_id) as process_id,
        min(case when ingest_lists.is_complete and unplaced_lists.list_id is null then 1 else 0 end) as is_complete
    from ingest_lists
    left join unplaced_lists on ingest_lists.list_id = unplaced_lists.list_id
    where
        ingest_lists.layer = 'chunks'
        and ingest_lists.doc_id in (select label_states.doc_id from label_states)
    group by ingest_lists.doc_id, ingest_lists.index_name, ingest_lists.ingest_id

)

select
    chunk_runs.doc_id,
    chunk_runs.index_name,
    chunk_runs.ingest_id,
    chunk_runs.is_complete,
    chunk_runs.at_ns as from_ns,
    coalesce(lead(chunk_runs.at_ns) over later, 4611686018427387904) as to_ns,
    beginning.host as from_host
from chunk_runs
left join processes as beginning on chunk_runs.process_id = beginning.process_id
window later as (
    partition by chunk_runs.doc_id, chunk_runs.index_name order by chunk_runs.at_ns, chunk_runs.ingest_id
)
