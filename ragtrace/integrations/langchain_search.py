"""LangChain's searches: retrievers, the stores they ask, and retrievers that join what others found."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ragtrace.integrations import langchain_ingest
from ragtrace.integrations.langchain_names import index_of, name_of
from ragtrace.integrations.steps import Call, Step, Surroundings, begin, surroundings, tell
from ragtrace.recording.runs import Run

__all__ = ["gather", "rank_fusion", "retriever", "rewrite", "store_method", "unique_union"]


class Search:
    """What a store was seen to look at while a retriever waited for it."""

    def __init__(self, store: Any) -> None:
        self.store = store
        self.scores: dict[int, float] = {}
        self.most: list[Any] = []
        """The longest list it looked at."""
        self._alive: list[Any] = []

    def take(self, result: Any) -> None:
        """Note (document, score, …) rows; what is none says nothing."""
        if not isinstance(result, list) or not all(isinstance(row, tuple) and len(row) > 1 for row in result):
            return
        self._alive.append(result)
        for row in result:
            try:
                self.scores[id(row[0])] = float(row[1])
            except (TypeError, ValueError):
                return
        if len(result) > len(self.most):
            self.most = [row[0] for row in result]


_search: ContextVar[Search | None] = ContextVar("ragtrace_langchain_search", default=None)
_gathered: ContextVar[list[Any] | None] = ContextVar("ragtrace_langchain_gathered", default=None)
"""What the retrievers inside a retriever of retrievers returned, where it has no method of its own that joins them."""


# ------------------------------------------------------------------------------------------------ retrievers

# These ask others and join what comes; the joining is a door of its own, or told when they end.
_OF_OTHERS = frozenset(
    ("EnsembleRetriever", "MultiQueryRetriever", "ContextualCompressionRetriever", "RePhraseQueryRetriever")
)


def retriever(call: Call) -> Any:
    """A retriever's search; one that only asks others is none of its own."""
    retriever = call.object
    names = {kind.__name__ for kind in type(retriever).__mro__}
    if names & _OF_OTHERS:
        return None
    if "MergerRetriever" in names:
        return _joining(call, "fuse")
    if "MultiVectorRetriever" in names:
        return _joining(call, "expand")
    settings = getattr(retriever, "search_kwargs", None)
    said: Mapping[str, Any] = {**(settings if isinstance(settings, dict) else {}), **call.kwargs}
    if "VectorStoreRetriever" in names:
        store = retriever.vectorstore
        search = Search(store)
        run = _searching(call, store, said, retriever.search_type)
        return None if run is None else surroundings(_search, search, Step(run, _told_by(search)))
    run = begin(
        "retrieve",
        name_of(retriever, call.value("config")),
        call,
        query=call.value("input"),
        mode="lexical" if names & {"BM25Retriever", "TFIDFRetriever", "ElasticSearchBM25Retriever"} else None,
        k=said.get("k", getattr(retriever, "k", getattr(retriever, "top_k", None))),
        filter=said.get("filter"),
    )
    return None if run is None else Step(run, _output)


def _joining(call: Call, kind: str) -> Any:
    """A retriever whose own part begins when those inside it have answered: recorded then, with what they returned."""
    found: list[Any] = []
    name = name_of(call.object, call.value("config"))

    def done(result: Any) -> None:
        run = begin(kind, name, None, inputs=found)
        if run is not None:
            rows = langchain_ingest.parents(call.object, found, result) if kind == "expand" else None
            tell(run, result, rows)
            gather(result)
            run.exit(None)

    return Surroundings(_gathered, found, done)


def gather(result: Any) -> None:
    """Note what a stage inside a retriever of retrievers returned."""
    found = _gathered.get()
    if found is not None and isinstance(result, list):
        found.append(result)


def _output(run: Run, result: Any) -> None:
    tell(run, result)
    gather(result)


