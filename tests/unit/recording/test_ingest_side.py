"""Documents, parsed texts, chunks with places, and what was written to an index."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import digest
from ragtrace.errors import ConfigurationError

from .recorded import recorded

TEXT = "First passage about leave.\nSecond passage about pay.\nThird passage about rest."


@rt.parse
def parse(raw: str) -> str:
    return raw


@rt.chunk
def split(text: str) -> list[str]:
    return text.split("\n")


@rt.index(index="main", complete=True)
def store(chunks: Any) -> list[str]:
    return [f"c{number}" for number, _ in enumerate(chunks)]


def test_a_document_is_recorded_from_its_text_to_its_written_chunks(ragtrace_store: Path) -> None:
    with rt.document("handbook", version="3"):
        store(split(parse(TEXT)))
    found = recorded(ragtrace_store)
    (document,), (parsed,), (text,) = found.rows("document"), found.rows("parse"), found.rows("text")
    assert (document["doc_id"], document["doc_version"], document["status"]) == ("handbook", "3", "ok")
    assert parsed["text_hash"] == text["text_hash"] == digest.of_text(TEXT)
    assert (parsed["n_characters"], text["text"], text["is_aligned"]) == (len(TEXT), TEXT, True)
    written = found.stage("store").one("out").columns
    assert written is not None
    assert list(written.chunk_id) == ["c0", "c1", "c2"]
    assert [TEXT[start:end] for start, end in zip(written.start, written.end, strict=True)] == TEXT.split("\n")
    assert set(written.doc_id) == {"handbook"} and written.text_hash == parsed["text_hash"]
    assert list(found.stage("store").one("in").same_as) == [found.stage("split").one("out").list_id]
    assert (
        found.stage("store").row["is_index_complete"] and found.stage("store").row["ingest_id"] == document["ingest_id"]
    )


def test_a_text_is_stored_once_however_often_it_is_parsed(ragtrace_store: Path) -> None:
    for _ in range(3):
        with rt.document("handbook"):
            parse(TEXT)
    found = recorded(ragtrace_store)
    assert len(found.rows("parse")) == 3 and len(found.rows("text")) == 1


def test_pages_are_joined_by_form_feeds_and_keep_their_ranges(ragtrace_store: Path) -> None:
    @rt.parse
    def pages(raw: str) -> list[str]:
        return ["one", "two"]

    @rt.chunk
    def per_page(given: list[str]) -> list[str]:
        return given

    with rt.document("d"):
        per_page(pages("raw"))
    found = recorded(ragtrace_store)
    assert found.rows("text")[0]["text"] == "one\ftwo"
    (parsed,) = found.rows("parse")
    assert parsed["pages"] == "[[0,3],[4,7]]"
    columns = found.stage("per_page").one("out").columns
    assert columns is not None and list(columns.start) == [0, 4]


def test_a_chunker_s_text_that_no_parser_put_out_is_recorded_too(ragtrace_store: Path) -> None:
    with rt.document("d"):
        split(TEXT)
    found = recorded(ragtrace_store)
    assert found.rows("parse")[0]["stage_id"] == found.stage("split").row["stage_id"]


def test_stages_outside_a_document_make_one_of_their_own(ragtrace_store: Path) -> None:
    parse(TEXT)
    found = recorded(ragtrace_store)
    (document,) = found.rows("document")
    assert document["doc_id"] is None and found.stage("parse").row["ingest_id"] == document["ingest_id"]


def test_explicit_chunks_keep_their_ranges_and_ids(ragtrace_store: Path) -> None:
    @rt.chunk
    def explicit(text: str) -> list[rt.Chunk]:
        return [
            rt.Chunk(id="k1", text=text[:13], start=0, end=13),
            rt.Chunk(id="k2", text="x", ranges=[(0, 5), (20, 30)]),
        ]

    @rt.index
    def write(chunks: Any) -> None:
        return None

    with rt.document("d"):
        write(explicit(TEXT))
    found = recorded(ragtrace_store)
    columns = found.stage("write").one("out").columns if len(found.stage("write").lists) > 1 else None
    chunked = found.stage("explicit").one("out").columns
    assert chunked is not None and list(chunked.chunk_id) == ["k1", "k2"]
    assert (chunked.start[0], chunked.end[0]) == (0, 13)  # type: ignore[index]
    assert [tuple(one) for one in chunked.ranges[1]] == [(0, 5), (20, 30)]  # type: ignore[index]
    assert columns is None


def test_ids_passed_beside_the_texts_are_the_chunks_ids(ragtrace_store: Path) -> None:
    @rt.index
    def add(ids: list[str], texts: list[str]) -> None:
        return None

    with rt.document("d"):
        add(["k1", "k2", "k3"], split(TEXT))
    assert recorded(ragtrace_store).stage("add").ids() == ["k1", "k2", "k3"]


def test_an_index_that_returns_fewer_of_the_ids_it_took_wrote_only_those(ragtrace_store: Path) -> None:
    pieces = [rt.Chunk(f"k{n}", text=line, start=TEXT.index(line)) for n, line in enumerate(TEXT.split("\n"))]

    @rt.index
    def store_some(chunks: list[rt.Chunk]) -> list[str]:
        return ["k2", "k0"]

    with rt.document("handbook"):
        parse(TEXT)
        store_some(pieces)
    written = recorded(ragtrace_store).stage("store_some").one("out").columns
    assert written is not None and written.start is not None
    assert list(zip(written.chunk_id, written.start, strict=True)) == [("k2", TEXT.index("Third")), ("k0", 0)]


def test_a_block_that_only_says_what_it_took_wrote_that(ragtrace_store: Path) -> None:
    """Else an index that is recorded in full would seem to lack it all."""
    with rt.document("d"):
        chunks = [rt.Chunk("a", "First", "d", 0, 5)]
        with rt.index(index="main", complete=True) as stage:
            stage.input(chunks)
    (one,) = recorded(ragtrace_store).stage("index").lists
    assert (one.role, list(one.columns.chunk_id)) == ("in", ["a"])


def test_a_document_that_fails_says_so(ragtrace_store: Path) -> None:
    with pytest.raises(ValueError, match="torn page"), rt.document("d"):
        raise ValueError("torn page")
    assert recorded(ragtrace_store).rows("document")[0]["status"] == "error"


def test_instants_are_nanoseconds_since_1970_utc(ragtrace_store: Path) -> None:
    at = datetime.datetime(2026, 11, 30, 12, tzinfo=datetime.timezone(datetime.timedelta(hours=2)))
    with rt.document("d", modified_at=at, deleted_at=1.5):
        pass
    (row,) = recorded(ragtrace_store).rows("document")
    assert row["modified_at_ns"] == int(at.timestamp()) * 10**9 and row["deleted_at_ns"] == 1_500_000_000


def test_an_instant_without_a_time_zone_is_refused() -> None:
    with pytest.raises(ConfigurationError):
        rt.document("d", modified_at=datetime.datetime(2026, 1, 1))  # noqa: DTZ001  # that is the point


def test_a_decorated_function_reads_the_document_from_its_call(ragtrace_store: Path) -> None:
    @rt.document(version="2")
    def ingest(raw: str, doc_id: str) -> None:
        parse(raw)

    ingest(TEXT, "handbook")
    assert recorded(ragtrace_store).rows("document")[0]["doc_id"] == "handbook"
