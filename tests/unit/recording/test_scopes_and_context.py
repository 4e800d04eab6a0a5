"""Which query a stage belongs to, over threads, tasks, nesting, and after the end."""

from __future__ import annotations

import asyncio
import contextvars
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import clock
from ragtrace.errors import ConfigurationError
from ragtrace.recording import recorder
from ragtrace.testing import records

from .recorded import recorded


@rt.retrieve
def dense(query: str) -> list[str]:
    return ["a", "b"]


def test_pool_threads_that_are_given_the_context_belong_to_the_query(ragtrace_store: Path) -> None:
    """I-01"""
    with rt.query("q"), rt.retrieve(name="hybrid") as hybrid, ThreadPoolExecutor(4) as pool:
        list(pool.map(rt.carry(dense), ["q"] * 8))
        hybrid.output(["a"])
    found = recorded(ragtrace_store)
    parent = found.stage("hybrid").row["stage_id"]
    assert [stage.row["parent_stage_id"] for stage in found.all("dense")] == [parent] * 8
    assert {stage.row["trace_id"] for stage in found.stages} == {found.query()["trace_id"]}


def test_pool_threads_without_it_are_kept_as_orphans(ragtrace_store: Path) -> None:
    with rt.query("q"), ThreadPoolExecutor(2) as pool:
        pool.submit(dense, "q").result()
    row = recorded(ragtrace_store).stage("dense").row
    assert row["is_orphan"] and row["query_id"] is None


def test_a_task_that_starts_after_the_query_s_end_is_detached_and_still_its(ragtrace_store: Path) -> None:
    """I-02, I-10"""

    async def late() -> None:
        await asyncio.sleep(0.01)
        dense("q")

    async def main() -> None:
        with rt.query("q"):
            task = asyncio.create_task(late())
        await task

    asyncio.run(main())
    found = recorded(ragtrace_store)
    row = found.stage("dense").row
    assert row["is_detached"] and row["query_id"] == found.query()["query_id"]


def test_a_stage_that_ends_after_its_query_is_kept(ragtrace_store: Path) -> None:
    async def slow() -> None:
        with rt.generate(name="stream"):
            await asyncio.sleep(0.02)

    async def main() -> None:
        with rt.query("q"):
            task = asyncio.create_task(slow())
            await asyncio.sleep(0)
        await task

    asyncio.run(main())
    assert recorded(ragtrace_store).stage("stream").row["is_detached"]


