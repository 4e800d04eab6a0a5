-- report:  losses
-- answers: at which stages was evidence lost, and why?
-- grain:   one row per run, place and reason
-- param:   run            varchar = null  a run's label; null = every run
-- column:  run            varchar  label of the service's configuration
-- column:  lost_kind      varchar  kind of the stage; null when the place is not certain
-- column:  lost_stage     varchar  the user's name for it
-- column:  lost_at        varchar  in (went in, did not come out) or after (came out, did not arrive)
-- column:  between_first  varchar  place not certain: the last one where it surely was
-- column:  between_last   varchar  place not certain: the last one where it may have been
-- column:  reason         varchar  why, as docs/reasons.md says; unprobed without proof
-- column:  n_spans        bigint   evidence spans lost there
-- column:  n_queries      bigint   queries they belong to
-- column:  share          double   of all lost spans of the run
-- reads:   losses_by_reason
select
    losses_by_reason.run as run,
    losses_by_reason.lost_kind as lost_kind,
    losses_by_reason.lost_stage as lost_stage,
    losses_by_reason.lost_at as lost_at,
    losses_by_reason.between_first as between_first,
    losses_by_reason.between_last as between_last,
    losses_by_reason.reason as reason,
    losses_by_reason.n_spans as n_spans,
    losses_by_reason.n_queries as n_queries,
    losses_by_reason.share as share
from losses_by_reason
where cast($run as varchar) is null or losses_by_reason.run = cast($run as varchar)
order by
    losses_by_reason.run asc,
    losses_by_reason.n_spans desc,
    losses_by_reason.lost_kind asc,
    losses_by_reason.lost_stage asc,
    losses_by_reason.lost_at asc,
    losses_by_reason.between_first asc,
    losses_by_reason.between_last asc,
    losses_by_reason.reason asc
