"""What holds for every text and label: labels are found where they were made, in any order of arrival, or reported."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import duckdb
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st

from ragtrace import alignment, digest
from ragtrace.gold import loading, placing, rows
from ragtrace.schema import table
from ragtrace.store import tables

# No shrinking: each example fills a store, and a failing one is small already.
SLOW = settings(
    max_examples=40,
    deadline=None,
    suppress_health_check=[HealthCheck.too_slow],
    phases=[Phase.explicit, Phase.reuse, Phase.generate],
)
TABLES = "store_facts documents parses texts items inventories settings questions evidence evidence_places".split()

words = st.sampled_from(
    "the refund of a parcel is paid within thirty days 30 € naïve 数据 检索 ﬁnal office co-op Überfall 🙂 ไทย हिन्दी عربي".split()
)
texts = st.lists(words, min_size=6, max_size=40).map(" ".join)


@contextmanager
def fresh_store() -> Iterator[duckdb.DuckDBPyConnection]:
    with duckdb.connect(config={"python_enable_replacements": "false"}) as connection:
        for statement in tables.create_statements(map(table, TABLES)):
            if not statement.startswith("comment"):
                connection.execute(statement)
        yield connection


def record(connection: duckdb.DuckDBPyConnection, number: int, text: str) -> str:
    text_hash = digest.of_text(text)
    rows.insert(connection, "documents", [{"ingest_id": number, "doc_id": "d", "recorded_at_ns": number}])
    parse = {"stage_id": number, "doc_id": "d", "text_hash": text_hash, "n_characters": len(text)}
    rows.insert(connection, "parses", [{**parse, "parsed_at_ns": number}])
    if not connection.execute("select 1 from texts where text_hash = ?", [text_hash]).fetchall():
        rows.insert(connection, "texts", [{"text_hash": text_hash, "text": text, "is_aligned": True}])
    return text_hash


@st.composite
def labelled(draw: st.DrawFn) -> tuple[str, list[dict[str, Any]]]:
    """A text and labels that were made on it."""
    text = draw(texts)
    items = []
    for _ in range(draw(st.integers(1, 4))):
        start = draw(st.integers(0, len(text) - 1))
        end = draw(st.integers(start + 1, len(text)))
        if text[start:end].strip():
            items.append({"doc_id": "d", "start": start, "end": end, "quote": text[start:end]})
    return text, items or [{"doc_id": "d", "start": 0, "end": len(text), "quote": text}]


# Edits that normal form undoes; each keeps every counting character, or writes it in another form.
EDITS = {
    "blanks doubled": lambda text: text.replace(" ", "  "),
    "line ends": lambda text: text.replace(" ", "\r\n"),
    "no-break spaces": lambda text: text.replace(" ", "\u00a0"),
    "NFD": lambda text: unicodedata.normalize("NFD", text),
    "NFKC": lambda text: unicodedata.normalize("NFKC", text),
    "ligatures": lambda text: text.replace("fi", "ﬁ").replace("ffi", "ﬃ"),
    "soft hyphens": lambda text: text.replace("th", "t\u00adh"),
    "hyphenation": lambda text: text.replace("nd", "n-\nd"),
    "byte order mark": lambda text: "\ufeff" + text,
}


@SLOW
@given(labelled())
def test_a_label_made_on_a_text_stands_there_to_the_letter(made: tuple[str, list[dict[str, Any]]]) -> None:
    text, items = made
    with fresh_store() as connection:
        text_hash = record(connection, 1, text)
        loading.load_rows(connection, [{"question_id": "q", "gold": items}])
        found = connection.execute(
            "select places.start_at, places.end_at, quality, places.text_hash, offsets, label_status, span_text, n_characters"
            " from evidence_places as places join evidence using (evidence_id) order by places.start_at, places.end_at"
        ).fetchall()
        wanted = sorted({(i["start"], i["end"], i["quote"]) for i in items})
        assert found == [(s, e, "exact", text_hash, None, "placed", q, len(q)) for s, e, q in wanted]


def widened(passage: str, wanted: str) -> list[str]:
    """What was wanted, with the rest of a ligature that it cuts at its beginning, at its end, or at both."""
    first, last = (unicodedata.normalize("NFKC", char) if char in "ﬁﬃ" else "" for char in (passage[0], passage[-1]))
    leads = [first[:n] for n in range(max(1, len(first)))]
    trails = ["", *(last[-n:] for n in range(1, len(last)))]
    return [lead + wanted + trail for lead in leads for trail in trails]


@SLOW
@given(labelled(), st.sampled_from(sorted(EDITS)), st.booleans())
def test_a_passage_written_in_another_form_is_found_and_mapped(
    made: tuple[str, list[dict[str, Any]]], edit: str, with_offsets: bool
) -> None:
    """What is found equals the label in normal form, and its map of offsets runs from 0 to the label's end."""
    text, items = made
    with fresh_store() as connection:
        if with_offsets:
            record(connection, 1, text)
        other = EDITS[edit](text)
        text_hash = record(connection, 2, other)
        if not with_offsets:
            items = [{"doc_id": "d", "quote": item["quote"]} for item in items]
        loading.load_rows(connection, [{"question_id": "q", "gold": items}])
        for is_found, start, end, offsets, span in connection.execute(
            "select is_found, places.start_at, places.end_at, offsets, span_text"
            " from evidence_places as places join evidence using (evidence_id) where text_hash = ?",
            [text_hash],
        ).fetchall():
            if not alignment.count(span):
                continue  # a lone hyphen or blank may be what an edit takes away
            if not is_found:
                # A label may begin or end inside what an edit joins (a mark without its letter, half a hyphenation).
                assert edit in ("NFD", "NFKC", "ligatures", "hyphenation")
                continue
            passage = other[start:end]
            found, wanted = alignment.normal(passage).letters.text, alignment.normal(span).letters.text
            if edit == "ligatures" and found != wanted:
                # A label that begins or ends inside what became one letter has all of that letter, and nothing else.
                assert found in widened(passage, wanted)
                continue
            assert found == wanted
            if offsets is None:
                assert len(passage) == len(span)
            else:
                assert len(offsets) == len(passage) + 1
                assert (offsets[0], offsets[-1]) == (0, len(span))
                assert offsets == sorted(offsets)


