"""A loop for the coroutines of retrievers, in a thread of its own: a notebook and asynchronous code run one already."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Awaitable
from typing import Any

__all__ = ["Loop"]

_CLOSING_S = 1.0
"""How long a callback that was left behind is waited for."""


class Loop:
    """One for all calls, since clients keep to the loop that they were first used in. Closed at the end."""

    def __init__(self) -> None:
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ragtrace-probe-loop", daemon=True)
        self._thread.start()

    def wait(self, found: Awaitable[Any]) -> Any:
        """What it gives, under the caller's context. Raises: what it raises."""

        async def awaited() -> Any:
            return await found

        given = asyncio.run_coroutine_threadsafe(awaited(), self._loop)
        try:
            return given.result()
        finally:
            given.cancel()  # when the wait was interrupted; nothing otherwise

    def close(self) -> None:
        """End the thread. Never raises."""
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_CLOSING_S)
        if not self._thread.is_alive():
            self._loop.close()
