"""The reports on parsed texts and chunk borders, on small recorded documents, and what `why` tells of them."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.reports import background, difference, question, run
from tests.traced import Traced

RIGHT = "The bridge was opened in spring 1893 by the mayor. It stands to this day, and nobody pays to cross it."
WRONG = RIGHT.replace("opened in spring 1893", "0pened in sprlng l893")
QUOTE = "The bridge was opened in spring 1893"
TABLE = "Figures follow.\n\n| year | cars |\n|------|------|\n| 1893 | 12 |\n| 1894 | 4711 |\n\nThat is all."


def parsed(doc_id: str, text: str, *chunks: tuple[int, int], parser: str = "reader") -> None:
    with rt.document(doc_id):
        with rt.parse(name=parser) as stage:
            stage.output(text)
        if chunks:
            with rt.chunk(name="splitter") as stage:
                stage.output(
                    [
                        rt.Chunk(f"{doc_id}#{number}", doc_id=doc_id, start=start, end=end, text=text[start:end])
                        for number, (start, end) in enumerate(chunks)
                    ]
                )


def gold(doc_id: str, *quotes: str) -> dict[str, Any]:
    """Labels of the question that has the document's name."""
    return {"question_id": doc_id, "gold": [{"doc_id": doc_id, "quote": quote} for quote in quotes]}


def asked(doc_id: str, start: int, end: int, question: str = "when?", searched: str = "when?") -> None:
    """A query that finds this range of the document and nothing else."""
    found = [rt.Candidate(f"{doc_id}#0", doc_id=doc_id, start=start, end=end)]
    with rt.query(question, question_id=doc_id):
        with rt.retrieve(name="dense", query=searched) as stage:
            stage.output(found)
        rt.context(found)


ROW = TABLE.index("| 1894")


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    """Every document in one store: a store for each test costs half a second."""
    trace = Traced(tmp_path_factory.mktemp("reports") / "traces.duckdb", capture_text="none")
    parsed("secret", f"Secret. {RIGHT}")  # a text that no other scenario captures
    rt.configure(trace.store, run="run", merge="off")
    parsed("three parsers", RIGHT, parser="good")
    parsed("three parsers", WRONG, parser="poor")
    parsed("three parsers", "", parser="blind")
    parsed("first", RIGHT, parser="total")
    parsed("second", "Rivers are measured in miles here.", parser="total")
    parsed("cut", RIGHT, (0, 14), (15, 60), (60, len(RIGHT)))
    parsed("whole", RIGHT, (0, 14), (0, 60))
    parsed("split", RIGHT, (0, 14), (14, 60))
    parsed("dense", RIGHT, (0, 50), (50, 100))
    parsed("table", TABLE, (0, ROW), (ROW, len(TABLE)))
    parsed("bars", "a | b is written with a bar.", (0, 10))
    parsed("garbled", WRONG)
    parsed("missing", "xyz " * 20)
    parsed("gap", RIGHT, (0, 14), (20, 60))
    parsed("rewritten", RIGHT)
    parsed("kept", RIGHT, (0, 60))
    for doc_id in ("garbled", "missing"):
        asked(doc_id, 60, 70)
    asked("gap", 0, 14)
    asked("rewritten", 60, 70, "who opened the bridge in 1893?", "bridge opening")
    asked("kept", 0, 60)
    names = ("secret", "three parsers", "first", "cut", "whole", "garbled", "missing", "gap", "rewritten", "kept")
    trace.judge(
        [
            *(gold(name, QUOTE) for name in names),
            gold("second", "Not one word of it"),
            gold("split", QUOTE, "by the mayor", "nobody pays to cross it", "Not in the text at all"),
            gold("dense", "The bridge was", "bridge was opened"),
            gold("table", "| 1893 | 12 |", "4711"),
            gold("bars", "a | b"),
        ]
    )
    yield trace
    trace.close()


def ask(traced: Traced, name: str, **parameters: Any) -> list[dict[str, Any]]:
    assert traced.connection is not None
    return run.run(traced.connection, name, **parameters).records()


def n_letters(text: str) -> int:
    return sum(map(str.isalnum, text))


class TestSurvival:
    def test_letters_in_order_count_and_each_parser_has_a_line(self, traced: Traced) -> None:
        rows = ask(traced, "parse_survival", doc_id="three parsers")
        by_parser = {row["parser"]: row for row in rows if row["doc_id"]}
        good, poor, blind = (by_parser[name] for name in ("good", "poor", "blind"))
        assert (good["n_found"], good["share_survived"]) == (1, 1.0)
        assert (poor["n_garbled"], poor["n_found"]) == (1, 0)
        assert 0.6 <= poor["share_survived"] < 1
        assert (blind["n_empty"], blind["n_missing"], blind["share_survived"]) == (1, 1, 0.0)
        assert {row["n_counting"] for row in rows} == {n_letters(QUOTE)}

    def test_a_parsers_total_is_over_the_characters_of_all_documents(self, traced: Traced) -> None:
        (total,) = [row for row in ask(traced, "parse_survival") if row["doc_id"] is None and row["parser"] == "total"]
        n_kept, n_lost = n_letters(QUOTE), n_letters("Not one word of it")
        assert total["share_survived"] == pytest.approx(n_kept / (n_kept + n_lost))
        assert (total["n_texts"], total["n_spans"], total["n_left_out"]) == (2, 2, 0)

    def test_a_text_that_was_not_captured_is_left_out(self, traced: Traced) -> None:
        (row,) = [row for row in ask(traced, "parse_survival", doc_id="secret") if row["doc_id"]]
        assert (row["n_spans"], row["n_left_out"], row["share_survived"]) == (0, 1, None)


