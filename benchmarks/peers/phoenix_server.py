"""A Phoenix server on loopback: how many candidates a second it takes in, until its database holds them.

`phoenix_server.py FILE SPANS CANDIDATES`: requests made beforehand, and what is in all of them. Prints one JSON object:
candidates a second, bytes a candidate, version. Bounded: at most three minutes to start and two to take in.
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

from sending import send, unpack

WAIT_S = 120
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


def main(path, n_wanted, n_candidates):
    """Start the server, send it the spans, and wait until all are stored."""
    bodies = unpack(Path(path).read_bytes())
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
            began = time.monotonic()
            send(f"http://127.0.0.1:{port}/v1/traces", bodies)
            wait_for(lambda: n_spans(folder) >= n_wanted)
            taken_s = time.monotonic() - began
            size = sum(path.stat().st_size for path in folder.glob("phoenix.db*"))
            found = {"per_s": n_candidates / taken_s, "bytes": size / n_candidates, "version": version("arize-phoenix")}
            print(json.dumps(found), flush=True)
        finally:
            server.terminate()
            server.wait(timeout=20)


main(sys.argv[1], int(sys.argv[2]), int(sys.argv[3]))
