"""LlamaIndex: readers, node parsers, stores, retrievers, postprocessors, synthesizers and models as stages."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextvars import ContextVar
from typing import Any

from ragtrace.integrations.patching import Patches
from ragtrace.integrations.sources import Part, chunked, indexed, parsed, source_of
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
from ragtrace.recording import candidates, context, texts
from ragtrace.recording.runs import Run

__all__ = ["SUPPORTED", "patch", "restore"]

SUPPORTED = (("llama-index-core", "0.12.5", "0.15"),)
"""Distribution, the oldest version that was tried, and the first one that was not."""

_patches = Patches()

_gathered: ContextVar[list[Any] | None] = ContextVar("ragtrace_llama_gathered", default=None)
"""What the retrievers inside a retriever of retrievers returned."""
_fused: ContextVar[list[Any] | None] = ContextVar("ragtrace_llama_fused", default=None)
"""All that a fusion ordered, before it is cut."""
_prompts: ContextVar[list[str] | None] = ContextVar("ragtrace_llama_prompts", default=None)
"""What a model was given to read inside a synthesizer."""
_busy: ContextVar[bool] = ContextVar("ragtrace_llama_busy", default=False)
"""Whether a reader, parser or store is inside another one of its kind."""


# ------------------------------------------------------------------------------------------------ nodes


def _doc_id(node: Any) -> str | None:
    """The source that the metadata names, else the document's own id."""
    read = candidates.read([{"text": "", "metadata": dict(getattr(node, "metadata", None) or {})}])
    named = read.doc_id[0] if read is not None and read.doc_id else None
    return named or getattr(node, "ref_doc_id", None) or getattr(node, "id_", None)


def _text(node: Any) -> str:
    text = getattr(node, "text", None)
    return text if isinstance(text, str) else ""


def _part(node: Any) -> Part:
    start = getattr(node, "start_char_idx", None)
    return Part(
        node,
        _text(node),
        _doc_id(node),
        getattr(node, "id_", None),
        start if isinstance(start, int) else None,
        is_start_exact=True,
    )


def _row(scored: Any) -> Any:
    """A node with a score as a candidate: in place where the place is still that of its text."""
    node = getattr(scored, "node", scored)
    chunk_id, text = getattr(node, "id_", None), _text(node)
    if chunk_id is None:
        return scored
    source = source_of(node, chunk_id)
    score = getattr(scored, "score", None)
    ranges = () if source is None else source.ranges
    if source is None and "page_label" not in (getattr(node, "metadata", None) or {}):
        start, end = getattr(node, "start_char_idx", None), getattr(node, "end_char_idx", None)
        ranges = ((start, end),) if isinstance(start, int) and isinstance(end, int) else ()
    if sum(end - start for start, end in ranges) != len(text):
        # A window was put in the sentence's place.
        ranges = () if source is None else source.stands_for
    return Candidate(
        chunk_id,
        float(score) if isinstance(score, (int, float)) else None,
        doc_id=_doc_id(node) if source is None else source.text.doc_id,
        ranges=ranges,
        text=text or None,
    )


def _tell_nodes(run: Run, result: Any) -> None:
    tell(run, result, [_row(node) for node in result] if isinstance(result, list) else None)
    _gather(result)


def _gather(result: Any) -> None:
    found = _gathered.get()
    if found is not None and isinstance(result, list):
        found.append(list(result))


# ------------------------------------------------------------------------------------------------ retrievers


def _question(value: Any) -> Any:
    return getattr(value, "query_str", value)


def _names(thing: Any) -> set[str]:
    return {kind.__name__ for kind in type(thing).__mro__}


def _retriever(call: Call) -> Any:
    retriever = call.object
    names = _names(retriever)
    question = _question(call.value("str_or_query_bundle"))
    k = getattr(retriever, "similarity_top_k", getattr(retriever, "_similarity_top_k", None))
    if "QueryFusionRetriever" in names:
        return _joining(call, "fuse", k=k, mode_of_fusion=str(getattr(retriever, "mode", "")).split(".")[-1])
    if "AutoMergingRetriever" in names:
        return _joining(call, "expand")
    store = getattr(retriever, "_vector_store", None)
    filters: Any = getattr(retriever, "_filters", None)
    run = begin(
        "retrieve",
        type(retriever).__name__,
        call,
        query=question,
        mode=_mode_of(retriever, store, names),
        k=k,
        index=None if store is None else _index_of(store),
        filter=filters.model_dump() if hasattr(filters, "model_dump") else None,
    )
    return None if run is None else Step(run, _tell_nodes)


