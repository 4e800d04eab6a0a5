"""Rows carry the ids of the user's trace, whoever made it, whatever is sampled, and are whole in every case."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry import context as otel_context
from opentelemetry import trace
from opentelemetry.propagate import extract, inject
from opentelemetry.sdk.trace.sampling import ALWAYS_OFF, ParentBased, TraceIdRatioBased

import ragtrace as rt
from ragtrace.testing import records

from .provided import Provided, queries, stages

UNSAMPLED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-00"}
SAMPLED = {"traceparent": "00-0af7651916cd43dd8448eb211c80319c-b7ad6b7169203331-01"}
TRACE, SPAN = "0af7651916cd43dd8448eb211c80319c", "b7ad6b7169203331"


@rt.retrieve(mode="ann", k=100)
def dense(query: str) -> list[dict[str, Any]]:
    return [{"id": f"c{number}", "score": 1 / (number + 1), "text": f"text {number}"} for number in range(100)]


@rt.rerank(k=8)
def rerank(query: str, found: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return found[:8]


def ask(question: str = "q") -> None:
    with rt.query(question):
        rerank(question, dense(question))


def within(headers: dict[str, str], work: Any) -> None:
    """As a server does that takes the caller's trace."""
    token = otel_context.attach(extract(headers))
    try:
        work()
    finally:
        otel_context.detach(token)


def is_whole(store: Path) -> bool:
    (query,) = queries(store)
    return query["n_stages"] == len(stages(store)) == 2 and query["n_candidates"] == 108 and query["status"] == "ok"


def test_without_a_provider_rows_are_whole_and_hang_together_by_ids_of_our_own(ragtrace_store: Path) -> None:
    ask()
    (query,) = queries(ragtrace_store)
    assert is_whole(ragtrace_store) and int(query["trace_id"], 16) and int(query["span_id"], 16)
    assert {row["trace_id"] for row in stages(ragtrace_store)} == {query["trace_id"]}
    assert {row["parent_span_id"] for row in stages(ragtrace_store)} == {query["span_id"]}


def test_without_a_provider_nothing_is_announced_downstream(ragtrace_store: Path) -> None:
    """A trace that exists nowhere must not steer the sampling of the next service."""
    sent: dict[str, str] = {}
    with rt.query("q"), rt.retrieve(name="r") as stage:
        inject(sent)
        stage.output([])
    assert sent == {}


def test_without_a_provider_the_caller_s_trace_is_gone_on_with(ragtrace_store: Path) -> None:
    within(SAMPLED, ask)
    (query,) = queries(ragtrace_store)
    assert {row["trace_id"] for row in stages(ragtrace_store)} == {query["trace_id"]} == {TRACE}


def test_a_stage_s_own_calls_announce_the_stage_s_span(provided: Provided, ragtrace_store: Path) -> None:
    provided.record_into(ragtrace_store)
    sent: dict[str, str] = {}
    with rt.query("q"), rt.retrieve(name="r") as stage:
        inject(sent)
        stage.output([])
    (row,) = stages(ragtrace_store)
    assert sent["traceparent"].startswith(f"00-{row['trace_id']}-{row['span_id']}-")


@pytest.mark.parametrize("headers", [UNSAMPLED, SAMPLED])
def test_a_parent_that_is_not_sampled_costs_spans_and_no_row(headers: dict[str, str], ragtrace_store: Path) -> None:
    provided = Provided(sampler=ParentBased(ALWAYS_OFF))
    provided.record_into(ragtrace_store)
    within(headers, ask)
    (query,) = queries(ragtrace_store)
    assert is_whole(ragtrace_store)
    assert {row["trace_id"] for row in stages(ragtrace_store)} == {query["trace_id"]} == {TRACE}
    assert len(provided.spans()) == (3 if headers is SAMPLED else 0)
    provided.provider.shutdown()


def test_a_sampler_that_keeps_a_tenth_leaves_every_query_in_the_store(ragtrace_store: Path) -> None:
    """I-32: no recall over a hidden subset."""
    provided = Provided(sampler=TraceIdRatioBased(0.1))
    provided.record_into(ragtrace_store)
    for _ in range(100):
        ask()
    assert len(queries(ragtrace_store)) == 100 and len(stages(ragtrace_store)) == 200
    assert len(provided.spans()) < 150
    provided.provider.shutdown()


def test_a_hundred_queries_under_one_span_are_a_hundred_queries(provided: Provided, ragtrace_store: Path) -> None:
    """I-33: a trace id is no key."""
    provided.record_into(ragtrace_store)
    with provided.tracer.start_as_current_span("evaluation"):
        for _ in range(100):
            ask()
    found = queries(ragtrace_store)
    assert len({row["query_id"] for row in found}) == 100
    assert {row["trace_id"] for row in found} == {f"{provided.span('evaluation').context.trace_id:032x}"}


def test_spans_that_are_not_ours_are_not_recorded(provided: Provided, ragtrace_store: Path) -> None:
    """I-28: nothing hooks the user's provider."""
    provided.record_into(ragtrace_store)
    with provided.tracer.start_as_current_span("GET /"), rt.query("q"):
        dense("q")
        with provided.tracer.start_as_current_span("SELECT", attributes={"db.system": "x"}):
            pass
    assert [record.kind for record in records(ragtrace_store)] == ["process", "stage", "query"]
    assert sorted(span.name for span in provided.spans()) == ["GET /", "SELECT", "dense", "query"]


def test_each_row_has_the_ids_of_its_span_and_of_that_span_s_parent(provided: Provided, ragtrace_store: Path) -> None:
    provided.record_into(ragtrace_store)
    with provided.tracer.start_as_current_span("request"), rt.query("q"), rt.retrieve(name="hybrid") as hybrid:
        hybrid.output(dense("q"))
    for row in stages(ragtrace_store):
        span = provided.span(row["name"])
        assert span.parent is not None
        assert row["trace_id"] == f"{span.context.trace_id:032x}"
        assert row["span_id"] == f"{span.context.span_id:016x}"
        assert row["parent_span_id"] == f"{span.parent.span_id:016x}"


def test_the_global_provider_stays_what_it_was(ragtrace_store: Path) -> None:
    """I-27"""
    before = trace.get_tracer_provider()
    ask()
    rt.configure(ragtrace_store, merge="off")
    ask()
    assert trace.get_tracer_provider() is before
