-- view:    piece_presence
-- answers: where was each piece of the evidence seen in the query, and in which layers before it?
-- grain:   one row per query, piece, place and item that holds it there, or place that may hold anything; one per query and piece for the layers (place_order null); one per label that cannot be judged (piece negative)
-- kept:    during a refresh
-- column:  query_id          bigint   queries.query_id
-- column:  piece             bigint   evidence_cuts.piece; negative: a label that cannot be judged
-- column:  evidence_no       bigint   layer row: needed_evidence.evidence_no; null otherwise
-- column:  weight            bigint   layer row: evidence_cuts.weight; null otherwise
-- column:  total             bigint   layer row: evidence_cuts.total; null otherwise
-- column:  place_order       bigint   places.place_order; 5 for a retrieval nobody recorded; null for the layer row
-- column:  place_no          integer  places.place_no; 0 for an unknown final context
-- column:  is_branch         boolean  false: all later places of the query can be reached from here
-- column:  rank              integer  rank of the item
-- column:  item              integer  items.item
-- column:  score             double   its score there
-- column:  tokens            integer  its tokens there
-- column:  is_sure           boolean  false: may be there
-- column:  is_own            boolean  by its own ranges, not as what stands for it
-- column:  is_candidate      boolean  the list is the output of a retrieve run, wherever it stands
-- column:  layer             bigint   layer row: deepest one where it surely was: 0 nowhere, 1 source, 2 text, 3 chunks, 4 index; of labels that cannot be judged -1 stale, -2 later, -3 deleted, -4 misaligned
-- column:  open_layer        bigint   layer row: deepest one where it may have been; 9 when a write is too close to the query's start to tell
-- column:  source            integer  layer row: 2 surely there, 1 may be, 0 not
-- column:  text              integer  the same for the parsed text
-- column:  chunks            integer  the same for the chunks
-- column:  stored            integer  the same for the index
-- reads:   evidence_cuts, label_states, candidates, items, item_ranges, place_lists, places, query_flows, lists, queries, retrieve_runs, ingest_lists, inventories, recorded_indexes, processes, setting_values, probe_runs
with

cuts as materialized (

    select
        evidence_cuts.evidence_no,
        evidence_cuts.piece,
        evidence_cuts.weight,
        evidence_cuts.total,
        evidence_cuts.item,
        evidence_cuts.role
    from evidence_cuts

),

labels as materialized (

    select
        label_states.query_id,
        label_states.evidence_no,
        label_states.state,
        label_states.level,
        label_states.doc_id,
        label_states.text_hash,
        label_states.is_in_text,
        label_states.is_text_searched,
        label_states.is_in_source,
        label_states.is_source_open,
        label_states.started_at_ns,
        label_states.process_id,
        label_states.host,
        label_states.is_scored
    from label_states

),

covering as materialized (

    select distinct cuts.item
    from cuts
    where cuts.item is not null

),

-- Items that may have taken or lost an id that a covering item had: a later write ends the time of an earlier one.
namesakes as materialized (

    select same_id.item
    from items as same_id
    where
        same_id.chunk_id in (
            select held.chunk_id
            from items as held
            inner join covering on held.item = covering.item
        )
        and same_id.item not in (select covering.item from covering)

),

-- The one pass over the big table; everything after it is small.
matched as materialized (

    select
        candidates.list_id,
        candidates.rank,
        candidates.item,
        candidates.score,
        candidates.tokens
    from candidates
    where
        candidates.item in (
            select covering.item
            from covering
            union all
            select namesakes.item
            from namesakes
        )
        and candidates.is_kept is distinct from false

),

unplaced_items as (

    -- Where the document is known there is at least a range that says so.
    select items.item
    from items
    left join item_ranges on items.item = item_ranges.item
    where items.doc_id is null and item_ranges.item is null

),

-- An item without a place may be any piece, so its list may hold anything.
unplaced_lists as materialized (

    select distinct candidates.list_id
    from candidates
    where candidates.item in (select unplaced_items.item from unplaced_items)

),

-- ------------------------------------------------------------------ in the query
wanted as materialized (

    select
        labels.query_id,
        labels.state = 'clock' as is_untimed,
        labels.started_at_ns,
        labels.host,
        cuts.piece,
        cuts.item,
        cuts.role
    from labels
    inner join cuts on labels.evidence_no = cuts.evidence_no
    where cuts.item is not null and labels.is_scored

),

-- Each join kept by itself: in one step DuckDB first multiplies the pieces by all lists of their query.
matched_in_queries as materialized (

    select
        lists.query_id,
        matched.list_id,
        case when lists.role = 'out' then lists.stage_id end as source_id,
        matched.rank,
        matched.item,
        matched.score,
        matched.tokens
    from matched
    inner join lists on matched.list_id = lists.list_id
    where lists.query_id is not null

),

