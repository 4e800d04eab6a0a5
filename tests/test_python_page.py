"""docs/python.md names everything public, and its examples record what they say."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.errors import ConfigurationError
from ragtrace.store import database
from ragtrace.store.merge import merge

PAGE = (Path(__file__).parents[1] / "docs" / "python.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("name", rt.__all__)
def test_every_public_name_is_on_the_page(name: str) -> None:
    assert re.search(rf"rt\.{name}\b", PAGE)


@pytest.mark.parametrize("function", [rt.query, rt.document, rt.inventory, rt.configure])
def test_every_argument_is_on_the_page(function: Any) -> None:
    missing = [name for name in inspect.signature(function).parameters if not re.search(rf"\b{name}\b", PAGE)]
    assert missing == []


def test_every_argument_in_the_table_of_stages_is_one() -> None:
    """What a stage does not know is kept as a parameter; what it knows is checked."""
    table = PAGE.split("## What a stage can say of itself")[1].split("Any other name")[0]
    names = {name for row in re.findall(r"^\| (`.+?) \|", table, re.M) for name in re.findall(r"`(\w+)`", row)}
    assert len(names) == 18
    free = {"filter"}  # may be anything
    for name in sorted(names - free):
        with pytest.raises(ConfigurationError):
            rt.rerank(**{name: object()})


def test_the_examples_record_what_they_say(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", PAGE, re.S):
        exec(compile(block, "python.md", "exec"), names)

    class Client:
        def search(self, question: str, k: int) -> list[dict[str, Any]]:
            return [{"id": f"c{n}", "score": 1 / (n + 1)} for n in range(12)][:k]

    names["ingest"](
        "handbook.pdf", b"raw", lambda raw: "A text.", lambda text: [rt.Chunk("c0", text)], lambda chunks: None
    )
    found = Client().search("q", 12)
    ranked = names["answer"](
        "How long?", Client(), lambda q: names["rerank"](q, found, lambda _, hit: hit["score"]), lambda list_: list_
    )
    assert len(ranked) == 8
    assert rt.shutdown(10)
    merge(tmp_path / "traces.duckdb")
    with database.connect(tmp_path / "traces.duckdb", read_only=True) as connection:
        assert connection.execute(
            "select kind, role, n_candidates from lists join stages using (stage_id) where kind in ('retrieve', 'rerank')"
            " and role <> 'in' order by list_id"
        ).fetchall() == [("retrieve", "out", 12), ("rerank", "considered", 12), ("rerank", "out", 8)]
        assert connection.execute("select count(*) from stages where query_id is null").fetchall() == [(3,)]
