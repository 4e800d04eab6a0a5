"""Labels held against parsed texts: found where they stand, or said what is wrong and what to do."""

from __future__ import annotations

from typing import Any, NamedTuple

import duckdb
import pytest

from ragtrace.gold import loading, placing
from tests.unit.gold.conftest import Record

TEXT = "Refunds. Items can be returned within 30 days of purchase. Keep the receipt. Refunds above 500 need a lead."
QUOTE = "returned within 30 days"
START = TEXT.index(QUOTE)


class Label(NamedTuple):
    status: str
    note: str | None
    span_text: str | None
    n_characters: int
    made_on: str | None


def load(store: duckdb.DuckDBPyConnection, *items: dict[str, Any]) -> None:
    loading.load_rows(store, [{"question_id": "q", "question": "?", "gold": [{"doc_id": "d", **i} for i in items]}])


def label(store: duckdb.DuckDBPyConnection, number: int = 1) -> Label:
    (row,) = store.execute(
        "select label_status, label_note, span_text, n_characters, made_on_text_hash from evidence where evidence_id = ?",
        [f"q#1.{number}"],
    ).fetchall()
    return Label(*row)


def places(store: duckdb.DuckDBPyConnection, number: int = 1) -> dict[str | None, tuple[Any, ...]]:
    found = store.execute(
        "select text_hash, is_found, start_at, end_at, quality from evidence_places where evidence_id = ?",
        [f"q#1.{number}"],
    ).fetchall()
    return {row[0]: row[1:] for row in found}


def at(start: int, quote: str, **keys: Any) -> dict[str, Any]:
    return {"start": start, "end": start + len(quote), "quote": quote, **keys}


# ------------------------------------------------------------------ one text


def test_a_label_at_its_offsets_is_placed(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, at(START, QUOTE))
    assert label(store) == Label("placed", None, QUOTE, len(QUOTE), text)
    assert places(store) == {text: (True, START, START + len(QUOTE), "exact")}