hits as materialized (

    select
        matched_in_queries.query_id,
        matched_in_queries.list_id,
        matched_in_queries.rank,
        matched_in_queries.item,
        matched_in_queries.score,
        matched_in_queries.tokens,
        retrieve_runs.stage_id is not null as is_candidate,
        wanted.piece,
        wanted.role,
        wanted.is_untimed
    from matched_in_queries
    inner join wanted
        on matched_in_queries.query_id = wanted.query_id and matched_in_queries.item = wanted.item
    left join retrieve_runs on matched_in_queries.source_id = retrieve_runs.stage_id

),

list_places as (

    select
        place_lists.list_id,
        places.query_id,
        places.place_no,
        places.place_order,
        coalesce(places.counts_stands_for, false) as counts_stands_for,
        -- False: every later place of the query can be reached from here, so another is never its alternative.
        coalesce(len(places.later_nos) < query_flows.n_places - places.place_no, true) as is_branch
    from place_lists
    inner join places on place_lists.query_id = places.query_id and place_lists.place_no = places.place_no
    left join query_flows on places.query_id = query_flows.query_id

),

query_sightings as (

    select
        hits.query_id,
        hits.piece,
        list_places.place_order,
        list_places.place_no,
        list_places.is_branch,
        hits.rank,
        hits.item,
        hits.score,
        hits.tokens,
        hits.role <> 'possible' and not hits.is_untimed as is_sure,
        hits.role <> 'stands_for' as is_own,
        hits.is_candidate
    from hits
    inner join list_places on hits.list_id = list_places.list_id and hits.query_id = list_places.query_id
    where hits.role <> 'stands_for' or list_places.counts_stands_for

),

-- ------------------------------------------------------------------ what may hold anything
incomplete_lists as materialized (

    select
        lists.list_id,
        lists.stage_id,
        lists.role
    from lists
    where lists.is_complete = false

),

incomplete_places as (

    select
        place_lists.query_id,
        place_lists.place_no
    from place_lists
    inner join incomplete_lists on place_lists.list_id = incomplete_lists.list_id

    union

    select
        places.query_id,
        places.place_no
    from places
    inner join incomplete_lists
        on places.stage_id = incomplete_lists.stage_id and places.side = incomplete_lists.role

),

unplaced_places as (

    select distinct
        place_lists.query_id,
        place_lists.place_no
    from place_lists
    inner join unplaced_lists on place_lists.list_id = unplaced_lists.list_id

),

open_places as (

    select
        incomplete_places.query_id,
        incomplete_places.place_no,
        true as is_for_ids
    from incomplete_places

    union all

    select
        unplaced_places.query_id,
        unplaced_places.place_no,
        false as is_for_ids
    from unplaced_places

),

run_retrievals as (

    select distinct coalesce(queries.run, '') as run
    from queries
    inner join retrieve_runs on queries.query_id = retrieve_runs.query_id

),

-- A run without any retrieve run has retrieval that nobody recorded, unless it is meant to have none.
unrecorded as (

    select queries.query_id
    from queries
    left join run_retrievals on coalesce(queries.run, '') = run_retrievals.run
    where coalesce(queries.run_kind, 'actual') = 'actual' and run_retrievals.run is null

),

open_spots as (

    select
        open_places.query_id,
        open_places.place_no,
        places.place_order,
        retrieve_runs.stage_id is not null as is_candidate,
        open_places.is_for_ids
    from open_places
    inner join places on open_places.query_id = places.query_id and open_places.place_no = places.place_no
    left join retrieve_runs on places.stage_id = retrieve_runs.stage_id and places.side = 'out'

    union all

    select
        queries.query_id,
        0 as place_no,
        1000000000 as place_order,
        not coalesce(query_flows.is_whole, true) as is_candidate,
        true as is_for_ids
    from queries
    left join query_flows on queries.query_id = query_flows.query_id
    where coalesce(query_flows.final_how, 'unknown') = 'unknown' or not coalesce(query_flows.is_whole, true)

    union all

    select
        unrecorded.query_id,
        cast(null as integer) as place_no,
        5 as place_order,
        true as is_candidate,
        true as is_for_ids
    from unrecorded

),

-- ------------------------------------------------------------------ before the query
recorded_lists as materialized (

    select
        ingest_lists.list_id,
        ingest_lists.layer,
        ingest_lists.ingest_id,
        ingest_lists.doc_id,
        ingest_lists.index_name,
        ingest_lists.at_ns,
        ingest_lists.process_id,
        ingest_lists.is_complete
    from ingest_lists

),

indexes as materialized (

    select
        recorded_indexes.index_name,
        recorded_indexes.only_index_name,
        recorded_indexes.complete_from_ns
    from recorded_indexes

),

