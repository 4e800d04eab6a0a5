"""Spans stay small and lose nothing to the user's limits; the rows know no limit."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import ReadableSpan, SpanLimits

import ragtrace as rt
from ragtrace import attributes
from ragtrace.spool.records import CandidateList
from ragtrace.testing import records

from .provided import Provided

N = 1000
LONG_ID = "a chunk's id that is longer than any limit " * 4
TEXT = "A passage of some length. " * 40

SERVICE: dict[str, Any] = {
    "retrieve": rt.retrieve(
        mode="ann", k=N, index="main", score_kind="distance", threshold=0.1, filter={"tenant": "a"}
    ),
    "filter": rt.filter(filter={"tenant": "a"}),
    "fuse": rt.fuse(k=60, weights=[0.3, 0.7]),
    "rerank": rt.rerank(k=N, model="a model", score_kind="logit", threshold=0.0),
    "expand": rt.expand(window=2),
    "compress": rt.compress(model="a model"),
    "truncate": rt.truncate(budget_tokens=3000),
}


def run_service() -> None:
    rows = [{"id": f"{LONG_ID}{number}", "score": 1 / (number + 1), "text": f"{number} {TEXT}"} for number in range(N)]
    with rt.query("a question of some length, longer than any limit", question_id="q-1", session="s"):
        for kind, stage in SERVICE.items():
            rows = stage(name=kind)(lambda query, rows: [dict(row) for row in rows])("what is asked of it", rows)
        rt.generate(name="generate", model="a model", answer=True)(lambda prompt: "so")("a prompt")


def out_list(store: Path, name: str) -> CandidateList:
    (found,) = [record.body for record in records(store) if record.kind == "stage" and record.body.row["name"] == name]
    return next(one for one in found.lists if one.role == "out")


def size_bytes(span: ReadableSpan) -> int:
    return len(span.to_json().encode())


@pytest.mark.parametrize("limit", ["", "8", "3", "1"])
@pytest.mark.parametrize("name", ["OTEL_SPAN_ATTRIBUTE_COUNT_LIMIT", "OTEL_ATTRIBUTE_COUNT_LIMIT"])
def test_no_attribute_is_dropped_and_every_candidate_is_there(
    name: str, limit: str, ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-19"""
    monkeypatch.setenv(name, limit)
    provided = Provided()
    provided.record_into(ragtrace_store)
    run_service()
    assert len(provided.spans()) == len(SERVICE) + 2
    for span in provided.spans():
        assert span.dropped_attributes == 0
        assert len(span.attributes or {}) <= min(8, int(limit or 8))
        assert len(span.events) == span.dropped_events == 0
    for kind in SERVICE:
        columns = out_list(ragtrace_store, kind).columns
        assert columns is not None and len(columns.chunk_id) == N
    provided.provider.shutdown()


def test_a_provider_s_own_limits_are_kept_to(ragtrace_store: Path) -> None:
    provided = Provided(span_limits=SpanLimits(max_attributes=2, max_span_attributes=2))
    provided.record_into(ragtrace_store)
    run_service()
    assert {span.dropped_attributes for span in provided.spans()} == {0}
    provided.provider.shutdown()


def test_a_limit_on_the_length_of_values_cuts_no_id_and_no_text(
    ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-20"""
    monkeypatch.setenv("OTEL_ATTRIBUTE_VALUE_LENGTH_LIMIT", "16")
    provided = Provided()
    provided.record_into(ragtrace_store)
    run_service()
    columns = out_list(ragtrace_store, "retrieve").columns
    assert columns is not None and columns.chunk_id[N - 1] == f"{LONG_ID}{N - 1}"
    rows = [record.body for record in records(ragtrace_store) if record.kind == "query"]
    assert rows[0]["question"] == "a question of some length, longer than any limit"
    stages = [record.body.row for record in records(ragtrace_store) if record.kind == "stage"]
    assert stages[0]["query_text"] == "what is asked of it"
    provided.provider.shutdown()


def test_a_span_stays_under_64_kib_whatever_it_carries(provided: Provided, ragtrace_store: Path) -> None:
    """I-21: ten thousand candidates, megabytes of text, and parameters of any size."""
    provided.record_into(ragtrace_store)
    huge = "x" * (1 << 20)
    with rt.query(huge, question_id=huge[:100_000]):
        stage = rt.retrieve(name="n" * 100_000, index="i" * 100_000, filter={"text": huge}, k=10_000, note=huge)
        stage(lambda query: [{"id": f"c{number}", "text": TEXT} for number in range(10_000)])(huge)
        with pytest.raises(ValueError, match="x"):
            rt.generate(lambda prompt: (_ for _ in ()).throw(ValueError(huge)))(huge)
    assert max(map(size_bytes, provided.spans())) <= 64 << 10


def test_no_attribute_holds_a_text_of_the_service_s(provided: Provided, ragtrace_store: Path) -> None:
    provided.record_into(ragtrace_store)
    run_service()
    allowed = {name for word in attributes.__all__ if isinstance(name := getattr(attributes, word), str)}
    for span in provided.spans():
        assert set(span.attributes or {}) <= allowed
        assert attributes.QUERY_TEXT not in (span.attributes or {})
        assert "passage" not in span.to_json() and "question of some" not in span.to_json()
