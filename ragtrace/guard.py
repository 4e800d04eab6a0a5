"""The rule that recording never raises into the user's code, in one place.

Internal errors are counted in production and raised under test: `raise_internal` is the only switch, set by
`ragtrace.testing`.
"""

from __future__ import annotations

from ragtrace import losses

__all__ = ["raise_internal", "swallow"]

raise_internal = False
"""True only under test: `swallow` then raises what it was given."""


def swallow(error: BaseException, where: str, counted: losses.Losses | None = None) -> None:
    """Count an internal error under the reason `internal_error`. Never raises, except under test.

    Only the exception's type and our own name of the place are kept: a message may hold the user's text.
    """
    if counted is not None:
        counted.add("internal_error", detail=f"{where}: {type(error).__name__}")
    if raise_internal:
        raise error
