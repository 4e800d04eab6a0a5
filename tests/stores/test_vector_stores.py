"""What the clients of vector stores return, read with the lines of docs/vector-stores.md."""

from __future__ import annotations

import re
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import ragtrace as rt
from ragtrace.recording.candidates import read, read_with_texts
from ragtrace.spool.records import Columns
from tests.stores import clients
from tests.traced import Traced

PAGE = Path(__file__).resolve().parents[2] / "docs" / "vector-stores.md"
BLOCKS = dict(re.findall(r"^## ([^\n]+)\n\n```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.M | re.S))
PLACELESS = ("FAISS", "hnswlib")


def columns_of(value: Any) -> Columns:
    columns = read(value)
    assert columns is not None
    return columns


def test_every_store_has_a_block_and_a_row_in_the_table() -> None:
    assert list(BLOCKS) == list(clients.STORES)
    rows = re.findall(r"^\| \[([^\]]+)\]\(#([^)]+)\)", PAGE.read_text(encoding="utf-8"), re.M)
    assert [anchor for _, anchor in rows] == [name.lower().replace(" ", "-") for name in clients.STORES]


@pytest.mark.parametrize(
    "name",
    [pytest.param(name, marks=[pytest.mark.full] if name in clients.IN_FULL else []) for name in clients.STORES],
)
def test_the_lines_of_a_store_record_ids_scores_places_and_their_direction(
    name: str, tmp_path: Path, traced: Traced
) -> None:
    make, kind = clients.STORES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # clients warn of their own future
        with make(tmp_path) as names:
            names |= {"rt": rt, "embed": clients.embed}
            exec(compile(BLOCKS[name], f"{PAGE.name}: {name}", "exec"), names)
            with rt.query("How long may a visitor stay?"):
                names["search"]("How long may a visitor stay?")
    traced.merge()
    (stage,) = traced.rows("select kind, score_kind, capture_error from stages")
    assert stage == {"kind": "retrieve", "score_kind": kind, "capture_error": None}
    found = traced.rows(
        "select chunk_id, score, items.doc_id, item_ranges.start_at, item_ranges.end_at"
        " from candidates join items using (item) left join item_ranges using (item) order by rank"
    )
    assert [row["chunk_id"] for row in found] == ["0", "1", "2"]
    scores = [row["score"] for row in found]
    assert scores == sorted(scores, reverse=kind != "distance")
    assert len(set(scores)) == 3
    if name not in PLACELESS:
        places = [(row["doc_id"], row["start_at"], row["end_at"]) for row in found]
        assert places == [(one["doc_id"], one["start"], one["end"]) for one in clients.FIELDS[:3]]


# ------------------------------------------------------------------ the other spaces


@pytest.mark.parametrize(("metric", "kind"), [("L2", "distance"), ("IP", "similarity")])
def test_faiss_scores_are_what_their_order_shows(metric: str, kind: str, tmp_path: Path) -> None:
    with clients.faiss(tmp_path, metric) as names:
        assert columns_of(names["index"].search(clients.VECTORS[:1], 3)).score_kind == kind


@pytest.mark.parametrize("space", ["l2", "ip", "cosine"])
def test_hnswlib_gives_distances_in_every_space_even_a_single_one(space: str, tmp_path: Path) -> None:
    with clients.hnswlib(tmp_path, space) as names:
        for k in (1, 3):
            assert columns_of(names["index"].knn_query(clients.VECTORS[0], k)).score_kind == "distance"


@pytest.mark.parametrize(
    ("metric", "kind"),
    [("COSINE", "similarity"), ("DOT", "similarity"), ("EUCLID", "distance"), ("MANHATTAN", "distance")],
)
def test_qdrant_scores_are_what_their_order_shows(metric: str, kind: str, tmp_path: Path) -> None:
    with clients.qdrant(tmp_path, metric) as names:
        found = names["client"].query_points("handbook", query=clients.VECTORS[0].tolist(), limit=3)
    for shape in (found, found.points, [found]):
        assert columns_of(shape).score_kind == kind
        assert list(columns_of(shape).chunk_id) == ["0", "1", "2"]


def test_qdrants_groups_and_pages_are_lists_of_their_points(tmp_path: Path) -> None:
    with clients.qdrant(tmp_path) as names:
        client = names["client"]
        groups = client.query_points_groups(
            "handbook", group_by="doc_id", query=clients.VECTORS[0].tolist(), limit=2, group_size=2
        )
        page = client.scroll("handbook", limit=3)
    assert list(columns_of(groups).chunk_id) == ["0", "1"]
    assert list(columns_of(page).chunk_id) == ["0", "1", "2"]


def test_faiss_with_the_vectors_and_by_range_is_read(tmp_path: Path) -> None:
    with clients.faiss(tmp_path) as names:
        index = names["index"]
        assert list(columns_of(index.search_and_reconstruct(clients.VECTORS[:1], 3)).chunk_id) == ["0", "1", "2"]
        assert sorted(columns_of(index.range_search(clients.VECTORS[:1], 1.0)).chunk_id) == ["0", "1", "2"]


def test_lancedb_tables_frames_and_searches_by_words_are_read(tmp_path: Path) -> None:
    with clients.lancedb(tmp_path) as names:
        table = names["table"]
        search = table.search(clients.VECTORS[0]).limit(3)
        for found in (search.to_arrow(), search.to_pandas(), search.to_polars()):
            assert list(columns_of(found).chunk_id) == ["0", "1", "2"]
            assert columns_of(found).score_kind == "distance"
        table.create_index("text", config=clients.client_of("lancedb.index").FTS())
        words = columns_of(table.search("second", query_type="fts").limit(3).to_list())
        assert list(words.chunk_id) == ["2"]
        assert words.score_kind is None


@pytest.mark.full
@pytest.mark.parametrize(("metric", "kind"), [("L2", "distance"), ("IP", "similarity")])
def test_milvus_scores_are_what_their_order_shows_whatever_their_name(metric: str, kind: str, tmp_path: Path) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the client's own
        with clients.milvus(tmp_path, metric) as names:
            how = {"data": [clients.VECTORS[0].tolist()], "limit": 3, "output_fields": ["text"]}
            for shape in (names["client"].search("handbook", **how), names["client"].search("handbook", **how)[0]):
                rows = read_with_texts(shape)
                assert rows is not None
                assert rows[0].score_kind == kind
                assert rows[1] == list(clients.TEXTS[:3])


@pytest.mark.full
def test_rows_of_postgresql_are_read_as_tuples_with_names_and_as_objects(tmp_path: Path) -> None:
    rows = clients.client_of("psycopg.rows")
    sql = (
        'select id, doc_id, "start", "end", embedding <-> %s::vector as distance from chunks order by distance limit 3'
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # as above
        with clients.psycopg(tmp_path) as names:
            cursor = names["connection"].cursor(row_factory=rows.namedtuple_row)
            found = columns_of(cursor.execute(sql, [str(clients.VECTORS[0].tolist())]).fetchall())
            assert (list(found.chunk_id), found.score_kind) == (["0", "1", "2"], "distance")
            plain = columns_of(names["connection"].execute(sql, [str(clients.VECTORS[0].tolist())]).fetchall())
            assert (list(plain.chunk_id), plain.score_kind) == (["0", "1", "2"], None)
        with clients.sqlalchemy(tmp_path / "second") as names:
            chunk, select, session = names["Chunk"], names["select"], names["session"]
            distance = chunk.embedding.l2_distance(clients.VECTORS[0]).label("distance")
            objects = columns_of(session.scalars(select(chunk).order_by(distance).limit(3)).all())
            assert list(objects.chunk_id) == ["0", "1", "2"]
            some = columns_of(session.execute(select(chunk.id, distance).order_by(distance).limit(3)).all())
            assert (list(some.chunk_id), some.score_kind) == (["0", "1", "2"], "distance")


def test_weaviate_scores_of_hybrid_searches_are_taken_as_they_are() -> None:
    found = columns_of(clients.weaviate_objects(score=[0.9, 0.5, 0.1]))
    assert found.score_kind is None
    assert list(found.chunk_id) == ["0", "1", "2"]


@pytest.mark.parametrize("library", ["elasticsearch.dsl", "opensearchpy"])
def test_the_query_builders_of_the_search_engines_are_read(library: str) -> None:
    made = clients.client_of(library)
    inner = "elasticsearch.dsl.response" if library == "elasticsearch.dsl" else "opensearchpy.helpers.response"
    response = clients.client_of(inner).Response(made.Search(), clients.search_body())
    for shape in (response, list(response), response.hits, clients.search_body()["hits"]):
        columns = columns_of(shape)
        assert list(columns.chunk_id) == ["0", "1", "2"]
        assert list(columns.score or []) == [3.5, 2.5, 1.5]
        assert list(columns.doc_id or []) == ["handbook.md"] * 3


# ------------------------------------------------------------------ direction


def test_what_is_declared_counts_before_what_the_scores_show(traced: Traced) -> None:
    found = [{"id": "a", "distance": 0.1}, {"id": "b", "distance": 0.4}]

    @rt.retrieve(name="said", score_kind="other")
    def said() -> Any:
        return found

    @rt.retrieve(name="end", higher_is_better=True)
    def end() -> Any:
        return found

    @rt.retrieve(name="shown")
    def shown() -> Any:
        return found

    with rt.query("what?"):
        for search in (said, end, shown):
            search()
    traced.merge()
    kinds = {row["name"]: row["score_kind"] for row in traced.rows("select name, score_kind from stages")}
    assert kinds == {"said": "other", "end": None, "shown": "distance"}


def test_a_distance_beyond_the_threshold_is_the_reason_without_a_declaration(traced: Traced) -> None:
    found = [
        {"id": "a", "doc_id": "d", "start": 0, "end": 4, "distance": 0.1},
        {"id": "b", "doc_id": "d", "start": 4, "end": 8, "distance": 0.2},
        {"id": "c", "doc_id": "d", "start": 8, "end": 12, "distance": 0.7},
    ]

    @rt.retrieve(name="dense", k=3)
    def search(question: str) -> Any:
        return found

    @rt.filter(name="near", threshold=0.5, final=True)
    def near(found: Any) -> Any:
        return [row for row in found if row["distance"] <= 0.5]

    with rt.query("what?", question_id="q"):
        near(search("what?"))
    traced.judge([{"question_id": "q", "question": "what?", "gold": [{"doc_id": "d", "start": 8, "end": 12}]}])
    (row,) = traced.rows("select verdict, lost_stage, reason from stage_loss")
    assert row == {"verdict": "lost", "lost_stage": "near", "reason": "below_threshold"}


@pytest.mark.parametrize(
    ("found", "kind"),
    [
        ([{"id": "a", "distance": 0.3}], "distance"),
        ([{"id": "a", "distance": 0.3}, {"id": "b", "distance": 0.1}, {"id": "c", "distance": 0.2}], "distance"),
        ([{"id": "a", "distance": 0.3, "entity": {}}], None),
        ([{"id": "a", "distance": 0.9}, {"id": "b", "distance": 0.4}], "similarity"),
        ([{"id": "a", "score": 0.1}, {"id": "b", "score": 0.4}], None),
        ([("a", 0.1), ("b", 0.4)], None),
        ((np.array([[0.5]], dtype="float32"), np.array([[3]])), None),
        ((np.array([[0.5, 0.5]], dtype="float32"), np.array([[3, 4]])), None),
        ([{"id": "a", "distance": float("nan")}, {"id": "b", "distance": None}], "distance"),
    ],
)
def test_where_neither_order_nor_name_shows_the_direction_none_is_recorded(found: Any, kind: str | None) -> None:
    for _ in range(2):  # the second time by the kept plan
        assert columns_of(found).score_kind == kind
