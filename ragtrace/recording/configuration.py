"""Recording on, flushed, off."""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any

from ragtrace.recording import context

__all__ = ["configure", "flush", "shutdown"]


def configure(
    store: str | os.PathLike[str] | None = None,
    *,
    run: str | None = None,
    run_kind: str | None = None,
    service: str | None = None,
    tracer_provider: Any = None,
    capture_text: str | None = None,
    redact: Callable[[str], str] | None = None,
    max_queue_bytes: int | None = None,
    merge: str | None = None,
) -> None:
    """Begin to record into the logs of a store; a second call replaces the first.

    `store` is the DuckDB file the logs are merged into; it is not opened here. Each argument that is not given comes
    from `RAGTRACE_STORE`, `RAGTRACE_RUN`, … or has its default: `run_kind` "actual", `capture_text` "questions"
    (parsed texts and questions; else "none", "documents", "all"), `max_queue_bytes` 64 MiB, `merge` "exit" (a child
    process merges when this one ends; else "off").

    Raises: ConfigurationError for a wrong type or value. Never for a folder or disk that cannot be written.
    """
    from ragtrace import settings  # with all the rest: a service that does not record pays for nothing
    from ragtrace.recording.recorder import Recorder

    configured = settings.read(
        store,
        run=run,
        run_kind=run_kind,
        service=service,
        tracer_provider=tracer_provider,
        capture_text=capture_text,
        redact=redact,
        max_queue_bytes=max_queue_bytes,
        merge=merge,
    )
    recorder = Recorder(configured)
    former, context.recorder = context.recorder, recorder
    if former is not None:
        former.close(timeout_s=1.0)


def flush(timeout_s: float = 5.0) -> bool:
    """Wait until everything that has ended is on the disk; false when that took too long. True when not configured."""
    recorder = context.recorder
    return True if recorder is None else recorder.flush(timeout_s)


def shutdown(timeout_s: float = 5.0) -> bool:
    """Flush, let go of the log and record nothing more until `configure` is called again."""
    recorder, context.recorder = context.recorder, None
    return True if recorder is None else recorder.close(timeout_s)
