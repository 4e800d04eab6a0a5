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
-- reads:   span_verdicts, stage_findings, layer_reasons
with

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

explained as (

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
        span_verdicts.candidate_coverage,
        span_verdicts.final_coverage,
        span_verdicts.candidate_coverage_possible,
        span_verdicts.final_coverage_possible,
        stage_reasons.stage_id,
        stage_reasons.stage,
        case
            when span_verdicts.verdict = 'lost' then coalesce(stage_reasons.reason, layer_reasons.reason, 'unprobed')
        end as reason,
        case
            when span_verdicts.verdict = 'lost' and stage_reasons.reason is not null then stage_reasons.proof
            when span_verdicts.verdict = 'lost' and layer_reasons.reason is not null then layer_reasons.proof
        end as proof,
        case
            when span_verdicts.verdict <> 'lost' then null
            when stage_reasons.stage_id is not null then stage_reasons.probe
            when layer_reasons.proof = 'probe' then 'by_id'
            -- Between the layers and the retriever: whether the index has it is what nobody knows.
            when span_verdicts.lost_kind is null and span_verdicts.sure_order < 4 then 'by_id'
        end as probe,
        stage_reasons.cause_stage,
        case span_verdicts.sure_order
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
    from span_verdicts
    left join stage_reasons
        on span_verdicts.query_id = stage_reasons.query_id and span_verdicts.evidence_no = stage_reasons.evidence_no
    left join layer_reasons
        on span_verdicts.query_id = layer_reasons.query_id and span_verdicts.evidence_no = layer_reasons.evidence_no

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
