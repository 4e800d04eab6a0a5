"""LangChain's ingest side: loaders, splitters, writes into stores, and the parents of a parent-document retriever."""

from __future__ import annotations

from collections.abc import Sequence
from contextvars import ContextVar
from typing import Any

from ragtrace.integrations.langchain_names import doc_id_of, index_of, name_of
from ragtrace.integrations.sources import Part, chunked, indexed, parsed, source_of
from ragtrace.integrations.steps import Call, Surroundings
from ragtrace.model import Candidate
from ragtrace.recording import context
from ragtrace.recording.recorder import living

__all__ = ["WRITES", "add_to_retriever", "load", "parents", "split", "split_for_adding", "write"]

WRITES = frozenset(
    ("add_documents", "aadd_documents", "add_texts", "aadd_texts", "from_documents", "afrom_documents", "from_texts",
     "afrom_texts", "add_embeddings", "aadd_embeddings", "from_embeddings", "afrom_embeddings")
)  # fmt: skip


class Splitting:
    """A split under way: what each text inside it became."""

    def __init__(self) -> None:
        self.texts: list[tuple[str, list[Any]]] = []


class Writing:
    """A write under way: the ids that the innermost call gave."""

    def __init__(self, n: int) -> None:
        self.n = n
        self.ids: list[str] | None = None

    def take(self, result: Any) -> None:
        """Keep the ids, when there is one for each document."""
        if isinstance(result, list) and len(result) == self.n and all(isinstance(one, str) for one in result):
            self.ids = result


_loading: ContextVar[bool] = ContextVar("ragtrace_langchain_loading", default=False)
_splitting: ContextVar[Splitting | None] = ContextVar("ragtrace_langchain_splitting", default=None)
_writing: ContextVar[Writing | None] = ContextVar("ragtrace_langchain_writing", default=None)
_adding: ContextVar[bool] = ContextVar("ragtrace_langchain_adding", default=False)
"""Whether a parent-document retriever splits: the children's chunk stage is told at its end, with their parents."""
_parents: ContextVar[list[tuple[str, Any]] | None] = ContextVar("ragtrace_langchain_parents", default=None)
"""The parents, with their keys, of what is being added."""


def part_of(document: Any) -> Part:
    """A `Document` as a part."""
    start = document.metadata.get("start_index")
    return Part(
        document,
        document.page_content,
        doc_id_of(document),
        getattr(document, "id", None),
        start if isinstance(start, int) and start >= 0 else None,
    )


def _are_documents(value: Any) -> bool:
    return isinstance(value, list) and all(hasattr(one, "page_content") for one in value)


# ------------------------------------------------------------------------------------------------ loaders


def load(call: Call) -> Any:
    """A loader: each source is a parsed text, its documents the pages."""
    if _loading.get():
        return None
    name = name_of(call.object, None)

    def done(result: Any) -> None:
        if _are_documents(result):
            parsed(name, [part_of(document) for document in result])

    return Surroundings(_loading, True, done)


# ------------------------------------------------------------------------------------------------ splitters


def split(call: Call) -> Any:
    """A splitter: the outermost call is the chunk stage, `split_text` inside it says which text became which chunks."""
    around = living(context.current.get())
    if around is not None and around.query is not None and around.document is None:
        return None  # pieces of candidates, in a query: `transform_documents` is that stage
    outer = _splitting.get()
    if outer is not None:
        if call.name != "split_text" or not isinstance(call.value("text"), str):
            return None
        text = call.value("text")
        # Its own calls of itself, with parts of the text, are not looked at: no variable is set for them to find.
        return Surroundings(_splitting, Splitting(), lambda result: outer.texts.append((text, list(result))))
    inner = Splitting()
    name, given = name_of(call.object, None), call.value("documents", "texts", "text")
    size = getattr(call.object, "_chunk_size", None)
    given = [given] if isinstance(given, str) else list(given) if isinstance(given, (list, tuple)) else None
    if given is None:
        return None  # an iterator is not consumed here

    def done(result: Any) -> None:
        result = list(result)
        parts = [part_of(one) if hasattr(one, "page_content") else Part(_Held(one), one) for one in given]
        if _adding.get() and parts and all(source_of(part.item) is not None for part in parts):
            return
        pieces = [part_of(one) if hasattr(one, "page_content") else Part(_Held(one), one) for one in result]
        numbers = _numbers(parts, pieces, inner.texts)
        if parts:
            chunked(name, parts, list(zip(pieces, numbers, strict=True)), chunk_size=size)

    return Surroundings(_splitting, inner, done)


class _Held:
    """Stands for a string, which takes no weak reference."""

    def __init__(self, text: str) -> None:
        self.text = text


