"""A column of texts as it stands in a log: joined by NUL, taken apart only where somebody reads the texts one by one.

The merge numbers ids with Arrow, thousands of lists at once, and never needs most of them as Python strings: making these
was a third of its time.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, overload

__all__ = ["Joined"]


class Joined(Sequence[str]):
    """Texts without a NUL among them; equal to a list of the same texts."""

    __slots__ = ("_n", "_values", "data")

    def __init__(self, data: bytes, n: int) -> None:
        """`data` is UTF-8, lone surrogates included. Raises: ValueError when it does not hold `n` texts, at least one."""
        if data.count(b"\0") != n - 1:
            raise ValueError("a column has another length than its list")
        self.data = data
        self._n = n
        self._values: list[str] | None = None

    def texts(self) -> list[str]:
        """The texts, taken apart at the first call."""
        if self._values is None:
            self._values = self.data.decode("utf-8", "surrogatepass").split("\0")
        return self._values

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts())

    def __contains__(self, value: object) -> bool:
        return value is not None and value in self.texts()

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> list[str]: ...
    def __getitem__(self, index: Any) -> Any:
        return self.texts()[index]

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Joined):
            return self.data == other.data
        return self.texts() == other

    __hash__ = None  # type: ignore[assignment]  # like the list it stands for

    def __repr__(self) -> str:
        return repr(self.texts())
