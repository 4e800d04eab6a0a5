-- view:    span_reasons
-- answers: what does the record say about each stage that a lost span may have fallen at?
-- grain:   one row per scored query, evidence span and stage run it fell at (each retrieve run when none returned it); one row when no stage run is named
-- kept:    in the store
-- column:  query_id                     bigint   queries.query_id
-- column:  evidence_no                  bigint   needed_evidence.evidence_no
-- column:  verdict                      varchar  span_verdicts.verdict
-- column:  lost_kind                    varchar  span_verdicts.lost_kind
-- column:  lost_stage                   varchar  span_verdicts.lost_stage
-- column:  lost_at                      varchar  span_verdicts.lost_at
-- column:  between_first                varchar  span_verdicts.between_first
-- column:  between_last                 varchar  span_verdicts.between_last
-- column:  sure_order                   bigint   span_verdicts.sure_order
-- column:  candidate_coverage           double   span_verdicts.candidate_coverage
-- column:  final_coverage               double   span_verdicts.final_coverage
-- column:  candidate_coverage_possible  double   span_verdicts.candidate_coverage_possible
-- column:  final_coverage_possible      double   span_verdicts.final_coverage_possible
-- column:  stage_id                     bigint   the stage run; null when none is named
-- column:  stage                        varchar  its name
-- column:  reason                       varchar  docs/reasons.md; unprobed without proof; null unless lost
-- column:  reason_order                 integer  place in the table of reasons: the smallest is shown first
-- column:  proof                        varchar  record, declared or probe; null for unprobed
-- column:  probe                        varchar  proof by probe: the one that proves it; unprobed at the retrieve runs: the one that would
-- column:  cause_stage                  varchar  another stage that is proved to be the cause
-- column:  detail                       varchar  what was declared: reason and rule of a drop, error type
-- column:  rank_before                  integer  best rank of what was lost in the list that still had it
-- column:  rank_after                   integer  best rank the stage itself gave to it without letting it through; by a probe: the rank it has there
-- column:  rank_original                integer  by a probe: its rank by the question as asked
-- column:  k                            integer  how many the stage lets through
-- column:  score                        double   the stage's score of it, else the score it came with
-- column:  threshold                    double   score a candidate must reach
-- column:  tokens                       integer  tokens it would have taken
-- column:  budget                       integer  the stage's token budget
-- reads:   span_verdicts, needed_evidence, queries, text_spans, item_covers, places, lists, stages, edges, retrieve_runs, candidates, items, ingest_lists, documents, evidence_places, probe_reasons, recorded_indexes
with

verdicts as materialized (

    select
        span_verdicts.query_id,
        span_verdicts.evidence_no,
        span_verdicts.verdict,
        span_verdicts.lost_kind,
        span_verdicts.lost_stage,
        span_verdicts.lost_at,
        span_verdicts.between_first,
        span_verdicts.between_last,
        span_verdicts.sure_order,
        span_verdicts.end_places,
        span_verdicts.end_place_no,
        span_verdicts.end_rank,
        span_verdicts.end_item,
        span_verdicts.end_score,
        span_verdicts.end_tokens,
        span_verdicts.candidate_coverage,
        span_verdicts.final_coverage,
        span_verdicts.candidate_coverage_possible,
        span_verdicts.final_coverage_possible
    from span_verdicts

),

placed as materialized (

    select distinct
        verdicts.query_id,
        verdicts.evidence_no,
        verdicts.sure_order,
        verdicts.end_places,
        verdicts.end_place_no,
        verdicts.end_rank,
        verdicts.end_item,
        verdicts.end_score,
        verdicts.end_tokens
    from verdicts
    where verdicts.verdict = 'lost' and verdicts.lost_kind is not null

),

