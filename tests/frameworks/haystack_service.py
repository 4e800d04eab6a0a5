"""A Haystack service with every kind of loss, written once; the ways of recording are put around its parts."""

from typing import Any

from haystack import Document, Pipeline, component
from haystack.components.builders import PromptBuilder
from haystack.components.joiners import DocumentJoiner
from haystack.components.retrievers.in_memory import InMemoryEmbeddingRetriever
from haystack.components.writers import DocumentWriter
from haystack.core.component.types import Variadic
from haystack.document_stores.in_memory import InMemoryDocumentStore

import ragtrace as rt
from tests.frameworks import planted
from tests.frameworks.planted import ByHand, Parts


@component
class TextConverter:
    """Reads the document without its second sentence."""

    @component.output_types(documents=list[Document])
    def run(self, sources: list[str]) -> dict[str, Any]:
        return {
            "documents": [Document(id=source, content=planted.TEXT, meta={"file_path": source}) for source in sources]
        }


@component
class LineSplitter:
    """A line a document, but for the one on cutting."""

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        found, at = [], 0
        for line in (documents[0].content or "").split("\n"):
            meta = {**documents[0].meta, "source_id": documents[0].id, "split_idx_start": at}
            at += len(line) + 1
            if "cutting" not in line:
                found.append(Document(content=line, meta=meta, embedding=planted.vector(line)))
        return {"documents": found}


@component
class WordEmbedder:
    """Words counted."""

    @component.output_types(embedding=list[float])
    def run(self, text: str) -> dict[str, Any]:
        return {"embedding": planted.vector(text)}


@component
class FusingJoiner(DocumentJoiner):
    """Leaves the passage on fusing out."""

    @component.output_types(documents=list[Document])
    def run(self, documents: Variadic[list[Document]], top_k: int | None = None) -> dict[str, Any]:
        found = DocumentJoiner.run(self, documents, top_k)["documents"]
        return {"documents": [one for one in found if "fusing" not in (one.content or "")]}


@component
class Sieve:
    """Leaves the passages with a word out."""

    def __init__(self, word: str) -> None:
        self.word = word

    @component.output_types(documents=list[Document])
    def run(self, documents: list[Document]) -> dict[str, Any]:
        return {"documents": [one for one in documents if self.word not in (one.content or "")]}


@component
class SieveFilter(Sieve):
    """The same, as a filter by its name."""


@component
class WordRanker:
    """Words in common, nothing for the passage on ranking; the best two."""

    def __init__(self, top_k: int = 2) -> None:
        self.top_k = top_k

    @component.output_types(documents=list[Document])
    def run(self, query: str, documents: list[Document]) -> dict[str, Any]:
        def score(one: Document) -> float:
            words = (one.content or "").split()
            return 0.0 if "ranking" in words else 1.0 + len(set(query.split()) & set(words))

        return {"documents": sorted(documents, key=score, reverse=True)[: self.top_k]}


@component
class EchoGenerator:
    """Says the same each time."""

    @component.output_types(replies=list[str])
    def run(self, prompt: str) -> dict[str, Any]:
        return {"replies": ["So it is."]}


@component
class Skip(Sieve):
    """What is not written."""


STORE = "InMemoryDocumentStore"
TEMPLATE = (
    "{% for one in documents if 'packing' not in one.content %}{{ one.content }}\n\n{% endfor %}Question: {{ query }}"
)


def answering(parts: Parts) -> Any:
    """The ingest side run, and what answers a question."""
    store = InMemoryDocumentStore()
    kept = Sieve("writing")
    with parts.document():
        if isinstance(parts, ByHand):
            loaded = parts.wrap("parse", "convert", lambda: TextConverter().run([planted.DOC_ID])["documents"])()
            pieces = parts.wrap("chunk", "split", lambda documents: LineSplitter().run(documents)["documents"])(loaded)
            pieces = kept.run(pieces)["documents"]
            write = parts.wrap("index", "write", store.write_documents, index=STORE)
            write(pieces)
        else:
            indexing = Pipeline()
            for name, part in (
                ("convert", TextConverter()),
                ("split", LineSplitter()),
                ("write", DocumentWriter(store)),
            ):
                indexing.add_component(name, part)
            indexing.add_component("skip", Skip("writing"))
            for one, other in (("convert", "split"), ("split", "skip"), ("skip", "write")):
                indexing.connect(one, other)
            indexing.run({"convert": {"sources": [planted.DOC_ID]}})
    rt.inventory(index=STORE, chunk_ids=[one.id for one in store.filter_documents()])
    near, wide = (InMemoryEmbeddingRetriever(store, top_k=k) for k in (2, 5))
    steps: list[Any] = [SieveFilter("sieving"), WordRanker(), Sieve("pruning")]
    builder, model = PromptBuilder(TEMPLATE, required_variables="*"), EchoGenerator()
    joiner = FusingJoiner(join_mode="reciprocal_rank_fusion")
    if isinstance(parts, ByHand):
        return by_hand(parts, near, wide, joiner, steps, builder, model)
    pipeline = Pipeline()
    named = {"embed": WordEmbedder(), "near": near, "wide": wide, "join": joiner, "sieve": steps[0], "rank": steps[1]}
    for name, part in {**named, "prune": steps[2], "build": builder, "say": model}.items():
        pipeline.add_component(name, part)
    for one, other in (
        ("embed.embedding", "near.query_embedding"), ("embed.embedding", "wide.query_embedding"), ("near", "join"),
        ("wide", "join"), ("join", "sieve"), ("sieve", "rank.documents"), ("rank", "prune"), ("prune", "build.documents"),
        ("build", "say"),
    ):  # fmt: skip
        pipeline.connect(one, other)
    return pipeline


def by_hand(parts: Parts, near: Any, wide: Any, joiner: Any, steps: list[Any], builder: Any, model: Any) -> Any:
    """The same parts in the same order, each in a decorated function."""

    def search(name: str, retriever: Any) -> Any:
        def run(vector: list[float]) -> Any:
            return retriever.run(query_embedding=vector)["documents"]

        return parts.wrap("retrieve", name, run, k=retriever.top_k, mode="exact", index=STORE)

    first, second = search("near", near), search("wide", wide)
    join = parts.wrap("fuse", "join", lambda lists: joiner.run(lists)["documents"])
    sieve = parts.wrap("filter", "sieve", lambda documents: steps[0].run(documents)["documents"])
    rank = parts.wrap("rerank", "rank", lambda query, documents: steps[1].run(query, documents)["documents"], k=2)
    prune = parts.wrap("compress", "prune", lambda documents: steps[2].run(documents)["documents"])
    build = parts.wrap(
        "truncate", "build", lambda query, documents: builder.run(query=query, documents=documents)["prompt"]
    )
    say = parts.wrap("generate", "say", lambda prompt: model.run(prompt)["replies"][0])

    def answer(question: str) -> Any:
        vector = planted.vector(question)
        return say(build(question, prune(rank(question, sieve(join([first(vector), second(vector)]))))))

    return answer
