-- report:  matching_queries
-- answers: which recorded queries does a person mean by an id or by the question's text?
-- grain:   one row per query
-- param:   asked       varchar   query_id, question_id or the exact text of the question
-- param:   text_hash   varchar = null  blake2b-128 hex of that text: finds questions whose text was not captured
-- column:  query_id    bigint    queries.query_id
-- column:  run         varchar   label of the service's configuration
-- column:  question_id varchar   the labelled question it asks, when there is one
-- column:  question    varchar   as asked, else as labelled
-- column:  status      varchar   ok, error, cancelled or interrupted
-- column:  started_at  timestamp UTC
-- column:  matched_by  varchar   query_id, question_id or text
-- column:  scope       varchar   query_scope.scope
-- reads:   queries, query_scope, questions
with

known as (

    select
        queries.query_id,
        queries.run,
        query_scope.question_id,
        coalesce(queries.question, questions.question) as question,
        queries.status,
        make_timestamp(queries.started_at_ns // 1000) as started_at,
        query_scope.scope,
        case
            when queries.query_id = try_cast($asked as bigint) then 'query_id'
            when query_scope.question_id = $asked then 'question_id'
            when
                queries.question = $asked
                or questions.question = $asked
                or queries.question_hash = $text_hash
                then 'text'
        end as matched_by
    from queries
    inner join query_scope on queries.query_id = query_scope.query_id
    left join questions on query_scope.question_id = questions.question_id

)

select
    known.query_id as query_id,
    known.run as run,
    known.question_id as question_id,
    known.question as question,
    known.status as status,
    known.started_at as started_at,
    known.matched_by as matched_by,
    known.scope as scope
from known
where known.matched_by is not null
order by known.started_at desc, known.query_id desc
