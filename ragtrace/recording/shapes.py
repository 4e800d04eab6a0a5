"""How to read one kind of item: which key or attribute of it is the id, the score, the document, the range, the text.

A plan is made from the first item of a kind and kept, so that a list is then read with one C call per column.
Frameworks are recognised by the names of their attributes; none is imported. See docs/candidates.md for the names.
"""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from decimal import Decimal
from operator import attrgetter, itemgetter
from typing import Any, NamedTuple
from weakref import WeakKeyDictionary

from ragtrace.recording.shapes_scores import what_tells
from ragtrace.recording.shapes_values import LIBRARIES_OF_NUMBERS, id_text, root_module

__all__ = ["ABSENT", "MOST_PLANS", "Field", "Plan", "is_keyed", "kept_plan", "peek", "plan_of"]

# Ids that name a chunk and nothing else: they win over an item's own id, which stores like to invent.
CHUNK_IDS = ("chunk_id", "chunkId", "chunk_uuid", "passage_id", "node_id")
OWN_IDS = (*CHUNK_IDS, "id", "_id", "id_", "uuid", "point_id", "objectID", "docid", "pk", "corpus_id", "index")
# In metadata "id" comes last: splitters copy a document's metadata, its id with it, into every chunk.
METADATA_IDS = ("id", "_id", "id_", "uuid", "pk")
DOCUMENTS = ("doc_id", "document_id", "ref_doc_id", "source_document_id", "docId", "documentId", "source_id")
METADATA_DOCUMENTS = (*DOCUMENTS, "source", "file_path", "file_name", "filename", "path", "url")
# A reranker's score beside an older one is the newer.
SCORES = (
    "rerank_score", "relevance_score", "_relevance_score", "@search.rerankerScore", "score", "_score", "similarity",
    "similarity_score", "_distance", "distance", "@search.score", "relevance", "text_match", "_rankingScore",
    "certainty",
)  # fmt: skip
RANGES = (
    ("start", "end"), ("start_index", "end_index"), ("start_char_idx", "end_char_idx"), ("char_start", "char_end"),
    ("start_char", "end_char"), ("start_offset", "end_offset"), ("begin", "end"), ("start_at", "end_at"),
    ("split_idx_start", "split_idx_end"),
)  # fmt: skip
TEXTS = ("text", "page_content", "content", "chunk_text", "passage", "contents", "body", "chunk", "document")
INNERS = ("node", "document", "doc", "chunk")
METADATA = ("metadata", "meta", "payload", "_source", "entity", "properties", "fields")
RARE = ("ranges", "stands_for", "tokens", "position", "kept", "generated")

ABSENT = object()
"""What `peek` gives for a name that is not there."""
MOST_PLANS = 256
"""A service has a handful of shapes; keys made from data (a mapping from id to anything) must not pile up."""

Getter = Callable[[Any], Any]
Path = tuple[tuple[str, bool], ...]
"""Names from the item down, each with whether it is a key (else an attribute)."""


Field = tuple[int, Getter]
"""The container column a getter is applied to, and the getter."""


Signature = tuple[object, ...]
"""The names a plan reads by: the same for equal plans."""


class Plan(NamedTuple):
    """How the items of one kind are read: a C call per column."""

    containers: tuple[Field, ...]
    """Each makes one more container column, such as the items' metadata; column 0 is the items."""
    id: Field | None
    id_source: str
    score: Field | None
    score_tells: str | None
    """See `shapes_scores.what_tells`."""
    doc: Field | None
    start: Field | None
    end: Field | None
    text: Field | None
    doubts: tuple[Field, ...]
    """Names that come before the chosen ones and are empty: where one is not, the plan does not hold."""
    rare: tuple[tuple[str, Field], ...]
    """Fields named in `RARE`."""
    without_locations: Plan | None
    """The same without what the metadata says of document and range; None when the items have no other identity."""

    def made(self, items: Sequence[Any]) -> list[Sequence[Any]]:
        """The container columns. Raises what the items raise."""
        columns = [items]
        for source, getter in self.containers:
            columns.append(list(map(getter, columns[source])))
        return columns


