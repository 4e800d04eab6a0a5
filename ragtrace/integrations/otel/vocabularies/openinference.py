"""OpenInference (Phoenix, Arize): `openinference.span.kind`, documents as numbered attributes.

LangChain's instrumentation gives neither id nor score; both are looked for in the metadata, as everywhere.
"""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_KIND = "openinference.span.kind"
_OUTPUT = ("retrieval.documents.{i}.document.", "retrieval.documents", "output.value|documents", "output.value")
_QUESTION = ("input.value",)
# Of a list that stands in one attribute, as Phoenix exports it.
_ITEM = {"document.id": "id", "document.score": "score", "document.content": "content", "document.metadata": "metadata"}

_RETRIEVER = Rule(
    "retrieve",
    {_KIND: ("retriever",)},
    query=_QUESTION,
    # An empty list has no attributes; what came out as JSON says that it was empty.
    output=List(_OUTPUT, _ITEM),
)
_RERANKER = Rule(
    "rerank",
    {_KIND: ("reranker",)},
    query=("reranker.query", *_QUESTION),
    input=List(("reranker.input_documents.{i}.document.", "reranker.input_documents"), _ITEM),
    output=List(("reranker.output_documents.{i}.document.", "reranker.output_documents"), _ITEM),
    k=("reranker.top_k",),
    model=("reranker.model_name",),
)

VOCABULARY = Vocabulary(
    "OpenInference",
    (
        _RETRIEVER,
        _RERANKER,
        # Haystack's prompt builder calls itself a model, and reads nothing.
        Rule("", {_KIND: ("llm",)}, name=r"\w*PromptBuilder\.\w+"),
        Rule(
            "generate",
            {_KIND: ("llm",)},
            prompt=(
                "llm.input_messages.{i}.message.",
                "llm.input_messages",
                "llm.prompts.{i}.prompt.",
                "llm.prompts",
                "input.value",
            ),
            model=("llm.model_name",),
        ),
        Rule("", {_KIND: ("chain", "agent")}, question=_QUESTION),
        # The kind is the first attribute that a full span loses: the numbered ones tell it too.
        Rule(
            "retrieve",
            {"retrieval.documents.": (), "retrieval.documents": ()},
            query=_QUESTION,
            output=_RETRIEVER.output,
        ),
        Rule(
            "rerank",
            {"reranker.input_documents.": (), "reranker.output_documents.": (), "reranker.query": ()},
            query=_RERANKER.query,
            input=_RERANKER.input,
            output=_RERANKER.output,
            k=_RERANKER.k,
            model=_RERANKER.model,
        ),
        Rule("", {_KIND: ()}),
    ),
    session=("session.id",),
    question_id=("metadata|question_id", "metadata.question_id"),
    run=("metadata|ragtrace.run",),
    settles=True,
)
