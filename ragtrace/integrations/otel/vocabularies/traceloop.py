"""Traceloop (OpenLLMetry): LangChain retrievers as JSON, vector stores as events, Cohere's reranker as text."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary
from ragtrace.integrations.otel.vocabularies.genai import PROMPT

__all__ = ["VOCABULARY"]

_KIND = "traceloop.span.kind"
_INPUT = ("traceloop.entity.input", "gen_ai.task.input")
_STORES = ("chroma", "pinecone", "qdrant", "weaviate", "milvus", "lancedb", "marqo", "opensearch", "elasticsearch")

VOCABULARY = Vocabulary(
    "Traceloop",
    (
        Rule(
            "retrieve",
            {"gen_ai.operation.name": ("vector_db_retrieve",)},
            query=("traceloop.entity.input|query", "gen_ai.task.input|query"),
            # The same list twice; either may have been lost.
            output=List(("traceloop.entity.output|documents", "gen_ai.task.output|documents")),
            label=("traceloop.entity.name",),
        ),
        Rule(
            "retrieve",
            {"db.system": ("milvus",)},
            name=r"milvus\.(search|hybrid_search)",
            mode="ann",
            score_kind="distance",
            output=List(("event:db.search.result|db.search.result.",), batch=("db.milvus.search.query_vectors_count",)),
            k=("db.milvus.search.limit", "db.vector.query.top_k"),
            index=("db.milvus.search.collection_name", "db.collection.name"),
        ),
        Rule(
            "retrieve",
            {"db.system": ("chroma",)},
            name=r"chroma\.(query|peek|.*query)",
            mode="ann",
            score_kind="distance",
            is_higher_better=False,
            output=List(("event:db.query.result|db.query.result.",), batch=("db.chroma.query.embeddings_count",)),
            k=("db.chroma.query.n_results", "db.vector.query.top_k"),
        ),
        Rule(
            "retrieve",
            {"db.system": _STORES},
            name=r"\w+\.(query|search|.*_query|query_points|search_batch|recommend|nearest\w*)",
            mode="ann",
            # Qdrant and others write no results: the stage is known, its list is not.
            output=List(("event:db.query.result|db.query.result.",)),
            k=("db.vector.query.top_k", "pinecone.query.top_k", "db.qdrant.search.limit"),
            index=("db.collection.name", "db.qdrant.search.collection_name"),
        ),
        Rule(
            "rerank",
            {"llm.request.type": ("rerank",)},
            query=("gen_ai.prompt.{i}.",),
            input=List(("gen_ai.prompt.{i}.",), only={"role": "system"}),
            output=List(
                ("gen_ai.completion.{i}.",), number="index", pattern=r"Doc (?P<index>\d+), Score: (?P<score>[\d.eE+-]+)"
            ),
            model=("gen_ai.request.model",),
        ),
        Rule(
            "rerank",
            {"rerank.top_n": ()},
            query=("gen_ai.input.messages",),
            k=("rerank.top_n",),
            model=("gen_ai.request.model",),
        ),
        Rule("generate", {"llm.request.type": ("chat", "completion")}, prompt=PROMPT, model=("gen_ai.request.model",)),
        Rule("", {_KIND: ("workflow", "agent", "task")}, question=_INPUT),
    ),
    session=("traceloop.association.properties.session_id",),
    question_id=("traceloop.association.properties.question_id",),
)
