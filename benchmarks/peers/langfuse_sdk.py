"""Langfuse: an observed retriever, whose result it keeps as JSON."""

from langfuse import Langfuse, observe
from measuring import NullExporter, measure

client = Langfuse(
    public_key="pk-bench", secret_key="sk-bench", base_url="http://127.0.0.1:9", span_exporter=NullExporter()
)
answer = []


@observe(name="retrieve", as_type="retriever")
def retrieve(query):
    """What the client answered."""
    return answer[0]


def record(candidates):
    """One call."""
    answer[:] = [candidates]
    retrieve("how long is a vacation?")


measure(record, "langfuse")
