"""What a Phoenix server exports of the zoo: `python phoenix_export.py FOLDER`, with an interpreter that has arize-phoenix.

Writes `phoenix_spans.json` (its API) and `phoenix_dataframe.parquet` (its client). The server listens on loopback only.
"""

import os
import socket
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path

sys.path[:0] = [str(Path(__file__).parents[1]), str(Path(__file__).parents[2])]

from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from phoenix.client import Client
from test_openinference import ask


def main(folder):
    """Start a server, send it the spans, ask it for them."""
    ports = []
    for _ in range(2):
        with socket.socket() as found:
            found.bind(("127.0.0.1", 0))
            ports.append(str(found.getsockname()[1]))
    address = f"http://127.0.0.1:{ports[0]}"
    with tempfile.TemporaryDirectory() as working:
        environment = {
            **os.environ, "PHOENIX_WORKING_DIR": working, "PHOENIX_HOST": "127.0.0.1", "PHOENIX_PORT": ports[0],
            "PHOENIX_GRPC_PORT": ports[1], "PHOENIX_TELEMETRY_ENABLED": "false",
        }  # fmt: skip
        server = subprocess.Popen([sys.executable, "-m", "phoenix.server.main", "serve"], env=environment)
        try:
            while socket.socket().connect_ex(("127.0.0.1", int(ports[0]))):
                time.sleep(0.2)
            provider = TracerProvider()
            provider.add_span_processor(SimpleSpanProcessor(OTLPSpanExporter(f"{address}/v1/traces")))
            ask(provider.get_tracer("service"))
            provider.shutdown()
            time.sleep(3)
            with urllib.request.urlopen(f"{address}/v1/projects/default/spans") as answer:
                (folder / "phoenix_spans.json").write_bytes(answer.read())
            frame = Client(base_url=address).spans.get_spans_dataframe(project_identifier="default")
            frame.to_parquet(folder / "phoenix_dataframe.parquet")
        finally:
            server.terminate()
            server.wait(20)


if __name__ == "__main__":
    main(Path(sys.argv[1]))
