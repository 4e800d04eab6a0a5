-- view:    item_kin
-- answers: which other items share an id or a text with one that was lost?
-- grain:   one row per item that held something lost and other item; the id may have gone on cut, the text through a twin
-- kept:    during a refresh
-- column:  item          integer  items.item
-- column:  kin_item      integer  items.item of the other one
-- column:  is_same_id    boolean  they share the id
-- column:  is_same_text  boolean  they share the text
-- reads:   items, loss_spots, loss_items, placed_losses
with

-- Items that share an id or a text with a lost one: the id may have gone on cut, the text through a twin.
end_items as materialized (

    select
        items.item,
        items.chunk_id,
        items.item_text_hash
    from items
    where items.item in (
        select loss_spots.end_item from loss_spots
        union
        select loss_items.item
        from loss_items
        inner join placed_losses on loss_items.evidence_no = placed_losses.evidence_no
        where placed_losses.sure_order in (3, 4)
    )

)

select
    related.item,
    related.kin_item,
    max(related.is_same_id) = 1 as is_same_id,
    max(related.is_same_text) = 1 as is_same_text
from (
    select
        end_items.item,
        items.item as kin_item,
        1 as is_same_id,
        case when end_items.item_text_hash = items.item_text_hash then 1 else 0 end as is_same_text
    from end_items
    inner join items on end_items.chunk_id = items.chunk_id

    union all

    select
        end_items.item,
        items.item as kin_item,
        0 as is_same_id,
        1 as is_same_text
    from end_items
    inner join items on end_items.item_text_hash = items.item_text_hash
) as related
where related.item <> related.kin_item
group by related.item, related.kin_item
