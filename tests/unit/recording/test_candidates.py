"""Candidate lists by shape: ids, scores, places and texts, whatever the stage returned."""

from __future__ import annotations

import math
import threading
import time
from array import array
from collections import OrderedDict, UserDict, deque, namedtuple
from dataclasses import dataclass
from decimal import Decimal
from types import SimpleNamespace
from typing import Any
from unittest.mock import MagicMock
from uuid import UUID

import pytest

from ragtrace.model import Candidate, Chunk
from ragtrace.recording import candidates, shapes
from ragtrace.recording.candidates import Piece, picked, pieces, read, read_with_texts, text_of_item, text_refs
from ragtrace.spool.records import Columns

TEXT = "A passage of the handbook."


def ids(value: Any, **how: Any) -> list[str | None]:
    columns = read(value, **how)
    assert columns is not None
    return list(columns.chunk_id)


def scores(value: Any, **how: Any) -> list[float | None]:
    columns = read(value, **how)
    assert columns is not None
    if columns.score is None:
        return [None] * len(columns.chunk_id)
    return [None if math.isnan(score) else score for score in columns.score]


def places(value: Any, **how: Any) -> list[tuple[str | None, int | None, int | None]]:
    columns = read(value, **how)
    assert columns is not None
    n = len(columns.chunk_id)
    return list(zip(columns.doc_id or [None] * n, columns.start or [None] * n, columns.end or [None] * n, strict=True))


# ---------------------------------------------------------------- identity


def test_mixed_ids_become_text_and_7_is_the_same_item_as_its_text() -> None:
    assert ids([7, "7", "a", UUID(int=5)]) == ["7", "7", "a", "00000000-0000-0000-0000-000000000005"]


def test_ids_of_other_types_become_text_without_the_services_code() -> None:
    class Key(str):
        def __str__(self) -> str:
            raise AssertionError("called")

    values = [Decimal("7.0"), 7.0, b"key", b"\xff\x00", Key("k"), True, None, 7.5, float("nan"), object()]
    found = ids([{"id": value, "text": "t"} for value in values])
    assert found == ["7", "7", "key", "ff00", "k", None, None, None, None, None]


def test_a_chunk_id_in_the_metadata_wins_over_the_items_own_id() -> None:
    document = {"id": "made-by-the-store", "metadata": {"chunk_id": "c-3"}}
    assert ids([document]) == ["c-3"]
    assert read([document]).id_source == "metadata"  # type: ignore[union-attr]  # a list for sure


def test_an_id_in_the_metadata_is_used_only_when_the_item_has_none_of_its_own() -> None:
    assert ids([{"id": "own", "metadata": {"id": "the-document's"}}]) == ["own"]
    assert ids([{"id": None, "text": TEXT, "metadata": {"id": "m"}}]) == ["m"]


def test_without_any_id_document_and_range_are_the_identity() -> None:
    columns = read([{"text": TEXT, "metadata": {"source": "h.pdf", "start_index": 4}}])
    assert columns is not None
    assert (columns.chunk_id, columns.id_source) == (["h.pdf[4:30]"], "range")


def test_without_id_and_place_an_item_is_known_by_its_text() -> None:
    columns, texts = read_with_texts([{"text": TEXT}, {"text": "another"}]) or (None, None)
    assert columns is not None
    assert (columns.chunk_id, columns.id_source, texts) == ([None, None], "text", [TEXT, "another"])


def test_items_of_one_kind_may_differ_in_what_they_lack() -> None:
    items = [{"id": None, "text": "one", "score": None}, {"id": "b", "text": "two", "score": 0.5}, {"id": 3}]
    assert ids(items) == [None, "b", "3"]
    assert scores(items) == [None, 0.5, None]
    assert text_refs(items) == ["one", "two", None]


