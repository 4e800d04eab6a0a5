-- view:    candidate_list
-- answers: what was in each list, by its own ids?
-- grain:   one row per list and item of it, on the query side and the ingest side
-- column:  query_id     bigint   queries.query_id; null on the ingest side
-- column:  stage_id     bigint   stages.stage_id; null for a declared context
-- column:  kind         varchar  the stage's kind
-- column:  stage        varchar  the user's name for it
-- column:  list_id      bigint   lists.list_id
-- column:  role         varchar  in, out, considered, dropped or context
-- column:  rank         integer  1-based, the order returned
-- column:  chunk_id     varchar  as the service names it
-- column:  doc_id       varchar  source document
-- column:  score        double   as returned
-- column:  score_flag   varchar  nan, inf, -inf or unreadable when the score is null for that reason
-- column:  tokens       integer  tokens it takes
-- column:  position     integer  place in the prompt where it differs from the rank
-- column:  is_kept      boolean  false: looked at and not let through
-- column:  drop_reason  varchar  dropped lists: the declared reason
-- column:  dropped_by   varchar  dropped lists: the field, rule or rival that did it
-- column:  item         integer  items.item
-- reads:   candidates, lists, items, stages
select
    lists.query_id,
    lists.stage_id,
    stages.kind,
    stages.name as stage,
    lists.list_id,
    lists.role,
    candidates.rank,
    items.chunk_id,
    items.doc_id,
    candidates.score,
    candidates.score_flag,
    candidates.tokens,
    candidates.position,
    candidates.is_kept,
    candidates.drop_reason,
    candidates.dropped_by,
    candidates.item
from lists
inner join candidates on coalesce(lists.same_as_list_id, lists.list_id) = candidates.list_id
inner join items on candidates.item = items.item
left join stages on lists.stage_id = stages.stage_id
