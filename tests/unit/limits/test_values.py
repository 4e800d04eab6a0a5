"""Values as services really have them, from the call to the database: typed right, never raised on, never doubled."""

from __future__ import annotations

import sys
import time
import uuid
from collections.abc import Callable, Iterator
from datetime import date, datetime, timezone
from decimal import Decimal
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import ragtrace as rt
from ragtrace.store import database, merge
from tests.traced import Traced

CANDIDATES = (
    "select i.chunk_id as id, c.score, c.score_flag as flag from candidates as c join items as i on i.item = c.item "
    "join lists as l on l.list_id = c.list_id join stages as s on s.stage_id = l.stage_id where s.name = ? order by c.rank"
)


@pytest.fixture
def stored(traced: Traced) -> Callable[..., list[tuple[Any, ...]]]:
    """Ask the store, once everything is in it."""

    def ask(sql: str, *parameters: Any) -> list[tuple[Any, ...]]:
        if traced.connection is None:
            rt.shutdown(10)
            merge.merge(traced.store)
            traced.connection = database.connect(traced.store)
        return [tuple(row.values()) for row in traced.rows(sql, *parameters)]

    return ask


def put_out(value: Any, name: str = "stage") -> None:
    with rt.query("q"), rt.retrieve(name=name) as stage:
        stage.output(value)


# ------------------------------------------------------------------------------------------------ scores


@pytest.fixture
def tensor(monkeypatch: pytest.MonkeyPatch) -> Callable[[Any], Any]:
    """A 0-d tensor, by the module its type says it comes from: PyTorch is 800 MB."""

    class Tensor:
        ndim = 0

        def __init__(self, value: Any) -> None:
            self.value = value

        def item(self) -> Any:
            if isinstance(self.value, Exception):
                raise self.value
            return self.value

    Tensor.__module__ = "torch"
    monkeypatch.setitem(sys.modules, "torch", ModuleType("torch"))
    return Tensor


def test_scores_of_every_kind_are_doubles_or_say_why_not(stored: Any, tensor: Callable[[Any], Any]) -> None:
    """I-22, D-16"""
    inf = float("inf")
    plain = [
        (0.5, 0.5), (np.float16(0.25), 0.25), (np.float32(0.1), float(np.float32(0.1))), (np.float64(0.1), 0.1),
        (np.int64(3), 3.0), (np.bool_(True), 1.0), (True, 1.0), (Decimal("0.125"), 0.125), (tensor(0.75), 0.75), (7, 7.0),
        (-0.0, 0.0), (None, None),
    ]  # fmt: skip
    odd = [
        (float("nan"), "nan"), (np.float32("nan"), "nan"), (Decimal("NaN"), "nan"), (inf, "inf"), (-inf, "-inf"),
        (Decimal("-Infinity"), "-inf"), ("0.5", "unreadable"), (10**400, "unreadable"), (object(), "unreadable"),
        (Decimal("sNaN"), "unreadable"), (tensor(RuntimeError("no data")), "unreadable"), ([0.5], "unreadable"),
    ]  # fmt: skip
    put_out([{"id": f"c{n}", "score": score} for n, (score, _) in enumerate(plain)], "plain")
    put_out([{"id": f"c{n}", "score": score} for n, (score, _) in enumerate(odd)], "odd")
    assert [row[1:] for row in stored(CANDIDATES, "plain")] == [(expected, None) for _, expected in plain]
    assert [row[1:] for row in stored(CANDIDATES, "odd")] == [(None, flag) for _, flag in odd]


def test_no_score_poisons_an_average_or_comes_first(stored: Any) -> None:
    """D-15"""
    put_out([("a", 0.5), ("b", float("nan")), ("c", float("inf")), ("d", 0.25), ("e", None)])
    assert stored("select avg(score) from candidates") == [(0.375,)]
    first = stored("select score from candidates where score is not null order by score desc limit 1")
    assert first == [(0.5,)]


