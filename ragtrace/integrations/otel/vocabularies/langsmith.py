"""LangSmith's tracer in OpenTelemetry mode. Its `gen_ai.operation.name` calls a retriever `embeddings`: the kind counts."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_KIND = "langsmith.span.kind"
_INPUT = ("gen_ai.prompt",)

VOCABULARY = Vocabulary(
    "LangSmith",
    (
        Rule(
            "retrieve",
            {_KIND: ("retriever",)},
            query=("gen_ai.prompt|query", *_INPUT),
            output=List(("gen_ai.completion|documents", "gen_ai.completion|output", "gen_ai.completion")),
        ),
        Rule("generate", {_KIND: ("llm",)}, prompt=_INPUT, model=("gen_ai.request.model",)),
        Rule("", {_KIND: ("chain",)}, question=_INPUT),
        Rule("", {_KIND: ()}),
    ),
    session=("langsmith.metadata.session_id", "langsmith.metadata.thread_id", "langsmith.metadata.conversation_id"),
    question_id=("langsmith.metadata.question_id",),
    settles=True,
)
