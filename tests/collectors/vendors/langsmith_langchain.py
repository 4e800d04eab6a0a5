"""LangSmith's tracer in OpenTelemetry mode around the same chain."""

import os
import sys

os.environ.update(
    LANGSMITH_TRACING="true", LANGSMITH_OTEL_ENABLED="true", LANGSMITH_OTEL_ONLY="true", LANGSMITH_API_KEY="none",
    LANGSMITH_ENDPOINT=sys.argv[1],
)  # fmt: skip

from langchain_zoo import ask
from opentelemetry import trace
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces")))
trace.set_tracer_provider(provider)
ask()

from langchain_core.tracers.langchain import wait_for_all_tracers

wait_for_all_tracers()
provider.shutdown()
