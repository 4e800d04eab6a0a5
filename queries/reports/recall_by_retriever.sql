-- report:  recall_by_retriever
-- answers: what does each retriever find of the gold?
-- grain:   one row per run and retriever
-- param:   run         varchar = null  a run's label; null = every run
-- column:  run         varchar  label of the service's configuration
-- column:  stage_order bigint   its place in the flow of the run
-- column:  retriever   varchar  the user's name for it
-- column:  n_judged    bigint   judged queries in which it ran
-- column:  recall      double   mean share of needs in what it returned, best set
-- column:  n_lost_in   bigint   spans that it missed and no other retriever found
-- reads:   stage_recall
select
    stage_recall.run as run,
    stage_recall.stage_order as stage_order,
    stage_recall.stage as retriever,
    stage_recall.n_judged as n_judged,
    stage_recall.recall_out as recall,
    stage_recall.n_lost_in as n_lost_in
from stage_recall
where stage_recall.kind = 'retrieve' and (cast($run as varchar) is null or stage_recall.run = cast($run as varchar))
order by stage_recall.run, stage_recall.stage_order
