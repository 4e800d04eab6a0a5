"""A provider that is no SDK: used when it works, and never a reason to lose a row."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from opentelemetry import trace

import ragtrace as rt
from ragtrace.testing import records

from .provided import queries, stages


class Span:
    """A span of another vendor's: says its ids, knows its parent as something else, takes what it is given."""

    def __init__(self, name: str, number: int) -> None:
        self.name = name
        self.parent = number  # a number, not a context
        self.attributes: dict[str, Any] = {}
        self.n_ends = 0
        self.context = SimpleNamespace(trace_id=7, span_id=100 + number, is_valid=True)

    def get_span_context(self) -> Any:
        return self.context

    def is_recording(self) -> bool:
        return True

    def set_attribute(self, name: str, value: Any) -> None:
        self.attributes[name] = value

    def set_status(self, status: Any, description: Any = None) -> None:
        self.attributes["status"] = status

    def end(self, end_time: Any = None) -> None:
        self.n_ends += 1


class Provider:
    """Has what a provider must have, and nothing of the SDK."""

    def __init__(self, kind: type[Span] = Span) -> None:
        self.kind = kind
        self.spans: list[Span] = []

    def get_tracer(self, name: str, *arguments: Any, **settings: Any) -> Any:
        return self

    def start_span(self, name: str, context: Any = None, *arguments: Any, **settings: Any) -> Span:
        span = self.kind(name, len(self.spans))
        self.spans.append(span)
        return span


class NoIds(Span):
    def get_span_context(self) -> Any:
        raise AttributeError


class NoContext(Span):
    def get_span_context(self) -> Any:
        return None


class Refuses(Span):
    def set_attribute(self, name: str, value: Any) -> None:
        raise RuntimeError

    def is_recording(self) -> bool:
        raise RuntimeError

    def end(self, end_time: Any = None) -> None:
        raise RuntimeError


@rt.retrieve
def dense(query: str) -> list[str]:
    return [f"c{number}" for number in range(100)]


def ask() -> None:
    with rt.query("q"):
        dense("q")


def test_its_spans_are_started_told_and_ended_once_and_rows_have_their_ids(ragtrace_store: Path) -> None:
    """I-27"""
    provider = Provider()
    rt.configure(ragtrace_store, merge="off", tracer_provider=provider)
    ask()
    query, stage = provider.spans
    assert (query.name, stage.name) == ("query", "dense")
    assert query.n_ends == stage.n_ends == 1
    assert stage.attributes == {"ragtrace.n_candidates": 100}
    (row,) = stages(ragtrace_store)
    assert (row["trace_id"], row["span_id"]) == (f"{7:032x}", f"{101:016x}")


@pytest.mark.parametrize("kind", [NoIds, NoContext, Refuses])
def test_spans_that_fail_in_any_way_cost_no_row(kind: type[Span], ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=Provider(kind))
    ask()
    assert len(queries(ragtrace_store)) == len(stages(ragtrace_store)) == 1
    (stage,) = [record.body for record in records(ragtrace_store) if record.kind == "stage"]
    assert len(stage.lists[0].columns.chunk_id) == 100


def test_a_provider_that_gives_no_tracer_costs_no_row(ragtrace_store: Path) -> None:
    class Broken:
        def get_tracer(self, name: str) -> Any:
            raise RuntimeError

    rt.configure(ragtrace_store, merge="off", tracer_provider=Broken())
    ask()
    (query,) = queries(ragtrace_store)
    assert len(stages(ragtrace_store)) == 1 and int(query["trace_id"], 16)


def test_a_no_op_provider_is_none(ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=trace.NoOpTracerProvider())
    ask()
    (query,) = queries(ragtrace_store)
    assert int(query["trace_id"], 16) and stages(ragtrace_store)[0]["trace_id"] == query["trace_id"]


SCRIPT = """
import logging, sys
logging.basicConfig(level=logging.DEBUG)
import ragtrace as rt
from opentelemetry import trace
{before}
rt.configure(sys.argv[1], merge="off")
{after}
with rt.query("q"), rt.retrieve(name="r") as stage:
    stage.output(["a"])
print(type(trace.get_tracer_provider()).__name__)
"""
SET = "from opentelemetry.sdk.trace import TracerProvider; trace.set_tracer_provider(TracerProvider())"
FOREIGN = (
    "import opentelemetry.trace as t\n"
    "class Foreign(t.TracerProvider):\n"
    "    def get_tracer(self, *a, **k): return t.NoOpTracerProvider().get_tracer('x')\n"
    "trace.set_tracer_provider(Foreign())"
)


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [("", "", "ProxyTracerProvider"), (SET, "", "TracerProvider"), ("", SET, "TracerProvider"),
     (FOREIGN, "", "Foreign"), ("", FOREIGN, "Foreign")],
    ids=["none", "before", "after", "foreign", "foreign after"],
)  # fmt: skip
def test_none_is_ever_set_and_none_is_ever_complained_about(
    before: str, after: str, expected: str, tmp_path: Path
) -> None:
    """I-27: the global provider is whatever the service made it, and nothing is printed or logged."""
    store = tmp_path / "traces.duckdb"
    script = SCRIPT.format(before=before, after=after)
    done = subprocess.run([sys.executable, "-c", script, str(store)], capture_output=True, text=True, check=True)
    assert (done.stdout.strip(), done.stderr) == (expected, "")
    (query,) = queries(store)
    (row,) = stages(store)
    assert row["trace_id"] == query["trace_id"] and int(row["trace_id"], 16)


def test_a_disabled_sdk_costs_no_row(tmp_path: Path) -> None:
    import os

    store = tmp_path / "traces.duckdb"
    script = SCRIPT.format(before=SET, after="")
    environment = {**os.environ, "OTEL_SDK_DISABLED": "true"}
    subprocess.run([sys.executable, "-c", script, str(store)], env=environment, check=True, capture_output=True)
    (query,) = queries(store)
    assert int(query["trace_id"], 16) and [row["trace_id"] for row in stages(store)] == [query["trace_id"]]