class _Family:
    """What is known of one type, or of dicts with the same keys."""

    __slots__ = ("inner", "metadata", "plans", "to_metadata")

    to_metadata: tuple[tuple[Getter, ...], ...]

    def __init__(self, item: Any) -> None:
        self.inner: Path = _nested(item, (), INNERS)
        within = _follow(item, self.inner)
        self.metadata = _all_nested(within, self.inner, METADATA) or _all_nested(item, (), METADATA)
        self.to_metadata = tuple(tuple(_getter(name, is_key) for name, is_key in path) for path in self.metadata)
        self.plans: dict[str, Plan | None] = {}

    def key_of(self, item: Any) -> str:
        """The names in the item's metadata, joined; empty without metadata that tells."""
        key = ""
        try:
            for getters in self.to_metadata:
                metadata = item
                for getter in getters:
                    metadata = getter(metadata)
                if type(metadata) is dict:
                    key += "\0".join(metadata)
        except Exception:  # this one has none, or refuses to show it
            return ""
        return key


_by_type: WeakKeyDictionary[type, _Family] = WeakKeyDictionary()
_by_keys: dict[str, _Family] = {}
_plans: dict[tuple[Signature, Signature | None], Plan] = {}
_lock = threading.Lock()


def _after_fork() -> None:
    global _lock  # noqa: PLW0603  # one a process
    _lock = threading.Lock()  # another thread may have held it


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=_after_fork)


def plan_of(item: Any, fresh: bool = False) -> Plan | None:
    """How to read items like this one; None when it has no id, range, text or document that can be read.

    Remembered for the item's type, or its keys, and the keys of its metadata. `fresh` makes the plan anew, for an
    item that differs from its kind in what is empty. Raises what the item raises.
    """
    kind = type(item)
    family: _Family | None
    if kind is dict:
        key = "\0".join(item)
        family = _by_keys.get(key)
        if family is None:
            family = _Family(item)
            with _lock:
                if len(_by_keys) >= MOST_PLANS:
                    _by_keys.clear()
                _by_keys[key] = family
    else:
        family = _by_type.get(kind)
        if family is None:
            if kind.__module__ == "builtins":
                return None
            family = _Family(item)
            with _lock:
                _by_type[kind] = family
    key = family.key_of(item)
    plan: Any = ABSENT if fresh else family.plans.get(key, ABSENT)
    if plan is ABSENT:
        plan, is_typical = _plan_for(item, family)
        if is_typical:
            if len(family.plans) >= MOST_PLANS:
                family.plans.clear()
            family.plans[key] = plan
    found: Plan | None = plan
    return found


def kept_plan(item: dict[Any, Any]) -> Plan | None:
    """The plan by which all dicts with these keys are read; None when there is none, or when it depends on more."""
    family = _by_keys.get("\0".join(item))
    return family.plans.get("") if family is not None and not family.to_metadata else None


