"""TruLens: `ai.observability.span_type`, contexts as bare texts: an item is known by its text."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import List, Rule, Vocabulary

__all__ = ["VOCABULARY"]

_TYPE = "ai.observability.span_type"
_RETRIEVAL = "ai.observability.retrieval."
_RERANKING = "ai.observability.reranking."
_ARGUMENTS = "ai.observability.call.kwargs.*"

VOCABULARY = Vocabulary(
    "TruLens",
    (
        Rule(
            "retrieve",
            {_TYPE: ("retrieval",)},
            query=(f"{_RETRIEVAL}query_text", _ARGUMENTS),
            output=List(
                (f"{_RETRIEVAL}retrieved_contexts",),
                scores=(f"{_RETRIEVAL}retrieved_scores",),
                declared=(f"{_RETRIEVAL}num_contexts",),
                are_texts=True,
            ),
        ),
        Rule(
            "rerank",
            {_TYPE: ("reranking",)},
            query=(f"{_RERANKING}query_text",),
            input=List(
                (f"{_RERANKING}input_context_texts",), scores=(f"{_RERANKING}input_context_scores",), are_texts=True
            ),
            output=List(
                (f"{_RERANKING}output_context_texts",), scores=(f"{_RERANKING}output_context_scores",), are_texts=True
            ),
            k=(f"{_RERANKING}top_n",),
            model=(f"{_RERANKING}model_name",),
        ),
        Rule("generate", {_TYPE: ("generation",)}, prompt=(_ARGUMENTS,), model=("gen_ai.request.model",)),
        Rule("", {_TYPE: ("record_root",)}, question=("ai.observability.record_root.input", _ARGUMENTS)),
    ),
    session=("ai.observability.conversation_id",),
    question_id=("ai.observability.input_id",),
    run=("ai.observability.run.name",),
)
