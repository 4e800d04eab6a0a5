"""The collector beside a Phoenix server: candidates a second from the wire. `python -m benchmarks.ingestion`.

Both are sent the same kind of requests, made beforehand, over one connection of the same sender: retriever spans of
OpenInference with 100 candidates of id and score. Ours has taken them in when every trace is in its log, Phoenix when
its database holds every span. Phoenix is left out, with the reason printed, where it cannot be installed or started.
"""

from __future__ import annotations

import json
import os
import random
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest

from benchmarks.beside import SCRIPTS, installed
from benchmarks.harness import Options, Row, main
from benchmarks.peers.sending import pack, send
from ragtrace.spool.log import spool_of
from ragtrace.store import database, merge

__all__ = ["rows"]

RUN_S = 400
WAIT_S = 120
N_CANDIDATES = 100
SPANS_A_REQUEST = 64
WAITING_MB = 64
ROOT = Path(__file__).parent.parent


def requests(n_spans: int) -> list[bytes]:
    """Requests with so many retriever spans in all, each a trace of its own."""
    rng = random.Random(n_spans)
    bodies = []
    for first in range(0, n_spans, SPANS_A_REQUEST):
        request = ExportTraceServiceRequest()
        spans = request.resource_spans.add().scope_spans.add().spans
        for _ in range(min(SPANS_A_REQUEST, n_spans - first)):
            span = spans.add(name="retrieve", kind=1)
            span.trace_id, span.span_id = rng.randbytes(16), rng.randbytes(8)
            span.start_time_unix_nano = time.time_ns()
            span.end_time_unix_nano = span.start_time_unix_nano + 5_000_000
            said: dict[str, object] = {"openinference.span.kind": "RETRIEVER", "input.value": "How long may one stay?"}
            for number in range(N_CANDIDATES):
                said[f"retrieval.documents.{number}.document.id"] = f"chunk-{rng.randrange(10**6):08d}"
                said[f"retrieval.documents.{number}.document.score"] = rng.random()
            for name, value in said.items():
                attribute = span.attributes.add(key=name)
                if isinstance(value, float):
                    attribute.value.double_value = value
                else:
                    attribute.value.string_value = str(value)
        bodies.append(request.SerializeToString())
    return bodies


class Collected:
    """What one run of the collector came to."""

    def __init__(self, n_spans: int, folder: Path) -> None:
        """Raises: AssertionError when a candidate is missing afterwards."""
        store = folder / "traces.duckdb"
        bodies = requests(n_spans)
        environment = {**os.environ, "PYTHONPATH": os.pathsep.join((str(ROOT), str(ROOT / "collectors")))}
        command = [
            sys.executable, "-m", "ragtrace", "collect", str(store), "--http-port", "0", "--grpc-port", "0",
            "--quiet-s", "0", "--waiting-mb", str(WAITING_MB), "--spans-a-second", "1000000",
        ]  # fmt: skip
        process = subprocess.Popen(
            command, env={**environment, "RAGTRACE_MERGE": "off"}, stderr=subprocess.PIPE, text=True
        )
        try:
            assert process.stderr is not None
            address = ""
            while not address:
                line = process.stderr.readline()
                assert line, "the collector did not start"
                address = "".join(re.findall(r"http://\S+", line))
            began = time.monotonic()
            send(address, bodies)
            while any(path.stat().st_size for path in spool_of(store).glob("collector-*.journal")):
                assert time.monotonic() - began < WAIT_S, "the collector took too long"
                time.sleep(0.01)
            self.per_s = n_spans * N_CANDIDATES / (time.monotonic() - began)
            self.peak_mb = _peak_mb(process.pid)
            process.terminate()
            process.wait(20)
        finally:
            process.kill()
            process.wait()
        merge.merge(store)
        with database.connect(store, read_only=True) as connection:
            n_kept = connection.execute("select count(*) from candidates").fetchall()
        assert n_kept == [(n_spans * N_CANDIDATES,)], n_kept


def _peak_mb(pid: int) -> float:
    """The most memory a process ever had, in MB; 0 where the system does not tell."""
    try:
        said = Path(f"/proc/{pid}/status").read_text()
    except OSError:
        return 0.0
    found = re.search(r"VmHWM:\s+(\d+) kB", said)
    return int(found.group(1)) / 1000 if found else 0.0


def rows(options: Options) -> Iterator[Row]:
    """Speed of both, and the memory and size that it takes."""
    with tempfile.TemporaryDirectory() as name:
        # The same once more in size tells whether memory grows with what is sent.
        half = Collected(options.scaled(8000, 640), Path(name) / "half")
        whole = Collected(options.scaled(16000, 1280), Path(name) / "whole")
        phoenix = _phoenix(options, Path(name))
    ours_per_s = whole.per_s
    yield Row("the collector, from the wire to the log", ours_per_s / 1e6, "M candidates a second")
    if phoenix is not None:
        note = f"{phoenix['per_s']:,.0f} candidates a second, version {phoenix['version']}"
        yield Row("the collector beside a Phoenix server", ours_per_s / float(phoenix["per_s"]), "×", 20, False, note)
        yield Row("a Phoenix server, disk", float(phoenix["bytes"]), "bytes a candidate", note=note)
    if whole.peak_mb:
        note = f"{half.peak_mb:,.0f} and {whole.peak_mb:,.0f} MB, {WAITING_MB} MiB of unfinished traces allowed"
        yield Row("the collector's memory, twice as much sent", whole.peak_mb / half.peak_mb, "×", 1.5, note=note)


def _phoenix(options: Options, folder: Path) -> dict[str, float | str] | None:
    n_spans = options.scaled(1500, 320)
    path = folder / "requests"
    path.write_bytes(pack(requests(n_spans)))
    try:
        python = installed(options.cache, "phoenix_server", "arize-phoenix")
        command = [
            str(python),
            str(SCRIPTS / "phoenix_server.py"),
            str(path),
            str(n_spans),
            str(n_spans * N_CANDIDATES),
        ]
        done = subprocess.run(
            command, check=True, timeout=RUN_S, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        found: dict[str, float | str] = json.loads(done.stdout.splitlines()[-1])
    except (subprocess.SubprocessError, OSError, ValueError, IndexError) as error:
        print(f"the Phoenix server is left out: {type(error).__name__} while it was installed or run", file=sys.stderr)
        return None
    return found


if __name__ == "__main__":
    sys.exit(main(rows))
