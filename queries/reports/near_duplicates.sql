-- report:  near_duplicates
-- answers: how many of the first candidates of each stage repeat one that ranks higher?
-- grain:   one row per run and stage, and the final context
-- param:   run             varchar = null  a run's label; null = every run
-- param:   n_first         integer = 10    how many candidates of a list are looked at
-- param:   min_shared      double = 0.8    share of the shorter range that two ranges of one text share, or share of words that two texts share, to count as near-same
-- column:  run             varchar  label of the service's configuration
-- column:  kind            varchar  the stage's kind; final context
-- column:  stage           varchar  the user's name for it; null for the final context
-- column:  n_lists         bigint   lists looked at
-- column:  n_candidates    bigint   their first candidates
-- column:  n_same_text     bigint   candidates whose id, text hash or place in the document stands higher in the list
-- column:  n_near_same     bigint   candidates with a near-same one above them, and none of those
-- column:  share_crowded   double   both of n_candidates
-- column:  n_crowded_lists bigint   lists with any such candidate
-- column:  n_unknown       bigint   candidates of which neither text hash nor range is known: only their id was compared
-- reads:   places, place_lists, candidates, items, item_ranges, texts, stages, query_scope
with

spots as materialized (

    select
        query_scope.run,
        places.query_id,
        places.place_no,
        coalesce(stages.kind, 'final context') as kind,
        stages.name as stage,
        place_lists.list_id
    from places
    inner join query_scope on places.query_id = query_scope.query_id
    inner join place_lists on places.query_id = place_lists.query_id and places.place_no = place_lists.place_no
    left join stages on places.stage_id = stages.stage_id
    where
        places.side in ('out', 'context')
        and (cast($run as varchar) is null or query_scope.run = cast($run as varchar))

),

firsts as materialized (

    select
        spots.list_id,
        candidates.rank,
        candidates.item,
        items.chunk_id,
        items.item_text_hash
    from (select distinct spots.list_id from spots) as spots
    inner join candidates on spots.list_id = candidates.list_id
    inner join items on candidates.item = items.item
    where candidates.rank <= $n_first and candidates.is_kept is distinct from false

),

ranges as materialized (

    select
        item_ranges.item,
        item_ranges.doc_id,
        item_ranges.text_hash,
        min(item_ranges.start_at) as start_at,
        max(item_ranges.end_at) as end_at
    from item_ranges
    where
        item_ranges.role = 'own'
        and item_ranges.start_at is not null
        and item_ranges.item in (select firsts.item from firsts)
    group by item_ranges.item, item_ranges.doc_id, item_ranges.text_hash

),

words as materialized (

    select
        ranges.item,
        list_distinct(
            regexp_extract_all(
                lower(substring(texts.text, ranges.start_at + 1, ranges.end_at - ranges.start_at)), '[\p{L}\p{M}\p{N}]+'
            )
        ) as words
    from ranges
    inner join texts on ranges.text_hash = texts.text_hash and texts.is_aligned

),

-- All of an item's ranges: two items of one place have one text.
own_places as materialized (

    select
        item_ranges.item,
        list(
            concat_ws(' ', item_ranges.doc_id, item_ranges.text_hash, item_ranges.start_at, item_ranges.end_at)
            order by item_ranges.start_at, item_ranges.end_at
        ) as place
    from item_ranges
    where item_ranges.role = 'own' and item_ranges.item in (select ranges.item from ranges)
    group by item_ranges.item

),

pairs as (

    select
        lower_one.list_id,
        lower_one.rank,
        lower_one.item,
        higher_one.item as higher_item,
        lower_one.chunk_id = higher_one.chunk_id
        or coalesce(lower_one.item_text_hash = higher_one.item_text_hash, false)
        or coalesce(lower_place.place = higher_place.place, false) as is_same
    from firsts as lower_one
    inner join firsts as higher_one
        on lower_one.list_id = higher_one.list_id and lower_one.rank > higher_one.rank
    left join own_places as lower_place on lower_one.item = lower_place.item
    left join own_places as higher_place on higher_one.item = higher_place.item

),

item_pairs as materialized (

    select distinct
        least(pairs.item, pairs.higher_item) as one_item,
        greatest(pairs.item, pairs.higher_item) as other_item
    from pairs
    where not pairs.is_same

),

near_pairs as materialized (

    select
        item_pairs.one_item,
        item_pairs.other_item
    from item_pairs
    inner join ranges as one on item_pairs.one_item = one.item
    inner join ranges as other
        on
            item_pairs.other_item = other.item
            and one.doc_id = other.doc_id
            and one.text_hash is not distinct from other.text_hash
    where
        (least(one.end_at, other.end_at) - greatest(one.start_at, other.start_at))
        / nullif(least(one.end_at - one.start_at, other.end_at - other.start_at), 0) >= $min_shared
    union
    select
        item_pairs.one_item,
        item_pairs.other_item
    from item_pairs
    inner join words as one on item_pairs.one_item = one.item
    inner join words as other on item_pairs.other_item = other.item
    where
        least(len(one.words), len(other.words)) >= $min_shared * greatest(len(one.words), len(other.words))
        and len(list_intersect(one.words, other.words))
        / nullif(len(one.words) + len(other.words) - len(list_intersect(one.words, other.words)), 0) >= $min_shared

),

judged as (

    select
        firsts.list_id,
        firsts.rank,
        firsts.item_text_hash is null and firsts.item not in (select ranges.item from ranges) as is_unknown,
        coalesce(bool_or(pairs.is_same), false) as is_same,
        coalesce(bool_or(near_pairs.one_item is not null), false) as is_near
    from firsts
    left join pairs on firsts.list_id = pairs.list_id and firsts.rank = pairs.rank
    left join near_pairs
        on
            least(pairs.item, pairs.higher_item) = near_pairs.one_item
            and greatest(pairs.item, pairs.higher_item) = near_pairs.other_item
    group by firsts.list_id, firsts.rank, firsts.item_text_hash, firsts.item

),

per_list as (

    select
        judged.list_id,
        count(*) as n_candidates,
        count(*) filter (where judged.is_same) as n_same,
        count(*) filter (where judged.is_near and not judged.is_same) as n_near,
        count(*) filter (where judged.is_unknown) as n_unknown
    from judged
    group by judged.list_id

)

select
    spots.run as run,
    spots.kind as kind,
    spots.stage as stage,
    count(*) as n_lists,
    cast(coalesce(sum(per_list.n_candidates), 0) as bigint) as n_candidates,
    cast(coalesce(sum(per_list.n_same), 0) as bigint) as n_same_text,
    cast(coalesce(sum(per_list.n_near), 0) as bigint) as n_near_same,
    cast(sum(per_list.n_same + per_list.n_near) as double) / nullif(sum(per_list.n_candidates), 0) as share_crowded,
    count(*) filter (where per_list.n_same + per_list.n_near > 0) as n_crowded_lists,
    cast(coalesce(sum(per_list.n_unknown), 0) as bigint) as n_unknown
from spots
left join per_list on spots.list_id = per_list.list_id
group by spots.run, spots.kind, spots.stage
order by spots.run asc, n_crowded_lists desc, spots.kind asc, spots.stage asc
