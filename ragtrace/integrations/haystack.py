"""Haystack: components as stages, by what they take and put out; a pipeline's run is a query.

Components have no common base class: those that are known are patched, and others when one of them is made.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from contextvars import ContextVar
from typing import Any
from weakref import WeakKeyDictionary

from ragtrace import guard
from ragtrace.integrations.patching import Patches
from ragtrace.integrations.sources import Part, chunked, indexed, parsed, source_of
from ragtrace.integrations.steps import Call, Door, Step, Surroundings, begin, own_query, prompt_text, tell
from ragtrace.model import Candidate
from ragtrace.recording import candidates, context
from ragtrace.recording.runs import Run

__all__ = ["SUPPORTED", "patch", "restore"]

SUPPORTED = (("haystack-ai", "2.8.0", "3.5"),)
"""Distribution, the oldest version that was tried, and the first one that was not."""

_patches = Patches()

_gathered: ContextVar[list[Any] | None] = ContextVar("ragtrace_haystack_gathered", default=None)
"""What the retrievers inside a retriever of retrievers returned."""
_busy: ContextVar[bool] = ContextVar("ragtrace_haystack_busy", default=False)
"""Whether a converter or splitter is inside another one."""

_names: WeakKeyDictionary[Any, str] = WeakKeyDictionary()
"""What components are called in the pipelines they were added to: older versions do not tell them."""

_OUTPUTS = ("documents", "context_documents", "raw_documents")
_QUESTIONS = ("query", "question", "text", "input", "messages")


# ------------------------------------------------------------------------------------------------ documents


def _documents(value: Any) -> list[Any] | None:
    is_list = isinstance(value, (list, tuple)) and all(
        hasattr(one, "content") and hasattr(one, "meta") for one in value
    )
    return list(value) if is_list else None


def _put_out(result: Any) -> list[Any] | None:
    """The documents among a component's outputs; None when there are none."""
    for name in _OUTPUTS:
        if isinstance(result, Mapping) and (found := _documents(result.get(name))) is not None:
            return found
    return None


def _doc_id(document: Any) -> str | None:
    """The source that the meta names, else the document it was split from, else itself."""
    meta = document.meta or {}
    read = candidates.read([{"text": "", "metadata": {k: v for k, v in meta.items() if k != "source_id"}}])
    named = read.doc_id[0] if read is not None and read.doc_id else None
    return named or meta.get("source_id") or document.id


def _start(document: Any) -> int | None:
    start = (document.meta or {}).get("split_idx_start")
    return start if isinstance(start, int) else None


def _part(document: Any) -> Part:
    text = document.content or ""
    return Part(document, text, _doc_id(document), document.id, _start(document), is_start_exact=True)


def _row(document: Any) -> Candidate:
    source, start, text = source_of(document, document.id), _start(document), document.content or ""
    ranges = () if source is None else source.ranges
    if source is None and start is not None:
        ranges = ((start, start + len(text)),)
    if sum(end - first for first, end in ranges) != len(text):
        ranges = ()  # its text is no longer the one that was cut there
    doc_id = _doc_id(document) if source is None else source.text.doc_id
    return Candidate(document.id, document.score, doc_id=doc_id, ranges=ranges, text=text or None)


def _tell_documents(run: Run, result: Any) -> None:
    found = _put_out(result)
    tell(run, result, None if found is None else [_row(document) for document in found])
    gathered = _gathered.get()
    if gathered is not None and found is not None:
        gathered.append(found)


# ------------------------------------------------------------------------------------------------ components


