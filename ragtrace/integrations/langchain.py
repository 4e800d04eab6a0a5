"""LangChain and LangGraph: which methods are doors, and what each of them means.

Models and runs here; searches in `langchain_search`, compressors in `langchain_rerank`, loaders, splitters and writes in
`langchain_ingest`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from importlib import import_module
from typing import Any

from ragtrace.integrations import langchain_ingest, langchain_rerank, langchain_search
from ragtrace.integrations.langchain_names import name_of, question_of
from ragtrace.integrations.patching import Patches
from ragtrace.integrations.steps import (
    Call,
    Door,
    Step,
    begin,
    own_query,
    prompt_text,
)
from ragtrace.recording import context
from ragtrace.recording.runs import Run

__all__ = ["SUPPORTED", "patch", "restore"]

SUPPORTED = (("langchain-core", "0.3.41", "1.9"),)
"""Distribution, the oldest version that was tried, and the first one that was not."""

_patches = Patches()

Begin = Callable[[Call], Any]


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
    "invoke": langchain_search.retriever,
    "ainvoke": langchain_search.retriever,
    "weighted_reciprocal_rank": langchain_search.rank_fusion,
    "unique_union": langchain_search.unique_union,
    "generate_queries": langchain_search.rewrite,
    "agenerate_queries": langchain_search.rewrite,
    "_split_docs_for_adding": langchain_ingest.split_for_adding,
    "add_documents": langchain_ingest.add_to_retriever,
    "aadd_documents": langchain_ingest.add_to_retriever,
}
_COMPRESSOR = {"compress_documents": langchain_rerank.compressor, "acompress_documents": langchain_rerank.compressor}
_TRANSFORMER = {
    "transform_documents": langchain_rerank.transformer,
    "atransform_documents": langchain_rerank.transformer,
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
    return Door(_patches, langchain_search.store_method) if is_search else None


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
            _patches.follow(import_module(module).BaseCrossEncoder, _door({"score": langchain_rerank.cross_encoder}))
            break
    _patches.follow(BaseLoader, _door({"load": langchain_ingest.load, "aload": langchain_ingest.load}))
    _patches.follow(BaseChatModel, _door(_MODEL))
    _patches.follow(BaseLLM, _door(_MODEL))


def restore() -> None:
    """Leave the classes as they were found."""
    _patches.restore()
