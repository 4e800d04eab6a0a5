"""Records of a log that has to be read a second time: those that are in the store already are told by their ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import duckdb
import pyarrow as pa

from ragtrace.spool.records import Record, StageRecord

__all__ = ["without_known"]

_KEYS = {"query": ("queries", "query_id"), "stage": ("stages", "stage_id"), "document": ("documents", "ingest_id"),
         "parse": ("parses", "stage_id"), "inventory": ("inventories", "inventory_id"), "context": ("lists", "list_id")}  # fmt: skip
"""Kind of record -> table and column of its id; processes and texts are entered once anyway."""


def without_known(connection: duckdb.DuckDBPyConnection, records: Sequence[Record]) -> list[Record]:
    """The records that are not in the store, in their order.

    Losses have no id: those of a process that has losses of that time in the store are taken for the same.
    """
    known = {kind: _known(connection, kind, [_id(one) for one in records if one.kind == kind]) for kind in _KEYS}
    return [
        one
        for one in records
        if (one.kind not in _KEYS or _id(one) not in known[one.kind])
        and not (one.kind == "loss" and _is_lost(connection, one.body))
    ]


def _id(record: Record) -> Any:
    if record.kind == "context":
        return record.body[1].list_id
    row = record.body.row if isinstance(record.body, StageRecord) else record.body
    return row.get(_KEYS[record.kind][1])


def _known(connection: duckdb.DuckDBPyConnection, kind: str, ids: Sequence[Any]) -> set[Any]:
    if not ids:
        return set()
    table, column = _KEYS[kind]
    # A query called interrupted has a row that came from no log.
    which = " and status is distinct from 'interrupted'" if kind == "query" else ""
    connection.register("staging_keys", pa.table({"key": pa.array(ids, pa.int64())}))
    found = connection.execute(
        f"select {column} from {table} where {column} in (select key from staging_keys){which}"
    ).fetchall()
    connection.unregister("staging_keys")
    return {row[0] for row in found}


def _is_lost(connection: duckdb.DuckDBPyConnection, row: Any) -> bool:
    found = connection.execute(
        "select count(*) from losses where process_id = $process and reason = $reason and $at between first_at_ns and last_at_ns",
        {"process": row.get("process_id"), "reason": row.get("reason"), "at": row.get("first_at_ns")},
    ).fetchall()
    return bool(found[0][0])
