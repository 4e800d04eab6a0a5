-- view:    question_loss
-- answers: which queries missed what they needed, and where did their best set's worst need fall?
-- grain:   one row per scored query with a label that can be judged
-- kept:    in the store
-- column:  run            varchar  label of the service's configuration
-- column:  query_id       bigint   queries.query_id
-- column:  question_id    varchar  the labelled question
-- column:  kind           varchar  the question's kind
-- column:  verdict        varchar  kept, lost or unobserved
-- column:  set_no         integer  the set that came furthest; the first of several
-- column:  need           varchar  its need that fell first; the first of several
-- column:  evidence_id    varchar  the span of that need that came furthest; the first of several
-- column:  lost_kind      varchar  lost at one place for sure: the kind of its stage
-- column:  lost_stage     varchar  its name; all names when several fell equally far
-- column:  lost_at        varchar  in or after
-- column:  between_first  varchar  unobserved, or lost at no certain place: the last place where it surely was
-- column:  between_last   varchar  lost at no certain place: the last place where it may have been
-- reads:   span_ends, needed_evidence, query_scope
with

ends as (

    select
        span_ends.query_id,
        span_ends.evidence_no,
        span_ends.reading,
        span_ends.end_order,
        span_ends.end_places,
        span_ends.lost_kind,
        span_ends.lost_stage,
        span_ends.lost_at,
        span_ends.words
    from span_ends
    where span_ends.end_order >= 0

),

readings as (

    select 'sure' as reading
    union all
    select 'possible' as reading

),

spans as (

    select distinct
        ends.query_id,
        readings.reading,
        needed_evidence.set_no,
        needed_evidence.need,
        needed_evidence.evidence_id,
        ends.end_order,
        coalesce(ends.end_places, '') as end_places,
        ends.lost_kind,
        ends.lost_stage,
        ends.lost_at,
        ends.words
    from ends
    inner join readings on ends.reading in (readings.reading, 'both')
    inner join needed_evidence on ends.evidence_no = needed_evidence.evidence_no

),

orders as (

    select
        spans.query_id,
        spans.reading,
        spans.set_no,
        spans.need,
        max(spans.end_order) as need_order
    from spans
    group by spans.query_id, spans.reading, spans.set_no, spans.need

),

set_orders as (

    select
        orders.query_id,
        orders.reading,
        orders.set_no,
        min(orders.need_order) as set_order
    from orders
    group by orders.query_id, orders.reading, orders.set_no

),

question_orders as (

    select
        set_orders.query_id,
        set_orders.reading,
        max(set_orders.set_order) as question_order
    from set_orders
    group by set_orders.query_id, set_orders.reading

),

-- The spans that decide: the furthest of their need, that need the worst of its set, that set the best.
deciding as materialized (

    select distinct
        spans.query_id,
        spans.reading,
        spans.set_no,
        spans.need,
        spans.evidence_id,
        spans.end_order,
        spans.end_places,
        spans.lost_kind,
        spans.lost_stage,
        spans.lost_at,
        spans.words,
        row_number() over (
            partition by spans.query_id, spans.reading order by spans.set_no, spans.need, spans.evidence_id
        ) as in_question
    from question_orders
    inner join set_orders
        on
            question_orders.query_id = set_orders.query_id
            and question_orders.reading = set_orders.reading
            and question_orders.question_order = set_orders.set_order
    inner join orders
        on
            set_orders.query_id = orders.query_id
            and set_orders.reading = orders.reading
            and set_orders.set_no = orders.set_no
            and set_orders.set_order = orders.need_order
    inner join spans
        on
            orders.query_id = spans.query_id
            and orders.reading = spans.reading
            and orders.set_no = spans.set_no
            and orders.need = spans.need
            and orders.need_order = spans.end_order

),

-- Several that came equally far to different places: all of these places are named, as for the pieces of a span.
ties as materialized (

    select
        deciding.query_id,
        deciding.reading
    from deciding
    group by deciding.query_id, deciding.reading
    having min(deciding.end_places) < max(deciding.end_places)

),

tied as materialized (

    select
        deciding.query_id,
        deciding.reading,
        deciding.end_places,
        deciding.lost_kind,
        deciding.lost_stage,
        deciding.lost_at,
        deciding.words
    from deciding
    inner join ties on deciding.query_id = ties.query_id and deciding.reading = ties.reading

),

