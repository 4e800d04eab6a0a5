-- view:    retrieve_runs
-- answers: which runs of retrievers count as retrieval?
-- grain:   one row per retrieve run of a query that is no probe and not aside
-- column:  query_id    bigint   queries.query_id
-- column:  stage_id    bigint   stages.stage_id
-- column:  name        varchar  the user's name for it
-- column:  index_name  varchar  where it searched; null = the only recorded index
-- column:  status      varchar  ok, error or cancelled
-- reads:   stages
select
    stages.query_id,
    stages.stage_id,
    coalesce(stages.name, stages.kind) as name,
    stages.index_name,
    coalesce(stages.status, 'ok') as status
from stages
where
    stages.kind = 'retrieve'
    and stages.query_id is not null
    and not coalesce(stages.is_aside, false)
    and stages.probe is null
