"""A generator is current only while its own body runs, and ends exactly once, however it is left."""

from __future__ import annotations

import asyncio
import contextvars
import gc
import logging
from collections.abc import AsyncIterator, Generator, Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

import ragtrace as rt

from .recorded import recorded


@rt.retrieve
def stream(n: int = 3) -> Iterator[str]:
    for number in range(n):
        yield f"c{number}"


@rt.retrieve
async def astream(n: int = 3) -> AsyncIterator[str]:
    for number in range(n):
        await asyncio.sleep(0)
        yield f"c{number}"


def test_all_it_yields_is_its_list(ragtrace_store: Path) -> None:
    with rt.query("q"):
        list(stream())
    assert recorded(ragtrace_store).stage("stream").ids() == ["c0", "c1", "c2"]


def test_one_that_yields_nothing_has_an_empty_list(ragtrace_store: Path) -> None:
    with rt.query("q"):
        list(stream(0))
    assert recorded(ragtrace_store).stage("stream").ids() == []


def test_one_left_early_is_cancelled_and_keeps_what_it_gave(ragtrace_store: Path) -> None:
    with rt.query("q"):
        for _ in stream():
            break
        gc.collect()
    found = recorded(ragtrace_store).stage("stream")
    assert found.row["status"] == "cancelled"
    assert found.ids() == ["c0"] and found.one("out").is_partial


def test_one_that_raises_after_two_is_an_error_with_two(ragtrace_store: Path) -> None:
    """I-09"""

    @rt.retrieve
    def failing() -> Iterator[str]:
        yield "a"
        yield "b"
        raise ValueError("no more")

    with rt.query("q"), pytest.raises(ValueError, match="no more"):
        list(failing())
    found = recorded(ragtrace_store).stage("failing")
    assert found.row["status"] == "error" and found.ids() == ["a", "b"] and found.one("out").is_partial


def test_send_throw_and_the_returned_value_pass_through(ragtrace_store: Path) -> None:
    @rt.rewrite
    def talk() -> Generator[str, Any, str]:
        got = yield "first"
        try:
            yield f"got {got}"
        except KeyError:
            yield "caught"
        return "done"

    def consume() -> Generator[str, Any, str]:
        return (yield from talk())

    with rt.query("q"):
        steps = consume()
        assert next(steps) == "first"
        assert steps.send(7) == "got 7"
        assert steps.throw(KeyError("x")) == "caught"
        with pytest.raises(StopIteration) as stop:
            next(steps)
    assert stop.value.value == "done"
    assert recorded(ragtrace_store).stage("talk").row["status"] == "ok"


def test_the_consumer_never_sees_the_generator_as_its_surroundings(ragtrace_store: Path) -> None:
    @rt.filter
    def outside() -> list[str]:
        return ["x"]

    with rt.query("q"):
        first, second = stream(), stream()
        next(first), next(second)
        outside()
        first.close()
        outside()
        second.close()
        outside()
    assert [stage.row["parent_stage_id"] for stage in recorded(ragtrace_store).all("outside")] == [None] * 3


def test_a_block_that_the_body_keeps_open_over_a_yield_stays_the_body_s(ragtrace_store: Path) -> None:
    """I-07"""

    @rt.filter
    def within() -> list[str]:
        return ["x"]

    @rt.retrieve
    def nested() -> Iterator[str]:
        with rt.expand(name="block") as block:
            yield "a"
            within()
            block.output(["a"])
        within()

    with rt.query("q"):
        for _ in nested():
            rt.filter(lambda: ["y"])()
    found = recorded(ragtrace_store)
    block, outer = found.stage("block").row["stage_id"], found.stage("nested").row["stage_id"]
    assert [stage.row["parent_stage_id"] for stage in found.all("within")] == [block, outer]
    assert found.stage("<lambda>").row["parent_stage_id"] is None


def test_the_body_s_own_context_variables_behave_as_without_us(ragtrace_store: Path) -> None:
    variable = contextvars.ContextVar("variable", default=0)

    def body() -> Iterator[str]:
        variable.set(variable.get() + 1)
        yield "a"
        variable.set(variable.get() + 1)

    seen = []
    for target in (body, rt.retrieve(body)):
        variable.set(0)
        for _ in target():
            seen.append(variable.get())
        seen.append(variable.get())
    assert seen == [1, 2, 1, 2]


@pytest.mark.parametrize("leave", ["break", "error", "aclose", "other task", "cancel"])
def test_an_async_generator_left_in_any_way_ends_once_and_without_a_log_line(
    leave: str, ragtrace_store: Path, caplog: pytest.LogCaptureFixture
) -> None:
    provider = TracerProvider()
    rt.configure(ragtrace_store, merge="off", tracer_provider=provider)

    async def main() -> None:
        with rt.query("q"):
            steps = astream(10)
            await steps.__anext__()
            if leave == "break":
                async for _ in steps:
                    break
                await steps.aclose()  # type: ignore[attr-defined]
            elif leave == "error":
                with pytest.raises(ValueError, match="in the loop"):  # noqa: PT012  # the loop is what raises
                    async for _ in steps:
                        raise ValueError("in the loop")
                await steps.aclose()  # type: ignore[attr-defined]
            elif leave == "aclose":
                await steps.aclose()  # type: ignore[attr-defined]
            elif leave == "other task":
                await asyncio.create_task(steps.aclose())  # type: ignore[attr-defined]
            else:

                async def drain() -> None:
                    async for _ in steps:
                        await asyncio.sleep(10)

                task = asyncio.create_task(drain())
                await asyncio.sleep(0.01)
                task.cancel()
                with pytest.raises(asyncio.CancelledError):
                    await task
                await steps.aclose()  # type: ignore[attr-defined]
            assert trace.get_current_span().get_span_context().span_id != 0

    with caplog.at_level(logging.DEBUG):
        asyncio.run(main())
    assert not [record for record in caplog.records if record.name.startswith("opentelemetry")]
    found = recorded(ragtrace_store).stage("astream")
    assert found.row["status"] == "cancelled"
    provider.shutdown()


def test_a_generator_driven_with_a_fresh_context_at_each_step_still_works(ragtrace_store: Path) -> None:
    """As web servers do that run each `next` in a pool."""
    with rt.query("q"):
        steps = stream()
        got = [contextvars.copy_context().run(next, steps, None) for _ in range(4)]
    assert got == ["c0", "c1", "c2", None]
    found = recorded(ragtrace_store)
    assert found.stage("stream").ids() == ["c0", "c1", "c2"]
    assert found.stage("stream").row["query_id"] == found.query()["query_id"]
