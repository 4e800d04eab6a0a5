"""Celery prefork with a new child for each task: every child ends by `os._exit`, and nothing is lost."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

from ragtrace.testing import records

from .serving import CHECKOUT

pytest.importorskip("celery", reason="celery is not installed")

N_TASKS = 10
SEND = f"from tests.servers.traced_celery import answer; [answer.delay(f'q{{n}}') for n in range({N_TASKS})]"


def test_a_child_that_ends_after_one_task_loses_nothing(tmp_path: Path) -> None:
    """I-12"""
    store = tmp_path / "traces.duckdb"
    broker = tmp_path / "broker"
    (broker / "control").mkdir(parents=True)
    environment = {**os.environ, "PYTHONPATH": str(CHECKOUT), "BROKER_FOLDER": str(broker)}
    subprocess.run([sys.executable, "-c", SEND], env=environment, cwd=tmp_path, check=True, timeout=60)
    arguments = ["celery", "-A", "tests.servers.traced_celery", "worker", "-P", "prefork", "-c", "2",
                 "--max-tasks-per-child", "1", "--without-gossip", "--without-mingle", "--without-heartbeat"]  # fmt: skip
    output = tmp_path / "worker.txt"
    with open(output, "wb") as said:
        worker = subprocess.Popen(
            [sys.executable, "-m", *arguments], env={**environment, "RAGTRACE_STORE": str(store), "RAGTRACE_MERGE": "off"},
            cwd=tmp_path, stdout=said, stderr=subprocess.STDOUT, start_new_session=True,
        )  # fmt: skip
    try:
        deadline = time.monotonic() + 60
        questions: list[str] = []
        while len(questions) < N_TASKS and time.monotonic() < deadline and worker.poll() is None:
            time.sleep(0.2)
            questions = [record.body["question"] for record in records(store) if record.kind == "query"]
        worker.send_signal(signal.SIGTERM)
        worker.wait(30)
    finally:
        try:
            os.killpg(worker.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all of it has ended
    found = records(store)
    assert sorted(questions) == sorted(f"q{number}" for number in range(N_TASKS)), output.read_text()
    assert len([record for record in found if record.kind == "stage"]) == N_TASKS
    assert len({record.body["pid"] for record in found if record.kind == "process"}) == N_TASKS
