"""Haystack's own tracer for OpenTelemetry around a pipeline with a retriever, a ranker, a prompt and a model."""

import os
import sys

os.environ["HAYSTACK_CONTENT_TRACING_ENABLED"] = "true"
os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack_zoo import ask
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces")))

from haystack import tracing
from haystack_integrations.tracing.opentelemetry import OpenTelemetryTracer

tracing.tracer.is_content_tracing_enabled = True
tracing.enable_tracing(OpenTelemetryTracer(provider.get_tracer("haystack")))
ask()
provider.shutdown()
