"""Probes of a running service: in the background, after the query, never in its way."""

from __future__ import annotations

import logging
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.errors import ConfigurationError
from ragtrace.probes import Retriever, Retrievers
from ragtrace.probes.live import MOST_WAITING, Sampler, watch
from ragtrace.store import database, merge
from tests.traced import Traced

IDS = ["alpha", "bravo", "charlie", "delta"]


class Service:
    """One retriever that remembers how it was asked again, and by which thread."""

    def __init__(self) -> None:
        self.asked: list[tuple[str, str, int, Any]] = []
        self.during: list[bool] = []
        self.is_answering = False
        self.may_go_on = threading.Event()
        self.may_go_on.set()

    def exact(self, query: str, k: int, filter: Any) -> list[str]:
        self.may_go_on.wait(5)
        self.asked.append((threading.current_thread().name, query, k, filter))
        self.during.append(self.is_answering)
        return IDS

    def answer(self, question: str, rewritten: str | None = None) -> None:
        self.is_answering = True
        with rt.query(question):
            with rt.retrieve(
                name="dense", mode="ann", k=2, query=rewritten or question, filter={"lang": "en"}, index_version="1"
            ) as stage:
                stage.output(IDS[:2])
            time.sleep(0.05)
            self.is_answering = False
            rt.context(IDS[:2])

    def wait(self, n: int, timeout_s: float = 10.0) -> None:
        until = time.monotonic() + timeout_s
        while len(self.asked) < n and time.monotonic() < until:
            time.sleep(0.01)


@pytest.fixture
def service() -> Iterator[Service]:
    """Sampled in full, with an index of a known version."""
    service = Service()
    retrievers = Retrievers(
        [Retriever("dense", exact=service.exact, index_version=lambda: "1", without_filter=True, max_k=50)]
    )
    sampler = Sampler(retrievers, 1.0, calls_per_minute=1e6)
    watch(sampler)
    yield service
    watch(None)
    service.may_go_on.set()
    assert sampler.stop(5)


def test_a_search_is_asked_again_in_another_thread_once_its_query_has_ended(traced: Traced, service: Service) -> None:
    service.answer("which is four?", rewritten="four")
    service.wait(3)

    thread, query, k, filter = service.asked[0]
    assert (thread, query, k, filter) == ("ragtrace-probe", "four", 50, {"lang": "en"})
    assert service.during == [False, False, False]
    assert [(query, filter) for _, query, _, filter in service.asked[1:]] == [
        ("which is four?", {"lang": "en"}), ("four", None)
    ]  # fmt: skip


def test_what_it_answers_is_in_the_store_and_counts(traced: Traced, service: Service) -> None:
    """Labels come later: the whole answer is kept, and then proves the reason."""
    with rt.document("doc"):
        rt.parse(lambda: "a b c d")()
        pieces = [rt.Chunk(name, "abcd"[at], "doc", 2 * at, 2 * at + 1) for at, name in enumerate(IDS)]
        rt.chunk(lambda _: pieces)("a b c d")
        rt.index(complete=True)(lambda _: None)(pieces)
    service.answer("q")
    service.wait(2, timeout_s=2)
    time.sleep(0.1)  # the last answer is written after it was noted
    traced.judge([{"question_id": "Q", "question": "q", "gold": [{"doc_id": "doc", "quote": "d"}]}])

    (row,) = traced.rows("select reason, proof, rank_after, k from reasons")
    assert tuple(row.values()) == ("below_k", "probe", 4, 2)


def test_a_request_never_waits_for_a_probe_and_a_full_queue_passes_on(traced: Traced, service: Service) -> None:
    service.may_go_on.clear()
    sampler = Sampler(
        Retrievers([Retriever("dense", exact=service.exact, index_version=lambda: "1")]), 1.0, calls_per_minute=1e6
    )
    watch(sampler)
    started = time.monotonic()
    for _ in range(MOST_WAITING + 20):
        with rt.query("q"):
            rt.retrieve(name="dense", mode="ann", k=2, index_version="1")(lambda query: IDS[:2])("q")
    seconds = time.monotonic() - started
    watch(None)
    service.may_go_on.set()

    assert sampler.n_passed_over >= 19  # one may be in hand already
    assert seconds < 4
    assert sampler.stop(5)


