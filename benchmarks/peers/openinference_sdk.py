"""OpenInference: a retriever span with the documents as its attributes, as its conventions say."""

from measuring import NullExporter, measure
from openinference.instrumentation import TracerProvider, get_retriever_attributes
from opentelemetry.sdk.trace import SpanLimits
from opentelemetry.sdk.trace.export import BatchSpanProcessor

# With the usual limit of 128 attributes most of the documents would be lost.
provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
provider.add_span_processor(BatchSpanProcessor(NullExporter()))
tracer = provider.get_tracer("retriever")


def record(candidates):
    """Two attributes a document."""
    with tracer.start_as_current_span("retrieve", openinference_span_kind="retriever") as span:
        documents = [{"id": item["id"], "score": item["score"]} for item in candidates]
        span.set_attributes(get_retriever_attributes(documents=documents))


measure(record, "openinference-instrumentation")