def _component(call: Call) -> Any:
    """What a component's run is: a stage of the query, one of those before it, or none."""
    thing = call.object
    kind = _kind_of(thing, call)
    if kind is None:
        return None
    name = getattr(thing, "__component_name__", None) or _names.get(thing) or type(thing).__name__
    if kind in ("parse", "chunk", "index"):
        return _before(call, kind, name)
    if kind == "join":
        return _joining(call, name)
    if kind == "generate":
        return _model(call, name)
    if kind == "rewrite":
        run = begin("rewrite", name, call)
        return None if run is None else Step(run, lambda run, result: tell(run, result.get("queries")))
    given = [[_row(one) for one in documents] for documents in _given(call)]
    store = getattr(thing, "document_store", None)
    filters = call.value("filters") or getattr(thing, "filters", None)
    run = begin(
        kind,
        name,
        call,
        query=call.value("query"),
        inputs=given if len(given) < 2 else [given],
        k=call.value("top_k") or getattr(thing, "top_k", None),
        threshold=call.value("score_threshold") or getattr(thing, "score_threshold", None),
        mode=_mode_of(thing) if kind == "retrieve" else None,
        index=_index_of(store) if kind == "retrieve" and store is not None else None,
        filter=filters if kind == "retrieve" and filters else None,
    )
    if run is None:
        return None
    return Step(run, _tell_prompt if kind == "truncate" else _tell_documents)


def _tell_prompt(run: Run, result: Any) -> None:
    prompt = result.get("prompt") if isinstance(result, Mapping) else None
    tell(run, prompt_text(prompt))


def _given(call: Call) -> list[list[Any]]:
    """The lists of documents among a component's inputs; a joiner has several in one."""
    found = []
    for value in [*call.args[1:], *call.kwargs.values()]:
        documents = _documents(value)
        if documents is not None:
            found.append(documents)
        elif isinstance(value, (list, tuple)):
            found.extend(one for element in value if (one := _documents(element)) is not None)
    return found


# By a part of the class's name, the first that fits; for those that put out documents.
_KINDS = (
    (("AutoMerging", "SentenceWindow"), "expand"),
    (("DocumentJoiner", "Joiner"), "fuse"),
    (("Rank", "LostInTheMiddle"), "rerank"),
    (("Retriever",), "retrieve"),
    (("Filter", "Sampler"), "filter"),
)
_NONE = ("Embedder", "Router", "Evaluator", "Extractor", "Fetcher", "AnswerBuilder", "AnswerJoiner", "CacheChecker")


def _kind_of(thing: Any, call: Call) -> str | None:
    name = type(thing).__name__
    kind: str | None = None
    around = context.current.get()
    has_found = around is not None and around.query is not None and any(one.ids for one in around.query.outputs)
    if name.endswith(_NONE):
        pass
    elif name.startswith("Multi") and "Retriever" in name:
        kind = "join"
    elif "Expander" in name:
        kind = "rewrite"
    elif name.endswith("PromptBuilder"):
        kind = "truncate" if any(_given(call)) else None
    elif "Generator" in name:
        kind = "generate"
    elif "Writer" in name:
        kind = "index"
    elif "Splitter" in name or "Preprocessor" in name:
        kind = "compress" if has_found else "chunk"
    elif "Cleaner" in name or "Converter" in name or name.endswith("ToDocument"):
        kind = "compress" if has_found else "parse"
    elif set(_OUTPUTS) & set(_sockets(thing)):
        kind = next((kind for words, kind in _KINDS if any(word in name for word in words)), None)
        kind = kind or ("compress" if _given(call) else "retrieve")
    return kind


def _sockets(thing: Any) -> Mapping[str, Any]:
    sockets = getattr(thing, "__haystack_output__", None)
    return getattr(sockets, "_sockets_dict", None) or {}


def _mode_of(thing: Any) -> str | None:
    name = type(thing).__name__
    if "BM25" in name or "Keyword" in name:
        return "lexical"
    if "Hybrid" in name:
        return "hybrid"
    if "InMemory" in name:
        return "exact"
    return "ann" if "Embedding" in name else None


def _index_of(store: Any) -> str:
    for attribute in ("_collection_name", "collection_name", "_index", "index", "table_name"):
        name = getattr(store, attribute, None)
        # The store in memory makes up a name for each of its kind.
        if isinstance(name, str) and name and type(store).__name__ != "InMemoryDocumentStore":
            return name
    return type(store).__name__


def _joining(call: Call, name: str) -> Any:
    """A retriever of retrievers: its own part begins when they have answered."""
    found: list[Any] = []
    k = call.value("top_k") or getattr(call.object, "top_k", None)

    def done(result: Any) -> None:
        run = begin("fuse", name, None, inputs=[[_row(one) for one in documents] for documents in found], k=k)
        if run is not None:
            _tell_documents(run, result)
            run.exit(None)

    return Surroundings(_gathered, found, done)


