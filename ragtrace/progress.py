"""Whom work that takes long tells how far it is, in every layer."""

from __future__ import annotations

from collections.abc import Callable

__all__ = ["Progress"]

Progress = Callable[[str, int, int], None]
"""(what is being done, how many are done, of how many)."""
