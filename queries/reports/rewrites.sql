-- report:  rewrites
-- answers: what did rewriting drop and add, and do questions that lost a term lose their evidence more often?
-- grain:   one row per run, change and class of term
-- param:   run                    varchar = null  a run's label; null = every run
-- column:  run                    varchar  label of the service's configuration
-- column:  change                 varchar  dropped (in the question, in no text that a retriever was asked) or added (the reverse)
-- column:  class                  varchar  date (a year, a date, a month), number, name (a capital inside a sentence) or word
-- column:  n_queries              bigint   queries with such a term
-- column:  n_terms                bigint   such terms, once a query
-- column:  n_in_evidence          bigint   of these that the text of a gold span has
-- column:  n_judged               bigint   of n_queries that are judged
-- column:  n_lost                 bigint   of n_judged whose evidence was not kept
-- column:  n_not_retrieved        bigint   of n_lost whose evidence no retriever returned in full
-- column:  n_rewritten            bigint   queries of the run that no retriever was asked as they were put: all that is compared here
-- column:  n_as_asked             bigint   queries of which a retriever was asked the question itself
-- column:  n_left_out             bigint   queries whose question or searched text was not captured
-- reads:   query_scope, queries, retrieve_runs, stages, evidence, query_recall
with

searched as (

    select
        query_scope.run,
        query_scope.query_id,
        query_scope.question_id,
        queries.question,
        list_distinct(list(stages.query_text order by stages.start_no)) as searched
    from query_scope
    inner join queries on query_scope.query_id = queries.query_id
    inner join retrieve_runs on query_scope.query_id = retrieve_runs.query_id
    inner join stages on retrieve_runs.stage_id = stages.stage_id
    where
        queries.question is not null
        and stages.query_text is not null
        and (cast($run as varchar) is null or query_scope.run = cast($run as varchar))
    group by query_scope.run, query_scope.query_id, query_scope.question_id, queries.question
    having not list_contains(list(stages.query_text), queries.question)

),

texts_compared as (

    select
        searched.query_id,
        'question' as side,
        searched.question as text
    from searched
    union all
    select
        searched.query_id,
        'searched' as side,
        array_to_string(searched.searched, chr(10)) as text
    from searched
    union all
    select
        searched.query_id,
        'evidence' as side,
        string_agg(coalesce(evidence.span_text, evidence.quote), chr(10)) as text
    from searched
    inner join evidence on searched.question_id = evidence.question_id and evidence.is_need
    group by searched.query_id

),

-- A number keeps its points and commas inside; a word ends where its script does; Chinese and Japanese have no blanks:
-- there a term is a pair of characters.
as_written as (

    select
        texts_compared.query_id,
        texts_compared.side,
        texts_compared.text,
        unnest(
            regexp_extract_all(
                texts_compared.text,
                '\p{N}+(?:[.,:/-]\p{N}+)*|[\p{Han}\p{Hiragana}\p{Katakana}]+|'
                || '(?:[\p{Latin}\p{Greek}\p{Cyrillic}\p{Hangul}\p{Arabic}\p{Hebrew}\p{Devanagari}\p{Thai}]|\p{M})+'
            )
        ) as word
    from texts_compared

),

paired as (

    select
        as_written.query_id,
        as_written.side,
        as_written.text,
        as_written.word
    from as_written
    where not regexp_matches(as_written.word, '^[\p{Han}\p{Hiragana}\p{Katakana}]{3,}$')
    union all
    select
        as_written.query_id,
        as_written.side,
        as_written.text,
        substring(as_written.word, unnest(range(1, length(as_written.word))), 2) as word
    from as_written
    where regexp_matches(as_written.word, '^[\p{Han}\p{Hiragana}\p{Katakana}]{3,}$')

),

