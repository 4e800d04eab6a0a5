"""Spans in files: OTLP as JSON lines, what Phoenix exports, what Langfuse exports. Told apart by what an object has.

OTLP      `resourceSpans`, one request a line, as the file exporters of SDKs and collectors write it
Phoenix   the answer of `/v1/projects/NAME/spans`, or the dataframe of its client as Parquet or JSON lines
Langfuse  observations (`traceId`, `type`), or traces with their observations, as its interface and its API give them
"""

from __future__ import annotations

import datetime
import gzip
import json
from collections.abc import Iterable, Iterator, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Any

from ragtrace.errors import RagtraceError
from ragtrace.integrations.otel.spans import NO_PARENT, Event, Span
from ragtrace_collectors import otlp

__all__ = ["UnreadableFileError", "spans_in"]


class UnreadableFileError(RagtraceError):
    """A file that holds no spans, or none that can be read."""


def spans_in(path: Path) -> Iterator[Span]:
    """The spans of a file, in its order; `.gz` is unpacked. Raises: UnreadableFileError with the line; OSError."""
    name = path.name.removesuffix(".gz")
    if name.endswith(".parquet"):
        for row in _parquet(path):
            yield _phoenix(row)
        return
    n_spans = 0
    for number, value in _values(path):
        try:
            for span in _spans(value):
                n_spans += 1
                yield span
        except (ValueError, TypeError, KeyError, AttributeError, OverflowError) as error:
            raise UnreadableFileError(f"{path}, line {number}: {error}", path=str(path), line=number) from error
    if not n_spans:
        raise UnreadableFileError(f"{path}: no spans in it", path=str(path))


def _values(path: Path) -> Iterator[tuple[int, Any]]:
    """Each JSON value of a file with its line: one a line, or one over all of them."""
    opener = gzip.open if path.name.endswith(".gz") else open
    with opener(path, "rt", encoding="utf-8-sig") as file:
        try:
            for number, line in enumerate(file, 1):
                if not line.strip():
                    continue
                try:
                    value = json.loads(line)
                except ValueError as error:
                    if number == 1:
                        break  # spread over lines
                    raise UnreadableFileError(f"{path}, line {number}: no JSON ({error})", path=str(path)) from error
                yield number, value
            else:
                return
            file.seek(0)
            yield 1, json.load(file)
        except (ValueError, EOFError, gzip.BadGzipFile) as error:
            raise UnreadableFileError(f"{path}: no JSON ({error})", path=str(path)) from error


def _spans(value: Any) -> Iterator[Span]:
    if isinstance(value, list):
        for one in value:
            yield from _spans(one)
    elif not isinstance(value, Mapping):
        raise ValueError("neither an object nor a list")
    elif "resourceSpans" in value or "resource_spans" in value:
        yield from otlp.spans_of(otlp.request_of_json(json.dumps(value)))
    elif isinstance(value.get("data"), list):
        yield from _spans(value["data"])  # an answer with several
    elif "context.trace_id" in value or isinstance(value.get("context"), Mapping):
        yield _phoenix(value)
    elif "traceId" in value and ("type" in value or "startTime" in value):
        yield _observation(value, None)
    elif isinstance(value.get("observations"), list) and "id" in value:
        yield from _trace(value)
    else:
        raise ValueError("neither OTLP, nor a span of Phoenix, nor an observation or trace of Langfuse")


# ------------------------------------------------------------------ Phoenix


def _parquet(path: Path) -> Iterator[Mapping[str, Any]]:
    import pyarrow as pa  # only for Parquet
    import pyarrow.parquet as pq

    try:
        with pq.ParquetFile(path) as file:
            for batch in file.iter_batches(batch_size=1000):
                yield from batch.to_pylist()
    except pa.ArrowInvalid as error:
        raise UnreadableFileError(f"{path}: no Parquet ({error})", path=str(path)) from error


