"""Which place a candidate row takes, and what late records change about it (docs/internals.md, section 2)."""

from __future__ import annotations

from pathlib import Path

from ragtrace.spool.records import Record
from tests.unit.store.logs import BEGIN_NS, ingested, merged, new_id, out, query, rows, same, stage

RANGES = """
select c.rank, i.chunk_id, r.doc_id, r.text_hash, r.start_at, r.end_at, r.role
from candidates as c join items as i using (item) left join item_ranges as r using (item)
where c.list_id = {} order by all
"""


def _ranges(store: Path, one: object) -> list[tuple[object, ...]]:
    return [row[1:] for row in rows(store, RANGES.format(one.list_id))]  # type: ignore[attr-defined]  # a CandidateList


def _asked(*stages: Record, query_id: int | None = None, at_ns: int = BEGIN_NS) -> list[Record]:
    query_id = new_id() if query_id is None else query_id
    for record in stages:
        record.body.row["query_id"] = query_id
    return [*stages, query(query_id, stages, at_ns)]


def test_a_row_with_a_place_keeps_it(store: Path) -> None:
    one = out(["a"], doc_id=["d"], start=[5], end=[9], text_hash="h")
    merged(store, _asked(stage("retrieve", one)))
    assert _ranges(store, one) == [("a", "d", "h", 5, 9, "own")]


def test_a_row_without_a_place_takes_its_chunk_of_the_index(store: Path) -> None:
    one = out(["a", "b"])
    merged(store, [*ingested("d", ["a", "b"], [(0, 10), (10, 20)]), *_asked(stage("retrieve", one, index_name="main"))])
    assert _ranges(store, one) == [("a", "d", "hash-1", 0, 10, "own"), ("b", "d", "hash-1", 10, 20, "own")]


