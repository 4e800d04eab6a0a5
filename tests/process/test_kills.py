"""Kill -9 at random points of recording and of merging: every query that had ended is in the store exactly once.

About 30 kills, 500 when RAGTRACE_TEST_ALL is set; RAGTRACE_KILLS sets another number. The services record with the public API and say in a
file of their own which queries had ended; mergers take small pieces and checkpoint after each, where a kill hurts most.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from ragtrace.store import database
from ragtrace.store.merge import merge
from tests.unit.store.logs import rows

N_KILLS = int(os.environ.get("RAGTRACE_KILLS") or (500 if os.environ.get("RAGTRACE_TEST_ALL") else 30))
SERVICES = 3

# Loads everything once and forks: a kill then costs no start of an interpreter.
_NURSERY = """
import os, sys, time
from pathlib import Path
import ragtrace as rt
from ragtrace.store import merge

store, acknowledged = Path(sys.argv[1]), sys.argv[2]

@rt.retrieve(index="main")
def dense(name, n):
    return [(f"c{n % 97}", 0.5), ("shared", 0.25), (f"d{n % 13}", 0.125)]

@rt.rerank
def rerank(found):
    return found[:2]

@rt.generate
def generate(found):
    return "an answer"

def serve(name):
    rt.configure(store, run="killed", merge="off")
    said = os.open(acknowledged, os.O_WRONLY | os.O_APPEND | os.O_CREAT)
    n = 0
    while True:
        n += 1
        with rt.query(f"question {n}", question_id=f"{name}-{n}"):
            generate(rerank(dense(name, n)))
        os.write(said, f"{name}-{n}\\n".encode())
        time.sleep(0.002)

def take_in(name):
    merge.READ_BYTES, merge.PIECE_CANDIDATES, merge.CHECKPOINT_WAL_BYTES = 20000, 300, 0
    while True:
        merge.merge(store)

for line in sys.stdin:
    what, name = line.split()
    pid = os.fork()
    if pid:
        print(pid, flush=True)
        continue
    try:
        {"serve": serve, "merge": take_in}[what](name)
    except BaseException as error:
        os.write(2, f"{what}: {type(error).__name__}: {error}\\n".encode())
    os._exit(1)
"""


@contextmanager
def nursery(store: Path, acknowledged: Path, errors: Path) -> Iterator[subprocess.Popen[str]]:
    """The process that forks services and mergers; what they say on stderr is in `errors`."""
    with (
        open(errors, "w") as said,
        subprocess.Popen(
            # Its forks outlive it only until they are killed.
            [sys.executable, "-W", "ignore::DeprecationWarning", "-c", _NURSERY, store, acknowledged],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=said,
            text=True,
        ) as process,
    ):
        yield process
        assert process.stdin is not None
        process.stdin.close()
        process.wait(30)


def born(process: subprocess.Popen[str], what: str, name: str) -> int:
    assert process.stdin is not None
    assert process.stdout is not None
    process.stdin.write(f"{what} {name}\n")
    process.stdin.flush()
    return int(process.stdout.readline())


def wait_for_more(file: Path) -> None:
    """On a busy machine a service may not have run at all yet, and a kill would hit nothing."""
    size, deadline = file.stat().st_size, time.monotonic() + 30
    while file.stat().st_size == size:
        assert time.monotonic() < deadline, "no service records"
        time.sleep(0.002)


@pytest.mark.timeout(1800)  # five hundred kills take four minutes on an idle machine
def test_services_and_mergers_killed_anywhere_lose_nothing_and_bring_nothing_twice(tmp_path: Path) -> None:
    """D-06, D-17"""
    store, acknowledged, errors = tmp_path / "traces.duckdb", tmp_path / "acknowledged", tmp_path / "errors"
    database.connect(store).close()
    acknowledged.touch()
    chance = random.Random(7)
    n_kills = 0
    with nursery(store, acknowledged, errors) as process:
        number = 0
        while n_kills < N_KILLS:
            number += 1
            living = [born(process, "serve", f"{number}.{service}") for service in range(SERVICES)]
            living.append(born(process, "merge", str(number)))
            wait_for_more(acknowledged)
            chance.shuffle(living)
            for pid in living:
                time.sleep(chance.uniform(0, 0.2))  # the points of the kills are what is drawn
                os.kill(pid, signal.SIGKILL)
                n_kills += 1
    assert errors.read_text() == "", "nobody ended before being killed"

    expected = acknowledged.read_text().split()
    merged = merge(store)
    assert merged.set_aside is None
    assert expected
    found = [row[0] for row in rows(store, "select question_id from queries where status = 'ok'")]
    print(f"{n_kills} kills: {len(set(expected) & set(found)):,} of {len(expected):,} acknowledged queries found")
    assert len(found) == len(set(found)), "a query is there twice"
    assert set(expected) - set(found) == set()
    assert rows(
        store, "select count(*) from queries join query_flows using (query_id) where status = 'ok' and not is_whole"
    ) == [(0,)]
    assert rows(store, "select count(*) - count(distinct (list_id, rank)) from candidates") == [(0,)]
    n_stages = rows(
        store, "select count(*) from stages where query_id in (select query_id from queries where status = 'ok')"
    )
    assert n_stages == [(3 * len(found),)]
