"""Threads, executors, tasks, generators, workers: each stage is its query's, or kept as nobody's and counted."""

from __future__ import annotations

import asyncio
import contextvars
import functools
import gc
import logging
import queue
import threading
import time
from collections.abc import AsyncIterator, Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace as rt
from ragtrace.recording import recorder
from ragtrace.reports import run as reports
from ragtrace.store import database, merge
from ragtrace.testing import ragtrace_store, records

__all__ = ["ragtrace_store"]


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b"]


@rt.retrieve
def stream(n: int) -> Iterator[str]:
    for number in range(n):
        yield f"c{number}"


@rt.retrieve
async def astream(n: int) -> AsyncIterator[str]:
    for number in range(n):
        await asyncio.sleep(0)
        yield f"c{number}"


def queries(store: Path) -> list[dict[str, Any]]:
    return [record.body for record in records(store) if record.kind == "query"]


def stages(store: Path, name: str | None = None) -> list[dict[str, Any]]:
    found = [dict(record.body.row) for record in records(store) if record.kind == "stage"]
    return [row for row in found if name is None or row["name"] == name]


# ------------------------------------------------------------------------------------------------ threads


def test_without_the_helper_the_report_counts_the_orphans(ragtrace_store: Path) -> None:
    """I-01"""
    with rt.query("q"), ThreadPoolExecutor(4) as pool:
        for future in [pool.submit(dense, "q") for _ in range(8)]:
            future.result()
    rt.shutdown()
    merge.merge(ragtrace_store)
    with database.connect(ragtrace_store) as connection:
        gaps = reports.run(connection, "incomplete")
        kept = connection.execute(
            "select count(*) from lists as l join stages as s using (stage_id) where s.is_orphan"
        ).fetchall()
    assert [row[:3] for row in gaps.rows if row[0] == "orphan_stages"] == [("orphan_stages", "dense", 8)]
    assert kept == [(8,)]


def test_a_task_that_starts_when_its_parents_have_ended_is_still_theirs(ragtrace_store: Path) -> None:
    """I-02: 100 of 100."""
    with ThreadPoolExecutor(1) as pool:
        gate = threading.Event()
        pool.submit(gate.wait, 20)
        expected = []
        for _ in range(100):
            with rt.query("q") as query, rt.retrieve(name="parent") as parent:
                parent.output(["x"])
                pool.submit(rt.carry(dense), "q")
            expected.append((query.id, parent.id))
        gate.set()
    found = [(row["query_id"], row["parent_stage_id"]) for row in stages(ragtrace_store, "dense")]
    assert sorted(found) == sorted(expected)
    traces = {row["query_id"]: row["trace_id"] for row in queries(ragtrace_store)}
    assert all(row["trace_id"] == traces[row["query_id"]] for row in stages(ragtrace_store, "dense"))


def test_eight_threads_of_two_hundred_stages_are_sixteen_hundred_rows(ragtrace_store: Path) -> None:
    """D-04"""

    def work() -> None:
        for _ in range(20):
            with rt.query("q"):
                for _ in range(10):
                    dense("q")

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = stages(ragtrace_store)
    assert len(found) == len({row["stage_id"] for row in found}) == 1600
    assert {row["n_stages"] for row in queries(ragtrace_store)} == {10}


def test_stages_of_one_query_may_end_in_many_threads_while_it_ends(ragtrace_store: Path) -> None:
    """The counts in the query's row are of what is not detached, whoever was faster."""
    with ThreadPoolExecutor(8) as pool:
        for _ in range(50):
            with rt.query("q"):
                for _ in range(8):
                    pool.submit(rt.carry(dense), "q")
    found = stages(ragtrace_store)
    assert len(found) == 400
    for query in queries(ragtrace_store):
        own = [row for row in found if row["query_id"] == query["query_id"]]
        assert len(own) == 8
        assert query["n_stages"] == len([row for row in own if not row.get("is_detached")])


# ------------------------------------------------------------------------------------------------ asyncio


