"""`rt.instrument` and `rt.uninstrument`: a framework by its name, in the versions that were tried."""

from __future__ import annotations

import re
from importlib import import_module, metadata
from threading import RLock
from typing import Any, NamedTuple

from ragtrace.errors import ConfigurationError

__all__ = ["FRAMEWORKS", "instrument", "uninstrument"]

FRAMEWORKS = {
    "langchain": "ragtrace.integrations.langchain",
    "llama_index": "ragtrace.integrations.llama_index",
    "haystack": "ragtrace.integrations.haystack",
}
"""The names, with the module that knows the framework: `SUPPORTED`, `patch`, `restore`."""

_lock = RLock()
_patched: set[str] = set()


class Supported(NamedTuple):
    """A distribution and the versions of it that were tried: from `oldest` on, below `below`."""

    distribution: str
    oldest: str
    below: str


def instrument(name: str) -> None:
    """Record what a framework runs: its retrievers, rerankers, splitters, models and the like become stages.

    `name` is one of `langchain`, `llama_index`, `haystack`. Classes are patched in place, those that are defined later
    too; a second call changes nothing. May be called before or after `configure`.

    Raises: ConfigurationError for an unknown name, a framework that is not installed, and a version that was not tried.
    """
    module = _module_of(name)
    with _lock:
        if name in _patched:
            return
        for supported in module.SUPPORTED:
            _check(name, Supported(*supported))
        try:
            module.patch()
        except BaseException:
            module.restore()  # whole or not at all
            raise
        _patched.add(name)


def uninstrument(name: str) -> None:
    """Leave the framework's classes as they were found. Does nothing when it is not instrumented.

    Raises: ConfigurationError for an unknown name.
    """
    module = _module_of(name)
    with _lock:
        if name in _patched:
            _patched.discard(name)
            module.restore()


def _module_of(name: str) -> Any:
    if name not in FRAMEWORKS:
        raise ConfigurationError(f"instrument knows {', '.join(FRAMEWORKS)}, not {name!r}", argument="name")
    return import_module(FRAMEWORKS[name])


def _check(name: str, supported: Supported) -> None:
    distribution, oldest, below = supported
    try:
        found = metadata.version(distribution)
    except metadata.PackageNotFoundError:
        raise ConfigurationError(
            f'instrument("{name}") needs {distribution} {oldest} or newer, which is not installed: '
            f"pip install '{distribution}>={oldest},<{below}'",
            argument="name",
        ) from None
    if not _release(oldest) <= _release(found) < _release(below):
        raise ConfigurationError(
            f'instrument("{name}") was tried with {distribution} from {oldest} to below {below}, not with {found}: '
            f"install one of these, or decorate your own functions",
            argument="name",
        )


def _release(version: str) -> tuple[int, ...]:
    """The leading numbers of a version: 1.2.0rc1 counts as 1.2.0."""
    found = re.match(r"\d+(\.\d+)*", version)
    return tuple(int(number) for number in found.group().split(".")) if found else ()