@pytest.mark.parametrize("order", [[None, 0.5], [0.5, None]])
def test_a_column_without_a_value_keeps_its_type(order: list[Any], stored: Any) -> None:
    """D-12"""
    for number, score in enumerate(order):
        put_out([{"id": "a", "score": score}], f"s{number}")
    assert stored("select typeof(score), count(score) from candidates group by all order by all") == [("DOUBLE", 1)]


# ------------------------------------------------------------------------------------------------ ids

SAME = {
    "7": [7, "7", 7.0, np.int64(7), np.uint8(7), np.float32(7), Decimal("7"), Decimal("7.0"), np.str_("7"), b"7"],
    str(10**30): [10**30, str(10**30), Decimal(10**30)],
    "00000000-0000-0000-0000-000000000001": [uuid.UUID(int=1), str(uuid.UUID(int=1))],
    "ff": [b"\xff", "ff"],
    "2026-11-30": [date(2026, 11, 30), "2026-11-30"],
    "2026-11-30T12:00:00+00:00": [datetime(2026, 11, 30, 12, tzinfo=timezone.utc), "2026-11-30T12:00:00+00:00"],
    "a\0b": ["a\0b"],
    "?": ["\ud800", "\ud801", "?"],
    "ключ 鍵 🔑": ["ключ 鍵 🔑"],
    "x" * 3_000_000: ["x" * 3_000_000],
}


def test_ids_that_are_the_same_item_are_one_item_and_the_others_are_not(stored: Any) -> None:
    """D-11: the table of docs/limits.md."""
    for number, same in enumerate(SAME.values()):
        put_out([{"id": value, "score": 1.0} for value in same], f"s{number}")
    for number, (text, same) in enumerate(SAME.items()):
        assert [row[0] for row in stored(CANDIDATES, f"s{number}")] == [text] * len(same)
    texts = stored("select distinct chunk_id from items")
    assert {text for (text,) in texts} == set(SAME)


def test_what_is_no_id_keeps_its_rank_without_one(stored: Any) -> None:
    put_out(
        [{"id": value, "score": 0.5} for value in ("a", "", True, float("nan"), 7.5, object(), (1, 2), 10**5000, "b")]
    )
    assert [row[0] for row in stored(CANDIDATES, "stage")] == ["a", *[None] * 7, "b"]


def test_an_id_named_by_itself_is_the_same_item_as_in_a_list(stored: Any) -> None:
    values = [10**12, uuid.UUID(int=2), np.int64(5), Decimal("8"), b"k"]
    with rt.query("q"), rt.filter(name="named") as stage:
        stage.output([])
        for value in values:
            stage.dropped(value, "old", by=10**12)
    rt.inventory(index="main", chunk_ids=values)
    expected = ["1000000000000", str(uuid.UUID(int=2)), "5", "8", "k"]
    assert [row[0] for row in stored(CANDIDATES, "named")] == expected
    assert stored("select distinct dropped_by from candidates") == [("1000000000000",)]
    assert [row[0] for row in stored("select chunk_id from inventories")] == expected


def test_names_of_queries_and_documents_may_be_numbers_and_uuids(stored: Any) -> None:
    one = uuid.UUID(int=1)
    with rt.query("q", question_id=20261130123456, session=one), rt.document(10**15, version=one):
        pass
    assert stored("select question_id, session_id from queries") == [("20261130123456", str(one))]
    assert stored("select doc_id, doc_version from documents") == [(str(10**15), str(one))]


# ------------------------------------------------------------------------------------------------ texts and objects

ODD = "lone \ud800 and \udfff, NUL \0, BOM \ufeff, 🔑"


