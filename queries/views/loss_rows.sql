-- view:    loss_rows
-- answers: where do lists say of something lost more than that it is not there?
-- grain:   one row per list and rank of an item that was lost, or of its kin
-- kept:    during a refresh
-- column:  list_id      bigint   candidates.list_id
-- column:  item         integer  candidates.item
-- column:  rank         integer  candidates.rank
-- column:  score        double   candidates.score
-- column:  tokens       integer  candidates.tokens
-- column:  is_kept      boolean  candidates.is_kept
-- column:  drop_reason  varchar  candidates.drop_reason
-- column:  dropped_by   varchar  candidates.dropped_by
-- reads:   loss_items, loss_spots, loss_lists, placed_losses, item_kin, candidates
with

side_lists as (

    select
        loss_lists.stage_id,
        loss_lists.list_id
    from loss_lists
    where loss_lists.role in ('considered', 'dropped')

),

-- Rows are looked for only where there can be some that say more than the place itself.
sought_items as (

    select loss_items.item
    from loss_items
    inner join loss_spots on loss_items.evidence_no = loss_spots.evidence_no
    inner join side_lists on loss_spots.stage_id = side_lists.stage_id

    union

    select loss_items.item
    from loss_items
    inner join placed_losses on loss_items.evidence_no = placed_losses.evidence_no
    where placed_losses.sure_order = 3

    union

    select item_kin.kin_item as item
    from item_kin

    union

    select item_kin.item
    from item_kin
    where item_kin.is_same_id

)

select
    candidates.list_id,
    candidates.item,
    candidates.rank,
    candidates.score,
    candidates.tokens,
    candidates.is_kept,
    candidates.drop_reason,
    candidates.dropped_by
from candidates
where candidates.item in (select sought_items.item from sought_items)
