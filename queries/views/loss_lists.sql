-- view:    loss_lists
-- answers: which lists do the stage runs have at which something was lost?
-- grain:   one row per list of a stage run in loss_stages
-- column:  stage_id     bigint   stages.stage_id
-- column:  role         varchar  lists.role
-- column:  own_list_id  bigint   lists.list_id
-- column:  list_id      bigint   the list that has its rows: itself, or the earlier one it equals
-- reads:   lists, loss_stages
select
    lists.stage_id,
    lists.role,
    lists.list_id as own_list_id,
    coalesce(lists.same_as_list_id, lists.list_id) as list_id
from lists
inner join loss_stages on lists.stage_id = loss_stages.stage_id
