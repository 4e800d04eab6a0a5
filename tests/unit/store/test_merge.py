"""Logs into the store: each row exactly once, live logs too, damage counted, nothing removed too early."""

from __future__ import annotations

import fcntl
import json
import os
import subprocess
import sys
import zlib
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import DamagedStoreError, SchemaVersionError, StoreError, StoreNotFoundError
from ragtrace.spool import frames
from ragtrace.spool.records import Record
from ragtrace.store import commit, database, tables
from ragtrace.store.entering import Entered
from ragtrace.store.items import Book
from ragtrace.store.merge import merge
from ragtrace.store.staging import Piece
from tests.unit.store.logs import BEGIN_NS, held, merged, new_id, out, process, query, rows, same, stage, write


def _query(n_rows: int = 3, query_id: int | None = None) -> list[Record]:
    query_id = new_id() if query_id is None else query_id
    first = out([f"c{number}" for number in range(n_rows)])
    stages = [stage("retrieve", first, query_id=query_id), stage("generate", same(first), start=3, query_id=query_id)]
    return [*stages, query(query_id, stages)]


def _counts(store: Path) -> tuple[int, ...]:
    return rows(
        store,
        "select (select count(*) from queries), (select count(*) from stages), (select count(*) from lists), (select count(*) from candidates)",
    )[0]


def test_what_a_log_holds_is_in_the_store_once(store: Path) -> None:
    brought = merged(store, [process(), *_query(), *_query()])
    assert (brought.n_queries, brought.n_stages, brought.n_candidates, brought.n_logs) == (2, 4, 6, 1)
    assert _counts(store) == (2, 4, 4, 6)
    assert merge(store) == (0, 0, 0, 0, 0, None)
    assert _counts(store) == (2, 4, 4, 6)


def test_a_live_log_is_read_on_from_where_the_last_merge_stopped(store: Path) -> None:
    log = write(store, _query())
    with held(log):
        assert merge(store).n_queries == 1
        write(store, _query())
        assert merge(store).n_queries == 1
        assert merge(store).n_queries == 0
    assert log.exists()
    assert _counts(store)[0] == 2


def test_a_log_goes_when_its_writer_is_dead_and_the_file_was_opened_again(store: Path) -> None:
    log = write(store, _query())
    merge(store)
    assert log.exists(), "until the next good open it is the only copy that is surely whole"
    merge(store)
    assert not log.exists()
    assert rows(store, "select count(*) from ledger") == [(0,)]


def test_the_torn_tail_of_a_live_log_waits(store: Path) -> None:
    records = _query()
    log = write(store, records)
    last = frames.encode(_query()[0])
    with open(log, "ab") as file:
        file.write(last[:-5])
    with held(log):
        assert merge(store).n_damaged_bytes == 0
        with open(log, "ab") as file:
            file.write(last[-5:])
        assert merge(store).n_stages == 1


def test_the_torn_tail_of_a_dead_log_is_counted_and_the_log_set_aside(store: Path) -> None:
    """D-17"""
    log = write(store, _query())
    with open(log, "ab") as file:
        file.write(frames.encode(_query()[0])[:-5])
    assert merge(store).n_damaged_bytes > 0
    assert rows(store, "select status, n_damaged_bytes > 0 from ledger") == [("damaged", True)]
    merge(store)
    assert not log.exists()
    assert log.with_name(log.name + ".damaged").exists()
    assert _counts(store)[0] == 1


def test_damage_in_the_middle_costs_only_the_frames_it_hit(store: Path) -> None:
    log = write(store, _query())
    with open(log, "ab") as file:
        file.write(b"x" * 100)
    write(store, _query())
    assert merge(store).n_damaged_bytes == 100
    assert _counts(store)[0] == 2


