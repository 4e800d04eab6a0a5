"""Names of the span attributes, each said once. `gen_ai.*` where OpenTelemetry's conventions have a name."""

from __future__ import annotations

__all__ = [
    "DATA_SOURCE_ID",
    "ERROR_TYPE",
    "MAX_CHARACTERS",
    "MODE",
    "N_CANDIDATES",
    "OPERATIONS",
    "OPERATION_NAME",
    "QUERY_ID",
    "QUERY_TEXT",
    "RUN",
    "STAGE_ID",
    "STAGE_KIND",
    "TOP_K",
]

OPERATION_NAME = "gen_ai.operation.name"
QUERY_TEXT = "gen_ai.retrieval.query.text"
TOP_K = "gen_ai.retrieval.top_k"
DATA_SOURCE_ID = "gen_ai.data_source.id"
ERROR_TYPE = "error.type"

STAGE_KIND = "ragtrace.stage.kind"
MODE = "ragtrace.stage.mode"
STAGE_ID = "ragtrace.stage.id"
QUERY_ID = "ragtrace.query.id"
RUN = "ragtrace.run"
N_CANDIDATES = "ragtrace.n_candidates"

MAX_CHARACTERS = 1000
"""Of a span's name and of each value: eight of them, four bytes a character, stay below 64 KiB, past which back ends
refuse a whole batch."""

OPERATIONS = {"retrieve": "retrieval"}
"""Stage kinds that the conventions have an operation for. A `generate` may be a chat or a completion: it is not said."""
