"""Surroundings that services really have: forks nobody is told of, greenlets, an exporter whose endpoint never answers."""

from __future__ import annotations

import socket
import subprocess
import sys
import time
from pathlib import Path

import pytest
from typer.testing import CliRunner

import ragtrace as rt
from ragtrace.cli.main import app
from ragtrace.store import database, merge
from ragtrace.testing import ragtrace_store, records

__all__ = ["ragtrace_store"]


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b"]


def ask(question: str) -> None:
    with rt.query(question):
        dense(question)


def questions(store: Path) -> list[str]:
    return sorted(record.body["question"] for record in records(store) if record.kind == "query")


UNSEEN_FORK = """
import ctypes, os, signal, sys
import ragtrace as rt
rt.configure(sys.argv[1], merge="off")

@rt.retrieve
def dense(query):
    return ["a", "b"]

def ask(question):
    with rt.query(question):
        dense(question)

ask("parent")
assert rt.flush(5)
# A thread that wants the interpreter's lock at that moment is waited for by the child forever: Python's own hook would have seen to it.
sys.setswitchinterval(60)
pid = ctypes.PyDLL(None).fork()
sys.setswitchinterval(0.005)
if pid == 0:
    signal.alarm(20)
    try:
        ask("child")
        os._exit(0 if rt.flush(5) else 2)
    except BaseException:
        os._exit(1)
assert os.waitpid(pid, 0)[1] == 0
ask("parent again")
rt.shutdown(5)
"""


def run(script: str, store: Path) -> None:
    """In an interpreter of its own: a fork of the one that runs the tests inherits whatever their threads hold."""
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", script, str(store)],
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="the C library's fork is called as on Linux")
def test_a_child_whose_fork_python_never_saw_records_into_a_log_of_its_own(tmp_path: Path) -> None:
    """I-13: as servers written in C fork; no hook runs."""
    store = tmp_path / "traces.duckdb"
    run(UNSEEN_FORK, store)
    assert questions(store) == ["child", "parent", "parent again"]
    assert len({record.body["pid"] for record in records(store) if record.kind == "process"}) == 2


GREENLETS = """
from gevent import monkey
monkey.patch_all()
import os, sys, time, gevent
import ragtrace as rt
rt.configure(sys.argv[1], merge="off")

@rt.retrieve
def dense(query):
    time.sleep(0.01)
    return [query]

def ask(question):
    with rt.query(question):
        dense(question)

gevent.joinall([gevent.spawn(ask, f"parent {n}") for n in range(20)], raise_error=True)
pid = os.fork()
gevent.joinall([gevent.spawn(ask, f"{'later' if pid else 'child'} {n}") for n in range(20)], raise_error=True)
assert rt.flush(5)
if pid == 0:
    os._exit(0)
assert os.waitpid(pid, 0)[1] == 0
rt.shutdown(5)
"""


def test_greenlets_keep_their_queries_apart_before_and_after_a_fork(tmp_path: Path) -> None:
    """I-13"""
    pytest.importorskip("gevent", reason="gevent is not installed")
    store = tmp_path / "traces.duckdb"
    run(GREENLETS, store)
    assert questions(store) == sorted(f"{who} {n}" for who in ("parent", "child", "later") for n in range(20))
    asked = {record.body["query_id"]: record.body["question"] for record in records(store) if record.kind == "query"}
    of_stages = [record.body.row for record in records(store) if record.kind == "stage"]
    assert len(of_stages) == 60 and all(row["query_text"] == asked[row["query_id"]] for row in of_stages)


def test_an_exporter_whose_endpoint_never_answers_is_not_waited_for(ragtrace_store: Path) -> None:
    """I-14: the service's own exporter sits in its request while we record, flush and end."""
    from opentelemetry.sdk.trace import TracerProvider
    from opentelemetry.sdk.trace.export import BatchSpanProcessor, SpanExporter, SpanExportResult

    taken: list[float] = []

    class Posting(SpanExporter):
        """An OTLP exporter's request over HTTP, without its retries."""

        def export(self, spans: object) -> SpanExportResult:
            with socket.create_connection(hole.getsockname(), timeout=3) as connection:
                connection.sendall(b"POST /v1/traces HTTP/1.1\r\nHost: collector\r\nContent-Length: 0\r\n\r\n")
                taken.append(time.monotonic())
                try:
                    connection.recv(1)
                except TimeoutError:
                    return SpanExportResult.FAILURE
            return SpanExportResult.FAILURE

    with socket.create_server(("127.0.0.1", 0)) as hole:
        provider = TracerProvider()
        provider.add_span_processor(BatchSpanProcessor(Posting(), schedule_delay_millis=20, max_export_batch_size=8))
        rt.configure(ragtrace_store, merge="off", tracer_provider=provider)
        began = time.monotonic()
        while not taken and time.monotonic() - began < 5:
            ask("before")
            time.sleep(0.01)
        assert taken, "the exporter never began"
        n_before = len(questions(ragtrace_store))
        began = time.monotonic()
        for _ in range(200):
            ask("during")
        assert rt.flush(2)
        rt.shutdown(2)
        took = time.monotonic() - began
        assert took < 2, "less than the exporter waits"
    assert questions(ragtrace_store).count("during") == 200 and n_before >= 1
    provider.shutdown()


