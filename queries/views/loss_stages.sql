-- view:    loss_stages
-- answers: how were the stage runs set at which something was lost, and how did they end?
-- grain:   one row per stage run in loss_spots
-- column:  stage_id          bigint   stages.stage_id
-- column:  kind              varchar  stages.kind
-- column:  name              varchar  its name, else its kind
-- column:  status            varchar  stages.status; ok when it is not known
-- column:  error_type        varchar  stages.error_type
-- column:  mode              varchar  stages.mode
-- column:  index_name        varchar  stages.index_name
-- column:  k                 integer  stages.k
-- column:  threshold         double   stages.threshold
-- column:  budget_tokens     integer  stages.budget_tokens
-- column:  is_higher_better  boolean  a higher score is a better one
-- reads:   loss_spots, stages
select
    fallen.stage_id,
    stages.kind,
    coalesce(stages.name, stages.kind) as name,
    coalesce(stages.status, 'ok') as status,
    stages.error_type,
    stages.mode,
    stages.index_name,
    stages.k,
    stages.threshold,
    stages.budget_tokens,
    coalesce(stages.is_higher_better, coalesce(stages.score_kind, '') <> 'distance') as is_higher_better
from (select distinct loss_spots.stage_id from loss_spots) as fallen
inner join stages on fallen.stage_id = stages.stage_id
