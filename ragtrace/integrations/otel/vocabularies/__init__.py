"""How retrieval is written down elsewhere: a module per vocabulary, each a table and nothing else."""

from __future__ import annotations

from ragtrace.integrations.otel.rules import Vocabulary
from ragtrace.integrations.otel.vocabularies import (
    genai,
    haystack,
    langfuse,
    langsmith,
    mlflow,
    openinference,
    own,
    traceloop,
    trulens,
)

__all__ = ["VOCABULARIES"]

# Those that say what a span is in a key of their own come before those known by an operation, a scope or a name.
VOCABULARIES: tuple[Vocabulary, ...] = (
    openinference.VOCABULARY,
    langsmith.VOCABULARY,
    mlflow.VOCABULARY,
    langfuse.VOCABULARY,
    trulens.VOCABULARY,
    haystack.VOCABULARY,
    traceloop.VOCABULARY,
    genai.VOCABULARY,
    own.VOCABULARY,
)