-- ------------------------------------------------------------------ the runs it fell at
fallen_at as materialized (

    select
        placed.query_id,
        placed.evidence_no,
        placed.sure_order,
        placed.end_rank,
        placed.end_item,
        placed.end_score,
        placed.end_tokens,
        places.stage_id,
        places.side,
        places.is_on_path
    from placed
    inner join places on placed.query_id = places.query_id and placed.end_place_no = places.place_no

    union all

    select
        placed.query_id,
        placed.evidence_no,
        placed.sure_order,
        placed.end_rank,
        placed.end_item,
        placed.end_score,
        placed.end_tokens,
        places.stage_id,
        places.side,
        places.is_on_path
    from placed
    inner join places on placed.query_id = places.query_id
    where
        placed.end_places is not null
        and placed.end_place_no is null
        and list_contains(string_split(placed.end_places, ' '), cast(places.place_no as varchar))

    union all

    select
        placed.query_id,
        placed.evidence_no,
        placed.sure_order,
        cast(null as integer) as end_rank,
        cast(null as integer) as end_item,
        cast(null as double) as end_score,
        cast(null as integer) as end_tokens,
        retrieve_runs.stage_id,
        'index' as side,
        true as is_on_path
    from placed
    inner join retrieve_runs on placed.query_id = retrieve_runs.query_id
    where placed.sure_order = 4

),

fallen_stages as materialized (

    select
        fallen.stage_id,
        stages.kind,
        coalesce(stages.name, stages.kind) as name,
        coalesce(stages.status, 'ok') as status,
        stages.error_type,
        stages.mode,
        stages.index_name,
        stages.k,
        stages.threshold,
        stages.budget_tokens,
        coalesce(stages.is_higher_better, coalesce(stages.score_kind, '') <> 'distance') as is_higher_better
    from (select distinct fallen_at.stage_id from fallen_at) as fallen
    inner join stages on fallen.stage_id = stages.stage_id

),

fallen_lists as materialized (

    select
        lists.stage_id,
        lists.role,
        lists.list_id as own_list_id,
        coalesce(lists.same_as_list_id, lists.list_id) as list_id
    from lists
    inner join fallen_stages on lists.stage_id = fallen_stages.stage_id

),

-- ------------------------------------------------------------------ what the lists say
lost_items as materialized (

    select distinct
        item_covers.item,
        item_covers.evidence_no,
        item_covers.role
    from item_covers
    where item_covers.evidence_no in (select placed.evidence_no from placed)

),

-- Items that share an id or a text with a lost one: the id may have gone on cut, the text through a twin.
end_items as materialized (

    select
        items.item,
        items.chunk_id,
        items.item_text_hash
    from items
    where items.item in (
        select fallen_at.end_item from fallen_at
        union
        select lost_items.item
        from lost_items
        inner join placed on lost_items.evidence_no = placed.evidence_no
        where placed.sure_order in (3, 4)
    )

),

kin as materialized (

    select
        related.item,
        related.kin_item,
        max(related.is_same_id) = 1 as is_same_id,
        max(related.is_same_text) = 1 as is_same_text
    from (
        select
            end_items.item,
            items.item as kin_item,
            1 as is_same_id,
            case when end_items.item_text_hash = items.item_text_hash then 1 else 0 end as is_same_text
        from end_items
        inner join items on end_items.chunk_id = items.chunk_id

        union all

        select
            end_items.item,
            items.item as kin_item,
            0 as is_same_id,
            1 as is_same_text
        from end_items
        inner join items on end_items.item_text_hash = items.item_text_hash
    ) as related
    where related.item <> related.kin_item
    group by related.item, related.kin_item

),

side_lists as (

    select
        fallen_lists.stage_id,
        fallen_lists.list_id
    from fallen_lists
    where fallen_lists.role in ('considered', 'dropped')

),

-- Rows are looked for only where there can be some that say more than the place itself.
sought_items as (

    select lost_items.item
    from lost_items
    inner join fallen_at on lost_items.evidence_no = fallen_at.evidence_no
    inner join side_lists on fallen_at.stage_id = side_lists.stage_id

    union

    select lost_items.item
    from lost_items
    inner join placed on lost_items.evidence_no = placed.evidence_no
    where placed.sure_order = 3

    union

    select kin.kin_item as item
    from kin

    union

    select kin.item
    from kin
    where kin.is_same_id

),

rows_at_hand as materialized (

    select
        candidates.list_id,
        candidates.item,
        candidates.rank,
        candidates.score,
        candidates.tokens,
        candidates.is_kept,
        candidates.drop_reason,
        candidates.dropped_by
    from candidates
    where candidates.item in (select sought_items.item from sought_items)

),

-- Losers that stand in the output list itself.
marked_rows as (

    select
        candidates.list_id,
        candidates.item,
        candidates.rank,
        candidates.score,
        candidates.tokens,
        candidates.drop_reason,
        candidates.dropped_by
    from candidates
    where candidates.is_kept = false

),

