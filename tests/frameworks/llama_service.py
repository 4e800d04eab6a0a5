"""A LlamaIndex service with every kind of loss, written once; the ways of recording are put around its parts."""

from __future__ import annotations

from typing import Any

from llama_index.core import Document, VectorStoreIndex, get_response_synthesizer
from llama_index.core.base.base_query_engine import BaseQueryEngine
from llama_index.core.embeddings import BaseEmbedding
from llama_index.core.llms import MockLLM
from llama_index.core.node_parser.interface import TextSplitter
from llama_index.core.postprocessor.types import BaseNodePostprocessor
from llama_index.core.query_engine import RetrieverQueryEngine
from llama_index.core.readers.base import BaseReader
from llama_index.core.retrievers import QueryFusionRetriever
from llama_index.core.schema import NodeWithScore, QueryBundle

import ragtrace as rt
from tests.frameworks import planted
from tests.frameworks.planted import ByHand, Parts


class Vectors(BaseEmbedding):
    """Words counted."""

    def _get_query_embedding(self, query: str) -> list[float]:
        return planted.vector(query)

    async def _aget_query_embedding(self, query: str) -> list[float]:
        return planted.vector(query)

    def _get_text_embedding(self, text: str) -> list[float]:
        return planted.vector(text)


class Reader(BaseReader):
    """Reads the document without its second sentence."""

    def load_data(self) -> list[Document]:  # type: ignore[override]
        return [Document(text=planted.TEXT, id_=planted.DOC_ID, metadata={"source": planted.DOC_ID})]


class Lines(TextSplitter):
    """A line a node, but for the one on cutting."""

    def split_text(self, text: str) -> list[str]:
        return [line for line in text.split("\n") if "cutting" not in line]


def numbered(number: int, document: Any) -> str:
    """Ids that order equal scores the same way each time."""
    return f"line-{number:02}"


class Fusion(QueryFusionRetriever):
    """Leaves the passage on fusing out."""

    def _reciprocal_rerank_fusion(self, results: Any) -> list[NodeWithScore]:
        return [one for one in super()._reciprocal_rerank_fusion(results) if "fusing" not in one.text]


class SieveFilter(BaseNodePostprocessor):
    """Leaves the passage on sieving out."""

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return [one for one in nodes if "sieving" not in one.text]


class WordRerank(BaseNodePostprocessor):
    """Words in common, nothing for the passage on ranking; the best two."""

    top_n: int = 2

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        asked = set(query_bundle.query_str.split())
        for one in nodes:
            one.score = 0.0 if "ranking" in one.text else 1.0 + len(asked & set(one.text.split()))
        return sorted(nodes, key=lambda one: -(one.score or 0))[: self.top_n]


class Pruner(BaseNodePostprocessor):
    """Takes the passage on pruning out of what it is given."""

    def _postprocess_nodes(self, nodes: list[NodeWithScore], query_bundle: Any = None) -> list[NodeWithScore]:
        return [one for one in nodes if "pruning" not in one.text]


class Engine(RetrieverQueryEngine):
    """Loses the passage on packing between its parts."""

    def _apply_node_postprocessors(self, nodes: list[NodeWithScore], query_bundle: QueryBundle) -> list[NodeWithScore]:
        found = super()._apply_node_postprocessors(nodes, query_bundle)
        return [one for one in found if "packing" not in one.text]

    async def _async_apply_node_postprocessors(
        self, nodes: list[NodeWithScore], query_bundle: QueryBundle
    ) -> list[NodeWithScore]:
        found = await super()._async_apply_node_postprocessors(nodes, query_bundle)
        return [one for one in found if "packing" not in one.text]


def engine(parts: Parts) -> BaseQueryEngine | Any:
    """The ingest side run, and what answers."""
    with parts.document():
        loaded = parts.wrap("parse", "Reader", Reader().load_data)()
        nodes = parts.wrap("chunk", "Lines", Lines(id_func=numbered).get_nodes_from_documents)(loaded)
        kept = [node for node in nodes if "writing" not in node.text]
        index = VectorStoreIndex(nodes=[], embed_model=Vectors(model_name="words"))
        parts.wrap("index", "SimpleVectorStore", index.insert_nodes, index="SimpleVectorStore")(kept)
    rt.inventory(index="SimpleVectorStore", chunk_ids=[node.node_id for node in kept])
    model = MockLLM(max_tokens=3)
    near, wide = index.as_retriever(similarity_top_k=2), index.as_retriever(similarity_top_k=3)
    fusion = Fusion(
        [near, wide], llm=model, num_queries=1, mode="reciprocal_rerank", use_async=False, similarity_top_k=9
    )
    synthesizer = get_response_synthesizer(llm=model)
    steps: list[Any] = [SieveFilter(), WordRerank(), Pruner()]
    if not isinstance(parts, ByHand):
        return Engine(fusion, synthesizer, steps)

    def search(k: int, retriever: Any) -> Any:
        name = "VectorIndexRetriever"
        return parts.wrap("retrieve", name, retriever.retrieve, k=k, mode="exact", index="SimpleVectorStore")

    def joined(lists: list[Any]) -> Any:
        return fusion._reciprocal_rerank_fusion({("q", number): one for number, one in enumerate(lists)})

    first, second, join = search(2, near), search(3, wide), parts.wrap("fuse", "Fusion", joined, k=9)

    def step(kind: str, thing: Any, **values: Any) -> Any:
        def run(nodes: Any, query: str) -> Any:
            return thing.postprocess_nodes(nodes, query_str=query)

        return parts.wrap(kind, type(thing).__name__, run, **values)

    sieve, rank, prune = step("filter", steps[0]), step("rerank", steps[1], k=2), step("compress", steps[2])
    say = parts.wrap("generate", "CompactAndRefine", synthesizer.synthesize)

    def answer(question: str) -> Any:
        found = join([first(question), second(question)])
        found = prune(rank(sieve(found, question), question), question)
        return say(question, [one for one in found if "packing" not in one.text])

    return answer
