"""FastAPI under a real uvicorn: streamed answers, work after the answer, several workers, reload, a stop."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ragtrace.spool.records import Record
from ragtrace.store import database, merge
from ragtrace.testing import records

from .serving import CHECKOUT, Server, free_port, serving

pytest.importorskip("uvicorn", reason="uvicorn is not installed")
pytest.importorskip("fastapi", reason="fastapi is not installed")

APP = "tests.servers.traced_asgi:app"
WORDS = "".join(f"word {number}. " for number in range(20)).encode()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("uvicorn")


@pytest.fixture(scope="module")
def server(folder: Path) -> Iterator[Server]:
    port = free_port()
    with serving(
        ["uvicorn", APP, "--port", str(port), "--timeout-graceful-shutdown", "1"],
        port,
        folder,
        "/ask?question=ready",
        RAGTRACE_STORE=str(folder / "traces.duckdb"),
        HANGING=str(folder / "hanging"),
    ) as running:
        yield running


def of(folder: Path, question: str) -> tuple[dict[str, Any], dict[str, Record]]:
    """The only query that asked this, and its stages by name."""
    deadline = time.monotonic() + 10
    while True:
        found = records(folder / "traces.duckdb")
        queries = [record.body for record in found if record.kind == "query" and record.body["question"] == question]
        if queries or time.monotonic() > deadline:
            break
        time.sleep(0.02)
    (query,) = queries
    stages = [record.body for record in found if record.kind == "stage"]
    own = {stage.row["name"]: stage for stage in stages if stage.row.get("query_id") == query["query_id"]}
    return query, own


def test_a_decorated_dependency_is_a_query(server: Server, folder: Path) -> None:
    """I-30: FastAPI still sees its parameters, and awaits it."""
    assert json.loads(server.get("/ask?question=plain"))["found"] == ["a", "b", "c"]
    query, stages = of(folder, "plain")
    assert query["status"] == "ok" and list(stages) == ["dense"]


def test_a_sync_generator_driven_by_the_thread_pool_streams_every_byte_and_is_one_stage(
    server: Server, folder: Path
) -> None:
    """I-04, I-06: each `next` runs in another thread and another copy of the context."""
    assert server.get("/stream?question=sync") == WORDS
    query, stages = of(folder, "sync")
    assert query["status"] == "ok" and query["n_stages"] == 1
    (one,) = stages["lazily"].lists
    assert one.columns is not None and len(one.columns.chunk_id) == 20
    assert 20 * 5_000_000 <= stages["lazily"].row["duration_ns"] <= query["duration_ns"]


def test_an_async_generator_streams_inside_its_query(server: Server, folder: Path) -> None:
    assert server.get("/stream_later?question=async") == WORDS
    query, stages = of(folder, "async")
    assert query["status"] == "ok" and set(stages) == {"dense", "generate"}
    assert query["duration_ns"] >= 20 * 5_000_000


def test_many_streams_at_once_keep_apart(server: Server, folder: Path) -> None:
    bodies: dict[int, bytes] = {}

    def ask(number: int) -> None:
        kind = "stream" if number % 2 else "stream_later"
        bodies[number] = server.get(f"/{kind}?question=many-{number}")

    threads = [threading.Thread(target=ask, args=(number,)) for number in range(20)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert bodies == dict.fromkeys(range(20), WORDS)
    for number in range(20):
        query, stages = of(folder, f"many-{number}")
        assert query["status"] == "ok" and len(stages) == query["n_stages"] == 2 - number % 2


def test_a_client_that_goes_away_ends_the_query_as_cancelled(server: Server, folder: Path) -> None:
    """I-05, I-08: the partial answer's list is kept."""
    import socket

    with socket.create_connection(("127.0.0.1", server.port)) as connection:
        connection.sendall(b"GET /stream_later?question=gone HTTP/1.1\r\nHost: x\r\n\r\n")
        connection.recv(100)
    query, stages = of(folder, "gone")
    assert query["status"] == "cancelled" and stages["dense"].row["status"] == "ok"


