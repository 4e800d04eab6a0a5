"""Looks item keys up in the store and adds the new ones: set-based SQL over three Arrow tables.

`staging_keys` holds the keys, `staging_ranges` the ranges of keys with other than one plain range, `staging_texts` what was
seen of their texts; all by the key's number. What a key did not say is found first: the text its range refers to, and the
chunk its id stands for, both as of the key's time.
"""

from __future__ import annotations

import duckdb
import pyarrow as pa

__all__ = ["enter_keys"]

# Newest text of each document as of each time at which a key without a text hash asks for it.
_TEXT_AS_OF = """
create or replace temp table staging_newest as
with
asked as (
    select distinct doc_id, as_of_ns
    from staging_keys
    where text_hash is null and doc_id is not null and (place is not null or start_at is not null)
),
parsed as (
    select p.doc_id, p.parsed_at_ns, max(p.text_hash) as text_hash
    from parses as p
    where p.doc_id in (select doc_id from asked)
    group by p.doc_id, p.parsed_at_ns
)
-- An asof join keeps no order and is slow over many rows: few documents have several texts, so join by document and time.
select a.doc_id, a.as_of_ns, arg_max(p.text_hash, p.parsed_at_ns) as text_hash
from asked as a
join parsed as p on p.doc_id = a.doc_id and p.parsed_at_ns < a.as_of_ns
group by a.doc_id, a.as_of_ns
"""

# A chunk's place: index runs before chunk runs, then the newest one written before. With no index named it must be in one only.
_CHUNK_AS_OF = """
create or replace temp table staging_targets as
with
written as (
    select w.chunk_id, w.index_name, w.item, w.is_index, w.written_at_ns, i.doc_id, i.text_hash
    from index_writes as w
    join items as i on i.item = w.item
    where
        i.place is not null
        and w.chunk_id in (select chunk_id from staging_keys where place is null and start_at is null)
),
versions as (
    select
        chunk_id, index_name, item, is_index,
        dense_rank() over (partition by chunk_id, index_name order by min(written_at_ns), item) - 1 as version
    from written
    group by chunk_id, index_name, item, is_index
),
placeless as (
    select k.number, k.chunk_id, k.index_name, k.doc_id, k.as_of_ns
    from staging_keys as k
    where k.place is null and k.start_at is null and k.chunk_id in (select chunk_id from written)
),
known as (
    select
        p.number,
        arg_max(w.item, (w.is_index, w.written_at_ns, w.item)) as target,
        count(distinct case when p.index_name is null then w.index_name end) as n_indexes
    from placeless as p
    join written as w
        on w.chunk_id = p.chunk_id
        and w.written_at_ns < p.as_of_ns
        and (w.index_name = p.index_name or w.index_name is null or p.index_name is null)
        and (w.doc_id = p.doc_id or p.doc_id is null)
    group by p.number
)
select k.number, k.target, max(v.version) as version
from known as k
join placeless as p on p.number = k.number
join versions as v on v.chunk_id = p.chunk_id and v.item = k.target
where k.n_indexes <= 1
group by k.number, k.target
"""

# Every key with all that is known of it, and its item where there is one already.
_ALL = """
create or replace temp table staging_all as
with
placed as (
    select
        k.number, k.chunk_id, k.id_source, k.index_name, k.doc_id, coalesce(k.text_hash, n.text_hash) as text_hash,
        coalesce(k.place, case when k.text_hash is null then '~' else '' end || k.start_at || '-' || k.end_at) as place,
        k.start_at, k.end_at, coalesce(k.is_altered, false) as is_altered, null::integer as target, 0 as version
    from staging_keys as k
    left join staging_newest as n on k.text_hash is null and n.doc_id = k.doc_id and n.as_of_ns = k.as_of_ns
    where k.place is not null or k.start_at is not null
),
placeless as (
    select
        k.number, k.chunk_id, k.id_source, k.index_name, coalesce(i.doc_id, k.doc_id) as doc_id, i.text_hash,
        '=' || t.target as place, k.start_at, k.end_at, false as is_altered, t.target, coalesce(t.version, 0) as version
    from staging_keys as k
    left join staging_targets as t on t.number = k.number
    left join items as i on i.item = t.target
    where k.place is null and k.start_at is null
),
keys as (
    select * from placed
    union all
    select * from placeless
)
select
    k.number, k.chunk_id, k.id_source, k.index_name, k.doc_id, k.text_hash, k.place, k.start_at, k.end_at, k.is_altered, k.target,
    k.version, i.item
from keys as k
left join items as i
    on i.chunk_id is not distinct from k.chunk_id
    and i.index_name is not distinct from k.index_name
    and i.doc_id is not distinct from k.doc_id
    and i.text_hash is not distinct from k.text_hash
    and i.place is not distinct from k.place
"""

