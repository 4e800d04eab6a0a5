"""Every example of docs/gold.md is run: label lines load, commands end as they should, Python says what it says."""

from __future__ import annotations

import json
import re
from pathlib import Path

import duckdb
import pytest
from typer.testing import CliRunner

from ragtrace.gold import loading
from ragtrace.gold.binding import TOUCHED_LEVELS
from ragtrace.gold.sets import LEVELS, MODES
from ragtrace.schema import table
from ragtrace.store import database

PAGE = Path(__file__).resolve().parents[3] / "docs" / "gold.md"


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)


def first_column(heading: str) -> set[str]:
    """The names in backticks in the first column of the first table under a heading."""
    section = PAGE.read_text(encoding="utf-8").split(f"\n## {heading}")[1].split("\n## ")[0]
    cells = re.findall(r"^\| (`[^|]*) \|", section, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(\w+)`", cell)}


@pytest.mark.parametrize("block", blocks("jsonl"))
def test_every_line_of_labels_loads(store: duckdb.DuckDBPyConnection, tmp_path: Path, block: str) -> None:
    path = tmp_path / "gold.jsonl"
    path.write_text(block, encoding="utf-8")
    loaded = loading.load(store, path)
    assert loaded.n_questions == len(block.splitlines())
    assert (loaded.bad, loaded.n_duplicates) == ([], 0)


def test_the_example_lines_mean_what_their_ids_say(store: duckdb.DuckDBPyConnection) -> None:
    loading.load_rows(store, [json.loads(line) for line in blocks("jsonl")[1].splitlines()])
    counted = dict(
        store.execute(
            "select question_id, (count(distinct set_no), count(distinct need), count(*))"
            " from evidence where is_need group by question_id"
        ).fetchall()
    )
    assert counted == {
        "two needs": (1, 2, 2),
        "either is enough": (1, 1, 2),
        "two annotators": (2, 1, 2),
        "any page": (1, 1, 2),
        "each answer": (1, 2, 3),
        "graded documents": (1, 1, 2),
        "misleading": (1, 1, 1),
        "by chunk": (1, 1, 1),
    }
    apart = store.execute("select question_id from questions where is_unanswerable or is_evidence_unknown order by 1")
    assert apart.fetchall() == [("no answer",), ("not labelled yet",)]


@pytest.mark.parametrize("block", blocks("console"))
def test_the_commands_of_the_page_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, block: str) -> None:
    from ragtrace.cli.main import app

    monkeypatch.chdir(tmp_path)
    (tmp_path / "gold.jsonl").write_text(blocks("jsonl")[0], encoding="utf-8")
    items = [item for line in blocks("jsonl")[0].splitlines() for item in json.loads(line)["gold"]]
    text = items[0]["quote"].rjust(items[0]["end"]) + " purchase. " + items[1]["quote"]
    corpus = {"doc_id": items[0]["doc_id"], "text": text}
    (tmp_path / "corpus.jsonl").write_text(json.dumps(corpus), encoding="utf-8")
    if "--create" not in block:
        database.connect(tmp_path / "traces.duckdb").close()
    for line in block.splitlines():
        result = CliRunner().invoke(app, line.removeprefix("$ ragtrace ").split(), catch_exceptions=False)
        # Nothing is recorded yet: labels are taken on trust or stand in the corpus, none is wrong.
        assert result.exit_code == 0, result.output
        assert "Every label stands where it says" in result.output or "--corpus" not in line


def test_the_python_of_the_page_runs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    for block in blocks("python"):
        exec(compile(block, str(PAGE), "exec"), {})  # the page is ours


def test_the_page_names_every_status_level_and_mode() -> None:
    meaning = {column.name: column.meaning for column in table("evidence").columns}
    statuses = set(meaning["label_status"].removeprefix("derived: ").split(", "))
    assert first_column("Placing") - {"label_status"} == statuses
    text = PAGE.read_text(encoding="utf-8")
    assert all(f"`{name}`" in text for name in (*LEVELS, *MODES))
    assert set(TOUCHED_LEVELS) | {"span"} == set(LEVELS)


def test_the_page_names_every_key() -> None:
    from ragtrace.gold import sets

    assert first_column("A question") >= sets._QUESTION_KEYS
    assert first_column("An item") >= sets._ITEM_KEYS
