-- report:  waterfall
-- answers: how does recall fall from the source to the final context, and how much is lost at each line?
-- grain:   one row per run and line: layers, retrievers, candidates, stages in flow order, final context
-- param:   run        varchar = null  a run's label; null = every run
-- column:  run        varchar  label of the service's configuration
-- column:  line_no    bigint   1-based, top to bottom
-- column:  level      varchar  source, text, chunks, index, candidates, final context, or the stage's name
-- column:  kind       varchar  layer, candidates, final context, or the stage's kind
-- column:  is_branch  boolean  one of several ways, or off the way to the final context: no step of the fall
-- column:  recall     double   mean share of needs surely there, best set; null for a layer that is not recorded
-- column:  change     double   recall minus that of the line before, branches and unrecorded layers passed over
-- column:  n_lost     bigint   evidence spans lost on the way to this line or behind this stage
-- column:  n_gained   bigint   evidence spans whole behind this stage but not before it
-- reads:   level_recall, losses_by_reason, stage_recall, query_recall, places, stages
with

layers as (

    select
        1 as layer,
        'source' as level,
        'ingest' as lost_kind
    union all
    select
        2 as layer,
        'text' as level,
        'parse' as lost_kind
    union all
    select
        3 as layer,
        'chunks' as level,
        'chunk' as lost_kind
    union all
    select
        4 as layer,
        'index' as level,
        'index' as lost_kind
    union all
    select
        5 as layer,
        'candidates' as level,
        'retrieve' as lost_kind

),

outputs as materialized (

    select
        query_recall.run,
        places.query_id,
        places.place_no,
        places.stage_id,
        places.later_nos,
        stages.kind,
        coalesce(stages.name, stages.kind) as stage
    from query_recall
    inner join places on query_recall.query_id = places.query_id
    inner join stages on places.stage_id = stages.stage_id
    where query_recall.is_judged and places.side = 'out' and places.is_on_path

),

-- Beside another output, neither before nor after it: one of several ways.
branches as (

    select distinct
        one.run,
        one.kind,
        one.stage
    from outputs as one
    inner join outputs as other on one.query_id = other.query_id and one.stage_id <> other.stage_id
    where
        not list_contains(one.later_nos, other.place_no)
        and not list_contains(other.later_nos, one.place_no)

),

falls as (

    select
        losses_by_reason.run,
        losses_by_reason.lost_kind,
        cast(sum(losses_by_reason.n_spans) filter (
            where losses_by_reason.lost_kind <> 'retrieve' or losses_by_reason.lost_at = 'in'
        ) as bigint) as n_lost
    from losses_by_reason
    group by losses_by_reason.run, losses_by_reason.lost_kind

),

recorded as (

    select
        level_recall.run,
        cast(level_recall.level_order as double) as place,
        level_recall.level,
        level_recall.kind,
        level_recall.is_branch or branches.kind is not null as is_branch,
        level_recall.recall,
        case
            when layers.level is not null then coalesce(falls.n_lost, 0)
            -- A retriever's own misses stand at the candidates: another one may have found them.
            when level_recall.kind = 'retrieve' then stage_recall.n_lost_after
            else coalesce(stage_recall.n_lost_in + stage_recall.n_lost_after, 0)
        end as n_lost,
        coalesce(stage_recall.n_gained, 0) as n_gained
    from level_recall
    left join layers on level_recall.level = layers.level and level_recall.kind in ('layer', 'candidates')
    left join falls on level_recall.run is not distinct from falls.run and layers.lost_kind = falls.lost_kind
    left join branches
        on
            level_recall.run is not distinct from branches.run
            and level_recall.kind = branches.kind
            and level_recall.level = branches.stage
    left join stage_recall
        on
            level_recall.run is not distinct from stage_recall.run
            and level_recall.kind = stage_recall.kind
            and level_recall.level = stage_recall.stage

),

unrecorded as (

    select
        runs.run,
        layers.layer / 10.0 as place,
        layers.level,
        'layer' as kind,
        false as is_branch,
        cast(null as double) as recall,
        coalesce(falls.n_lost, 0) as n_lost,
        0 as n_gained
    from (select distinct level_recall.run from level_recall) as runs
    cross join layers
    left join level_recall as known
        on runs.run is not distinct from known.run and layers.level = known.level and known.kind = 'layer'
    left join falls on runs.run is not distinct from falls.run and layers.lost_kind = falls.lost_kind
    where layers.level <> 'candidates' and known.level is null

),

-- A layer that is not recorded stands where it would stand.
lines as (

    select
        recorded.run,
        recorded.place + 10 as place,
        recorded.level,
        recorded.kind,
        recorded.is_branch,
        recorded.recall,
        recorded.n_lost,
        recorded.n_gained
    from recorded
    where recorded.kind <> 'layer'
    union all
    select
        recorded.run,
        layers.layer / 10.0 as place,
        recorded.level,
        recorded.kind,
        recorded.is_branch,
        recorded.recall,
        recorded.n_lost,
        recorded.n_gained
    from recorded
    inner join layers on recorded.level = layers.level
    where recorded.kind = 'layer'
    union all
    select
        unrecorded.run,
        unrecorded.place,
        unrecorded.level,
        unrecorded.kind,
        unrecorded.is_branch,
        unrecorded.recall,
        unrecorded.n_lost,
        unrecorded.n_gained
    from unrecorded

)

select
    lines.run as run,
    row_number() over (partition by lines.run order by lines.place) as line_no,
    lines.level as level,
    lines.kind as kind,
    lines.is_branch as is_branch,
    lines.recall as recall,
    case
        when not lines.is_branch and lines.recall is not null
            then lines.recall - lag(lines.recall) over (
                partition by lines.run, lines.is_branch or lines.recall is null order by lines.place
            )
    end as change,
    lines.n_lost as n_lost,
    lines.n_gained as n_gained
from lines
where cast($run as varchar) is null or lines.run = cast($run as varchar)
order by lines.run, line_no
