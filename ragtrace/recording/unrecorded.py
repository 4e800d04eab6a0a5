"""What a block gives where nothing is recorded: takes every call of a run or query, and does nothing."""

from __future__ import annotations

from typing import Any

__all__ = ["NOT_RECORDED"]


class _NotRecorded:
    id = None

    def input(self, value: Any, *, source: Any = None) -> None:
        pass

    def output(self, value: Any) -> None:
        pass

    def considered(self, value: Any) -> None:
        pass

    def dropped(self, id: str | int, reason: str | None = None, *, by: str | None = None) -> None:
        pass

    def context(self, value: Any, *, carried: Any = None, extract: Any = None) -> None:
        pass


NOT_RECORDED: Any = _NotRecorded()
