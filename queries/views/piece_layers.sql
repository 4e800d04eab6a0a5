-- view:    piece_layers
-- answers: in which layers before the query was each piece of the evidence: source, parsed text, chunks, index?
-- grain:   one row per query and piece of evidence that it is scored by
-- column:  query_id     bigint   queries.query_id
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  piece        bigint   evidence_cuts.piece
-- column:  weight       bigint   evidence_cuts.weight
-- column:  total        bigint   evidence_cuts.total
-- column:  layer        integer  deepest one where it surely was: 0 nowhere, 1 source, 2 text, 3 chunks, 4 index
-- column:  open_layer   integer  deepest one where it may have been; 9 when a write is too close to the query's start to tell
-- column:  source       integer  2 surely there, 1 may be, 0 not
-- column:  text         integer  the same for the parsed text
-- column:  chunks       integer  the same for the chunks
-- column:  stored       integer  the same for the index
-- reads:   label_states, evidence_cuts, chunk_times, item_times, wanted_pieces, piece_hits, setting_values, probe_runs, lists, candidates, items, recorded_indexes
with

chunk_states as (

    select
        label_states.query_id,
        label_states.evidence_no,
        min(chunk_times.is_complete) as is_complete
    from label_states
    inner join chunk_times
        on
            label_states.doc_id = chunk_times.doc_id
            and chunk_times.from_ns <= label_states.started_at_ns
            and chunk_times.to_ns > label_states.started_at_ns
    group by label_states.query_id, label_states.evidence_no

),

-- Three readings of the time: as recorded, with the other host's clock behind, and with it ahead.
stored_readings as (

    select
        wanted_pieces.query_id,
        wanted_pieces.piece,
        item_times.layer,
        wanted_pieces.role,
        item_times.from_ns <= wanted_pieces.started_at_ns as is_there,
        item_times.from_ns
        + case
            when (item_times.from_host is distinct from wanted_pieces.host) then setting_values.clock_skew_ns else 0
        end
        <= wanted_pieces.started_at_ns as is_there_early,
        item_times.from_ns
        - case
            when (item_times.from_host is distinct from wanted_pieces.host) then setting_values.clock_skew_ns else 0
        end
        < wanted_pieces.started_at_ns as is_there_late
    from wanted_pieces
    inner join item_times on wanted_pieces.item = item_times.item
    cross join setting_values
    where wanted_pieces.role <> 'stands_for' and item_times.to_ns > wanted_pieces.started_at_ns

),

stored_pieces as materialized (

    select
        stored_readings.query_id,
        stored_readings.piece,
        max(case
            when stored_readings.layer = 4 or not stored_readings.is_there then 0
            when stored_readings.role = 'own' then 2
            else 1
        end) as found_in_chunks,
        max(case
            when stored_readings.layer = 3 or not stored_readings.is_there then 0
            when stored_readings.role = 'own' then 2
            else 1
        end) as found_in_index,
        max(case
            when stored_readings.layer = 3 and stored_readings.role = 'own' and stored_readings.is_there_early
                then 1
            else 0
        end)
        <> max(case
            when stored_readings.layer = 3 and stored_readings.role = 'own' and stored_readings.is_there_late
                then 1
            else 0
        end)
        or max(case
            when stored_readings.layer = 4 and stored_readings.role = 'own' and stored_readings.is_there_early
                then 1
            else 0
        end)
        <> max(case
            when stored_readings.layer = 4 and stored_readings.role = 'own' and stored_readings.is_there_late
                then 1
            else 0
        end) as is_close
    from stored_readings
    group by stored_readings.query_id, stored_readings.piece

),

probed_lists as materialized (

    select
        probe_runs.query_id,
        lists.list_id,
        lists.role
    from probe_runs
    inner join lists on probe_runs.stage_id = lists.stage_id
    where probe_runs.void is null

),

probed_pieces as (

    select distinct
        piece_hits.query_id,
        piece_hits.piece
    from piece_hits
    inner join probed_lists on piece_hits.list_id = probed_lists.list_id
    where probed_lists.role = 'out' and piece_hits.role = 'own' and not piece_hits.is_untimed

),

absent_ids as (

    select distinct
        probed_lists.query_id,
        items.chunk_id
    from probed_lists
    inner join candidates on probed_lists.list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where probed_lists.role = 'dropped'

),

