-- report:  why_question
-- answers: was one query's question kept, and if not, where did its best set's worst need fall?
-- grain:   one row per scored query
-- param:   query_id              bigint = null  queries.query_id; null = every query
-- param:   run                   varchar = null  a run's label; null = every run
-- column:  query_id              bigint   queries.query_id
-- column:  verdict               varchar  kept, lost or unobserved
-- column:  set_no                integer  the set that came furthest
-- column:  need                  varchar  its need that fell first
-- column:  evidence_id           varchar  the span of that need that came furthest
-- column:  lost_kind             varchar  kind of the stage that lost it
-- column:  lost_stage            varchar  its name
-- column:  lost_at               varchar  in or after
-- column:  between_first         varchar  the last place where it surely was
-- column:  between_last          varchar  the last place where it may have been
-- column:  candidate_recall      double   share of needs among the candidates
-- column:  gained                double   share of needs in the final context that no retrieve run returned
-- column:  final_context_recall  double   share of needs in the final context
-- column:  candidate_recall_high      double  with all that may have been there
-- column:  final_context_recall_high  double  with all that may have been there
-- column:  final_how             varchar  how the final context is known
-- column:  is_whole              boolean  false: rows the recorder counted are missing
-- reads:   question_loss, query_recall, query_scope, queries
select
    question_loss.query_id as query_id,
    question_loss.verdict as verdict,
    question_loss.set_no as set_no,
    question_loss.need as need,
    question_loss.evidence_id as evidence_id,
    question_loss.lost_kind as lost_kind,
    question_loss.lost_stage as lost_stage,
    question_loss.lost_at as lost_at,
    question_loss.between_first as between_first,
    question_loss.between_last as between_last,
    query_recall.candidate_recall as candidate_recall,
    query_recall.gained as gained,
    query_recall.final_context_recall as final_context_recall,
    query_recall.candidate_recall_high as candidate_recall_high,
    query_recall.final_context_recall_high as final_context_recall_high,
    query_scope.final_how as final_how,
    query_scope.is_whole as is_whole
from question_loss
inner join query_recall on question_loss.query_id = query_recall.query_id
inner join query_scope on question_loss.query_id = query_scope.query_id
where
    (cast($query_id as bigint) is null or question_loss.query_id = cast($query_id as bigint))
    and (
        cast($run as varchar) is null
        or question_loss.query_id in (
            select queries.query_id
            from queries
            where queries.run = cast($run as varchar)
        )
    )
order by question_loss.query_id
