"""Spool and database stay small: a week of short-lived processes, and steady traffic with readers."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import ragtrace as rt
from ragtrace.errors import StoreError
from ragtrace.spool.log import Log
from ragtrace.store import database, retention
from ragtrace.store.merge import merge
from tests.unit.store.logs import rows

HOURS = 7 * 24 if os.environ.get("RAGTRACE_TEST_ALL") else 24
BESIDE = {"merge.lock", "counts.json", "checkpoint.sidecar"}


def _ask(store: Path, run: str) -> None:
    """A process that asks one question and ends: what it does to the spool, without its start."""
    rt.configure(store, run=run, merge="off")
    with rt.query("q"), rt.retrieve(name="dense") as stage:
        stage.output(["a", "b"])
    rt.shutdown(5)


def test_a_week_of_short_lived_processes_leaves_three_files_and_one_log(tmp_path: Path) -> None:
    """D-19: one process an hour that merges at its end, beside eight workers that live on (a day of it by default)."""
    store = tmp_path / "traces.duckdb"
    workers = [Log(database.spool_of(store), lambda: b"", 0, None) for _ in range(8)]  # type: ignore[arg-type]  # loses nothing
    head = b"\xa7rt1" + bytes(9)
    for worker in workers:
        worker.append([head])
    most = 0
    for hour in range(HOURS):
        _ask(store, f"{hour}")
        merge(store)
        most = max(most, len(os.listdir(database.spool_of(store))))
    assert most <= len(BESIDE) + len(workers) + 2, "those of the last process and of the one before"
    for worker in workers:
        worker.close(1)
    for _ in range(3):
        merge(store)
    names = set(os.listdir(database.spool_of(store)))
    assert {name for name in names if not name.endswith(".damaged")} == BESIDE
    assert rows(store, "select count(*) from queries") == [(HOURS,)]


_SERVICE = """
import sys, time
import ragtrace as rt
rt.configure(sys.argv[1], run="steady", merge="off")
ids = [f"c{n}" for n in range(5000)]
n = 0
while True:
    n += 1
    with rt.query(f"q{n}"), rt.retrieve(name="dense") as stage:
        at = n * 37 % 4800
        stage.output([(name, 0.5) for name in ids[at:at + 100]])
    time.sleep(0.005)
"""


def test_under_steady_traffic_with_readers_the_write_ahead_log_and_the_file_stay_bounded(tmp_path: Path) -> None:
    """D-07: some seconds of a service, merged again and again while somebody reads."""
    store = tmp_path / "traces.duckdb"
    database.connect(store).close()
    service = subprocess.Popen([sys.executable, "-c", _SERVICE, store])
    chance = random.Random(3)
    log = store.with_name(store.name + ".wal")
    highest = n_merges = 0
    try:
        until = time.monotonic() + (60 if os.environ.get("RAGTRACE_TEST_ALL") else 8)
        while time.monotonic() < until:
            reader = database.connect(store, read_only=True)
            with pytest.raises(StoreError):  # a reader keeps mergers out: what is recorded waits in the logs
                merge(store, wait_s=0)
            reader.execute("select count(*) from candidates").fetchall()
            reader.close()
            merge(store)
            n_merges += 1
            highest = max(highest, log.stat().st_size if log.exists() else 0)
            time.sleep(chance.uniform(0, 0.1))
    finally:
        service.send_signal(signal.SIGKILL)
        service.wait()
    merge(store)
    merge(store)
    assert n_merges > 3
    assert highest == 0, "every merge ends with a checkpoint"
    n_queries, n_candidates = rows(store, "select (select count(*) from queries), (select count(*) from candidates)")[0]
    assert n_candidates == 100 * n_queries > 0
    compacted = retention.compact(store)
    # A small file is mostly whole blocks of 256 KB a column, and each merge frees some: four megabytes for these.
    assert compacted.bytes_before < 2 * compacted.bytes_after + (4 << 20)
    assert rows(store, "select count(*) from candidates") == [(n_candidates,)]


_COMPACTER = """
import sys
from pathlib import Path
from ragtrace.store import retention
print("ready", flush=True)
while True:
    retention.compact(Path(sys.argv[1]))
"""


def test_a_compaction_killed_anywhere_changes_no_row(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    for run in "abc":
        _ask(store, run)
    merge(store)
    before = rows(store, "select * from stages order by all")
    chance = random.Random(5)
    for _ in range(30 if os.environ.get("RAGTRACE_TEST_ALL") else 4):
        child = subprocess.Popen([sys.executable, "-c", _COMPACTER, store], stdout=subprocess.PIPE)
        assert child.stdout is not None
        child.stdout.readline()
        time.sleep(chance.uniform(0, 0.5))
        child.kill()
        child.communicate()
        assert merge(store).set_aside is None
        assert rows(store, "select * from stages order by all") == before
    assert sorted(os.listdir(tmp_path)) == ["traces.duckdb", "traces.duckdb.spool"]
