"""A store to record into."""

from __future__ import annotations

from ragtrace.testing import ragtrace_store

__all__ = ["ragtrace_store"]