def test_how_many_were_passed_over_is_said_in_the_log(
    traced: Traced, service: Service, caplog: pytest.LogCaptureFixture
) -> None:
    service.may_go_on.clear()
    sampler = Sampler(
        Retrievers([Retriever("dense", exact=service.exact, index_version=lambda: "1")]), 1.0, calls_per_minute=1e6
    )
    watch(sampler)
    for _ in range(MOST_WAITING + 20):
        with rt.query("q"):
            rt.retrieve(name="dense", mode="ann", k=2, index_version="1")(lambda query: IDS[:2])("q")
    watch(None)
    service.may_go_on.set()
    assert sampler.stop(5)

    told = [record.getMessage() for record in caplog.records if record.levelno == logging.WARNING]
    assert sum(int(said.split()[0]) for said in told) == sampler.n_passed_over
    assert f"{MOST_WAITING} may wait" in told[0]


def test_a_long_stream_holds_up_no_other_query(traced: Traced, service: Service) -> None:
    """The first query is still open when the second has ended: that one is asked again meanwhile."""
    with rt.query("a stream"):
        with rt.retrieve(name="dense", mode="ann", k=2, query="a stream", index_version="1") as stage:
            stage.output(IDS[:2])
        other = threading.Thread(target=service.answer, args=["short"])
        other.start()
        other.join()
        service.wait(1, timeout_s=5)
        meanwhile = [query for _, query, _, _ in service.asked]
    service.wait(3, timeout_s=5)

    assert set(meanwhile) == {"short"}
    assert "a stream" in [query for _, query, _, _ in service.asked]


def test_a_query_that_never_ends_is_let_go_of_and_counted(
    traced: Traced, service: Service, monkeypatch: pytest.MonkeyPatch
) -> None:
    from ragtrace.probes import live

    monkeypatch.setattr(live, "_MOST_OPEN_S", 0.1)
    sampler = Sampler(
        Retrievers([Retriever("dense", exact=service.exact, index_version=lambda: "1")]), 1.0, calls_per_minute=1e6
    )
    watch(sampler)
    with rt.query("endless"):
        with rt.retrieve(name="dense", mode="ann", k=2, query="endless", index_version="1") as stage:
            stage.output(IDS[:2])
        until = time.monotonic() + 5
        while sampler.n_passed_over == 0 and time.monotonic() < until:
            time.sleep(0.01)
    watch(None)

    assert sampler.stop(5)
    assert (sampler.n_passed_over, service.asked) == (1, [])


def test_two_searches_that_end_at_once_start_one_thread(traced: Traced, monkeypatch: pytest.MonkeyPatch) -> None:
    """Thread.start waits for the thread to run, and meanwhile the other request comes by."""
    service = Service()
    sampler = Sampler(
        Retrievers([Retriever("dense", exact=service.exact, index_version=lambda: "1")]), 1.0, calls_per_minute=1e6
    )
    start, begun = threading.Thread.start, []

    def slowly(thread: threading.Thread) -> None:
        if thread.name == "ragtrace-probe":
            begun.append(thread)
            time.sleep(0.2)
        start(thread)

    def init(thread: threading.Thread, *given: Any, make: Any = threading.Thread.__init__, **named: Any) -> None:
        if named.get("name") == "ragtrace-probe":
            time.sleep(0.2)
        make(thread, *given, **named)

    monkeypatch.setattr(threading.Thread, "start", slowly)
    monkeypatch.setattr(threading.Thread, "__init__", init)
    watch(sampler)
    requests = [threading.Thread(target=service.answer, args=["q"]) for _ in range(4)]
    for request in requests:
        request.start()
    for request in requests:
        request.join()
    watch(None)

    assert len(begun) == 1
    assert sampler.stop(5)


