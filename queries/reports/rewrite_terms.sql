-- report:  rewrite_terms
-- answers: which terms of the question were not searched for, which were added, and does the evidence have them?
-- grain:   one row per query whose searched texts all differ from its question, and term that only one side has
-- param:   query_id        bigint = null   queries.query_id; null = every query
-- param:   run             varchar = null  a run's label; null = every run
-- column:  run             varchar  label of the service's configuration
-- column:  query_id        bigint   queries.query_id
-- column:  question_id     varchar  the labelled question; null = none is known
-- column:  change          varchar  dropped (in the question, in no text that a retriever was asked) or added (the reverse)
-- column:  class           varchar  date (a year, a date, a month), number, name (a capital inside a sentence) or word
-- column:  term            varchar  in lower case; of Chinese and Japanese pairs of characters
-- column:  is_in_evidence  boolean  the text of a gold span has it; null = no text of a span is known
-- column:  question        varchar  as asked
-- column:  searched        varchar[] the texts that the retrievers were asked
-- reads:   query_scope, queries, retrieve_runs, stages, evidence
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
        and (cast($query_id as bigint) is null or query_scope.query_id = cast($query_id as bigint))
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

known as (

    select texts_compared.query_id
    from texts_compared
    where texts_compared.side = 'evidence' and texts_compared.text is not null

)

select
    searched.run as run,
    searched.query_id as query_id,
    searched.question_id as question_id,
    case when sides.is_in_question then 'dropped' else 'added' end as change,
    sides.class as class,
    sides.term as term,
    case when known.query_id is not null then sides.is_in_evidence end as is_in_evidence,
    searched.question as question,
    searched.searched as searched
from sides
inner join searched on sides.query_id = searched.query_id
left join known on sides.query_id = known.query_id
where sides.is_in_question <> sides.is_in_searched
order by searched.run asc, searched.query_id asc, change desc, sides.class asc, sides.term asc
