"""OTLP, as bytes or JSON, to spans: the protocol's own messages, decoded by its own library."""

from __future__ import annotations

import base64
import binascii
import json
from collections.abc import Iterator, Mapping
from typing import Any

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue

from ragtrace.integrations.otel.spans import Event, Span

__all__ = ["Malformed", "Request", "request_of", "request_of_json", "spans_of"]

Request = ExportTraceServiceRequest

_HAS_IS_REMOTE, _IS_REMOTE = 0x100, 0x200
"""SpanFlags of the protocol: whether the sender knows, and whether the parent is in another process."""
_SERVER, _CONSUMER = 2, 5
_ERROR = 2
_MOST_NESTED = 30


class Malformed(ValueError):
    """The bytes are no trace request."""


def request_of(data: bytes) -> ExportTraceServiceRequest:
    """The request in protobuf bytes. Raises: Malformed."""
    request = ExportTraceServiceRequest()
    try:
        request.ParseFromString(data)
    except (DecodeError, ValueError) as error:
        raise Malformed(f"not an ExportTraceServiceRequest ({error})") from error
    return request


def request_of_json(data: bytes | str) -> ExportTraceServiceRequest:
    """The request in OTLP's JSON, whose ids are hex where protobuf's own JSON has base64. Raises: Malformed."""
    try:
        value = json.loads(data)
        if not isinstance(value, dict):
            raise Malformed("not a JSON object")
        for span in _json_spans(value):
            for name in ("traceId", "trace_id", "spanId", "span_id", "parentSpanId", "parent_span_id"):
                if isinstance(span.get(name), str):
                    span[name] = base64.b64encode(binascii.unhexlify(span[name])).decode()
            for link in span.get("links") or ():
                for name in ("traceId", "trace_id", "spanId", "span_id"):
                    if isinstance(link.get(name), str):
                        link[name] = base64.b64encode(binascii.unhexlify(link[name])).decode()
        request = ExportTraceServiceRequest()
        json_format.ParseDict(value, request, ignore_unknown_fields=True)
        return request
    except Malformed:
        raise
    except (ValueError, TypeError, AttributeError, RecursionError, json_format.Error) as error:
        raise Malformed(f"not an ExportTraceServiceRequest in JSON ({error})") from error


def _json_spans(value: dict[str, Any]) -> Iterator[dict[str, Any]]:
    for resource in value.get("resourceSpans") or value.get("resource_spans") or ():
        for scope in (
            resource.get("scopeSpans")
            or resource.get("scope_spans")
            or resource.get("instrumentationLibrarySpans")
            or ()
        ):
            yield from scope.get("spans") or ()


def spans_of(request: ExportTraceServiceRequest) -> Iterator[Span]:
    """The spans of a request, in its order; those without a trace or span id are left out."""
    for resource_spans in request.resource_spans:
        resource = _attributes(resource_spans.resource.attributes)
        for scope_spans in resource_spans.scope_spans:
            scope = scope_spans.scope.name
            for span in scope_spans.spans:
                trace_id, span_id = int.from_bytes(span.trace_id, "big"), int.from_bytes(span.span_id, "big")
                if trace_id and span_id:
                    yield _span(span, trace_id, span_id, scope, resource)


def _span(span: Any, trace_id: int, span_id: int, scope: str, resource: Mapping[str, Any]) -> Span:
    flags = span.flags
    return Span(
        trace_id,
        span_id,
        int.from_bytes(span.parent_span_id, "big"),
        span.name,
        scope,
        span.start_time_unix_nano,
        max(span.end_time_unix_nano, span.start_time_unix_nano),
        _attributes(span.attributes),
        [Event(event.name, _attributes(event.attributes)) for event in span.events] if span.events else (),
        resource,
        (span.status.message or "") if span.status.code == _ERROR else None,
        span.dropped_attributes_count,
        span.dropped_events_count,
        # Older senders do not say it; a server's or consumer's parent is in the process that called it.
        bool(flags & _IS_REMOTE) if flags & _HAS_IS_REMOTE else span.kind in (_SERVER, _CONSUMER),
    )


def _attributes(pairs: Any) -> dict[str, Any]:
    # Nearly all values are texts that are not empty, or numbers that are not 0: a look or two instead of a call.
    return {pair.key: (value := pair.value).string_value or value.double_value or _value(value, 0) for pair in pairs}


def _value(value: AnyValue, depth: int) -> Any:
    kind = value.WhichOneof("value")
    if kind is None or depth > _MOST_NESTED:
        return None
    if kind == "array_value":
        return [_value(one, depth + 1) for one in value.array_value.values]
    if kind == "kvlist_value":
        return {pair.key: _value(pair.value, depth + 1) for pair in value.kvlist_value.values}
    return getattr(value, kind)