def _model(call: Call, name: str) -> Any:
    """A model's call in a query. Inside a stage it is that stage's own business."""
    around = context.current.get()
    if around is None or around.query is None or around.query.is_ended or isinstance(around, Run):
        return None
    run = begin("generate", name, call, inputs=[prompt_text(call.value("prompt", "messages"))])
    if run is None:
        return None
    if not any(one.ids for one in around.query.outputs):
        run.is_aside = True  # before anything was found no answer can rest on it

    def told(run: Run, result: Any) -> None:
        replies = result.get("replies") if isinstance(result, Mapping) else None
        if any(getattr(reply, "tool_calls", None) for reply in replies or ()):
            run.is_aside = True  # it asks for a tool, and answers nothing

    return Step(run, told)


def _before(call: Call, kind: str, name: str) -> Any:
    """A converter, splitter or writer: told when it has ended, by document."""
    if _busy.get():
        return None
    thing = call.object
    documents = next(iter(_given(call)), [])

    def done(result: Any) -> None:
        if kind == "index":
            store = _index_of(getattr(thing, "document_store", thing))
            indexed(name, store, [_part(document) for document in documents], [one.id for one in documents])
            return
        found = _put_out(result) or []
        if kind == "parse":
            parsed(name, [_part(document) for document in found])
        elif documents:
            numbers = {document.id: number for number, document in enumerate(documents)}
            pieces = [(_part(one), numbers.get((one.meta or {}).get("source_id"), 0)) for one in found]
            chunked(name, [_part(document) for document in documents], pieces)

    return Surroundings(_busy, True, done)


# ------------------------------------------------------------------------------------------------ runs


def _pipeline(call: Call) -> Any:
    data = call.value("data")
    found: dict[str, str] = {}
    for name, value in (data if isinstance(data, Mapping) else {}).items():
        for key, inner in (value if isinstance(value, Mapping) else {name: value}).items():
            text = inner if isinstance(inner, str) else prompt_text(inner)
            if key in _QUESTIONS and text:
                found.setdefault(key, text)
    return own_query(next((found[key] for key in _QUESTIONS if key in found), None))


# ------------------------------------------------------------------------------------------------ doors


def _component_door(kind: type, name: str) -> Door | None:
    return Door(_patches, _component) if name in ("run", "run_async") else None


def _adding(call: Call) -> Any:
    name, instance = call.value("name"), call.value("instance")
    if isinstance(name, str):
        with suppress(TypeError):  # one that cannot be hashed has its class's name
            _names[instance] = name


def _pipeline_door(kind: type, name: str) -> Door | None:
    if name == "add_component":
        return Door(_patches, _adding)
    return Door(_patches, _pipeline) if name in ("run", "run_async", "run_async_generator") else None


def _wrap_component(kind: type) -> None:
    for one in kind.__mro__[:-1]:
        _patches.wrap(one, _component_door)


def _making(made: Callable[..., Any]) -> Callable[..., Any]:
    def make(cls: Any, *args: Any, **kwargs: Any) -> Any:
        if _patches.is_on:
            try:
                _wrap_component(cls)
            except Exception as error:  # a component that cannot be patched is still the service's component
                guard.swallow(error, "instrument")
        return made(cls, *args, **kwargs)

    return make


def patch() -> None:
    """Wrap the doors. Raises what importing Haystack raises."""
    import haystack  # noqa: F401  # registers its components
    from haystack.core.component import component
    from haystack.core.component.component import ComponentMeta
    from haystack.core.pipeline.base import PipelineBase

    _patches.is_on = True
    for kind in list(component.registry.values()):
        _wrap_component(kind)
    _patches.replace(ComponentMeta, "__call__", _making(vars(ComponentMeta)["__call__"]))
    _patches.follow(PipelineBase, _pipeline_door)


def restore() -> None:
    """Leave the classes as they were found."""
    _patches.restore()