def test_labels_loaded_before_any_text_are_placed_when_the_text_comes(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    load(store, at(START, QUOTE))
    assert label(store).status == "unplaced"
    assert places(store) == {None: (True, START, START + len(QUOTE), "unchecked")}
    text = record("d", TEXT)
    placing.place(store)
    assert label(store).status == "placed"
    assert places(store) == {text: (True, START, START + len(QUOTE), "exact")}


def test_a_quote_alone_is_placed_where_it_stands(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, {"quote": QUOTE})
    assert label(store) == Label("placed", None, QUOTE, len(QUOTE), text)


def test_a_range_alone_takes_its_text_from_the_parsed_text(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, {"start": START, "end": START + len(QUOTE)})
    assert label(store) == Label("placed", None, QUOTE, len(QUOTE), text)


def test_the_repeat_at_the_offsets_is_the_one_meant(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    second = TEXT.rindex("Refunds")
    load(store, at(second, "Refunds"))
    assert places(store)[text] == (True, second, second + 7, "exact")


def test_a_repeated_quote_without_offsets_is_ambiguous(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, {"quote": "Refunds"})
    assert label(store).status == "ambiguous"
    assert "stands 2 times" in str(label(store).note)
    assert places(store)[text] == (True, 0, 7, "ambiguous")


@pytest.mark.parametrize(
    ("text", "quote"),
    [
        ("the  first\n\tpage", "the first page"),
        ("the first\r\npage", "the first\npage"),
        ("a ﬁrst ﬂight", "a first flight"),
        ("co\u00adoperation", "cooperation"),
        ("the inter-\nnational court", "the international court"),
        ("she said “no” to it", 'she said "no" to it'),
        ("from 3–4 p.m.", "from 3-4 p.m."),
        ("cafe\u0301 noir", "caf\u00e9 noir"),
        ("ｆｕｌｌ width", "full width"),
        ("zero\u200bwidth", "zerowidth"),
        ("two, commas dropped here", "two commas, dropped here"),
    ],
)
def test_a_quote_that_differs_in_form_is_found_in_normal_form(
    store: duckdb.DuckDBPyConnection, record: Record, text: str, quote: str
) -> None:
    known = record("d", f"Before. {text}. After.")
    load(store, {"quote": quote})
    assert label(store).status == "normalized"
    assert places(store)[known] == (True, 8, 8 + len(text), "normalized")
    offsets = store.execute("select offsets from evidence_places").fetchall()[0][0]
    if offsets is not None:
        assert len(offsets) == len(text) + 1
        assert (offsets[0], offsets[-1]) == (0, len(quote))
        assert offsets == sorted(offsets)


def test_a_quote_that_no_text_has_is_missing(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, {"quote": "Bicycles must be parked behind the warehouse at all times"})
    assert label(store).status == "text_missing"
    assert label(store).made_on is None
    assert places(store)[text][0] is False


def test_a_damaged_passage_is_garbled_with_its_similarity(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT.replace("returned within 30 days of purchase", "retumed w1thin 30 daysof purchasc"))
    load(store, {"quote": "Items can be returned within 30 days of purchase."})
    assert label(store).status == "text_garbled"
    assert "of its letters in order" in str(label(store).note)
    similarity = store.execute("select similarity from evidence_places").fetchall()[0][0]
    assert 0.6 <= similarity < 1
    assert places(store)[text][0] is False


# ------------------------------------------------------------------ misaligned


def test_a_shifted_label_is_misaligned_and_the_shift_is_named(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, at(START + 5, QUOTE))
    assert label(store).status == "misaligned"
    assert f"5 code points before its labelled start, at {START}" in str(label(store).note)
    assert label(store).made_on == text


def test_a_label_whose_quote_stands_nowhere_is_misaligned(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    load(store, at(START, "Bicycles must be parked behind the warehouse"))
    assert label(store).status == "misaligned"
    assert "stands nowhere" in str(label(store).note)


EMOJI = "🙂 naïve 🙂 Überfall. "


@pytest.mark.parametrize(
    ("before", "count", "named"),
    [
        (EMOJI, lambda text: len(text.encode("utf-16-le")) // 2, "UTF-16"),
        (EMOJI, lambda text: len(text.encode()), "UTF-8 bytes"),
        ("one\ntwo\nthree ", lambda text: len(text.replace("\n", "\r\n")), "CRLF line ends"),
        ("one\r\ntwo\r\nthree ", lambda text: len(text.replace("\r\n", "\n")), "has CRLF"),
        ("cafe\u0301 ae\u0301 ", lambda text: len(text) - 2, "form NFC"),
        ("caf\u00e9 stra\u00dfe ", lambda text: len(text) + 1, "form NFD"),
        ("ﬁve ﬂies ", lambda text: len(text) + 2, "form NFKC"),
        ("caf\u00e9 ", lambda text: len(text) + 1, "UTF-8 bytes (as Go, Rust and C do), or characters of the text in"),
        ("plain ", lambda text: len(text) + 1, "from 1"),
    ],
)
def test_the_unit_that_the_offsets_count_is_named(
    store: duckdb.DuckDBPyConnection, record: Record, before: str, count: Any, named: str
) -> None:
    record("d", f"{before}{QUOTE} of it")
    load(store, at(count(before), QUOTE))
    assert label(store).status == "misaligned"
    assert named in str(label(store).note)


def test_a_misread_repeat_is_placed_where_the_unit_says(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = f"{QUOTE} {EMOJI}{QUOTE} {EMOJI}{QUOTE}"
    known = record("d", text)
    second = text.index(QUOTE, 1)
    load(store, at(len(text[:second].encode()), QUOTE))
    assert label(store).status == "misaligned"
    assert places(store)[known][1] == second


def test_blanks_and_punctuation_between_offsets_and_quote_count_as_near(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT)
    start = TEXT.index(". Items")
    load(store, {"start": start, "end": start + 10, "quote": "Items can"})
    assert label(store).status == "placed"


def test_an_inclusive_end_is_placed_by_its_quote_and_noted(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    load(store, {"start": START, "end": START + len(QUOTE) - 1, "quote": QUOTE})
    assert label(store).status == "placed"
    assert "the quote counts" in str(label(store).note)


def test_a_range_beyond_the_text_is_misaligned(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    load(store, {"start": len(TEXT) - 4, "end": len(TEXT) + 1})
    assert label(store).status == "misaligned"
    assert f"the range ends at {len(TEXT) + 1}, the parsed text has {len(TEXT)}" in str(label(store).note)


# ------------------------------------------------------------------ several texts


def test_a_label_follows_its_passage_into_a_later_text(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    old, new = record("d", TEXT), record("d", "A new heading.\n" + TEXT)
    load(store, at(START, QUOTE))
    assert label(store).status == "placed"
    assert label(store).made_on == old
    assert places(store)[new] == (True, START + 15, START + 15 + len(QUOTE), "exact")


def test_the_label_is_bound_to_the_oldest_text_that_its_offsets_fit(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", "Shorter. " + TEXT)
    fitting = record("d", TEXT)
    record("d", TEXT + " More.")
    load(store, at(START, QUOTE))
    assert label(store).made_on == fitting
    assert store.execute("select made_on_ns from evidence").fetchall() == [(2000,)]


def test_a_doc_version_says_which_text_the_label_was_made_on(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT, version="1")
    second = record("d", TEXT + " More.", version="2")
    load(store, at(START, QUOTE, doc_version="2"))
    assert label(store).made_on == second


def test_offsets_that_do_not_fit_their_version_are_misaligned_though_another_text_fits(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, version="1")
    record("d", "A new heading. " + TEXT, version="2")
    load(store, at(START, QUOTE, doc_version="2"))
    assert label(store).status == "misaligned"


def test_a_version_that_is_not_recorded_leaves_the_quote_to_find_the_place(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    text = record("d", "A new heading. " + TEXT, version="2")
    load(store, at(START, QUOTE, doc_version="1"))
    assert label(store).status == "placed"
    assert label(store).made_on is None
    assert "version '1'" in str(label(store).note)
    assert places(store)[text][1] == START + 15


def test_a_passage_that_only_the_old_text_has_is_found_there_only(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    old, new = record("d", TEXT), record("d", TEXT.replace("30 days", "two weeks or so"))
    load(store, at(START, QUOTE))
    assert (places(store)[old][0], places(store)[new][0]) == (True, False)
    assert label(store).status == "placed"


def test_the_second_of_three_repeats_is_the_second_of_three_in_the_next_text(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    body = f"{QUOTE} a. {QUOTE} b. {QUOTE} c."
    record("d", body)
    new = record("d", "Some heading of the new edition, rather long. " + body)
    second = body.index(QUOTE, 1)
    load(store, at(second, QUOTE))
    assert places(store)[new] == (True, 46 + second, 46 + second + len(QUOTE), "exact")


def test_a_range_alone_is_looked_for_in_later_texts_by_what_stood_there(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT)
    new = record("d", "Heading. " + TEXT)
    load(store, {"start": START, "end": START + len(QUOTE)})
    assert places(store)[new][1] == START + 9
    assert "oldest of 2" in str(label(store).note)


def test_a_second_parser_is_one_more_text(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    one = record("d", TEXT)
    other = record("d", TEXT.replace(" ", "\n"))
    load(store, at(START, QUOTE))
    assert places(store)[one][3] == "exact"
    assert places(store)[other] == (True, START, START + len(QUOTE), "normalized")


def test_only_what_is_new_is_looked_at(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    record("d", TEXT)
    load(store, at(START, QUOTE), {"doc_id": "e", "quote": "x"}, {"quote": "nowhere to be found at all"}, {})
    assert placing.place(store) == placing.Placed(0, 0, 0)
    record("e", "x")
    assert placing.place(store).n_documents == 1
    record("d", TEXT + " More.")
    assert placing.place(store).n_labels == 3
    assert placing.place(store) == placing.Placed(0, 0, 0)


# ------------------------------------------------------------------ texts that cannot be used


def test_an_uncaptured_text_takes_the_offsets_as_they_are(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT, is_captured=False)
    load(store, at(START, QUOTE), {"quote": QUOTE})
    assert label(store).status == "unplaced"
    assert places(store) == {text: (True, START, START + len(QUOTE), "unchecked")}
    assert places(store, 2) == {}


def test_offsets_in_one_of_several_uncaptured_texts_are_not_guessed(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, is_captured=False, version="1")
    second = record("d", TEXT + ".", is_captured=False, version="2")
    load(store, at(START, QUOTE), at(START, QUOTE, doc_version="2"))
    assert places(store) == {}
    assert places(store, 2) == {second: (True, START, START + len(QUOTE), "unchecked")}


def test_what_an_uncaptured_text_seemed_to_say_is_taken_back_when_a_second_one_comes(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, is_captured=False)
    load(store, at(START, QUOTE))
    assert len(places(store)) == 1
    record("d", TEXT + ".", is_captured=False)
    placing.place(store)
    assert places(store) == {}


def test_a_quote_whose_length_is_not_the_ranges_says_so_where_no_text_can(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, is_captured=False)
    load(store, {"start": START, "end": START + len(QUOTE) + 4, "quote": QUOTE})
    assert label(store).n_characters == len(QUOTE) + 4
    assert "count code points" in str(label(store).note)


def test_a_text_whose_redaction_changed_its_length_is_not_searched(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT, captured="[name] " + TEXT, is_aligned=False)
    load(store, {"quote": QUOTE})
    assert label(store).status == "unplaced"
    assert places(store) == {}


def test_a_masked_passage_is_found_at_its_offsets_and_else_not_called_missing(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    """Redaction of equal length keeps offsets; what it hides is not lost by the parser."""
    text = "Write to anna@example.org within a week."
    masked = text.replace("anna@example.org", "*" * 16)
    known = record("d", text, captured=masked)
    quote = "Write to anna@example.org within a week"
    load(store, at(0, quote), {"quote": quote})
    assert label(store).status == "placed"
    assert places(store) == {known: (True, 0, len(quote), "exact")}
    assert label(store, 2).status == "unplaced"
    assert places(store, 2) == {}


# ------------------------------------------------------------------ documents and levels


def test_a_document_that_is_not_recorded_is_unknown_and_a_similar_name_is_offered(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("docs/d.pdf", TEXT)
    load(store, at(START, QUOTE, doc_id="d.pdf"))
    assert label(store).status == "document_unknown"
    assert "did you mean 'docs/d.pdf'?" in str(label(store).note)
    assert places(store)[None] == (True, START, START + len(QUOTE), "unchecked")
    record("d.pdf", TEXT)
    placing.place(store)
    assert label(store).status == "placed"


def test_a_label_becomes_unknown_when_other_documents_turn_up(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    load(store, at(START, QUOTE))
    assert label(store).status == "unplaced"
    record("other", TEXT)
    placing.place(store)
    assert label(store).status == "document_unknown"


def test_a_page_is_one_place_to_touch(store: duckdb.DuckDBPyConnection, record: Record) -> None:
    text = record("d", TEXT)
    load(store, {"start": 0, "end": 40, "quote": None, "level": "page"})
    assert (label(store).status, label(store).n_characters) == ("placed", 1)
    assert places(store) == {text: (True, 0, 40, "exact")}


def test_a_document_label_is_found_in_every_text_that_is_not_empty(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    old, empty = record("d", TEXT, is_captured=False), record("d", "")
    load(store, {})
    assert label(store).status == "placed"
    assert places(store) == {old: (True, 0, len(TEXT), "exact"), empty: (False, None, None, "text_missing")}


def test_a_document_whose_only_text_is_empty_was_lost_by_the_parser(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", "")
    load(store, {}, {"quote": QUOTE})
    assert label(store).status == "text_missing"
    assert label(store, 2).status == "text_missing"


def test_a_chunk_label_is_placed_when_something_recorded_has_its_id(store: duckdb.DuckDBPyConnection) -> None:
    load(store, {"chunk_id": "c1", "level": "chunk"}, {"chunk_id": "c2", "level": "chunk"})
    assert (label(store).status, label(store, 2).status) == ("unplaced", "unplaced")
    store.execute("insert into items (item, chunk_id) values (1, 'c1')")
    placing.place(store)
    assert (label(store).status, label(store, 2).status) == ("placed", "unplaced")


def test_the_same_text_under_two_documents_is_searched_for_each(
    store: duckdb.DuckDBPyConnection, record: Record
) -> None:
    record("d", TEXT)
    text = record("e", TEXT)
    load(store, at(START, QUOTE), at(START, QUOTE, doc_id="e"))
    assert places(store) == places(store, 2) == {text: (True, START, START + len(QUOTE), "exact")}