-- A capital that no sentence begins with.
names as (

    select distinct
        texts_compared.query_id,
        lower(
            unnest(
                string_split_regex(
                    array_to_string(
                        regexp_extract_all(
                            texts_compared.text,
                            '[^.?!:\s]\s+["''(]*(\p{Lu}[\p{L}\p{M}]*(?:\s+\p{Lu}[\p{L}\p{M}]*)*)',
                            1
                        ),
                        ' '
                    ),
                    '\s+'
                )
            )
        ) as term
    from texts_compared

),

terms as (

    select
        paired.query_id,
        paired.side,
        lower(paired.word) as term
    from paired
    group by paired.query_id, paired.side, lower(paired.word)

),

-- 3 and 30 days are numbers, 2021, 2021-03-04 and a month's name before a number are dates.
sides as (

    select
        terms.query_id,
        terms.term,
        bool_or(terms.side = 'question') as is_in_question,
        bool_or(terms.side = 'searched') as is_in_searched,
        bool_or(terms.side = 'evidence') as is_in_evidence,
        case
            when
                regexp_matches(terms.term, '^(1[5-9]|20)\p{N}{2}$')
                or regexp_matches(terms.term, '^\p{N}{1,4}[-/.]\p{N}{1,2}[-/.]\p{N}{1,4}$')
                or terms.term in (
                    'january', 'february', 'april', 'june', 'july', 'august', 'september', 'october', 'november',
                    'december'
                )
                then 'date'
            when regexp_matches(terms.term, '\p{N}') then 'number'
            when count(names.term) > 0 then 'name'
            else 'word'
        end as class
    from terms
    left join names on terms.query_id = names.query_id and terms.term = names.term
    group by terms.query_id, terms.term

),

asked as (

    select
        query_scope.run,
        query_scope.query_id,
        queries.question is null or count(stages.query_text) = 0 as is_left_out,
        list_contains(list(stages.query_text), queries.question) as is_as_asked
    from query_scope
    inner join queries on query_scope.query_id = queries.query_id
    inner join retrieve_runs on query_scope.query_id = retrieve_runs.query_id
    inner join stages on retrieve_runs.stage_id = stages.stage_id
    group by query_scope.run, query_scope.query_id, queries.question

),

totals as (

    select
        asked.run,
        count(*) filter (where not asked.is_left_out and not asked.is_as_asked) as n_rewritten,
        count(*) filter (where not asked.is_left_out and asked.is_as_asked) as n_as_asked,
        count(*) filter (where asked.is_left_out) as n_left_out
    from asked
    where cast($run as varchar) is null or asked.run = cast($run as varchar)
    group by asked.run

),

changes as (

    select
        searched.run,
        sides.query_id,
        case when sides.is_in_question then 'dropped' else 'added' end as change,
        sides.class,
        count(*) as n_terms,
        count(*) filter (where sides.is_in_evidence) as n_in_evidence
    from sides
    inner join searched on sides.query_id = searched.query_id
    where sides.is_in_question <> sides.is_in_searched
    group by searched.run, sides.query_id, case when sides.is_in_question then 'dropped' else 'added' end, sides.class

)

select
    totals.run as run,
    changes.change as change,
    changes.class as class,
    count(changes.query_id) as n_queries,
    cast(coalesce(sum(changes.n_terms), 0) as bigint) as n_terms,
    cast(coalesce(sum(changes.n_in_evidence), 0) as bigint) as n_in_evidence,
    count(query_recall.query_id) as n_judged,
    count(*) filter (where query_recall.final_complete = 0) as n_lost,
    count(*) filter (where query_recall.final_complete = 0 and query_recall.candidate_complete = 0)
        as n_not_retrieved,
    max(totals.n_rewritten) as n_rewritten,
    max(totals.n_as_asked) as n_as_asked,
    max(totals.n_left_out) as n_left_out
from totals
left join changes on totals.run is not distinct from changes.run
left join query_recall on changes.query_id = query_recall.query_id
group by totals.run, changes.change, changes.class
order by totals.run asc, changes.change desc, changes.class asc
