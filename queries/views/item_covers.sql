-- view:    item_covers
-- answers: which part of which evidence does an item hold?
-- grain:   one row per item, evidence span and stretch of it (or level that is touched)
-- kept:    during a refresh
-- column:  item         integer  items.item
-- column:  evidence_no  bigint   needed_evidence.evidence_no
-- column:  from_at      integer  first character, in the evidence's own coordinates
-- column:  to_at        integer  one past the last
-- column:  role         varchar  own (surely there), possible (may be there) or stands_for
-- reads:   needed_evidence, evidence_places, item_ranges, items
with

-- Quality unchecked stands for a document without a known parse: there the label's own offsets hold.
standing as (

    select
        needed_evidence.evidence_no,
        needed_evidence.level,
        needed_evidence.n_characters,
        evidence_places.doc_id,
        coalesce(evidence_places.text_hash, '') as text_hash,
        evidence_places.start_at,
        evidence_places.end_at,
        evidence_places.offsets
    from needed_evidence
    inner join evidence_places on needed_evidence.evidence_id = evidence_places.evidence_id
    where
        needed_evidence.level in ('span', 'page', 'section')
        and evidence_places.is_found
        and evidence_places.start_at is not null

),

touched as (

    select
        item_ranges.item,
        item_ranges.role,
        standing.evidence_no,
        standing.level,
        standing.n_characters,
        standing.offsets,
        greatest(item_ranges.start_at - standing.start_at, 0) as first_at,
        least(item_ranges.end_at, standing.end_at) - standing.start_at as last_at
    from item_ranges
    inner join standing
        on
            item_ranges.doc_id = standing.doc_id
            and coalesce(item_ranges.text_hash, '') = standing.text_hash
            and item_ranges.start_at < standing.end_at
            and item_ranges.end_at > standing.start_at

),

-- Of these texts nobody knows whether and where they hold the passage.
unsearched as (

    select
        texts.doc_id,
        texts.text_hash,
        needed_evidence.evidence_no,
        needed_evidence.n_characters
    from (
        select distinct
            item_ranges.doc_id,
            coalesce(item_ranges.text_hash, '') as text_hash
        from item_ranges
        where item_ranges.start_at is not null
    ) as texts
    inner join needed_evidence on texts.doc_id = needed_evidence.doc_id
    left join evidence_places
        on
            needed_evidence.evidence_id = evidence_places.evidence_id
            and texts.text_hash = coalesce(evidence_places.text_hash, '')
    where needed_evidence.level in ('span', 'page', 'section') and evidence_places.evidence_id is null

)

select
    touched.item,
    touched.evidence_no,
    cast(case
        when touched.level <> 'span' then 0
        when touched.offsets is null then touched.first_at
        else touched.offsets[touched.first_at + 1]
    end as integer) as from_at,
    cast(least(touched.n_characters, case
        when touched.level <> 'span' then 1
        when touched.offsets is null then touched.last_at
        else touched.offsets[touched.last_at + 1]
    end) as integer) as to_at,
    touched.role
from touched

union all

select
    item_ranges.item,
    unsearched.evidence_no,
    0 as from_at,
    cast(unsearched.n_characters as integer) as to_at,
    'possible' as role
from item_ranges
inner join unsearched
    on
        item_ranges.doc_id = unsearched.doc_id
        and coalesce(item_ranges.text_hash, '') = unsearched.text_hash
where item_ranges.start_at is not null

union all

select
    item_ranges.item,
    needed_evidence.evidence_no,
    0 as from_at,
    cast(needed_evidence.n_characters as integer) as to_at,
    'possible' as role
from item_ranges
inner join needed_evidence on item_ranges.doc_id = needed_evidence.doc_id
where item_ranges.start_at is null and needed_evidence.level in ('span', 'page', 'section')

union all

-- A document is touched by any of its parts; a rewritten part may have lost all of it.
select
    item_ranges.item,
    needed_evidence.evidence_no,
    0 as from_at,
    1 as to_at,
    case
        when item_ranges.role = 'possible' and item_ranges.start_at is null and not coalesce(items.is_altered, false)
            then 'own'
        else item_ranges.role
    end as role
from needed_evidence
inner join item_ranges on needed_evidence.doc_id = item_ranges.doc_id
inner join items on item_ranges.item = items.item
where needed_evidence.level = 'document'

union all

select
    items.item,
    needed_evidence.evidence_no,
    0 as from_at,
    1 as to_at,
    case when items.is_altered then 'possible' else 'own' end as role
from needed_evidence
inner join items on needed_evidence.chunk_id = items.chunk_id
where
    needed_evidence.level = 'chunk'
    and (needed_evidence.doc_id is null or items.doc_id is null or needed_evidence.doc_id = items.doc_id)