def store_method(call: Call) -> Any:
    """A store's search: inside one that is recorded it tells scores, by itself it is a stage."""
    store, search = call.object, _search.get()
    if search is not None and search.store is store:
        return Surroundings(_search, search, search.take)
    if call.name.startswith("_"):
        return None
    search = Search(store)
    run = _searching(call, store, call.kwargs, "mmr" if "marginal" in call.name else "similarity")
    return None if run is None else surroundings(_search, search, Step(run, _told_by(search)))


def _searching(call: Call, store: Any, said: Mapping[str, Any], search_type: str) -> Run | None:
    threshold = said.get("score_threshold")
    is_relevance = search_type == "similarity_score_threshold" or "relevance" in call.name
    kind, is_higher = _scores_of(store) if not is_relevance else ("similarity", True)
    return begin(
        "retrieve",
        name_of(call.object, call.value("config")),
        call,
        query=call.value("input", "query"),
        mode=_mode_of(store),
        k=said.get("k", call.value("k") or 4),
        threshold=threshold if is_relevance else None,
        score_kind=kind,
        higher_is_better=is_higher,
        index=index_of(store),
        filter=said.get("filter"),
        search_type=search_type,
    )


def _told_by(search: Search) -> Callable[[Run, Any], None]:
    def told(run: Run, result: Any) -> None:
        search.take(result)
        documents = [row[0] if isinstance(row, tuple) else row for row in result]
        scored = [(document, search.scores.get(id(document))) for document in documents]
        tell(run, result, scored if any(score is not None for _, score in scored) else None)
        gather(result)
        if len(search.most) > len(documents):
            run.considered([(document, search.scores[id(document)]) for document in search.most])

    return told


def _mode_of(store: Any) -> str:
    return "exact" if type(store).__name__ in ("InMemoryVectorStore", "SKLearnVectorStore") else "ann"


def _scores_of(store: Any) -> tuple[str | None, bool | None]:
    """Kind of the store's own score and whether higher is better; unknown for most."""
    return {
        "InMemoryVectorStore": ("similarity", True),
        "Chroma": ("distance", False),
        "PGVector": ("distance", False),
    }.get(type(store).__name__, (None, None))


# ------------------------------------------------------------------------------------------------ joining


def rank_fusion(call: Call) -> Any:
    """The reciprocal rank fusion of an ensemble, with the scores that it hides."""
    retriever, lists = call.object, call.value("doc_lists")
    run = begin(
        "fuse",
        name_of(retriever, None),
        call,
        inputs=[lists],
        score_kind="rrf",
        higher_is_better=True,
        c=getattr(retriever, "c", None),
        weights=tuple(getattr(retriever, "weights", ())),
    )
    if run is None:
        return None
    defined_in = next(kind for kind in type(retriever).__mro__ if call.name in vars(kind))
    scores = _reciprocal_ranks(retriever, lists) if defined_in.__name__ == "EnsembleRetriever" else None

    def told(run: Run, result: Any) -> None:
        rows = None if scores is None else [(document, scores.get(_key(retriever, document))) for document in result]
        tell(run, result, rows)
        gather(result)

    return Step(run, told)


def _reciprocal_ranks(retriever: Any, lists: Sequence[Sequence[Any]]) -> dict[Any, float]:
    """The scores that the fusion orders by and does not return, summed in its order."""
    scores: dict[Any, float] = {}
    for documents, weight in zip(lists, retriever.weights, strict=False):
        for rank, document in enumerate(documents, start=1):
            key = _key(retriever, document)
            scores[key] = scores.get(key, 0.0) + weight / (rank + retriever.c)
    return scores


def _key(retriever: Any, document: Any) -> Any:
    name = getattr(retriever, "id_key", None)
    return document.page_content if name is None else document.metadata[name]


def unique_union(call: Call) -> Any:
    """What several queries found, each document once."""
    run = begin("fuse", name_of(call.object, None), call, inputs=[call.value("documents")])
    return None if run is None else Step(run, _output)


def rewrite(call: Call) -> Any:
    """The queries that are asked instead."""
    run = begin("rewrite", name_of(call.object, None), call)
    return None if run is None else Step(run, tell)