def _plan_for(item: Any, family: _Family) -> tuple[Plan | None, bool]:
    """The plan for an item: the first name of each kind that it has, its own before its metadata's.

    And whether it holds for others of the item's kind: not when a name had to be passed over for what is under it.
    """
    own: list[Path] = [family.inner, ()] if family.inner else [()]
    outer = own[::-1]
    metadata: list[Path] = []  # and metadata inside metadata: a Qdrant payload as LangChain writes it
    for path in family.metadata:
        metadata.append(path)
        inner = _nested(_follow(item, path), path, METADATA)
        if inner:
            metadata.append(inner)
    if _is_message(item):
        return None, False
    maker = _Maker(item)
    identity, id_source = maker.first(metadata, CHUNK_IDS, _is_id), "metadata"
    if identity is None:
        identity, id_source = maker.first(own, OWN_IDS, _is_id), "native"
    if identity is None:
        identity, id_source = maker.first(metadata, METADATA_IDS, _is_id), "metadata"
    score = maker.first([*outer, *metadata], SCORES, _is_number) or maker.empty([*outer, *metadata], SCORES)
    own_doc = maker.first(own, DOCUMENTS, _is_id)
    doc = own_doc or maker.first(metadata, METADATA_DOCUMENTS, _is_id)
    own_start, own_end = maker.range(own)
    start, end = (own_start, own_end) if own_start else maker.range(metadata)
    text = maker.first([*own, *metadata], TEXTS, _is_text)
    rare = tuple((name, field) for name in RARE if (field := maker.any(own, name)))
    if identity is None and doc and not start and not text:
        identity, id_source = doc, "native"  # a search over whole documents
    has_ranges = any(isinstance(peek(_follow(item, layer), "ranges"), (list, tuple)) for layer in own)
    if identity is None and not start and not text and not has_ranges:
        return None, not maker.doubts and not maker.is_odd
    if start is None:
        start = own_start = maker.empty(own, [name for name, _ in RANGES])
        end = own_end = maker.empty(own, [name for _, name in RANGES]) if start else None
    doc = doc or maker.empty(own, DOCUMENTS) or maker.empty(metadata, METADATA_DOCUMENTS)
    text = text or maker.empty([*own, *metadata], TEXTS)
    tells = what_tells(maker.name_of(score), item, [path[-1][0] for path in family.metadata]) if score else None
    plan = Plan((), identity, id_source, score, tells, doc, start, end, text, (), rare, None)
    signature, plan = maker.complete(plan)
    bare_signature: Signature | None = None
    if identity is not None:
        own_doc = own_doc or maker.empty(own, DOCUMENTS)
        bare_signature, bare = maker.complete(plan._replace(doc=own_doc, start=own_start, end=own_end))
        plan = plan._replace(without_locations=bare)
    # Kinds that differ only in names that are not read share a plan, so that their items are read together.
    with _lock:
        if len(_plans) >= MOST_PLANS:
            _plans.clear()
        return _plans.setdefault((signature, bare_signature), plan), not maker.is_odd


class _Maker:
    """Makes the fields of one plan, each container once."""

    def __init__(self, item: Any) -> None:
        self.item = item
        self.containers: list[Field] = []
        self.numbers: dict[Path, int] = {(): 0}
        self.fields: dict[Path, Field] = {}
        self.doubts: list[Field] = []
        """Names passed over because they are empty here."""
        self.is_odd = False
        """A name was passed over because of what is under it."""

    def container(self, path: Path) -> int:
        if path not in self.numbers:
            self.containers.append((self.container(path[:-1]), _getter(*path[-1])))
            self.numbers[path] = len(self.containers)
        return self.numbers[path]

    def field(self, layer: Path, name: str, is_key: bool) -> Field:
        path = (*layer, (name, is_key))
        if path not in self.fields:
            self.fields[path] = (self.container(layer), _getter(name, is_key))
        return self.fields[path]

    def name_of(self, field: Field) -> str:
        return next(path[-1][0] for path, made in self.fields.items() if made is field)

    def first(self, layers: Sequence[Path], names: Sequence[str], suits: Callable[[Any], bool]) -> Field | None:
        """The first of the names whose value suits, layer by layer."""
        for layer in layers:
            view = _follow(self.item, layer)
            for name in names:
                value = peek(view, name)
                if value is None:
                    self.doubts.append(self.field(layer, name, is_keyed(view)))
                elif value is not ABSENT and suits(value):
                    return self.field(layer, name, is_keyed(view))
                elif value is not ABSENT:
                    self.is_odd = True
        return None

    def empty(self, layers: Sequence[Path], names: Sequence[str]) -> Field | None:
        """The first of the names that is there and empty: in other items of the kind it may not be."""
        for layer in layers:
            view = _follow(self.item, layer)
            for name in names:
                if peek(view, name) is None:
                    return self.field(layer, name, is_keyed(view))
        return None

    def any(self, layers: Sequence[Path], name: str) -> Field | None:
        """A name, whatever is under it."""
        for layer in layers:
            view = _follow(self.item, layer)
            if peek(view, name) is not ABSENT:
                return self.field(layer, name, is_keyed(view))
        return None

    def range(self, layers: Sequence[Path]) -> tuple[Field | None, Field | None]:
        """The first pair of names whose start is an offset; its end may be missing."""
        for layer in layers:
            for start, end in RANGES:
                field = self.first([layer], (start,), _is_offset)
                if field:
                    return field, self.any([layer], end)
        return None, None

    def complete(self, plan: Plan) -> tuple[Signature, Plan]:
        """The plan with the containers it needs and the doubts that are left."""
        chosen = (plan.id, plan.score, plan.doc, plan.start, plan.end, plan.text, *(field for _, field in plan.rare))
        doubts = [field for field in dict.fromkeys(self.doubts) if not any(field is one for one in chosen)]
        used = [field[0] for field in (*chosen, *doubts) if field]
        paths = {id(field): path for path, field in self.fields.items()}
        names = tuple(None if field is None else paths[id(field)] for field in chosen)
        doubted = tuple(paths[id(field)] for field in doubts)
        signature = (plan.id_source, plan.score_tells, names, doubted, tuple(name for name, _ in plan.rare))
        whole = plan._replace(containers=tuple(self.containers[: max(used, default=0)]), doubts=tuple(doubts))
        return signature, whole