def test_a_read_that_ends_at_the_limit_is_no_torn_tail(store: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A merger that took it for one lost two thirds of its queries."""
    from ragtrace.store import merge as module

    monkeypatch.setattr(module, "READ_BYTES", 700)
    assert merged(store, [record for _ in range(20) for record in _query()]).n_queries == 20
    assert merge(store).n_damaged_bytes == 0


def test_pieces_of_any_size_give_the_same_rows(store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from ragtrace.store import merge as module

    records = [process(), *[record for _ in range(10) for record in _query()]]
    other = tmp_path / "other.duckdb"
    merged(store, records)
    monkeypatch.setattr(module, "READ_BYTES", 300)
    monkeypatch.setattr(module, "PIECE_CANDIDATES", 2)
    merged(other, records)
    for sql in (
        "select query_id, final_how, is_whole, n_places from query_flows order by all",
        "select * from edges order by all",
        "select * from places order by all",
        "select * from place_lists order by all",
        "select list_id, origin from lists order by all",
        "select c.list_id, c.rank, i.chunk_id from candidates as c join items as i using (item) order by all",
    ):
        assert rows(store, sql) == rows(other, sql)


def test_a_query_whose_process_died_inside_it_is_interrupted(store: Path) -> None:
    done = _query()
    cut_off = stage("retrieve", out(["a"]), query_id=new_id())
    log = write(store, [process(), *done, cut_off])
    with held(log):
        merge(store)
        assert rows(store, "select status from queries") == [("ok",)]
    merge(store)
    assert rows(store, "select q.status, q.run, f.is_whole from queries as q join query_flows as f using (query_id) order by all") == [
        ("interrupted", "r", False), ("ok", "r", True),
    ]  # fmt: skip


def test_the_row_of_a_query_thought_interrupted_takes_its_place(store: Path) -> None:
    records = _query()
    merged(store, [process(), *records[:-1]])
    assert rows(store, "select status from queries") == [("interrupted",)]
    merged(store, records[-1:], "1-2-b.log")
    assert rows(store, "select q.status, f.is_whole from queries as q join query_flows as f using (query_id)") == [
        ("ok", True)
    ]


def test_a_stage_that_comes_late_is_part_of_its_querys_flow(store: Path) -> None:
    query_id = new_id()
    found = out(["a", "b"])
    ranked = out(["b"])
    first = stage("retrieve", found, query_id=query_id)
    second = stage("rerank", same(found), ranked, start=3, query_id=query_id)
    third = stage("generate", same(ranked), start=5, query_id=query_id)
    merged(store, [first, third, query(query_id, [first, second, third])])
    assert rows(store, "select final_how, is_whole, n_places from query_flows") == [("only_generate", False, 3)]
    merged(store, [second], "2-2-b.log")
    assert rows(store, "select final_how, is_whole, n_places from query_flows") == [("only_generate", True, 5)]
    assert rows(store, "select from_list_id, to_list_id, how from edges order by all") == [
        (found.list_id, second.body.lists[0].list_id, "same"), (ranked.list_id, third.body.lists[0].list_id, "same"),
    ]  # fmt: skip


def test_a_query_of_which_rows_are_missing_is_not_whole(store: Path) -> None:
    records = _query()
    merged(store, records[1:])
    assert rows(store, "select is_whole from query_flows") == [(False,)]


def test_losses_are_summed_per_process_and_reason(store: Path) -> None:
    loss = Record(
        "loss", {"process_id": 7, "reason": "queue_full", "n": 2, "first_at_ns": 5, "last_at_ns": 9, "detail": None}
    )
    merged(store, [loss, loss])
    merged(store, [loss], "2-2-b.log")
    assert rows(store, "select process_id, reason, n, first_at_ns, last_at_ns from losses") == [
        (7, "queue_full", 6, 5, 9)
    ]


def test_texts_and_processes_are_stored_once(store: Path) -> None:
    text = Record("text", {"text_hash": "h", "text": "words", "is_aligned": True})
    merged(store, [process(), text, text])
    merged(store, [process(), text], "2-2-b.log")
    assert rows(store, "select (select count(*) from texts), (select count(*) from processes)") == [(1, 1)]


def test_an_inventory_is_a_row_per_id_and_one_without_for_an_empty_layer(store: Path) -> None:
    common = {"index_name": "main", "declared_at_ns": 5, "process_id": 7}
    merged(store, [
        Record("inventory", {**common, "inventory_id": 1, "chunk_ids": ["a", "b"]}),
        Record("inventory", {**common, "inventory_id": 2, "chunk_ids": []}),
        Record("inventory", {**common, "inventory_id": 3, "index_name": None, "doc_ids": ["d"]}),
    ])  # fmt: skip
    assert rows(store, "select inventory_id, index_name, chunk_id, doc_id from inventories order by all") == [
        (1, "main", "a", None), (1, "main", "b", None), (2, "main", None, None), (3, None, None, "d"),
    ]  # fmt: skip


def test_a_run_outside_every_query_keeps_its_rows(store: Path) -> None:
    merged(store, [stage("retrieve", out(["a"]), is_orphan=True)])
    assert rows(store, "select count(*) from candidates") == [(1,)]
    assert rows(store, "select count(*) from query_flows") == [(0,)]


def test_after_is_called_when_all_rows_are_in(store: Path) -> None:
    write(store, _query())
    seen = []
    merge(store, after=lambda connection: seen.append(connection.execute("select count(*) from queries").fetchall()))
    assert seen == [[(1,)]]


def test_progress_ends_at_the_whole(store: Path) -> None:
    log = write(store, _query())
    steps: list[tuple[str, int, int]] = []
    merge(store, progress=lambda what, done, total: steps.append((what, done, total)))
    assert steps[-1][1:] == (log.stat().st_size, log.stat().st_size)


def test_nothing_at_a_path_is_said_in_one_sentence(tmp_path: Path) -> None:
    with pytest.raises(StoreNotFoundError, match="no store and no spool"):
        merge(tmp_path / "nothing.duckdb")
    with pytest.raises(StoreNotFoundError):
        database.connect(tmp_path / "nothing.duckdb", read_only=True)
    assert not list(tmp_path.iterdir())


def test_a_file_that_is_no_store_is_left_alone(tmp_path: Path) -> None:
    notes = tmp_path / "notes.txt"
    notes.write_text("my notes " * 1000)
    with pytest.raises(StoreError, match="no DuckDB file"):
        merge(notes)
    foreign = tmp_path / "mine.duckdb"
    with duckdb.connect(str(foreign)) as connection:
        connection.execute("create table mine (a integer)")
    with pytest.raises(StoreError, match="no ragtrace store"):
        database.connect(foreign)
    assert notes.read_text().startswith("my notes")


def test_another_merger_at_work_is_named(store: Path) -> None:
    write(store, _query())
    with open(database.spool_of(store) / "merge.lock", "w+") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        lock.write("4711")
        lock.flush()
        with pytest.raises(StoreError, match="process 4711"):
            merge(store, wait_s=0)
    assert merge(store).n_queries == 1


def test_a_file_open_elsewhere_is_named_with_its_process_and_the_logs_wait(store: Path) -> None:
    """D-02"""
    log = write(store, _query())
    holder = subprocess.Popen(
        [sys.executable, "-c", "import duckdb, sys; c = duckdb.connect(sys.argv[1]); print('open', flush=True); sys.stdin.read()", store],
        stdin=subprocess.PIPE, stdout=subprocess.PIPE,
    )  # fmt: skip
    assert holder.stdout is not None
    holder.stdout.readline()
    try:
        with pytest.raises(StoreError, match=rf"in use by process {holder.pid}"):
            merge(store)
    finally:
        holder.communicate()
    assert log.exists()
    assert merge(store).n_queries == 1


def test_a_newer_schema_is_refused_in_one_sentence(store: Path) -> None:
    """D-08"""
    with duckdb.connect(str(store)) as connection:
        connection.execute("update store_facts set value = '99' where name = 'schema_version'")
    with pytest.raises(SchemaVersionError, match="newer ragtrace"):
        database.connect(store)


def test_a_file_with_one_table_of_candidates_keeps_them(store: Path) -> None:
    """As files were at first: made here from one of today."""
    merged(store, _query())
    every = "select * from candidates order by all"
    before = rows(store, every)
    with duckdb.connect(str(store)) as connection:
        connection.execute("create table old as select * from candidates")
        connection.execute("drop view candidates")
        for name in tables.stored_in("candidates"):
            connection.execute(f"drop table {name}")
        connection.execute("alter table old rename to candidates")
    merged(store, _query(2), "2-1-a.log")
    assert len(before) == 3
    assert rows(store, every)[:3] == before
    assert rows(store, "select count(*) from candidates") == [(5,)]


def test_a_file_beyond_repair_is_set_aside_and_built_anew_from_the_logs(store: Path) -> None:
    """D-05"""
    write(store, _query())
    merge(store)
    database.spool_of(store).joinpath("checkpoint.sidecar").unlink()
    with open(store, "r+b") as file:
        file.seek(12288)
        file.write(os.urandom(4096))
    with pytest.raises(DamagedStoreError, match="ragtrace merge"):
        database.connect(store, read_only=True)
    brought = merge(store)
    assert brought.set_aside is not None
    assert (store.parent / brought.set_aside).exists()
    assert brought.n_queries == 1
    assert rows(store, "select count(*) from losses") == [(0,)], "everything came back from the log"


def test_a_record_of_a_later_kind_is_passed_over(store: Path) -> None:
    """D-14"""
    log = write(store, _query())
    body = json.dumps({}).encode()
    with open(log, "ab") as file:
        file.write(frames.HEADER.pack(frames.MAGIC, len(body), zlib.crc32(body, 200), 200) + body)
    assert merge(store).n_queries == 1


def test_what_a_newer_ragtrace_says_beside_the_known_is_passed_over(store: Path) -> None:
    """D-14"""
    *stages, asked = _query()
    asked.body["of_a_later_version"] = 1
    stages[0].body.row["of_a_later_version"] = "x"
    assert merged(store, [*stages, asked])[:3] == (1, 2, 3)
    assert rows(store, "select question from queries") == [(asked.body.get("question"),)]
    assert rows(store, "select count(*) from losses") == [(0,)]


def test_times_before_the_first_query_are_no_trouble(store: Path) -> None:
    merged(store, [query(new_id(), at_ns=0), stage("retrieve", out(["a"]), query_id=new_id(), at_ns=-BEGIN_NS)])
    assert _counts(store)[1] == 1


@pytest.mark.expects_internal_error
def test_a_record_that_cannot_be_entered_costs_only_itself_and_is_counted(store: Path) -> None:
    spoilt = Record("query", {"run": "no id"})
    brought = merged(store, [*_query(), spoilt, *_query()])
    assert brought.n_queries == 2
    assert rows(store, "select reason, n from losses") == [("merge_error", 1)]
    assert rows(store, "select count(*) from query_flows where is_whole") == [(2,)]


@pytest.mark.expects_internal_error
def test_what_follows_the_rows_may_fail_beside_a_record_that_cannot_be_entered(store: Path) -> None:
    """Else the good rows would be kept out at every later merge too."""

    def fail(connection: duckdb.DuckDBPyConnection) -> None:
        raise StoreError("no labels today")

    write(store, [*_query(), Record("query", {"run": "no id"})])
    with pytest.raises(StoreError, match="no labels today"):
        merge(store, after=fail)
    assert _counts(store)[0] == 1
    assert merge(store).n_queries == 0
    assert rows(store, "select reason, n from losses") == [("merge_error", 1)]


@pytest.fixture
def trials(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """How many queries each attempt to enter a piece held; no query can be entered whose question is `bad`."""
    tried: list[int] = []
    enter = commit.enter

    def fail(connection: duckdb.DuckDBPyConnection, piece: Piece, book: Book) -> Entered:
        tried.append(len(piece.rows["queries"]))
        if any(row.get("question_id") == "bad" for row in piece.rows["queries"]):
            raise TypeError("a mistake of ours")
        return enter(connection, piece, book)

    monkeypatch.setattr(commit, "enter", fail)
    return tried


@pytest.mark.expects_internal_error
def test_a_mistake_that_spoils_every_record_is_not_tried_on_each(store: Path, trials: list[int]) -> None:
    brought = merged(store, [query(new_id(), question_id="bad") for _ in range(1000)])
    assert brought.n_queries == 0
    assert len(trials) == commit.MOST_TRIALS + 2, "the piece itself, the trials, and what is left of it"
    assert rows(store, "select reason, n, detail from losses") == [("merge_error", 1000, "TypeError")]


@pytest.mark.expects_internal_error
def test_when_the_trials_are_used_up_all_but_a_small_part_is_in(
    store: Path, trials: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(commit, "MOST_TRIALS", 12)
    records = [query(new_id(), question_id="bad" if number in (3, 70) else "good") for number in range(128)]
    brought = merged(store, records)
    (lost,) = rows(store, "select n from losses")[0]
    assert brought.n_queries == 128 - lost
    assert lost <= 32
