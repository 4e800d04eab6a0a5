-- report:  why_reasons
-- answers: what does the record prove about each place where evidence of one query fell?
-- grain:   one row per query, evidence span and stage run it fell at; one when it was kept or no stage run is named
-- param:   query_id            bigint = null  queries.query_id; null = every query
-- param:   run                 varchar = null  a run's label; null = every run
-- column:  query_id            bigint   queries.query_id
-- column:  evidence_id         varchar  evidence.evidence_id
-- column:  verdict             varchar  kept, lost or unobserved
-- column:  lost_kind           varchar  kind of the stage; null when the place is not certain
-- column:  lost_stage          varchar  the user's name for it
-- column:  lost_at             varchar  in or after
-- column:  between_first       varchar  the last place where it surely was
-- column:  between_last        varchar  the last place where it may have been
-- column:  stage               varchar  the stage run this row speaks of
-- column:  mode                varchar  how that stage searches: ann, exact, lexical, sql; null when not declared
-- column:  reason              varchar  docs/reasons.md; unprobed without proof; null unless lost
-- column:  proof               varchar  class of proof: record, declared or probe; null for unprobed
-- column:  probe               varchar  the probe that proves it; unprobed: the one that would, null where none can
-- column:  cause_stage         varchar  another stage that is proved to be the cause
-- column:  detail              varchar  what was declared: reason and rule of a drop, error type
-- column:  notes               varchar  split, cut_in_tie, crowded_by_duplicates, same_text_kept, several; by comma
-- column:  rank_before         integer  best rank in the list that still had it
-- column:  rank_after          integer  best rank the stage itself gave to it without letting it through; by a probe: the
--                                       rank it has there
-- column:  rank_original       integer  by a probe: its rank by the question as asked
-- column:  k                   integer  how many the stage lets through, as declared
-- column:  n_out               bigint   how many it did let through
-- column:  score               double   the stage's score of it, else the score it came with
-- column:  last_score          double   score of the last one it let through
-- column:  gap                 double   how far the score is from the threshold, else from the last one let through;
--                                       null on another scale
-- column:  threshold           double   score a candidate must reach
-- column:  tokens              integer  tokens it would have taken
-- column:  budget              integer  the stage's token budget
-- column:  tokens_left         bigint   what of the budget the stage did not use
-- column:  similarity          double   text_garbled: share of the passage's letters and digits in the nearest one
-- column:  question            varchar  query_drift: the question as asked, as far as captured
-- column:  query_text          varchar  query_drift: what the stage was asked instead
-- column:  candidate_coverage  double   share of the span among the candidates
-- column:  final_coverage      double   share of the span in the final context
-- reads:   stage_loss, reasons, lists, evidence_places, stages, queries
with

verdicts as (

    select
        stage_loss.query_id,
        stage_loss.evidence_id,
        stage_loss.verdict,
        stage_loss.lost_kind,
        stage_loss.lost_stage,
        stage_loss.lost_at,
        stage_loss.between_first,
        stage_loss.between_last,
        stage_loss.candidate_coverage,
        stage_loss.final_coverage
    from stage_loss
    where cast($query_id as bigint) is null or stage_loss.query_id = cast($query_id as bigint)

),

proofs as (

    select
        reasons.query_id,
        reasons.evidence_id,
        reasons.stage_id,
        reasons.stage,
        reasons.reason,
        reasons.proof,
        reasons.probe,
        reasons.cause_stage,
        reasons.detail,
        reasons.notes,
        reasons.rank_before,
        reasons.rank_after,
        reasons.rank_original,
        reasons.k,
        reasons.score,
        reasons.last_score,
        reasons.gap,
        reasons.threshold,
        reasons.tokens,
        reasons.budget,
        reasons.tokens_left
    from reasons
    where cast($query_id as bigint) is null or reasons.query_id = cast($query_id as bigint)

),

likenesses as (

    select
        evidence_places.evidence_id,
        max(evidence_places.similarity) as similarity
    from evidence_places
    where evidence_places.quality = 'text_garbled'
    group by evidence_places.evidence_id

),

sizes as (

    select
        lists.stage_id,
        cast(sum(lists.n_candidates) as bigint) as n_out
    from lists
    where
        lists.role = 'out'
        and (cast($query_id as bigint) is null or lists.query_id = cast($query_id as bigint))
    group by lists.stage_id

)

select
    verdicts.query_id as query_id,
    verdicts.evidence_id as evidence_id,
    verdicts.verdict as verdict,
    verdicts.lost_kind as lost_kind,
    verdicts.lost_stage as lost_stage,
    verdicts.lost_at as lost_at,
    verdicts.between_first as between_first,
    verdicts.between_last as between_last,
    proofs.stage as stage,
    stages.mode as mode,
    proofs.reason as reason,
    proofs.proof as proof,
    proofs.probe as probe,
    proofs.cause_stage as cause_stage,
    proofs.detail as detail,
    proofs.notes as notes,
    proofs.rank_before as rank_before,
    proofs.rank_after as rank_after,
    proofs.rank_original as rank_original,
    proofs.k as k,
    sizes.n_out as n_out,
    proofs.score as score,
    proofs.last_score as last_score,
    proofs.gap as gap,
    proofs.threshold as threshold,
    proofs.tokens as tokens,
    proofs.budget as budget,
    proofs.tokens_left as tokens_left,
    case when proofs.reason = 'text_garbled' then likenesses.similarity end as similarity,
    case when proofs.reason = 'query_drift' then queries.question end as question,
    case when proofs.reason = 'query_drift' then stages.query_text end as query_text,
    verdicts.candidate_coverage as candidate_coverage,
    verdicts.final_coverage as final_coverage
from verdicts
left join proofs on verdicts.query_id = proofs.query_id and verdicts.evidence_id = proofs.evidence_id
left join sizes on proofs.stage_id = sizes.stage_id
left join likenesses on verdicts.evidence_id = likenesses.evidence_id
left join stages on proofs.stage_id = stages.stage_id
left join queries on stages.query_id = queries.query_id
where
    cast($run as varchar) is null
    or verdicts.query_id in (
        select asked.query_id
        from queries as asked
        where asked.run = cast($run as varchar)
    )
order by verdicts.query_id, verdicts.evidence_id, stages.start_no, proofs.stage, proofs.stage_id
