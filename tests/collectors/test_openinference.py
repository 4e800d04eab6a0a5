"""OpenInference's own constants and the OpenTelemetry SDK's exporter against the real command."""

from __future__ import annotations

import json

from collectors.zoo import EXPECTED, GOLD, LOSSES, PROMPT, QUESTION, RETRIEVED, documents
from openinference.semconv.trace import OpenInferenceSpanKindValues as Kind
from openinference.semconv.trace import RerankerAttributes, SpanAttributes
from opentelemetry.exporter.otlp.proto.http import Compression
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.resources import Resource
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor


def test_spans_of_the_sdk_become_verdicts(collector, rows):
    started = collector("--run", "hybrid")
    provider = TracerProvider(resource=Resource.create({"service.name": "zoo"}))
    provider.add_span_processor(
        BatchSpanProcessor(OTLPSpanExporter(started.http, compression=Compression.Gzip, timeout=10))
    )
    ask(provider.get_tracer("service"))
    provider.shutdown()

    assert started.stop() == 0
    assert rows(LOSSES, GOLD) == EXPECTED
    assert rows("select run, question_id, question from queries") == [("hybrid", "q-1", QUESTION)]
    assert rows("select service from processes") == [("zoo",)]
    assert rows("select kind, name, k from stages order by start_no") == [
        ("retrieve", "dense", None),
        ("rerank", "cross encoder", 3),
        ("generate", "model", None),
    ]


def ask(tracer):
    kind = SpanAttributes.OPENINFERENCE_SPAN_KIND
    with tracer.start_as_current_span("answer") as span:
        span.set_attributes(
            {
                kind: Kind.CHAIN.value,
                SpanAttributes.INPUT_VALUE: QUESTION,
                SpanAttributes.METADATA: json.dumps({"question_id": "q-1"}),
            }
        )
        with tracer.start_as_current_span("dense") as span:
            span.set_attributes({kind: Kind.RETRIEVER.value, SpanAttributes.INPUT_VALUE: QUESTION})
            span.set_attributes(documents(SpanAttributes.RETRIEVAL_DOCUMENTS, RETRIEVED))
        with tracer.start_as_current_span("cross encoder") as span:
            span.set_attributes({kind: Kind.RERANKER.value, RerankerAttributes.RERANKER_QUERY: QUESTION})
            span.set_attribute(RerankerAttributes.RERANKER_TOP_K, 3)
            span.set_attributes(documents(RerankerAttributes.RERANKER_INPUT_DOCUMENTS, RETRIEVED))
            span.set_attributes(documents(RerankerAttributes.RERANKER_OUTPUT_DOCUMENTS, RETRIEVED[:3]))
        with tracer.start_as_current_span("model") as span:
            span.set_attribute(kind, Kind.LLM.value)
            span.set_attribute(f"{SpanAttributes.LLM_INPUT_MESSAGES}.0.message.role", "user")
            span.set_attribute(f"{SpanAttributes.LLM_INPUT_MESSAGES}.0.message.content", PROMPT)
