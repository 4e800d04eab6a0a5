"""Damaged files: what is still there is in the store once, what is not is named, and nothing is taken for a loss of the service."""

from __future__ import annotations

import contextlib
import os
import random
from pathlib import Path

import duckdb
import pytest

from ragtrace.spool.records import Record
from ragtrace.store import beside, clearing, database, rescue, retention
from ragtrace.store import merge as merging
from ragtrace.store.health import examine
from ragtrace.store.merge import merge
from tests.unit.store.logs import held, ingested, merged, new_id, out, process, query, rows, same, stage, write


def _query(question_id: str = "q", process_id: int = 7) -> list[Record]:
    query_id = new_id()
    found = out(["a", "b"])
    stages = [
        stage("retrieve", found, query_id=query_id, process_id=process_id),
        stage("generate", same(found), start=3, query_id=query_id, process_id=process_id),
    ]
    return [*stages, query(query_id, stages, question_id=question_id, process_id=process_id)]


def _questions(store: Path) -> list[str]:
    return [row[0] for row in rows(store, "select question_id from queries order by question_id")]


def _said(store: Path, level: str = "incomplete") -> str:
    return " ".join(finding.text for finding in examine(store) if finding.level == level)


def _wal(store: Path) -> Path:
    return store.with_name(store.name + ".wal")


def _spoil(store: Path) -> None:
    """Make the file one that nobody can open, and take its repair away."""
    (database.spool_of(store) / "checkpoint.sidecar").unlink(missing_ok=True)
    with open(store, "r+b") as file:
        file.seek(12288)
        file.write(os.urandom(4096))


# ------------------------------------------------------------------------------------------------ the database


