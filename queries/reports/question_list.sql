-- report:  question_list
-- answers: which questions were asked, and what became of the evidence of each?
-- grain:   one row per recorded query
-- param:   run                   varchar = null  a run's label; null = every run
-- column:  run                   varchar    label of the service's configuration
-- column:  query_id              bigint     queries.query_id
-- column:  question_id           varchar    the labelled question it asks, when there is one
-- column:  question              varchar    as asked, else as labelled; null when neither was captured
-- column:  kind                  varchar    the question's kind in its gold set
-- column:  tags                  varchar[]  the question's tags
-- column:  status                varchar    ok, error, cancelled or interrupted
-- column:  started_at            timestamp  UTC
-- column:  scope                 varchar    query_scope.scope
-- column:  verdict               varchar    kept, lost or unobserved; null when the query is not judged
-- column:  lost_kind             varchar    kind of the stage that lost the best set's worst need
-- column:  lost_stage            varchar    its name
-- column:  lost_at               varchar    in or after
-- column:  between_first         varchar    place not certain: the last one where it surely was
-- column:  between_last          varchar    place not certain: the last one where it may have been
-- column:  reasons               varchar    why the spans of that need were lost, codes of docs/reasons.md joined by comma;
--                                            null when the question was kept
-- column:  candidate_recall      double     share of needs among the candidates
-- column:  final_context_recall  double     share of needs in the final context
-- reads:   queries, query_scope, questions, question_loss, query_recall, stage_loss
with

lost_spans as (

    select
        stage_loss.query_id,
        string_agg(distinct stage_loss.reason, ', ' order by stage_loss.reason) as reasons
    from stage_loss
    inner join question_loss
        on
            stage_loss.query_id = question_loss.query_id
            and stage_loss.set_no = question_loss.set_no
            and stage_loss.need = question_loss.need
    where stage_loss.verdict = 'lost' and question_loss.verdict <> 'kept'
    group by stage_loss.query_id

)

select
    queries.run as run,
    queries.query_id as query_id,
    query_scope.question_id as question_id,
    coalesce(queries.question, questions.question) as question,
    questions.kind as kind,
    questions.tags as tags,
    queries.status as status,
    make_timestamp(queries.started_at_ns // 1000) as started_at,
    query_scope.scope as scope,
    question_loss.verdict as verdict,
    question_loss.lost_kind as lost_kind,
    question_loss.lost_stage as lost_stage,
    question_loss.lost_at as lost_at,
    question_loss.between_first as between_first,
    question_loss.between_last as between_last,
    lost_spans.reasons as reasons,
    query_recall.candidate_recall as candidate_recall,
    query_recall.final_context_recall as final_context_recall
from queries
inner join query_scope on queries.query_id = query_scope.query_id
left join questions on query_scope.question_id = questions.question_id
left join question_loss on queries.query_id = question_loss.query_id
left join query_recall on queries.query_id = query_recall.query_id
left join lost_spans on queries.query_id = lost_spans.query_id
where cast($run as varchar) is null or queries.run = cast($run as varchar)
order by queries.run asc, queries.started_at_ns asc, queries.query_id asc