def test_lists_made_of_two_retrievers_lists_keep_each_items_own_keys() -> None:
    dense = [{"id": f"d{n}", "score": 0.5} for n in range(3)]
    lexical = [{"id": "row", "chunk_id": f"l{n}", "bm25": 1.0} for n in range(3)]
    mixed = [item for pair in zip(dense, lexical, strict=True) for item in pair]
    assert ids(mixed) == ["d0", "l0", "d1", "l1", "d2", "l2"]


def test_the_same_item_has_the_same_id_alone_and_among_others() -> None:
    items = [{"id": None, "text": TEXT, "metadata": {"source": "a", "start_index": n}} for n in range(3)]
    items.insert(1, {"id": "x", "text": TEXT, "metadata": {"source": "a", "start_index": 9}})
    assert [ids([item])[0] for item in items] == ids(items)


def test_keys_that_only_some_items_have_are_read_where_they_are() -> None:
    items = [{"id": n, "metadata": {"source": "d", "page": n}} for n in range(9)]
    items[4] = {"id": 4, "metadata": {"source": "d", "page": 4, "start_index": 5, "end_index": 9}}
    items[6] = {"id": 6, "score": 0.5, "metadata": {"source": "e"}}
    assert ids(items) == [str(n) for n in range(9)]
    assert places(items)[3:7] == [("d", None, None), ("d", 5, 9), ("d", None, None), ("e", None, None)]
    assert scores(items)[5:8] == [None, 0.5, None]


def test_whole_documents_are_known_by_the_documents_id() -> None:
    assert ids([{"doc_id": "d1", "score": 3.5}, {"doc_id": "d2", "score": 3.0}]) == ["d1", "d2"]


# ---------------------------------------------------------------- scores


def test_scores_are_untouched_whatever_their_range_and_direction() -> None:
    assert scores([("a", -3.5), ("b", 1e300), ("c", 2)]) == [-3.5, 1e300, 2.0]


def test_what_is_not_finite_is_flagged_and_what_is_missing_is_not_zero() -> None:
    values = [float("nan"), float("inf"), float("-inf"), None, "0.5", Decimal("NaN"), Decimal("0.25"), True, object()]
    columns = read([{"id": n, "score": value} for n, value in enumerate(values)])
    assert columns is not None
    assert columns.score is not None
    assert columns.score_flag == {0: "nan", 1: "inf", 2: "-inf", 4: "unreadable", 5: "nan", 8: "unreadable"}
    assert (columns.score[6], columns.score[7]) == (0.25, 1.0)
    assert math.isnan(columns.score[3])


def test_a_reranker_that_gives_no_scores_has_none() -> None:
    assert scores([{"id": "a", "score": None}, {"id": "b", "score": None}]) == [None, None]


def test_a_rerankers_score_stands_before_the_one_it_was_given() -> None:
    assert scores([{"id": "a", "score": 0.3, "relevance_score": 0.9}]) == [0.9]
    assert scores([{"id": "a", "metadata": {"score": 0.3, "relevance_score": 0.9}}]) == [0.9]


def test_an_int_too_large_for_a_float_costs_only_its_own_score() -> None:
    columns = read([("a", 10**400), ("b", 0.5)])
    assert columns is not None
    assert columns.score_flag == {0: "unreadable"}
    assert scores([("a", 10**400), ("b", 0.5)]) == [None, 0.5]


def test_numpy_numbers_are_numbers_of_equal_value() -> None:
    """I-22"""
    np = pytest.importorskip("numpy", reason="numpy is not installed")
    items = [
        {"id": np.int64(7), "score": np.float32(0.1)},
        {"id": np.str_("b"), "score": np.float16(0.5)},
        {"id": np.uint8(3), "score": np.float64(0.25)},
        {"id": "n", "score": np.float32("nan")},
        {"id": "t", "score": np.bool_(True)},
        {"id": "z", "score": np.array(1.5)},
    ]
    assert ids(items) == ["7", "b", "3", "n", "t", "z"]
    assert scores(items) == [float(np.float32(0.1)), 0.5, 0.25, None, 1.0, 1.5]
    assert read(items).score_flag == {3: "nan"}  # type: ignore[union-attr]


