-- view:    piece_entries
-- answers: which entries of lists are items that hold evidence, or that took the id of one?
-- grain:   one row per list and rank of such an item; entries that were passed over are left out
-- kept:    during a refresh
-- column:  list_id  bigint   candidates.list_id
-- column:  rank     integer  its rank there
-- column:  item     integer  items.item
-- column:  score    double   its score there
-- column:  tokens   integer  its tokens there
-- reads:   evidence_cuts, items, candidates
with

covering as materialized (

    select distinct evidence_cuts.item
    from evidence_cuts
    where evidence_cuts.item is not null

),

-- Items that may have taken or lost an id that a covering item had: a later write ends the time of an earlier one.
namesakes as materialized (

    select same_id.item
    from items as same_id
    where
        same_id.chunk_id in (
            select held.chunk_id
            from items as held
            inner join covering on held.item = covering.item
        )
        and same_id.item not in (select covering.item from covering)

)

-- The one pass over the big table; everything after it is small.
select
    candidates.list_id,
    candidates.rank,
    candidates.item,
    candidates.score,
    candidates.tokens
from candidates
where
    candidates.item in (
        select covering.item
        from covering
        union all
        select namesakes.item
        from namesakes
    )
    and candidates.is_kept is distinct from false
