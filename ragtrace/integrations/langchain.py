"""LangChain and LangGraph: which methods are doors, and what each of them means.

Retrievers, stores, compressors, models and runs here; loaders, splitters and writes in `langchain_ingest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from contextvars import ContextVar
from importlib import import_module
from typing import Any

from ragtrace.integrations import langchain_ingest
from ragtrace.integrations.langchain_names import index_of, name_of, question_of
from ragtrace.integrations.patching import Patches
from ragtrace.integrations.steps import (
    Call,
    Door,
    Step,
    Surroundings,
    begin,
    own_query,
    prompt_text,
    surroundings,
    tell,
)
from ragtrace.model import Candidate
from ragtrace.recording import context
from ragtrace.recording.runs import Run

__all__ = ["SUPPORTED", "patch", "restore"]

SUPPORTED = (("langchain-core", "0.3.41", "1.9"),)
"""Distribution, the oldest version that was tried, and the first one that was not."""

_patches = Patches()

Begin = Callable[[Call], Any]


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


class Scoring:
    """The scores a cross encoder gave while a reranker waited for it."""

    def __init__(self, documents: Sequence[Any]) -> None:
        self.documents = list(documents)
        self.scores: list[float] | None = None

    def take(self, result: Any) -> None:
        """Keep them, when there is one for each document."""
        try:
            scores = [float(score) for score in result]
        except (TypeError, ValueError):
            return
        if len(scores) == len(self.documents):
            self.scores = scores


_search: ContextVar[Search | None] = ContextVar("ragtrace_langchain_search", default=None)
_scoring: ContextVar[Scoring | None] = ContextVar("ragtrace_langchain_scoring", default=None)
_gathered: ContextVar[list[Any] | None] = ContextVar("ragtrace_langchain_gathered", default=None)
"""What the retrievers inside a retriever of retrievers returned, where it has no method of its own that joins them."""


# ------------------------------------------------------------------------------------------------ retrievers

# These ask others and join what comes; the joining is a door of its own, or told when they end.
_OF_OTHERS = frozenset(
    ("EnsembleRetriever", "MultiQueryRetriever", "ContextualCompressionRetriever", "RePhraseQueryRetriever")
)


def _retriever(call: Call) -> Any:
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
            _gather(result)
            run.exit(None)

    return Surroundings(_gathered, found, done)


def _gather(result: Any) -> None:
    found = _gathered.get()
    if found is not None and isinstance(result, list):
        found.append(result)


def _output(run: Run, result: Any) -> None:
    tell(run, result)
    _gather(result)


def _store_method(call: Call) -> Any:
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
        _gather(result)
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


def _rank_fusion(call: Call) -> Any:
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
        _gather(result)

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


def _unique_union(call: Call) -> Any:
    run = begin("fuse", name_of(call.object, None), call, inputs=[call.value("documents")])
    return None if run is None else Step(run, _output)


def _rewrite(call: Call) -> Any:
    run = begin("rewrite", name_of(call.object, None), call)
    return None if run is None else Step(run, tell)


# ------------------------------------------------------------------------------------------------ compressors


def _compressor(call: Call) -> Any:
    compressor = call.object
    if any(kind.__name__ == "DocumentCompressorPipeline" for kind in type(compressor).__mro__):
        return None
    return _on_documents(call, _kind_of(compressor))


def _kind_of(compressor: Any) -> str:
    names = " ".join(kind.__name__ for kind in type(compressor).__mro__)
    if "Rerank" in names or "Reorder" in names:
        return "rerank"
    return "filter" if "Filter" in names else "compress"


def _on_documents(call: Call, kind: str) -> Any:
    compressor, documents = call.object, call.value("documents")
    if not isinstance(documents, list):
        documents = list(documents) if isinstance(documents, tuple) else None
    run = begin(
        kind,
        name_of(compressor, None),
        call,
        query=call.value("query"),
        inputs=[] if documents is None else [documents],
        k=getattr(compressor, "top_n", getattr(compressor, "k", None)),
        threshold=getattr(compressor, "similarity_threshold", None),
    )
    if run is None:
        return None
    scoring = Scoring(documents or [])

    def told(run: Run, result: Any) -> None:
        rows = None
        if scoring.scores is not None:
            scores = {id(one): score for one, score in zip(scoring.documents, scoring.scores, strict=True)}
            rows = [(document, scores.get(id(document))) for document in result]
            run.considered(list(zip(scoring.documents, scoring.scores, strict=True)))
        elif kind == "compress":
            rows = _pieces(documents or [], result)
        tell(run, result, rows)
        _gather(result)

    return surroundings(_scoring, scoring, Step(run, told))


def _pieces(documents: Sequence[Any], result: Sequence[Any]) -> list[Any] | None:
    """Pieces that were cut out of documents, under the ids of these; None when they are the documents, or none are."""
    if all(any(one is document for document in documents) for one in result):
        return None
    rows = []
    for one in result:
        of = next((d for d in documents if d is one or (d.id is not None and d.id == one.id)), None)
        of = of or next(
            (d for d in documents if d.metadata == one.metadata and one.page_content in d.page_content), None
        )
        if of is None or of.id is None:
            return None
        rows.append(Candidate(of.id, text=one.page_content))
    return rows


def _cross_encoder(call: Call) -> Any:
    scoring = _scoring.get()
    return None if scoring is None else Surroundings(_scoring, scoring, scoring.take)


def _transformer(call: Call) -> Any:
    """A transformer of documents: inside a query a stage of its kind, outside the splitters' own business."""
    around = context.current.get()
    if around is None or around.query is None or around.query.is_ended or around.document is not None:
        return None
    return _on_documents(call, _kind_of(call.object))


