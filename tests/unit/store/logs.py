"""Logs made by hand: what a service would have written, record by record, without a recorder."""

from __future__ import annotations

import fcntl
import os
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import Any

import duckdb

from ragtrace.spool import frames
from ragtrace.spool.records import CandidateList, Columns, Record, StageRecord
from ragtrace.store import database
from ragtrace.store.merge import Merged, merge

BEGIN_NS = 1_700_000_000_000_000_000
_ids = count(1_000_000)


def new_id() -> int:
    """An id no other record of the test run has."""
    return next(_ids)


def out(ids: Sequence[str | None], role: str = "out", **columns: Any) -> CandidateList:
    """A list with rows."""
    return CandidateList(new_id(), role, Columns(list(ids), **columns))


def same(*lists: CandidateList, role: str = "in") -> CandidateList:
    """A list that equals earlier ones."""
    return CandidateList(new_id(), role, None, [one.list_id for one in lists])


def stage(
    kind: str, *lists: CandidateList, start: int = 1, end: int | None = None, at_ns: int = BEGIN_NS, **row: Any
) -> Record:
    """One stage run."""
    filled = {
        "stage_id": new_id(), "kind": kind, "name": kind, "status": "ok", "start_no": start, "end_no": start + 1 if end is None else end,
        "started_at_ns": at_ns + start, "duration_ns": 1, "process_id": 7, **row,
    }  # fmt: skip
    return Record("stage", StageRecord(filled, lists))


def query(query_id: int, stages: Iterable[Record] = (), at_ns: int = BEGIN_NS, **row: Any) -> Record:
    """A query's row, counting what is in `stages`."""
    bodies = [record.body for record in stages]
    lists = [one for body in bodies for one in body.lists]
    filled = {
        "query_id": query_id, "run": "r", "run_kind": "actual", "status": "ok", "started_at_ns": at_ns, "duration_ns": 100,
        "process_id": 7, "n_stages": len(bodies), "n_lists": len(lists),
        "n_candidates": sum(len(one.columns.chunk_id) for one in lists if one.columns is not None), **row,
    }  # fmt: skip
    return Record("query", filled)


def process(process_id: int = 7) -> Record:
    """A process's row."""
    return Record("process", {"process_id": process_id, "host": "h", "pid": 1, "started_at_ns": BEGIN_NS})


def ingested(
    doc_id: str, ids: Sequence[str], places: Sequence[tuple[int, int]], at_ns: int = BEGIN_NS - 10_000, index_name: str | None = "main",
    text_hash: str | None = "hash-1", is_parsed: bool = True, is_indexed: bool = True,
) -> list[Record]:  # fmt: skip
    """A document parsed, cut and indexed within a microsecond."""
    ingest_id, parse_id = new_id(), new_id()
    chunks = out(
        ids,
        doc_id=[doc_id] * len(ids),
        start=[start for start, _ in places],
        end=[end for _, end in places],
        text_hash=text_hash,
    )
    records = [
        Record(
            "document",
            {
                "ingest_id": ingest_id,
                "doc_id": doc_id,
                "recorded_at_ns": at_ns,
                "ended_at_ns": at_ns + 900,
                "process_id": 7,
            },
        )
    ]
    if is_parsed:
        records.append(
            Record(
                "parse",
                {
                    "stage_id": parse_id,
                    "doc_id": doc_id,
                    "text_hash": text_hash,
                    "n_characters": 1000,
                    "parsed_at_ns": at_ns + 100,
                },
            )
        )
    records.append(stage("chunk", chunks, at_ns=at_ns + 200, ingest_id=ingest_id))
    if is_indexed:
        records.append(
            stage("index", same(chunks), start=3, at_ns=at_ns + 300, ingest_id=ingest_id, index_name=index_name)
        )
    return records


def write(store: Path, records: Iterable[Record], name: str = "1-1-a.log") -> Path:
    """Append records to a log of the store's spool; nobody holds it, so it is the log of a dead process."""
    spool = database.spool_of(store)
    spool.mkdir(parents=True, exist_ok=True)
    with open(spool / name, "ab") as file:
        for record in records:
            file.write(frames.encode(record))
    return spool / name


@contextmanager
def held(log: Path) -> Iterator[None]:
    """The log's writer lives while the block runs."""
    descriptor = os.open(log, os.O_RDONLY)
    fcntl.flock(descriptor, fcntl.LOCK_EX)
    try:
        yield
    finally:
        os.close(descriptor)


def merged(store: Path, records: Iterable[Record], name: str = "1-1-a.log") -> Merged:
    """Write and merge."""
    write(store, records, name)
    return merge(store)


def rows(store: Path, sql: str) -> list[tuple[Any, ...]]:
    """What a query of the store gives."""
    connection: duckdb.DuckDBPyConnection = database.connect(store, read_only=True)
    try:
        return connection.execute(sql).fetchall()
    finally:
        connection.close()
