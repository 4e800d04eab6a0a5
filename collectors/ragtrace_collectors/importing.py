"""A file of spans into the logs of a store: `ragtrace collect --file`."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ragtrace.integrations.otel.rules import Vocabulary
from ragtrace.settings import Settings
from ragtrace_collectors.files import spans_in
from ragtrace_collectors.intake import Intake
from ragtrace_collectors.left import written_traces

__all__ = ["take_file"]


def take_file(configured: Settings, vocabularies: Sequence[Vocabulary], path: Path) -> str:
    """Write the traces of a file that the store does not have; what became of them, as a sentence.

    The whole file is held in memory: its spans may stand in any order. Raises: UnreadableFileError; OSError.
    """
    spans = list(spans_in(path))
    traces = frozenset(span.trace_id for span in spans)
    known = traces & written_traces(configured.store, traces).keys()
    intake = Intake(configured, vocabularies)
    intake.take_spans([span for span in spans if span.trace_id not in known])
    intake.close()
    left_out = f"; {len(known)} were there already" if known else ""
    return f"{path}: {len(traces) - len(known)} traces with {len(spans)} spans are taken in{left_out}"
