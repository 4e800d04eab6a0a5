"""opentelemetry-instrumentation-chromadb (Traceloop) around a Chroma collection, in a workflow of traceloop-sdk."""

import os
import sys

os.environ["ANONYMIZED_TELEMETRY"] = "False"
os.environ["TRACELOOP_TELEMETRY"] = "false"

import chromadb
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import task, workflow
from traceloop.sdk.instruments import Instruments
from zoo import QUESTION, RETRIEVED

Traceloop.init(
    app_name="zoo",
    exporter=OTLPSpanExporter(f"{sys.argv[1]}/v1/traces"),
    instruments={Instruments.CHROMA},
    disable_batch=True,
)
client = chromadb.EphemeralClient()
collection = client.create_collection("zoo", embedding_function=None)
collection.add(
    ids=[row["id"] for row in RETRIEVED],
    embeddings=[[float(number), 1.0] for number in range(len(RETRIEVED))],
    documents=[row["content"] for row in RETRIEVED],
    metadatas=[row["metadata"] for row in RETRIEVED],
)


@task(name="search")
def search(question):
    """Asks Chroma."""
    found = collection.query(query_embeddings=[[0.0, 1.0]], n_results=4)
    return found["documents"][0]


@workflow(name="answer")
def answer(question):
    """Searches only."""
    return search(question)[:2]


answer(QUESTION)