@pytest.mark.parametrize("carries", [True, False])
def test_run_in_executor_needs_the_helper_and_to_thread_does_not(carries: bool, ragtrace_store: Path) -> None:
    async def main() -> None:
        loop = asyncio.get_running_loop()
        with rt.query("q"):
            await loop.run_in_executor(None, rt.carry(dense) if carries else dense, "q")
            await asyncio.to_thread(dense, "q")

    asyncio.run(main())
    (query,) = queries(ragtrace_store)
    in_executor, in_thread = sorted(stages(ragtrace_store), key=lambda row: row["stage_id"])
    assert in_thread["query_id"] == query["query_id"]
    assert in_executor["query_id"] == (query["query_id"] if carries else None)
    assert in_executor["is_orphan"] is not carries


def test_gathered_tasks_are_children_of_the_stage_that_gathers(ragtrace_store: Path) -> None:
    @rt.retrieve
    async def part(number: int) -> list[str]:
        await asyncio.sleep(0.001 * (5 - number))
        return [f"c{number}"]

    @rt.retrieve
    async def hybrid() -> list[str]:
        return [one for found in await asyncio.gather(*map(part, range(5))) for one in found]

    async def main() -> None:
        with rt.query("q"):
            await hybrid()

    asyncio.run(main())
    (outer,) = stages(ragtrace_store, "hybrid")
    assert [row["parent_stage_id"] for row in stages(ragtrace_store, "part")] == [outer["stage_id"]] * 5
    assert outer["parent_stage_id"] is None


