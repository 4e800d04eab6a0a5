-- view:    layer_reasons
-- answers: why was a lost span not in the index when the query began?
-- grain:   one row per lost span that fell before the query, at no stage run of it
-- column:  query_id     bigint   queries.query_id
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  reason       varchar  docs/reasons.md; null without proof
-- column:  proof        varchar  record, declared or probe
-- column:  detail       varchar  error type of an ingest stage that failed
-- reads:   placed_losses, loss_spots, loss_items, loss_rows, needed_evidence, queries, stages, documents, ingest_lists, item_kin, items, id_writes, own_writes, rival_writes, text_spans, evidence_places, recorded_indexes
with

lost_before as materialized (

    select
        placed_losses.query_id,
        placed_losses.evidence_no,
        placed_losses.sure_order,
        needed_evidence.evidence_id,
        needed_evidence.doc_id,
        needed_evidence.label_status,
        needed_evidence.made_on_ns > queries.started_at_ns as is_label_later,
        queries.started_at_ns
    from placed_losses
    inner join needed_evidence on placed_losses.evidence_no = needed_evidence.evidence_no
    inner join queries on placed_losses.query_id = queries.query_id
    where placed_losses.sure_order < 5

),

ingest_runs as (

    select
        documents.doc_id,
        stages.kind,
        coalesce(stages.status, 'ok') as status,
        stages.error_type,
        stages.started_at_ns + coalesce(stages.duration_ns, 0) as at_ns
    from stages
    inner join documents on stages.ingest_id = documents.ingest_id
    where stages.kind in ('parse', 'chunk', 'index') and documents.doc_id is not null

),

ingest_failures as (

    select
        lost_before.query_id,
        lost_before.evidence_no,
        max(ingest_runs.at_ns) filter (where ingest_runs.status <> 'ok') as failed_at_ns,
        max(ingest_runs.at_ns) filter (where ingest_runs.status = 'ok') as done_at_ns,
        max(ingest_runs.error_type) as error_type
    from lost_before
    inner join ingest_runs
        on
            lost_before.doc_id = ingest_runs.doc_id
            and ingest_runs.kind
            = case lost_before.sure_order when 1 then 'parse' when 2 then 'chunk' when 3 then 'index' end
            and ingest_runs.at_ns <= lost_before.started_at_ns
    group by lost_before.query_id, lost_before.evidence_no

),

index_lists as materialized (

    select
        ingest_lists.list_id,
        ingest_lists.ingest_id,
        ingest_lists.index_name,
        ingest_lists.at_ns
    from ingest_lists
    where ingest_lists.layer = 'index'

),

later_writes as (

    select distinct
        lost_before.query_id,
        lost_before.evidence_no
    from lost_before
    inner join loss_items on lost_before.evidence_no = loss_items.evidence_no and loss_items.role = 'own'
    inner join loss_rows on loss_items.item = loss_rows.item
    inner join index_lists on loss_rows.list_id = index_lists.list_id
    where lost_before.sure_order = 3 and index_lists.at_ns > lost_before.started_at_ns

),

cuts as (

    select
        loss_items.evidence_no,
        loss_items.item,
        ingest_lists.at_ns
    from loss_items
    inner join loss_rows on loss_items.item = loss_rows.item
    inner join ingest_lists on loss_rows.list_id = ingest_lists.list_id
    where loss_items.role = 'own' and ingest_lists.layer = 'chunks'

),

