"""Workers forked from a master that was configured: no query is lost, whoever kills a worker."""

from __future__ import annotations

import http.client
import json
import os
import signal
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from ragtrace.errors import StoreError
from ragtrace.store import database
from ragtrace.testing import records

from .serving import Server, free_port, serving

pytest.importorskip("gunicorn", reason="gunicorn is not installed")

N_REQUESTS = 400
APP = "tests.servers.traced_wsgi:application"


def asked(server: Server, number: int) -> dict[str, Any]:
    """The answer; asked again when the worker was killed under it."""
    for _ in range(5):
        try:
            answer: dict[str, Any] = json.loads(server.get(f"/?{number}"))
            return answer
        except (OSError, http.client.HTTPException):
            continue
    raise AssertionError(server.said())


def test_four_preforked_workers_lose_no_query_though_one_is_killed(tmp_path: Path) -> None:
    """I-11, D-01: 400 answers, 400 queries, whatever a kill leaves of one worker."""
    store = tmp_path / "traces.duckdb"
    port = free_port()
    arguments = ["gunicorn", "--preload", "-w", "4", "-b", f"127.0.0.1:{port}", APP]
    with (
        serving(arguments, port, tmp_path, "/?ready", RAGTRACE_STORE=str(store)) as server,
        ThreadPoolExecutor(8) as pool,
    ):
        first = list(pool.map(lambda number: asked(server, number), range(N_REQUESTS // 2)))
        os.kill(first[-1]["pid"], signal.SIGKILL)
        second = list(pool.map(lambda number: asked(server, number), range(N_REQUESTS // 2, N_REQUESTS)))
        answers = first + second
        assert len({answer["pid"] for answer in answers}) >= 4
        assert server.stop() == 0
    found = records(store)
    queries = [record.body for record in found if record.kind == "query"]
    ids = [query["query_id"] for query in queries]
    assert len(ids) == len(set(ids))
    assert {answer["query_id"] for answer in answers} <= set(ids)
    assert {str(number) for number in range(N_REQUESTS)} <= {query["question"] for query in queries}
    pids = {record.body["process_id"]: record.body["pid"] for record in found if record.kind == "process"}
    assert {answer["pid"] for answer in answers} <= set(pids.values())
    whole = [record.body.row["query_id"] for record in found if record.kind == "stage"]
    assert all(whole.count(answer["query_id"]) == 2 for answer in answers)


def test_workers_that_are_stopped_leave_their_rows_in_the_file(tmp_path: Path) -> None:
    """With the default settings: each worker has its logs merged, one after the other, when it ends."""
    store = tmp_path / "traces.duckdb"
    port = free_port()
    arguments = ["gunicorn", "--preload", "-w", "2", "-b", f"127.0.0.1:{port}", APP]
    environment = {"RAGTRACE_STORE": str(store), "RAGTRACE_MERGE": "exit"}
    with serving(arguments, port, tmp_path, "/?ready", **environment) as server:
        ids = {asked(server, number)["query_id"] for number in range(20)}
        assert server.stop() == 0
        found: set[int] = set()
        deadline = time.monotonic() + 30
        while not ids <= found and time.monotonic() < deadline:
            time.sleep(0.2)
            try:
                with database.connect(store, read_only=True) as connection:
                    found = {row[0] for row in connection.execute("select query_id from queries").fetchall()}
            except StoreError:
                continue  # a worker's merge is at it
    assert ids <= found
    assert "Traceback" not in server.said()
