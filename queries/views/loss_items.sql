-- view:    loss_items
-- answers: which items hold, or may hold, a part of a lost span?
-- grain:   one row per item, evidence span and role
-- column:  item         integer  items.item
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  role         varchar  item_covers.role
-- reads:   item_covers, placed_losses
select distinct
    item_covers.item,
    item_covers.evidence_no,
    item_covers.role
from item_covers
where item_covers.evidence_no in (select placed_losses.evidence_no from placed_losses)
