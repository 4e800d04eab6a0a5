-- view:    stage_findings
-- answers: what do the record and the probes say of each stage run at which a span fell?
-- grain:   one row per row of loss_spots
-- column:  query_id          bigint   queries.query_id
-- column:  evidence_no       bigint   needed_evidence.evidence_no
-- column:  stage_id          bigint   stages.stage_id
-- column:  stage             varchar  its name
-- column:  reason            varchar  what the record proves; null when it proves nothing
-- column:  cause_stage       varchar  another stage that is proved to be the cause
-- column:  detail            varchar  what was declared: reason and rule of a drop, error type
-- column:  rank_before       integer  its best rank in the list that still had it
-- column:  rank_considered   integer  the best rank the stage itself gave to it
-- column:  k                 integer  stages.k
-- column:  score_considered  double   the score the stage itself gave to it
-- column:  end_score         double   the score it came with
-- column:  probe_reason      varchar  what a probe proves; null without one
-- column:  probe             varchar  the probe that proves it, else the one that would
-- column:  rank_probed       integer  the rank it has in the probe
-- column:  score_probed      double   its score there
-- column:  rank_original     integer  its rank there by the question as asked
-- column:  k_probed          integer  how many the probed retriever lets through
-- column:  threshold         double   stages.threshold
-- column:  tokens            integer  tokens it would have taken
-- column:  budget            integer  stages.budget_tokens
-- reads:   loss_spots, loss_stages, loss_lists, loss_rows, loss_items, candidates, item_kin, rival_writes, items, edges, lists, stages, probe_reasons
with

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
        loss_lists.stage_id,
        loss_lists.role,
        loss_rows.item,
        loss_rows.rank,
        loss_rows.score,
        loss_rows.tokens,
        loss_rows.drop_reason,
        loss_rows.dropped_by
    from loss_rows
    inner join loss_lists on loss_rows.list_id = loss_lists.list_id
    where loss_rows.is_kept is distinct from false or loss_lists.role in ('considered', 'dropped')

    union all

    select
        loss_lists.stage_id,
        'considered' as role,
        marked_rows.item,
        marked_rows.rank,
        marked_rows.score,
        marked_rows.tokens,
        marked_rows.drop_reason,
        marked_rows.dropped_by
    from marked_rows
    inner join loss_lists on marked_rows.list_id = loss_lists.list_id
    where loss_lists.role = 'out'

),

judged_rows as (

    select
        loss_spots.query_id,
        loss_spots.evidence_no,
        loss_spots.stage_id,
        loss_spots.side,
        stage_rows.role,
        stage_rows.rank,
        stage_rows.score,
        stage_rows.tokens,
        stage_rows.drop_reason,
        stage_rows.dropped_by
    from loss_spots
    inner join loss_items on loss_spots.evidence_no = loss_items.evidence_no
    inner join stage_rows on loss_spots.stage_id = stage_rows.stage_id and loss_items.item = stage_rows.item
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
        item_kin.item,
        item_kin.kin_item,
        item_kin.is_same_id,
        item_kin.is_same_text
    from stage_rows
    inner join item_kin on stage_rows.item = item_kin.kin_item
    where stage_rows.role = 'out'

),

relatives as (

    select
        loss_spots.query_id,
        loss_spots.evidence_no,
        loss_spots.stage_id,
        loss_spots.side,
        max(case when let_through.is_same_id then 1 else 0 end) as is_id_let_through,
        max(case when let_through.is_same_text then 1 else 0 end) as is_text_let_through
    from loss_spots
    inner join let_through on loss_spots.stage_id = let_through.stage_id and loss_spots.end_item = let_through.item
    group by loss_spots.query_id, loss_spots.evidence_no, loss_spots.stage_id, loss_spots.side

),

-- The id came back with what the index had before: it is told from what the index held by its text or its place.
outdated as (

    select
        loss_spots.query_id,
        loss_spots.evidence_no,
        loss_spots.stage_id,
        min(case when rival_writes.is_another then 1 else 0 end) = 0 as is_older_version
    from loss_spots
    inner join loss_stages on loss_spots.stage_id = loss_stages.stage_id
    inner join rival_writes
        on
            loss_spots.query_id = rival_writes.query_id
            and loss_spots.evidence_no = rival_writes.evidence_no
            and coalesce(loss_stages.index_name, rival_writes.index_name) = rival_writes.index_name
    inner join let_through on loss_spots.stage_id = let_through.stage_id and rival_writes.item = let_through.item
    inner join items on let_through.kin_item = items.item
    where
        loss_spots.side = 'index'
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
    group by loss_spots.query_id, loss_spots.evidence_no, loss_spots.stage_id

),

takers as (

    select
        loss_lists.stage_id,
        count(*) as n_takers,
        min(case when coalesce(stages.status, 'ok') <> 'ok' then coalesce(stages.name, stages.kind) end)
            as failed_taker,
        min(case when coalesce(stages.status, 'ok') <> 'ok' then stages.error_type end) as failed_error_type
    from loss_lists
    inner join edges on loss_lists.own_list_id = edges.from_list_id
    inner join lists on edges.to_list_id = lists.list_id
    left join stages on lists.stage_id = stages.stage_id
    where loss_lists.role = 'out'
    group by loss_lists.stage_id

),

