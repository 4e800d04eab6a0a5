-- report:  final_context
-- answers: how was the final context of the queries known?
-- grain:   one row per run and way of knowing
-- param:   run        varchar = null  a run's label; null = every run
-- column:  run        varchar  label of the service's configuration
-- column:  final_how  varchar  declared, final_stage, answer_generate, only_generate, inferred or unknown
-- column:  n_queries  bigint   queries for which it was known so
-- reads:   query_scope
select
    query_scope.run as run,
    query_scope.final_how as final_how,
    count(*) as n_queries
from query_scope
where cast($run as varchar) is null or query_scope.run = cast($run as varchar)
group by query_scope.run, query_scope.final_how
order by query_scope.run asc, count(*) desc, query_scope.final_how
