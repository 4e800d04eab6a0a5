"""Records what a vendor's SDK sends, as lines of OTLP JSON: `python record.py SCRIPT PYTHON OUT`.

Starts a listener on loopback, runs SCRIPT (one of this folder) with PYTHON, an interpreter that has the vendor's SDK, and
writes what came to OUT. The committed files in `../recorded` were made this way; `versions.txt` says with which SDKs.
"""

from __future__ import annotations

import base64
import gzip
import json
import os
import subprocess
import sys
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path

from google.protobuf import json_format
from google.protobuf.message import DecodeError
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

HERE = Path(__file__).parent
MACHINE = ("host.", "process.", "os.", "telemetry.sdk.", "service.instance.id")


def main(script: str, python: str, out: str) -> None:
    bodies: list[bytes] = []

    class Listener(BaseHTTPRequestHandler):
        def do_POST(self):
            body = self.rfile.read(int(self.headers.get("content-length") or 0))
            if self.headers.get("content-encoding") == "gzip":
                body = gzip.decompress(body)
            if self.path.endswith("/v1/traces"):
                bodies.append(body)
            self.send_response(200)
            self.send_header("content-length", "0")
            self.end_headers()

        def log_message(self, *_):
            """Nothing."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Listener)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    try:
        subprocess.run(
            [python, str(HERE / script), f"http://127.0.0.1:{server.server_port}"],
            check=True, timeout=120, env={**os.environ, "PYTHONPATH": str(HERE.parent)},
        )  # fmt: skip
    finally:
        server.shutdown()
    with open(out, "w", encoding="utf-8") as file:
        for body in bodies:
            try:
                value = _as_json(body)
            except DecodeError:
                continue  # TruLens sends metrics to the same address
            file.write(json.dumps(value, ensure_ascii=False, sort_keys=True) + "\n")


def _as_json(body: bytes) -> dict:
    request = ExportTraceServiceRequest.FromString(body)
    for resource in request.resource_spans:
        kept = [pair for pair in resource.resource.attributes if not pair.key.startswith(MACHINE)]
        del resource.resource.attributes[:]
        resource.resource.attributes.extend(kept)
    value = json_format.MessageToDict(request, use_integers_for_enums=True)
    for resource in value.get("resourceSpans", ()):
        for scope in resource.get("scopeSpans", ()):
            for span in scope.get("spans", ()):
                # Where the script lies on the machine that recorded it.
                span["attributes"] = [one for one in span.get("attributes", ()) if not one["key"].startswith("code.")]
                for name in ("traceId", "spanId", "parentSpanId"):
                    if name in span:
                        span[name] = base64.b64decode(span[name]).hex()
    return value


if __name__ == "__main__":
    main(*sys.argv[1:])
