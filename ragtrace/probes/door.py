"""`rt.probe`: register what can be asked again, and ask it."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from ragtrace.errors import ConfigurationError
from ragtrace.probes.retrievers import MAX_K, Get, Retriever, Retrievers, Search
from ragtrace.progress import Progress

if TYPE_CHECKING:
    from ragtrace.probes.live import Sampler
    from ragtrace.probes.stored import Probed

__all__ = ["Probe", "probe"]


class Probe:
    """`rt.probe(store)` asks registered retrievers again for what stored queries lost; `rt.probe.register` names them."""

    def __init__(self) -> None:
        self.retrievers = Retrievers()
        """What was registered in this process."""
        self._sampler: Sampler | None = None

    def register(
        self,
        name: str,
        *,
        search: Search | None = None,
        exact: Search | None = None,
        get: Get | None = None,
        index_version: Callable[[], str | int] | None = None,
        without_filter: bool = False,
        any_query: bool = True,
        max_k: int = MAX_K,
        extract: Callable[[Any], Any] | None = None,
    ) -> Retriever:
        """Name what the retriever of a retrieve stage can be asked; a second call under the name replaces the first.

        `search(query, k, filter)` is the service's own search, `exact` the same ranking over every chunk, `get(ids)`
        gives the chunks that are there, `index_version()` the state of the index. `without_filter` and `any_query` say
        what may be asked of them.

        Raises: ConfigurationError for a wrong type, and when none of search, exact and get is given.
        """
        retriever = Retriever(
            name, search, exact, get, index_version, without_filter, any_query, max_k, extract
        )  # fmt: skip
        self.retrievers.add(retriever)
        return retriever

    def __call__(
        self,
        store: str | os.PathLike[str],
        retrievers: Iterable[Retriever] | None = None,
        *,
        run: str | None = None,
        n_calls: int | None = None,
        seconds: float | None = None,
        progress: Progress | None = None,
    ) -> Probed:
        """Ask again for what the store's queries lost without proof of why; the answers are in the store afterwards.

        `retrievers` are those registered unless given. At most `n_calls` calls begin, none after `seconds`; a run that
        was begun is asked to its end. `progress` is called with what is done, how many, of how many. Not for the
        request's path: it opens the store.

        Raises: ConfigurationError when no retriever is known; StoreError when the store cannot be used.
        """
        from ragtrace.probes.stored import ask_stored  # loads the database

        known = self.retrievers if retrievers is None else Retrievers(retrievers)
        if not known:
            raise ConfigurationError("no retriever is registered: call ragtrace.probe.register(name, search=…) first")
        return ask_stored(os.fspath(store), known, run=run, n_calls=n_calls, seconds=seconds, progress=progress)

    def sample(self, share: float = 0.01, *, calls_per_minute: float = 60.0) -> None:
        """Ask again for a share of the searches of this process, in the background, after their queries have ended.

        The registered retrievers are asked; a second call replaces the first. A thread begins with the first search
        that the lot falls on, in a forked child anew. It asks at most `calls_per_minute`, never waits for a query, and
        what it cannot take in time it leaves out. Needs `configure`.

        Raises: ConfigurationError for a share outside of 0 and 1, or calls_per_minute not above 0.
        """
        if not 0 <= share <= 1:
            raise ConfigurationError(f"share must be between 0 and 1, not {share}", argument="share")
        if not calls_per_minute > 0:
            raise ConfigurationError("calls_per_minute must be above 0", argument="calls_per_minute")
        from ragtrace.probes import live  # loads the recorder

        self.stop()
        self._sampler = live.Sampler(self.retrievers, share, calls_per_minute)
        live.watch(self._sampler)

    def stop(self, timeout_s: float = 1.0) -> bool:
        """Sample no more; false when a question that is being asked takes longer than `timeout_s`. Never raises."""
        sampler, self._sampler = self._sampler, None
        if sampler is None:
            return True
        from ragtrace.probes import live  # it is loaded already

        live.watch(None)
        return sampler.stop(timeout_s)


probe = Probe()