def _killed_before_its_checkpoint(store: Path, monkeypatch: pytest.MonkeyPatch, names: list[str]) -> bytes:
    """Merge one log after the other into the write-ahead log alone; file and write-ahead log are left as a kill leaves them."""
    with contextlib.closing(database.connect(store)) as keeper:
        before = store.read_bytes()
        keeper.execute("checkpoint")
    for name in names:
        write(store, [process(), *_query(name)], f"{len(name)}-1-{name}.log")
    log = b""

    def stop(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        nonlocal log
        log = _wal(store).read_bytes()
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(merging, "READ_BYTES", 600)
        patched.setattr(merging, "PIECE_CANDIDATES", 2)
        patched.setattr(merging.sidecar, "checkpoint", stop)
        before = store.read_bytes()
        with pytest.raises(KeyboardInterrupt):
            merge(store)
    store.write_bytes(before)
    _wal(store).write_bytes(log)
    return log


@pytest.mark.parametrize("seed", range(4))
def test_a_write_ahead_log_that_lost_its_tail_costs_nothing(
    seed: int, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Rows and offsets go together, and the logs are still there."""
    names = ["a", "bb", "ccc", "dddd", "eeeee"]
    log = _killed_before_its_checkpoint(store, monkeypatch, names)
    _wal(store).write_bytes(log[: random.Random(seed).randrange(len(log))])
    brought = merge(store)
    assert brought.set_aside is None
    assert _questions(store) == names
    assert "incomplete" not in {finding.level for finding in examine(store)}


@pytest.mark.parametrize("damaged", ["ledger", "queries", "stages"])
def test_a_write_ahead_log_that_cannot_be_replayed_is_set_aside_alone(
    damaged: str, store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-05: the file itself is good, and what the log held is in the spool still.

    The name of a table is changed, so that a checksum fails: a changed length would look like a torn tail.
    """
    merged(store, _query("earlier"), "9-9-z.log")
    names = ["a", "bb", "ccc", "dddd", "eeeee"]
    log = _killed_before_its_checkpoint(store, monkeypatch, names)
    at = log.index(damaged.encode())
    log = log[:at] + damaged[::-1].encode() + log[at + len(damaged) :]
    _wal(store).write_bytes(log)
    brought = merge(store)
    assert brought.set_aside is not None
    assert brought.set_aside.endswith(".wal")
    assert (store.parent / brought.set_aside).read_bytes() == log
    assert _questions(store) == sorted([*names, "earlier"])
    assert "incomplete" not in {finding.level for finding in examine(store)}, "nothing is gone"
    assert brought.set_aside in _said(store, "note")


def test_no_log_is_removed_while_its_rows_are_in_the_write_ahead_log_only(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    _killed_before_its_checkpoint(store, monkeypatch, ["a"])
    order = []
    checkpoint = merging.sidecar.checkpoint

    def seen(connection: duckdb.DuckDBPyConnection, path: Path) -> None:
        order.append((database.spool_of(store) / "1-1-a.log").exists())
        checkpoint(connection, path)

    monkeypatch.setattr(clearing.sidecar, "checkpoint", seen)
    merge(store)
    assert order[0]
    assert not (database.spool_of(store) / "1-1-a.log").exists()


def test_rows_that_were_in_a_lost_file_only_are_counted_exactly(store: Path) -> None:
    """D-05: whatever came back from logs, and whatever is new in them, is told apart."""
    with held(write(store, [process(), *_query("live 1")], "2-2-b.log")):
        merged(store, [*ingested("d", ["a"], [(0, 10)]), *_query("gone 1"), *_query("gone 2")])
        merge(store)
        write(store, _query("live 2"), "2-2-b.log")
        merge(store)
        _spoil(store)
        write(store, [*_query("new 1"), *_query("new 2"), *_query("new 3")], "2-2-b.log")
        brought = merge(store)
    assert brought.set_aside is not None
    assert _questions(store) == ["live 1", "live 2", "new 1", "new 2", "new 3"]
    said = _said(store)
    assert "2 queries, 5 candidates, 1 documents that the store held are gone" in said
    assert brought.set_aside in said
    merge(store)
    assert dict(rows(store, "select reason, n from losses"))["set_aside_queries"] == 2


def test_a_file_that_cannot_be_read_is_described_before_anything_is_done(store: Path) -> None:
    merged(store, _query())
    _spoil(store)
    said = _said(store)
    assert "cannot be read" in said
    assert "it held 1 queries and 2 candidates" in said
    assert "ragtrace merge" in next(finding.advice for finding in examine(store) if finding.subject == "database")


def test_without_knowledge_of_what_a_lost_file_held_that_is_said(store: Path) -> None:
    merged(store, _query())
    merge(store)
    beside.path_of(database.spool_of(store)).unlink()
    _spoil(store)
    merge(store)
    assert "how much it held is not known" in _said(store)


def test_an_empty_database_file_is_no_new_one(store: Path) -> None:
    merged(store, _query())
    merge(store)
    store.write_bytes(b"")
    assert merge(store).set_aside is not None
    assert "1 queries, 2 candidates that the store held are gone" in _said(store)


def test_a_cut_off_database_file_is_set_aside(store: Path) -> None:
    merged(store, _query())
    merge(store)
    (database.spool_of(store) / "checkpoint.sidecar").unlink()
    store.write_bytes(store.read_bytes()[:-300000])
    assert merge(store).set_aside is not None
    assert "1 queries, 2 candidates" in _said(store)


def test_an_older_copy_put_in_place_of_the_file_is_noticed(store: Path) -> None:
    merged(store, _query("old"))
    merge(store)
    copy = store.read_bytes()
    merged(store, _query("new"), "2-2-b.log")
    merge(store)
    store.write_bytes(copy)
    merge(store)
    assert "1 queries, 2 candidates that the store held are gone" in _said(store)


def test_a_store_deleted_to_begin_anew_is_not_complained_of(store: Path) -> None:
    merged(store, _query())
    merge(store)
    store.unlink()
    merged(store, _query("new"), "2-2-b.log")
    assert "incomplete" not in {finding.level for finding in examine(store)}


def test_deleting_old_queries_is_no_loss(store: Path) -> None:
    merged(store, [*_query("x"), *_query("y")])
    retention.delete(store, run="r")
    merge(store)
    assert "incomplete" not in {finding.level for finding in examine(store)}


def test_a_block_that_no_opening_reads_is_found_by_the_merge(store: Path) -> None:
    """Damage in rows: the file opens, and every merge would fail for ever."""
    merged(store, [record for n in range(3000) for record in _query(f"q{n:05}")])
    merge(store)
    with contextlib.closing(duckdb.connect(str(store), read_only=True)) as connection:
        (block,) = connection.execute(
            "select max(block_id) from pragma_storage_info('queries') where column_name = 'status' or column_name = 'query_id'"
        ).fetchall()[0]
    with open(store, "r+b") as file:
        file.seek(12288 + block * 262144 + 1000)
        file.write(os.urandom(4096))
    write(store, _query("new"), "2-2-b.log")
    brought = merge(store)
    assert brought.set_aside is not None
    assert _questions(store) == ["new"]
    assert "3,000 queries" in _said(store)


# ------------------------------------------------------------------------------------------------ the logs


def test_an_empty_log_is_damage_and_stays_named(store: Path) -> None:
    """A log is born with its first record in it: an empty one has lost everything."""
    write(store, [], "3-3-c.log")
    for _ in range(3):
        merge(store)
    assert "3-3-c.log" in _said(store)


def test_files_of_others_in_the_spool_are_left_alone_and_named(store: Path) -> None:
    spool = database.spool_of(store)
    spool.mkdir()
    (spool / "notes.log").write_text("my notes")
    (spool / "4-4-d.log").mkdir()
    os.mkfifo(spool / "5-5-e.log")
    merged(store, _query("x"))
    merge(store)
    assert _questions(store) == ["x"]
    assert (spool / "notes.log").read_text() == "my notes"
    assert "3 files are in the spool not ragtrace's: 4-4-d.log, 5-5-e.log, notes.log" in _said(store, "note")


def test_a_log_that_may_not_be_read_stops_no_other_and_is_asked_for_again(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    bad = write(store, [process(), *_query("bad")], "4-4-d.log")
    write(store, _query("good"))
    read = merging.reader.read

    def refused(path: Path, offset: int, max_bytes: int) -> object:
        if path == bad:
            raise PermissionError(13, "Permission denied", str(path))
        return read(path, offset, max_bytes)

    with monkeypatch.context() as patched:
        patched.setattr(merging.reader, "read", refused)
        merge(store)
    assert _questions(store) == ["good"]
    assert rows(store, "select log, status from ledger where status <> 'done'") == [("4-4-d.log", "unreadable")]
    merge(store)
    assert _questions(store) == ["bad", "good"]
    assert "incomplete" not in {finding.level for finding in examine(store)}


def test_a_log_removed_by_somebody_else_is_named(store: Path) -> None:
    log = write(store, _query("x"), "3-3-c.log")
    with held(log):
        merge(store)
    log.unlink()
    merge(store)
    assert _questions(store) == ["x"]
    assert "1 log is removed by somebody else before their end was merged: 3-3-c.log" in _said(store)


@pytest.mark.parametrize("is_emptied", [True, False])
def test_a_log_that_was_cut_and_written_on_gives_each_row_once(is_emptied: bool, store: Path) -> None:
    """A log rotation that copies and truncates, or a machine that crashed: the ledger is ahead of the file."""
    first, second, third = _query("1"), _query("2"), _query("3")
    log = write(store, [process(), *first], "3-3-c.log")
    size = log.stat().st_size
    write(store, second, "3-3-c.log")
    with held(log):
        merge(store)
        os.truncate(log, 0 if is_emptied else size)
        write(store, third[:1], "3-3-c.log")
        merge(store)
        write(store, third[1:], "3-3-c.log")
        merge(store)
    assert _questions(store) == ["1", "2", "3"]
    assert rows(store, "select count(*), count(distinct stage_id) from stages") == [(6, 6)]
    assert rows(store, "select count(*) from query_flows where is_whole") == [(3,)]
    assert "log_shrank: the log was cut" in _said(store)


def test_records_of_a_newer_ragtrace_are_counted_and_the_rest_is_read(store: Path) -> None:
    """D-14"""
    import zlib

    from ragtrace.spool import frames

    log = write(store, [process(), *_query("x")])
    with open(log, "ab") as file:
        file.write(frames.HEADER.pack(frames.MAGIC, 2, zlib.crc32(b"{}", 200), 200) + b"{}")
    write(store, _query("y"))
    merge(store)
    assert _questions(store) == ["x", "y"]
    assert "could not record 1 times" in _said(store)
    assert "newer_record: a newer ragtrace wrote them" in _said(store)


def test_one_bad_log_among_a_hundred_costs_only_itself(store: Path) -> None:
    """D-18."""
    for number in range(100):
        write(store, [process(), *_query(f"{number:03}")], f"{number}-1-a.log")
    (database.spool_of(store) / "17-1-a.log").write_bytes(b"")
    torn = database.spool_of(store) / "42-1-a.log"
    torn.write_bytes(torn.read_bytes()[:-10])
    merge(store)
    assert len(_questions(store)) == 99, "the torn one still gives what was whole, without its query's row"
    said = _said(store)
    assert "17-1-a.log" in said
    assert "42-1-a.log" in said


def test_only_the_newest_damaged_logs_are_kept_and_all_are_counted(
    store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(clearing, "MAX_DAMAGED", 3)
    for number in range(6):
        log = write(store, _query(f"{number}"), f"{number}-1-a.log")
        log.write_bytes(log.read_bytes()[:-10])
    for _ in range(3):
        merge(store)
    assert len(list(database.spool_of(store).glob("*.damaged"))) == 3
    assert rows(store, "select count(*) from ledger where status = 'damaged'") == [(6,)]


def test_what_killed_processes_left_half_made_goes(store: Path) -> None:
    merged(store, _query())
    spool = database.spool_of(store)
    left = [spool / "checkpoint.sidecar.4711", spool / ".1-1-a.new", store.with_name(store.name + ".compact")]
    for file in left:
        file.write_bytes(b"x")
        os.utime(file, (0, 0))
    merge(store)
    assert not any(file.exists() for file in left)


def test_names_of_files_set_aside_never_collide(store: Path) -> None:
    names = set()
    for _ in range(3):
        store.write_bytes(b"x")
        names.add(rescue.set_aside(store))
    assert len(names) == 3