def test_a_worker_that_keeps_an_old_request_s_context_does_not_add_to_it(
    ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with rt.query("q"):
        old = contextvars.copy_context()
    monkeypatch.setattr(recorder, "LATE_NS", 0)
    old.run(dense, "q")
    row = recorded(ragtrace_store).stage("dense").row
    assert row["is_orphan"] and row["query_id"] is None


def test_two_hundred_tasks_keep_apart(ragtrace_store: Path) -> None:
    @rt.query
    async def ask(question: str) -> None:
        await asyncio.sleep(0)
        with rt.rerank(name=question) as stage:
            await asyncio.sleep(0)
            stage.output([question])

    async def main() -> None:
        await asyncio.gather(*(ask(f"q{number}") for number in range(200)))

    asyncio.run(main())
    found = recorded(ragtrace_store)
    asked = {row["query_id"]: row["question"] for row in found.rows("query")}
    assert len(asked) == 200
    assert all(asked[stage.row["query_id"]] == stage.row["name"] for stage in found.stages)


def test_a_query_may_be_entered_in_one_context_and_left_in_another(ragtrace_store: Path) -> None:
    """As test fixtures and web frameworks do."""
    block = rt.query("q")
    contextvars.copy_context().run(block.__enter__)
    block.__exit__(None, None, None)
    assert recorded(ragtrace_store).query()["status"] == "ok"


def test_one_stage_object_serves_nested_and_parallel_blocks(ragtrace_store: Path) -> None:
    ready = threading.Barrier(4)

    def work() -> None:
        with rt.query("q"), rt.expand as outer:
            ready.wait()
            with rt.expand as inner:
                inner.output(["x"])
            outer.output(["y"])

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    found = recorded(ragtrace_store)
    outer = {stage.row["stage_id"]: stage for stage in found.stages if stage.ids() == ["y"]}
    inner = [stage for stage in found.stages if stage.ids() == ["x"]]
    assert len(outer) == len(inner) == 4
    assert all(outer[stage.row["parent_stage_id"]].row["query_id"] == stage.row["query_id"] for stage in inner)


def test_a_query_inside_a_query_is_its_child_and_a_round_is_not(ragtrace_store: Path) -> None:
    with rt.query("outer", session="s1"):
        with rt.query("inner"):
            dense("q")
        with rt.query("again", round=2):
            dense("q")
    found = recorded(ragtrace_store)
    inner, outer = found.rows("query")
    assert inner["parent_query_id"] == outer["query_id"] and inner["session_id"] == "s1"
    first, second = found.all("dense")
    assert first.row["query_id"] == inner["query_id"] and first.row.get("round") is None
    assert second.row["query_id"] == outer["query_id"] and second.row["round"] == 2


def test_a_decorated_function_s_question_ids_and_session_are_read_from_its_call(ragtrace_store: Path) -> None:
    @rt.query
    def answer(user: str, question: str, question_id: str, session_id: int) -> str:
        return "so"

    answer("ann", "why?", question_id="q-1", session_id=7)
    row = recorded(ragtrace_store).query()
    assert (row["question"], row["question_id"], row["session_id"]) == ("why?", "q-1", "7")


def test_a_streamed_answer_keeps_its_query_open_while_its_body_runs_only(ragtrace_store: Path) -> None:
    @rt.query
    def stream(question: str) -> Any:
        dense(question)
        yield "a"
        dense(question)
        yield "b"

    for _ in stream("why?"):
        dense("outside")
    found = recorded(ragtrace_store)
    assert [stage.row["is_orphan"] for stage in found.all("dense")] == [False, True, False, True] or (
        sorted(stage.row["is_orphan"] for stage in found.all("dense")) == [False, False, True, True]
    )
    assert found.query()["n_stages"] == 2


def test_parents_and_cache_hits_are_named_by_query_or_id(ragtrace_store: Path) -> None:
    with rt.query("first") as first:
        pass
    with rt.query("second", parent=first, served_from=first.id):
        pass
    second = recorded(ragtrace_store).rows("query")[1]
    assert second["parent_query_id"] == second["served_from_query_id"] == first.id


def test_a_cancelled_query_is_cancelled_and_the_same_exception_goes_on(ragtrace_store: Path) -> None:
    caught: list[BaseException] = []

    @rt.retrieve
    async def slow(query: str) -> list[str]:
        await asyncio.sleep(10)
        return []

    @rt.query
    async def ask(question: str) -> None:
        try:
            await slow(question)
        except asyncio.CancelledError as error:
            caught.append(error)
            raise

    async def main() -> None:
        task = asyncio.create_task(ask("q"))
        await asyncio.sleep(0.01)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(main())
    found = recorded(ragtrace_store)
    assert found.query()["status"] == found.stage("slow").row["status"] == "cancelled"
    assert len(caught) == 1


def test_order_and_durations_survive_a_clock_that_goes_back(
    ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-31"""
    with rt.query("q"):
        dense("q")
        now = clock.wall_ns()
        monkeypatch.setattr(clock, "wall_ns", lambda: now - 3_600_000_000_000)
        dense("q")
    first, second = recorded(ragtrace_store).stages
    assert first.row["started_at_ns"] > second.row["started_at_ns"]
    assert first.row["start_no"] < first.row["end_no"] < second.row["start_no"] < second.row["end_no"]
    assert second.row["duration_ns"] >= 0


def test_aside_runs_hand_it_down(ragtrace_store: Path) -> None:
    with rt.query("q"), rt.retrieve(name="panel", aside=True) as panel:
        dense("q")
        panel.output(["x"])
    assert recorded(ragtrace_store).stage("dense").row["is_aside"]


def test_long_queries_are_written_before_they_end(ragtrace_store: Path) -> None:
    @rt.retrieve
    def many(query: str) -> list[str]:
        return [f"chunk-{number}" for number in range(10_000)]

    with rt.query("q"):
        many("q")
        early = recorded(ragtrace_store)
        assert [stage.row["name"] for stage in early.stages] == ["many"] and not early.rows("query")
    assert recorded(ragtrace_store).query()["n_candidates"] == 10_000


def test_stages_of_a_query_that_takes_its_time_are_written_as_they_end(ragtrace_store: Path) -> None:
    """What hangs next may be killed; no thread of ours has to be there to see it coming."""
    threads = threading.active_count()
    with rt.query("q"):
        time.sleep(0.011)
        dense("q")
        assert [record.kind for record in records(ragtrace_store)][1:] == ["stage"]
        assert threading.active_count() == threads
    assert recorded(ragtrace_store).query()["n_stages"] == 1


def test_a_declared_context_is_compared_and_carried_ones_are_marked(ragtrace_store: Path) -> None:
    with rt.query("q"):
        found = dense("q")
        rt.context(found, carried=[{"id": "old", "text": "said before"}])
    seen = recorded(ragtrace_store)
    given, carried = seen.contexts()
    assert list(given.same_as) == [seen.stage("dense").one("out").list_id]
    assert carried.argument == "carried" and carried.columns is not None and carried.columns.chunk_id == ["old"]


def test_a_context_outside_every_query_is_counted(ragtrace_store: Path) -> None:
    rt.context(["a"])
    assert [row["reason"] for row in recorded(ragtrace_store).rows("loss")] == ["context_outside_query"]


def test_inventories_are_written_whole(ragtrace_store: Path) -> None:
    rt.inventory(index="main", chunk_ids=["a", 7])
    rt.inventory(doc_ids=[])
    chunks, docs = recorded(ragtrace_store).rows("inventory")
    assert (chunks["index_name"], chunks["chunk_ids"]) == ("main", ["a", "7"])
    assert docs["doc_ids"] == [] and docs["index_name"] is None


@pytest.mark.parametrize("arguments", [{}, {"chunk_ids": [], "doc_ids": []}])
def test_an_inventory_is_of_one_layer(arguments: dict[str, Any]) -> None:
    with pytest.raises(ConfigurationError):
        rt.inventory(**arguments)


@pytest.mark.parametrize("call", [lambda: rt.query(7), lambda: rt.query("q", round="x"), lambda: rt.document([1]),
                                  lambda: rt.query("q", parent="p")])  # fmt: skip
def test_wrong_types_are_refused(call: Any) -> None:
    with pytest.raises(ConfigurationError):
        call()


def test_the_query_is_let_go_when_it_ends(ragtrace_store: Path) -> None:
    import gc
    import weakref

    class Text(str):
        pass

    gc.collect()
    gc.disable()
    try:
        with rt.query("q"):
            text = Text("a passage " * 50)
            reference = weakref.ref(text)
            with rt.retrieve(name="r") as stage:
                stage.output([{"id": "a", "text": text}])
            del text, stage
        assert reference() is None
    finally:
        gc.enable()


def test_a_query_row_says_any_text_as_it_was(ragtrace_store: Path) -> None:
    """It is written as JSON by hand: quotes, line ends, control characters and other planes come back the same."""
    question = 'why "so"?\n\\ \x00 \x1f \u2028 \U0001f600 é'
    with rt.query(question, question_id='q"1', session="s\\2"):
        pass
    row = recorded(ragtrace_store).query()
    assert (row["question"], row["question_id"], row["session_id"]) == (question, 'q"1', "s\\2")
    assert (row["status"], row["error_message"], row["n_stages"], row["parent_query_id"]) == ("ok", None, 0, None)