-- Another chunk has its id in the index: it was written over it, or this one never got in. In another index it is
-- another id, and what the same document had there before this was cut is an older version of it.
index_rivals as (

    select distinct
        rival_writes.query_id,
        rival_writes.evidence_no,
        true as is_written_over
    from rival_writes
    where
        rival_writes.sure_order = 3 and rival_writes.is_taken and rival_writes.is_newest and rival_writes.is_another

    union all

    select distinct
        lost_before.query_id,
        lost_before.evidence_no,
        false as is_written_over
    from lost_before
    inner join loss_items on lost_before.evidence_no = loss_items.evidence_no and loss_items.role = 'own'
    inner join items on loss_items.item = items.item
    inner join item_kin on loss_items.item = item_kin.item and item_kin.is_same_id
    inner join id_writes on item_kin.kin_item = id_writes.item and id_writes.at_ns <= lost_before.started_at_ns
    left join own_writes
        on
            lost_before.query_id = own_writes.query_id
            and loss_items.evidence_no = own_writes.evidence_no
            and loss_items.item = own_writes.item
            and id_writes.index_name = own_writes.index_name
    left join cuts
        on
            loss_items.evidence_no = cuts.evidence_no
            and loss_items.item = cuts.item
            and cuts.at_ns <= lost_before.started_at_ns
            and cuts.at_ns > id_writes.at_ns
    where
        lost_before.sure_order = 3
        and own_writes.item is null
        and coalesce(items.index_name, id_writes.index_name) = id_writes.index_name
        and (coalesce(id_writes.doc_id <> items.doc_id, false) or cuts.item is null)

),

rivals as (

    select
        index_rivals.query_id,
        index_rivals.evidence_no,
        bool_or(index_rivals.is_written_over) as is_written_over
    from index_rivals
    group by index_rivals.query_id, index_rivals.evidence_no

),

text_findings as (

    select
        lost_before.query_id,
        lost_before.evidence_no,
        coalesce(max(evidence_places.quality), max(lost_before.label_status)) as quality
    from lost_before
    left join text_spans
        on
            lost_before.doc_id = text_spans.doc_id
            and text_spans.from_ns <= lost_before.started_at_ns
            and text_spans.to_ns > lost_before.started_at_ns
    left join evidence_places
        on lost_before.evidence_id = evidence_places.evidence_id and text_spans.text_hash = evidence_places.text_hash
    where lost_before.sure_order = 1
    group by lost_before.query_id, lost_before.evidence_no

),

index_completeness as (

    select
        case when count(*) = count(recorded_indexes.complete_from_ns) then max(recorded_indexes.complete_from_ns) end
            as complete_from_ns
    from recorded_indexes

),

layer_findings as (

    select
        lost_before.query_id,
        lost_before.evidence_no,
        case
            when lost_before.sure_order = 4 then 'not_run'
            when lost_before.sure_order = 0 and lost_before.is_label_later then 'stale_version'
            when lost_before.sure_order = 0 then 'document_absent'
            when ingest_failures.failed_at_ns > coalesce(ingest_failures.done_at_ns, 0)
                then case when lost_before.sure_order = 1 then 'parse_error' else 'stage_failed' end
            when lost_before.sure_order = 1 and text_findings.quality in ('text_missing', 'text_garbled')
                then text_findings.quality
            when lost_before.sure_order = 2 then 'not_covered'
            when lost_before.sure_order = 3 and rivals.is_written_over then 'duplicate_id'
            when lost_before.sure_order = 3 and later_writes.query_id is not null then 'not_visible_yet'
            when lost_before.sure_order = 3 and rivals.query_id is not null then 'duplicate_id'
            when lost_before.sure_order = 3 then 'not_indexed'
        end as reason,
        coalesce(index_completeness.complete_from_ns <= lost_before.started_at_ns, false) as is_index_recorded,
        ingest_failures.error_type as detail
    from lost_before
    cross join index_completeness
    left join loss_spots
        on lost_before.query_id = loss_spots.query_id and lost_before.evidence_no = loss_spots.evidence_no
    left join ingest_failures
        on lost_before.query_id = ingest_failures.query_id and lost_before.evidence_no = ingest_failures.evidence_no
    left join text_findings
        on lost_before.query_id = text_findings.query_id and lost_before.evidence_no = text_findings.evidence_no
    left join later_writes
        on lost_before.query_id = later_writes.query_id and lost_before.evidence_no = later_writes.evidence_no
    left join rivals
        on lost_before.query_id = rivals.query_id and lost_before.evidence_no = rivals.evidence_no
    where loss_spots.query_id is null

)

select
    layer_findings.query_id,
    layer_findings.evidence_no,
    layer_findings.reason,
    case
        when layer_findings.reason in ('document_absent', 'stale_version') then 'declared'
        when layer_findings.reason = 'not_indexed' and not layer_findings.is_index_recorded then 'probe'
        when layer_findings.reason is not null then 'record'
    end as proof,
    layer_findings.detail
from layer_findings
