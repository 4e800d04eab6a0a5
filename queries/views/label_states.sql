-- view:    label_states
-- answers: can this label be judged on this query, as of the time the query started?
-- grain:   one row per scored query and evidence span of its question
-- kept:    in the store
-- column:  query_id         bigint   queries.query_id
-- column:  evidence_no      bigint   needed_evidence.evidence_no
-- column:  evidence_id      varchar  evidence.evidence_id
-- column:  state            varchar  judged, stale_version (judged: lost at ingest), clock (too close to tell), stale, later, deleted or misaligned
-- column:  is_scored        boolean  judged, stale_version and clock
-- column:  level            varchar  evidence.level
-- column:  doc_id           varchar  the document
-- column:  text_hash        varchar  newest text parsed before the query; null = none
-- column:  is_in_text       boolean  the passage stands in that text
-- column:  is_text_searched boolean  that text was searched for it
-- column:  is_in_source     boolean  a recorded or declared document held it before the query
-- column:  is_source_open   boolean  it may have been in the source though no record says so
-- column:  started_at_ns    bigint   start of the query
-- column:  process_id       bigint   the process that recorded the query
-- column:  host             varchar  its host
-- reads:   query_scope, needed_evidence, text_spans, evidence_places, documents, parses, stages, inventories, processes, setting_values
with

wanted as (

    select
        query_scope.query_id,
        query_scope.started_at_ns,
        query_scope.process_id,
        query_scope.host,
        needed_evidence.evidence_no,
        needed_evidence.evidence_id,
        needed_evidence.level,
        needed_evidence.doc_id,
        needed_evidence.made_on_ns,
        needed_evidence.made_on_text_hash,
        needed_evidence.label_status
    from query_scope
    inner join needed_evidence on query_scope.question_id = needed_evidence.question_id
    where query_scope.scope = 'scored'

),

searched as (

    select
        evidence_places.evidence_id,
        evidence_places.text_hash,
        max(case when evidence_places.is_found then 1 else 0 end) as is_found
    from evidence_places
    where evidence_places.text_hash is not null
    group by evidence_places.evidence_id, evidence_places.text_hash

),

first_records as (

    select
        documents.doc_id,
        min(documents.recorded_at_ns) as first_recorded_ns
    from documents
    where documents.doc_id is not null
    group by documents.doc_id

),

deletions as (

    select
        wanted.query_id,
        wanted.evidence_no,
        -- A deletion stands until the document is recorded again; one that was recorded late, from its own time on.
        max(case
            when documents.recorded_at_ns <= wanted.started_at_ns then documents.recorded_at_ns
            else documents.deleted_at_ns
        end) filter (where documents.deleted_at_ns <= wanted.started_at_ns)
            as deleted_at_ns,
        max(documents.recorded_at_ns) filter (
            where documents.deleted_at_ns is null and documents.recorded_at_ns <= wanted.started_at_ns
        ) as lived_at_ns
    from wanted
    inner join documents on wanted.doc_id = documents.doc_id
    where
        documents.doc_id in (
            select gone.doc_id from documents as gone
            where gone.deleted_at_ns is not null
        )
    group by wanted.query_id, wanted.evidence_no

),

text_sources as (

    select
        parses.doc_id,
        parses.text_hash,
        min(documents.modified_at_ns) as modified_at_ns
    from parses
    inner join stages on parses.stage_id = stages.stage_id
    inner join documents on stages.ingest_id = documents.ingest_id
    where documents.modified_at_ns is not null
    group by parses.doc_id, parses.text_hash

),

document_lists as (

    select
        inventories.inventory_id,
        min(inventories.declared_at_ns) as declared_at_ns
    from inventories
    where inventories.index_name is null and inventories.chunk_id is null
    group by inventories.inventory_id

),

source_lists as (

    select
        wanted.query_id,
        wanted.evidence_no,
        arg_max(document_lists.inventory_id, document_lists.declared_at_ns) as inventory_id
    from wanted
    inner join document_lists on document_lists.declared_at_ns <= wanted.started_at_ns
    group by wanted.query_id, wanted.evidence_no

),

listed_documents as (

    select distinct
        inventories.inventory_id,
        inventories.doc_id
    from inventories
    where inventories.index_name is null and inventories.doc_id is not null

),

