"""Which questions one missed retrieve run is asked, and in which order: as few as prove a reason."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

from ragtrace.probes.asking import Asker, Missed
from ragtrace.probes.retrievers import Retriever

__all__ = ["Outcome", "Wanted", "ask_again", "possible"]


class Wanted(NamedTuple):
    """What is known before asking; without `ids` nothing is looked for, and every question is asked."""

    ids: Sequence[str] = ()
    """Chunks that hold what was lost."""
    given: Collection[str] | None = None
    """What the recorded run returned; None when that is not known in full."""
    done: Collection[str] = ()
    """Probes that count and need not be asked again."""


class Outcome(NamedTuple):
    """What became of one run."""

    probes: Sequence[str]
    """The probes that were asked, the control question included."""
    void: str | None = None
    """Why the index is not known to be the one of then: index_version, answers_differ, unknown_version, failed (it could
    not be asked); None when it is."""


class _Series:
    """The questions of one run."""

    def __init__(self, asker: Asker, missed: Missed, retriever: Retriever, wanted: Wanted) -> None:
        self.asker = asker
        self.missed = missed
        self.retriever = retriever
        self.wanted = wanted
        self.asked: list[str] = []
        self.version = asker.version(retriever)
        self.k = missed.k if missed.k is not None else len(wanted.given or ()) or None

    def void(self) -> str | None:
        """Why nothing can be proved any more; None when it can. Asks the control question where no version is declared."""
        missed, then = self.missed, self.missed.index_version
        if then is not None and self.version is not None:
            return None if then == self.version else "index_version"
        if self.retriever.search is None or self.k is None:
            return "unknown_version"
        answer = self.asker.search(
            missed, self.retriever, "again", self.retriever.search,
            query=missed.query, k=self.k, filter=missed.filter, version=self.version,
        )  # fmt: skip
        self.asked.append("again")
        if not answer.is_ok:
            return "failed"
        if self.wanted.given is None:
            return None  # in a service nobody has waited: the store compares
        return None if set(answer.ids) == set(self.wanted.given) else "answers_differ"

    def rank(self, probe: str, *, query: str | None = None, is_filtered: bool = True) -> int | None:
        """The rank by which everything that is wanted is there, None when it is not; asks only what was not asked yet."""
        missed, retriever = self.missed, self.retriever
        exact = retriever.exact if probe != "deeper" else None
        ask = exact or retriever.search
        if ask is None or probe in self.wanted.done:
            return None
        answer = self.asker.search(
            missed, retriever, probe, ask,
            query=missed.query if query is None else query,
            k=retriever.max_k,
            filter=missed.filter if is_filtered else None,
            is_exact=exact is not None,
            version=self.version,
        )  # fmt: skip
        self.asked.append(probe)
        # Of several chunks that hold parts of it the last one decides; those that came back anyway do not count.
        ranks = {name: rank for rank, name in reversed(list(enumerate(answer.ids, 1)))}
        sought = [name for name in self.wanted.ids if name not in (self.wanted.given or ())]
        if not sought or any(name not in ranks for name in sought):
            return None
        return max(ranks[name] for name in sought)

    def is_within_k(self, rank: int | None) -> bool:
        """Whether the search itself should have returned it."""
        return rank is not None and self.k is not None and rank <= self.k

    def ask(self) -> None:
        """Every question until one proves the reason."""
        missed, retriever = self.missed, self.retriever
        rank = self.rank("exact") if retriever.exact is not None else None
        if retriever.exact is None:
            rank = self.rank("deeper")
        if self.is_within_k(rank):
            return
        if rank is None and self.wanted.ids and retriever.get is not None and "by_id" not in self.wanted.done:
            answer = self.asker.get(missed, retriever, self.wanted.ids, self.version)
            self.asked.append("by_id")
            if answer.is_ok and not set(answer.ids) & set(self.wanted.ids):
                return
        if missed.original is not None and retriever.any_query:
            original = self.rank("original_question", query=missed.original)
            if self.is_within_k(original):
                return
        if rank is None and missed.filter is not None and retriever.without_filter:
            self.rank("unfiltered", is_filtered=False)


def possible(missed: Missed, retriever: Retriever, ids: Sequence[str]) -> set[str]:
    """The probes that may be asked of one run, the control question apart."""
    can_search = retriever.exact is not None or retriever.search is not None
    return {
        probe
        for probe, is_possible in (
            ("exact", retriever.exact is not None),
            ("deeper", retriever.exact is None and retriever.search is not None),
            ("by_id", retriever.get is not None and bool(ids)),
            ("original_question", can_search and missed.original is not None and retriever.any_query),
            ("unfiltered", can_search and missed.filter is not None and retriever.without_filter),
        )
        if is_possible
    }


def ask_again(asker: Asker, missed: Missed, retriever: Retriever, wanted: Wanted) -> Outcome:
    """Ask one retriever again and record the answers. Never raises for what the retriever does."""
    series = _Series(asker, missed, retriever, wanted)
    void = series.void()
    if void is None:
        series.ask()
    return Outcome(series.asked, void)
