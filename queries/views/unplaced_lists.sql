-- view:    unplaced_lists
-- answers: which lists hold an item of which nobody knows where in a document it stands?
-- grain:   one row per list; such an item may be any piece, so the list may hold anything
-- kept:    during a refresh
-- column:  list_id  bigint  candidates.list_id
-- reads:   items, item_ranges, candidates
with

unplaced_items as (

    -- Where the document is known there is at least a range that says so.
    select items.item
    from items
    left join item_ranges on items.item = item_ranges.item
    where items.doc_id is null and item_ranges.item is null

)

select distinct candidates.list_id
from candidates
where candidates.item in (select unplaced_items.item from unplaced_items)
