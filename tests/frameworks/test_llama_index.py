"""LlamaIndex, instrumented."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.base.base_retriever import BaseRetriever
from llama_index.core.base.llms.base import BaseLLM
from llama_index.core.node_parser import NodeParser, SentenceWindowNodeParser
from llama_index.core.postprocessor import MetadataReplacementPostProcessor
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.readers.base import BaseReader
from llama_index.core.schema import Document, NodeWithScore

import ragtrace as rt
from ragtrace.integrations.patching import family
from tests.frameworks import planted
from tests.frameworks.llama_service import engine
from tests.frameworks.planted import SLOW, ByHand, Parts
from tests.traced import Traced


@pytest.fixture
def _instrumented() -> Iterator[None]:
    rt.instrument("llama_index")
    yield
    rt.uninstrument("llama_index")


def by_hand() -> None:
    parts = ByHand()
    answer = engine(parts)
    for question in planted.QUESTIONS.values():
        with parts.query(question):
            assert str(answer(question))


@pytest.fixture(scope="module")
def expected(tmp_path_factory: pytest.TempPathFactory) -> dict[str, planted.Row]:
    """The verdicts of the decorated pipeline."""
    return planted.verdicts(tmp_path_factory.mktemp("hand"), by_hand)


def test_each_planted_loss_is_where_it_was_planted(expected: dict[str, planted.Row]) -> None:
    assert planted.places(expected) == planted.LOST


WAYS: dict[str, Callable[[Any, str], Any]] = {
    "query": lambda engine, question: engine.query(question),
    "aquery": lambda engine, question: asyncio.run(engine.aquery(question)),
}


@pytest.mark.parametrize("way", [pytest.param("query", marks=SLOW), "aquery"])
@pytest.mark.usefixtures("_instrumented")
def test_one_call_gives_the_verdicts_of_decorators(way: str, expected: dict[str, planted.Row], tmp_path: Path) -> None:
    def service() -> None:
        answering = engine(Parts())
        for question in planted.QUESTIONS.values():
            assert str(WAYS[way](answering, question))

    assert planted.verdicts(tmp_path, service) == expected


@pytest.mark.usefixtures("_instrumented")
def test_a_window_put_in_a_sentences_place_is_gained_where_it_lies(traced: Traced) -> None:
    text = "One is here. Two is there. Three is nowhere. Four is gone."
    splitter = SentenceWindowNodeParser.from_defaults(
        window_size=1, sentence_splitter=lambda whole: [f"{line}. " for line in whole.rstrip(".").split(". ")]
    )
    nodes = splitter.get_nodes_from_documents([Document(text=text, metadata={"source": "a.md"})])

    class Found(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            return [NodeWithScore(node=nodes[1], score=0.5)]

    with rt.query("q"):
        found = Found().retrieve("q")
        MetadataReplacementPostProcessor("window").postprocess_nodes(found, query_str="q")
    traced.judge([{"question_id": "q", "question": "q", "gold": [{"doc_id": "a.md", "quote": "Three is nowhere."}]}])
    (row,) = traced.rows("select verdict, candidate_coverage, final_coverage from stage_loss")
    assert row == {"verdict": "kept", "candidate_coverage": 0.0, "final_coverage": 1.0}


@pytest.mark.usefixtures("_instrumented")
def test_what_a_retriever_raises_or_a_task_ends_reaches_the_caller(traced: Traced) -> None:
    error = ValueError("no such index")

    class Broken(BaseRetriever):
        def _retrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            raise error

        async def _aretrieve(self, query_bundle: Any) -> list[NodeWithScore]:
            await asyncio.sleep(60)
            return []

    async def cancel() -> None:
        with rt.query("q"):
            task = asyncio.create_task(Broken().aretrieve("q"))
            await asyncio.sleep(0.01)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task

    with pytest.raises(ValueError, match="no such index") as raised, rt.query("q"):
        Broken().retrieve("q")
    assert raised.value is error
    asyncio.run(cancel())
    traced.merge()
    assert [row["status"] for row in traced.rows("select status from stages order by status")] == ["cancelled", "error"]


def test_uninstrument_leaves_the_classes_as_they_were() -> None:
    roots = (BaseRetriever, BaseNodePostprocessor, NodeParser, BaseQueryEngine, BaseLLM, BaseReader)

    def seen() -> dict[type, dict[str, Any]]:
        return {
            kind: {name: value for name, value in vars(kind).items() if not name.startswith("_abc")}
            for root in roots
            for kind in family(root)
        }

    before = seen()
    rt.instrument("llama_index")
    assert seen()[BaseRetriever] != before[BaseRetriever]
    rt.uninstrument("llama_index")
    after = seen()
    assert {kind: after[kind] for kind in before} == before
