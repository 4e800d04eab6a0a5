-- view:    query_recall
-- answers: how much of its gold did a query find among its candidates, and how much reached the answer?
-- grain:   one row per scored query with a label that can be judged
-- column:  query_id                  bigint   queries.query_id
-- column:  run                       varchar  label of the service's configuration
-- column:  question_id               varchar  the labelled question
-- column:  is_judged                 boolean  nothing unrecorded could change its recalls
-- column:  candidate_recall          double   share of needs surely in what the retrieve runs returned, best set there
-- column:  final_context_recall      double   share of needs surely in the final context, best set there
-- column:  gained                    double   share of the needs of that best set in the final context though no retrieve run returned them
-- column:  lost                      double   candidate_recall + gained - final_context_recall
-- column:  candidate_complete        integer  1: some set is complete among the candidates
-- column:  final_complete            integer  1: some set is complete in the final context
-- column:  candidate_recall_high     double   with all that may have been there
-- column:  final_context_recall_high double   with all that may have been there
-- column:  candidate_complete_high   integer  with all that may have been there
-- column:  final_complete_high       integer  with all that may have been there
-- reads:   span_verdicts, needed_evidence, query_scope, setting_values
with

spans as (

    select
        span_verdicts.query_id,
        needed_evidence.set_no,
        needed_evidence.need,
        span_verdicts.candidate_coverage >= setting_values.min_coverage - 1e-9 as is_candidate,
        span_verdicts.final_coverage >= setting_values.min_coverage - 1e-9 as is_final,
        span_verdicts.candidate_coverage_possible >= setting_values.min_coverage - 1e-9 as may_be_candidate,
        span_verdicts.final_coverage_possible >= setting_values.min_coverage - 1e-9 as may_be_final
    from span_verdicts
    inner join needed_evidence on span_verdicts.evidence_no = needed_evidence.evidence_no
    cross join setting_values
    where span_verdicts.sure_order >= 0

),

needs as (

    select
        spans.query_id,
        spans.set_no,
        spans.need,
        max(case when spans.is_candidate then 1 else 0 end) as is_candidate,
        max(case when spans.is_final then 1 else 0 end) as is_final,
        max(case when spans.may_be_candidate then 1 else 0 end) as may_be_candidate,
        max(case when spans.may_be_final then 1 else 0 end) as may_be_final
    from spans
    group by spans.query_id, spans.set_no, spans.need

),

sets as (

    select
        needs.query_id,
        needs.set_no,
        avg(needs.is_candidate) as candidate_recall,
        avg(needs.is_final) as final_recall,
        avg(case when needs.is_final = 1 and needs.is_candidate = 0 then 1 else 0 end) as gained,
        avg(needs.may_be_candidate) as candidate_recall_high,
        avg(needs.may_be_final) as final_recall_high,
        min(needs.is_candidate) as candidate_complete,
        min(needs.is_final) as final_complete,
        min(needs.may_be_candidate) as candidate_complete_high,
        min(needs.may_be_final) as final_complete_high
    from needs
    group by needs.query_id, needs.set_no

),

ranked as (

    select
        sets.query_id,
        sets.set_no,
        sets.candidate_recall,
        sets.final_recall,
        sets.gained,
        sets.candidate_recall_high,
        sets.final_recall_high,
        sets.candidate_complete,
        sets.final_complete,
        sets.candidate_complete_high,
        sets.final_complete_high,
        row_number() over (
            partition by sets.query_id order by sets.final_recall desc, sets.gained asc, sets.set_no asc
        ) as final_place
    from sets

),

best as (

    select
        ranked.query_id,
        max(ranked.candidate_recall) as candidate_recall,
        max(ranked.final_recall) as final_recall,
        max(case when ranked.final_place = 1 then ranked.gained end) as gained,
        max(ranked.candidate_recall_high) as candidate_recall_high,
        max(ranked.final_recall_high) as final_recall_high,
        max(ranked.candidate_complete) as candidate_complete,
        max(ranked.final_complete) as final_complete,
        max(ranked.candidate_complete_high) as candidate_complete_high,
        max(ranked.final_complete_high) as final_complete_high
    from ranked
    group by ranked.query_id

)

select
    best.query_id,
    query_scope.run,
    query_scope.question_id,
    best.candidate_recall = best.candidate_recall_high
    and best.final_recall = best.final_recall_high
    and best.candidate_complete = best.candidate_complete_high
    and best.final_complete = best.final_complete_high as is_judged,
    best.candidate_recall,
    best.final_recall as final_context_recall,
    best.gained,
    best.candidate_recall + best.gained - best.final_recall as lost,
    best.candidate_complete,
    best.final_complete,
    best.candidate_recall_high,
    best.final_recall_high as final_context_recall_high,
    best.candidate_complete_high,
    best.final_complete_high
from best
inner join query_scope on best.query_id = query_scope.query_id
