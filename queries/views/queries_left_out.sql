-- view:    queries_left_out
-- answers: what is kept apart from the numbers, and why?
-- grain:   one row per run and cause
-- column:  run        varchar  label of the service's configuration; null for questions no query asked
-- column:  cause      varchar  of whole queries: interrupted, cache_hit, ambiguous_question, no_gold, unanswerable, evidence_unknown, no_final_context, no_label (none of its labels can be judged), not_whole (scored, but rows are missing); of single spans: stale, later, deleted, misaligned; of questions: not_asked
-- column:  n_queries  bigint   queries concerned, or questions that no query asked
-- column:  n_spans    bigint   evidence spans kept apart; null where the whole query is
-- reads:   query_scope, label_states, questions
with

whole_queries as (

    select
        query_scope.run,
        query_scope.scope as cause,
        count(*) as n_queries
    from query_scope
    where query_scope.scope <> 'scored'
    group by query_scope.run, query_scope.scope

),

labels as materialized (

    select
        label_states.query_id,
        label_states.state,
        label_states.is_scored
    from label_states

),

judged as (

    select distinct labels.query_id
    from labels
    where labels.is_scored

),

unlabelled as (

    select
        query_scope.run,
        count(*) as n_queries
    from query_scope
    left join judged
        on query_scope.query_id = judged.query_id
    where query_scope.scope = 'scored' and judged.query_id is null
    group by query_scope.run

),

partial as (

    select
        query_scope.run,
        count(*) as n_queries
    from query_scope
    where query_scope.scope = 'scored' and not query_scope.is_whole
    group by query_scope.run

),

spans as (

    select
        query_scope.run,
        labels.state as cause,
        count(distinct labels.query_id) as n_queries,
        count(*) as n_spans
    from labels
    inner join query_scope on labels.query_id = query_scope.query_id
    where not labels.is_scored
    group by query_scope.run, labels.state

),

asked as (

    select distinct query_scope.question_id
    from query_scope

),

unasked as (

    select count(*) as n_questions
    from questions
    left join asked
        on questions.question_id = asked.question_id
    where asked.question_id is null

)

select
    whole_queries.run,
    whole_queries.cause,
    whole_queries.n_queries,
    cast(null as bigint) as n_spans
from whole_queries
union all
select
    unlabelled.run,
    'no_label' as cause,
    unlabelled.n_queries,
    cast(null as bigint) as n_spans
from unlabelled
union all
select
    partial.run,
    'not_whole' as cause,
    partial.n_queries,
    cast(null as bigint) as n_spans
from partial
union all
select
    spans.run,
    spans.cause,
    spans.n_queries,
    spans.n_spans
from spans
union all
select
    cast(null as varchar) as run,
    'not_asked' as cause,
    unasked.n_questions as n_queries,
    cast(null as bigint) as n_spans
from unasked
where unasked.n_questions > 0