def test_a_tensor_of_one_element_is_a_number() -> None:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    assert scores([("a", torch.tensor(0.5)), ("b", torch.tensor([0.25]))]) == [0.5, 0.25]


# ---------------------------------------------------------------- places


def test_a_start_of_minus_one_is_no_place() -> None:
    items = [
        {"id": n, "text": TEXT, "metadata": {"source": "d", "start_index": start}} for n, start in enumerate((-1, 4))
    ]
    assert places(items) == [("d", None, None), ("d", 4, 30)]


def test_a_range_that_ends_before_it_begins_is_no_place() -> None:
    assert places([{"id": "a", "start": 9, "end": 4}, {"id": "b", "start": 4, "end": 9}]) == [
        (None, None, None),
        (None, 4, 9),
    ]


@pytest.mark.parametrize("start", ["4", 4.5, 2**40, [4]])
def test_what_is_no_offset_is_no_place(start: object) -> None:
    assert places([{"id": "a", "doc_id": "d", "start": start, "end": 9}]) == [("d", None, None)]


def test_offsets_that_a_data_frame_made_floats_are_offsets() -> None:
    assert places([{"id": "a", "start": 4.0, "end": 9.0}, {"id": "b", "start": None, "end": None}]) == [
        (None, 4, 9),
        (None, None, None),
    ]


def test_metadata_is_not_asked_for_places_when_told_so() -> None:
    items = [{"id": "a", "metadata": {"source": "d", "start_index": 4, "end_index": 9}}]
    assert places(items, metadata_locations=False) == [(None, None, None)]
    assert places(items) == [("d", 4, 9)]


def test_places_are_read_all_the_same_when_they_are_the_only_identity() -> None:
    items = [{"text": TEXT, "metadata": {"source": "d", "start_index": 4}}]
    assert ids(items, metadata_locations=False) == ["d[4:30]"]


def test_columns_of_ids_scores_and_places_are_cheap_to_write() -> None:
    columns = read([{"id": "a", "score": 0.5, "doc_id": "d", "start": 1, "end": 2}] * 3)
    assert columns is not None
    assert (columns.score, type(columns.start), type(columns.end)) == ([0.5] * 3, array, array)


# ---------------------------------------------------------------- explicit types


def test_candidates_carry_all_they_say() -> None:
    columns = read(
        [
            Candidate("a", 0.5, "d", 4, 9, tokens=12, position=2),
            Candidate(7, doc_id="d", ranges=[(1, 2), (5, 8)], kept=False, text=TEXT),
        ]
    )
    assert columns is not None
    assert columns.chunk_id == ["a", "7"]
    assert columns.ranges == {1: ((1, 2), (5, 8))}
    assert (columns.tokens, columns.position, columns.dropped) == ([12, None], [2, None], [1])
    assert text_refs([Candidate("a"), Candidate("b", text=TEXT)]) == [None, TEXT]


def test_chunks_say_what_they_stand_for_and_what_is_generated() -> None:
    chunks = [Chunk("a", "Title\nbody", start=6, end=10, generated="Title\n", stands_for=[(0, 50)])]
    columns = read(chunks)
    assert columns is not None
    assert columns.stands_for == {0: ((0, 50),)}
    assert pieces(chunks) == [Piece("Title\nbody", 6, "Title\n")]


def test_chunk_texts_are_pieces_and_not_ids() -> None:
    assert pieces(["one", "two"]) == [Piece("one", None, None), Piece("two", None, None)]
    assert pieces(object()) is None


# ---------------------------------------------------------------- shapes


Hit = namedtuple("Hit", ["id", "score", "body"])
Odd = namedtuple("Odd", ["left", "right"])


@dataclass
class Passage:
    passage_id: str
    similarity: float
    content: str = TEXT


