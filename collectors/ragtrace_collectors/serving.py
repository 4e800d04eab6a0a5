"""A collector as a process: its doors, its intake, and how it ends. `ragtrace collect` runs it."""

from __future__ import annotations

import asyncio
import contextlib
import ipaddress
import signal
import socket
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

import uvicorn

from ragtrace.integrations.otel.rules import Vocabulary
from ragtrace.settings import Settings
from ragtrace.spool.log import spool_of
from ragtrace_collectors import rpc
from ragtrace_collectors.forwarding import Forward
from ragtrace_collectors.intake import Intake, Limits
from ragtrace_collectors.journal import Journal
from ragtrace_collectors.left import written_traces
from ragtrace_collectors.web import Receiver

__all__ = ["serve"]

_LOOK_S = 0.25
"""How often it looks which traces are whole."""


def serve(
    configured: Settings,
    vocabularies: Sequence[Vocabulary],
    *,
    host: str,
    http_port: int,
    grpc_port: int,
    token: str | None,
    limits: Limits,
    say: Callable[[str], None],
    forward: Forward | None = None,
) -> bool:
    """Take spans in until a signal ends it; false when something could not be written. `forward` is closed at the end.

    Raises: SpoolError when another collector writes there; OSError when the folder or a port cannot be used.
    """
    journal = Journal(spool_of(configured.store))
    intake = Intake(configured, vocabularies, limits, journal, None if forward is None else forward.put)
    n_requests = intake.take_again(written_traces(configured.store, intake.left_traces()))
    if n_requests:
        say(f"{n_requests} requests that a former collector had taken in and not written are taken in again")
    executor = ThreadPoolExecutor(1, "ragtrace-intake")
    try:
        asyncio.run(_serve(intake, executor, host, (http_port, grpc_port), token, say))
    finally:
        executor.shutdown()
        is_closed = intake.close()
        if forward is not None:
            forward.close()
    return is_closed


async def _serve(
    intake: Intake,
    executor: ThreadPoolExecutor,
    host: str,
    ports: tuple[int, int],
    token: str | None,
    say: Callable[[str], None],
) -> None:
    stop = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGINT, signal.SIGTERM):
        try:
            loop.add_signal_handler(number, stop.set)
        except NotImplementedError:  # Windows: an interrupt ends the process, and the journal keeps what was taken in
            pass
    web = await _Web.start(Receiver(intake, executor, token), host, ports[0])
    try:
        grpc_server, grpc_port = await rpc.start(intake, executor, host, ports[1], token)
        try:
            if token is None and not _is_loopback(host):
                say(f"anybody who reaches {host} can send spans: give a token with --token-file")
            say(f"OTLP is taken over gRPC at {host}:{grpc_port}, over HTTP at http://{host}:{web.port}/v1/traces")
            while not stop.is_set() and not web.is_done:
                await loop.run_in_executor(executor, intake.write_ripe)
                try:
                    await asyncio.wait_for(stop.wait(), _LOOK_S)
                except asyncio.TimeoutError:
                    pass
        finally:
            await grpc_server.stop(grace=5)
    finally:
        await web.stop()


def _is_loopback(host: str) -> bool:
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost"


class _Web:
    """The HTTP server."""

    def __init__(self, server: uvicorn.Server, serving: asyncio.Task[None], port: int) -> None:
        self._server = server
        self._serving = serving
        self.port = port

    @classmethod
    async def start(cls, receiver: Receiver, host: str, port: int) -> _Web:
        """Raises: OSError when the port cannot be listened on."""
        family = socket.AF_INET6 if ":" in host else socket.AF_INET
        listening = socket.socket(family)
        # Bound here: uvicorn ends the process when it cannot.
        try:
            listening.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            listening.bind((host, port))
        except OSError as error:
            listening.close()
            raise OSError(error.errno, error.strerror, f"{host}:{port}") from error
        server = _Server(
            uvicorn.Config(
                receiver, log_level="error", access_log=False, lifespan="off", server_header=False,
                timeout_graceful_shutdown=5, limit_concurrency=256,
            )
        )  # fmt: skip
        serving = asyncio.create_task(server.serve(sockets=[listening]))
        while not server.started and not serving.done():
            await asyncio.sleep(0.01)
        return cls(server, serving, listening.getsockname()[1])

    @property
    def is_done(self) -> bool:
        """Whether it has ended by itself."""
        return self._serving.done()

    async def stop(self) -> None:
        """Answer what is under way, then end."""
        self._server.should_exit = True
        await self._serving


class _Server(uvicorn.Server):
    """Signals are the collector's: it has more than one door to close."""

    def install_signal_handlers(self) -> None:
        """Of versions that install them here."""

    def capture_signals(self):  # type: ignore[no-untyped-def]  # a context manager of uvicorn's own type
        """Of versions that do so while they serve."""
        return contextlib.nullcontext()
