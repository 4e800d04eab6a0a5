"""However logs are cut into pieces and whenever each is merged, the store comes out the same."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from ragtrace.spool.records import Record
from ragtrace.store import database
from ragtrace.store.merge import merge
from tests.unit.store.logs import BEGIN_NS, ingested, new_id, out, query, rows, same, stage, write

TABLES = (
    "select query_id, final_how, is_whole, n_places from query_flows order by all",
    "select * from edges order by all",
    "select * from places order by all",
    "select * from place_lists order by all",
    "select * exclude (origin), coalesce(origin, '') from lists order by all",
    "select stage_id, query_id, kind, start_no from stages order by all",
    """
    select c.list_id, c.rank, i.chunk_id, list((r.doc_id, r.text_hash, r.start_at, r.end_at, r.role) order by r.start_at, r.role)
    from candidates as c join items as i using (item) left join item_ranges as r using (item) group by all order by all
    """,
    "select w.chunk_id, w.index_name, w.stage_id, i.doc_id, i.place from index_writes as w join items as i using (item) order by all",
)


def _pipeline(chance: random.Random, at_ns: int) -> list[Record]:
    """A query of a random shape: retrievers, a fusion, changed, equal and declared hand-overs, cuts, a generate."""
    query_id = new_id()
    names = [f"c{number}" for number in range(8)]
    stages: list[Record] = []
    start = 1
    last = []
    for _ in range(chance.randint(1, 3)):
        found = out(chance.sample(names, chance.randint(1, 5)))
        stages.append(stage("retrieve", found, start=start, query_id=query_id, at_ns=at_ns))
        last.append(found)
        start += 2
    for kind in chance.sample(["fuse", "rerank", "filter", "compress", "truncate", "generate"], chance.randint(1, 4)):
        taken = chance.choice(last)
        ids = list(taken.columns.chunk_id)  # type: ignore[union-attr]  # outputs have rows
        equal = [one for one in reversed(last) if one.columns.chunk_id == ids]  # type: ignore[union-attr]  # outputs have rows
        given = same(*equal)
        if chance.random() < 0.3:
            given = out(chance.sample(ids, max(1, len(ids) - 1)), "in")
        if chance.random() < 0.3:
            source = chance.choice(stages).body.row["stage_id"]
            given = given._replace(declared_sources=[source])
        lists = [given]
        if kind != "generate":
            kept = ids if chance.random() < 0.3 else chance.sample(ids, chance.randint(1, len(ids)))
            cut = {0: [(1, 3)]} if kind == "compress" else None
            lists.append(out(kept, cut=cut))
            last.append(lists[-1])
        stages.append(stage(kind, *lists, start=start, query_id=query_id, at_ns=at_ns))
        start += 2
    return [*stages, query(query_id, stages, at_ns)]


def _records(chance: random.Random) -> list[Record]:
    records: list[Record] = []
    for number in range(3):
        text_hash = f"hash-{number}"
        at_ns = BEGIN_NS + number * 100_000 - 50_000
        names = chance.sample([f"c{n}" for n in range(8)], 6)
        records += ingested(
            "d", names, [(n * 10, n * 10 + 10 + number) for n in range(6)], at_ns=at_ns, text_hash=text_hash
        )
        for _ in range(4):
            records += _pipeline(chance, BEGIN_NS + number * 100_000 + chance.randint(0, 40_000))
    return records


def _units(records: list[Record]) -> list[list[Record]]:
    """Records one by one; those of a query with a cut together: rows after the cut take its place only in one merge."""
    of_query: dict[int | None, list[Record]] = {}
    units = []
    for record in records:
        query_id = record.body.row.get("query_id") if record.kind == "stage" else record.body.get("query_id")
        if query_id is None:
            units.append([record])
        else:
            of_query.setdefault(query_id, []).append(record)
    for its_records in of_query.values():
        is_cut = any(record.kind == "stage" and record.body.row["kind"] == "compress" for record in its_records)
        units += [its_records] if is_cut else [[record] for record in its_records]
    return units


@pytest.mark.parametrize("seed", range(8))
def test_a_store_does_not_depend_on_how_its_logs_were_cut_and_when_they_were_merged(seed: int, tmp_path: Path) -> None:
    chance = random.Random(seed)
    records = _records(chance)
    at_once, bit_by_bit = tmp_path / "one.duckdb", tmp_path / "many.duckdb"
    database.connect(at_once).close()
    bit_by_bit.write_bytes(at_once.read_bytes())
    write(at_once, records)
    merge(at_once)
    # Any order of arrival: the records of a query may come in several merges, chunks after the queries that found them.
    units = _units(records)
    shuffled = chance.sample(units, len(units))
    number = 0
    while shuffled:
        n = chance.randint(1, max(1, len(units) // 3))
        write(bit_by_bit, [record for unit in shuffled[:n] for record in unit], f"{number}-1-a.log")
        merge(bit_by_bit)
        shuffled = shuffled[n:]
        number += 1
    for sql in TABLES:
        assert rows(bit_by_bit, sql) == rows(at_once, sql), sql