class Slotted:
    __slots__ = ("score", "uuid")

    def __init__(self) -> None:
        self.uuid, self.score = UUID(int=1), 0.5


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([Hit("a", 0.5, TEXT)], ["a"]),
        ([Odd("a", 0.5)], ["a"]),
        ([Passage("a", 0.5)], ["a"]),
        ([Slotted()], ["00000000-0000-0000-0000-000000000001"]),
        (deque([("a", 0.5)]), ["a"]),
        ((("a", 0.5), ("b", 0.4)), ["a", "b"]),
        ([["a", 0.5], ["b", 0.4]], ["a", "b"]),
        ([OrderedDict(id="a", score=0.5)], ["a"]),
        ([UserDict({"id": "a", "score": 0.5})], ["a"]),
        ([(Passage("a", 0.1), 0.5)], ["a"]),
        ([(0.5, Passage("a", 0.1))], ["a"]),
        ([({"id": "a"}, 0.5), ({"id": "b"}, 0.4)], ["a", "b"]),
        ([{"document": {"id": "a", "text": TEXT}, "score": 0.5}], ["a"]),
        ({"result": [{"id": "a", "score": 0.5}]}, ["a"]),
        ({"context": [{"id": "a"}], "question": "what?"}, ["a"]),
        ([[{"corpus_id": 5, "score": 0.5}]], ["5"]),
        ([[3, 4, 5]], ["3", "4", "5"]),
        (([[0.5, 0.4]], [[3, 4]]), ["3", "4"]),
        ((["a", "b"], [0.5, 0.4]), ["a", "b"]),
        ([None, "a"], ["a"]),
        ([7, "b", None, {"id": "c"}, ("d", 0.5)], ["7", "b", "c", "d"]),
        ([], []),
        ((), []),
        ({"documents": []}, []),
        ({"ids": [[]], "distances": [[]]}, []),
        ({"root": {"children": [{"id": "a", "relevance": 0.5, "fields": {"doc_id": "d"}}]}}, ["a"]),
    ],
)
def test_ids_are_found_in_the_shape(value: Any, expected: list[str]) -> None:
    assert ids(value) == expected


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        ([Hit("a", 0.5, TEXT)], [0.5]),
        ([(0.5, "a"), (0.4, "b")], [0.5, 0.4]),
        ([("a", 1), ("b", 2)], [1.0, 2.0]),
        ([(1, 2)], [2.0]),
        ([(0.25, 5)], [0.25]),
        ([(5, 0.25)], [0.25]),
        ([("a", "text", 0.5)], [0.5]),
        ([("a", "text", 12)], [None]),
        ([(Passage("a", 0.1), 0.5)], [0.5]),
        ([(0.5, Passage("a", 0.1))], [0.5]),
        ([Passage("a", 0.1)], [0.1]),
        ([{"document": {"id": "a", "text": TEXT}, "score": 0.5}], [0.5]),
        (([[0.5, 0.4]], [[3, 4]]), [0.5, 0.4]),
        ([("a", TEXT)], [None]),
    ],
)
def test_scores_are_found_in_the_shape(value: Any, expected: list[float | None]) -> None:
    assert scores(value) == expected


@pytest.mark.parametrize(
    "value",
    [
        None,
        "a string",
        b"bytes",
        7,
        0.5,
        {},
        {"a": "mapping of other things"},
        {"id": 7, "score": 1},
        [0.1, 0.2, 0.3],
        [object()],
        [lambda: None],
        {1, 2},
        (row for row in [("a", 0.5)]),
        iter(["a"]),
        range(3),
        [{"role": "user", "content": "a question"}],
        [{"name": "no id, no text"}],
        {"ids": [["a"], ["b"]], "distances": [[0.1], [0.2]]},
        [[["a", 0.5], ["b", 0.4]], [["c", 0.1], ["d", 0.2]]],
        [MagicMock()],
        MagicMock(),
        object(),
        threading.Lock(),
        dict,
        math,
    ],
    ids=lambda value: type(value).__name__,
)
def test_what_is_no_candidate_list_is_none(value: Any) -> None:
    assert read(value) is None
    assert text_refs(value) is None


