-- report:  nearest_questions
-- answers: which recorded questions come nearest to a text or id that fits none?
-- grain:   one row per question
-- param:   asked        varchar        what was asked for
-- param:   n            integer = 5    how many at most
-- column:  question_id  varchar  the labelled question's id, when there is one
-- column:  question     varchar  its text, when it was captured or labelled
-- column:  n_queries    bigint   recorded queries
-- column:  similarity   double   0..1, of the text or of the id, whichever is nearer
-- reads:   queries, query_scope, questions
with

recorded as (

    select
        query_scope.question_id,
        coalesce(queries.question, questions.question) as question,
        count(*) as n_queries
    from queries
    inner join query_scope on queries.query_id = query_scope.query_id
    left join questions on query_scope.question_id = questions.question_id
    group by query_scope.question_id, coalesce(queries.question, questions.question)

),

-- A part of the text is what people remember; Jaro-Winkler forgives slips of the finger.
compared as (

    select
        recorded.question_id,
        recorded.question,
        recorded.n_queries,
        greatest(
            case when contains(lower(recorded.question), lower($asked)) then 0.95 else 0.0 end,
            jaro_winkler_similarity(lower(coalesce(recorded.question, '')), lower($asked)),
            jaro_winkler_similarity(lower(coalesce(recorded.question_id, '')), lower($asked))
        ) as similarity
    from recorded
    where recorded.question_id is not null or recorded.question is not null

)

select
    compared.question_id as question_id,
    compared.question as question,
    compared.n_queries as n_queries,
    compared.similarity as similarity
from compared
order by compared.similarity desc, compared.question_id asc, compared.question asc
limit $n