def _phoenix(row: Mapping[str, Any]) -> Span:
    context = row.get("context")
    ids = (
        context if isinstance(context, Mapping) else {name: row[f"context.{name}"] for name in ("trace_id", "span_id")}
    )
    given = row.get("attributes")
    attributes = dict(given) if isinstance(given, Mapping) else {}
    attributes.update(
        {
            key.removeprefix("attributes."): value
            for key, value in row.items()
            if key.startswith("attributes.") and value is not None
        }
    )
    kind = row.get("span_kind")
    if kind and kind != "UNKNOWN":
        attributes.setdefault("openinference.span.kind", kind)
    started = _ns(row["start_time"])
    return Span(
        _number(ids["trace_id"], 16),
        _number(ids["span_id"], 8),
        _number(row["parent_id"], 8) if row.get("parent_id") else NO_PARENT,
        str(row.get("name") or ""),
        "",
        started,
        max(started, _ns(row.get("end_time") or row["start_time"])),
        attributes,
        [Event(str(event.get("name")), event.get("attributes") or {}) for event in _list(row.get("events"))],
        error=str(row.get("status_message") or "") if row.get("status_code") == "ERROR" else None,
    )


# ------------------------------------------------------------------ Langfuse


def _trace(trace: Mapping[str, Any]) -> Iterator[Span]:
    """A trace with its observations: it stands above those that have no parent."""
    observations = [one for one in trace["observations"] if isinstance(one, Mapping)]
    if not observations:
        return
    spans = [_observation(one, trace) for one in observations]
    if (
        any(span.parent_id == NO_PARENT and span.attributes.get(_INPUT) for span in spans)
        and len([span for span in spans if span.parent_id == NO_PARENT]) == 1
    ):
        yield from spans  # its only root says what was asked
        return
    above = _number(f"trace {trace['id']}", 8)
    yield Span(
        spans[0].trace_id,
        above,
        NO_PARENT,
        str(trace.get("name") or "trace"),
        "",
        min(span.start_ns for span in spans),
        max(span.end_ns for span in spans),
        {_TYPE: "chain", _INPUT: trace.get("input"), **_facts(trace)},
    )
    yield from (span._replace(parent_id=above) if span.parent_id == NO_PARENT else span for span in spans)


_TYPE, _INPUT = "langfuse.observation.type", "langfuse.observation.input"


def _observation(row: Mapping[str, Any], trace: Mapping[str, Any] | None) -> Span:
    started = _ns(row["startTime"])
    attributes = {
        _TYPE: str(row.get("type") or "span").lower(),
        _INPUT: row.get("input"),
        "langfuse.observation.output": row.get("output"),
        "langfuse.observation.model.name": row.get("model"),
        **_facts(trace or {}),
        **_facts(row),
    }
    return Span(
        _number(row.get("traceId") or (trace or row)["id"], 16),
        _number(row["id"], 8),
        _number(row["parentObservationId"], 8) if row.get("parentObservationId") else NO_PARENT,
        str(row.get("name") or ""),
        "langfuse-sdk",
        started,
        max(started, _ns(row.get("endTime") or row["startTime"])),
        {key: value for key, value in attributes.items() if value is not None},
        error=str(row.get("statusMessage") or "") if row.get("level") == "ERROR" else None,
    )


def _facts(row: Mapping[str, Any]) -> dict[str, Any]:
    metadata = row.get("metadata")
    found = {"session.id": row.get("sessionId")}
    if isinstance(metadata, Mapping):
        found["langfuse.trace.metadata.question_id"] = metadata.get("question_id")
        found["ragtrace.run"] = metadata.get("ragtrace.run")
    return {key: value for key, value in found.items() if value is not None}


# ------------------------------------------------------------------ plain values


def _list(value: Any) -> Iterable[Mapping[str, Any]]:
    return [one for one in value if isinstance(one, Mapping)] if isinstance(value, list) else []


def _number(name: Any, n_bytes: int) -> int:
    """An id: its hex digits, or else a number made of its letters (older SDKs wrote UUIDs and words)."""
    text = str(name)
    if len(text) == 2 * n_bytes:
        try:
            return int(text, 16) or 1
        except ValueError:
            pass  # as long as one, and none
    return int.from_bytes(blake2b(text.encode("utf-8", "surrogatepass"), digest_size=n_bytes).digest(), "big") or 1


def _ns(value: Any) -> int:
    """A time as ns UTC: ISO 8601, a datetime, or milliseconds."""
    if isinstance(value, (int, float)):
        return int(value * 1_000_000)
    if isinstance(value, str):
        value = datetime.datetime.fromisoformat(value.replace("Z", "+00:00"))
    if not isinstance(value, datetime.datetime):
        raise ValueError(f"{value!r} is no time")
    if value.tzinfo is None:
        value = value.replace(tzinfo=datetime.timezone.utc)
    since = value - datetime.datetime(1970, 1, 1, tzinfo=datetime.timezone.utc)
    # In whole numbers: a float has no room for microseconds of today.
    return int((since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds) * 1000