def test_bare_strings_are_ids_unless_they_are_prose() -> None:
    prose = "Sentences have blanks between their words and are longer than any id would be."
    columns, texts = read_with_texts(["handbook p. 3", prose]) or (None, None)
    assert columns is not None
    assert columns.chunk_id == ["handbook p. 3", None]
    assert texts == ["handbook p. 3", prose]
    assert text_refs(["handbook p. 3", "b"]) is None
    assert text_refs(["one", "two"], strings_are_texts=True) == ["one", "two"]


def test_texts_stand_beside_the_rows_that_were_read() -> None:
    items = [None, {"id": "a", "text": "one"}, {"id": "b"}, ("c", "three", 0.5), "d"]
    columns, texts = read_with_texts(items) or (None, None)
    assert columns is not None
    assert (columns.chunk_id, texts) == (["a", "b", "c", "d"], ["one", None, "three", None])


def test_the_text_of_one_item_is_given_by_reference() -> None:
    text = "x" * 500
    assert text_of_item({"id": "a", "page_content": text}) is text
    assert text_of_item((Passage("a", 0.5, text), 0.5)) is text
    assert text_of_item("a string") is None
    assert text_of_item(object()) is None


def test_an_answer_by_row_numbers_takes_its_items_from_the_input() -> None:
    given = read([{"id": name, "doc_id": "d", "start": n, "end": n + 1} for n, name in enumerate("abc")])
    assert given is not None
    columns = picked(given, [{"index": 2, "relevance_score": 0.9}, {"index": 0, "relevance_score": 0.1}])
    assert columns is not None
    assert (columns.chunk_id, list(columns.score or ()), list(columns.start or ())) == (["c", "a"], [0.9, 0.1], [2, 0])
    assert picked(given, [{"corpus_id": 1, "score": 0.5}]).chunk_id == ["b"]  # type: ignore[union-attr]
    assert picked(given, [{"index": 3, "score": 0.5}]) is None
    assert picked(given, [{"id": "c", "index": 0}]) is None
    assert picked(given, ["a"]) is None


# ---------------------------------------------------------------- extract


class Foreign:
    def __init__(self, key: str, worth: float) -> None:
        self.key, self.worth = key, worth


@pytest.mark.parametrize(
    "extract",
    [
        lambda hit: Candidate(hit.key, hit.worth),
        lambda hit: {"id": hit.key, "score": hit.worth},
        lambda hit: (hit.key, hit.worth),
    ],
)
def test_what_extract_gives_is_read(extract: Any) -> None:
    columns = read([Foreign("a", 0.5), Foreign("b", 0.4)], extract=extract)
    assert columns is not None
    assert (columns.chunk_id, list(columns.score or ()), columns.id_source) == (["a", "b"], [0.5, 0.4], "extract")


def test_extract_may_leave_items_out_and_texts_stay_beside_their_rows() -> None:
    items = [{"key": "a", "text": "one"}, {"key": "b", "text": "two"}]
    columns, texts = read_with_texts(items, extract=lambda item: item["key"] if item["key"] == "b" else None) or (0, 0)
    assert isinstance(columns, Columns)
    assert (columns.chunk_id, texts) == (["b"], ["two"])


def test_an_extract_that_fails_costs_that_item_its_id_only() -> None:
    assert ids([Foreign("a", 1), object(), Foreign("c", 1)], extract=lambda hit: hit.key) == ["a", None, "c"]


def test_extract_gets_the_whole_of_an_unknown_container() -> None:
    box = Foreign("a", 0.5)
    assert ids(box, extract=lambda whole: [(whole.key, whole.worth)]) == ["a"]
    assert read(box, extract=lambda whole: whole) is None


