"""Spans as OTLP requests, built by hand where order, loss and repetition are what is tested."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from ragtrace_collectors.intake import Intake

START_NS = 1_800_000_000_000_000_000
REMOTE = 0x300
"""Flags: it is known whether the parent is in another process, and it is."""


def value(plain: Any) -> AnyValue:
    made = AnyValue()
    if isinstance(plain, bool):
        made.bool_value = plain
    elif isinstance(plain, int):
        made.int_value = plain
    elif isinstance(plain, float):
        made.double_value = plain
    elif isinstance(plain, str):
        made.string_value = plain
    elif isinstance(plain, Mapping):
        made.kvlist_value.SetInParent()
        for key, one in plain.items():
            made.kvlist_value.values.add(key=key, value=value(one))
    else:
        made.array_value.SetInParent()
        made.array_value.values.extend(map(value, plain))
    return made


def span(
    number: int,
    name: str,
    attributes: Mapping[str, Any],
    *,
    parent: int = 0,
    trace: int = 7,
    at: tuple[int, int] = (0, 100),
    events: Iterable[tuple[str, Mapping[str, Any]]] = (),
    dropped: int = 0,
    dropped_events: int = 0,
    flags: int = 0,
    kind: int = 1,
    error: str | None = None,
) -> dict[str, Any]:
    """`at`: begin and end in ms."""
    made = {
        "trace_id": trace.to_bytes(16, "big"),
        "span_id": number.to_bytes(8, "big"),
        "parent_span_id": parent.to_bytes(8, "big") if parent else b"",
        "name": name,
        "kind": kind,
        "flags": flags,
        "start_time_unix_nano": START_NS + at[0] * 1_000_000,
        "end_time_unix_nano": START_NS + at[1] * 1_000_000,
        "dropped_attributes_count": dropped,
        "dropped_events_count": dropped_events,
        "attributes": [{"key": key, "value": value(one)} for key, one in attributes.items()],
        "events": [
            {"name": event, "attributes": [{"key": key, "value": value(one)} for key, one in said.items()]}
            for event, said in events
        ],
    }
    if error is not None:
        made["status"] = {"code": 2, "message": error}
    return made


def request(*spans: dict[str, Any], resource: Mapping[str, Any] | None = None) -> ExportTraceServiceRequest:
    made = ExportTraceServiceRequest()
    group = made.resource_spans.add()
    for key, one in (resource or {}).items():
        group.resource.attributes.add(key=key, value=value(one))
    scope = group.scope_spans.add()
    for one in spans:
        scope.spans.add(**one)
    return made


def send(intake: Intake, *spans: dict[str, Any], resource: Mapping[str, Any] | None = None) -> None:
    made = request(*spans, resource=resource)
    intake.take(made, made.SerializeToString())
