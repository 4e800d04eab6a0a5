"""opentelemetry-instrumentation-langchain (Traceloop) around the same chain."""

import sys

from langchain_zoo import ask
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.instrumentation.langchain import LangchainInstrumentor
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces")))
LangchainInstrumentor().instrument(tracer_provider=provider)
ask()
provider.shutdown()