# ---------------------------------------------------------------- hostile objects


class Raises:
    """Raises whatever it is asked."""

    def __getattribute__(self, name: str) -> Any:
        raise RuntimeError(name)

    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __len__(self) -> int:
        raise RuntimeError("len")

    def __getitem__(self, key: object) -> Any:
        raise RuntimeError("getitem")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")

    def __bool__(self) -> bool:
        raise RuntimeError("bool")

    def __repr__(self) -> str:
        raise RuntimeError("repr")

    __hash__ = None  # type: ignore[assignment]


class RaisingList(list[Any]):
    def __iter__(self) -> Any:
        raise RuntimeError("iter")

    def __len__(self) -> int:
        raise RuntimeError("len")


class RaisingDict(dict[str, Any]):
    def __getitem__(self, key: str) -> Any:
        raise RuntimeError("getitem")

    def get(self, key: str, default: Any = None) -> Any:
        raise RuntimeError("get")

    def __iter__(self) -> Any:
        raise RuntimeError("iter")


class KeyThatRaises:
    def __hash__(self) -> int:
        return hash("id")

    def __eq__(self, other: object) -> bool:
        raise RuntimeError("eq")


def cyclic() -> dict[str, Any]:
    item: dict[str, Any] = {"text": TEXT}
    item["metadata"] = item["documents"] = item["hits"] = item["node"] = item
    return item


def deep() -> list[Any]:
    value: list[Any] = []
    for _ in range(10_000):
        value = [value]
    return value


def deep_mapping() -> dict[str, Any]:
    value: dict[str, Any] = {"id": "a"}
    for _ in range(10_000):
        value = {"metadata": value, "documents": value, "hits": value}
    return value


def endless() -> Any:
    class Endless:
        def __getattr__(self, name: str) -> Any:
            return Endless()

    return Endless()


def list_in_itself() -> list[Any]:
    value: list[Any] = []
    value.append(value)
    return value


HOSTILE = {
    "raises": Raises,
    "list of what raises": lambda: [Raises(), Raises()],
    "ids that raise": lambda: [{"id": Raises(), "score": Raises(), "text": TEXT, "start": Raises()}],
    "pairs of what raises": lambda: [(Raises(), 0.5), (Raises(), 0.4)],
    "scores that raise": lambda: [("a", Raises()), ("b", 0.5)],
    "list whose methods raise": lambda: RaisingList(["a"]),
    "dicts whose methods raise": lambda: [RaisingDict(id="a", metadata={})],
    "keys that raise": lambda: [{KeyThatRaises(): 1, "score": 0.5}],
    "cyclic mapping": cyclic,
    "list of cyclic mappings": lambda: [cyclic(), cyclic()],
    "deep list": deep,
    "deep mapping": deep_mapping,
    "list of deep mappings": lambda: [deep_mapping()],
    "every attribute leads on": endless,
    "list of what leads on": lambda: [endless()],
    "later rows that raise": lambda: [{"id": "a"}, Raises(), {"id": "c"}],
    "list in itself": list_in_itself,
    "dict with list-like keys": lambda: [{("a", "b"): 1, ("c",): 2}],
    "lone surrogates": lambda: ["\ud800", {"id": "\udfff", "text": "\ud800"}],
}