def _mode_of(retriever: Any, store: Any, names: set[str]) -> str | None:
    if names & {"BM25Retriever", "KeywordTableSimpleRetriever"}:
        return "lexical"
    if store is None:
        return None
    asked = str(getattr(getattr(retriever, "_vector_store_query_mode", None), "value", ""))
    if asked in ("sparse", "text_search"):
        return "lexical"
    if "hybrid" in asked:
        return "hybrid"
    return "exact" if type(store).__name__ == "SimpleVectorStore" else "ann"


def _index_of(store: Any) -> str:
    for attribute in ("collection_name", "_collection_name", "index_name", "table_name"):
        name = getattr(store, attribute, None)
        if isinstance(name, str) and name:
            return name
    return type(store).__name__


def _joining(call: Call, kind: str, **values: Any) -> Any:
    """A retriever whose own part begins when those inside it have answered: recorded then, with what they returned."""
    found: list[Any] = []
    fused: list[Any] = []
    name = type(call.object).__name__

    def done(result: Any) -> None:
        run = begin(kind, name, None, inputs=[[_row(node) for node in one] for one in found], **values)
        if run is not None:
            if isinstance(result, list) and len(fused) > len(result):
                run.considered(fused)
            _tell_nodes(run, result)
            run.exit(None)

    return surroundings(_gathered, found, Surroundings(_fused, fused, done))


def _fusion(call: Call) -> Any:
    fused = _fused.get()
    if fused is None:
        return None

    def done(result: Any) -> None:
        fused[:] = [_row(node) for node in result]  # of an override that calls its super the outer one is last

    return Surroundings(_fused, fused, done)


def _rewrite(call: Call) -> Any:
    run = begin("rewrite", type(call.object).__name__, call)
    if run is None:
        return None
    return Step(run, lambda run, result: tell(run, [_question(query) for query in result]))


# ------------------------------------------------------------------------------------------------ postprocessors


def _postprocessor(call: Call) -> Any:
    nodes, asked = call.value("nodes"), call.value("query_str", "query_bundle")
    if not isinstance(nodes, list):
        return None
    thing = call.object
    run = begin(
        _kind_of(thing),
        type(thing).__name__,
        call,
        query=_question(asked),
        inputs=[[_row(node) for node in nodes]],
        k=getattr(thing, "top_n", None),
        threshold=getattr(thing, "similarity_cutoff", None),
    )
    return None if run is None else Step(run, _tell_nodes)


def _kind_of(thing: Any) -> str:
    names = " ".join(kind.__name__ for kind in type(thing).__mro__)
    if any(word in names for word in ("Rerank", "RankGPT", "Reorder", "TimeWeighted")):
        return "rerank"
    if any(word in names for word in ("Replacement", "PrevNext")):
        return "expand"
    is_filter = any(word in names for word in ("Filter", "Similarity", "Keyword", "Recency", "Cutoff", "Dedup"))
    return "filter" if is_filter else "compress"


# ------------------------------------------------------------------------------------------------ answers


def _synthesizer(call: Call) -> Any:
    nodes = call.value("nodes")
    if not isinstance(nodes, list) or context.current.get() is None or isinstance(context.current.get(), Run):
        return None
    # This one cuts what does not fit into the window: what counts is what the model was given.
    is_cutting = "SimpleSummarize" in _names(call.object)
    run = begin(
        "generate",
        type(call.object).__name__,
        call,
        inputs=[] if is_cutting or not nodes else [[_row(node) for node in nodes]],
    )
    if run is None:
        return None
    prompts: list[str] = []

    def told(run: Run, result: Any) -> None:
        if is_cutting and prompts:
            run.input("\n".join(prompts))

    return surroundings(_prompts, prompts, Step(run, told))


def _model(call: Call) -> Any:
    """A model's call in a query. Inside a stage it is that stage's own business."""
    text = prompt_text(call.value("prompt", "messages"))
    prompts = _prompts.get()
    if prompts is not None:
        prompts.append(text)
    around = context.current.get()
    if around is None or around.query is None or around.query.is_ended or isinstance(around, Run):
        return None
    run = begin("generate", type(call.object).__name__, call, inputs=[text])
    if run is None:
        return None
    if not any(one.ids for one in around.query.outputs):
        run.is_aside = True  # before anything was found no answer can rest on it
    return Step(run)


def _query(call: Call) -> Any:
    question = _question(call.value("str_or_query_bundle", "message"))
    return own_query(question if isinstance(question, str) else None)


# ------------------------------------------------------------------------------------------------ before the query


def _reader(call: Call) -> Any:
    if _busy.get():
        return None
    name = type(call.object).__name__

    def done(result: Any) -> None:
        if isinstance(result, list):
            parsed(name, [_part(document) for document in result])

    return Surroundings(_busy, True, done)


