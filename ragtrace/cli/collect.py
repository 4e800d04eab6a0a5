"""`ragtrace collect`: spans of services that are traced by others, into the same logs."""

from __future__ import annotations

import os
from importlib import import_module
from pathlib import Path
from typing import Annotated, Any

import typer

from ragtrace.cli.opening import StoreArgument
from ragtrace.cli.output import note
from ragtrace.errors import NotInstalledError, ParameterError

__all__ = ["collect"]


def collect(
    store: StoreArgument,
    *,
    file: Annotated[
        list[Path] | None,
        typer.Option(
            help="Take the spans of a file instead: OTLP JSON lines, an export of Phoenix or Langfuse; may be repeated.",
            show_default=False,
        ),
    ] = None,
    host: Annotated[str, typer.Option(help="The address to listen on; 0.0.0.0 for all.")] = "127.0.0.1",
    http_port: Annotated[int, typer.Option(help="For OTLP over HTTP.")] = 4318,
    grpc_port: Annotated[int, typer.Option(help="For OTLP over gRPC.")] = 4317,
    token_file: Annotated[
        Path | None,
        typer.Option(
            help="A file with the token that senders must give; else RAGTRACE_COLLECT_TOKEN.", show_default=False
        ),
    ] = None,
    run: Annotated[
        str | None,
        typer.Option(
            help="The run of traces that do not name one (ragtrace.run of span or resource).", show_default=False
        ),
    ] = None,
    mapping: Annotated[
        list[Path] | None,
        typer.Option(
            help="A file that says how spans of no known vocabulary are read; may be repeated.", show_default=False
        ),
    ] = None,
    body_mb: Annotated[int, typer.Option(min=1, help="The largest request, in MiB after decompression.")] = 16,
    spans_a_second: Annotated[int, typer.Option(min=1, help="More are told to come later.")] = 20_000,
    waiting_mb: Annotated[
        int, typer.Option(min=1, help="Memory for traces that are not whole yet, in MiB as sent.")
    ] = 256,
    attributes: Annotated[int, typer.Option(min=1, help="A span with more is refused.")] = 20_000,
    forward: Annotated[
        str | None,
        typer.Option(
            help="Send what is taken in on to this OTLP/HTTP address; headers from RAGTRACE_FORWARD_HEADERS.",
            show_default=False,
        ),
    ] = None,
    quiet_s: Annotated[float, typer.Option(help="Seconds after the last span of a trace until it is written.")] = 5.0,
) -> None:
    """Take the spans of services that are traced by others, over OTLP, and write what they retrieved to the logs of STORE.

    Reports read them as they read a decorated service. Ends well on SIGTERM and Ctrl-C; what was acknowledged before a
    kill is written at the next start. --forward never waits: what the other back end does not take is dropped and counted.
    With --file nothing listens; traces that the store has already are left out. Needs
    the extra: pip install 'ragtrace[collector]'.
    """
    reading, intake, forwarding = _collectors("importing" if file else "serving", "intake", "forwarding")
    from ragtrace import settings
    from ragtrace.integrations.otel import declared
    from ragtrace.integrations.otel.vocabularies import VOCABULARIES

    configured = settings.read(
        store, run=run, run_kind=None, service=None, tracer_provider=None, capture_text=None, redact=None,
        max_queue_bytes=None, merge=None,
    )  # fmt: skip
    # What a team says itself comes first.
    vocabularies = [*map(declared.read, mapping or ()), *VOCABULARIES]
    if file:
        for path in file:
            note(str(reading.take_file(configured, vocabularies, path)))
        return
    token = os.environ.get("RAGTRACE_COLLECT_TOKEN") or None
    if token_file is not None:
        token = token_file.read_text(encoding="utf-8").strip() or None
    onward = None
    if forward is not None:
        headers = forwarding.headers_of(os.environ.get("RAGTRACE_FORWARD_HEADERS", ""))
        if f":{http_port}/" in f"{forward}/" and any(
            name in forward for name in ("//127.0.0.1", "//localhost", "//[::1]")
        ):
            raise ParameterError(f"--forward {forward} is this collector itself: give another address", given=forward)
        onward = forwarding.Forward(forward, headers, say=note)
    is_written = reading.serve(
        configured,
        vocabularies,
        host=host,
        http_port=http_port,
        grpc_port=grpc_port,
        token=token,
        limits=intake.Limits(body_mb << 20, spans_a_second, attributes, waiting_mb << 20, quiet_s),
        say=note,
        forward=onward,
    )
    if not is_written:
        note("not everything could be written; it is taken in again at the next start")
        raise typer.Exit(3)


def _collectors(*names: str) -> list[Any]:
    """Modules of the collectors, loaded by name: nothing of ragtrace depends on them. Raises: NotInstalledError."""
    try:
        return [import_module(f"ragtrace_collectors.{name}") for name in names]
    except ModuleNotFoundError as error:
        raise NotInstalledError(
            f"ragtrace collect needs {error.name}: pip install 'ragtrace[collector]'", module=error.name
        ) from error
