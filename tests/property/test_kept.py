"""Whatever order logs, labels, settings and deletions come in: the kept verdicts are those computed from scratch.

The default run takes one short history; RAGTRACE_TEST_ALL=1 takes forty.
"""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from ragtrace.gold import loading, placing
from ragtrace.store import database, judging, kept, merge, retention, views
from tests.property.recording import gold_lines, record, record_documents, record_queries
from tests.property.strategies import batch
from tests.traced import empty_store

N_PIPELINES = 12
IS_FULL = bool(os.environ.get("RAGTRACE_TEST_ALL"))
N_HISTORIES, N_STEPS = (40, 8) if IS_FULL else (1, 4)
KEPT = [view.name for view in views.load() if view.kept == views.IN_THE_STORE]
READ = ["stage_loss", "recall_summary", "reasons", "queries_left_out", *KEPT]


def _rows(connection: duckdb.DuckDBPyConnection, name: str) -> list[tuple[str, ...]]:
    """Rows in a fixed order; sums of floating-point numbers depend on their order in the last digits."""
    found = connection.execute(f"select * from {name}").fetchall()
    return sorted(tuple(f"{v:.9f}" if isinstance(v, float) else str(v) for v in row) for row in found)


def _differing(store: Path) -> list[str]:
    """The kept tables that do not hold what their definitions give now."""
    with database.connect(store, read_only=True) as connection:
        assert not kept.is_stale(connection)
        held = {name: _rows(connection, f"kept.{name}") for name in KEPT}
        with kept.stand_ins(connection):
            return [name for name in KEPT if _rows(connection, name) != held[name]]


def _differing_without_any(store: Path) -> list[str]:
    """The views that say otherwise than in a store where nothing is kept."""
    with database.connect(store, read_only=True) as connection:
        said = {name: _rows(connection, name) for name in READ}
    with duckdb.connect() as connection:
        connection.execute(f"attach '{store}' as kept_store (read_only)")
        for (name,) in connection.execute(
            "select table_name from duckdb_tables() where database_name = 'kept_store' and schema_name = 'main'"
            " union all select 'candidates'"  # a view over two tables, of the tables' own description
        ).fetchall():
            connection.execute(f"create table {name} as from kept_store.main.{name}")
        # One after the other from the definitions: as views of views they would be planned for minutes.
        for view in views.load():
            is_plain = view.kept is None
            connection.execute(
                views.statement(view) if is_plain else f"create table {view.name} as {views.definition(view)}"
            )
        return [name for name in READ if _rows(connection, name) != said[name]]


class _History:
    """What may happen to a store, one thing at a time."""

    def __init__(self, seed: int, store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        self.chance = random.Random(f"history {seed}")
        self.pipelines = batch(10_000 + seed, N_PIPELINES)
        self.waiting = list(self.pipelines)
        self.store = store
        self.monkeypatch = monkeypatch
        self.n_judged_apart = 0
        store.write_bytes(empty_store())
        judge_queries = judging.Change._judge_queries

        def counted(change: judging.Change, chain: list[views.View]) -> None:
            self.n_judged_apart += 1
            judge_queries(change, chain)

        monkeypatch.setattr(judging.Change, "_judge_queries", counted)
        # Half of the stores know all documents first, so that later merges bring nothing but queries.
        self.is_ingested_first = seed % 2 == 0
        if self.is_ingested_first:
            record_documents(self.pipelines, store)
            merge.merge(store)

    def bring(self) -> None:
        """Some pipelines are recorded; one merge takes them in, in one piece or in many."""
        n = self.chance.randint(1, 5)
        portion, self.waiting = self.waiting[:n], self.waiting[n:]
        if portion:
            (record_queries if self.is_ingested_first else record)(portion, self.store)
        in_pieces = self.chance.random() < 0.3
        self.monkeypatch.setattr(merge, "PIECE_CANDIDATES", 1 if in_pieces else 500_000)
        self.monkeypatch.setattr(merge, "READ_BYTES", 2_000 if in_pieces else 16 << 20)
        merge.merge(self.store, after=placing.place)

    def ask_again(self) -> None:
        """Questions that were asked before, by the same pipelines: nothing but queries, of items that are known."""
        asked = [pipeline for pipeline in self.pipelines if pipeline not in self.waiting]
        if asked:
            record_queries(self.chance.sample(asked, min(len(asked), self.chance.randint(1, 4))), self.store)
            merge.merge(self.store, after=placing.place)

    def label(self, n: int | None = None) -> None:
        """Labels of some or all pipelines, recorded already or not; a set of the same name is replaced."""
        chosen = self.chance.sample(self.pipelines, n or self.chance.choice((1, 4, N_PIPELINES)))
        coverage = self.chance.choice((None, 1.0, 0.5))
        skew = self.chance.choice((None, 0.0, 1000.0))
        with database.connect(self.store) as connection:
            loading.load_rows(connection, gold_lines(chosen), min_coverage=coverage, clock_skew_ms=skew)

    def delete(self) -> None:
        """The queries of one run go."""
        retention.delete(self.store, run=self.chance.choice(("run0", "run1", "run2")))

    def step(self) -> None:
        """Whatever comes next; what was never recorded comes more often."""
        steps: list[Callable[[], None]] = [
            self.bring,
            self.bring,
            self.ask_again,
            self.ask_again,
            self.label,
            self.delete,
        ]
        self.chance.choice(steps)()


@pytest.mark.parametrize("seed", range(N_HISTORIES))
def test_kept_verdicts_are_those_computed_from_scratch(
    seed: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    history = _History(seed, tmp_path / "traces.duckdb", monkeypatch)
    for number in range(N_STEPS):
        history.step()
        assert _differing(history.store) == [], number
    while history.waiting:
        history.bring()
    history.label(N_PIPELINES)
    for number in range(N_STEPS // 2):
        history.ask_again()
        assert _differing(history.store) == [], f"asked again {number}"
    assert _differing_without_any(history.store) == []
    with database.connect(history.store, read_only=True) as connection:
        assert connection.execute("select count(*) from stage_loss").fetchall() > [(N_PIPELINES // 2,)]
    print(f"{history.n_judged_apart} merges judged their own queries only")
    assert history.n_judged_apart or IS_FULL