def test_work_after_the_answer_is_kept_and_detached(server: Server, folder: Path) -> None:
    """I-10"""
    server.get("/background?question=after")
    deadline = time.monotonic() + 5
    query, stages = of(folder, "after")
    while not stages and time.monotonic() < deadline:
        time.sleep(0.02)
        query, stages = of(folder, "after")
    assert stages["dense"].row["is_detached"] and query["n_stages"] == 0


def test_nothing_is_said_of_contexts_or_by_us(server: Server) -> None:
    said = server.said()
    assert (
        "opentelemetry.context" not in said
        and "Traceback" not in said
        and "ragtrace" not in said.replace("ragtrace_", "")
    )


def test_a_stop_inside_a_nested_stage_keeps_what_had_ended(server: Server, folder: Path) -> None:
    """I-16: a graceful stop cancels the request, so every stage ends; runs last, it ends the server."""
    thread = threading.Thread(target=lambda: _ignoring(server, "/hang?question=stopped"))
    thread.start()
    deadline = time.monotonic() + 10
    while not (folder / "hanging").exists() and time.monotonic() < deadline:
        time.sleep(0.02)
    server.stop()
    thread.join(20)
    query, stages = of(folder, "stopped")
    assert stages["dense"].row["status"] == "ok"
    assert query["status"] == stages["slow"].row["status"] == "cancelled"


def _ignoring(server: Server, path: str) -> None:
    try:
        server.get(path)
    except Exception:  # the server ends under it
        pass


def test_two_workers_record_side_by_side_and_a_reader_sees_both_while_they_serve(tmp_path: Path) -> None:
    """D-01, D-02: nobody holds the database."""
    store = tmp_path / "traces.duckdb"
    port = free_port()
    arguments = ["uvicorn", APP, "--port", str(port), "--workers", "2"]
    with serving(arguments, port, tmp_path, "/ask?question=ready", RAGTRACE_STORE=str(store)) as server:
        pids = set()
        n_asked = 1
        deadline = time.monotonic() + 20
        while (len(pids) < 2 or n_asked < 40) and time.monotonic() < deadline:
            pids.add(json.loads(server.get("/ask?question=q"))["pid"])
            n_asked += 1
        merge.merge(store)
        with database.connect(store, read_only=True) as connection:
            n_queries, n_processes = connection.execute(
                "select count(*), count(distinct process_id) from queries"
            ).fetchall()[0]
        assert (n_queries, n_processes) == (n_asked, 2)
        server.get("/ask?question=still-served")
        server.stop()
    merge.merge(store)
    with database.connect(store, read_only=True) as connection:
        assert connection.execute("select count(*) from queries").fetchall() == [(n_asked + 1,)]


def test_a_reload_goes_on_recording(tmp_path: Path) -> None:
    """D-01: `uvicorn --reload` starts the service anew in another process."""
    pytest.importorskip("watchfiles", reason="uvicorn reloads slowly without watchfiles")
    store = tmp_path / "traces.duckdb"
    port = free_port()
    source = tmp_path / "service.py"
    source.write_text("from tests.servers.traced_asgi import app\n")
    arguments = ["uvicorn", "service:app", "--port", str(port), "--reload"]
    environment = {"RAGTRACE_STORE": str(store), "PYTHONPATH": f"{tmp_path}:{CHECKOUT}"}
    with serving(arguments, port, tmp_path, "/ask?question=ready", **environment) as server:
        before = json.loads(server.get("/ask?question=before"))["pid"]
        source.write_text("from tests.servers.traced_asgi import app\n# changed\n")
        deadline = time.monotonic() + 30
        after = before
        n_asked = 2
        while after == before and time.monotonic() < deadline:
            time.sleep(0.1)
            try:
                after = json.loads(server.get("/ask?question=after"))["pid"]
                n_asked += 1
            except OSError:
                continue  # between two processes nobody listens
        assert after != before
        assert len([record for record in records(store) if record.kind == "query"]) >= n_asked