def test_with_no_index_named_the_only_index_that_has_the_id_counts(store: Path) -> None:
    one = out(["a", "twice"])
    records = [
        *ingested("d", ["a", "twice"], [(0, 10), (10, 20)], index_name="one"),
        *ingested("e", ["twice"], [(0, 30)], index_name="two"),
    ]
    merged(store, [*records, *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [("a", "d", "hash-1", 0, 10, "own"), ("twice", None, None, None, None, None)]


def test_an_id_in_two_indexes_is_two_items_when_the_searches_name_theirs(store: Path) -> None:
    first, second, fused = out(["x"]), out(["x"]), out(["x"])
    records = [*ingested("d", ["x"], [(0, 10)], index_name="one"), *ingested("e", ["x"], [(0, 30)], index_name="two")]
    stages = [
        stage("retrieve", first, index_name="one"),
        stage("retrieve", second, start=3, index_name="two"),
        stage("fuse", fused, start=5),
    ]
    merged(store, [*records, *_asked(*stages)])
    assert _ranges(store, first) == [("x", "d", "hash-1", 0, 10, "own")]
    assert _ranges(store, second) == [("x", "e", "hash-1", 0, 30, "own")]
    assert len(_ranges(store, fused)) == 1


def test_a_row_without_a_place_takes_the_one_its_id_has_elsewhere_in_the_query(store: Path) -> None:
    found, ranked = out(["a", "b"], doc_id=["d", "d"], start=[0, 10], end=[10, 20], text_hash="h"), out(["b"])
    merged(store, _asked(stage("retrieve", found), stage("rerank", ranked, start=3)))
    assert _ranges(store, ranked) == [("b", "d", "h", 10, 20, "own")]


def test_the_place_elsewhere_in_the_query_goes_before_the_index(store: Path) -> None:
    found, ranked = out(["a"], doc_id=["d"], start=[3], end=[7], text_hash="h"), out(["a"])
    merged(
        store, [*ingested("d", ["a"], [(0, 10)]), *_asked(stage("retrieve", found), stage("rerank", ranked, start=3))]
    )
    assert _ranges(store, ranked) == [("a", "d", "h", 3, 7, "own")]


def test_a_place_that_comes_up_only_later_in_the_query_is_taken_too(store: Path) -> None:
    found, joined = out(["a"]), out(["a"], doc_id=["d"], start=[0], end=[10], text_hash="h")
    merged(store, _asked(stage("retrieve", found), stage("expand", joined, start=3)))
    assert _ranges(store, found) == [("a", "d", "h", 0, 10, "own")]


def test_only_the_document_known_makes_all_of_it_possible(store: Path) -> None:
    one = out(["a"], doc_id=["d"])
    merged(store, _asked(stage("retrieve", one)))
    assert _ranges(store, one) == [("a", "d", None, None, None, "possible")]


def test_a_row_that_names_its_document_is_not_the_chunk_of_another_document(store: Path) -> None:
    one = out(["0"], doc_id=["e"])
    merged(store, [*ingested("d", ["0"], [(0, 10)]), *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [("0", "e", None, None, None, "possible")]


def test_a_row_that_nothing_places_has_no_range(store: Path) -> None:
    one = out(["a", None])
    merged(store, _asked(stage("retrieve", one)))
    assert [row[2:] for row in _ranges(store, one)] == [(None,) * 4] * 2


def test_the_chunk_is_the_one_written_before_the_query_began(store: Path) -> None:
    before, after = out(["a"]), out(["a"])
    records = [
        *ingested("d", ["a"], [(0, 10)], at_ns=BEGIN_NS - 20_000),
        *ingested("d", ["a"], [(0, 40)], at_ns=BEGIN_NS + 20_000, text_hash="hash-2"),
        *_asked(stage("retrieve", before)),
        *_asked(stage("retrieve", after), at_ns=BEGIN_NS + 40_000),
    ]
    merged(store, records)
    assert _ranges(store, before) == [("a", "d", "hash-1", 0, 10, "own")]
    assert _ranges(store, after) == [("a", "d", "hash-2", 0, 40, "own")]
    assert rows(store, "select place, version from items where place like '=%' order by version") == [
        ("=1", 0),
        ("=2", 1),
    ]


def test_a_chunk_first_written_after_the_query_began_places_nothing(store: Path) -> None:
    one = out(["a"])
    merged(store, [*ingested("d", ["a"], [(0, 10)], at_ns=BEGIN_NS + 1), *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [("a", None, None, None, None, None)]


def test_chunks_recorded_without_an_index_run_place_rows_too(store: Path) -> None:
    one = out(["a"])
    merged(store, [*ingested("d", ["a"], [(0, 10)], is_indexed=False), *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [("a", "d", "hash-1", 0, 10, "own")]


def test_the_ids_an_index_gives_back_are_its_chunks_by_position(store: Path) -> None:
    given, one = out(["n1", "n2"]), out(["n2"])
    ingest = new_id()
    records = [
        Record("document", {"ingest_id": ingest, "doc_id": "d", "recorded_at_ns": BEGIN_NS - 900}),
        stage(
            "index",
            out([None, None], "in", doc_id=["d", "d"], start=[0, 10], end=[10, 20], text_hash="h"),
            given,
            at_ns=BEGIN_NS - 500,
            ingest_id=ingest,
        ),
    ]
    merged(store, [*records, *_asked(stage("retrieve", one))])
    assert _ranges(store, given) == [("n1", "d", "h", 0, 10, "own"), ("n2", "d", "h", 10, 20, "own")]
    assert _ranges(store, one) == [("n2", "d", "h", 10, 20, "own")]


def test_what_is_left_of_an_item_is_found_in_the_place_it_had(store: Path) -> None:
    found = out(["a"], ranges={0: [(100, 110), (200, 230)]}, doc_id=["d"], text_hash="h")
    packed = out(["a"], cut={0: [(5, 15)]})
    merged(store, _asked(stage("retrieve", found), stage("compress", packed, start=3)))
    assert _ranges(store, packed) == [("a", "d", "h", 105, 110, "own"), ("a", "d", "h", 200, 205, "own")]


def test_what_is_left_of_an_item_placed_by_its_chunk_is_found_too(store: Path) -> None:
    found, packed = out(["a"]), out(["a"], cut={0: [(5, 8)]})
    merged(
        store,
        [*ingested("d", ["a"], [(100, 200)]), *_asked(stage("retrieve", found), stage("compress", packed, start=3))],
    )
    assert _ranges(store, packed) == [("a", "d", "hash-1", 105, 108, "own")]


def test_of_a_rewritten_item_all_may_be_there_and_nothing_surely(store: Path) -> None:
    found = out(["a"], doc_id=["d"], start=[0], end=[10], text_hash="h")
    packed = out(["a"], altered=[0])
    merged(store, _asked(stage("retrieve", found), stage("compress", packed, start=3)))
    assert _ranges(store, packed) == [("a", "d", "h", 0, 10, "possible")]
    assert rows(store, "select chunk_id, is_altered from items where is_altered") == [("a", True)]


def test_the_list_after_a_cut_holds_the_cut_item(store: Path) -> None:
    found = out(["a"], doc_id=["d"], start=[0], end=[100], text_hash="h", item_text_hash=["whole"])
    packed, last = out(["a"], cut={0: [(0, 10)]}, item_text_hash=["part"]), out(["a"], item_text_hash=["part"])
    merged(
        store, _asked(stage("retrieve", found), stage("compress", packed, start=3), stage("truncate", last, start=5))
    )
    assert _ranges(store, last) == [("a", "d", "h", 0, 10, "own")]


def test_a_row_whose_text_is_the_whole_one_takes_the_whole_place_though_it_was_cut_elsewhere(store: Path) -> None:
    found = out(["a"], doc_id=["d"], start=[0], end=[100], text_hash="h", item_text_hash=["whole"])
    packed, last = out(["a"], cut={0: [(0, 10)]}, item_text_hash=["part"]), out(["a"], item_text_hash=["whole"])
    merged(
        store, _asked(stage("retrieve", found), stage("compress", packed, start=3), stage("truncate", last, start=5))
    )
    assert _ranges(store, last) == [("a", "d", "h", 0, 100, "own")]


def test_a_list_of_ids_after_a_rewritten_item_may_hold_it_and_surely_does_not(store: Path) -> None:
    found = out(["a"], doc_id=["d"], start=[0], end=[100], text_hash="h")
    packed, last = out(["a"], altered=[0]), out(["a"])
    merged(
        store, _asked(stage("retrieve", found), stage("compress", packed, start=3), stage("truncate", last, start=5))
    )
    assert _ranges(store, last) == [("a", "d", "h", 0, 100, "possible")]


def test_a_cut_counts_in_the_chunk_where_the_first_range_that_was_shown_may_be_what_was_left(store: Path) -> None:
    found, left = out(["a"]), out(["a"], doc_id=["d"], start=[100], end=[103], text_hash="hash-1")
    packed = out(["a"], cut={0: [(5, 8)]})
    stages = (stage("retrieve", found), stage("compress", left, start=3), stage("compress", packed, start=5))
    merged(store, [*ingested("d", ["a"], [(100, 200)]), *_asked(*stages)])
    assert _ranges(store, packed) == [("a", "d", "hash-1", 105, 108, "own")]


def test_a_row_that_only_says_what_it_stands_for_takes_its_place_from_the_chunk(store: Path) -> None:
    one = out(["a", "b"], doc_id=["d", "d"], stands_for={0: [(0, 500)], 1: [(0, 500)]})
    merged(store, [*ingested("d", ["a"], [(0, 10)]), *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [
        ("a", "d", "hash-1", 0, 10, "own"),
        ("b", "d", "hash-1", 0, 500, "possible"),
        ("b", "d", "hash-1", 0, 500, "stands_for"),
    ]


def test_ranges_an_item_stands_for_and_possible_ones_keep_their_roles(store: Path) -> None:
    one = out(["s"], doc_id=["d"], stands_for={0: [(0, 500)]}, possible={0: [(600, 700)]}, text_hash="h")
    merged(store, _asked(stage("retrieve", one)))
    assert _ranges(store, one) == [("s", "d", "h", 0, 500, "stands_for"), ("s", "d", "h", 600, 700, "possible")]


def test_ranges_without_a_text_hash_refer_to_the_newest_text_before_the_query(store: Path) -> None:
    one = out(["a"], doc_id=["d"], start=[0], end=[10])
    parses = [
        Record(
            "parse",
            {"stage_id": new_id(), "doc_id": "d", "text_hash": name, "n_characters": 9, "parsed_at_ns": BEGIN_NS + at},
        )
        for name, at in (("old", -20), ("new", -10), ("later", 10))
    ]
    merged(store, [*parses, *_asked(stage("retrieve", one))])
    assert _ranges(store, one) == [("a", "d", "new", 0, 10, "own")]


def test_a_place_of_minus_one_is_no_place(store: Path) -> None:
    one = out(["a"], doc_id=["d"], start=[-1], end=[-1])
    merged(store, _asked(stage("retrieve", one)))
    assert _ranges(store, one) == [("a", "d", None, None, None, "possible")]


def test_chunks_that_come_late_place_the_rows_that_wait_for_them(store: Path) -> None:
    one, packed = out(["a", "b"]), out(["a"], cut={0: [(2, 4)]})
    merged(store, _asked(stage("retrieve", one), stage("compress", packed, start=3)))
    assert [row[1:] for row in _ranges(store, one)] == [(None,) * 5] * 2
    merged(store, ingested("d", ["a"], [(10, 20)]), "2-2-b.log")
    assert _ranges(store, one) == [("a", "d", "hash-1", 10, 20, "own"), ("b", None, None, None, None, None)]
    assert _ranges(store, packed) == [("a", "d", "hash-1", 12, 14, "own")]


def test_a_newer_chunk_that_comes_late_moves_the_rows_of_later_queries_only(store: Path) -> None:
    early, late = out(["a"]), out(["a"])
    records = [
        *ingested("d", ["a"], [(0, 10)], at_ns=BEGIN_NS - 90_000),
        *_asked(stage("retrieve", early), at_ns=BEGIN_NS),
    ]
    merged(store, [*records, *_asked(stage("retrieve", late), at_ns=BEGIN_NS + 50_000)])
    merged(store, ingested("d", ["a"], [(0, 30)], at_ns=BEGIN_NS + 10_000, text_hash="hash-2"), "2-2-b.log")
    assert _ranges(store, early) == [("a", "d", "hash-1", 0, 10, "own")]
    assert _ranges(store, late) == [("a", "d", "hash-2", 0, 30, "own")]


def test_a_text_that_comes_late_is_the_one_earlier_ranges_refer_to(store: Path) -> None:
    one = out(["a"], doc_id=["d"], start=[0], end=[10])
    merged(store, _asked(stage("retrieve", one)))
    assert _ranges(store, one) == [("a", "d", None, 0, 10, "own")]
    late = Record(
        "parse",
        {"stage_id": new_id(), "doc_id": "d", "text_hash": "h", "n_characters": 9, "parsed_at_ns": BEGIN_NS - 5},
    )
    merged(store, [late], "2-2-b.log")
    assert _ranges(store, one) == [("a", "d", "h", 0, 10, "own")]


def test_an_index_run_that_gives_ids_only_gets_the_places_of_chunks_that_come_late(store: Path) -> None:
    written, one = out(["a"], "in"), out(["a"])
    index = stage("index", written, at_ns=BEGIN_NS - 100, ingest_id=new_id(), index_name="main")
    merged(store, [index, *_asked(stage("retrieve", one))])
    merged(store, ingested("d", ["a"], [(0, 10)], is_indexed=False), "2-2-b.log")
    assert _ranges(store, one) == [("a", "d", "hash-1", 0, 10, "own")]
    assert _ranges(store, written) == [("a", "d", "hash-1", 0, 10, "own")]


def test_an_item_is_stored_once_however_many_rows_refer_to_it(store: Path) -> None:
    for number in range(3):
        merged(
            store, _asked(stage("retrieve", out(["a", "b"])), stage("rerank", out(["b"]), start=3)), f"{number}-1-a.log"
        )
    assert rows(store, "select count(*), count(distinct item) from items") == [(2, 2)]
    assert rows(store, "select count(*), count(distinct item) from candidates") == [(9, 2)]


def test_scores_that_are_not_finite_are_null_with_a_flag(store: Path) -> None:
    one = out(["a", "b", "c"], score=[0.5, float("nan"), float("inf")], score_flag={1: "nan", 2: "inf"})
    merged(store, _asked(stage("retrieve", one)))
    assert rows(store, "select score, score_flag from candidates order by rank") == [
        (0.5, None),
        (None, "nan"),
        (None, "inf"),
    ]


def test_what_was_not_let_through_is_kept_with_its_reason(store: Path) -> None:
    lost = out(["a"], "dropped", dropped=[0], drop_reason={0: "acl"}, dropped_by={0: "group"}, tokens=[7], position=[2])
    merged(store, _asked(stage("filter", lost)))
    assert rows(store, "select is_kept, drop_reason, dropped_by, tokens, position from candidates") == [
        (False, "acl", "group", 7, 2)
    ]


def test_lists_that_say_more_stand_apart_and_are_pointed_to_a_late_chunk_all_the_same(store: Path) -> None:
    """Both tables of candidates are one to whoever reads, and follow when the chunk of an id comes to be known."""
    plain, full = out(["a", "b"]), out(["a"], tokens=[7])
    merged(store, _asked(stage("retrieve", plain), stage("truncate", full, start=3)))
    assert rows(store, "select count(*) from plain_candidates union all select count(*) from full_candidates") == [
        (2,),
        (1,),
    ]
    merged(store, ingested("d", ["a", "b"], [(0, 10), (10, 20)]), "2-1-a.log")
    assert rows(
        store,
        "select c.list_id, c.rank, c.tokens, i.chunk_id, i.doc_id from candidates as c join items as i using (item) where i.place like '=%' order by all",
    ) == [(plain.list_id, 1, None, "a", "d"), (plain.list_id, 2, None, "b", "d"), (full.list_id, 1, 7, "a", "d")]


def test_an_id_that_utf8_cannot_say_costs_only_its_letters(store: Path) -> None:
    one = out(["a\ud800", "b\0c"])
    merged(store, _asked(stage("retrieve", one)))
    assert rows(store, "select chunk_id from items order by item") == [("a?",), ("b\0c",)]


def test_equal_lists_share_rows(store: Path) -> None:
    first = out(["a", "b"])
    merged(store, _asked(stage("retrieve", first), stage("rerank", same(first), out(["b"]), start=3)))
    assert rows(store, "select role, n_candidates, same_as_list_id is not null from lists order by list_id") == [
        ("out", 2, False), ("in", 2, True), ("out", 1, False),
    ]  # fmt: skip


def test_ids_that_come_joined_alike_and_one_by_one_are_numbered_together(store: Path) -> None:
    """A log has a list of ids as one text, as one value for all rows, or as JSON; an id is one item in each of them."""
    lists = [out(["a", "b", "c"]), out(["b", "b"]), out(["c", None, "a"]), out(["a", "d"])]
    merged(store, _asked(*(stage("retrieve", one, start=2 * number + 1) for number, one in enumerate(lists))))
    for one in lists:
        found = rows(
            store,
            f"select i.chunk_id from candidates as c join items as i using (item) where c.list_id = {one.list_id} order by c.rank",
        )
        assert [row[0] for row in found] == list(one.columns.chunk_id)
    assert rows(store, "select count(*) from items where chunk_id is not null") == [(4,)]


def test_an_id_that_utf8_cannot_say_leaves_the_lists_beside_it_in_order(store: Path) -> None:
    odd, plain = out(["x", "a\ud800"]), out(["b", "x"])
    merged(store, _asked(stage("retrieve", odd), stage("retrieve", plain, start=3)))
    assert rows(
        store, "select i.chunk_id from candidates as c join items as i using (item) order by c.list_id, c.rank"
    ) == [("x",), ("a?",), ("b",), ("x",)]