def _parser(call: Call) -> Any:
    documents = call.value("documents")
    around = context.current.get()
    in_query = around is not None and around.query is not None and around.document is None
    if _busy.get() or in_query or not isinstance(documents, (list, tuple)):
        return None
    documents, name = list(documents), type(call.object).__name__

    def done(result: Any) -> None:
        parts = [_part(document) for document in documents]
        numbers: dict[Any, int] = {}
        for number, document in enumerate(documents):
            for key in (getattr(document, "ref_doc_id", None), getattr(document, "id_", None)):
                if key is not None:
                    numbers.setdefault(key, number)
        pieces = []
        for node in result:
            # The first, for a parser of one's own that says nothing of where its nodes come from.
            number = numbers.get(getattr(node, "ref_doc_id", None), 0)
            pieces.append((_with_window(_part(node), parts, number), number))
        if parts:
            size = getattr(call.object, "chunk_size", None)
            chunked(name, parts, pieces, chunk_size=size)

    return Surroundings(_busy, True, done)


def _with_window(part: Part, parts: Sequence[Part], number: int) -> Part:
    """A sentence with the range of the window that is put in its place later: its text is looked for around it."""
    window = (getattr(part.item, "metadata", None) or {}).get("window")
    source = source_of(parts[number].item)
    if not isinstance(window, str) or part.start is None or (source is None and len(parts) > 1):
        return part
    begin_at = max(0, part.start - len(window))
    around = parts[number].text[begin_at : part.start + len(part.text) + len(window)]
    ((ranges, _),) = texts.place_chunks(around, [(window, None, None)])
    shift = begin_at + (source.ranges[0][0] if source is not None and source.ranges else 0)
    return part._replace(stands_for=tuple((shift + first, shift + last) for first, last in ranges))


def _write(call: Call) -> Any:
    nodes = call.value("nodes")
    if _busy.get() or not isinstance(nodes, (list, tuple)):
        return None
    nodes, name = list(nodes), _index_of(call.object)

    def done(result: Any) -> None:
        parts = [_part(node) for node in nodes]
        indexed(name, name, parts, [part.chunk_id for part in parts])

    return Surroundings(_busy, True, done)


# ------------------------------------------------------------------------------------------------ doors

_FUSIONS = ("_reciprocal_rerank_fusion", "_relative_score_fusion", "_simple_fusion")
_RETRIEVER: dict[str, Callable[[Call], Any]] = {
    "retrieve": _retriever,
    "aretrieve": _retriever,
    "_get_queries": _rewrite,
    "_aget_queries": _rewrite,
    **dict.fromkeys(_FUSIONS, _fusion),
}


def _doors(begins: Mapping[str, Callable[[Call], Any]]) -> Callable[[type, str], Door | None]:
    return lambda kind, name: Door(_patches, begins[name]) if name in begins else None


def _all(names: Sequence[str], begins: Callable[[Call], Any]) -> Callable[[type, str], Door | None]:
    return _doors(dict.fromkeys(names, begins))


def patch() -> None:
    """Wrap the doors. Raises what importing LlamaIndex raises."""
    from llama_index.core.base.base_query_engine import BaseQueryEngine
    from llama_index.core.base.base_retriever import BaseRetriever
    from llama_index.core.base.llms.base import BaseLLM
    from llama_index.core.chat_engine.types import BaseChatEngine
    from llama_index.core.node_parser import NodeParser
    from llama_index.core.postprocessor.types import BaseNodePostprocessor
    from llama_index.core.readers.base import BaseReader
    from llama_index.core.response_synthesizers.base import BaseSynthesizer
    from llama_index.core.vector_stores.types import BasePydanticVectorStore

    _patches.is_on = True
    _patches.follow(BaseReader, _all(("load_data", "aload_data"), _reader))
    _patches.follow(NodeParser, _all(("get_nodes_from_documents", "aget_nodes_from_documents"), _parser))
    _patches.follow(BasePydanticVectorStore, _all(("add", "async_add"), _write))
    _patches.follow(BaseRetriever, _doors(_RETRIEVER))
    _patches.follow(BaseNodePostprocessor, _all(("postprocess_nodes", "apostprocess_nodes"), _postprocessor))
    _patches.follow(BaseSynthesizer, _all(("synthesize", "asynthesize"), _synthesizer))
    names = (
        "complete",
        "acomplete",
        "stream_complete",
        "astream_complete",
        "chat",
        "achat",
        "stream_chat",
        "astream_chat",
    )
    _patches.follow(BaseLLM, _all(names, _model))
    _patches.follow(BaseQueryEngine, _all(("query", "aquery"), _query))
    _patches.follow(BaseChatEngine, _all(("chat", "achat", "stream_chat", "astream_chat"), _query))


def restore() -> None:
    """Leave the classes as they were found."""
    _patches.restore()
