"""Stages as spans in the user's own provider: found whenever it is set, small, with its ids; none of our own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased

import ragtrace as rt

from .recorded import recorded


@rt.retrieve(mode="ann", k=1000, index="main")
def dense(query: str) -> list[str]:
    return [f"c{number}" for number in range(1000)]


class Provided:
    """A provider of the user's, and what it exported."""

    def __init__(self, **settings: Any) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider(**settings)
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))
        self.tracer = self.provider.get_tracer("user")

    def spans(self) -> dict[str, ReadableSpan]:
        return {span.name: span for span in self.exporter.get_finished_spans()}


@pytest.fixture
def provided() -> Any:
    made = Provided()
    yield made
    made.provider.shutdown()


def test_stages_are_children_of_whatever_span_is_current_and_rows_have_their_ids(
    provided: Provided, ragtrace_store: Path
) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=provided.provider)
    with provided.tracer.start_as_current_span("request") as request, rt.query("q"):
        dense("q")
    spans = provided.spans()
    stage, query = spans["dense"], spans["query"]
    assert query.parent is not None and stage.parent is not None
    assert query.parent.span_id == request.get_span_context().span_id
    assert stage.parent.span_id == query.context.span_id
    row = recorded(ragtrace_store).stage("dense").row
    assert row["trace_id"] == f"{stage.context.trace_id:032x}"
    assert row["span_id"] == f"{stage.context.span_id:016x}"
    assert row["parent_span_id"] == f"{query.context.span_id:016x}"


def test_a_span_has_the_conventions_names_and_stays_small(provided: Provided, ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=provided.provider)
    with rt.query("q"):
        dense("q")
    span = provided.spans()["dense"]
    assert dict(span.attributes or {}) == {
        "gen_ai.operation.name": "retrieval",
        "gen_ai.retrieval.top_k": 1000,
        "gen_ai.data_source.id": "main",
        "ragtrace.stage.kind": "retrieve",
        "ragtrace.stage.mode": "ann",
        "ragtrace.n_candidates": 1000,
    }
    assert span.dropped_attributes == 0
    assert len(span.to_json()) < 64 << 10


def test_a_user_s_own_spans_inside_a_stage_are_its_children(provided: Provided, ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=provided.provider)

    @rt.rerank
    def rerank(found: list[str]) -> Any:
        with provided.tracer.start_as_current_span("model call"):
            pass
        yield from found

    with rt.query("q"):
        list(rerank(["a"]))
    spans = provided.spans()
    parent = spans["model call"].parent
    assert parent is not None and parent.span_id == spans["rerank"].context.span_id
    assert trace.get_current_span() is trace.INVALID_SPAN


def test_rows_are_whole_when_nothing_is_sampled(ragtrace_store: Path) -> None:
    provided = Provided(sampler=ParentBased(ALWAYS_OFF))
    rt.configure(ragtrace_store, merge="off", tracer_provider=provided.provider)
    with rt.query("q"):
        dense("q")
    found = recorded(ragtrace_store).stage("dense")
    assert provided.spans() == {} and len(found.ids()) == 1000 and int(found.row["trace_id"], 16)
    provided.provider.shutdown()


def test_a_small_attribute_limit_is_kept_to(
    provided: Provided, ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "3")
    limited = Provided()
    rt.configure(ragtrace_store, merge="off", tracer_provider=limited.provider)
    with rt.query("q"):
        dense("q")
    span = limited.spans()["dense"]
    assert span.dropped_attributes == 0 and len(span.attributes or {}) == 3
    assert len(recorded(ragtrace_store).stage("dense").ids()) == 1000
    limited.provider.shutdown()


def test_an_error_is_named_by_type_and_never_by_its_message(provided: Provided, ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", tracer_provider=provided.provider)

    @rt.rerank
    def broken(found: list[str]) -> list[str]:
        raise ValueError("secret")

    with pytest.raises(ValueError, match="secret"), rt.query("q"):
        broken(["a"])
    span = provided.spans()["broken"]
    assert span.status.status_code is trace.StatusCode.ERROR and span.status.description == "ValueError"
    assert "secret" not in span.to_json()


def test_a_provider_that_fails_costs_its_span_and_nothing_else(ragtrace_store: Path) -> None:
    from ragtrace.testing import raising

    class Broken:
        def get_tracer(self, name: str) -> Any:
            return self

        def start_span(self, *arguments: Any, **settings: Any) -> Any:
            raise RuntimeError

    with raising(False):
        rt.configure(ragtrace_store, merge="off", tracer_provider=Broken())
        with rt.query("q"):
            assert len(dense("q")) == 1000
    found = recorded(ragtrace_store)
    assert len(found.stage("dense").ids()) == 1000 and found.query()["status"] == "ok"


SCRIPT = """
import ragtrace as rt
from opentelemetry import trace
from opentelemetry.sdk.trace import TracerProvider

rt.configure({store!r}, merge="off")
with rt.query("before"):
    assert not trace.get_current_span().get_span_context().is_valid
assert isinstance(trace.get_tracer_provider(), trace.ProxyTracerProvider)
trace.set_tracer_provider(TracerProvider())
with rt.query("after"):
    context = trace.get_current_span().get_span_context()
    assert context.is_valid
print(f"{{context.trace_id:032x}}")
"""


def test_a_provider_set_after_configure_is_found_and_none_is_ever_set_by_us(tmp_path: Path) -> None:
    from ragtrace.testing import records

    store = tmp_path / "t.duckdb"
    done = subprocess.run(
        [sys.executable, "-c", SCRIPT.format(store=str(store))], capture_output=True, text=True, check=True
    )
    before, after = [record.body for record in records(store) if record.kind == "query"]
    assert after["trace_id"] == done.stdout.strip() != before["trace_id"]
    assert done.stderr == ""