timed as (

    select
        wanted.query_id,
        wanted.evidence_no,
        wanted.evidence_id,
        wanted.level,
        wanted.doc_id,
        wanted.made_on_ns,
        wanted.made_on_text_hash,
        wanted.label_status,
        wanted.started_at_ns,
        wanted.process_id,
        wanted.host,
        text_spans.text_hash,
        text_spans.before_text_hash,
        text_spans.after_text_hash,
        coalesce(
            text_spans.from_process_id <> wanted.process_id
            and beginning.host is distinct from wanted.host
            and wanted.started_at_ns - text_spans.from_ns < setting_values.clock_skew_ns,
            false
        ) as is_near_before,
        coalesce(
            text_spans.to_process_id <> wanted.process_id
            and ending.host is distinct from wanted.host
            and text_spans.to_ns - wanted.started_at_ns < setting_values.clock_skew_ns,
            false
        ) as is_near_after
    from wanted
    cross join setting_values
    left join text_spans
        on
            wanted.doc_id = text_spans.doc_id
            and text_spans.from_ns <= wanted.started_at_ns
            and text_spans.to_ns > wanted.started_at_ns
    left join processes as beginning on text_spans.from_process_id = beginning.process_id
    left join processes as ending on text_spans.to_process_id = ending.process_id

),

held as (

    select
        timed.query_id,
        timed.evidence_no,
        timed.evidence_id,
        timed.level,
        timed.doc_id,
        timed.made_on_ns,
        timed.made_on_text_hash,
        timed.label_status,
        timed.started_at_ns,
        timed.process_id,
        timed.host,
        timed.text_hash,
        timed.is_near_before,
        timed.is_near_after,
        -- 1 found, 0 not found, -1 not searched, -2 no text
        case when timed.text_hash is null then -2 else coalesce(here.is_found, -1) end as found,
        case when timed.before_text_hash is null then -2 else coalesce(before.is_found, -1) end as found_before,
        case when timed.after_text_hash is null then -2 else coalesce(after.is_found, -1) end as found_after
    from timed
    left join searched as here
        on timed.evidence_id = here.evidence_id and timed.text_hash = here.text_hash
    left join searched as before
        on timed.evidence_id = before.evidence_id and timed.before_text_hash = before.text_hash
    left join searched as after
        on timed.evidence_id = after.evidence_id and timed.after_text_hash = after.text_hash

),

stated as (

    select
        held.query_id,
        held.evidence_no,
        held.evidence_id,
        held.level,
        held.doc_id,
        held.started_at_ns,
        held.process_id,
        held.host,
        held.text_hash,
        held.found,
        coalesce(first_records.first_recorded_ns <= held.started_at_ns, false) as is_recorded,
        listed_documents.doc_id is not null as is_listed,
        source_lists.inventory_id is not null as is_source_listed,
        case
            when held.label_status = 'misaligned' then 'misaligned'
            when deletions.deleted_at_ns >= coalesce(deletions.lived_at_ns, deletions.deleted_at_ns) then 'deleted'
            when held.level in ('document', 'chunk') then 'judged'
            when held.is_near_before and held.found <> held.found_before then 'clock'
            when held.is_near_after and held.found <> held.found_after then 'clock'
            when held.found = 0 and held.made_on_ns <= held.started_at_ns then 'stale'
            when held.found in (0, -2) and held.made_on_ns > held.started_at_ns
                then case when text_sources.modified_at_ns < held.started_at_ns then 'stale_version' else 'later' end
            else 'judged'
        end as state
    from held
    left join first_records on held.doc_id = first_records.doc_id
    left join deletions on held.query_id = deletions.query_id and held.evidence_no = deletions.evidence_no
    left join text_sources
        on held.doc_id = text_sources.doc_id and held.made_on_text_hash = text_sources.text_hash
    left join source_lists on held.query_id = source_lists.query_id and held.evidence_no = source_lists.evidence_no
    left join listed_documents
        on source_lists.inventory_id = listed_documents.inventory_id and held.doc_id = listed_documents.doc_id

)

select
    stated.query_id,
    stated.evidence_no,
    stated.evidence_id,
    stated.state,
    stated.state in ('judged', 'stale_version', 'clock') as is_scored,
    stated.level,
    stated.doc_id,
    stated.text_hash,
    case when stated.level = 'chunk' then stated.text_hash is not null else stated.found = 1 end as is_in_text,
    case when stated.level = 'chunk' then stated.text_hash is not null else stated.found >= 0 end
        as is_text_searched,
    stated.state <> 'stale_version' and (stated.is_recorded or stated.is_listed) as is_in_source,
    stated.state <> 'stale_version' and (stated.is_recorded or stated.is_listed or not stated.is_source_listed)
        as is_source_open,
    stated.started_at_ns,
    stated.process_id,
    stated.host
from stated
