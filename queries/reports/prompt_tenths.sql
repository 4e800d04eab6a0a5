-- report:  prompt_tenths
-- answers: in which tenth of the prompt does the kept evidence stand?
-- grain:   one row per run and tenth of the final context
-- param:   run            varchar = null  a run's label; null = every run
-- column:  run            varchar  label of the service's configuration
-- column:  tenth          integer  1 first to 10 last: of its tokens where all candidates say theirs, else of its candidates
-- column:  n_spans        bigint   kept gold spans that begin there: middle of the first candidate that holds some of it
-- column:  share          double   of the run's kept spans that count
-- column:  n_kept         bigint   kept spans that count
-- column:  n_by_tokens    bigint   of these in a context whose candidates all say their tokens
-- column:  n_left_out     bigint   kept spans without a candidate on record that holds them
-- reads:   stage_loss, needed_evidence, item_covers, places, place_lists, candidates
with

tenths as (

    select numbers.tenth
    from (values (1), (2), (3), (4), (5), (6), (7), (8), (9), (10)) as numbers (tenth)

),

kept as (

    select
        stage_loss.run,
        stage_loss.query_id,
        stage_loss.evidence_id
    from stage_loss
    where
        stage_loss.verdict = 'kept'
        and (cast($run as varchar) is null or stage_loss.run = cast($run as varchar))

),

placed as (

    select
        places.query_id,
        candidates.item,
        row_number() over (
            partition by places.query_id
            order by coalesce(candidates.position, candidates.rank), candidates.list_id, candidates.rank
        ) as place_in_prompt,
        count(*) over (partition by places.query_id) as n_candidates,
        candidates.tokens,
        count(candidates.tokens) over (partition by places.query_id) as n_with_tokens
    from places
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    inner join candidates on place_lists.list_id = candidates.list_id
    where places.side = 'context' and candidates.is_kept is distinct from false

),

middles as (

    select
        placed.query_id,
        placed.item,
        placed.place_in_prompt,
        placed.n_with_tokens = placed.n_candidates as is_by_tokens,
        case
            when placed.n_with_tokens = placed.n_candidates
                then
                    (
                        sum(placed.tokens) over (
                            partition by placed.query_id order by placed.place_in_prompt
                            rows between unbounded preceding and current row
                        ) - placed.tokens / 2.0
                    ) / nullif(sum(placed.tokens) over (partition by placed.query_id), 0)
            else (placed.place_in_prompt - 0.5) / nullif(placed.n_candidates, 0)
        end as middle
    from placed

),

holders as (

    select distinct
        needed_evidence.evidence_id,
        item_covers.item
    from needed_evidence
    inner join item_covers on needed_evidence.evidence_no = item_covers.evidence_no
    where item_covers.role = 'own'

),

spans as (

    select
        kept.run,
        kept.query_id,
        kept.evidence_id,
        arg_min(middles.middle, middles.place_in_prompt) as middle,
        bool_and(middles.is_by_tokens) as is_by_tokens
    from kept
    left join holders on kept.evidence_id = holders.evidence_id
    left join middles on kept.query_id = middles.query_id and holders.item = middles.item
    group by kept.run, kept.query_id, kept.evidence_id

),

counted as (

    select
        spans.run,
        least(cast(floor(spans.middle * 10) as integer) + 1, 10) as tenth,
        count(*) as n_spans
    from spans
    where spans.middle is not null
    group by spans.run, least(cast(floor(spans.middle * 10) as integer) + 1, 10)

),

totals as (

    select
        spans.run,
        count(spans.middle) as n_kept,
        count(*) filter (where spans.middle is not null and spans.is_by_tokens) as n_by_tokens,
        count(*) filter (where spans.middle is null) as n_left_out
    from spans
    group by spans.run

)

select
    totals.run as run,
    tenths.tenth as tenth,
    coalesce(counted.n_spans, 0) as n_spans,
    coalesce(counted.n_spans, 0) / nullif(totals.n_kept, 0) as share,
    totals.n_kept as n_kept,
    totals.n_by_tokens as n_by_tokens,
    totals.n_left_out as n_left_out
from totals
cross join tenths
left join counted on totals.run is not distinct from counted.run and tenths.tenth = counted.tenth
order by totals.run, tenths.tenth