def _numbers(parts: Sequence[Part], pieces: Sequence[Part], seen: Sequence[tuple[str, list[Any]]]) -> list[int]:
    """The part each piece was cut from: as the splits inside tell, else the first of its document that holds it."""
    if [text for text, _ in seen] == [part.text for part in parts]:
        numbers = [number for number, (_, chunks) in enumerate(seen) for _ in chunks]
        if len(numbers) == len(pieces):
            return numbers
    numbers = []
    for piece in pieces:
        of_document = [n for n, part in enumerate(parts) if part.doc_id == piece.doc_id] or list(range(len(parts)))
        numbers.append(next((n for n in of_document if piece.text in parts[n].text), of_document[0]))
    return numbers


# ------------------------------------------------------------------------------------------------ stores


def write(call: Call) -> Any:
    """A write into a store: the outermost call has the documents, the innermost the ids."""
    outer = _writing.get()
    if outer is not None:
        return Surroundings(_writing, outer, outer.take)
    given = call.value("documents", "texts", "text_embeddings")
    if not isinstance(given, (list, tuple)):
        return None  # an iterator is not consumed here
    if call.name.endswith("embeddings"):
        given = [one[0] if isinstance(one, tuple) and one else one for one in given]  # FAISS: (text, vector)
    metadatas = call.value("metadatas")
    given = list(given)
    metadatas = list(metadatas) if isinstance(metadatas, (list, tuple)) and len(metadatas) == len(given) else None
    writing = Writing(len(given))
    said = call.value("ids")
    own = call.object

    def done(result: Any) -> None:
        writing.take(result)
        store = own if not isinstance(own, type) else result
        ids = writing.ids or (list(said) if isinstance(said, (list, tuple)) else None) or _ids_in(store, len(given))
        parts = []
        for number, one in enumerate(given):
            if hasattr(one, "page_content"):
                parts.append(part_of(one))
            elif isinstance(one, str):
                metadata = metadatas[number] if metadatas else None
                parts.append(Part(_Held(one), one, doc_id_of({"text": one, "metadata": metadata or {}})))
        if len(parts) == len(given):
            indexed(index_of(store), index_of(store), parts, ids)

    return Surroundings(_writing, writing, done)


def _ids_in(store: Any, n: int) -> list[str] | None:
    """The ids of a store that was just made, where it keeps them in order (FAISS)."""
    kept = getattr(store, "index_to_docstore_id", None)
    return list(kept.values()) if isinstance(kept, dict) and len(kept) == n else None


# ------------------------------------------------------------------------------------------------ parents and children


def split_for_adding(call: Call) -> Any:
    """The splits of a parent-document retriever: its children stand for their parents."""
    name, id_key = name_of(call.object, None), call.object.id_key

    def done(result: Any) -> None:
        children, full = result
        parts = [part_of(document) for _, document in full]
        numbers = {key: number for number, (key, _) in enumerate(full)}
        pieces = []
        for child in children:
            number = numbers.get(child.metadata.get(id_key))
            if number is None:
                return
            source = source_of(parts[number].item)
            stands_for = () if source is None else source.ranges
            pieces.append((part_of(child)._replace(stands_for=stands_for), number))
        chunked(name, parts, pieces)
        outer = _parents.get()
        if outer is not None:
            outer.extend(full)

    return Surroundings(_adding, True, done)


def add_to_retriever(call: Call) -> Any:
    """A retriever's own write: its parents go into a store of their own, under the ids that their children carry."""
    if not hasattr(call.object, "docstore") or call.value("add_to_docstore") is False:
        return None
    full: list[tuple[str, Any]] = []
    name = index_of(call.object.docstore)

    def done(_: Any) -> None:
        indexed(name, name, [part_of(document)._replace(chunk_id=key) for key, document in full], None)

    return Surroundings(_parents, full, done)


def parents(retriever: Any, found: Sequence[Any], result: Any) -> list[Any] | None:
    """The parents that a retriever of parents returned, under the ids that their children carry, and in place."""
    keys: list[str] = []
    for children in found:
        for child in children:
            document = child[0] if isinstance(child, tuple) else child
            key = document.metadata.get(retriever.id_key)
            if isinstance(key, str) and key not in keys:
                keys.append(key)
    if len(keys) != len(result):
        return None
    rows = []
    for key, document in zip(keys, result, strict=True):
        source = source_of(document)
        if source is None:
            rows.append(Candidate(key, doc_id=doc_id_of(document), text=document.page_content))
        else:
            rows.append(Candidate(key, doc_id=source.text.doc_id, ranges=source.ranges, text=document.page_content))
    return rows
