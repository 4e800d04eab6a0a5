"""The numbers of docs/limits.md are those of the code, and hold at the edge."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import settings
from ragtrace.recording import capturing, values
from ragtrace.spool import frames
from ragtrace.testing import ragtrace_store, records

__all__ = ["ragtrace_store"]

PAGE = (Path(__file__).parents[3] / "docs" / "limits.md").read_text(encoding="utf-8")


def test_the_page_says_the_numbers_of_the_code() -> None:
    said = (
        f"`max_queue_bytes` ({settings.DEFAULT_MAX_QUEUE_BYTES >> 20} MiB)",
        f"| {frames.MAX_BODY_BYTES >> 30} GiB |",
        f"{values.MAX_CHARACTERS:,} characters, {values.MAX_ITEMS:,} items, {values.MAX_DEPTH} levels",
        f"| {capturing._MAX_ERROR_CHARACTERS:,} characters |",
    )
    assert [one for one in said if one not in PAGE] == []


@pytest.mark.parametrize(("k", "stored"), [(2**31 - 1, 2**31 - 1), (2**31, None)])
def test_a_k_past_31_bits_is_noted(k: int, stored: int | None, ragtrace_store: Path) -> None:
    def search(k: int) -> list[str]:
        return ["a"]

    with rt.query("q"):
        rt.retrieve(search)(k)
    row = only_stage(ragtrace_store)
    assert (row.get("k"), row.get("capture_error")) == (stored, None if stored else "unreadable k")


def test_parameters_past_their_bounds_stand_as_their_type(ragtrace_store: Path) -> None:
    deep: Any = "end"
    for _ in range(values.MAX_DEPTH + 1):
        deep = [deep]
    given = {"fits": "x" * (values.MAX_CHARACTERS - 1), "long": "yy", "deep": deep, "wide": list(range(2000))}
    with rt.query("q"), rt.retrieve(name="s", filter=given) as stage:
        stage.output([])
    filters = json.loads(only_stage(ragtrace_store)["filter"])
    assert filters["fits"] == given["fits"] and filters["long"] == {"type": "str", "length": 2}
    assert "builtins.list" in json.dumps(filters["deep"]) and len(filters["wide"]) < values.MAX_ITEMS


def test_a_message_is_cut(ragtrace_store: Path) -> None:
    with pytest.raises(KeyError), rt.query("q"):
        raise KeyError("m" * 10_000_000)
    (query,) = [record.body for record in records(ragtrace_store) if record.kind == "query"]
    assert query["error_message"] == "m" * 2000


def only_stage(store: Path) -> dict[str, Any]:
    assert rt.flush(5)
    (row,) = [record.body.row for record in records(store) if record.kind == "stage"]
    return dict(row)
