"""mlflow-tracing's spans of type RETRIEVER, RERANKER and CHAT_MODEL."""

import os
import sys

os.environ["OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"] = f"{sys.argv[1]}/v1/traces"
os.environ["OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"] = "http/protobuf"
os.environ["MLFLOW_ENABLE_OTLP_EXPORTER"] = "true"

import mlflow
from mlflow.entities import Document, SpanType
from zoo import PROMPT, QUESTION, RETRIEVED

documents = [
    Document(
        row["content"],
        {"score": row["score"], "doc_uri": "zoo.txt", "chunk_id": row["id"], **row["metadata"]},
        row["id"],
    )
    for row in RETRIEVED
]


@mlflow.trace(span_type=SpanType.RETRIEVER)
def dense(query):
    """Finds the first five."""
    return documents


@mlflow.trace(span_type=SpanType.RERANKER)
def rerank(query, found):
    """Keeps three."""
    return found[:3]


@mlflow.trace(span_type=SpanType.CHAT_MODEL)
def model(messages):
    """Says something."""
    return {"choices": [{"message": {"role": "assistant", "content": "six apples"}}]}


@mlflow.trace(span_type=SpanType.CHAIN)
def answer(question):
    """The service."""
    rerank(question, dense(question))
    return model([{"role": "user", "content": PROMPT}])


answer(QUESTION)
mlflow.flush_trace_async_logging()