class TestChunks:
    def test_the_cut_is_shown_between_its_two_chunks(self, traced: Traced) -> None:
        (row,) = ask(traced, "chunk_cuts", evidence_id="cut#1.1", n_characters=6)
        assert (row["chunk_before"], row["cut_at"], row["chunk_after"], row["next_at"]) == ("cut#0", 14, "cut#1", 15)
        assert (row["text_before"], row["text_between"], row["text_after"]) == (RIGHT[8:14], RIGHT[14], RIGHT[15:21])

    def test_a_span_that_one_chunk_holds_whole_is_not_cut(self, traced: Traced) -> None:
        assert ask(traced, "chunk_cuts", evidence_id="whole#1.1") == []

    def test_spans_are_counted_by_the_chunks_they_take(self, traced: Traced) -> None:
        rows = ask(traced, "split_spans", doc_id="split")
        assert {row["n_chunks"]: row["n_spans"] for row in rows} == {0: 1, 1: 1, 2: 1}
        assert {(row["n_counted"], row["n_left_out"]) for row in rows} == {(3, 1)}

    def test_density_counts_a_character_once_a_chunk(self, traced: Traced) -> None:
        (total, row) = ask(traced, "chunk_density", doc_id="dense")
        union = len("The bridge was opened")
        assert (row["doc_id"], row["n_chunks"], row["n_with_evidence"], row["n_characters"]) == ("dense", 2, 1, 100)
        assert (row["n_evidence_characters"], row["evidence_per_chunk"]) == (union, union / 2)
        assert (row["evidence_per_holder"], row["share_evidence"]) == (union, union / 50)
        assert (total["doc_id"], total["n_evidence_characters"]) == (None, union)

    def test_a_chunk_of_rows_without_the_header_row_is_counted(self, traced: Traced) -> None:
        (row,) = [row for row in ask(traced, "table_headers", doc_id="table") if row["doc_id"]]
        assert (row["n_tables"], row["n_cut"], row["n_chunks"], row["n_without_header"]) == (1, 1, 2, 1)
        assert (row["n_spans"], row["n_spans_without_header"]) == (2, 1)

    def test_a_text_without_tables_has_none(self, traced: Traced) -> None:
        (total,) = ask(traced, "table_headers", doc_id="bars")
        assert (total["doc_id"], total["n_tables"], total["n_spans"], total["n_texts_left_out"]) == (None, 0, 0, 0)


def behind(traced: Traced, question_id: str) -> background.Background:
    assert traced.connection is not None
    (row,) = question.find(traced.connection, question_id).records()
    return background.look(traced.connection, question.explain(traced.connection, row))


def drawn(traced: Traced, question_id: str) -> str:
    return "\n".join(str(part) for part in background.draw(behind(traced, question_id)))


class TestWhy:
    def test_a_garbled_passage_is_shown_letter_by_letter(self, traced: Traced) -> None:
        (row,) = behind(traced, "garbled").parse
        assert not row["is_nearest_guess"]
        shown = "The bridge was [-o-]{+0+}pened in spr[-i-]{+l+}ng [-1-]{+l+}893"
        assert difference.marked([difference.Part(**part) for part in row["parts"]]) == shown
        assert shown in drawn(traced, "garbled")

    def test_a_passage_that_is_not_there_says_so(self, traced: Traced) -> None:
        assert "reader put out nothing like missing#1.1" in drawn(traced, "missing")

    def test_a_chunk_loss_shows_the_border_in_the_text(self, traced: Traced) -> None:
        said = drawn(traced, "gap")
        assert "gap#0 ends there, gap#1 goes on from 20" in said
        assert "The bridge was│opene│d in spring 1893" in said

    def test_a_year_that_the_rewrite_lost_is_named(self, traced: Traced) -> None:
        assert "not searched for: date 1893 (in the evidence)" in drawn(traced, "rewritten")

    def test_nothing_is_told_where_nothing_happened(self, traced: Traced) -> None:
        assert drawn(traced, "kept") == ""


class TestDifference:
    @pytest.mark.parametrize(
        ("wanted", "there", "shown"),
        [
            ("same text", "same  text", "same text"),
            ("", "", ""),
            ("one two", "one", "one[- two-]"),
            ("total 12 million", "total 21 million", "total [-12-]{+21+} million"),
            ("fixed", "\ufb01xed", "fixed"),
            ("modern", "modem", "mode[-rn-]{+m+}"),
        ],
    )
    def test_what_is_lost_and_what_is_foreign_is_marked(self, wanted: str, there: str, shown: str) -> None:
        assert difference.marked(difference.parts(wanted, there)) == shown