COLUMNS = (
    "evidence_id, span_text, n_characters, made_on_text_hash, made_on_ns, label_status, label_note",
    "evidence_id, text_hash, is_found, start_at, end_at, quality, similarity, offsets",
)


def said(connection: duckdb.DuckDBPyConnection) -> list[Any]:
    return [
        connection.execute(f"select {columns} from {name} order by all").fetchall()
        for columns, name in zip(COLUMNS, ("evidence", "evidence_places"), strict=True)
    ]


@settings(SLOW, max_examples=20)
@given(labelled(), st.lists(texts, max_size=2), st.sampled_from(sorted(EDITS)), st.randoms(use_true_random=False))
def test_what_is_said_does_not_depend_on_the_order_of_arrival(
    made: tuple[str, list[dict[str, Any]]], others: list[str], edit: str, random: Any
) -> None:
    """Logs of several processes come late: placing after each arrival says what placing once at the end says."""
    text, items = made
    items = [
        *items,
        {"doc_id": "d", "quote": items[0]["quote"]},
        {"doc_id": "d", "start": 0, "end": 5},
        {"doc_id": "d"},
    ]
    # The first text is parsed a second time, later: one text, two parses.
    parses = list(enumerate([text, EDITS[edit](text), *others, text], 1))
    gold = [{"question_id": "q", "gold": items}]
    with fresh_store() as connection:
        for number, parsed in parses:
            record(connection, number, parsed)
        loading.load_rows(connection, gold)
        at_once = said(connection)
    arrivals: list[tuple[int, str] | None] = [*parses, None]
    random.shuffle(arrivals)
    with fresh_store() as connection:
        for arrival in arrivals:
            if arrival is None:
                loading.load_rows(connection, gold)
            else:
                record(connection, *arrival)
                placing.place(connection)
        assert said(connection) == at_once
        assert placing.place(connection) == placing.Placed(0, 0, 0)
        loading.load_rows(connection, gold)
        assert said(connection) == at_once
