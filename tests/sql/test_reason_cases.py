"""Labels that cannot be placed well and layers declared in full, through the public API: the verdict and its reason."""

from __future__ import annotations

import pytest

import ragtrace as rt
from tests.sql.test_verdict_cases import (
    AFTER,
    BEFORE,
    QUOTE,
    TEXT,
    answer,
    assert_lost,
    assert_recall,
    gold,
    ingest,
    loss,
    only,
    question,
    stage,
)
from tests.traced import Traced

TWICE = TEXT + "\n" + TEXT
SECOND = len(TEXT) + 1


def _ingest_twice() -> None:
    """A text that holds the passage twice, each in a chunk of its own."""
    start, end = len(BEFORE), len(BEFORE + QUOTE)
    with rt.document("doc"):
        parsed = rt.parse(lambda raw: TWICE)(b"raw")
        made = [
            rt.Chunk("first", text=QUOTE, doc_id="doc", start=start, end=end),
            rt.Chunk("second", text=QUOTE, doc_id="doc", start=SECOND + start, end=SECOND + end),
        ]
        rt.chunk(lambda text: made)(parsed)
        rt.index(index="main", complete=True)(lambda chunks: None)(made)


@pytest.mark.parametrize(("retrieved", "verdict"), [("first", "kept"), ("second", "lost")])
def test_of_a_quote_that_stands_twice_the_first_place_is_judged(traced: Traced, retrieved: str, verdict: str) -> None:
    """Ambiguous: nothing tells which is meant, and the label says so."""
    _ingest_twice()
    with question():
        answer(stage("retrieve", "dense", gives=[retrieved]))
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    assert loss(traced)["verdict"] == verdict
    place = only(traced.rows("select quality, start_at from evidence_places"))
    assert (place["quality"], place["start_at"]) == ("ambiguous", len(BEFORE))


def test_a_quote_with_offsets_that_stands_twice_is_not_ambiguous(traced: Traced) -> None:
    _ingest_twice()
    start = SECOND + len(BEFORE)
    with question():
        answer(stage("retrieve", "dense", gives=["second"]))
    traced.judge(gold({"doc_id": "doc", "start": start, "end": start + len(QUOTE), "quote": QUOTE}))
    assert loss(traced)["verdict"] == "kept"


def test_a_passage_that_the_parser_put_out_garbled(traced: Traced) -> None:
    """Parse: what stands there is similar to the quote, and not the quote."""
    garbled = QUOTE.replace("opened", "op3n3d").replace("spring", "sprlng")
    ingest("x", "x", text=BEFORE + garbled + AFTER)
    with question():
        answer(stage("retrieve", "dense", gives=["x"]))
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert_lost(row, "parse", "<lambda>")
    assert row["reason"] == "text_garbled"
    place = only(traced.rows("select quality, similarity from evidence_places"))
    assert place["quality"] == "text_garbled" and 0.7 < place["similarity"] < 1
    assert_recall(traced, 0, 0)


def _find_another_document() -> None:
    with question():
        answer(stage("retrieve", "dense", gives=[rt.Candidate("x", doc_id="other", start=0, end=9)]))


def test_a_document_that_is_not_among_those_declared_in_full(traced: Traced) -> None:
    """Ingest: the source was listed, and the label's document is not in the list."""
    with rt.document("other"):
        rt.parse(lambda raw: "Something else was written here.")(b"raw")
    rt.inventory(doc_ids=["other"])
    _find_another_document()
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert_lost(row, "ingest", "ingest")
    assert row["reason"] == "document_absent"
    assert_recall(traced, 0, 0)


def test_a_document_is_not_absent_where_nobody_listed_the_source(traced: Traced) -> None:
    """It may have been read, parsed and indexed unseen: no stage is named."""
    with rt.document("other"):
        rt.parse(lambda raw: "Something else was written here.")(b"raw")
    _find_another_document()
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert (row["verdict"], row["lost_stage"], row["reason"]) == ("lost", None, "unprobed")
    assert (row["between_first"], row["between_last"]) == ("ingest", "in dense")
    assert_recall(traced, 0, 0)


def test_a_list_that_nobody_took(traced: Traced) -> None:
    """The branch that found it ends there: no stage took its list."""
    ingest("whole x", "whole x")
    with question():
        stage("retrieve", "dense", gives="whole")
        answer(stage("retrieve", "bm25", gives="x"))
    traced.judge(gold())
    row = loss(traced)
    assert_lost(row, "retrieve", "dense", "after")
    assert row["reason"] == "not_consumed"
    assert_recall(traced, 1, 0)


# ------------------------------------------------------------------ one id, written to one index more than once
RIVAL_TEXT = "Nothing of a bridge is told here, and nothing else of that year."
OLD_TEXT = "The first notes of that year say nothing of it yet."


def _write(doc_id: str, text: str, start: int, end: int) -> None:
    """A document, cut into one chunk and written to the index."""
    with rt.document(doc_id):
        parsed = rt.parse(lambda raw: text)(b"raw")
        made = [rt.Chunk("text-0", text=text[start:end], doc_id=doc_id, start=start, end=end)]
        rt.chunk(lambda text: made)(parsed)
        rt.index(index="main", complete=True)(lambda chunks: None)(made)