tied_names as (

    select
        tied.query_id,
        tied.reading,
        'place' as what,
        unnest(string_split(tied.end_places, ' ')) as name
    from tied

    union

    select
        tied.query_id,
        tied.reading,
        'kind' as what,
        unnest(string_split(tied.lost_kind, ' or ')) as name
    from tied

    union

    select
        tied.query_id,
        tied.reading,
        'stage' as what,
        unnest(string_split(tied.lost_stage, ' or ')) as name
    from tied

    union

    select
        tied.query_id,
        tied.reading,
        'at' as what,
        unnest(string_split(tied.lost_at, ' or ')) as name
    from tied

    union

    select
        tied.query_id,
        tied.reading,
        'words' as what,
        unnest(string_split(tied.words, ' or ')) as name
    from tied

),

joined as (

    select
        tied_names.query_id,
        tied_names.reading,
        string_agg(tied_names.name, ' ' order by len(tied_names.name), tied_names.name) filter (
            where tied_names.what = 'place'
        ) as end_places,
        string_agg(tied_names.name, ' or ' order by tied_names.name) filter (
            where tied_names.what = 'kind'
        ) as lost_kind,
        string_agg(tied_names.name, ' or ' order by tied_names.name) filter (
            where tied_names.what = 'stage'
        ) as lost_stage,
        string_agg(tied_names.name, ' or ' order by tied_names.name desc) filter (
            where tied_names.what = 'at'
        ) as lost_at,
        string_agg(tied_names.name, ' or ' order by tied_names.name) filter (
            where tied_names.what = 'words'
        ) as words
    from tied_names
    group by tied_names.query_id, tied_names.reading

),

named as (

    select
        deciding.query_id,
        deciding.reading,
        deciding.set_no,
        deciding.need,
        deciding.evidence_id,
        deciding.end_order,
        coalesce(joined.end_places, deciding.end_places) as end_places,
        coalesce(joined.lost_kind, deciding.lost_kind) as lost_kind,
        coalesce(joined.lost_stage, deciding.lost_stage) as lost_stage,
        coalesce(joined.lost_at, deciding.lost_at) as lost_at,
        coalesce(joined.words, deciding.words) as words
    from deciding
    left join joined on deciding.query_id = joined.query_id and deciding.reading = joined.reading
    where deciding.in_question = 1

),

decided as (

    select
        named.query_id,
        max(case when named.reading = 'sure' then named.set_no end) as set_no,
        max(case when named.reading = 'sure' then named.need end) as need,
        max(case when named.reading = 'sure' then named.evidence_id end) as evidence_id,
        max(case when named.reading = 'sure' then named.end_order end) as sure_order,
        max(case when named.reading = 'possible' then named.end_order end) as possible_order,
        max(case when named.reading = 'sure' then named.end_places end) as sure_places,
        max(case when named.reading = 'possible' then named.end_places end) as possible_places,
        max(case when named.reading = 'sure' then named.lost_kind end) as lost_kind,
        max(case when named.reading = 'sure' then named.lost_stage end) as lost_stage,
        max(case when named.reading = 'sure' then named.lost_at end) as lost_at,
        max(case when named.reading = 'sure' then named.words end) as sure_words,
        max(case when named.reading = 'possible' then named.words end) as possible_words
    from named
    group by named.query_id

),

judged as (

    select
        decided.query_id,
        decided.set_no,
        decided.need,
        decided.evidence_id,
        case
            when decided.sure_order = 1000000000 then 'kept'
            when decided.possible_order = 1000000000 then 'unobserved'
            else 'lost'
        end as verdict,
        decided.sure_order < 1000000000
        and decided.sure_order = decided.possible_order
        and decided.sure_places = decided.possible_places as is_placed,
        decided.lost_kind,
        decided.lost_stage,
        decided.lost_at,
        decided.sure_words,
        decided.possible_words
    from decided

)

select
    query_scope.run,
    judged.query_id,
    query_scope.question_id,
    query_scope.kind,
    judged.verdict,
    judged.set_no,
    judged.need,
    judged.evidence_id,
    case when judged.is_placed then judged.lost_kind end as lost_kind,
    case when judged.is_placed then judged.lost_stage end as lost_stage,
    case when judged.is_placed then judged.lost_at end as lost_at,
    case when judged.verdict <> 'kept' and not judged.is_placed then judged.sure_words end as between_first,
    case when judged.verdict = 'lost' and not judged.is_placed then judged.possible_words end as between_last
from judged
inner join query_scope on judged.query_id = query_scope.query_id