stage_rows as materialized (

    select
        fallen_lists.stage_id,
        fallen_lists.role,
        rows_at_hand.item,
        rows_at_hand.rank,
        rows_at_hand.score,
        rows_at_hand.tokens,
        rows_at_hand.drop_reason,
        rows_at_hand.dropped_by
    from rows_at_hand
    inner join fallen_lists on rows_at_hand.list_id = fallen_lists.list_id
    where rows_at_hand.is_kept is distinct from false or fallen_lists.role in ('considered', 'dropped')

    union all

    select
        fallen_lists.stage_id,
        'considered' as role,
        marked_rows.item,
        marked_rows.rank,
        marked_rows.score,
        marked_rows.tokens,
        marked_rows.drop_reason,
        marked_rows.dropped_by
    from marked_rows
    inner join fallen_lists on marked_rows.list_id = fallen_lists.list_id
    where fallen_lists.role = 'out'

),

judged_rows as (

    select
        fallen_at.query_id,
        fallen_at.evidence_no,
        fallen_at.stage_id,
        fallen_at.side,
        stage_rows.role,
        stage_rows.rank,
        stage_rows.score,
        stage_rows.tokens,
        stage_rows.drop_reason,
        stage_rows.dropped_by
    from fallen_at
    inner join lost_items on fallen_at.evidence_no = lost_items.evidence_no
    inner join stage_rows on fallen_at.stage_id = stage_rows.stage_id and lost_items.item = stage_rows.item
    where stage_rows.role in ('considered', 'dropped')

),

numbers as (

    select
        judged_rows.query_id,
        judged_rows.evidence_no,
        judged_rows.stage_id,
        judged_rows.side,
        min(judged_rows.rank) filter (where judged_rows.role = 'considered') as rank_considered,
        arg_min(judged_rows.score, judged_rows.rank) filter (where judged_rows.role = 'considered') as score_considered,
        arg_min(judged_rows.tokens, judged_rows.rank) filter (where judged_rows.role = 'considered')
            as tokens_considered,
        max(case when judged_rows.role = 'dropped' or judged_rows.drop_reason is not null then 1 else 0 end)
            as is_dropped,
        max(judged_rows.drop_reason) as drop_reason,
        max(judged_rows.dropped_by) as dropped_by
    from judged_rows
    group by judged_rows.query_id, judged_rows.evidence_no, judged_rows.stage_id, judged_rows.side

),

let_through as (

    select distinct
        stage_rows.stage_id,
        kin.item,
        kin.kin_item,
        kin.is_same_id,
        kin.is_same_text
    from stage_rows
    inner join kin on stage_rows.item = kin.kin_item
    where stage_rows.role = 'out'

),

relatives as (

    select
        fallen_at.query_id,
        fallen_at.evidence_no,
        fallen_at.stage_id,
        fallen_at.side,
        max(case when let_through.is_same_id then 1 else 0 end) as is_id_let_through,
        max(case when let_through.is_same_text then 1 else 0 end) as is_text_let_through
    from fallen_at
    inner join let_through on fallen_at.stage_id = let_through.stage_id and fallen_at.end_item = let_through.item
    group by fallen_at.query_id, fallen_at.evidence_no, fallen_at.stage_id, fallen_at.side

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

-- ------------------------------------------------------------------ what was written under one id
id_writes as materialized (

    select
        rows_at_hand.item,
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
            order by index_lists.at_ns, index_lists.list_id, rows_at_hand.rank
        ) as write_no
    from rows_at_hand
    inner join index_lists on rows_at_hand.list_id = index_lists.list_id
    inner join items on rows_at_hand.item = items.item
    where items.chunk_id is not null and items.id_source is distinct from 'text'

),

own_writes as (

    select
        placed.query_id,
        placed.evidence_no,
        placed.sure_order,
        queries.started_at_ns,
        id_writes.item,
        id_writes.index_name,
        any_value(id_writes.chunk_id) as chunk_id,
        any_value(id_writes.doc_id) as doc_id,
        max(id_writes.write_no) as write_no,
        arg_max(id_writes.list_id, id_writes.write_no) as list_id,
        arg_max(id_writes.ingest_id, id_writes.write_no) as ingest_id
    from placed
    inner join queries on placed.query_id = queries.query_id
    inner join lost_items on placed.evidence_no = lost_items.evidence_no and lost_items.role = 'own'
    inner join id_writes on lost_items.item = id_writes.item and id_writes.at_ns <= queries.started_at_ns
    where placed.sure_order in (3, 4)
    group by
        placed.query_id, placed.evidence_no, placed.sure_order, queries.started_at_ns, id_writes.item,
        id_writes.index_name

),

