"""Langfuse: `langfuse.observation.type`. It has none for rerankers, so these are known by their name."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_TYPE = "langfuse.observation.type"
_INPUT = ("langfuse.observation.input",)
_OUTPUT = (
    "langfuse.observation.output",
    "langfuse.observation.output|documents",
    "langfuse.observation.output|results",
    "langfuse.observation.output|*",
)

VOCABULARY = Vocabulary(
    "Langfuse",
    (
        Rule("retrieve", {_TYPE: ("retriever",)}, query=_INPUT, output=List(_OUTPUT)),
        Rule(
            "rerank",
            {_TYPE: ("span", "tool", "chain")},
            name=r".*re-?_?rank.*",
            query=("langfuse.observation.input|query", *_INPUT),
            input=List(("langfuse.observation.input|documents", "langfuse.observation.input|*")),
            output=List(_OUTPUT),
        ),
        Rule("generate", {_TYPE: ("generation",)}, prompt=_INPUT, model=("langfuse.observation.model.name",)),
        Rule("", {_TYPE: ("span", "chain", "agent")}, question=(*_INPUT, "langfuse.trace.input")),
    ),
    session=("session.id",),
    question_id=("langfuse.trace.metadata.question_id", "langfuse.observation.metadata.question_id"),
)
