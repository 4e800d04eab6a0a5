"""What a change of one setting would have kept and lost, replayed from the recorded lists. Runs no part of the service."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ragtrace.whatif.door import Examined, examine

__all__ = ["Examined", "examine"]


def __getattr__(name: str) -> Any:
    # Loaded when asked for: the door loads the database, and the help of the command needs the limits alone.
    if name in __all__:
        from ragtrace.whatif import door

        return getattr(door, name)
    raise AttributeError(f"module 'ragtrace.whatif' has no attribute {name!r}")
