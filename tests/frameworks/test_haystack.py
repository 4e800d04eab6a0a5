"""Haystack, instrumented."""

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from haystack import Document, Pipeline, component
from haystack.core.component.component import ComponentMeta
from haystack.core.pipeline.base import PipelineBase

import ragtrace as rt
from tests.frameworks import planted
from tests.frameworks.haystack_service import answering
from tests.frameworks.planted import SLOW, ByHand, Parts
from tests.traced import Traced


@pytest.fixture
def _instrumented() -> Iterator[None]:
    rt.instrument("haystack")
    yield
    rt.uninstrument("haystack")


def by_hand() -> None:
    parts = ByHand()
    answer = answering(parts)
    for question in planted.QUESTIONS.values():
        with parts.query(question):
            assert answer(question) == "So it is."


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, planted.Row]:
    """The verdicts of the decorated pipeline."""
    return planted.verdicts(tmp_path_factory.mktemp("hand"), by_hand)


def test_each_planted_loss_is_where_it_was_planted(expected: dict[str, planted.Row]) -> None:
    assert planted.places(expected) == {**planted.LOST, "packing": ("lost", "truncate", "in")}


def given(question: str) -> dict[str, Any]:
    return {"embed": {"text": question}, "rank": {"query": question}, "build": {"query": question}}


WAYS: dict[str, Callable[[Any, str], Any]] = {
    "run": lambda pipeline, question: pipeline.run(given(question)),
    "run_async": lambda pipeline, question: asyncio.run(pipeline.run_async(given(question))),
}


@pytest.mark.parametrize("way", [pytest.param("run", marks=SLOW), "run_async"])
@pytest.mark.usefixtures("_instrumented")
def test_one_call_gives_the_verdicts_of_decorators(way: str, expected: dict[str, planted.Row], tmp_path: Path) -> None:
    if not hasattr(Pipeline, way):
        pytest.skip("this version's Pipeline has no asynchronous run")

    def service() -> None:
        pipeline = answering(Parts())
        for question in planted.QUESTIONS.values():
            assert WAYS[way](pipeline, question)["say"]["replies"] == ["So it is."]

    assert planted.verdicts(tmp_path, service) == expected


@component
class Broken:
    """Raises, or waits."""

    @component.output_types(documents=list[Document])
    def run(self, query: str) -> dict[str, Any]:
        raise ValueError("no such index")

    @component.output_types(documents=list[Document])
    async def run_async(self, query: str) -> dict[str, Any]:
        await asyncio.sleep(60)
        return {"documents": []}


@pytest.mark.usefixtures("_instrumented")
def test_what_a_component_raises_or_a_task_ends_reaches_the_caller(traced: Traced) -> None:
    async def cancel() -> None:
        with rt.query("q"):
            task = asyncio.create_task(Broken().run_async("q"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with pytest.raises(ValueError, match="no such index"), rt.query("q"):
        Broken().run("q")
    asyncio.run(cancel())
    traced.merge()
    rows = traced.rows("select kind, status from stages order by status")
    assert [tuple(row.values()) for row in rows] == [("retrieve", "cancelled"), ("retrieve", "error")]


def test_uninstrument_leaves_the_classes_as_they_were() -> None:
    def seen() -> dict[type, dict[str, Any]]:
        kinds = [ComponentMeta, PipelineBase, Pipeline, *component.registry.values()]
        return {kind: {n: v for n, v in vars(kind).items() if not n.startswith("_abc")} for kind in kinds}

    before = seen()
    rt.instrument("haystack")
    Broken()
    assert seen() != before
    rt.uninstrument("haystack")
    assert seen() == before
