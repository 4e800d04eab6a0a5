"""A store to record into, and a provider."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ragtrace.testing import ragtrace_store

from .provided import Provided

__all__ = ["provided", "ragtrace_store"]


@pytest.fixture
def provided() -> Iterator[Provided]:
    """A provider with the SDK's defaults."""
    made = Provided()
    yield made
    made.provider.shutdown()