def test_odd_characters_pass_everywhere_and_keep_the_length(stored: Any) -> None:
    with rt.document(ODD, version=ODD):
        rt.chunk(lambda text: [text])(rt.parse(lambda: ODD)())
        rt.index(index=ODD)(lambda pieces: ["c" + ODD])([ODD])
    with pytest.raises(ValueError), rt.query(ODD, question_id=ODD, session=ODD):  # noqa: PT011, PT012
        with rt.retrieve(name=ODD, filter={ODD: ODD}, sub_query=ODD, query=ODD, model=ODD, index=ODD) as stage:
            stage.output([{"id": ODD, "doc_id": ODD, "text": ODD, "start": 0, "end": len(ODD), "score": 1}])
            stage.dropped(ODD, ODD, by=ODD)
        rt.context(ODD)
        raise ValueError(ODD)
    kept = ODD.encode("utf-8", "replace").decode()
    assert len(kept) == len(ODD)
    assert stored("select question, question_id, session_id, error_message from queries") == [(kept,) * 4]
    assert stored("select name, query_text, sub_query, index_name from stages where kind = 'retrieve'") == [(kept,) * 4]
    assert stored("select text, is_aligned from texts") == [(kept, True)]
    assert stored("select distinct doc_id, doc_version from documents") == [(kept, kept)]
    assert (kept, kept) in stored("select drop_reason, dropped_by from candidates")
    assert stored("select reason from losses") == []


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {}
    made["self"] = [made]
    return made


class Raising:
    def _raise(self, *arguments: Any) -> Any:
        raise RuntimeError("do not look")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __getattr__ = __float__ = _raise  # type: ignore[assignment]


def wide() -> list[Any]:
    made: list[Any] = []
    for _ in range(50):
        made = [made, made]  # 2^50 leaves, 50 lists
    return made


@pytest.mark.parametrize(
    "value",
    [Raising(), cyclic(), wide(), Decimal("sNaN"), 10**5000, {"k": Raising()}, [Raising()] * 3],
    ids=["raising", "cyclic", "wide", "sNaN", "digits", "inside a mapping", "inside a list"],
)
def test_an_object_that_cannot_be_said_costs_itself_only(value: Any, stored: Any) -> None:
    """I-23, I-24"""

    @rt.retrieve(name="stage", model=value)
    def search(query: str, k: Any, threshold: Any, index: Any, filter: Any, sub_query: Any, mode: Any) -> list[str]:
        return ["a"]

    began = time.perf_counter()
    with rt.query("q"):
        assert search("asked", value, value, value, value, value, value) == ["a"]
        assert rt.rerank(name="passed")(lambda given: given)(value) is value
    assert time.perf_counter() - began < 1
    assert [row[0] for row in stored(CANDIDATES, "stage")] == ["a"]
    assert stored("select query_text from stages where name = 'stage'") == [("asked",)]
    assert stored("select count(*) from stages") == [(2,)]


def test_metadata_that_changes_its_shape_is_json_text(stored: Any) -> None:
    """D-13"""
    for number, value in enumerate([{"a": 1}, {"a": "x", "b": {}}, {"a": None}, None]):
        with rt.query("q"), rt.retrieve(name=f"s{number}", filter=value) as stage:
            stage.output([])
    found = stored("select json_extract_string(filter, '$.a') from stages order by stage_id")
    assert [row[0] for row in found] == ["1", "x", None, None]


def test_a_generator_among_the_arguments_is_not_consumed() -> None:
    """I-23"""

    def numbers() -> Iterator[int]:
        yield from range(3)

    given = numbers()
    rt.rerank(lambda stream: ["a"])(given)
    assert list(given) == [0, 1, 2]


def test_lists_changed_in_place_after_the_call_stay_as_they_were(stored: Any) -> None:
    hits = [{"id": "a", "score": 1.0, "text": "one"}, {"id": "b", "score": 0.5, "text": "two"}]
    scores, ranges = np.array([0.9, 0.8], dtype="float32"), [(0, 3)]
    with rt.query("q"):
        found = rt.retrieve(name="hits")(lambda: hits)()
        rt.retrieve(name="arrays")(lambda: (scores, np.array([1, 2])))()
        rt.retrieve(name="chunks")(lambda: [rt.Chunk("c", "one", doc_id="d", ranges=ranges)])()
        found[0]["id"], found[1]["score"] = "changed", -1.0
        found.append({"id": "new"})
        found.reverse()
        scores[:] = 0
        ranges.append((5, 9))
    assert stored(CANDIDATES, "hits") == [("a", 1.0, None), ("b", 0.5, None)]
    assert [round(row[1], 3) for row in stored(CANDIDATES, "arrays")] == [0.9, 0.8]
    assert stored("select count(*) from item_ranges where end_at = 9") == [(0,)]