@pytest.mark.parametrize("made", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_objects_end_quickly_and_never_raise(made: Any) -> None:
    """I-24"""
    value = made()
    begun = time.perf_counter()
    columns = read(value)
    refs = text_refs(value)
    found = pieces(value)
    text_of_item(value)
    picked(Columns(["a"]), value)
    assert time.perf_counter() - begun < 0.25  # five doors, 50 ms each
    assert columns is None or isinstance(columns, Columns)
    assert refs is None or isinstance(refs, list)
    assert found is None or isinstance(found, list)


def test_a_row_that_raises_keeps_its_rank_without_an_id() -> None:
    assert ids([{"id": "a"}, Raises(), {"id": "c"}]) == ["a", None, "c"]
    assert scores([("a", Raises()), ("b", 0.5)]) == [None, 0.5]


def test_generators_are_not_consumed() -> None:
    rows = (row for row in [("a", 0.5)])
    read(rows)
    read([rows])
    read({"documents": rows})
    assert list(rows) == [("a", 0.5)]


def test_a_database_object_is_not_asked_for_what_it_has_not_loaded() -> None:
    class Row:
        _meta = SimpleNamespace(get_fields=list)  # as Django has it

        def __init__(self) -> None:
            self.id = 7

        @property
        def document(self) -> Any:
            raise AssertionError("asks the database")

    assert ids([Row(), Row()]) == ["7", "7"]


def test_later_changes_by_the_service_change_nothing() -> None:
    items = [{"id": "a", "score": 0.5}]
    columns = read(items)
    names = ["a", "b"]
    of_names = read(names)
    items[0]["id"] = "z"
    names[0] = "z"
    assert columns is not None
    assert of_names is not None
    assert (columns.chunk_id, of_names.chunk_id) == (["a"], ["a", "b"])


# ---------------------------------------------------------------- what is remembered


def test_types_are_not_kept_alive() -> None:
    """Reloaded modules make new types; the old ones must go."""
    import gc
    import weakref

    kind = type("Reloaded", (), {"__init__": lambda self: setattr(self, "id", "a")})
    assert ids([kind()]) == ["a"]
    gone = weakref.ref(kind)
    del kind
    gc.collect()
    assert gone() is None


def test_shapes_made_from_data_do_not_pile_up() -> None:
    for n in range(2_000):
        read([{"id": "a", f"column {n}": n, "metadata": {f"key {n}": n}}])
    assert len(shapes._by_keys) <= shapes.MOST_PLANS
    item = Passage("a", 0.5)
    for n in range(2_000):
        item.metadata = {f"key {n}": n}  # type: ignore[attr-defined]
        read([item])
    assert len(shapes._by_type[Passage].plans) <= shapes.MOST_PLANS


def test_a_plan_made_from_an_odd_item_does_not_spoil_later_lists() -> None:
    assert ids([{"key": 1, "id": None, "text": TEXT}]) == [None]
    assert ids([{"key": 1, "id": "a", "text": TEXT}]) == ["a"]
    assert ids([{"key": 1, "id": "a", "text": None}]) == ["a"]
    assert text_refs([{"key": 1, "id": "a", "text": TEXT}]) == [TEXT]


def test_reading_from_many_threads_gives_each_its_own() -> None:
    failures: list[object] = []

    def work(number: int) -> None:
        for turn in range(200):
            name = f"{number}-{turn}"
            columns = read([{"id": name, f"k{turn % 40}": 1, "score": 0.5}] * 3)
            if columns is None or columns.chunk_id != [name] * 3:
                failures.append(columns)

    threads = [threading.Thread(target=work, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert failures == []


def test_the_module_names_its_doors() -> None:
    assert all(hasattr(candidates, name) for name in candidates.__all__)


def test_an_item_with_a_document_is_read_whole_after_one_without() -> None:
    """What the first item of a kind lacks is no reason to lose the texts of those that have it."""

    @dataclass(frozen=True)
    class Passage:
        id: str
        text: str
        doc_id: str | None = None
        start: int | None = None
        end: int | None = None

    assert pieces([Passage("a", "Body", start=6, end=10)]) == [Piece("Body", 6, None)]
    assert pieces([Passage("b", "More", "handbook", 10, 14)]) == [Piece("More", 10, None)]
    assert pieces([Passage("c", "None"), Passage("d", "Some", "handbook", 14, 18)]) == [
        Piece("None", None, None), Piece("Some", 14, None)
    ]  # fmt: skip
