-- report:  losses_by_kind
-- answers: which kinds of questions lose their evidence where?
-- grain:   one row per run, kind of question, verdict and place
-- param:   run            varchar = null  a run's label; null = every run
-- column:  run            varchar  label of the service's configuration
-- column:  kind           varchar  the question's kind in its gold set
-- column:  verdict        varchar  kept, lost or unobserved
-- column:  lost_kind      varchar  lost: kind of the stage; null when the place is not certain
-- column:  lost_stage     varchar  its name
-- column:  lost_at        varchar  in or after
-- column:  between_first  varchar  place not certain: the last one where it surely was
-- column:  between_last   varchar  place not certain: the last one where it may have been
-- column:  n_spans        bigint   evidence spans
-- column:  share          double   of all judged or unobserved spans of that kind and run
-- reads:   stage_loss
with

spans as (

    select
        stage_loss.run,
        stage_loss.kind,
        stage_loss.verdict,
        stage_loss.lost_kind,
        stage_loss.lost_stage,
        stage_loss.lost_at,
        case when stage_loss.verdict = 'lost' then stage_loss.between_first end as between_first,
        case when stage_loss.verdict = 'lost' then stage_loss.between_last end as between_last
    from stage_loss
    where
        stage_loss.verdict in ('kept', 'lost', 'unobserved')
        and (cast($run as varchar) is null or stage_loss.run = cast($run as varchar))

),

ends as (

    select
        spans.run,
        spans.kind,
        spans.verdict,
        spans.lost_kind,
        spans.lost_stage,
        spans.lost_at,
        spans.between_first,
        spans.between_last,
        count(*) as n_spans
    from spans
    group by
        spans.run, spans.kind, spans.verdict, spans.lost_kind, spans.lost_stage, spans.lost_at, spans.between_first,
        spans.between_last

)

select
    ends.run as run,
    ends.kind as kind,
    ends.verdict as verdict,
    ends.lost_kind as lost_kind,
    ends.lost_stage as lost_stage,
    ends.lost_at as lost_at,
    ends.between_first as between_first,
    ends.between_last as between_last,
    ends.n_spans as n_spans,
    ends.n_spans / nullif(sum(ends.n_spans) over (partition by ends.run, ends.kind), 0) as share
from ends
order by
    ends.run asc,
    ends.kind asc,
    ends.verdict asc,
    ends.n_spans desc,
    ends.lost_kind asc,
    ends.lost_stage asc,
    ends.lost_at asc,
    ends.between_first asc,
    ends.between_last asc
