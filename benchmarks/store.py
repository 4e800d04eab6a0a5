"""Speed and size of the store: merge against a raw insert of the same candidates, list to queryable, bytes a candidate.

`python -m benchmarks.store`. Everything in one run on one core, where a process can be held to one. The peer is one Arrow table with string ids inserted
into a DuckDB file and checkpointed, which is what a merge does at the very least. Times are processor times: other load on the machine counts little.
"""

from __future__ import annotations

import os
import random
import sys
import tempfile
import time
from array import array
from collections.abc import Iterator
from pathlib import Path

import duckdb
import pyarrow as pa
import pyarrow.dataset  # DuckDB imports it at the first Arrow scan: not the merge's time

from benchmarks.harness import Options, Row, main
from ragtrace.spool import frames
from ragtrace.spool.log import spool_of
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord
from ragtrace.store import database
from ragtrace.store.merge import merge

BEGIN_NS = 1_700_000_000_000_000_000
N_IDS = 200_000
N_QUERIES = 3000
N_LOGS = 9
"""Logs of 3,000 queries that make 10 M candidates."""


class _Ids:
    def __init__(self) -> None:
        self.last = 0

    def __call__(self) -> int:
        self.last += 1
        return self.last


def _queries(n_queries: int, k: int, next_id: _Ids) -> list[list[Record]]:
    """Two retrievers, a fusion, a reranker, a budget, a generate; ids drawn from 200,000."""
    chance = random.Random(next_id.last)
    names = [f"chunk-{number:08d}" for number in range(N_IDS)]

    def columns(ids: list[str]) -> Columns:
        return Columns(ids, score=array("d", [chance.random() for _ in ids]))

    made = []
    for number in range(n_queries):
        query_id, at_ns = next_id(), BEGIN_NS + number * 1000
        drawn = chance.choices(names, k=2 * k)
        fused = list(dict.fromkeys(drawn))[: k * 3 // 2]
        outs = [
            CandidateList(next_id(), "out", columns(ids))
            for ids in (drawn[:k], drawn[k:], fused, fused[: k // 2], fused[:8])
        ]
        taken = [CandidateList(next_id(), "in", None, [one.list_id]) for one in outs]
        stages = []
        for start, (kind, lists) in enumerate((
            ("retrieve", [outs[0]]), ("retrieve", [outs[1]]), ("fuse", [taken[0], taken[1], outs[2]]), ("rerank", [taken[2], outs[3]]),
            ("truncate", [taken[3], outs[4]]), ("generate", [taken[4]]),
        )):  # fmt: skip
            row = {
                "stage_id": next_id(), "query_id": query_id, "kind": kind, "name": kind, "status": "ok", "start_no": 2 * start + 1, "end_no": 2 * start + 2,
                "started_at_ns": at_ns + start, "duration_ns": 1, "process_id": 7, "is_aside": False, "is_final": False, "is_answer": False,
            }  # fmt: skip
            stages.append(Record("stage", StageRecord(row, lists)))
        n = sum(len(one.columns.chunk_id) for one in outs if one.columns is not None)
        row = {
            "query_id": query_id, "run": "r", "run_kind": "actual", "question": "why", "status": "ok", "started_at_ns": at_ns, "duration_ns": 100,
            "process_id": 7, "n_stages": 6, "n_lists": 10, "n_candidates": n,
        }  # fmt: skip
        made.append([*stages, Record("query", row)])
    return made


def _raw_insert_s(folder: Path, store: Path) -> float:
    with database.connect(store, read_only=True) as connection:
        table = connection.sql(
            "select c.list_id, c.rank, i.chunk_id, c.score from candidates as c join items as i using (item)"
        ).to_arrow_table()
    with duckdb.connect(str(folder / "raw.duckdb"), config={"threads": 1}) as connection:
        connection.execute("create table raw (list_id bigint, rank integer, chunk_id varchar, score double)")
        connection.register("given", table)
        begin = time.process_time()
        connection.execute("insert into raw select list_id, rank, chunk_id, score from given")
        connection.execute("checkpoint")
        return time.process_time() - begin


def _write_log(store: Path, queries: list[list[Record]], name: str) -> float:
    """Processor seconds."""
    spool_of(store).mkdir(exist_ok=True)
    begin = time.process_time()
    with open(spool_of(store) / f"{name}.log", "wb") as log:
        for records in queries:
            log.write(b"".join(map(frames.encode, records)))
    return time.process_time() - begin


def rows(options: Options) -> Iterator[Row]:
    """Merge, way from a list to a query, and size on disk of queries of 2 × 100 candidates retrieved, 3,000 a log.

    The same at every scale: the budget of the disk is for 10 M candidates, and they take a minute.
    """
    if hasattr(os, "sched_setaffinity"):
        cores = os.sched_getaffinity(0)
        os.sched_setaffinity(0, {min(cores)})
        try:
            yield from _rows(N_QUERIES, 100)
        finally:
            os.sched_setaffinity(0, cores)
    else:
        yield from _rows(N_QUERIES, 100)


def _rows(n_queries: int, k: int) -> Iterator[Row]:
    next_id = _Ids()
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        store = folder / "traces.duckdb"
        database.connect(store).close()
        empty_bytes = store.stat().st_size
        write_s = _write_log(store, _queries(n_queries, k, next_id), "1-1-a")
        pa.array(["first"])  # Arrow looks for pandas once: 0.4 s where it is installed
        begin = time.process_time()
        merged = merge(store)
        merge_s = time.process_time() - begin
        n = merged.n_candidates
        raw_s = _raw_insert_s(folder, store)
        yield Row(f"raw insert of {n:,} candidates, Arrow → DuckDB", n / raw_s / 1e6, "M a second")
        yield Row("merge", raw_s / merge_s, "× the raw insert", 0.6, is_at_most=False)
        yield Row(
            "list to queryable, one core", n / (write_s + merge_s) / 1e6, "M candidates a second", 1.5, is_at_most=False
        )
        for number in range(2, N_LOGS + 1):
            _write_log(store, _queries(n_queries, k, next_id), f"{number}-1-a")
            n += merge(store).n_candidates
        yield Row(
            f"disk, {n:,} candidates",
            (store.stat().st_size - empty_bytes) / n,
            "bytes a candidate",
            13,
        )


if __name__ == "__main__":
    sys.exit(main(rows))
