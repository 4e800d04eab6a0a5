"""When the kept verdicts are computed, when not, and what is there when nobody could."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import StoreError
from ragtrace.gold import loading
from ragtrace.spool.records import Record
from ragtrace.store import database, kept, retention, views
from ragtrace.store.merge import merge
from tests.unit.store.logs import BEGIN_NS, held, ingested, new_id, out, query, rows, same, stage, write

GOLD = [{"question_id": "q", "question": "?", "gold": [{"doc_id": "d", "start": 0, "end": 10}]}]
TABLES = [view.name for view in views.load() if view.kept == views.IN_THE_STORE]
VERDICTS = "select question_id, verdict, lost_kind from stage_loss order by all"


def _asked(*found: str, query_id: int | None = None, **row: object) -> list[Record]:
    """A query that finds these chunks and hands the first on."""
    query_id = new_id() if query_id is None else query_id
    lists = out(list(found)), out(list(found[:1]))
    stages = [
        stage("retrieve", lists[0], query_id=query_id),
        stage("rerank", same(lists[0]), lists[1], start=3, query_id=query_id),
        stage("generate", same(lists[1]), start=5, query_id=query_id),
    ]
    return [*stages, query(query_id, stages, question_id="q", **row)]


def _unsearched(run: str) -> list[Record]:
    """A query without a retrieve stage, in a run."""
    query_id = new_id()
    stages = [stage("generate", out(["c1"], "in"), query_id=query_id)]
    return [*stages, query(query_id, stages, question_id="q", run=run)]


def _is_as_from_scratch(store: Path) -> bool:
    """Does every kept table hold what its definition gives?"""
    with database.connect(store, read_only=True) as connection:
        stored = {name: connection.execute(f"from kept.{name} order by all").fetchall() for name in TABLES}
        with kept.stand_ins(connection):
            return stored == {name: connection.execute(f"from {name} order by all").fetchall() for name in TABLES}


@pytest.fixture(scope="module")
def _judged_once(_empty_store: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    store = tmp_path_factory.mktemp("judged") / "judged.duckdb"
    shutil.copyfile(_empty_store, store)
    write(store, [*ingested("d", ["c0", "c1"], [(0, 10), (10, 20)], at_ns=BEGIN_NS - 1_000), *_asked("c0", "c1")])
    merge(store)
    with database.connect(store) as connection:
        loading.load_rows(connection, GOLD)
    return store


@pytest.fixture
def judged(_judged_once: Path, tmp_path: Path) -> Path:
    """A document of two chunks, a query that kept the first, and gold in it."""
    store = tmp_path / "judged.duckdb"
    shutil.copyfile(_judged_once, store)
    return store


@pytest.fixture
def computed(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """One entry for each time that the chain is computed."""
    times: list[object] = []
    compute = kept._compute

    def counted(*given: object) -> list[str]:
        times.append(given)
        return compute(*given)  # type: ignore[arg-type]  # passed on as they come

    monkeypatch.setattr(kept, "_compute", counted)
    return times


def test_without_gold_nothing_is_computed(store: Path, computed: list[object]) -> None:
    write(store, _asked("c0", "c1"))
    merge(store)
    assert rows(store, "select count(*) from label_states") == [(0,)]
    assert computed == []


def test_loading_gold_computes_once(judged: Path, computed: list[object]) -> None:
    assert rows(judged, VERDICTS) == [("q", "kept", None)]
    assert computed == []
    with database.connect(judged) as connection:
        loading.load_rows(connection, GOLD, min_coverage=0.5)
    assert len(computed) == 1


def test_a_merge_computes_once_and_one_that_brings_nothing_does_not(judged: Path, computed: list[object]) -> None:
    write(judged, [*ingested("e", ["c2"], [(0, 10)]), *_asked("c1", "c0")], "2-1-a.log")
    merge(judged)
    assert rows(judged, VERDICTS) == [("q", "kept", None), ("q", "lost", "rerank")]
    assert len(computed) == 1
    merge(judged)
    merge(judged)
    assert len(computed) == 1


def test_a_merge_that_brings_only_queries_judges_only_these(judged: Path, computed: list[object]) -> None:
    write(judged, [*_asked("c1", "c0"), *_asked("c0", run="other")], "2-1-a.log")
    merge(judged)
    assert computed == []
    assert rows(judged, VERDICTS) == [("q", "kept", None), ("q", "kept", None), ("q", "lost", "rerank")]
    assert rows(judged, "select run, n_judged from stage_recall where kind = 'rerank' order by run") == [
        ("other", 1), ("r", 2),
    ]  # fmt: skip
    assert _is_as_from_scratch(judged)


def test_a_query_that_comes_in_two_merges_is_judged_by_all_of_it(judged: Path, computed: list[object]) -> None:
    *stages, row = _asked("c1", "c0", run="other")
    write(judged, stages, "2-1-a.log")
    with held(database.spool_of(judged) / "2-1-a.log"):
        merge(judged)
    write(judged, [row], "2-1-a.log")
    merge(judged)
    assert computed == []
    assert rows(judged, VERDICTS) == [("q", "kept", None), ("q", "lost", "rerank")]
    assert _is_as_from_scratch(judged)


def test_a_retriever_that_a_run_gets_is_what_its_other_queries_did_not_run(
    judged: Path, computed: list[object]
) -> None:
    write(judged, _unsearched("other"), "2-1-a.log")
    merge(judged)
    assert ("q", "lost", "retrieve") not in rows(judged, VERDICTS)
    write(judged, _asked("c0", run="other"), "3-1-a.log")
    merge(judged)
    assert computed == []
    assert ("q", "lost", "retrieve") in rows(judged, VERDICTS)
    assert _is_as_from_scratch(judged)


@pytest.mark.parametrize(
    "more",
    [
        pytest.param(lambda: ingested("e", ["c2"], [(0, 10)]), id="a document"),
        pytest.param(lambda: [Record("process", {"process_id": 7, "host": "late"})], id="a host that comes late"),
        pytest.param(lambda: [stage("retrieve", out(["c0"]), index_name="new")], id="an index nobody had searched"),
        pytest.param(
            lambda: [
                *_asked("c7", query_id=77)[:1],
                stage("expand", out(["x"], doc_id=["d"], start=[0], end=[9], text_hash="hash-1"), query_id=77),
            ],
            id="an id that was not known to hold evidence",
        ),
    ],
)
def test_whatever_other_queries_are_judged_by_too_has_everything_computed(
    more: Callable[[], list[Record]], judged: Path, computed: list[object]
) -> None:
    write(judged, [*_asked("c1", "c0"), *more()], "2-1-a.log")
    merge(judged)
    assert len(computed) == 1


def test_a_merge_of_several_pieces_computes_once(
    judged: Path, computed: list[object], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("ragtrace.store.merge.READ_BYTES", 500)
    monkeypatch.setattr("ragtrace.store.merge.PIECE_CANDIDATES", 1)
    write(judged, [record for _ in range(5) for record in _asked("c1", "c0")], "2-1-a.log")
    merge(judged)
    assert len(computed) == 1
    assert rows(judged, VERDICTS) == [("q", "kept", None), *[("q", "lost", "rerank")] * 5]


def test_taking_the_gold_out_empties_them(judged: Path) -> None:
    with database.connect(judged) as connection:
        loading.load_rows(connection, [{"question_id": "other", "question": "??", "gold": []}])
        assert not kept.is_stale(connection)
    assert rows(judged, "select count(*) from label_states") == [(0,)]


def test_deleting_queries_deletes_their_verdicts(judged: Path) -> None:
    retention.delete(judged, run="r", is_trial=True)
    assert rows(judged, VERDICTS) == [("q", "kept", None)]
    retention.delete(judged, run="r")
    assert rows(judged, "select count(*) from label_states") == [(0,)]


def test_compacting_keeps_them(judged: Path, computed: list[object]) -> None:
    retention.compact(judged)
    assert rows(judged, VERDICTS) == [("q", "kept", None)]
    assert computed == []


def test_views_with_another_text_are_computed_anew(judged: Path, computed: list[object]) -> None:
    with duckdb.connect(judged) as connection:
        connection.execute("update store_facts set value = 'of another release' where name = 'views_hash'")
        connection.execute("delete from kept.span_reasons")
    database.connect(judged).close()
    assert rows(judged, VERDICTS) == [("q", "kept", None)]
    assert len(computed) == 1


def test_a_reader_of_a_stale_store_that_it_cannot_write_computes_for_itself(judged: Path) -> None:
    with database.connect(judged) as connection:
        kept.forget(connection)
    with duckdb.connect(judged, read_only=True) as plain:
        assert plain.execute("select count(*) from stage_loss").fetchall() == [(0,)]
    with database.connect(judged, read_only=True) as connection:
        assert connection.execute(VERDICTS).fetchall() == [("q", "kept", None)]
    with database.connect(judged) as connection:
        assert not kept.is_stale(connection)


def test_a_view_that_fails_leaves_no_table_in_front_of_the_kept_ones(
    judged: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Else the connection would go on showing half of the verdicts as they were at that moment."""
    definition, last = views.definition, kept.chain()[-1].name

    def fail(view: views.View) -> str:
        return "select error('no verdicts today')" if view.name == last else definition(view)

    with database.connect(judged, read_only=True) as connection:
        monkeypatch.setattr(views, "definition", fail)
        with pytest.raises(duckdb.Error, match="no verdicts today"):
            kept.stand_in(connection)
        assert connection.execute("select table_name from duckdb_tables() where temporary").fetchall() == []
        assert connection.execute(VERDICTS).fetchall() == [("q", "kept", None)]


