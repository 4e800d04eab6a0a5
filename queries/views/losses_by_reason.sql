-- view:    losses_by_reason
-- answers: at which stages was evidence lost, and why?
-- grain:   one row per run, place and reason
-- column:  run            varchar  label of the service's configuration
-- column:  lost_kind      varchar  kind of the stage; null when the place is not certain
-- column:  lost_stage     varchar  the user's name for it
-- column:  lost_at        varchar  in or after
-- column:  between_first  varchar  place not certain: the last one where it surely was
-- column:  between_last   varchar  place not certain: the last one where it may have been
-- column:  reason         varchar  why, as docs/reasons.md says
-- column:  n_spans        bigint   evidence spans lost there
-- column:  n_queries      bigint   queries they belong to
-- column:  share          double   of all lost spans of the run
-- reads:   stage_loss
with

lost as (

    select
        stage_loss.run,
        stage_loss.query_id,
        stage_loss.lost_kind,
        stage_loss.lost_stage,
        stage_loss.lost_at,
        stage_loss.between_first,
        stage_loss.between_last,
        stage_loss.reason
    from stage_loss
    where stage_loss.verdict = 'lost'

),

counted as (

    select
        lost.run,
        lost.lost_kind,
        lost.lost_stage,
        lost.lost_at,
        lost.between_first,
        lost.between_last,
        lost.reason,
        count(*) as n_spans,
        count(distinct lost.query_id) as n_queries
    from lost
    group by
        lost.run, lost.lost_kind, lost.lost_stage, lost.lost_at, lost.between_first, lost.between_last, lost.reason

)

select
    counted.run,
    counted.lost_kind,
    counted.lost_stage,
    counted.lost_at,
    counted.between_first,
    counted.between_last,
    counted.reason,
    counted.n_spans,
    counted.n_queries,
    cast(counted.n_spans as double) / nullif(sum(counted.n_spans) over (partition by counted.run), 0) as share
from counted
