"""What can be asked again: retrievers by the name of their stage, with what each of them can do."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Protocol

from ragtrace.errors import ConfigurationError

__all__ = ["Get", "Retriever", "Retrievers", "Search"]

MAX_K = 1000
"""How deep a probe looks unless the retriever says otherwise: a flat index of a million vectors answers it in a second."""


class Search(Protocol):
    """Ask the index: the query's text, how many, and the filter that was recorded (None for none)."""

    def __call__(self, query: str, k: int, filter: Any, /) -> Any:
        """A candidate list of any shape that a recorded stage may return."""


class Get(Protocol):
    """Ask the index for chunks by their ids."""

    def __call__(self, ids: Sequence[str], /) -> Any:
        """Those of them that are there, as a candidate list or as ids."""


@dataclass(frozen=True, slots=True)
class Retriever:
    """What one retriever can be asked; at least one of `search`, `exact` and `get` is given."""

    name: str
    """The name of its retrieve stage."""
    search: Search | None = None
    """The search that the service makes, at any k."""
    exact: Search | None = None
    """The same ranking over every chunk: no approximate index."""
    get: Get | None = None
    """Chunks by id."""
    index_version: Callable[[], str | int] | None = None
    """The state of the index now; equal means the same. Without it the search is asked unchanged, and must answer alike."""
    without_filter: bool = False
    """Whether `search` and `exact` may be asked with filter None where a filter was recorded."""
    any_query: bool = True
    """Whether they may be asked another text than the one recorded: the question before it was rewritten."""
    max_k: int = MAX_K
    """The deepest k they may be asked for."""
    extract: Callable[[Any], Any] | None = None
    """As in `rt.retrieve(extract=)`: what an item of their answers is."""

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name:
            raise ConfigurationError("a retriever is registered under its stage's name, a string", argument="name")
        for name in ("search", "exact", "get", "index_version", "extract"):
            if getattr(self, name) is not None and not callable(getattr(self, name)):
                raise ConfigurationError(f"{self.name}: {name} must be a function", argument=name)
        if self.search is None and self.exact is None and self.get is None:
            raise ConfigurationError(f"{self.name}: give at least one of search, exact and get", argument="search")
        if type(self.max_k) is not int or self.max_k < 1:
            raise ConfigurationError(f"{self.name}: max_k must be a whole number, 1 or more", argument="max_k")


class Retrievers:
    """Retrievers by name; one that comes again under its name replaces the former."""

    def __init__(self, retrievers: Iterable[Retriever] = ()) -> None:
        self._by_name: dict[str, Retriever] = {}
        for retriever in retrievers:
            self.add(retriever)

    def add(self, retriever: Retriever) -> None:
        """Register it. Raises: ConfigurationError for anything else than a Retriever."""
        if not isinstance(retriever, Retriever):
            raise ConfigurationError(f"not a ragtrace.probes.Retriever: {type(retriever).__name__}")
        self._by_name[retriever.name] = retriever

    def find(self, name: str) -> Retriever | None:
        """The one of that name; None when it is not registered."""
        return self._by_name.get(name)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._by_name)

    def __iter__(self) -> Iterator[Retriever]:
        return iter(self._by_name.values())

    def __bool__(self) -> bool:
        return bool(self._by_name)