def test_rows_are_in_though_what_comes_after_them_fails(judged: Path) -> None:
    """What is wrong with labels or verdicts must not keep the record out for ever."""

    def fail(connection: duckdb.DuckDBPyConnection) -> None:
        raise StoreError("no verdicts today")

    write(judged, _asked("c1", "c0"), "2-1-a.log")
    with pytest.raises(StoreError, match="no verdicts today"):
        merge(judged, after=fail)
    with duckdb.connect(judged, read_only=True) as plain:
        assert plain.execute("select count(*) from queries").fetchall() == [(2,)]
        assert kept.is_stale(plain)
    merge(judged)
    assert rows(judged, VERDICTS) == [("q", "kept", None), ("q", "lost", "rerank")]


def test_a_header_says_one_of_two_things_and_a_table_says_what_the_header_says(store: Path) -> None:
    kept_views = [view for view in views.load() if view.kept is not None]
    assert {view.kept for view in kept_views} == {views.IN_THE_STORE, views.DURING_A_REFRESH}
    with database.connect(store) as connection:
        said = connection.execute(
            "select table_name, column_name, comment from duckdb_columns() where schema_name = 'kept' order by all"
        ).fetchall()
    assert said == sorted(
        (view.name, column.name, column.meaning)
        for view in kept_views
        if view.kept == views.IN_THE_STORE
        for column in view.columns
    )
