"""What was acknowledged is there once, however often and whenever the collector is killed."""

from __future__ import annotations

import http.client
import os
import random
import threading
import time
import urllib.error
import urllib.request

import pytest
from collectors.sent import request
from collectors.test_traces import service

from ragtrace.cli.opening import bring_up_to_date

FULL = bool(os.environ.get("RAGTRACE_TEST_ALL"))
COUNTED = "select count(*), count(distinct trace_id), min(n_stages), max(n_stages) from queries"


def post(address: str, body: bytes) -> bool:
    """Whether it was acknowledged."""
    made = urllib.request.Request(address, body, {"content-type": "application/x-protobuf"})
    try:
        with urllib.request.urlopen(made, timeout=5) as answer:
            return answer.status == 200
    except (OSError, http.client.HTTPException):
        return False  # killed meanwhile: acknowledged is only what was answered


def test_what_was_acknowledged_outlives_a_kill(collector, rows):
    """Half of each trace before it, half afterwards; some were written already, some merged."""
    first = collector("--quiet-s", "0.1")
    assert post(first.http, request(*service(trace=1)).SerializeToString())
    wait_until(lambda: rows("select count(*) from queries") == [(1,)])
    first.kill()
    second = collector("--quiet-s", "60")
    for trace in range(2, 8):
        assert post(second.http, request(*service(trace=trace)[:2]).SerializeToString())
    second.kill()
    third = collector("--quiet-s", "60")
    assert any("are taken in again" in line for line in third.said)
    for trace in range(1, 8):
        assert post(third.http, request(*service(trace=trace)[2:]).SerializeToString())

    assert third.stop() == 0
    found = "select count(*), count(distinct trace_id), min(n_stages) from queries where n_stages = 3"
    assert rows(found) == [(7, 7, 3)]


def wait_until(is_true, at_most_s: float = 20.0) -> None:
    deadline = time.monotonic() + at_most_s
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.2)


@pytest.mark.full
@pytest.mark.skipif(not FULL, reason="a minute of kills: RAGTRACE_TEST_ALL=1")
def test_random_kills_lose_and_double_nothing(collector, rows, store):
    """30 kills under load, with merges in between; senders try again what was not acknowledged."""
    generator = random.Random(7)
    acknowledged: list[int] = []
    waiting = list(range(1, 3001))
    lock = threading.Lock()
    running = {"collector": collector("--quiet-s", "0.05")}
    is_over = threading.Event()

    def sender():
        while not is_over.is_set():
            with lock:
                if not waiting:
                    return
                trace = waiting.pop()
            body = request(*service(trace=trace)).SerializeToString()
            while not post(running["collector"].http, body) and not is_over.is_set():
                time.sleep(0.02)
            acknowledged.append(trace)

    threads = [threading.Thread(target=sender) for _ in range(4)]
    for thread in threads:
        thread.start()
    try:
        for number in range(30):
            time.sleep(generator.uniform(0.05, 0.8))
            running["collector"].kill()
            if number % 5 == 0:
                bring_up_to_date(store)
            running["collector"] = collector("--quiet-s", "0.05")
        for thread in threads:
            thread.join(60)
    finally:
        is_over.set()

    assert running["collector"].stop() == 0
    assert len(acknowledged) == 3000
    assert rows(COUNTED) == [(3000, 3000, 3, 3)]
