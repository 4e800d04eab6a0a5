"""What `configure` was told, by argument or by environment. Checked once; wrong arguments raise there and nowhere else."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from ragtrace.errors import ConfigurationError
from ragtrace.model import RUN_KINDS

__all__ = ["CAPTURE_TEXT", "MERGE", "Settings", "read"]

CAPTURE_TEXT = ("none", "documents", "questions", "all")
MERGE = ("exit", "off")
DEFAULT_MAX_QUEUE_BYTES = 64 << 20

Redact = Callable[[str], str]


class Settings(NamedTuple):
    """One configuration of recording; never changed, only replaced."""

    store: Path
    """The DuckDB file, absolute: the service may change its folder later."""
    run: str | None = None
    """Label of the service's configuration: what two reports compare."""
    run_kind: str = "actual"
    service: str | None = None
    tracer_provider: Any = None
    """An OpenTelemetry TracerProvider; None: the global one, when there is one."""
    capture_text: str = "questions"
    redact: Redact | None = None
    """Sees every text before it leaves the process."""
    max_queue_bytes: int = DEFAULT_MAX_QUEUE_BYTES
    """How much may wait in memory while the disk refuses."""
    merge: str = "exit"

    @property
    def captures_documents(self) -> bool:
        """Whether parsed texts are stored."""
        return self.capture_text != "none"

    @property
    def captures_questions(self) -> bool:
        """Whether questions and search texts are stored."""
        return self.capture_text in ("questions", "all")


def read(
    store: str | os.PathLike[str] | None,
    *,
    run: str | None,
    run_kind: str | None,
    service: str | None,
    tracer_provider: Any,
    capture_text: str | None,
    redact: Redact | None,
    max_queue_bytes: int | None,
    merge: str | None,
) -> Settings:
    """The settings; what is None comes from the environment (RAGTRACE_STORE, RAGTRACE_RUN …), else the default.

    Raises: ConfigurationError for a wrong type or value, also of an environment variable, and when no store is named.
    """
    named_store = store if store is not None else _environment("store")
    if named_store is None:
        raise ConfigurationError("no store: call ragtrace.configure('traces.duckdb') or set RAGTRACE_STORE")
    if not isinstance(named_store, (str, os.PathLike)) or not os.fspath(named_store):
        raise ConfigurationError(f"store must be a path, not {type(named_store).__name__}", argument="store")
    if redact is None and (named := _environment("redact")) is not None:
        redact = _named_object("redact", named)
    if redact is not None and not callable(redact):
        raise ConfigurationError(
            f"redact must be a function of one text, not {type(redact).__name__}", argument="redact"
        )
    if tracer_provider is None and (named := _environment("tracer_provider")) is not None:
        tracer_provider = _named_object("tracer_provider", named)
    if tracer_provider is not None and not callable(getattr(tracer_provider, "get_tracer", None)):
        raise ConfigurationError(
            "tracer_provider has no get_tracer: it is no TracerProvider", argument="tracer_provider"
        )
    return Settings(
        # abspath, not resolve: a link to the store stays the user's own name of it.
        store=Path(os.path.abspath(os.fspath(named_store))),
        run=_text("run", run, None),
        run_kind=_choice("run_kind", run_kind, RUN_KINDS, "actual"),
        service=_text("service", service, None),
        tracer_provider=tracer_provider,
        capture_text=_choice("capture_text", capture_text, CAPTURE_TEXT, "questions"),
        redact=redact,
        max_queue_bytes=_bytes("max_queue_bytes", max_queue_bytes, DEFAULT_MAX_QUEUE_BYTES),
        merge=_choice("merge", merge, MERGE, "exit"),
    )


def _environment(name: str) -> str | None:
    return os.environ.get(f"RAGTRACE_{name.upper()}") or None


def _text(name: str, value: object, default: str | None) -> str | None:
    if value is None:
        value = _environment(name)
    if value is None:
        return default
    if not isinstance(value, str):
        raise ConfigurationError(f"{name} must be a string, not {type(value).__name__}", argument=name)
    return value


def _choice(name: str, value: object, choices: tuple[str, ...], default: str) -> str:
    chosen = _text(name, value, default)
    if chosen not in choices:
        raise ConfigurationError(f"{name} must be one of {', '.join(choices)}, not {chosen!r}", argument=name)
    return chosen


def _bytes(name: str, value: object, default: int) -> int:
    if value is None:
        named = _environment(name)
        if named is None:
            return default
        if not named.isdecimal():
            raise ConfigurationError(f"RAGTRACE_{name.upper()} must be a number of bytes, not {named!r}", argument=name)
        value = int(named)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise ConfigurationError(f"{name} must be a number of bytes, 0 or more", argument=name)
    return value


def _named_object(name: str, named: str) -> Any:
    """The object that `module:attribute` names."""
    from importlib import import_module  # only where the environment names an object

    module, _, attribute = named.partition(":")
    try:
        return getattr(import_module(module), attribute)
    except (ImportError, AttributeError, ValueError) as error:
        raise ConfigurationError(
            f"RAGTRACE_{name.upper()} must be module:object, and {named!r} cannot be loaded ({type(error).__name__})",
            argument=name,
        ) from error
