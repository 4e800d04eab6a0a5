-- view:    stage_loss
-- answers: at which stage was each gold evidence span lost, and why?
-- grain:   one row per scored query and evidence span
-- column:  run                          varchar  label of the service's configuration
-- column:  query_id                     bigint   queries.query_id
-- column:  question_id                  varchar  the labelled question
-- column:  kind                         varchar  the question's kind
-- column:  set_no                       integer  any complete set is enough
-- column:  need                         varchar  all needs of a set are needed, any span of a need is enough
-- column:  evidence_id                  varchar  evidence.evidence_id
-- column:  doc_id                       varchar  the document
-- column:  verdict                      varchar  kept, lost or unobserved; stale or misaligned: the label is kept apart and counts nowhere
-- column:  lost_kind                    varchar  kind of the stage that lost it: ingest, parse, chunk, index, retrieve ...; null when it is not certain
-- column:  lost_stage                   varchar  the user's name for that stage; an or of stages joined by or
-- column:  lost_at                      varchar  in: it went in and did not come out; after: it came out and did not arrive
-- column:  between_first                varchar  unobserved, or lost at no certain place: the last place where it surely was
-- column:  between_last                 varchar  lost at no certain place: the last place where it may have been
-- column:  reason                       varchar  why, as docs/reasons.md says; unprobed without proof; null unless lost
-- column:  cause_stage                  varchar  another stage that is proved to be the cause
-- column:  detail                       varchar  what was declared: reason and rule of a drop, error type; why a label is stale
-- column:  candidate_coverage           double   share of the span in what the retrieve runs returned
-- column:  final_coverage               double   share of the span in the final context
-- column:  candidate_coverage_possible  double   with all that may have been there
-- column:  final_coverage_possible      double   with all that may have been there
-- column:  rank_before                  integer  best rank in the list that still had it
-- column:  rank_after                   integer  best rank the losing stage itself gave to it
-- column:  k                            integer  how many the losing stage lets through
-- reads:   span_reasons, needed_evidence, queries, questions
with

numbered as (

    select
        span_reasons.query_id,
        span_reasons.evidence_no,
        span_reasons.verdict,
        span_reasons.lost_kind,
        span_reasons.lost_stage,
        span_reasons.lost_at,
        span_reasons.between_first,
        span_reasons.between_last,
        span_reasons.reason,
        span_reasons.cause_stage,
        span_reasons.detail,
        span_reasons.candidate_coverage,
        span_reasons.final_coverage,
        span_reasons.candidate_coverage_possible,
        span_reasons.final_coverage_possible,
        span_reasons.rank_before,
        span_reasons.rank_after,
        span_reasons.k,
        row_number() over (
            partition by span_reasons.query_id, span_reasons.evidence_no
            order by span_reasons.reason_order, span_reasons.rank_before, span_reasons.stage, span_reasons.stage_id
        ) as reason_no
    from span_reasons

)

select
    queries.run,
    numbered.query_id,
    needed_evidence.question_id,
    questions.kind,
    needed_evidence.set_no,
    needed_evidence.need,
    needed_evidence.evidence_id,
    needed_evidence.doc_id,
    numbered.verdict,
    numbered.lost_kind,
    numbered.lost_stage,
    numbered.lost_at,
    numbered.between_first,
    numbered.between_last,
    numbered.reason,
    numbered.cause_stage,
    numbered.detail,
    numbered.candidate_coverage,
    numbered.final_coverage,
    numbered.candidate_coverage_possible,
    numbered.final_coverage_possible,
    numbered.rank_before,
    numbered.rank_after,
    numbered.k
from numbered
inner join needed_evidence on numbered.evidence_no = needed_evidence.evidence_no
inner join queries on numbered.query_id = queries.query_id
inner join questions on needed_evidence.question_id = questions.question_id
where numbered.reason_no = 1
