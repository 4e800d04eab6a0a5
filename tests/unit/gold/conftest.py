"""A store, and the shortest way to put parsed texts into it."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import duckdb
import pytest

from ragtrace import digest
from ragtrace.gold import rows
from ragtrace.store import tables

Record = Callable[..., str]


@pytest.fixture
def store() -> Iterator[duckdb.DuckDBPyConnection]:
    """The tables of an empty store in memory: no file and no views, which labels do not need."""
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        for statement in tables.create_statements():
            if not statement.startswith("comment"):
                connection.execute(statement)
        rows.insert(connection, "settings", [{"name": "min_coverage", "value": 1.0}])
        yield connection


@pytest.fixture
def record(store: duckdb.DuckDBPyConnection) -> Record:
    """Record one parse of a document, as a merge would; later calls are later parses. Gives the text's hash."""
    count = 0

    def parse(
        doc_id: str,
        text: str,
        *,
        version: str | None = None,
        at: int | None = None,
        captured: str | None = None,
        is_captured: bool = True,
        is_aligned: bool = True,
    ) -> str:
        nonlocal count
        count += 1
        when = count * 1000 if at is None else at
        text_hash = digest.of_text(text)
        document: dict[str, Any] = {"ingest_id": count, "doc_id": doc_id, "doc_version": version, "status": "ok"}
        rows.insert(store, "documents", [{**document, "recorded_at_ns": when}])
        parsed = {"stage_id": count, "doc_id": doc_id, "doc_version": version, "text_hash": text_hash}
        rows.insert(store, "parses", [{**parsed, "n_characters": len(text), "parsed_at_ns": when}])
        known = store.execute("select 1 from texts where text_hash = ?", [text_hash]).fetchall()
        if is_captured and not known:
            kept = text if captured is None else captured
            rows.insert(store, "texts", [{"text_hash": text_hash, "text": kept, "is_aligned": is_aligned}])
        return text_hash

    return parse