def _getter(name: str, is_key: bool) -> Getter:
    return itemgetter(name) if is_key else attrgetter(name)


def is_keyed(view: Any) -> bool:
    """True for what is read by keys: mappings, and database rows that know their columns' names."""
    kind = type(view)
    if kind is dict or isinstance(view, dict):
        return True
    # Elasticsearch's AttrDict keeps an item's id and score where only an attribute leads.
    is_attributed = any(base.__name__ == "AttrDict" for base in kind.__mro__)
    return hasattr(kind, "keys") and hasattr(kind, "__getitem__") and not is_attributed


def peek(view: Any, name: str) -> Any:
    """The value under a name, or a mark of its own when there is none. What the item raises means none."""
    try:
        if isinstance(view, dict):
            return dict.get(view, name, ABSENT)
        if is_keyed(view):
            return view[name]
        kind = type(view)
        if hasattr(kind, "__mapper__") or hasattr(getattr(kind, "_meta", None), "get_fields"):
            # SQLAlchemy and Django objects: an attribute that is not loaded yet would ask the database.
            return vars(view).get(name, ABSENT)
        return getattr(view, name, ABSENT)
    except Exception:  # properties of foreign objects may raise anything
        return ABSENT


def _follow(item: Any, path: Path) -> Any:
    for name, _ in path:
        item = peek(item, name)
    return item


def _nested(view: Any, path: Path, names: Sequence[str]) -> Path:
    """The path of the first name under which there is something with names of its own."""
    for name in names:
        value = peek(view, name)
        if value is not ABSENT and value is not None and _has_names(value):
            return (*path, (name, is_keyed(view)))
    return ()


def _all_nested(view: Any, path: Path, names: Sequence[str]) -> tuple[Path, ...]:
    """The paths of all names under which there is something with names of its own, first the one that counts most."""
    return tuple(found for name in names if (found := _nested(view, path, (name,))))


def _has_names(value: Any) -> bool:
    return is_keyed(value) or type(value).__module__ != "builtins"


def _is_message(item: Any) -> bool:
    """A chat message has a content and is no candidate."""
    return type(peek(item, "role")) is str and peek(item, "content") is not ABSENT


def _is_id(value: Any) -> bool:
    return id_text(value) is not None


def _is_number(value: Any) -> bool:
    return type(value) in _NUMBERS or root_module(type(value)) in LIBRARIES_OF_NUMBERS


def _is_offset(value: Any) -> bool:
    return type(value) in (int, float) or root_module(type(value)) in LIBRARIES_OF_NUMBERS


def _is_text(value: Any) -> bool:
    return isinstance(value, str)


_NUMBERS = frozenset((int, float, bool, Decimal))