def test_a_share_of_the_queries_is_taken(traced: Traced) -> None:
    service = Service()
    sampler = Sampler(
        Retrievers([Retriever("dense", exact=service.exact, index_version=lambda: "1")]), 0.3, calls_per_minute=1e6
    )
    watch(sampler)
    for _ in range(200):
        with rt.query("q"):
            rt.retrieve(name="dense", mode="ann", k=2, index_version="1")(lambda query: IDS[:2])("q")
    watch(None)
    sampler.stop(5)

    assert 30 <= len(service.asked) + len(sampler._queue) + sampler.n_passed_over <= 90


@pytest.mark.skipif(not hasattr(os, "fork"), reason="there is no fork here")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # Python warns of a fork beside threads: that is the test
def test_a_forked_child_has_a_thread_of_its_own(traced: Traced, service: Service) -> None:
    service.answer("in the parent")
    service.wait(2)
    reader, writer = os.pipe()
    child = os.fork()
    if child == 0:
        signal.alarm(30)  # whatever it hangs on, the tests go on
        service.asked.clear()
        service.answer("in the child")
        service.wait(2)
        os.write(writer, f"{len(service.asked)} {service.asked[0][1]}".encode())
        os._exit(0)
    os.close(writer)
    os.waitpid(child, 0)

    assert os.read(reader, 100) == b"2 in the child"
    os.close(reader)


@pytest.mark.expects_internal_error
def test_trouble_in_the_sampler_never_reaches_the_service(traced: Traced) -> None:
    class Broken(Sampler):
        def _begin(self) -> None:
            super()._begin()
            self._queue = None  # type: ignore[assignment]  # that is the trouble

    watch(Broken(Retrievers([Retriever("dense", exact=Service().exact)]), 1.0, 60))
    try:
        Service().answer("q")
    finally:
        watch(None)


@pytest.mark.parametrize("wrong", [{"share": 1.5}, {"share": -0.1}, {"share": 0.1, "calls_per_minute": 0}])
def test_a_wrong_share_or_pace_says_so(wrong: dict[str, float]) -> None:
    with pytest.raises(ConfigurationError):
        rt.probe.sample(**wrong)  # type: ignore[arg-type]  # numbers by name


def test_sampling_begins_and_stops_through_the_door(traced: Traced) -> None:
    from ragtrace.recording import context

    rt.probe.sample(0.5)
    assert context.on_retrieved is not None
    assert rt.probe.stop()
    assert context.on_retrieved is None


SCRIPT = """
import sys, time
import ragtrace as rt

def exact(query, k, filter):
    time.sleep(0.1)
    return ["a", "b", "c"]

rt.probe.register("dense", exact=exact, index_version=lambda: 1)
rt.configure(sys.argv[1], merge="exit")
rt.probe.sample(1.0, calls_per_minute=1e6)
for n in range(30):
    with rt.query(f"q{n}"):
        with rt.retrieve(name="dense", k=2, query=f"q{n}", index_version=1) as stage:
            stage.output(["a", "b"])
time.sleep(0.3)
"""


def test_a_process_ends_at_once_with_what_was_asked_on_record(tmp_path: Path) -> None:
    """Three seconds of questions are waiting: none is begun any more, and no finished one is lost."""
    store = tmp_path / "traces.duckdb"
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", SCRIPT, str(store)],
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )

    assert (done.returncode, done.stderr) == (0, "")
    merge.merge(store)
    with database.connect(store, read_only=True) as connection:
        ((n, n_whole),) = connection.execute(
            "select count(*), count(*) filter (where status = 'ok') from stages where probe = 'exact'"
        ).fetchall()
        queries = connection.execute("select count(*) from queries").fetchall()
    assert queries == [(30,)]
    assert 1 <= n == n_whole < 25
