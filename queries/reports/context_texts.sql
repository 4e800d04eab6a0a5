-- report:  context_texts
-- answers: what texts made up the final context, as far as texts were captured?
-- grain:   one row per query and candidate of its final context, one without a candidate where it has none
-- param:   run             varchar = null  a run's label; null = every run
-- column:  query_id        bigint     queries.query_id
-- column:  run             varchar    label of the service's configuration
-- column:  question_id     varchar    the labelled question it asks, else the id the service gave
-- column:  question        varchar    as asked, else as labelled; null when neither was captured
-- column:  answer          varchar    JSON of the labelled answer
-- column:  final_how       varchar    how the final context is known
-- column:  is_complete     boolean    false: the final context is unknown, or some of it could not be recorded
-- column:  place           bigint     1-based place in the prompt; null without a candidate
-- column:  chunk_id        varchar    as the service names it
-- column:  doc_id          varchar    source document
-- column:  pieces          varchar[]  the text of each of its ranges, in order; null where one is not captured, or it was altered
-- column:  item_text_hash  varchar    hash of the text as delivered, when it was seen
-- reads:   queries, query_scope, places, place_lists, lists, candidates, items, item_ranges, parses, texts, questions
with

context_lists as (

    select
        places.query_id,
        place_lists.list_id
    from places
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    where places.side = 'context'

),

incomplete as (

    select distinct context_lists.query_id
    from context_lists
    inner join lists on context_lists.list_id = lists.list_id
    where not lists.is_complete

),

found as materialized (

    select
        context_lists.query_id,
        context_lists.list_id,
        candidates.rank,
        row_number() over (
            partition by context_lists.query_id
            order by coalesce(candidates.position, candidates.rank), context_lists.list_id, candidates.rank
        ) as place,
        items.item,
        items.chunk_id,
        items.doc_id,
        items.text_hash,
        items.item_text_hash,
        coalesce(items.is_altered, false) as is_altered
    from context_lists
    inner join candidates on context_lists.list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where coalesce(candidates.is_kept, true)

),

ranges as (

    select
        found.query_id,
        found.place,
        item_ranges.start_at,
        item_ranges.end_at,
        coalesce(item_ranges.text_hash, found.text_hash, max_by(parses.text_hash, parses.parsed_at_ns)) as text_hash
    from found
    inner join queries on found.query_id = queries.query_id
    inner join item_ranges on found.item = item_ranges.item and item_ranges.role = 'own'
    left join parses
        on
            coalesce(item_ranges.doc_id, found.doc_id) = parses.doc_id
            and parses.parsed_at_ns <= queries.started_at_ns
    group by
        found.query_id, found.place, found.text_hash, item_ranges.start_at, item_ranges.end_at, item_ranges.text_hash

),

pieces as (

    select
        ranges.query_id,
        ranges.place,
        count(*) as n_ranges,
        count(texts.text) as n_texts,
        list(
            case
                when ranges.start_at is null then texts.text
                else substring(texts.text, ranges.start_at + 1, ranges.end_at - ranges.start_at)
            end
            order by ranges.start_at
        ) as pieces
    from ranges
    left join texts on ranges.text_hash = texts.text_hash and texts.is_aligned
    group by ranges.query_id, ranges.place

)

select
    queries.query_id as query_id,
    queries.run as run,
    coalesce(query_scope.question_id, queries.question_id) as question_id,
    coalesce(queries.question, questions.question) as question,
    questions.answer as answer,
    query_scope.final_how as final_how,
    query_scope.final_how <> 'unknown' and query_scope.is_whole and incomplete.query_id is null as is_complete,
    found.place as place,
    found.chunk_id as chunk_id,
    found.doc_id as doc_id,
    case when pieces.n_ranges = pieces.n_texts and not found.is_altered then pieces.pieces end as pieces,
    found.item_text_hash as item_text_hash
from queries
inner join query_scope on queries.query_id = query_scope.query_id
left join questions on query_scope.question_id = questions.question_id
left join incomplete on queries.query_id = incomplete.query_id
left join found on queries.query_id = found.query_id
left join pieces on found.query_id = pieces.query_id and found.place = pieces.place
where
    (cast($run as varchar) is null or queries.run = cast($run as varchar))
    and coalesce(queries.run_kind, 'actual') = 'actual'
order by queries.query_id asc, found.place asc
