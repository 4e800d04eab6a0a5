"""Every reason that a probe can prove, planted in real libraries, is named with its numbers, and no other."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import ragtrace as rt
from ragtrace.probes.stored import Probed
from ragtrace.reports import sentences
from ragtrace.reports.run import run
from ragtrace.store import database
from tests.traced import Traced
from tests.unit.probes import libraries
from tests.unit.probes.planted import Planted, plant

REASONS = ("ann_miss", "below_k", "below_threshold", "filtered", "query_drift", "not_indexed")
EXACT = ("faiss flat", "bm25s", "qdrant")
"""They look at every chunk, so they miss none; Qdrant does inside the process."""


class Asked(NamedTuple):
    """A store in which every planted loss was asked about."""

    planted: Mapping[str, Planted]
    reasons_before: set[str]
    rows: Mapping[str, dict[str, Any]]
    """question_id -> its row of `why_reasons`."""
    voids: list[str | None]
    probed: Probed


def asked_again(folder: Path, makes: Mapping[str, libraries.Make]) -> Asked:
    """All these libraries in one store: computing verdicts costs far more than a search."""
    traced = Traced(folder / "traces.duckdb")
    with contextlib.ExitStack() as stack:
        planted = {
            name: plant(name, stack.enter_context(make(folder / name.replace(" ", "_"))))
            for name, make in makes.items()
        }
        traced.judge([line for one in planted.values() for line in one.gold])
        before = {row["reason"] for row in traced.rows("select reason from reasons")}
        traced.close()
        probed = rt.probe(traced.store, [retriever for one in planted.values() for retriever in one.retrievers])
    with database.connect(traced.store, read_only=True) as connection:
        rows = {row["evidence_id"].split("#")[0]: row for row in run(connection, "why_reasons").records()}
        voids = [row[0] for row in connection.execute("select distinct void from probe_runs").fetchall()]
    return Asked(planted, before, rows, voids, probed)


@pytest.fixture(scope="module")
def by_default(tmp_path_factory: pytest.TempPathFactory) -> Asked:
    """Those that are quick enough for every run."""
    return asked_again(tmp_path_factory.mktemp("planted"), libraries.DEFAULT)


@pytest.mark.parametrize("reason", REASONS)
@pytest.mark.parametrize("library", libraries.DEFAULT)
def test_a_planted_loss_is_given_its_reason_and_numbers(by_default: Asked, library: str, reason: str) -> None:
    check(by_default, library, reason)


def test_before_it_was_asked_nothing_was_proved_and_afterwards_everything(by_default: Asked) -> None:
    check_whole(by_default)


@pytest.mark.full
@pytest.mark.skipif(os.environ.get("RAGTRACE_TEST_ALL") != "1", reason="starts a server: set RAGTRACE_TEST_ALL=1")
@pytest.mark.parametrize("library", libraries.FULL)
def test_the_same_holds_for_other_libraries(library: str, tmp_path: Path) -> None:
    asked = asked_again(tmp_path, {library: libraries.FULL[library]})

    check_whole(asked)
    for reason in REASONS:
        check(asked, library, reason)


def check(asked: Asked, library: str, reason: str) -> None:
    """The row of one planted loss, and that it has a sentence."""
    expected = asked.planted[library].expected.get(reason)
    if expected is None:
        assert (reason, library in EXACT) == ("ann_miss", True)  # it cannot occur there
        return
    row = asked.rows[f"{library}: {reason}"]
    assert _rounded(row[name] for name in expected) == _rounded(expected.values())
    assert sentences.reason(row)
    assert sentences.proof(row).startswith("proved by a probe")


def check_whole(asked: Asked) -> None:
    """Nothing but the planted losses, and every answer counts."""
    n = sum(len(one.expected) for one in asked.planted.values())
    assert asked.reasons_before == {"unprobed"}
    assert asked.voids == [None]
    assert (len(asked.rows), asked.probed.n_proved, asked.probed.n_unproved) == (n, n, 0)


def _rounded(values: Iterable[Any]) -> list[Any]:
    return [round(value, 3) if isinstance(value, float) else value for value in values]