-- Every chunk that is known to hold it was asked for by its id, and none is there.
absent_pieces as (

    select
        wanted_pieces.query_id,
        wanted_pieces.piece
    from wanted_pieces
    inner join items on wanted_pieces.item = items.item
    left join absent_ids on wanted_pieces.query_id = absent_ids.query_id and items.chunk_id = absent_ids.chunk_id
    where
        wanted_pieces.role <> 'stands_for'
        and wanted_pieces.query_id in (select probed_lists.query_id from probed_lists)
    group by wanted_pieces.query_id, wanted_pieces.piece
    having count(*) = count(absent_ids.chunk_id)

),

index_completeness as (

    select
        case when count(*) = count(recorded_indexes.complete_from_ns) then max(recorded_indexes.complete_from_ns) end
            as complete_from_ns
    from recorded_indexes

),

pieces as materialized (

    select distinct
        evidence_cuts.evidence_no,
        evidence_cuts.piece,
        evidence_cuts.weight,
        evidence_cuts.total
    from evidence_cuts

),

layered as (

    select
        label_states.query_id,
        label_states.evidence_no,
        pieces.piece,
        pieces.weight,
        pieces.total,
        label_states.state = 'clock' as is_untimed,
        case
            when label_states.is_in_source then 2 when
                label_states.is_source_open or label_states.is_in_text
                then 1
            else 0
        end
            as source,
        case
            when label_states.is_in_text then 2
            when not label_states.is_text_searched and label_states.is_source_open then 1
            else 0
        end as text,
        coalesce(stored_pieces.found_in_chunks, 0) as found_in_chunks,
        case when probed_pieces.piece is not null then 2 else coalesce(stored_pieces.found_in_index, 0) end
            as found_in_index,
        coalesce(chunk_states.is_complete, 0) as is_chunks_complete,
        case
            when index_completeness.complete_from_ns <= label_states.started_at_ns then 1
            when absent_pieces.piece is not null and chunk_states.is_complete = 1 then 1
            else 0
        end as is_index_complete,
        label_states.state = 'clock' or coalesce(stored_pieces.is_close, false) as is_close
    from label_states
    inner join pieces on label_states.evidence_no = pieces.evidence_no
    cross join index_completeness
    left join chunk_states
        on label_states.query_id = chunk_states.query_id and label_states.evidence_no = chunk_states.evidence_no
    left join stored_pieces on label_states.query_id = stored_pieces.query_id and pieces.piece = stored_pieces.piece
    left join probed_pieces on label_states.query_id = probed_pieces.query_id and pieces.piece = probed_pieces.piece
    left join absent_pieces on label_states.query_id = absent_pieces.query_id and pieces.piece = absent_pieces.piece
    where label_states.is_scored

),

-- What a complete layer lacks cannot be in a later one, unless it was seen there.
chained as (

    select
        layered.query_id,
        layered.evidence_no,
        layered.piece,
        layered.weight,
        layered.total,
        layered.is_untimed,
        layered.is_close,
        layered.source,
        layered.text,
        greatest(
            layered.found_in_chunks, case when layered.is_chunks_complete = 0 and layered.text > 0 then 1 else 0 end
        ) as chunks,
        greatest(
            layered.found_in_index,
            case
                when
                    layered.is_index_complete = 0
                    and (layered.found_in_chunks > 0 or (layered.is_chunks_complete = 0 and layered.text > 0))
                    then 1
                else 0
            end
        ) as stored
    from layered

)

select
    chained.query_id,
    chained.evidence_no,
    chained.piece,
    chained.weight,
    chained.total,
    case
        when chained.is_untimed then 0
        when chained.stored = 2 then 4
        when chained.chunks = 2 then 3
        when chained.text = 2 then 2
        when chained.source = 2 then 1
        else 0
    end as layer,
    case
        when chained.is_close then 9
        when chained.stored > 0 then 4
        when chained.chunks > 0 then 3
        when chained.text > 0 then 2
        when chained.source > 0 then 1
        else 0
    end as open_layer,
    case when chained.is_untimed then least(chained.source, 1) else chained.source end as source,
    case when chained.is_untimed then least(chained.text, 1) else chained.text end as text,
    case when chained.is_untimed then least(chained.chunks, 1) else chained.chunks end as chunks,
    case when chained.is_untimed then least(chained.stored, 1) else chained.stored end as stored
from chained
