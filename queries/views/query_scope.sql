-- view:    query_scope
-- answers: which queries are scored, against which question, and why are the others left out?
-- grain:   one row per query
-- kept:    during a refresh
-- column:  query_id       bigint   queries.query_id
-- column:  run            varchar  label of the service's configuration
-- column:  run_kind       varchar  actual, closed_book or oracle
-- column:  question_id    varchar  the labelled question it asks, by its id, else by its exact text
-- column:  kind           varchar  the question's kind
-- column:  scope          varchar  scored, interrupted, cache_hit, ambiguous_question, no_gold, unanswerable, evidence_unknown or no_final_context
-- column:  final_how      varchar  how the final context is known; unknown when it is not
-- column:  is_whole       boolean  false: rows the recorder counted are missing
-- column:  started_at_ns  bigint   start of the query
-- column:  process_id     bigint   the process that recorded it
-- column:  host           varchar  its host
-- reads:   queries, questions, query_flows, processes, needed_evidence
with

texts as (

    select
        questions.question_hash,
        min(questions.question_id) as question_id,
        count(*) as n_questions
    from questions
    where questions.question_hash is not null
    group by questions.question_hash

),

labelled as (

    select distinct needed_evidence.question_id
    from needed_evidence

),

asked as (

    select
        queries.query_id,
        queries.run,
        coalesce(queries.run_kind, 'actual') as run_kind,
        coalesce(queries.question_id, case when texts.n_questions = 1 then texts.question_id end) as question_id,
        queries.question_id is null and coalesce(texts.n_questions, 0) > 1 as is_ambiguous,
        queries.served_from_query_id is not null as is_cache_hit,
        coalesce(queries.status, 'ok') as status,
        coalesce(query_flows.final_how, 'unknown') as final_how,
        coalesce(query_flows.is_whole, true) as is_whole,
        queries.started_at_ns,
        queries.process_id,
        processes.host
    from queries
    left join texts on queries.question_hash = texts.question_hash
    left join query_flows on queries.query_id = query_flows.query_id
    left join processes on queries.process_id = processes.process_id

)

select
    asked.query_id,
    asked.run,
    asked.run_kind,
    asked.question_id,
    questions.kind,
    case
        -- Its question went down with its row, so no label could ever be its.
        when asked.status = 'interrupted' then 'interrupted'
        when asked.is_cache_hit then 'cache_hit'
        when asked.is_ambiguous then 'ambiguous_question'
        when questions.question_id is null then 'no_gold'
        when questions.is_evidence_unknown then 'evidence_unknown'
        when questions.is_unanswerable then 'unanswerable'
        when labelled.question_id is null then 'no_gold'
        -- A query that failed has a final context only where one was handed to the answer; a leftover output is none.
        when asked.status <> 'ok' and asked.final_how in ('unknown', 'inferred') then 'no_final_context'
        else 'scored'
    end as scope,
    asked.final_how,
    asked.is_whole,
    asked.started_at_ns,
    asked.process_id,
    asked.host
from asked
left join questions on asked.question_id = questions.question_id
left join labelled on asked.question_id = labelled.question_id
