"""What a search returns around its items: arrays, tables, batches, responses. Gives the items, or None.

Nothing is imported, and no iterator or generator is touched: only lists, tuples, known keys and known attributes.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Sequence
from typing import Any

from ragtrace.recording.shapes import (
    CHUNK_IDS,
    DOCUMENTS,
    METADATA,
    METADATA_DOCUMENTS,
    METADATA_IDS,
    OWN_IDS,
    RANGES,
    RARE,
    SCORES,
    TEXTS,
    peek,
)
from ragtrace.recording.shapes_scores import BY_NAME, BY_ORDER, Pairs
from ragtrace.recording.shapes_values import LIBRARIES_OF_NUMBERS, root_module

__all__ = ["items_of"]

_KEYS = (
    "hits", "documents", "points", "matches", "results", "result", "source_nodes", "nodes", "source_documents",
    "context", "retrieval_results", "retrievalResults", "objects", "chunks", "passages", "candidates", "value", "data", "items",
    "children", "root", "body",
)  # fmt: skip
# Elasticsearch's and OpenSearch's query builders keep the response and its hits under these.
_INSIDES = ("_d_", "_l_")
_ATTRIBUTES = ("source_nodes", "points", "matches", "objects", "results", "documents", "hits", "body")
_ITEMS = frozenset((dict, tuple, str, int))
_DEEPEST = 3
"""Elasticsearch: response, hits, hits."""
_KNOWN_COLUMNS = frozenset(
    (*CHUNK_IDS, *OWN_IDS, *METADATA_IDS, *DOCUMENTS, *METADATA_DOCUMENTS, *SCORES, *TEXTS, *METADATA, *RARE)
) | {name for pair in RANGES for name in pair}


def items_of(value: Any, depth: int = 0) -> Sequence[Any] | None:
    """The items of a result in their order; None when it is no result. Raises what the value raises."""
    kind = type(value)
    if kind is list:
        return _batch_of_one(value, depth)
    if isinstance(value, tuple):
        items = list(tuple.__iter__(value))
        if len(items) == 2 and _is_page(items[0]):
            items = items[0]
        arrays = _arrays(items)
        return arrays if arrays is not None else _batch_of_one(items, depth)
    if isinstance(value, list):
        return _batch_of_one(_listed(value), depth)
    if kind is deque:
        return list(value)
    return _of_response(value, depth) if depth < _DEEPEST else None


def _of_response(value: Any, depth: int) -> Sequence[Any] | None:
    if isinstance(value, dict):
        return _of_mapping(value, depth)
    if type(value).__module__ == "builtins":
        return None
    if _is_array(value):
        return _ids_of_array(value)
    table = _of_table(value)
    if table is not None:
        return table
    groups = peek(value, "groups")
    if type(groups) is list and all(type(peek(group, "hits")) is list for group in groups):  # Qdrant's, best first
        return [hit for group in groups for hit in group.hits]
    for name in (*_INSIDES, *_ATTRIBUTES):
        inner = peek(value, name)
        if isinstance(inner, (list, tuple, dict)):
            items = items_of(inner, depth + 1)
            if items is not None:
                return items
    return None


def _listed(value: list[Any]) -> list[Any]:
    """The items of a list of the service's own class, as they stand in it."""
    # Milvus decodes an item's fields when its list is first looked at: its own iterator does that, the plain one not.
    return list(value) if root_module(type(value)) == "pymilvus" else list(list.__iter__(value))


def _is_page(value: Any) -> bool:
    """Whether it is Qdrant's page of points, beside which the next page's number stands."""
    return type(value) is list and bool(value) and root_module(type(value[0])) == "qdrant_client"


def _batch_of_one(items: list[Any], depth: int) -> Sequence[Any] | None:
    """A list of one list is the answer to a batch of one query, unless it is a list of one row."""
    if len(items) != 1 or depth >= _DEEPEST or type(items[0]) in _ITEMS:
        return items
    if root_module(type(items[0])) == "qdrant_client":  # the response to a batch of one search
        return _of_response(items[0], depth + 1) or items
    if isinstance(items[0], list) and len(items[0]):
        inner = _listed(items[0])
        first = inner[0]
        if isinstance(first, (dict, tuple, list)) or type(first).__module__ != "builtins":
            return items_of(inner, depth + 1)
        if type(first) in (int, str) and len(set(map(type, inner))) == 1:
            return inner
    return items


def _of_mapping(value: dict[Any, Any], depth: int) -> Sequence[Any] | None:
    ids = dict.get(value, "ids")
    if isinstance(ids, list):
        return _of_columns(value, ids)
    for key in _KEYS:
        inner = dict.get(value, key)
        if inner is not None and not isinstance(inner, str):
            items = items_of(inner, depth + 1)
            if items is not None:
                return items
    if depth == 0 and value and set(map(type, dict.values(value))) <= {int, float}:
        pairs = list(dict.items(value))
        # A mapping from ids to scores, unless the keys are the names of an item's own fields.
        return None if _KNOWN_COLUMNS.intersection(key for key, _ in pairs if type(key) is str) else pairs
    return None


