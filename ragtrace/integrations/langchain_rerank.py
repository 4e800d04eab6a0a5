"""LangChain's compressors: rerankers, filters, extractors, and the cross encoders that score for them."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from ragtrace.integrations.langchain_names import name_of
from ragtrace.integrations.langchain_search import gather
from ragtrace.integrations.steps import Call, Step, Surroundings, begin, surroundings, tell
from ragtrace.model import Candidate
from ragtrace.recording import context
from ragtrace.recording.runs import Run

__all__ = ["compressor", "cross_encoder", "transformer"]


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


_scoring: ContextVar[Scoring | None] = ContextVar("ragtrace_langchain_scoring", default=None)


# ------------------------------------------------------------------------------------------------ compressors


def compressor(call: Call) -> Any:
    """A compressor's work on documents; those in a pipeline of them are told one by one."""
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
        gather(result)

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


def cross_encoder(call: Call) -> Any:
    """A cross encoder's scores, for the reranker that waits for them."""
    scoring = _scoring.get()
    return None if scoring is None else Surroundings(_scoring, scoring, scoring.take)


def transformer(call: Call) -> Any:
    """A transformer of documents: inside a query a stage of its kind, outside the splitters' own business."""
    around = context.current.get()
    if around is None or around.query is None or around.query.is_ended or around.document is not None:
        return None
    return _on_documents(call, _kind_of(call.object))
