"""A real server in a process of its own on a free loopback port: started, asked, ended by its own id."""

from __future__ import annotations

import http.client
import os
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["CHECKOUT", "Server", "free_port", "serving"]

CHECKOUT = Path(__file__).resolve().parents[2]


def free_port() -> int:
    """A port that nobody listens on."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


class Server:
    """One server and what it says."""

    def __init__(self, arguments: list[str], port: int, folder: Path, **environment: str) -> None:
        self.port = port
        self.output = folder / "server.txt"
        with open(self.output, "wb") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", *arguments],
                stdout=output,
                stderr=subprocess.STDOUT,
                cwd=folder,
                env={**os.environ, "PYTHONPATH": str(CHECKOUT), "RAGTRACE_MERGE": "off", **environment},
                start_new_session=True,
            )

    def get(self, path: str, timeout_s: float = 20) -> bytes:
        """The body of an answer; raises OSError or HTTPException when there is none."""
        connection = http.client.HTTPConnection("127.0.0.1", self.port, timeout=timeout_s)
        try:
            connection.request("GET", path)
            answer = connection.getresponse()
            body = answer.read()
            if answer.status != 200:
                raise OSError(f"{answer.status}: {body[:300]!r}")
            return body
        finally:
            connection.close()

    def wait(self, path: str, timeout_s: float = 40) -> None:
        """Until it answers."""
        deadline = time.monotonic() + timeout_s
        while True:
            try:
                self.get(path)
                return
            except (OSError, http.client.HTTPException):
                assert self.process.poll() is None, self.said()
                assert time.monotonic() < deadline, self.said()
                time.sleep(0.1)

    def said(self) -> str:
        """Everything it printed."""
        return self.output.read_text(errors="replace")

    def stop(self, timeout_s: float = 20) -> int:
        """Ask it to end, and wait; its exit code."""
        self.process.send_signal(signal.SIGTERM)
        return self.process.wait(timeout_s)


@contextmanager
def serving(arguments: list[str], port: int, folder: Path, ready: str, **environment: str) -> Iterator[Server]:
    """A server that answers; the whole group is ended when the block is left."""
    server = Server(arguments, port, folder, **environment)
    try:
        server.wait(ready)
        yield server
    finally:
        try:
            os.killpg(server.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass  # all of it has ended
        server.process.wait(10)