chunk_runs as (

    select
        recorded_lists.doc_id,
        recorded_lists.index_name,
        recorded_lists.ingest_id,
        max(recorded_lists.at_ns) as at_ns,
        max(recorded_lists.process_id) as process_id,
        min(case when recorded_lists.is_complete and unplaced_lists.list_id is null then 1 else 0 end) as is_complete
    from recorded_lists
    left join unplaced_lists on recorded_lists.list_id = unplaced_lists.list_id
    where
        recorded_lists.layer = 'chunks'
        and recorded_lists.doc_id in (select labels.doc_id from labels)
    group by recorded_lists.doc_id, recorded_lists.index_name, recorded_lists.ingest_id

),

chunk_spans as materialized (

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

),

chunk_states as (

    select
        labels.query_id,
        labels.evidence_no,
        min(chunk_spans.is_complete) as is_complete
    from labels
    inner join chunk_spans
        on
            labels.doc_id = chunk_spans.doc_id
            and chunk_spans.from_ns <= labels.started_at_ns
            and chunk_spans.to_ns > labels.started_at_ns
    group by labels.query_id, labels.evidence_no

),

chunk_items as (

    select distinct
        matched.item,
        chunk_spans.from_ns,
        chunk_spans.to_ns,
        chunk_spans.from_host
    from matched
    inner join recorded_lists on matched.list_id = recorded_lists.list_id
    inner join chunk_spans
        on
            recorded_lists.doc_id = chunk_spans.doc_id
            and recorded_lists.index_name = chunk_spans.index_name
            and recorded_lists.ingest_id = chunk_spans.ingest_id
    where recorded_lists.layer = 'chunks'

    union all

    -- Chunks cut outside of a document's scope: nobody says when the next cut replaced them.
    select
        matched.item,
        min(recorded_lists.at_ns) as from_ns,
        4611686018427387904 as to_ns,
        min(processes.host) as from_host
    from matched
    inner join recorded_lists on matched.list_id = recorded_lists.list_id
    left join processes on recorded_lists.process_id = processes.process_id
    where recorded_lists.layer = 'chunks' and recorded_lists.doc_id is null
    group by matched.item

),

index_inventories as materialized (

    select
        inventories.inventory_id,
        coalesce(inventories.index_name, indexes.only_index_name, '') as index_name,
        min(inventories.declared_at_ns) as at_ns,
        min(inventories.process_id) as process_id
    from inventories
    inner join indexes
        on coalesce(inventories.index_name, indexes.only_index_name, '') = indexes.index_name
    where inventories.doc_id is null and (inventories.index_name is not null or inventories.chunk_id is not null)
    group by inventories.inventory_id, coalesce(inventories.index_name, indexes.only_index_name, '')

),

writes as materialized (

    select
        recorded_lists.index_name,
        items.chunk_id,
        items.id_source,
        matched.item,
        recorded_lists.at_ns,
        recorded_lists.process_id,
        recorded_lists.list_id,
        matched.rank
    from matched
    inner join recorded_lists on matched.list_id = recorded_lists.list_id
    inner join items on matched.item = items.item
    where recorded_lists.layer = 'index'

),

only_index as (

    select min(indexes.only_index_name) as index_name
    from indexes

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

),

stored as (

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

),

-- Three readings of the time: as recorded, with the other host's clock behind, and with it ahead.
stored_readings as (

    select
        wanted.query_id,
        wanted.piece,
        stored.layer,
        wanted.role,
        stored.from_ns <= wanted.started_at_ns as is_there,
        stored.from_ns
        + case when (stored.from_host is distinct from wanted.host) then setting_values.clock_skew_ns else 0 end
        <= wanted.started_at_ns as is_there_early,
        stored.from_ns
        - case when (stored.from_host is distinct from wanted.host) then setting_values.clock_skew_ns else 0 end
        < wanted.started_at_ns as is_there_late
    from wanted
    inner join stored on wanted.item = stored.item
    cross join setting_values
    where wanted.role <> 'stands_for' and stored.to_ns > wanted.started_at_ns

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

-- ------------------------------------------------------------------ what probes found and did not find in the index
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
        hits.query_id,
        hits.piece
    from hits
    inner join probed_lists on hits.list_id = probed_lists.list_id
    where probed_lists.role = 'out' and hits.role = 'own' and not hits.is_untimed

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
        wanted.query_id,
        wanted.piece
    from wanted
    inner join items on wanted.item = items.item
    left join absent_ids on wanted.query_id = absent_ids.query_id and items.chunk_id = absent_ids.chunk_id
    where wanted.role <> 'stands_for' and wanted.query_id in (select probed_lists.query_id from probed_lists)
    group by wanted.query_id, wanted.piece
    having count(*) = count(absent_ids.chunk_id)

),

