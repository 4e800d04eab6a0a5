"""A provider of the user's with what it exported, and the rows recorded beside it."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace as rt
from ragtrace.testing import records

__all__ = ["Provided", "queries", "stages"]


class Provided:
    """A provider of the user's, and what it exported."""

    def __init__(self, **settings: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**settings)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("user")

    def record_into(self, store: Path) -> None:
        """Configure recording with this provider."""
        rt.configure(store, merge="off", tracer_provider=self.provider, capture_text="all")

    def spans(self) -> list[ReadableSpan]:
        """All that ended."""
        return list(self.exporter.get_finished_spans())

    def span(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        (found,) = [span for span in self.spans() if span.name == name]
        return found


def queries(store: Path) -> list[dict[str, Any]]:
    """Query rows in the log."""
    return [record.body for record in records(store) if record.kind == "query"]


def stages(store: Path) -> list[dict[str, Any]]:
    """Stage rows in the log, by order of their ends."""
    return [dict(record.body.row) for record in records(store) if record.kind == "stage"]