def test_a_worker_started_in_a_request_is_not_its_any_more_a_minute_later(
    ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It keeps the first request's context for ever; what it then does is of no query, and has a trace of its own."""
    monkeypatch.setattr(recorder, "LATE_NS", 50_000_000)
    jobs: queue.Queue[Callable[[], object] | None] = queue.Queue()

    def work() -> None:
        while (job := jobs.get()) is not None:
            job()
            jobs.task_done()

    def ask() -> None:
        with rt.query("a job's own"):
            dense("q")

    @rt.index
    def store(chunks: list[str]) -> None:
        """The ingest side of the worker."""

    with rt.query("first"), rt.retrieve(name="first stage", aside=True) as first:
        first.output(["x"])
        worker = threading.Thread(target=contextvars.copy_context().run, args=(work,))
        worker.start()
        jobs.put(functools.partial(dense, "soon"))
        jobs.join()
    time.sleep(0.1)
    for job in (functools.partial(dense, "late"), ask, functools.partial(store, ["a"])):
        jobs.put(job)
    jobs.put(None)
    worker.join()
    own, first_query = sorted(queries(ragtrace_store), key=lambda row: row["question"])
    soon, late, asked = stages(ragtrace_store, "dense")
    assert soon["query_id"] == first_query["query_id"] and soon["is_aside"]
    assert late["is_orphan"] and late["query_id"] is None and not late["is_aside"]
    assert late["parent_stage_id"] is None and late["trace_id"] != first_query["trace_id"]
    assert asked["query_id"] == own["query_id"] and own["parent_query_id"] is None
    assert own["trace_id"] != first_query["trace_id"]
    (stored,) = stages(ragtrace_store, "store")
    assert stored["trace_id"] != first_query["trace_id"]


# ------------------------------------------------------------------------------------------------ generators


def leave_by_collection() -> None:
    steps = stream(5)
    next(steps)
    del steps
    gc.collect()


def leave_by_throw() -> None:
    steps = stream(5)
    next(steps)
    with pytest.raises(KeyError):
        steps.throw(KeyError("x"))  # type: ignore[attr-defined]


def leave_by_return() -> None:
    def first() -> str:
        for one in stream(5):
            return one
        return ""

    first()
    gc.collect()


def leave_in_another_thread() -> None:
    steps = stream(5)
    next(steps)
    thread = threading.Thread(target=steps.close)  # type: ignore[attr-defined]
    thread.start()
    thread.join()


@pytest.mark.parametrize("leave", [leave_by_collection, leave_by_throw, leave_by_return, leave_in_another_thread])
def test_a_generator_left_early_ends_once_and_leaves_nothing_current(
    leave: Callable[[], None], ragtrace_store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """I-05, I-09"""
    provider = TracerProvider()
    rt.configure(ragtrace_store, merge="off", tracer_provider=provider)
    with caplog.at_level(logging.DEBUG, "opentelemetry"), rt.query("q") as query:
        leave()
        assert rt.recording.context.current.get() is query  # type: ignore[attr-defined]
        assert trace.get_current_span() is query.span
    assert caplog.records == []
    (row,) = stages(ragtrace_store)
    assert row["status"] == ("error" if leave is leave_by_throw else "cancelled")
    provider.shutdown()


@pytest.mark.parametrize("leave", ["collected", "loop ends", "anext in tasks"])
def test_an_async_generator_left_to_the_loop_ends_once(
    leave: str, ragtrace_store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    """I-05: closed by the loop's own hooks, in a task that never saw its query."""
    provider = TracerProvider()
    rt.configure(ragtrace_store, merge="off", tracer_provider=provider)

    async def main() -> Any:
        with rt.query("q"):
            steps = astream(3)
            if leave == "anext in tasks":
                return [await asyncio.create_task(anext(steps)) for _ in range(3)]  # type: ignore[arg-type]
            await anext(steps)
            if leave == "loop ends":
                return steps
            del steps
            gc.collect()
            await asyncio.sleep(0.01)
        return None

    with caplog.at_level(logging.DEBUG, "opentelemetry"):
        kept = asyncio.run(main())
    del kept
    gc.collect()
    assert caplog.records == []
    (row,) = stages(ragtrace_store)
    assert row["status"] == "cancelled"
    assert row["query_id"] == queries(ragtrace_store)[0]["query_id"]
    provider.shutdown()


def test_a_block_open_over_a_yield_leaves_nothing_current_in_any_context(ragtrace_store: Path) -> None:
    """Each step in a fresh context, as a web server drives a streamed body."""
    exporter = InMemorySpanExporter()
    provider = TracerProvider()
    provider.add_span_processor(SimpleSpanProcessor(exporter))
    rt.configure(ragtrace_store, merge="off", tracer_provider=provider)
    tracer = provider.get_tracer("user")

    @rt.retrieve
    def body() -> Iterator[str]:
        with rt.expand(name="block") as block:
            yield "a"
            block.output(["a"])
        with tracer.start_as_current_span("user's"):
            dense("q")
        yield "b"

    with rt.query("q"):
        steps = body()
        for _ in range(3):
            contextvars.copy_context().run(next, steps, None)
    (outer,) = stages(ragtrace_store, "body")
    (inner,) = stages(ragtrace_store, "dense")
    assert inner["parent_stage_id"] == outer["stage_id"]
    spans = {span.name: span for span in exporter.get_finished_spans()}
    parent = spans["user's"].parent
    assert parent is not None and f"{parent.span_id:016x}" == outer["span_id"]
    provider.shutdown()


# ------------------------------------------------------------------------------------------------ cancellation


@pytest.mark.parametrize("error", [asyncio.CancelledError, KeyboardInterrupt, SystemExit, GeneratorExit])
def test_what_is_no_exception_is_a_cancellation_and_goes_on_as_the_same_object(
    error: type[BaseException], ragtrace_store: Path
) -> None:
    """I-08"""
    raised = error()

    @rt.retrieve
    def failing() -> Iterator[str]:
        yield "a"
        yield "b"
        raise raised

    with pytest.raises(error) as caught, rt.query("q"):
        list(failing())
    assert caught.value is raised
    (row,) = stages(ragtrace_store)
    assert row["status"] == queries(ragtrace_store)[0]["status"] == "cancelled"
    (one,) = [record.body.lists[0] for record in records(ragtrace_store) if record.kind == "stage"]
    assert one.is_partial and list(one.columns.chunk_id) == ["a", "b"]


def test_a_timeout_cancels_the_stage_and_is_the_service_s_to_handle(ragtrace_store: Path) -> None:
    seen: list[BaseException] = []

    @rt.retrieve
    async def slow(query: str) -> list[str]:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError as error:
            seen.append(error)
            raise
        return []

    @rt.query
    async def answer(question: str) -> list[str]:
        try:
            return await asyncio.wait_for(slow(question), 0.01)
        except (TimeoutError, asyncio.TimeoutError):
            return dense(question)

    assert asyncio.run(answer("q")) == ["a", "b"]
    assert len(seen) == 1
    assert queries(ragtrace_store)[0]["status"] == "ok"
    assert [row["status"] for row in stages(ragtrace_store)] == ["cancelled", "ok"]
