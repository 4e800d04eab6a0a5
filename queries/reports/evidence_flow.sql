-- report:  evidence_flow
-- answers: how many evidence spans went how far, place by place?
-- grain:   one row per run, place and reason, in flow order; places where none ended have one row without a reason
-- param:   run            varchar = null  a run's label; null = every run
-- column:  run            varchar  label of the service's configuration
-- column:  place_no       bigint   1-based, in flow order: losses at no certain place first, what arrived last
-- column:  verdict        varchar  kept, lost, unobserved, or passed: a stage on the way where no span ended
-- column:  lost_kind      varchar  lost: kind of the stage; null when the place is not certain
-- column:  lost_stage     varchar  its name
-- column:  lost_at        varchar  in or after
-- column:  reason         varchar  why, as docs/reasons.md says; null unless lost
-- column:  n_spans        bigint   evidence spans that ended there
-- column:  n_before       bigint   spans that came as far as this place
-- reads:   stage_loss, stage_recall
with

layers as (

    select
        'ingest' as lost_kind,
        1 as layer
    union all
    select
        'parse' as lost_kind,
        2 as layer
    union all
    select
        'chunk' as lost_kind,
        3 as layer
    union all
    select
        'index' as lost_kind,
        4 as layer

),

ends as (

    select
        stage_loss.run,
        stage_loss.verdict,
        stage_loss.lost_kind,
        stage_loss.lost_stage,
        stage_loss.lost_at,
        stage_loss.reason,
        count(*) as n_spans
    from stage_loss
    where
        stage_loss.verdict in ('kept', 'lost', 'unobserved')
        and (cast($run as varchar) is null or stage_loss.run = cast($run as varchar))
    group by
        stage_loss.run, stage_loss.verdict, stage_loss.lost_kind, stage_loss.lost_stage, stage_loss.lost_at,
        stage_loss.reason

),

lost_places as (

    select distinct
        ends.run,
        ends.lost_kind,
        ends.lost_stage
    from ends

),

-- An or of stages stands behind the last of them.
stage_orders as (

    select
        lost_places.run,
        lost_places.lost_kind,
        lost_places.lost_stage,
        max(stage_recall.stage_order) as stage_order
    from lost_places
    inner join stage_recall
        on
            lost_places.run is not distinct from stage_recall.run
            and list_contains(string_split(lost_places.lost_stage, ' or '), stage_recall.stage)
    group by lost_places.run, lost_places.lost_kind, lost_places.lost_stage

),

-- What a generate took is the final context.
passed as (

    select
        stage_recall.run,
        stage_recall.kind,
        stage_recall.stage,
        stage_recall.stage_order
    from stage_recall
    left join lost_places
        on
            stage_recall.run is not distinct from lost_places.run
            and stage_recall.kind = lost_places.lost_kind
            and list_contains(string_split(lost_places.lost_stage, ' or '), stage_recall.stage)
    where
        stage_recall.is_on_path
        and stage_recall.recall_in is not null
        and stage_recall.kind <> 'generate'
        and lost_places.lost_stage is null
        and (cast($run as varchar) is null or stage_recall.run = cast($run as varchar))

),

placed as (

    select
        passed.run,
        'passed' as verdict,
        passed.kind as lost_kind,
        passed.stage as lost_stage,
        cast(null as varchar) as lost_at,
        cast(null as varchar) as reason,
        0 as n_spans,
        1 as part,
        10 + passed.stage_order * 2 as place
    from passed
    union all
    select
        ends.run,
        ends.verdict,
        ends.lost_kind,
        ends.lost_stage,
        ends.lost_at,
        ends.reason,
        ends.n_spans,
        case
            when ends.verdict = 'kept' then 3
            when ends.verdict = 'unobserved' then 2
            when ends.lost_kind is null then 0
            else 1
        end as part,
        coalesce(
            layers.layer,
            10 + stage_orders.stage_order * 2 + case when ends.lost_at = 'in' then 0 else 1 end,
            9
        ) as place
    from ends
    left join layers on ends.lost_kind = layers.lost_kind
    left join stage_orders
        on
            ends.run is not distinct from stage_orders.run
            and ends.lost_kind is not distinct from stage_orders.lost_kind
            and ends.lost_stage is not distinct from stage_orders.lost_stage

),

numbered as (

    select
        placed.run,
        placed.verdict,
        placed.lost_kind,
        placed.lost_stage,
        placed.lost_at,
        placed.reason,
        placed.n_spans,
        dense_rank() over (
            partition by placed.run
            order by placed.part, placed.place, placed.lost_kind, placed.lost_stage, placed.lost_at
        ) as place_no
    from placed

)

select
    numbered.run as run,
    numbered.place_no as place_no,
    numbered.verdict as verdict,
    numbered.lost_kind as lost_kind,
    numbered.lost_stage as lost_stage,
    numbered.lost_at as lost_at,
    numbered.reason as reason,
    numbered.n_spans as n_spans,
    cast(sum(numbered.n_spans) over (
        partition by numbered.run
        order by numbered.place_no desc
        range between unbounded preceding and current row
    ) as bigint) as n_before
from numbered
order by numbered.run asc, numbered.place_no asc, numbered.n_spans desc, numbered.reason asc
