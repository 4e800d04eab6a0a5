-- view:    reasons
-- answers: why was a span lost, and what are the numbers that prove it?
-- grain:   one row per lost evidence span and stage run it fell at (each retrieve run when none returned it)
-- column:  run          varchar  label of the service's configuration
-- column:  query_id     bigint   queries.query_id
-- column:  question_id  varchar  the labelled question
-- column:  evidence_id  varchar  evidence.evidence_id
-- column:  lost_kind    varchar  kind of the stage that lost it; null when it is not certain
-- column:  lost_stage   varchar  its name
-- column:  lost_at      varchar  in or after
-- column:  stage_id     bigint   the stage run this reason is about; null when none is named
-- column:  stage        varchar  its name
-- column:  reason       varchar  docs/reasons.md; unprobed without proof
-- column:  proof        varchar  class of proof: record, declared or probe; null for unprobed
-- column:  probe        varchar  proof by probe: the one that proves it; unprobed: the one that would, null where none can
-- column:  cause_stage  varchar  another stage that is proved to be the cause
-- column:  detail       varchar  what was declared: reason and rule of a drop, error type
-- column:  notes        varchar  split, cut_in_tie, crowded_by_duplicates, same_text_kept, several; joined by comma, null when there is none
-- column:  rank_before  integer  best rank of what was lost in the list that still had it
-- column:  rank_after   integer  best rank the stage itself gave to it without letting it through; by a probe: the rank it has there
-- column:  rank_original  integer  by a probe: its rank by the question as asked
-- column:  k            integer  how many the stage lets through
-- column:  score        double   the stage's score of it, else the score it came with
-- column:  last_score   double   score of the last one it let through
-- column:  threshold    double   score a candidate must reach
-- column:  gap          double   how far the score is from the threshold, else from the last one let through; null where the stage itself gave it no score
-- column:  tokens       integer  tokens it would have taken
-- column:  budget       integer  the stage's token budget
-- column:  tokens_left  bigint   what of the budget the stage did not use; null where it does not say the tokens of what it let through
-- reads:   span_reasons, piece_ends, needed_evidence, query_scope, item_covers, items, lists, places, place_lists, candidates
with

lost as materialized (

    select distinct
        span_reasons.query_id,
        span_reasons.evidence_no,
        span_reasons.lost_kind,
        span_reasons.lost_stage,
        span_reasons.lost_at,
        span_reasons.sure_order,
        span_reasons.final_coverage,
        span_reasons.stage_id,
        span_reasons.stage,
        span_reasons.reason,
        span_reasons.proof,
        span_reasons.probe,
        span_reasons.cause_stage,
        span_reasons.detail,
        span_reasons.rank_before,
        span_reasons.rank_after,
        span_reasons.rank_original,
        span_reasons.k,
        span_reasons.score,
        span_reasons.threshold,
        span_reasons.tokens,
        span_reasons.budget
    from span_reasons
    where span_reasons.verdict = 'lost'

),

output_rows as materialized (

    select
        lists.stage_id,
        candidates.rank,
        candidates.score,
        candidates.tokens,
        candidates.item,
        items.item_text_hash
    from (
        select distinct lost.stage_id from lost
        where lost.stage_id is not null
    ) as fallen
    inner join lists on fallen.stage_id = lists.stage_id
    inner join candidates on coalesce(lists.same_as_list_id, lists.list_id) = candidates.list_id
    inner join items on candidates.item = items.item
    where lists.role = 'out' and candidates.is_kept is distinct from false

),

outputs as (

    select
        output_rows.stage_id,
        arg_max(output_rows.score, output_rows.rank) as last_score,
        case when count(output_rows.tokens) = count(*) then sum(output_rows.tokens) end as n_tokens,
        count(output_rows.item_text_hash) - count(distinct output_rows.item_text_hash) as n_duplicates
    from output_rows
    group by output_rows.stage_id

),

-- The lost span's own texts: a twin of one of them may have arrived.
lost_texts as (

    select distinct
        lost.query_id,
        lost.evidence_no,
        items.item_text_hash
    from lost
    inner join item_covers on lost.evidence_no = item_covers.evidence_no
    inner join items on item_covers.item = items.item
    where items.item_text_hash is not null and item_covers.role = 'own'

),

final_texts as (

    select distinct
        place_lists.query_id,
        items.item_text_hash
    from (select distinct lost.query_id from lost) as queries_lost
    inner join places on queries_lost.query_id = places.query_id and places.side = 'context'
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    inner join candidates on place_lists.list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where items.item_text_hash is not null and candidates.is_kept is distinct from false

),

twins as (

    select distinct
        lost_texts.query_id,
        lost_texts.evidence_no
    from lost_texts
    inner join final_texts
        on lost_texts.query_id = final_texts.query_id and lost_texts.item_text_hash = final_texts.item_text_hash

),

parts as (

    select
        piece_ends.query_id,
        piece_ends.evidence_no,
        count(distinct piece_ends.piece) as n_pieces,
        count(distinct piece_ends.end_order) filter (where not piece_ends.is_final) as n_places
    from piece_ends
    where piece_ends.reading in ('sure', 'both') and piece_ends.weight > 0
    group by piece_ends.query_id, piece_ends.evidence_no

)

select
    query_scope.run,
    lost.query_id,
    query_scope.question_id,
    needed_evidence.evidence_id,
    lost.lost_kind,
    lost.lost_stage,
    lost.lost_at,
    lost.stage_id,
    lost.stage,
    lost.reason,
    lost.proof,
    lost.probe,
    lost.cause_stage,
    lost.detail,
    nullif(concat_ws(
        ', ',
        case when parts.n_pieces > 1 then 'split' end,
        case
            when
                lost.lost_at = 'in' and lost.sure_order >= 10
                and lost.score = outputs.last_score then 'cut_in_tie'
        end,
        case when outputs.n_duplicates > 0 and lost.lost_at = 'in' then 'crowded_by_duplicates' end,
        case when twins.query_id is not null then 'same_text_kept' end,
        case when parts.n_places > 1 then 'several' end
    ), '') as notes,
    lost.rank_before,
    lost.rank_after,
    lost.rank_original,
    lost.k,
    lost.score,
    outputs.last_score,
    lost.threshold,
    -- A score it came with and one the stage gave are on different scales.
    case
        when lost.threshold is not null or lost.rank_after is not null
            then abs(lost.score - coalesce(lost.threshold, outputs.last_score))
    end as gap,
    lost.tokens,
    lost.budget,
    cast(greatest(lost.budget - outputs.n_tokens, 0) as bigint) as tokens_left
from lost
inner join needed_evidence on lost.evidence_no = needed_evidence.evidence_no
inner join query_scope on lost.query_id = query_scope.query_id
left join outputs on lost.stage_id = outputs.stage_id
left join twins on lost.query_id = twins.query_id and lost.evidence_no = twins.evidence_no
left join parts on lost.query_id = parts.query_id and lost.evidence_no = parts.evidence_no