index_completeness as (

    select
        case when count(*) = count(indexes.complete_from_ns) then max(indexes.complete_from_ns) end
            as complete_from_ns
    from indexes

),

pieces as materialized (

    select distinct
        cuts.evidence_no,
        cuts.piece,
        cuts.weight,
        cuts.total
    from cuts

),

layered as (

    select
        labels.query_id,
        labels.evidence_no,
        pieces.piece,
        pieces.weight,
        pieces.total,
        labels.state = 'clock' as is_untimed,
        case when labels.is_in_source then 2 when labels.is_source_open or labels.is_in_text then 1 else 0 end
            as source,
        case
            when labels.is_in_text then 2
            when not labels.is_text_searched and labels.is_source_open then 1
            else 0
        end as text,
        coalesce(stored_pieces.found_in_chunks, 0) as found_in_chunks,
        case when probed_pieces.piece is not null then 2 else coalesce(stored_pieces.found_in_index, 0) end
            as found_in_index,
        coalesce(chunk_states.is_complete, 0) as is_chunks_complete,
        case
            when index_completeness.complete_from_ns <= labels.started_at_ns then 1
            when absent_pieces.piece is not null and chunk_states.is_complete = 1 then 1
            else 0
        end as is_index_complete,
        labels.state = 'clock' or coalesce(stored_pieces.is_close, false) as is_close
    from labels
    inner join pieces on labels.evidence_no = pieces.evidence_no
    cross join index_completeness
    left join chunk_states
        on labels.query_id = chunk_states.query_id and labels.evidence_no = chunk_states.evidence_no
    left join stored_pieces on labels.query_id = stored_pieces.query_id and pieces.piece = stored_pieces.piece
    left join probed_pieces on labels.query_id = probed_pieces.query_id and pieces.piece = probed_pieces.piece
    left join absent_pieces on labels.query_id = absent_pieces.query_id and pieces.piece = absent_pieces.piece
    where labels.is_scored

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

),

spotted as (

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

)

select
    query_sightings.query_id,
    query_sightings.piece,
    cast(null as bigint) as evidence_no,
    cast(null as bigint) as weight,
    cast(null as bigint) as total,
    query_sightings.place_order,
    query_sightings.place_no,
    query_sightings.is_branch,
    query_sightings.rank,
    query_sightings.item,
    query_sightings.score,
    query_sightings.tokens,
    query_sightings.is_sure,
    query_sightings.is_own,
    query_sightings.is_candidate,
    cast(null as bigint) as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from query_sightings

union all

select
    open_spots.query_id,
    pieces.piece,
    cast(null as bigint) as evidence_no,
    cast(null as bigint) as weight,
    cast(null as bigint) as total,
    cast(open_spots.place_order as bigint) as place_order,
    open_spots.place_no,
    true as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    false as is_sure,
    true as is_own,
    open_spots.is_candidate,
    cast(null as bigint) as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from open_spots
inner join labels on open_spots.query_id = labels.query_id
inner join pieces on labels.evidence_no = pieces.evidence_no
where labels.is_scored and (open_spots.is_for_ids or labels.level <> 'chunk')

union all

select
    spotted.query_id,
    spotted.piece,
    spotted.evidence_no,
    spotted.weight,
    spotted.total,
    cast(null as bigint) as place_order,
    cast(null as integer) as place_no,
    cast(null as boolean) as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    cast(null as boolean) as is_sure,
    cast(null as boolean) as is_own,
    cast(null as boolean) as is_candidate,
    cast(spotted.layer as bigint) as layer,
    cast(spotted.open_layer as bigint) as open_layer,
    spotted.source,
    spotted.text,
    spotted.chunks,
    spotted.stored
from spotted

union all

-- Labels that cannot be judged pass by as one piece each.
select
    labels.query_id,
    -labels.evidence_no as piece,
    labels.evidence_no,
    cast(1 as bigint) as weight,
    cast(1 as bigint) as total,
    cast(null as bigint) as place_order,
    cast(null as integer) as place_no,
    cast(null as boolean) as is_branch,
    cast(null as integer) as rank,
    cast(null as integer) as item,
    cast(null as double) as score,
    cast(null as integer) as tokens,
    cast(null as boolean) as is_sure,
    cast(null as boolean) as is_own,
    cast(null as boolean) as is_candidate,
    cast(case labels.state when 'stale' then -1 when 'later' then -2 when 'deleted' then -3 else -4 end as bigint)
        as layer,
    cast(null as bigint) as open_layer,
    cast(null as integer) as source,
    cast(null as integer) as text,
    cast(null as integer) as chunks,
    cast(null as integer) as stored
from labels
where not labels.is_scored