# Keys that are told apart by what they did not say may turn out to be the same item.
_NEW = """
create or replace temp table staging_new as
with
highest as (select coalesce(max(item), 0) as item from items),
missing as (
    select number, chunk_id, index_name, doc_id, text_hash, place from staging_all where item is null
),
firsts as (
    select chunk_id, index_name, doc_id, text_hash, place, min(number) as number
    from missing
    group by chunk_id, index_name, doc_id, text_hash, place
),
numbered as (
    select f.*, (row_number() over (order by f.number) + h.item)::integer as item from firsts as f cross join highest as h
)
select m.number, n.item, n.number as first_number
from missing as m
join numbered as n
    on n.chunk_id is not distinct from m.chunk_id
    and n.index_name is not distinct from m.index_name
    and n.doc_id is not distinct from m.doc_id
    and n.text_hash is not distinct from m.text_hash
    and n.place is not distinct from m.place
"""

# Ids of one kind and time that say nothing but themselves are as many items.
_NEW_DISTINCT = """
create or replace temp table staging_new as
with
highest as (select coalesce(max(item), 0) as item from items)
select a.number, (row_number() over (order by a.number) + h.item)::integer as item, a.number as first_number
from staging_all as a
cross join highest as h
where a.item is null
"""

_INSERT_ITEMS = """
insert into items by name
select
    n.item, a.chunk_id, a.id_source, a.index_name, a.version::integer as version, a.doc_id, a.text_hash, t.item_text_hash,
    t.offset_quality, a.is_altered, a.place
from staging_new as n
join staging_all as a on a.number = n.number
left join staging_texts as t on t.number = n.number
where n.number = n.first_number
order by n.item
"""

_INSERT_RANGES = """
insert into item_ranges by name
with
new as (
    -- Ids of which nothing else is known have no range of any kind.
    select n.item, a.number, a.doc_id, a.text_hash, a.place, a.start_at, a.end_at, a.target
    from staging_new as n
    join staging_all as a on a.number = n.number
    where n.number = n.first_number and (a.place is not null or a.doc_id is not null)
),
plain as (
    select item, doc_id, text_hash, start_at, end_at, 'own' as role from new where start_at is not null
),
several as (
    select n.item, n.doc_id, n.text_hash, r.start_at, r.end_at, r.role
    from staging_ranges as r
    join new as n on n.number = r.number
),
through_chunk as (
    select n.item, r.doc_id, r.text_hash, r.start_at, r.end_at, r.role
    from new as n
    join item_ranges as r on r.item = n.target
),
whole_document as (
    select item, doc_id, null::varchar as text_hash, null::integer as start_at, null::integer as end_at, 'possible' as role
    from new
    where place is null and doc_id is not null
)
select item, doc_id, text_hash, start_at, end_at, role from plain
union all
select item, doc_id, text_hash, start_at, end_at, role from several
union all
select item, doc_id, text_hash, start_at, end_at, role from through_chunk
union all
select item, doc_id, text_hash, start_at, end_at, role from whole_document
"""


def enter_keys(
    connection: duckdb.DuckDBPyConnection, keys: pa.Table, ranges: pa.Table, texts: pa.Table, are_distinct: bool = False
) -> pa.Table:
    """Look key rows up, add the new ones; number and item of each.

    `are_distinct`: no two keys can be the same item, which spares comparing them.
    """
    for name, table in (("staging_keys", keys), ("staging_ranges", ranges), ("staging_texts", texts)):
        connection.register(name, table)
    new = _NEW_DISTINCT if are_distinct else _NEW
    for statement in (_TEXT_AS_OF, _CHUNK_AS_OF, _ALL, new, _INSERT_ITEMS, _INSERT_RANGES):
        connection.execute(statement)
    found = connection.sql(
        "select number, item from staging_all where item is not null union all select number, item from staging_new"
    ).to_arrow_table()
    for name in ("staging_keys", "staging_ranges", "staging_texts"):
        connection.unregister(name)
    return found
