"""Two runs compared: pairs, bounds, tests, and what is left out."""

from __future__ import annotations

import json
import re
import shlex
from pathlib import Path
from typing import Any

import pytest
from typer.testing import CliRunner

import ragtrace as rt
from ragtrace.cli.main import app
from ragtrace.gold.loading import load_rows
from ragtrace.reports import comparing
from ragtrace.store.database import connect
from ragtrace.store.merge import merge

stats = pytest.importorskip("scipy.stats", reason="scipy is not installed: pip install 'ragtrace[stats]'")

PAGE = (Path(__file__).parents[2] / "docs" / "compare.md").read_text(encoding="utf-8")
BEFORE, AFTER = "hybrid-k50", "hybrid-k100"
NAMES = [f"q{number:02}" for number in range(30)]


def ask(store: Path, run: str, found: dict[str, bool], index_version: str | None = None) -> None:
    """One retrieve and one rerank a question; where it is not found the reranker drops it."""
    rt.configure(store, run=run, merge="off")
    for name, is_kept in found.items():
        with rt.query(name, question_id=name):
            with rt.retrieve(name="search", k=2, index_version=index_version) as stage:
                stage.output([f"gold-{name}", "other"])
            with rt.rerank(name="rank", k=1, final=True) as stage:
                stage.input([f"gold-{name}", "other"])
                stage.output([f"gold-{name}" if is_kept else "other"])
    assert rt.shutdown(10)


@pytest.fixture(scope="module")
def store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Twelve of thirty kept before, eighteen after: eight won, two lost; a question more on each side."""
    path = tmp_path_factory.mktemp("compare") / "traces.duckdb"
    ask(path, BEFORE, {**{name: n < 12 for n, name in enumerate(NAMES)}, "early": True}, "1")
    ask(path, AFTER, {**{name: 2 <= n < 20 for n, name in enumerate(NAMES)}, "late": True}, "2")
    merge(path)
    gold = [
        {
            "question_id": name,
            "question": name,
            "kind": "fact" if n % 2 else "number",
            "tags": ["rare"] if n < 3 else [],
            "gold": [{"chunk_id": f"gold-{name}", "level": "chunk"}],
        }
        for n, name in enumerate([*NAMES, "early", "late"])
    ]
    with connect(path) as connection:
        load_rows(connection, gold)
    return path


@pytest.fixture(scope="module")
def compared(store: Path) -> comparing.Compared:
    with connect(store, read_only=True) as connection:
        return comparing.compare(connection, BEFORE, AFTER)


def test_only_what_both_have_is_compared_and_the_rest_is_named(compared: comparing.Compared) -> None:
    assert (compared.only_in_a, compared.only_in_b, compared.unobserved) == (["early"], ["late"], [])
    final = {one.measure: one for one in compared.overall}["final-context recall"]
    assert (final.n, final.a, final.b) == (30, 0.4, 0.6)
    assert (final.below_1_a, final.below_half_b) == (pytest.approx(0.6), pytest.approx(0.4))


def test_the_test_of_complete_questions_is_mcnemars(compared: comparing.Compared) -> None:
    """Eight won, two lost: 2 × (1 + 10 + 45) / 1024."""
    complete = {one.measure: one for one in compared.overall}["complete"]
    assert complete.p == pytest.approx(2 * 56 / 1024)
    assert complete.verdict == "no clear difference", "the test does not agree with the bounds"


def test_the_bounds_are_those_of_another_bootstrap(compared: comparing.Compared) -> None:
    """Every question is a group of its own here."""
    pairs = [float(2 <= n < 20) - float(n < 12) for n in range(30)]
    theirs = stats.bootstrap((pairs,), lambda x, axis: x.mean(axis=axis), method="percentile", random_state=1)
    final = {one.measure: one for one in compared.overall}["final-context recall"]
    assert final.low == pytest.approx(theirs.confidence_interval.low, abs=0.035)
    assert final.high == pytest.approx(theirs.confidence_interval.high, abs=0.035)


def test_questions_of_one_group_are_drawn_together() -> None:
    """Twenty copies of a question tell as much as one: the bounds are as wide as those of the groups alone."""
    pairs = [1.0, 0.0, 0.0, -1.0, 1.0, 0.0, 1.0, 0.0, 0.0, 1.0]
    alone = comparing._bootstrap(pairs, [str(n) for n in range(10)])
    copied = comparing._bootstrap(pairs * 20, [str(n % 10) for n in range(200)])
    apart = comparing._bootstrap(pairs * 20, [str(n) for n in range(200)])
    assert copied == pytest.approx(alone)
    assert apart[1] - apart[0] < (alone[1] - alone[0]) / 3


def test_a_part_of_few_questions_decides_nothing(compared: comparing.Compared) -> None:
    parts = {(one.part, one.measure): one for one in compared.parts}
    assert {part for part, _ in parts} == {"kind fact", "kind number", "tag rare"}
    assert parts["tag rare", "complete"].verdict == "too few"
    assert parts["kind fact", "complete"].n == 15


def test_what_else_differs_is_told(compared: comparing.Compared) -> None:
    assert compared.warnings == [f"index versions: 1 in {BEFORE}, 2 in {AFTER}"]
    first, *_ = compared.changed
    assert (first["question_id"], first["lost_a"], first["lost_b"]) == ("q00", "kept", "rank")


def test_shares_have_the_known_bounds() -> None:
    """3 of 100; 0 of 10."""
    assert comparing.interval(3, 100) == (pytest.approx(0.010, abs=5e-4), pytest.approx(0.085, abs=5e-4))
    assert comparing.interval(3, 100, confidence=0.9)[1] == pytest.approx(0.073, abs=5e-4)
    assert comparing.interval(3, 100, "exact", 0.9)[1] == pytest.approx(0.076, abs=5e-4)
    assert comparing.interval(0, 10, "exact", 0.9)[1] == pytest.approx(0.26, abs=2e-3)


@pytest.mark.parametrize("line", re.findall(r"^\$ ragtrace (.*)$", PAGE, re.M))
def test_the_command_of_the_page_shows_every_part(line: str, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "80")
    words = shlex.split(line.replace("traces.duckdb", str(store)))
    shown = CliRunner().invoke(app, words)
    assert shown.exit_code == 0
    for said in ("30 questions judged in both", "below 0.5", "by kind and tag", "Questions that differ: 10", "early"):
        assert said in shown.stdout
    assert max(map(len, shown.stdout.splitlines())) <= 90
    told: dict[str, Any] = json.loads(CliRunner().invoke(app, [*words, "--format", "json"]).stdout)
    assert [row["measure"] for row in told["overall"]] == ["candidate recall", "final-context recall", "complete"]
    assert (told["only_in_a"], len(told["changed"])) == (["early"], 10)


@pytest.mark.parametrize(
    ("words", "said"),
    [((BEFORE, BEFORE), "with itself"), ((BEFORE, "nobody"), f"runs in the store: {AFTER}, {BEFORE}")],
)
def test_a_run_that_cannot_be_compared_is_one_sentence(words: tuple[str, str], said: str, store: Path) -> None:
    done = CliRunner().invoke(app, ["compare", str(store), *words])
    assert done.exit_code == 2
    assert said in done.stderr
