"""openinference-instrumentation-langchain around a LangChain chain."""

import sys

from langchain_zoo import ask
from openinference.instrumentation.langchain import LangChainInstrumentor
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

provider = TracerProvider()
provider.add_span_processor(BatchSpanProcessor(OTLPSpanExporter(f"{sys.argv[1]}/v1/traces")))
LangChainInstrumentor().instrument(tracer_provider=provider)
ask()
provider.shutdown()