-- Another document's chunk, or another of the same go, is another chunk; else it is another version of this one.
rival_writes as materialized (

    select
        own_writes.query_id,
        own_writes.evidence_no,
        own_writes.sure_order,
        own_writes.item,
        own_writes.index_name,
        id_writes.item as rival_item,
        id_writes.doc_id,
        id_writes.place,
        id_writes.item_text_hash,
        id_writes.write_no = max(id_writes.write_no) over one_id as is_newest,
        max(id_writes.write_no) over one_id > own_writes.write_no as is_taken,
        coalesce(id_writes.doc_id <> own_writes.doc_id, false)
        or id_writes.list_id = own_writes.list_id
        or coalesce(id_writes.ingest_id = own_writes.ingest_id, false) as is_another
    from own_writes
    inner join id_writes
        on
            own_writes.chunk_id = id_writes.chunk_id
            and own_writes.index_name = id_writes.index_name
            and own_writes.item <> id_writes.item
            and id_writes.at_ns <= own_writes.started_at_ns
    window one_id as (
        partition by own_writes.query_id, own_writes.evidence_no, own_writes.item, own_writes.index_name
    )

),

-- The id came back with what the index had before: it is told from what the index held by its text or its place.
outdated as (

    select
        fallen_at.query_id,
        fallen_at.evidence_no,
        fallen_at.stage_id,
        min(case when rival_writes.is_another then 1 else 0 end) = 0 as is_older_version
    from fallen_at
    inner join fallen_stages on fallen_at.stage_id = fallen_stages.stage_id
    inner join rival_writes
        on
            fallen_at.query_id = rival_writes.query_id
            and fallen_at.evidence_no = rival_writes.evidence_no
            and coalesce(fallen_stages.index_name, rival_writes.index_name) = rival_writes.index_name
    inner join let_through on fallen_at.stage_id = let_through.stage_id and rival_writes.item = let_through.item
    inner join items on let_through.kin_item = items.item
    where
        fallen_at.side = 'index'
        and not rival_writes.is_taken
        and let_through.is_same_id
        and not let_through.is_same_text
        and (
            let_through.kin_item = rival_writes.rival_item
            or items.place = '=' || rival_writes.rival_item
            or items.doc_id = rival_writes.doc_id
            and (
                items.item_text_hash = rival_writes.item_text_hash
                or ltrim(items.place, '~') = ltrim(rival_writes.place, '~')
            )
        )
    group by fallen_at.query_id, fallen_at.evidence_no, fallen_at.stage_id

),

-- ------------------------------------------------------------------ who took the list
takers as (

    select
        fallen_lists.stage_id,
        count(*) as n_takers,
        min(case when coalesce(stages.status, 'ok') <> 'ok' then coalesce(stages.name, stages.kind) end)
            as failed_taker,
        min(case when coalesce(stages.status, 'ok') <> 'ok' then stages.error_type end) as failed_error_type
    from fallen_lists
    inner join edges on fallen_lists.own_list_id = edges.from_list_id
    inner join lists on edges.to_list_id = lists.list_id
    left join stages on lists.stage_id = stages.stage_id
    where fallen_lists.role = 'out'
    group by fallen_lists.stage_id

),

