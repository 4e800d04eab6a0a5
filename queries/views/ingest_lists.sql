-- view:    ingest_lists
-- answers: which lists say what was cut into chunks and what was written to an index, and when?
-- grain:   one row per list of a successful chunk or index run
-- column:  list_id        bigint   the list that holds the candidate rows
-- column:  layer          varchar  chunks or index
-- column:  stage_id       bigint   stages.stage_id
-- column:  ingest_id      bigint   documents.ingest_id
-- column:  doc_id         varchar  the document of the surrounding scope; null outside of one
-- column:  index_name     varchar  where; empty when only one index is recorded and it has no name
-- column:  at_ns          bigint   end of the run
-- column:  process_id     bigint   who recorded it
-- column:  is_complete    boolean  false: something of the list could not be recorded
-- reads:   lists, stages, documents, recorded_indexes
with

runs as (

    select
        stages.stage_id,
        stages.ingest_id,
        stages.kind,
        stages.index_name,
        stages.started_at_ns + coalesce(stages.duration_ns, 0) as at_ns,
        stages.process_id
    from stages
    left join stages as parents on stages.parent_stage_id = parents.stage_id
    where
        stages.kind in ('chunk', 'index')
        and coalesce(stages.status, 'ok') = 'ok'
        -- What an inner splitter cut and the outer one threw away was never a chunk.
        and (stages.kind = 'index' or parents.kind is null or parents.kind <> 'chunk')

),

outputs as (

    select lists.stage_id
    from lists
    where lists.role = 'out' and lists.n_candidates > 0 and lists.stage_id is not null and lists.query_id is null

),

theirs as (

    select
        runs.stage_id,
        runs.ingest_id,
        runs.kind,
        runs.index_name,
        runs.at_ns,
        runs.process_id,
        lists.role,
        coalesce(lists.same_as_list_id, lists.list_id) as list_id,
        coalesce(lists.is_complete, true) as is_complete
    from runs
    inner join lists on runs.stage_id = lists.stage_id
    where
        lists.role = 'out'
        or (
            runs.kind = 'index'
            and lists.role = 'in'
            -- The ids an index gives back are what it holds; without them, what it was given.
            and runs.stage_id not in (select outputs.stage_id from outputs)
        )

),

only_index as (

    select min(recorded_indexes.only_index_name) as index_name
    from recorded_indexes

)

select
    theirs.list_id,
    case when theirs.kind = 'chunk' then 'chunks' else 'index' end as layer,
    theirs.stage_id,
    theirs.ingest_id,
    documents.doc_id,
    coalesce(theirs.index_name, only_index.index_name, '') as index_name,
    theirs.at_ns,
    theirs.process_id,
    theirs.is_complete
from theirs
left join documents on theirs.ingest_id = documents.ingest_id
cross join only_index
where theirs.kind = 'chunk' or theirs.role = 'in' or theirs.stage_id in (select outputs.stage_id from outputs)
