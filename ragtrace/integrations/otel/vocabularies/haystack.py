"""Haystack's own tracing: a span a component, what it is said by its class. Lists only with content tracing on."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_TYPE = "haystack.component.type"
_INPUT = "haystack.component.input"
_OWN = frozenset(("id", "content", "score", "meta", "embedding", "sparse_embedding", "blob", "dataframe"))
_OUTPUT = List(("haystack.component.output|documents",), own=_OWN)
_TAKEN = List((f"{_INPUT}|documents",), own=_OWN)
_QUERY = (f"{_INPUT}|query", f"{_INPUT}|text")
_LABEL = ("haystack.component.name",)
_K = (f"{_INPUT}|top_k",)

VOCABULARY = Vocabulary(
    "Haystack",
    (
        Rule("retrieve", {_TYPE: ("*retriever",)}, query=_QUERY, output=_OUTPUT, k=_K, label=_LABEL),
        Rule(
            "rerank", {_TYPE: ("*ranker",)}, query=_QUERY, input=_TAKEN, output=_OUTPUT, k=_K,
            label=_LABEL,
        ),
        Rule("fuse", {_TYPE: ("*joiner",)}, input=_TAKEN, output=_OUTPUT, k=_K, label=_LABEL),
        Rule("generate", {_TYPE: ("*generator",)}, prompt=(f"{_INPUT}|prompt", f"{_INPUT}|messages"), label=_LABEL),
        Rule("", {"haystack.pipeline.input_data": ()}, question=("haystack.pipeline.input_data",)),
        Rule("", {_TYPE: ()}),
    ),
    settles=True,
)  # fmt: skip