def test_the_store_has_no_index_that_a_replay_could_fail_on(tmp_path: Path) -> None:
    """D-06"""
    with database.connect(tmp_path / "traces.duckdb") as connection:
        assert connection.execute("select count(*) from duckdb_indexes()").fetchone() == (0,)
        keys = "select count(*) from duckdb_constraints() where constraint_type in ('UNIQUE', 'PRIMARY KEY', 'FOREIGN KEY')"
        assert connection.execute(keys).fetchone() == (0,)


def test_memory_is_bounded_and_what_does_not_fit_names_the_setting(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """D-10"""
    store = tmp_path / "traces.duckdb"
    with database.connect(store) as connection:
        assert connection.execute("select current_setting('memory_limit')").fetchone() == ("1.0 GiB",)
    monkeypatch.setenv("RAGTRACE_MEMORY_LIMIT", "64MiB")
    hungry = "select length(list(repeat('x', 1000) || range)::varchar) as n from range(1_000_000)"
    done = CliRunner().invoke(app, ["sql", str(store), hungry])
    assert done.exit_code == 2 and "RAGTRACE_MEMORY_LIMIT" in done.output
    assert "Traceback" not in done.output


def test_a_thousand_queries_of_two_hundred_candidates_are_in_the_file_in_seconds(ragtrace_store: Path) -> None:
    """D-09: in columns, never row by row, which takes minutes; 2 s of processor time on an idle core."""

    @rt.retrieve
    def search(number: int) -> list[tuple[str, float]]:
        return [(f"{number}-{place}", place / 200) for place in range(200)]

    began = time.process_time()
    for number in range(1000):
        with rt.query(f"q{number}"):
            search(number)
    rt.shutdown(5)
    assert merge.merge(ragtrace_store).n_candidates == 200_000
    assert time.process_time() - began < 10


GROWTH = """
import json, os, sys
import ragtrace as rt
def resident_mb():
    with open("/proc/self/statm") as statm:
        return int(statm.read().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20

text = json.dumps([{"id": f"c{n}", "score": n / 100, "text": f"{n:08d} " + "some words " * 372} for n in range(100)])
rt.configure(sys.argv[1], merge="off")

@rt.retrieve
def search(query):
    return json.loads(text)

def ask(question):
    with rt.query(question):
        search(question)

for n in range(50):
    ask(f"warm {n}")
before = resident_mb()
for n in range(500):
    ask(f"question {n}")
print(resident_mb() - before)
"""


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="resident memory is read from /proc")
def test_two_hundred_megabytes_of_candidates_leave_nothing_in_memory(tmp_path: Path) -> None:
    """I-26: 500 requests of 100 texts of 4 KB; `benchmarks.memory` does 10,000 of three lists."""
    done = subprocess.run(
        [sys.executable, "-c", GROWTH, str(tmp_path / "t.duckdb")],
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
    )
    assert float(done.stdout) < 10
    assert len(questions(tmp_path / "t.duckdb")) == 550


REAL_EXPORTER = """
import os, socket, sys, time
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
import ragtrace as rt

hole = socket.create_server(("127.0.0.1", 0))
hole.settimeout(10)
exporter = OTLPSpanExporter(f"http://127.0.0.1:{hole.getsockname()[1]}", insecure=True, timeout=8)
provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(exporter, schedule_delay_millis=20))
rt.configure(sys.argv[1], merge="off", tracer_provider=provider)

def ask(question):
    with rt.query(question):
        rt.retrieve(lambda: ["a"])()

ask("before")
taken, _ = hole.accept()
began = time.monotonic()
for _ in range(200):
    ask("during")
assert rt.flush(2)
rt.shutdown(2)
print(time.monotonic() - began, flush=True)
os._exit(0)
"""


def test_an_otlp_exporter_over_grpc_is_not_waited_for_either(tmp_path: Path) -> None:
    """I-14: ended by force, since the wait at the end is the exporter's own."""
    pytest.importorskip("opentelemetry.exporter.otlp.proto.grpc", reason="the OTLP exporter over gRPC is not installed")
    store = tmp_path / "traces.duckdb"
    done = subprocess.run(
        [sys.executable, "-c", REAL_EXPORTER, str(store)], capture_output=True, text=True, timeout=60, check=True
    )
    assert float(done.stdout) < 4, "less than the exporter waits"
    assert questions(store) == ["before", *["during"] * 200]
