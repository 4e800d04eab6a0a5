"""Every row of docs/candidates.md, run."""

from __future__ import annotations

import importlib
import re
import sqlite3
from decimal import Decimal
from math import isnan
from pathlib import Path
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import pytest

from ragtrace import model
from ragtrace.recording.candidates import read
from ragtrace.spool.records import Columns

PAGE = Path(__file__).parents[3] / "docs" / "candidates.md"
ROWS = re.findall(r"^\| `(.+?)`(?: \(\w+\))? \| (.+) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)


def _connection() -> sqlite3.Connection:
    connection = sqlite3.connect(":memory:")
    connection.row_factory = sqlite3.Row
    return connection


NEEDED = {
    "langchain.": "langchain_core.documents",
    "haystack.": "haystack",
    "TextNode": "llama_index.core.schema",
    "ScoredPoint": "qdrant_client.http.models",
    "np.": "numpy",
    "pd.": "pandas",
    "pa.": "pyarrow",
}


def names_for(code: str) -> dict[str, Any]:
    """What a row of the page refers to; skips when a client it shows is not installed."""
    names: dict[str, Any] = {"UUID": UUID, "Decimal": Decimal}
    names["rt"] = SimpleNamespace(Candidate=model.Candidate, Chunk=model.Chunk)
    for word, module in NEEDED.items():
        if word in code:
            loaded = pytest.importorskip(module, reason=f"{module} is not installed")
            names[word.rstrip(".")] = loaded
            names.update(
                {name: getattr(loaded, name) for name in ("NodeWithScore", "TextNode") if hasattr(loaded, name)}
            )
            names.update(
                {name: getattr(loaded, name) for name in ("ScoredPoint", "QueryResponse") if hasattr(loaded, name)}
            )
    if "Response(" in code and "QueryResponse" not in code:
        names["Response"] = importlib.import_module("llama_index.core.base.response.schema").Response
    if "connection" in code:
        names["connection"] = _connection()
    return names


def shown(columns: Columns) -> str:
    """Columns in the notation of the page."""
    rows = []
    for row, chunk_id in enumerate(columns.chunk_id):
        parts = ["none" if chunk_id is None else f"`{chunk_id}`"]
        if columns.score is not None and not isnan(columns.score[row]):
            parts.append(str(round(columns.score[row], 6)))
        place = (columns.doc_id[row] or "") if columns.doc_id else ""
        if columns.start is not None and columns.end is not None and columns.start[row] is not None:
            place += f"[{columns.start[row]}:{columns.end[row]}]"
        rows.append(" ".join([*parts, place]).strip())
    return " · ".join(rows)


def test_the_page_has_its_rows() -> None:
    assert len(ROWS) >= 30


@pytest.mark.parametrize(("code", "read_as"), ROWS, ids=[code[:60] for code, _ in ROWS])
def test_what_the_page_says_is_read(code: str, read_as: str) -> None:
    names = names_for(code)
    columns = read(eval(code, names))
    if "connection" in names:
        names["connection"].close()
    assert columns is not None
    assert shown(columns) == read_as
