"""Disks that stall, fill up, vanish or cannot lock: the service goes on, and what is missing is said."""

from __future__ import annotations

import errno
import fcntl
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from textwrap import dedent
from typing import Any

import pytest
from typer.testing import CliRunner

from ragtrace.cli.main import app
from ragtrace.store import database
from ragtrace.testing import records

HEAD = """
import fcntl, json, logging, os, pathlib, resource, shutil, sys, threading, time
import ragtrace as rt

store = pathlib.Path(sys.argv[1])
spool = pathlib.Path(f"{store}.spool")

@rt.retrieve
def dense(query):
    return [{"id": f"c{n}", "score": 1 / (n + 1)} for n in range(100)]

took = []
def ask(n=1):
    for _ in range(n):
        began = time.perf_counter()
        with rt.query("why?"):
            assert len(dense("why?")) == 100
        took.append(time.perf_counter() - began)
"""


def service(store: Path, body: str, *arguments: str, timeout: float = 60) -> dict[str, Any]:
    """What a service that ran `body` said of itself, as its last line; it must end well and in silence but for our warning."""
    done = subprocess.run(
        [sys.executable, "-c", HEAD + dedent(body), str(store), *arguments],
        capture_output=True, text=True, timeout=timeout, check=False,
    )  # fmt: skip
    assert (done.returncode, "Traceback" in done.stderr) == (0, False), done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    said["stderr"] = done.stderr.splitlines()
    return said


def n_queries(store: Path) -> int:
    return sum(record.kind == "query" for record in records(store))


def lost(store: Path) -> dict[str, int]:
    counts: dict[str, int] = {}
    for record in records(store):
        if record.kind == "loss":
            counts[record.body["reason"]] = counts.get(record.body["reason"], 0) + record.body["n"]
    return counts


def run(*command: object) -> Any:
    return CliRunner().invoke(app, [str(part) for part in command])


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A disk of one megabyte, mounted for the test."""
    folder = tmp_path / "disk"
    folder.mkdir()
    try:
        made = subprocess.run(
            ["mount", "-t", "tmpfs", "-o", "size=1m", "none", str(folder)], capture_output=True, text=True, check=False
        )
    except FileNotFoundError:
        pytest.skip("there is no mount command")
    if made.returncode:
        pytest.skip(f"no small disk can be mounted here: {made.stderr.strip()}")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


STALL = """
    rt.configure(store, merge="off", max_queue_bytes=200_000)
    ask(20)
    healthy = sorted(took)[10]
    took.clear()
    write, gate = os.write, threading.Event()
    os.write = lambda fd, data: (gate.wait(), write(fd, data))[1]
    hanging = threading.Thread(target=ask)
    hanging.start()
    time.sleep(0.2)
    ask(600)
    stalled = sorted(took)[300]
    os.write = write
    gate.set()
    hanging.join()
    print(json.dumps({"flushed": rt.flush(20), "healthy": healthy, "stalled": stalled}))