def _of_columns(value: dict[Any, Any], ids: list[Any]) -> Sequence[Any] | None:
    """Chroma: parallel lists, one inner list per query of the batch (`query`) or flat ones (`get`)."""
    is_batch = bool(ids) and isinstance(ids[0], list)
    if is_batch and len(ids) != 1:
        return None
    names = {"ids": "id", "distances": "distance", "scores": "score", "metadatas": "metadata", "documents": "text"}
    columns: dict[str, Any] = {}
    for key, name in names.items():
        column = dict.get(value, key)
        if isinstance(column, list):
            columns[name] = column[0] if is_batch and column else column
    columns = {name: column for name, column in columns.items() if isinstance(column, list)}
    size = len(columns["id"])
    columns = {name: column for name, column in columns.items() if len(column) == size}
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]


def _is_array(value: Any) -> bool:
    kind = type(value)
    return root_module(kind) in LIBRARIES_OF_NUMBERS and hasattr(kind, "shape") and hasattr(value, "tolist")


def _row(array: Any) -> list[Any] | None:
    """The only row of an array, as a list of Python values."""
    shape = tuple(array.shape)
    if len(shape) == 2 and shape[0] == 1:
        row = array.tolist()[0]
    elif len(shape) == 1:
        row = array.tolist()
    else:
        return None
    return row if isinstance(row, list) else None


def _holds_floats(array: Any) -> bool:
    kind = getattr(array.dtype, "kind", None)
    return kind == "f" if kind is not None else "float" in str(array.dtype)


def _ids_of_array(array: Any) -> list[Any] | None:
    """An array of ids. Floats are a vector or scores, not ids; -1 is the padding of a search that found too few."""
    row = _row(array)
    if row is None or _holds_floats(array):
        return None
    return [identity for identity in row if identity != -1] if row and type(row[0]) is int else row


def _arrays(arrays: list[Any]) -> list[Any] | None:
    """FAISS (distances, ids), hnswlib and others (ids, distances).

    FAISS range search puts limits before them, and its search that gives the vectors too puts these after them.
    """
    if len(arrays) == 3 and all(map(_is_array, arrays)):
        if tuple(arrays[0].shape) == (2,):
            arrays = arrays[1:]
        elif len(arrays[2].shape) == 3:
            arrays = arrays[:2]
    if len(arrays) != 2:
        return None
    if all(map(_is_array, arrays)):
        first, second = map(_row, arrays)
        # Binary FAISS indexes have integer distances: then the order is FAISS's, but uint64 labels are hnswlib's.
        is_second_scores = _holds_floats(arrays[1]) or (
            not _holds_floats(arrays[0]) and "uint64" in str(getattr(arrays[0], "dtype", ""))
        )
    else:
        first, second = (
            column[0] if type(column) is list and len(column) == 1 and type(column[0]) is list else column
            for column in arrays
        )
        if not (type(first) is type(second) is list and first and len(first) == len(second)):
            return None
        of_first, of_second = set(map(type, first)), set(map(type, second))
        is_second_scores = of_second == {float} and of_first in ({int}, {str})
        if not is_second_scores and not (of_first == {float} and of_second in ({int}, {str})):
            return None
    if first is None or second is None or len(first) != len(second):
        return None
    ids, scores = (first, second) if is_second_scores else (second, first)
    pairs = Pairs((identity, score) for identity, score in zip(ids, scores, strict=True) if identity != -1)
    pairs.tells = BY_NAME if is_second_scores and "uint64" in str(getattr(arrays[0], "dtype", "")) else BY_ORDER
    return pairs


def _of_table(value: Any) -> Sequence[Any] | None:
    """Arrow tables and batches, pandas and Polars frames, pandas series: rows as dicts of the columns we know."""
    root = root_module(type(value))
    if root == "pyarrow":
        schema = peek(value, "schema")
        names = peek(schema, "names")
        if not isinstance(names, list):
            return None
        columns = {name: value.column(name).to_pylist() for name in names if name in _KNOWN_COLUMNS}
        size = value.num_rows
    elif root in ("pandas", "polars"):
        if not hasattr(type(value), "columns"):
            if hasattr(value, "index") and hasattr(value, "tolist"):
                return list(zip(value.index.tolist(), value.tolist(), strict=True))
            return None
        names = [name for name in list(value.columns) if type(name) is str and name in _KNOWN_COLUMNS]
        columns = {name: (value[name].tolist() if root == "pandas" else value[name].to_list()) for name in names}
        size = len(value)
        is_numbered = type(peek(value, "index")).__name__ == "RangeIndex"  # row numbers, not ids
        if root == "pandas" and not is_numbered and not any(name in OWN_IDS for name in names):
            columns["id"] = value.index.tolist()
    else:
        return None
    if not columns:
        return None if size else []
    return [dict(zip(columns, row, strict=True)) for row in zip(*columns.values(), strict=True)]
