"""A Phoenix server on loopback: how many candidates a second it takes in, until its database holds them.

Prints one JSON object: candidates a second, bytes a candidate, version. Bounded: at most three minutes to start and one to take in.
"""

import json
import os
import socket
import sqlite3
import subprocess
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

from measuring import candidate_json
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import SpanLimits, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

N_CANDIDATES = 100
WAIT_S = 60
START_S = 180


def free_port():
    """A port nobody listens on."""
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        return found.getsockname()[1]


def n_spans(folder):
    """Spans in the server's database."""
    try:
        with sqlite3.connect(f"file:{folder / 'phoenix.db'}?mode=ro", uri=True) as database:
            return database.execute("select count(*) from spans").fetchone()[0]
    except sqlite3.Error:
        return 0


def wait_for(is_done, at_most_s=WAIT_S):
    """Seconds until something is true. Raises: TimeoutError."""
    began = time.monotonic()
    while not is_done():
        if time.monotonic() - began > at_most_s:
            raise TimeoutError("the server took too long")
        time.sleep(0.05)


def is_listening(port):
    """Whether the server answers."""
    with socket.socket() as probe:
        return probe.connect_ex(("127.0.0.1", port)) == 0


def main(n_requests):
    """Start the server, send it retriever spans, and wait until all are stored."""
    with tempfile.TemporaryDirectory() as name:
        folder, port = Path(name), free_port()
        environment = {
            **os.environ, "PHOENIX_WORKING_DIR": name, "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": str(port),
            "PHOENIX_GRPC_PORT": str(free_port()), "PHOENIX_TELEMETRY_ENABLED": "false",
        }  # fmt: skip
        server = subprocess.Popen(
            [sys.executable, "-m", "phoenix.server.main", "serve"],
            env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL,
        )  # fmt: skip
        try:
            wait_for(lambda: is_listening(port), START_S)
            provider = TracerProvider(span_limits=SpanLimits(max_span_attributes=10_000))
            provider.add_span_processor(
                BatchSpanProcessor(
                    OTLPSpanExporter(f"http://127.0.0.1:{port}/v1/traces", timeout=30), max_export_batch_size=64
                )
            )
            tracer = provider.get_tracer("retriever")
            candidates = json.loads(candidate_json(N_CANDIDATES))
            attributes = {"openinference.span.kind": "RETRIEVER"}
            for number, item in enumerate(candidates):
                attributes[f"retrieval.documents.{number}.document.id"] = item["id"]
                attributes[f"retrieval.documents.{number}.document.score"] = item["score"]
            began = time.monotonic()
            for _ in range(n_requests):
                with tracer.start_as_current_span("retrieve", attributes=attributes):
                    pass
            provider.force_flush(WAIT_S * 1000)
            wait_for(lambda: n_spans(folder) >= n_requests)
            taken_s = time.monotonic() - began
            size = sum(path.stat().st_size for path in folder.glob("phoenix.db*"))
            n = n_requests * N_CANDIDATES
            print(
                json.dumps({"per_s": n / taken_s, "bytes": size / n, "version": version("arize-phoenix")}), flush=True
            )
        finally:
            server.terminate()
            server.wait(timeout=20)


main(int(sys.argv[1]))
