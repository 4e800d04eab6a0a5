"""Round trips: a passage through its normal form, a place through the three units, a list through columns."""

from __future__ import annotations

import math
import unicodedata
from collections.abc import Callable
from itertools import pairwise
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st

from ragtrace import alignment
from ragtrace.alignment import code_points, count, find, normal, offsets_between, units
from ragtrace.recording.candidates import read_with_texts
from ragtrace.recording.prompts import find_in
from ragtrace.recording.texts import cut, place_chunks

ANY_TEXT = st.text(st.characters(), max_size=60)
WORD = st.text("abcdefghilmnorstuvé中文字한국", min_size=2, max_size=9)
BLANK = st.sampled_from([" ", "  ", "\n", "\r\n", "\t", "\u00a0", "\u3000 ", " \u200b", "\u2028"])


WRITINGS: list[Callable[[str], str]] = [
    str,
    lambda word: unicodedata.normalize("NFD", word),
    lambda word: word.replace("fi", "\ufb01").replace("ff", "\ufb00"),
    *(
        lambda word, mark=mark: word[:1] + mark + word[1:]
        for mark in ("\u00ad", "\ufffe", "\x02\r\n", "-\n", "-\r\n", "-\n   ")
    ),
]


@st.composite
def written(draw: st.DrawFn) -> tuple[str, str, int, int]:
    """A text as PDF libraries and editors write it, plain words of it, and where these stand in the text."""
    words = draw(st.lists(WORD, min_size=1, max_size=12))
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, len(words) - 1))
    text, start, end = "", 0, 0
    for number, word in enumerate(words):
        if number == first:
            start = len(text)
        text += draw(st.sampled_from(WRITINGS))(word)
        if number == last:
            end = len(text)
        text += draw(BLANK)
    return text, " ".join(words[first : last + 1]), start, end


@given(written())
@settings(max_examples=300, deadline=None)
def test_words_are_found_however_they_are_written(case: tuple[str, str, int, int]) -> None:
    text, quote, start, end = case
    assert (start, end) in find(normal(text), quote, limit=1_000)


@given(written())
@settings(max_examples=300, deadline=None)
def test_places_in_the_label_rise_and_end_where_it_ends(case: tuple[str, str, int, int]) -> None:
    text, quote, start, end = case
    offsets = offsets_between(quote, text, start, end)
    if offsets is None:
        assert len(quote) == end - start
        return
    assert len(offsets) == end - start + 1
    assert (offsets[0], offsets[-1]) == (0, len(quote))
    assert offsets == sorted(offsets)


@given(ANY_TEXT)
@settings(max_examples=500, deadline=None)
def test_every_normal_character_has_a_place_in_the_text(text: str) -> None:
    made = normal(text)
    starts, ends = list(made.starts), list(made.ends)
    assert len(starts) == len(ends) == len(made.text)
    assert starts == sorted(starts)
    assert ends == sorted(ends)
    assert all(0 <= start < end <= len(text) for start, end in zip(starts, ends, strict=True))


@given(ANY_TEXT)
@settings(max_examples=300, deadline=None)
def test_a_text_with_letters_stands_in_itself(text: str) -> None:
    found = find(normal(text), text)
    assert bool(found) == bool(normal(text).text.strip(" "))
    if found:
        start, end = found[0]
        assert count(normal(text[start:end]).text) == count(normal(text).text)


@given(ANY_TEXT, st.data())
@settings(max_examples=300, deadline=None)
def test_units_come_back(text: str, data: st.DataObject) -> None:
    offset = data.draw(st.integers(0, len(text)))
    for unit in alignment.UNITS:
        assert code_points(text, getattr(units(text, offset), unit), unit) == offset


@given(st.lists(WORD, min_size=4, max_size=40), st.data())
@settings(max_examples=150, deadline=None)
def test_chunks_cut_anywhere_are_placed_where_they_were_cut_or_said_to_be_ambiguous(
    words: list[str], data: st.DataObject
) -> None:
    text = " ".join(words)
    cuts = sorted(data.draw(st.sets(st.integers(1, len(text) - 1), max_size=8)) | {0, len(text)})
    chunks = [(start, end) for start, end in pairwise(cuts) if text[start:end].strip()]
    placed = place_chunks(text, [(text[start:end], None, None) for start, end in chunks])
    for (start, end), (ranges, quality) in zip(chunks, placed, strict=True):
        assert quality in ("exact", "ambiguous")
        assert "".join(text[low:high] for low, high in ranges) == text[start:end]
        if quality == "exact":
            assert ranges == ((start, end),)


@given(st.lists(WORD, min_size=1, max_size=12), st.data())
@settings(max_examples=200, deadline=None)
def test_what_is_left_are_the_words_that_were_left(words: list[str], data: st.DataObject) -> None:
    kept = data.draw(st.lists(st.booleans(), min_size=len(words), max_size=len(words)))
    left = " ".join(word for word, is_kept in zip(words, kept, strict=True) if is_kept)
    former = " ".join(words)
    ranges = cut(former, left)
    assert ranges is not None
    assert "".join("".join(former[start:end] for start, end in ranges).split()) == "".join(left.split())


@given(st.permutations([f"Passage {n} tells what happened on the {n}th day of it." for n in range(6)]), st.data())
@settings(max_examples=50, deadline=None)
def test_candidates_joined_to_a_prompt_are_found_in_its_order(passages: list[str], data: st.DataObject) -> None:
    order = data.draw(st.permutations(range(len(passages))))
    chosen = order[: data.draw(st.integers(0, len(order)))]
    prompt = data.draw(st.sampled_from(["\n\n", " ", "\n- "])).join(passages[number] for number in chosen)
    assert find_in(prompt, passages) == [(number, None) for number in chosen]


ROW = st.fixed_dictionaries(
    {"id": st.text(min_size=1) | st.integers(), "score": st.none() | st.floats() | st.integers(-99, 99)},
    optional={
        "doc_id": st.none() | st.text(min_size=1),
        "start": st.none() | st.integers(-1, 999),
        "text": st.none() | st.text(),
        "extra": st.lists(st.integers()),
    },
)


@given(st.lists(ROW, max_size=8))
@settings(max_examples=300, deadline=None)
def test_rows_of_any_mixture_come_back_as_columns(rows: list[dict[str, Any]]) -> None:
    columns, texts = read_with_texts(rows) or (None, None)
    assert columns is not None
    assert list(columns.chunk_id) == [str(row["id"]) for row in rows]
    for number, row in enumerate(rows):
        score = math.nan if columns.score is None else columns.score[number]
        wanted = math.nan if row["score"] is None else float(row["score"])
        assert score == wanted or (math.isnan(score) and math.isnan(wanted))
        flag = (columns.score_flag or {}).get(number)
        assert (flag is None) == (row["score"] is None or math.isfinite(row["score"]))
        assert (columns.doc_id[number] if columns.doc_id else None) == row.get("doc_id")
        assert (texts[number] if texts else None) == row.get("text")
        start = row.get("start")
        is_placed = start is not None and start >= 0 and row.get("text") is not None
        assert (columns.start[number] if columns.start else None) == (start if is_placed else None)
