"""The span processor in the provider that a team has: the same verdicts as over the network."""

from __future__ import annotations

import json
import threading
from collections import Counter

import pytest
from collectors.conftest import settings_of
from collectors.test_openinference import ask
from collectors.zoo import QUESTION, RETRIEVED
from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

import ragtrace as rt
from ragtrace.errors import ConfigurationError
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace_collectors.intake import Intake


@pytest.fixture
def provider(store):
    rt.configure(store, run="in process", merge="off")
    made = TracerProvider(shutdown_on_exit=False)
    made.add_span_processor(rt.SpanProcessor())
    yield made
    made.shutdown()
    rt.shutdown()


def test_a_teams_own_provider_records_without_a_network(provider, told, store):
    """The same stages and lists as over the network, whose verdicts are tested there."""
    ask(provider.get_tracer("service"))
    assert provider.force_flush(5000)
    in_process = [shape(stage) for stage in told()]
    sent = Intake(settings_of(store), VOCABULARIES)
    exported = InMemorySpanExporter()
    other = TracerProvider(shutdown_on_exit=False)
    other.add_span_processor(SimpleSpanProcessor(exported))
    ask(other.get_tracer("service"))
    request = encode_spans(exported.get_finished_spans())
    sent.take(request, request.SerializeToString())
    sent.close()

    assert len(told()) == 6
    assert sorted(map(str, in_process * 2)) == sorted(str(shape(stage)) for stage in told())


def shape(stage):
    """What is the same whichever way it came."""
    names = ("kind", "name", "k", "query_text", "params", "is_answer", "status")
    lists = [
        (one.role, one.is_complete, None if one.columns is None else [list(one.columns.chunk_id), one.columns.start])
        for one in stage.lists
    ]
    return {name: stage.row.get(name) for name in names}, lists


def test_a_trace_is_in_the_log_when_its_last_span_has_ended(provider, told):
    """Nothing waits for a flush or an exit."""
    ask(provider.get_tracer("service"))

    assert len(told()) == 3


def test_a_span_that_goes_on_behind_the_root_is_waited_for(provider, told):
    tracer = provider.get_tracer("service")
    with tracer.start_as_current_span("answer", attributes={"openinference.span.kind": "CHAIN", "input.value": "why?"}):
        late = tracer.start_span("dense", attributes={"openinference.span.kind": "RETRIEVER"})
    assert told() == []
    late.set_attribute("retrieval.documents.0.document.id", "c1")
    late.end()

    (stage,) = told()
    assert list(stage.lists[0].columns.chunk_id) == ["c1"]


def test_attributes_that_the_sdk_dropped_leave_the_list_open(store, told):
    """128 attributes are kept by default, the latest: with four a document the first rows are gone."""
    rt.configure(store, run="limits", merge="off")
    provider = TracerProvider(shutdown_on_exit=False, span_limits=SpanLimits(max_span_attributes=9))
    provider.add_span_processor(rt.SpanProcessor())
    with provider.get_tracer("service").start_as_current_span("dense") as span:
        span.set_attribute("openinference.span.kind", "RETRIEVER")
        for number in range(5):
            span.set_attribute(f"retrieval.documents.{number}.document.id", f"c{number}")
            span.set_attribute(f"retrieval.documents.{number}.document.score", 0.5)
    provider.shutdown()
    rt.shutdown()

    (listed,) = told()[0].lists
    assert not listed.is_complete
    assert list(listed.columns.chunk_id) == [None, "c1", "c2", "c3", "c4"]


def test_decorated_stages_are_not_recorded_twice(provider, store, told):
    """Their spans are in the same provider."""
    rt.shutdown()
    rt.configure(store, run="both", merge="off", tracer_provider=provider)
    with rt.query(QUESTION), rt.retrieve(name="dense") as stage:
        stage.output([{"id": "c1"}])

    assert [stage.row["name"] for stage in told()] == ["dense"]


def test_without_configure_nothing_is_kept(tmp_path):
    processor = rt.SpanProcessor()
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    ask(provider.get_tracer("service"))
    provider.shutdown()

    assert not processor._open
    assert not list(tmp_path.iterdir())


def test_many_threads_write_their_own_traces(provider, told):
    tracer = provider.get_tracer("service")
    threads = [threading.Thread(target=lambda: [ask(tracer) for _ in range(10)]) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert provider.force_flush(5000)  # on a busy machine some wait in memory
    stages_of = Counter(stage.row["query_id"] for stage in told())
    assert list(stages_of.values()) == [3] * 80


def test_a_mapping_file_is_read_at_once(tmp_path):
    path = tmp_path / "mapping.toml"
    path.write_text("[[span]]\nkind = 'nonsense'\nname = 'x'", encoding="utf-8")

    with pytest.raises(ConfigurationError, match="kind must be one of"):
        rt.SpanProcessor(mapping=path)


def test_a_mapping_file_names_a_teams_own_spans(store, tmp_path, told):
    path = tmp_path / "mapping.toml"
    path.write_text("[[span]]\nkind = 'retrieve'\nname = 'our search'\noutput = 'hits'", encoding="utf-8")
    rt.configure(store, merge="off")
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(rt.SpanProcessor(mapping=[path]))
    with provider.get_tracer("service").start_as_current_span("our search") as span:
        span.set_attribute("hits", json.dumps(RETRIEVED))
    provider.shutdown()
    rt.shutdown()

    assert len(told()[0].lists[0].columns.chunk_id) == 5
