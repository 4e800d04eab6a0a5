"""openinference-instrumentation-haystack around the same pipeline."""

import os
import sys

os.environ["HAYSTACK_TELEMETRY_ENABLED"] = "False"

from haystack_zoo import ask
from openinference.instrumentation.haystack import HaystackInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces")))
HaystackInstrumentor().instrument(tracer_provider=provider)
ask()
provider.shutdown()
