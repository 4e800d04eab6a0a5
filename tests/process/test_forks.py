"""A fork at the worst moment: while other threads hold every lock we have, inside a query, in a pool's worker."""

from __future__ import annotations

import multiprocessing
import os
import signal
import threading
import time
from collections.abc import Callable
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import pytest

import ragtrace as rt
from ragtrace.recording import context, shapes
from ragtrace.spool.records import Record
from ragtrace.testing import ragtrace_store, records

__all__ = ["ragtrace_store"]

N_FORKS = 100 if os.environ.get("RAGTRACE_TEST_ALL") else 20

pytestmark = [
    pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here"),
    # Python 3.12 and newer warn of every fork beside a thread, which is what is tested here.
    pytest.mark.filterwarnings("ignore:This process .* is multi-threaded:DeprecationWarning"),
]


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b"]


@rt.retrieve
def novel(query: str) -> list[dict[str, object]]:
    """Rows of a kind that was not seen before."""
    return [{"id": "a", f"field {os.getpid()}": 1}]


def ask(question: str = "q") -> int:
    with rt.query(question):
        dense(question)
    return os.getpid()


def child(work: Callable[[], object], timeout_s: float = 10) -> int:
    """Exit code of a forked child that does it; one that hangs is killed and gives -9."""
    pid = os.fork()
    if pid == 0:
        try:
            work()
            os._exit(0)
        except BaseException:  # reported by the exit code: pytest must not go on in the child
            os._exit(1)
    deadline = time.monotonic() + timeout_s
    while time.monotonic() < deadline:
        done, status = os.waitpid(pid, os.WNOHANG)
        if done:
            return os.waitstatus_to_exitcode(status)
        time.sleep(0.01)
    os.kill(pid, signal.SIGKILL)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])


def queries(found: list[Record]) -> list[dict[str, object]]:
    return [record.body for record in found if record.kind == "query"]


def stages(found: list[Record]) -> list[dict[str, object]]:
    return [record.body.row for record in found if record.kind == "stage"]


def test_locks_that_other_threads_held_do_not_stop_the_child(ragtrace_store: Path) -> None:
    recorder = context.recorder
    assert recorder is not None
    ask("before")
    with rt.query("outer") as query:
        dense("outer")
        locks = [query.packing, recorder.losses._lock, recorder.log._opening, recorder.log._spill._lock, shapes._lock]
        held, over = threading.Event(), threading.Event()

        def hold() -> None:
            for lock in locks:
                lock.acquire()
            held.set()
            over.wait(20)
            for lock in reversed(locks):
                lock.release()

        holder = threading.Thread(target=hold)
        holder.start()
        held.wait(5)

        def work() -> None:
            assert context.recorder is recorder
            recorder.losses.add("capture_error")
            novel("in the parent's query")
            query.write_pending()
            ask("own")
            rt.flush(5)

        code = child(work)
        over.set()
        holder.join()
    assert code == 0
    found = records(ragtrace_store)
    assert sorted(str(row["question"]) for row in queries(found)) == ["before", "outer", "own"]
    assert sorted(str(row["name"]) for row in stages(found)) == ["dense", "dense", "dense", "novel"]


def test_forks_under_eight_recording_threads_hang_nowhere(ragtrace_store: Path) -> None:
    stop = threading.Event()
    n_asked = [0] * 8

    def work(number: int) -> None:
        while not stop.is_set():
            ask("thread")
            n_asked[number] += 1
            time.sleep(0.001)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    codes = [child(lambda: ask("child")) for _ in range(N_FORKS)]
    stop.set()
    for thread in threads:
        thread.join()
    assert codes == [0] * N_FORKS
    asked = [row["question"] for row in queries(records(ragtrace_store))]
    assert asked.count("child") == N_FORKS and asked.count("thread") == sum(n_asked)


def test_a_child_s_counts_of_losses_are_not_its_parent_s_too(ragtrace_store: Path) -> None:
    recorder = context.recorder
    assert recorder is not None
    recorder.losses.add("capture_error", n=3)
    assert child(lambda: (ask(), rt.flush(5))) == 0
    ask()
    lost = [record.body for record in records(ragtrace_store) if record.kind == "loss"]
    assert [row["n"] for row in lost] == [3]


def test_a_pool_forked_inside_a_query_adds_no_later_work_to_it(ragtrace_store: Path) -> None:
    """Its workers live on and answer for other requests: their stages are kept, of no query."""
    with ProcessPoolExecutor(1, mp_context=multiprocessing.get_context("fork")) as pool:
        with rt.query("first"):
            assert pool.submit(dense, "first").result(20)
        with rt.query("second"):
            assert pool.submit(dense, "second").result(20)
        assert pool.submit(ask, "of its own").result(20) != os.getpid()
    found = records(ragtrace_store)
    by_question = {row["question"]: row for row in queries(found)}
    assert set(by_question) == {"first", "second", "of its own"}
    assert by_question["of its own"].get("parent_query_id") is None
    of_none = [row for row in stages(found) if row["is_orphan"]]
    assert len(of_none) == 2 and {row["query_id"] for row in of_none} == {None}


def test_a_process_started_inside_a_query_for_a_part_of_it_is_its(ragtrace_store: Path) -> None:
    with rt.query("q") as query:
        dense("q")
        process = multiprocessing.get_context("fork").Process(target=dense, args=("q",))
        process.start()
        process.join(20)
    assert [row["query_id"] for row in stages(records(ragtrace_store))] == [query.id, query.id]


def test_parent_and_child_write_logs_of_their_own(ragtrace_store: Path) -> None:
    """D-03: nothing of one process's connection or file is used by another."""
    ask("parent")
    assert child(lambda: ask("child")) == 0
    ask("parent again")
    processes = [record.body["pid"] for record in records(ragtrace_store) if record.kind == "process"]
    assert len(processes) == len(set(processes)) == 2