where_indexed as (

    select
        loss_items.evidence_no,
        items.index_name
    from loss_items
    inner join items on loss_items.item = items.item
    where loss_items.role = 'own' and items.index_name is not null
    group by loss_items.evidence_no, items.index_name

),

index_matches as (

    select
        loss_spots.query_id,
        loss_spots.evidence_no,
        loss_spots.stage_id,
        count(where_indexed.index_name) filter (where where_indexed.index_name = loss_stages.index_name) as n_here,
        count(where_indexed.index_name) as n_all
    from loss_spots
    inner join loss_stages on loss_spots.stage_id = loss_stages.stage_id
    inner join where_indexed on loss_spots.evidence_no = where_indexed.evidence_no
    where loss_spots.side = 'index' and loss_stages.index_name is not null
    group by loss_spots.query_id, loss_spots.evidence_no, loss_spots.stage_id

)

select
    loss_spots.query_id,
    loss_spots.evidence_no,
    loss_spots.stage_id,
    loss_stages.name as stage,
    case
        when loss_spots.side = 'index'
            then
                case
                    when index_matches.n_all > 0 and index_matches.n_here = 0 then 'wrong_index'
                    when loss_stages.status <> 'ok' then 'stage_failed'
                    when outdated.is_older_version then 'stale_cache'
                    when outdated.query_id is not null then 'duplicate_id'
                    when numbers.is_dropped = 1 then 'dropped'
                    when
                        numbers.score_considered is not null and loss_stages.threshold is not null
                        and case
                            when
                                loss_stages.is_higher_better
                                then numbers.score_considered < loss_stages.threshold
                            else numbers.score_considered > loss_stages.threshold
                        end then 'below_threshold'
                    when numbers.rank_considered > loss_stages.k then 'below_k'
                end
        when loss_spots.side = 'out'
            then
                case
                    when takers.failed_taker is not null then 'stage_failed'
                    when coalesce(takers.n_takers, 0) = 0 and not loss_spots.is_on_path then 'not_consumed'
                    else 'untraced_gap'
                end
        when loss_stages.status <> 'ok' then 'stage_failed'
        when
            loss_stages.threshold is not null
            and case
                when loss_stages.is_higher_better
                    then coalesce(numbers.score_considered, loss_spots.end_score) < loss_stages.threshold
                else coalesce(numbers.score_considered, loss_spots.end_score) > loss_stages.threshold
            end then 'below_threshold'
        when loss_stages.kind = 'filter' then 'filtered'
        when loss_stages.kind in ('fuse', 'rerank', 'expand') and relatives.is_text_let_through = 1
            then 'deduplicated'
        when loss_stages.kind = 'fuse' then 'fused_out'
        when loss_stages.kind = 'rerank' then 'reranked_out'
        when loss_stages.kind = 'truncate' and relatives.is_id_let_through = 1 then 'cut_inside'
        when loss_stages.kind = 'truncate' then 'over_budget'
        when loss_stages.kind = 'compress' then 'compressed_away'
        when numbers.is_dropped = 1 then 'dropped'
    end as reason,
    case when loss_spots.side = 'out' then takers.failed_taker else probe_reasons.cause_stage end as cause_stage,
    case
        when numbers.is_dropped = 1
            then
                coalesce(numbers.drop_reason, 'dropped') || coalesce(' by ' || numbers.dropped_by, '')
        when loss_spots.side = 'out' then takers.failed_error_type
        else loss_stages.error_type
    end as detail,
    loss_spots.end_rank as rank_before,
    numbers.rank_considered,
    loss_stages.k,
    numbers.score_considered,
    loss_spots.end_score,
    probe_reasons.reason as probe_reason,
    coalesce(
        probe_reasons.probe,
        case
            when loss_spots.side = 'index'
                then
                    case
                        when coalesce(loss_stages.mode in ('exact', 'lexical', 'sql'), false) then 'deeper'
                        else 'exact'
                    end
        end
    ) as probe,
    probe_reasons.rank as rank_probed,
    probe_reasons.score as score_probed,
    probe_reasons.rank_original,
    probe_reasons.k as k_probed,
    loss_stages.threshold,
    coalesce(numbers.tokens_considered, loss_spots.end_tokens) as tokens,
    loss_stages.budget_tokens as budget
from loss_spots
inner join loss_stages on loss_spots.stage_id = loss_stages.stage_id
left join numbers
    on
        loss_spots.query_id = numbers.query_id
        and loss_spots.evidence_no = numbers.evidence_no
        and loss_spots.stage_id = numbers.stage_id
        and loss_spots.side = numbers.side
left join relatives
    on
        loss_spots.query_id = relatives.query_id
        and loss_spots.evidence_no = relatives.evidence_no
        and loss_spots.stage_id = relatives.stage_id
        and loss_spots.side = relatives.side
left join outdated
    on
        loss_spots.query_id = outdated.query_id
        and loss_spots.evidence_no = outdated.evidence_no
        and loss_spots.stage_id = outdated.stage_id
left join takers on loss_spots.stage_id = takers.stage_id
left join index_matches
    on
        loss_spots.query_id = index_matches.query_id
        and loss_spots.evidence_no = index_matches.evidence_no
        and loss_spots.stage_id = index_matches.stage_id
left join probe_reasons
    on
        loss_spots.side = 'index'
        and loss_spots.query_id = probe_reasons.query_id
        and loss_spots.evidence_no = probe_reasons.evidence_no
        and loss_spots.stage_id = probe_reasons.probed_stage_id