"""


def test_a_stalled_disk_costs_the_service_no_time_and_what_is_dropped_is_counted_and_said(tmp_path: Path) -> None:
    """I-18"""
    store = tmp_path / "traces.duckdb"
    said = service(store, STALL)
    assert said["flushed"]
    assert said["stalled"] < 5 * said["healthy"] + 0.001
    assert 21 < n_queries(store) < 621
    # A query of one stage is two records; the timer may have written the stage of the one that hung by itself.
    n_lost = 2 * 621 - sum(record.kind in ("stage", "query") for record in records(store))
    assert lost(store) == {"queue_full": n_lost}
    for command in (["report"], ["doctor"]):
        done = run(*command, store)
        assert done.exit_code == 3
        assert f"{n_lost:,}" in done.output and "queue_full" in done.output
    again = run("report", store)
    assert again.exit_code == 3 and "Incomplete" in again.output, "every report says it, not only the first"
    report = json.loads(run("report", store, "--format", "json").output)
    gaps = [row for row in report["incomplete"] if row["gap"] == "dropped"]
    assert [(row["detail"], row["n"], row["is_serious"]) for row in gaps] == [("queue_full", n_lost, True)]


def test_the_disk_is_never_waited_for_at_the_end(tmp_path: Path) -> None:
    said = service(tmp_path / "traces.duckdb", """
        rt.configure(store, merge="off")
        ask()
        os.write = lambda fd, data: time.sleep(3600)
        threading.Thread(target=ask, daemon=True).start()
        time.sleep(0.2)
        ask(5)
        began = time.perf_counter()
        flushed = rt.shutdown(0.5)
        print(json.dumps({"flushed": flushed, "took": time.perf_counter() - began}), flush=True)
    """)  # fmt: skip
    assert not said["flushed"] and said["took"] < 5


def test_a_full_disk_makes_records_wait_until_there_is_room(small_disk: Path) -> None:
    """I-25"""
    store = small_disk / "traces.duckdb"
    said = service(store, """
        rt.configure(store, merge="off")
        ask(5)
        with open(store.parent / "ballast", "wb", buffering=0) as file:
            try:
                while True:
                    file.write(bytes(4096))
            except OSError:
                pass
        ask(300)
        full = rt.flush(0.2)
        (store.parent / "ballast").unlink()
        print(json.dumps({"full": full, "flushed": rt.flush(20)}))
    """)  # fmt: skip
    assert not said["full"] and said["flushed"]
    assert n_queries(store) == 305 and lost(store) == {}
    assert len(said["stderr"]) == 1 and "cannot write" in said["stderr"][0], "one warning a minute"


def test_a_report_over_a_full_disk_is_one_sentence_and_loses_nothing(small_disk: Path) -> None:
    store = small_disk / "traces.duckdb"
    service(store, "rt.configure(store, merge='off'); ask(20); print('{}')")
    done = run("report", store)  # the database alone needs more than there is
    assert done.exit_code in (2, 3) and len(done.output.strip().splitlines()) <= 3
    assert not isinstance(done.exception, Exception) or isinstance(done.exception, SystemExit)
    subprocess.run(["mount", "-o", "remount,size=64m", str(small_disk)], check=True)
    assert run("merge", store).exit_code == 0
    connection = database.connect(store)
    assert connection.execute("select count(*), count(distinct query_id) from queries").fetchall() == [(20, 20)]
    connection.close()


def test_a_read_only_folder_costs_the_records_not_the_service(small_disk: Path) -> None:
    """I-25"""
    subprocess.run(["mount", "-o", "remount,ro", str(small_disk)], check=True)
    said = service(small_disk / "traces.duckdb", """
        rt.configure(store, merge="off", max_queue_bytes=100_000)
        ask(200)
        print(json.dumps({"flushed": rt.flush(0.1), "median": sorted(took)[100]}))
    """)  # fmt: skip
    assert not said["flushed"] and said["median"] < 0.01
    done = run("report", small_disk / "traces.duckdb")
    assert done.exit_code == 2 and "there is no store" in done.output


def test_a_limit_on_the_size_of_files_begins_another_log(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    said = service(store, """
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        rt.configure(store, merge="off")
        ask(100)
        print(json.dumps({"flushed": rt.flush(30)}))
    """)  # fmt: skip
    assert said["flushed"]
    assert n_queries(store) == 100 and lost(store) == {}
    assert len(list(Path(f"{store}.spool").glob("*.log"))) > 1


def test_a_deleted_spool_folder_is_made_anew(tmp_path: Path) -> None:
    """I-25"""
    store = tmp_path / "folder" / "traces.duckdb"
    service(store, """
        rt.configure(store, merge="off")
        ask(5)
        shutil.rmtree(store.parent)
        ask(5)
        print(json.dumps({"flushed": rt.flush(5)}))
    """)  # fmt: skip
    assert n_queries(store) == 5


def test_descriptors_closed_by_others_are_never_written_to_again(tmp_path: Path) -> None:
    """Daemons close whatever they find; the number is soon a file or socket of the service."""
    store = tmp_path / "traces.duckdb"
    service(store, """
        rt.configure(store, merge="off")
        ask(5)
        os.closerange(3, 100)
        own = [open(store.parent / f"own-{n}", "wb") for n in range(20)]
        ask(5)
        os.closerange(3, 100)
        ask(5)
        print(json.dumps({"flushed": rt.flush(5)}))
    """)  # fmt: skip
    assert n_queries(store) == 15
    assert [path.read_bytes() for path in tmp_path.glob("own-*")] == [b""] * 20


def test_a_file_where_the_spool_should_be_costs_the_records_and_is_named(tmp_path: Path) -> None:
    store = tmp_path / "traces.duckdb"
    Path(f"{store}.spool").write_text("mine")
    said = service(store, """
        rt.configure(store, merge="off")
        ask(5)
        print(json.dumps({"flushed": rt.flush(0.1)}))
    """)  # fmt: skip
    assert not said["flushed"] and "traces.duckdb.spool" in said["stderr"][0]
    assert Path(f"{store}.spool").read_text() == "mine"
    done = run("report", store)
    assert done.exit_code == 2 and len(done.output.strip().splitlines()) == 1 and "traces.duckdb" in done.output


NO_LOCKS = """
    def no_locks(*arguments):
        raise OSError(37, "No locks available")
    fcntl.flock = no_locks
    rt.configure(store, merge="off")
    ask(10)
    print(json.dumps({"flushed": rt.flush(5)}))
"""


def test_a_file_system_without_locks_says_so_in_the_name_and_each_row_still_arrives_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    store = tmp_path / "traces.duckdb"
    service(store, NO_LOCKS)
    (log,) = Path(f"{store}.spool").glob("*.log")
    assert log.stem.endswith("-unlocked")

    def no_locks(*arguments: object) -> None:
        raise OSError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(fcntl, "flock", no_locks)
    for _ in range(2):
        assert run("merge", store).exit_code == 0
        assert log.exists(), "nobody can tell that its writer is dead: it counts as live for a day"
    service(store, NO_LOCKS)
    assert run("merge", store).exit_code == 0
    connection = database.connect(store)
    assert connection.execute("select count(*), count(distinct query_id) from queries").fetchall() == [(20, 20)]
    connection.close()
