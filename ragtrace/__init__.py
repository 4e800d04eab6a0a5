"""ragtrace: where did the evidence go?

Decorators record every stage of a RAG service; `ragtrace report` names the one where each gold span was lost.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ragtrace.recording.configuration import configure, flush, shutdown
from ragtrace.recording.context import carry
from ragtrace.recording.doors import current_stage, document, inventory, query
from ragtrace.recording.doors import declare_context as context
from ragtrace.recording.stages import Stage
from ragtrace.version import __version__ as __version__

if TYPE_CHECKING:
    from ragtrace.integrations.door import instrument, uninstrument
    from ragtrace.integrations.otel.processor import SpanProcessor
    from ragtrace.model import Candidate, Chunk
    from ragtrace.probes.door import probe

__all__ = [
    "Candidate",
    "Chunk",
    "SpanProcessor",
    "carry",
    "chunk",
    "compress",
    "configure",
    "context",
    "current_stage",
    "document",
    "expand",
    "filter",
    "flush",
    "fuse",
    "generate",
    "index",
    "ingest",
    "instrument",
    "inventory",
    "parse",
    "probe",
    "query",
    "rerank",
    "retrieve",
    "rewrite",
    "shutdown",
    "truncate",
    "uninstrument",
]

ingest = Stage("ingest")
parse = Stage("parse")
chunk = Stage("chunk")
index = Stage("index")
rewrite = Stage("rewrite")
retrieve = Stage("retrieve")
filter = Stage("filter")
fuse = Stage("fuse")
rerank = Stage("rerank")
expand = Stage("expand")
compress = Stage("compress")
truncate = Stage("truncate")
generate = Stage("generate")


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the two dataclasses cost as much as the rest of this import, probes and frameworks more.
    if name in ("Candidate", "Chunk"):
        from ragtrace import model

        return getattr(model, name)
    if name == "probe":
        from ragtrace.probes import door

        return door.probe
    if name in ("instrument", "uninstrument"):
        from ragtrace.integrations import door as frameworks

        return getattr(frameworks, name)
    if name == "SpanProcessor":
        from ragtrace.integrations.otel import processor

        return processor.SpanProcessor
    raise AttributeError(f"module 'ragtrace' has no attribute {name!r}")