def _write_holder() -> None:
    _write("doc", TEXT, len(BEFORE), len(BEFORE + QUOTE))


def _write_rival() -> None:
    _write("rival", RIVAL_TEXT, 0, 33)


def _write_older_version() -> None:
    _write("doc", OLD_TEXT, 0, 25)


def _judge_answer_of(traced: Traced, *found: rt.Candidate) -> dict[str, object]:
    with question():
        answer(stage("retrieve", "dense", gives=list(found), index="main"))
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    return loss(traced)


RIVAL = rt.Candidate("text-0", doc_id="rival", start=0, end=33)
ELSE = rt.Candidate("else", doc_id="rival", start=40, end=50)


@pytest.mark.parametrize("returned", [RIVAL, ELSE, rt.Candidate("text-0")], ids=["its id", "another", "its bare id"])
def test_a_chunk_that_another_document_s_chunk_was_written_over(traced: Traced, returned: rt.Candidate) -> None:
    """Index: the later write of an id is what the index holds, whatever the retriever returned."""
    _write_holder()
    _write_rival()
    row = _judge_answer_of(traced, returned)
    assert_lost(row, "index", "<lambda>")
    assert row["reason"] == "duplicate_id"


def test_a_chunk_written_over_another_document_s_that_comes_back_in_its_place(traced: Traced) -> None:
    """Retrieve: the index holds it; what came back under its id is no older text of it, but another document's."""
    _write_rival()
    _write_holder()
    row = _judge_answer_of(traced, RIVAL)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "duplicate_id"


def test_a_chunk_written_over_another_document_s_that_the_retriever_did_not_return(traced: Traced) -> None:
    """Nothing on record says that the shared id has to do with it."""
    _write_rival()
    _write_holder()
    row = _judge_answer_of(traced, ELSE)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "unprobed"


@pytest.mark.parametrize("text", [None, OLD_TEXT[:25]], ids=["by its place", "by its text"])
def test_the_older_version_of_a_chunk_that_comes_back(traced: Traced, text: str | None) -> None:
    """Retrieve: the same document's chunk as the index held it before."""
    _write_older_version()
    _write_holder()
    row = _judge_answer_of(traced, rt.Candidate("text-0", text=text, doc_id="doc", start=0, end=25))
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "stale_cache"


def test_a_newer_version_of_a_chunk_that_comes_back(traced: Traced) -> None:
    """Not stale: what came back was written after the query had started."""
    _write_holder()
    with question():

        @rt.retrieve(name="dense", index="main")
        def dense() -> list[rt.Candidate]:
            _write("doc", OLD_TEXT, 0, 25)
            return [rt.Candidate("text-0", doc_id="doc", start=0, end=25)]

        answer(dense())
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "unprobed"


def test_a_chunk_whose_id_another_document_s_chunk_took_while_the_query_ran(traced: Traced) -> None:
    """The index is judged as of the query's start, when it held the chunk."""
    _write_holder()
    with question():

        @rt.retrieve(name="dense", index="main")
        def dense() -> list[rt.Candidate]:
            _write_rival()
            return [RIVAL]

        answer(dense())
    traced.judge(gold({"doc_id": "doc", "quote": QUOTE}))
    row = loss(traced)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "unprobed"


def test_a_passage_that_moved_to_a_chunk_that_was_never_written(traced: Traced) -> None:
    """Index: its old chunk was replaced by a newer version of itself, which is no other chunk under its id."""
    _write_holder()
    with rt.document("doc"):
        parsed = rt.parse(lambda raw: TEXT)(b"raw")
        made = [
            rt.Chunk("text-0", text=TEXT[:10], doc_id="doc", start=0, end=10),
            rt.Chunk("text-1", text=QUOTE, doc_id="doc", start=len(BEFORE), end=len(BEFORE + QUOTE)),
        ]
        rt.chunk(lambda text: made)(parsed)
        rt.index(index="main", complete=True)(lambda chunks: None)(made[:1])
    row = _judge_answer_of(traced, rt.Candidate("text-0", doc_id="doc", start=0, end=10))
    assert_lost(row, "index", "<lambda>")
    assert row["reason"] == "not_indexed"


def test_chunks_of_one_id_in_two_indexes_do_not_take_each_other_s_place(traced: Traced) -> None:
    """An id names a chunk within its index only."""
    _write_holder()
    with rt.document("rival"):
        parsed = rt.parse(lambda raw: RIVAL_TEXT)(b"raw")
        made = [rt.Chunk("text-0", text=RIVAL_TEXT[:33], doc_id="rival", start=0, end=33)]
        rt.chunk(lambda text: made)(parsed)
        rt.index(index="second", complete=True)(lambda chunks: None)(made)
    row = _judge_answer_of(traced, ELSE)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "unprobed"


def test_alike_chunks_without_ids_do_not_take_each_other_s_place(traced: Traced) -> None:
    """What ragtrace names them by is no id that an index knows."""
    for doc_id in ("doc", "rival"):
        with rt.document(doc_id):
            rt.index(index="main", complete=True)(lambda chunks: None)([QUOTE])
    with question():
        answer(stage("retrieve", "dense", gives=[ELSE], index="main"))
    traced.judge(gold({"doc_id": "doc"}))
    row = loss(traced)
    assert_lost(row, "retrieve", "dense")
    assert row["reason"] == "unprobed"