# ------------------------------------------------------------------------------------------------ models


def _model(call: Call) -> Any:
    """A model's call in a query. Inside a stage it is that stage's own business."""
    around = context.current.get()
    if around is None or around.query is None or around.query.is_ended or isinstance(around, Run):
        return None
    config = call.value("config")
    tags = config.get("tags") if isinstance(config, dict) else None
    tags = tags if isinstance(tags, (list, tuple)) else ()
    is_answer = "ragtrace:answer" in tags
    run = begin(
        "generate",
        name_of(call.object, config),
        call,
        inputs=[prompt_text(call.value("input"))],
        answer=is_answer or None,
    )
    if run is None:
        return None
    # Before anything was found no answer can rest on it: a router, or a rewrite.
    if "ragtrace:aside" in tags or not (is_answer or any(one.ids for one in around.query.outputs)):
        run.is_aside = True
    is_structured = "ls_structured_output_format" in call.kwargs

    def told(run: Run, result: Any) -> None:
        messages = result if isinstance(result, list) else [result]
        if not is_answer and not is_structured and any(getattr(one, "tool_calls", None) for one in messages):
            run.is_aside = True  # it asks for a tool, and answers nothing

    return Step(run, told)


# ------------------------------------------------------------------------------------------------ runs


def _run(call: Call) -> Any:
    config = call.value("config")
    config = config if isinstance(config, dict) else {}
    metadata, configurable = config.get("metadata") or {}, config.get("configurable") or {}
    return own_query(question_of(call.value("input")), metadata.get("question_id"), configurable.get("thread_id"))


# ------------------------------------------------------------------------------------------------ doors

_RETRIEVER = {
    "invoke": _retriever,
    "ainvoke": _retriever,
    "weighted_reciprocal_rank": _rank_fusion,
    "unique_union": _unique_union,
    "generate_queries": _rewrite,
    "agenerate_queries": _rewrite,
    "_split_docs_for_adding": langchain_ingest.split_for_adding,
    "add_documents": langchain_ingest.add_to_retriever,
    "aadd_documents": langchain_ingest.add_to_retriever,
}
_COMPRESSOR = {"compress_documents": _compressor, "acompress_documents": _compressor}
_TRANSFORMER = {
    "transform_documents": _transformer,
    "atransform_documents": _transformer,
    "split_documents": langchain_ingest.split,
    "create_documents": langchain_ingest.split,
    "split_text": langchain_ingest.split,
}
_MODEL = dict.fromkeys(("invoke", "ainvoke", "stream", "astream"), _model)
_RUN = dict.fromkeys(("invoke", "ainvoke", "stream", "astream"), _run)
_RUNNABLES = frozenset(("RunnableSequence", "RunnableParallel", "RunnableLambda", "RunnableAssign", "Pregel"))


def _door(begins: Mapping[str, Begin]) -> Callable[[type, str], Door | None]:
    def door(kind: type, name: str) -> Door | None:
        return Door(_patches, begins[name]) if name in begins else None

    return door


def _store_door(kind: type, name: str) -> Door | None:
    if name in langchain_ingest.WRITES:
        return Door(_patches, langchain_ingest.write)
    word = name.lstrip("_")
    word = word[1:] if word.startswith("a") else word
    is_search = word.startswith(("similarity_search", "max_marginal_relevance_search"))
    return Door(_patches, _store_method) if is_search else None


def _runnable_door(kind: type, name: str) -> Door | None:
    return Door(_patches, _run) if kind.__name__ in _RUNNABLES and name in _RUN else None


# The class moved into the core in the versions that were tried.
_CROSS_ENCODERS = (
    "langchain_core.cross_encoders",
    "langchain_classic.retrievers.document_compressors.cross_encoder",
    "langchain.retrievers.document_compressors.cross_encoder",
)


def patch() -> None:
    """Wrap the doors. Raises what importing LangChain raises."""
    from langchain_core.document_loaders import BaseLoader
    from langchain_core.documents import BaseDocumentCompressor, BaseDocumentTransformer
    from langchain_core.language_models import BaseChatModel, BaseLLM
    from langchain_core.retrievers import BaseRetriever
    from langchain_core.runnables import Runnable
    from langchain_core.vectorstores import VectorStore

    _patches.is_on = True
    _patches.follow(Runnable, _runnable_door)
    _patches.follow(BaseRetriever, _door(_RETRIEVER))
    _patches.follow(VectorStore, _store_door)
    _patches.follow(BaseDocumentCompressor, _door(_COMPRESSOR))
    _patches.follow(BaseDocumentTransformer, _door(_TRANSFORMER))
    for module in _CROSS_ENCODERS:
        with suppress(ImportError):
            _patches.follow(import_module(module).BaseCrossEncoder, _door({"score": _cross_encoder}))
            break
    _patches.follow(BaseLoader, _door({"load": langchain_ingest.load, "aload": langchain_ingest.load}))
    _patches.follow(BaseChatModel, _door(_MODEL))
    _patches.follow(BaseLLM, _door(_MODEL))


def restore() -> None:
    """Leave the classes as they were found."""
    _patches.restore()
