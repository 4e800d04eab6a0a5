-- report:  cut_ties
-- answers: where does a cut fall between candidates of the same score?
-- grain:   one row per run and retrieve, fuse, rerank or truncate stage that let some candidates through, others not
-- param:   run             varchar = null  a run's label; null = every run
-- column:  run             varchar  label of the service's configuration
-- column:  kind            varchar  the stage's kind
-- column:  stage           varchar  the user's name for it
-- column:  n_cuts          bigint   runs of the stage with candidates on both sides of the cut
-- column:  n_compared      bigint   of these with a score of the stage's own on both sides
-- column:  n_tied          bigint   of these where the last one through and one left out have the same score
-- column:  share_tied      double   n_tied of n_compared
-- column:  n_spans_in_tie  bigint   gold spans lost at this stage with exactly the last score that went through
-- column:  n_left_out      bigint   runs not compared: the scores of those left out are not on record
-- reads:   lists, candidates, items, stages, queries, reasons
with

stage_runs as (

    select
        stages.stage_id,
        stages.kind
    from stages
    inner join queries on stages.query_id = queries.query_id
    where
        stages.kind in ('retrieve', 'fuse', 'rerank', 'truncate')
        and stages.probe is null
        and not coalesce(stages.is_aside, false)
        and (cast($run as varchar) is null or queries.run = cast($run as varchar))

),

stage_lists as (

    select
        lists.stage_id,
        stage_runs.kind,
        lists.role,
        coalesce(lists.same_as_list_id, lists.list_id) as list_id
    from lists
    inner join stage_runs on lists.stage_id = stage_runs.stage_id

),

with_losers as (

    select stage_lists.stage_id
    from stage_lists
    where stage_lists.role in ('in', 'considered', 'dropped')
    union
    select stage_lists.stage_id
    from stage_lists
    inner join candidates on stage_lists.list_id = candidates.list_id
    where candidates.is_kept = false

),

-- A chunk that a truncation cut is another item of the same chunk: it did go through.
chunk_keys as (

    select
        items.item,
        min(items.item) over (partition by items.chunk_id, items.index_name) as chunk_key
    from items

),

-- What a stage took has the scores of another stage, unless this one only cuts: then they are its own.
chunks as materialized (

    select
        stage_lists.stage_id,
        chunk_keys.chunk_key,
        max(candidates.rank) filter (where stage_lists.role = 'out' and candidates.is_kept is distinct from false)
            as through_rank,
        arg_max(candidates.score, candidates.rank) filter (
            where stage_lists.role = 'out' and candidates.is_kept is distinct from false
        ) as through_score,
        max(candidates.score) filter (
            where stage_lists.role in ('considered', 'dropped', 'out') or stage_lists.kind = 'truncate'
        ) as own_score
    from stage_lists
    inner join with_losers on stage_lists.stage_id = with_losers.stage_id
    inner join candidates on stage_lists.list_id = candidates.list_id
    inner join chunk_keys on candidates.item = chunk_keys.item
    group by stage_lists.stage_id, chunk_keys.chunk_key

),

through as (

    select
        chunks.stage_id,
        -- Not arg_max, which passes over a last one without a score.
        last(chunks.through_score order by chunks.through_rank) as last_score
    from chunks
    where chunks.through_rank is not null
    group by chunks.stage_id

),

cuts as (

    select
        through.stage_id,
        max(through.last_score) is not null and count(chunks.own_score) > 0 as is_compared,
        coalesce(bool_or(chunks.own_score = through.last_score), false) as is_tied
    from through
    inner join chunks on through.stage_id = chunks.stage_id
    where chunks.through_rank is null
    group by through.stage_id

),

in_tie as (

    select
        reasons.stage_id,
        count(distinct reasons.evidence_id) as n_spans
    from reasons
    where reasons.notes like '%cut_in_tie%'
    group by reasons.stage_id

)

select
    queries.run as run,
    stages.kind as kind,
    coalesce(stages.name, stages.kind) as stage,
    count(*) as n_cuts,
    count(*) filter (where cuts.is_compared) as n_compared,
    count(*) filter (where cuts.is_compared and cuts.is_tied) as n_tied,
    count(*) filter (where cuts.is_compared and cuts.is_tied) / nullif(count(*) filter (where cuts.is_compared), 0)
        as share_tied,
    cast(coalesce(sum(in_tie.n_spans), 0) as bigint) as n_spans_in_tie,
    count(*) filter (where not cuts.is_compared) as n_left_out
from cuts
inner join stages on cuts.stage_id = stages.stage_id
inner join queries on stages.query_id = queries.query_id
left join in_tie on cuts.stage_id = in_tie.stage_id
group by queries.run, stages.kind, coalesce(stages.name, stages.kind)
order by queries.run asc, n_tied desc, stage asc, stages.kind asc
