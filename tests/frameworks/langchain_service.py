"""A LangChain service with every kind of loss, written once; the ways of recording are put around its parts."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

from langchain_classic.retrievers import ContextualCompressionRetriever, EnsembleRetriever
from langchain_classic.retrievers.document_compressors import CrossEncoderReranker, DocumentCompressorPipeline
from langchain_core.cross_encoders import BaseCrossEncoder
from langchain_core.document_loaders import BaseLoader
from langchain_core.documents import BaseDocumentCompressor, Document
from langchain_core.embeddings import Embeddings
from langchain_core.language_models import FakeListChatModel
from langchain_core.output_parsers import StrOutputParser
from langchain_core.prompts import ChatPromptTemplate
from langchain_core.runnables import RunnableLambda, RunnablePassthrough
from langchain_core.vectorstores import InMemoryVectorStore
from langchain_text_splitters import CharacterTextSplitter

import ragtrace as rt
from tests.frameworks import planted
from tests.frameworks.planted import ByHand, Parts


class Vectors(Embeddings):
    """Words counted."""

    def embed_query(self, text: str) -> list[float]:
        return planted.vector(text)

    def embed_documents(self, texts: list[str]) -> list[list[float]]:
        return [planted.vector(text) for text in texts]


class Loader(BaseLoader):
    """Reads the document without its second sentence."""

    def lazy_load(self) -> Iterator[Document]:
        yield Document(page_content=planted.TEXT, metadata={"source": planted.DOC_ID})


class Lines(CharacterTextSplitter):
    """A line a chunk, but for the one on cutting."""

    def split_text(self, text: str) -> list[str]:
        return [line for line in super().split_text(text) if "cutting" not in line]


class Fusion(EnsembleRetriever):
    """Leaves the passage on fusing out."""

    def weighted_reciprocal_rank(self, doc_lists: list[list[Document]]) -> list[Document]:
        return [one for one in super().weighted_reciprocal_rank(doc_lists) if "fusing" not in one.page_content]


class SieveFilter(BaseDocumentCompressor):
    """Leaves the passage on sieving out."""

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        return [one for one in documents if "sieving" not in one.page_content]


class Pruner(BaseDocumentCompressor):
    """Takes the passage on pruning out of what it is given."""

    def compress_documents(self, documents: Sequence[Document], query: str, callbacks: Any = None) -> list[Document]:
        return [one for one in documents if "pruning" not in one.page_content]


class Scorer(BaseCrossEncoder):
    """Words in common; nothing for the passage on ranking."""

    def score(self, text_pairs: list[tuple[str, str]]) -> list[float]:
        return [
            0.0 if "ranking" in text else 1.0 + len(set(query.split()) & set(text.split()))
            for query, text in text_pairs
        ]


def chain(parts: Parts) -> Any:
    """The ingest side run, and the chain that answers."""
    store = InMemoryVectorStore(Vectors())
    with parts.document():
        loaded = parts.wrap("parse", "Loader", Loader().load)()
        splitter = Lines(separator="\n", chunk_size=50, chunk_overlap=0, keep_separator=False)
        pieces = parts.wrap("chunk", "Lines", splitter.split_documents)(loaded)
        kept = [piece for piece in pieces if "writing" not in piece.page_content]
        ids = parts.wrap("index", "InMemoryVectorStore", store.add_documents, index="InMemoryVectorStore")(kept)
    rt.inventory(index="InMemoryVectorStore", chunk_ids=ids)

    def asked(name: str, k: int) -> Any:
        retriever = store.as_retriever(search_kwargs={"k": k})
        retriever.name = name
        search = parts.wrap("retrieve", name, retriever.invoke, mode="exact", k=k, index="InMemoryVectorStore")
        return RunnableLambda(search) if isinstance(parts, ByHand) else retriever

    fusion = Fusion(retrievers=[asked("near", 2), asked("wide", 3)], weights=[0.5, 0.5])
    reranker = CrossEncoderReranker(model=Scorer(), top_n=2)
    if not isinstance(parts, ByHand):
        compressor = DocumentCompressorPipeline(transformers=[SieveFilter(), reranker, Pruner()])
        found = ContextualCompressionRetriever(base_retriever=fusion, base_compressor=compressor)
    else:
        sieve = parts.wrap(
            "filter", "SieveFilter", lambda documents, query: SieveFilter().compress_documents(documents, query)
        )

        def ranked(documents: list[Document], query: str) -> Sequence[Document]:
            scores = Scorer().score([(query, one.page_content) for one in documents])
            rt.current_stage().considered(list(zip(documents, scores, strict=True)))
            return reranker.compress_documents(documents, query)

        rank = parts.wrap("rerank", "CrossEncoderReranker", ranked, k=2)
        prune = parts.wrap("compress", "Pruner", lambda documents, query: Pruner().compress_documents(documents, query))
        join = parts.wrap("fuse", "Fusion", fusion.weighted_reciprocal_rank)

        def all_of_it(question: str) -> list[Document]:
            lists = [retriever.invoke(question) for retriever in fusion.retrievers]
            return prune(rank(sieve(join(lists), question), question), question)

        found = RunnableLambda(all_of_it)
    model = FakeListChatModel(responses=["So it is."])
    answer = parts.wrap("generate", "FakeListChatModel", model.invoke)

    def packed(documents: list[Document]) -> str:
        return "\n\n".join(one.page_content for one in documents if "packing" not in one.page_content)

    prompt = ChatPromptTemplate.from_template("{passages}\n\nQuestion: {question}")
    last = RunnableLambda(lambda value: answer(value.to_messages())) if isinstance(parts, ByHand) else model
    return {"passages": found | packed, "question": RunnablePassthrough()} | prompt | last | StrOutputParser()