-- ------------------------------------------------------------------ before the query
lost_before as materialized (

    select
        placed.query_id,
        placed.evidence_no,
        placed.sure_order,
        needed_evidence.evidence_id,
        needed_evidence.doc_id,
        needed_evidence.label_status,
        needed_evidence.made_on_ns > queries.started_at_ns as is_label_later,
        queries.started_at_ns
    from placed
    inner join needed_evidence on placed.evidence_no = needed_evidence.evidence_no
    inner join queries on placed.query_id = queries.query_id
    where placed.sure_order < 5

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

later_writes as (

    select distinct
        lost_before.query_id,
        lost_before.evidence_no
    from lost_before
    inner join lost_items on lost_before.evidence_no = lost_items.evidence_no and lost_items.role = 'own'
    inner join rows_at_hand on lost_items.item = rows_at_hand.item
    inner join index_lists on rows_at_hand.list_id = index_lists.list_id
    where lost_before.sure_order = 3 and index_lists.at_ns > lost_before.started_at_ns

),

cuts as (

    select
        lost_items.evidence_no,
        lost_items.item,
        ingest_lists.at_ns
    from lost_items
    inner join rows_at_hand on lost_items.item = rows_at_hand.item
    inner join ingest_lists on rows_at_hand.list_id = ingest_lists.list_id
    where lost_items.role = 'own' and ingest_lists.layer = 'chunks'

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
    inner join lost_items on lost_before.evidence_no = lost_items.evidence_no and lost_items.role = 'own'
    inner join items on lost_items.item = items.item
    inner join kin on lost_items.item = kin.item and kin.is_same_id
    inner join id_writes on kin.kin_item = id_writes.item and id_writes.at_ns <= lost_before.started_at_ns
    left join own_writes
        on
            lost_before.query_id = own_writes.query_id
            and lost_items.evidence_no = own_writes.evidence_no
            and lost_items.item = own_writes.item
            and id_writes.index_name = own_writes.index_name
    left join cuts
        on
            lost_items.evidence_no = cuts.evidence_no
            and lost_items.item = cuts.item
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

where_indexed as (

    select
        lost_items.evidence_no,
        items.index_name
    from lost_items
    inner join items on lost_items.item = items.item
    where lost_items.role = 'own' and items.index_name is not null
    group by lost_items.evidence_no, items.index_name

),

index_matches as (

    select
        fallen_at.query_id,
        fallen_at.evidence_no,
        fallen_at.stage_id,
        count(where_indexed.index_name) filter (where where_indexed.index_name = fallen_stages.index_name) as n_here,
        count(where_indexed.index_name) as n_all
    from fallen_at
    inner join fallen_stages on fallen_at.stage_id = fallen_stages.stage_id
    inner join where_indexed on fallen_at.evidence_no = where_indexed.evidence_no
    where fallen_at.side = 'index' and fallen_stages.index_name is not null
    group by fallen_at.query_id, fallen_at.evidence_no, fallen_at.stage_id

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

-- ------------------------------------------------------------------ the reasons
stage_findings as (

    select
        fallen_at.query_id,
        fallen_at.evidence_no,
        fallen_at.stage_id,
        fallen_stages.name as stage,
        case
            when fallen_at.side = 'index'
                then
                    case
                        when index_matches.n_all > 0 and index_matches.n_here = 0 then 'wrong_index'
                        when fallen_stages.status <> 'ok' then 'stage_failed'
                        when outdated.is_older_version then 'stale_cache'
                        when outdated.query_id is not null then 'duplicate_id'
                        when numbers.is_dropped = 1 then 'dropped'
                        when
                            numbers.score_considered is not null and fallen_stages.threshold is not null
                            and case
                                when
                                    fallen_stages.is_higher_better
                                    then numbers.score_considered < fallen_stages.threshold
                                else numbers.score_considered > fallen_stages.threshold
                            end then 'below_threshold'
                        when numbers.rank_considered > fallen_stages.k then 'below_k'
                    end
            when fallen_at.side = 'out'
                then
                    case
                        when takers.failed_taker is not null then 'stage_failed'
                        when coalesce(takers.n_takers, 0) = 0 and not fallen_at.is_on_path then 'not_consumed'
                        else 'untraced_gap'
                    end
            when fallen_stages.status <> 'ok' then 'stage_failed'
            when
                fallen_stages.threshold is not null
                and case
                    when fallen_stages.is_higher_better
                        then coalesce(numbers.score_considered, fallen_at.end_score) < fallen_stages.threshold
                    else coalesce(numbers.score_considered, fallen_at.end_score) > fallen_stages.threshold
                end then 'below_threshold'
            when fallen_stages.kind = 'filter' then 'filtered'
            when fallen_stages.kind in ('fuse', 'rerank', 'expand') and relatives.is_text_let_through = 1
                then 'deduplicated'
            when fallen_stages.kind = 'fuse' then 'fused_out'
            when fallen_stages.kind = 'rerank' then 'reranked_out'
            when fallen_stages.kind = 'truncate' and relatives.is_id_let_through = 1 then 'cut_inside'
            when fallen_stages.kind = 'truncate' then 'over_budget'
            when fallen_stages.kind = 'compress' then 'compressed_away'
            when numbers.is_dropped = 1 then 'dropped'
        end as reason,
        case when fallen_at.side = 'out' then takers.failed_taker else probe_reasons.cause_stage end as cause_stage,
        case
            when numbers.is_dropped = 1
                then
                    coalesce(numbers.drop_reason, 'dropped') || coalesce(' by ' || numbers.dropped_by, '')
            when fallen_at.side = 'out' then takers.failed_error_type
            else fallen_stages.error_type
        end as detail,
        fallen_at.end_rank as rank_before,
        numbers.rank_considered,
        fallen_stages.k,
        numbers.score_considered,
        fallen_at.end_score,
        probe_reasons.reason as probe_reason,
        coalesce(
            probe_reasons.probe,
            case
                when fallen_at.side = 'index'
                    then
                        case
                            when coalesce(fallen_stages.mode in ('exact', 'lexical', 'sql'), false) then 'deeper'
                            else 'exact'
                        end
            end
        ) as probe,
        probe_reasons.rank as rank_probed,
        probe_reasons.score as score_probed,
        probe_reasons.rank_original,
        probe_reasons.k as k_probed,
        fallen_stages.threshold,
        coalesce(numbers.tokens_considered, fallen_at.end_tokens) as tokens,
        fallen_stages.budget_tokens as budget
    from fallen_at
    inner join fallen_stages on fallen_at.stage_id = fallen_stages.stage_id
    left join numbers
        on
            fallen_at.query_id = numbers.query_id
            and fallen_at.evidence_no = numbers.evidence_no
            and fallen_at.stage_id = numbers.stage_id
            and fallen_at.side = numbers.side
    left join relatives
        on
            fallen_at.query_id = relatives.query_id
            and fallen_at.evidence_no = relatives.evidence_no
            and fallen_at.stage_id = relatives.stage_id
            and fallen_at.side = relatives.side
    left join outdated
        on
            fallen_at.query_id = outdated.query_id
            and fallen_at.evidence_no = outdated.evidence_no
            and fallen_at.stage_id = outdated.stage_id
    left join takers on fallen_at.stage_id = takers.stage_id
    left join index_matches
        on
            fallen_at.query_id = index_matches.query_id
            and fallen_at.evidence_no = index_matches.evidence_no
            and fallen_at.stage_id = index_matches.stage_id
    left join probe_reasons
        on
            fallen_at.side = 'index'
            and fallen_at.query_id = probe_reasons.query_id
            and fallen_at.evidence_no = probe_reasons.evidence_no
            and fallen_at.stage_id = probe_reasons.probed_stage_id

),

-- A probe is asked where the record proves nothing.
stage_reasons as (

    select
        stage_findings.query_id,
        stage_findings.evidence_no,
        stage_findings.stage_id,
        stage_findings.stage,
        coalesce(stage_findings.reason, stage_findings.probe_reason) as reason,
        case
            when stage_findings.reason = 'dropped' then 'declared'
            when stage_findings.reason is not null then 'record'
            when stage_findings.probe_reason is not null then 'probe'
        end as proof,
        case when stage_findings.reason is null then stage_findings.probe end as probe,
        stage_findings.cause_stage,
        stage_findings.detail,
        stage_findings.rank_before,
        case when stage_findings.reason is null then stage_findings.rank_probed else stage_findings.rank_considered end
            as rank_after,
        case when stage_findings.reason is null then stage_findings.rank_original end as rank_original,
        coalesce(stage_findings.k, case when stage_findings.reason is null then stage_findings.k_probed end) as k,
        case
            when stage_findings.reason is null then stage_findings.score_probed
            else coalesce(stage_findings.score_considered, stage_findings.end_score)
        end as score,
        stage_findings.threshold,
        stage_findings.tokens,
        stage_findings.budget
    from stage_findings

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
    left join fallen_at
        on lost_before.query_id = fallen_at.query_id and lost_before.evidence_no = fallen_at.evidence_no
    left join ingest_failures
        on lost_before.query_id = ingest_failures.query_id and lost_before.evidence_no = ingest_failures.evidence_no
    left join text_findings
        on lost_before.query_id = text_findings.query_id and lost_before.evidence_no = text_findings.evidence_no
    left join later_writes
        on lost_before.query_id = later_writes.query_id and lost_before.evidence_no = later_writes.evidence_no
    left join rivals
        on lost_before.query_id = rivals.query_id and lost_before.evidence_no = rivals.evidence_no
    where fallen_at.query_id is null

),

layer_reasons as (

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

),

explained as (

    select
        verdicts.query_id,
        verdicts.evidence_no,
        verdicts.verdict,
        verdicts.lost_kind,
        verdicts.lost_stage,
        verdicts.lost_at,
        verdicts.between_first,
        verdicts.between_last,
        verdicts.sure_order,
        verdicts.candidate_coverage,
        verdicts.final_coverage,
        verdicts.candidate_coverage_possible,
        verdicts.final_coverage_possible,
        stage_reasons.stage_id,
        stage_reasons.stage,
        case
            when verdicts.verdict = 'lost' then coalesce(stage_reasons.reason, layer_reasons.reason, 'unprobed')
        end as reason,
        case
            when verdicts.verdict = 'lost' and stage_reasons.reason is not null then stage_reasons.proof
            when verdicts.verdict = 'lost' and layer_reasons.reason is not null then layer_reasons.proof
        end as proof,
        case
            when verdicts.verdict <> 'lost' then null
            when stage_reasons.stage_id is not null then stage_reasons.probe
            when layer_reasons.proof = 'probe' then 'by_id'
            -- Between the layers and the retriever: whether the index has it is what nobody knows.
            when verdicts.lost_kind is null and verdicts.sure_order < 4 then 'by_id'
        end as probe,
        stage_reasons.cause_stage,
        case verdicts.sure_order
            when -1 then 'the passage changed'
            when -2 then 'the label is later than the query'
            when -3 then 'the document was deleted'
            else coalesce(stage_reasons.detail, layer_reasons.detail)
        end as detail,
        stage_reasons.rank_before,
        stage_reasons.rank_after,
        stage_reasons.rank_original,
        stage_reasons.k,
        stage_reasons.score,
        stage_reasons.threshold,
        stage_reasons.tokens,
        stage_reasons.budget
    from verdicts
    left join stage_reasons
        on verdicts.query_id = stage_reasons.query_id and verdicts.evidence_no = stage_reasons.evidence_no
    left join layer_reasons
        on verdicts.query_id = layer_reasons.query_id and verdicts.evidence_no = layer_reasons.evidence_no

)

select
    explained.query_id,
    explained.evidence_no,
    explained.verdict,
    explained.lost_kind,
    explained.lost_stage,
    explained.lost_at,
    explained.between_first,
    explained.between_last,
    explained.sure_order,
    explained.candidate_coverage,
    explained.final_coverage,
    explained.candidate_coverage_possible,
    explained.final_coverage_possible,
    explained.stage_id,
    explained.stage,
    explained.reason,
    case explained.reason
        when 'not_run' then 1
        when 'wrong_index' then 2
        when 'stage_failed' then 3
        when 'not_consumed' then 4
        when 'stale_cache' then 5
        when 'untraced_gap' then 6
        when 'parse_error' then 7
        when 'text_missing' then 8
        when 'text_garbled' then 9
        when 'not_covered' then 10
        when 'duplicate_id' then 11
        when 'not_indexed' then 12
        when 'not_visible_yet' then 13
        when 'filtered' then 14
        when 'below_threshold' then 15
        when 'fused_out' then 16
        when 'deduplicated' then 17
        when 'reranked_out' then 18
        when 'over_budget' then 19
        when 'cut_inside' then 20
        when 'compressed_away' then 21
        when 'document_absent' then 22
        when 'stale_version' then 23
        when 'dropped' then 24
        when 'ann_miss' then 25
        when 'below_k' then 26
        when 'query_drift' then 27
        when 'unprobed' then 28
    end as reason_order,
    explained.proof,
    explained.probe,
    explained.cause_stage,
    explained.detail,
    explained.rank_before,
    explained.rank_after,
    explained.rank_original,
    explained.k,
    explained.score,
    explained.threshold,
    explained.tokens,
    explained.budget
from explained
