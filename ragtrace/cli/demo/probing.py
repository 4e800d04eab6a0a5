"""The retrievers of the demo, to be asked again: `ragtrace probe demo.duckdb --with ragtrace.cli.demo.probing:retrievers`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ragtrace.cli.demo.chunking import Hit, Passage
from ragtrace.cli.demo.corpus import earlier_pages, pages
from ragtrace.cli.demo.pipeline import Manual
from ragtrace.probes import Retriever

__all__ = ["retrievers"]


def retrievers() -> list[Retriever]:
    """Both retrievers over the same pages in the same order: the graph has the very links it had."""
    manual = Manual()
    for page in [*earlier_pages(), *pages()]:
        manual.add(page)
    manual.build()
    passages = {passage["id"]: passage for passage in manual.passages}

    def get(ids: Sequence[str], /) -> list[Passage]:
        return [passages[name] for name in ids if name in passages]

    return [
        Retriever("bm25", search=_asked(manual.lexical.search), get=get),
        Retriever("hnsw", search=_asked(manual.vectors.search), exact=_asked(manual.vectors.search_exactly), get=get),
    ]


def _asked(search: Callable[[str, int], list[Hit]]) -> Callable[[str, int, Any], list[Hit]]:
    """As probes ask; the demo filters after its search, so there is no filter to hand on."""
    return lambda query, k, _filter: search(query, k)
