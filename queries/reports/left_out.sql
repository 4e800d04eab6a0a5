-- report:  left_out
-- answers: what is kept apart from the numbers, and why?
-- grain:   one row per run and cause
-- param:   run        varchar = null  a run's label; null = every run
-- column:  run        varchar  label of the service's configuration; null for questions that no query asked
-- column:  cause      varchar  why; queries_left_out lists the causes
-- column:  n_queries  bigint   queries concerned, or questions that no query asked
-- column:  n_spans    bigint   evidence spans kept apart; null where the whole query is
-- reads:   queries_left_out
select
    queries_left_out.run as run,
    queries_left_out.cause as cause,
    queries_left_out.n_queries as n_queries,
    queries_left_out.n_spans as n_spans
from queries_left_out
where
    cast($run as varchar) is null
    or queries_left_out.run = cast($run as varchar)
    or queries_left_out.cause = 'not_asked'
order by queries_left_out.run asc, queries_left_out.n_queries desc, queries_left_out.cause asc
