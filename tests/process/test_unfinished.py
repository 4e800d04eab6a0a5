"""A process that ends inside a query: what had ended of it is kept, and the query is called interrupted."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import duckdb
import pytest

from ragtrace.errors import StoreError
from ragtrace.store import database, merge
from ragtrace.testing import records

SCRIPT = """
import signal, sys, time
import ragtrace as rt

signal.signal(signal.SIGINT, signal.default_int_handler)  # what a shell starts in the background ignores it
rt.configure(sys.argv[1], run="r", merge="off")

@rt.retrieve
def dense(query):
    time.sleep(0.01)
    return ["a", "b"]

with rt.query("finished"):
    dense("q")
before = signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT)
with rt.query("unfinished"), rt.retrieve(name="hybrid") as hybrid:
    hybrid.output(dense("q"))
    assert before == (signal.getsignal(signal.SIGTERM), signal.getsignal(signal.SIGINT))
    print("inside", flush=True)
    with rt.rerank(name="slow"):
        time.sleep(60)
"""


def ended_by(number: int, store: Path, after_s: float) -> int:
    process = subprocess.Popen(
        [sys.executable, "-c", SCRIPT, str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.readline()
    time.sleep(after_s)
    process.send_signal(number)
    try:
        process.communicate(timeout=30)
    finally:
        process.kill()
        process.wait()
    return process.returncode


def rows(store: Path, sql: str) -> list[tuple[Any, ...]]:
    with database.connect(store, read_only=True) as connection:
        return connection.execute(sql).fetchall()


def n_queries_merged(store: Path, expected: int) -> int:
    """On a busy machine the merge that a script's end started may outlive the script."""
    deadline = time.monotonic() + 30
    found = 0
    while found < expected and time.monotonic() < deadline:
        try:
            found = rows(store, "select count(*) from queries")[0][0]
        except StoreError:
            time.sleep(0.2)
    return found


@pytest.mark.parametrize("name", ["SIGTERM", "SIGKILL"])
def test_stages_that_ended_are_stored_and_the_query_is_interrupted(name: str, tmp_path: Path) -> None:
    """I-16. In a query that takes longer than 10 ms ended stages are written as they end."""
    store = tmp_path / "traces.duckdb"
    number = getattr(signal, name)
    assert ended_by(number, store, 2.5) == -number
    merge.merge(store)
    found = dict(rows(store, "select coalesce(question, 'unfinished'), status from queries"))
    assert found == {"finished": "ok", "unfinished": "interrupted"}
    assert rows(store, "select name, status from stages order by stage_id") == [("dense", "ok"), ("dense", "ok")]
    assert rows(store, "select run from queries where status = 'interrupted'") == [("r",)]


def test_an_interrupt_from_the_keyboard_ends_every_stage_as_cancelled(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    ended_by(signal.SIGINT, store, 0.1)
    merge.merge(store)
    assert rows(store, "select question, status, error_type from queries order by query_id") == [
        ("finished", "ok", None), ("unfinished", "cancelled", "KeyboardInterrupt")
    ]  # fmt: skip
    assert rows(store, "select name, status from stages order by stage_id") == [
        ("dense", "ok"), ("hybrid", "cancelled"), ("dense", "ok"), ("slow", "cancelled")
    ]  # fmt: skip


def test_a_frozen_process_goes_on_where_it_stood(tmp_path: Path) -> None:
    """I-17: a pause of the whole process, as platforms that freeze between calls make it."""
    store = tmp_path / "traces.duckdb"
    script = SCRIPT.replace("time.sleep(60)", "sys.stdin.readline()") + "\nprint(rt.flush(5), flush=True)\n"
    process = subprocess.Popen(
        [sys.executable, "-c", script, str(store)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    process.stdout.readline()
    os.kill(process.pid, signal.SIGSTOP)
    merge.merge(store)
    assert rows(store, "select question from queries") == [("finished",)]
    os.kill(process.pid, signal.SIGCONT)
    said, _ = process.communicate("\n", timeout=30)
    assert said == "True\n"
    merge.merge(store)
    assert rows(store, "select question, status from queries order by query_id") == [
        ("finished", "ok"),
        ("unfinished", "ok"),
    ]


def test_a_process_ends_in_time_while_somebody_else_holds_the_database(tmp_path: Path) -> None:
    """I-14: the exit hook waits 5 s at most; the rows are in the log for the next reader."""
    store = tmp_path / "traces.duckdb"
    script = SCRIPT.replace(', merge="off"', "").replace("time.sleep(60)", "pass") + "\nprint('ended', flush=True)\n"
    database.connect(store).close()
    with duckdb.connect(str(store)):
        process = subprocess.Popen(
            [sys.executable, "-c", script, str(store)], stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        assert process.stdout is not None
        process.stdout.readline(), process.stdout.readline()
        began = time.monotonic()
        _, said = process.communicate(timeout=30)
        assert time.monotonic() - began < 7
        assert (process.returncode, said) == (0, b"")
        assert len([record for record in records(store) if record.kind == "query"]) == 2


def test_a_script_that_ends_has_its_rows_in_the_file_and_says_nothing(tmp_path: Path) -> None:
    """I-15: with the default settings, without a call of `shutdown`."""
    store = tmp_path / "traces.duckdb"
    script = SCRIPT.replace(', merge="off"', "").replace("time.sleep(60)", "pass")
    done = subprocess.run(
        [sys.executable, "-c", script, str(store)], capture_output=True, text=True, timeout=60, check=True
    )
    assert done.stderr == ""
    assert n_queries_merged(store, 2) == 2
