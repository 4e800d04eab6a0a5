"""The normal form of texts, and finding passages through it."""

from __future__ import annotations

import time
import unicodedata

import pytest

from ragtrace import alignment
from ragtrace.alignment import code_points, count, find, is_counting, nearest, normal, offsets_between, units

FIXTURES = [
    # (how the text has it, how the label has it, the part of the text that is meant)
    ("so the ﬁrst oﬀer", "first offer", "ﬁrst oﬀer"),
    ("an inter\u00adnational rule", "international", "inter\u00adnational"),
    ("an inter-\nnational rule", "international", "inter-\nnational"),
    ("an inter-\r\n   national rule", "international", "inter-\r\n   national"),
    ("an inter\ufffe\nnational rule", "international", "inter\ufffe\nnational"),
    ("an inter\ufffenational rule", "international", "inter\ufffenational"),
    ("an inter\x02\r\nnational rule", "international", "inter\x02\r\nnational"),
    ("a well-\nknown case", "well-known case", "well-\nknown case"),
    ("from 2019-\n2020 on", "2019-2020", "2019-\n2020"),
    ("cafe\u0301 au lait", "café au", "cafe\u0301 au"),
    ("le café noir", "cafe\u0301", "café"),
    ("한국어 text", unicodedata.normalize("NFD", "한국어"), "한국어"),
    (unicodedata.normalize("NFD", "우리 한국어 text"), "한국어", unicodedata.normalize("NFD", "한국어")),
    ("he said “no” – ‘never’", "\"no\" - 'never'", "“no” – ‘never’"),
    ("one\r\ntwo\rthree\u2028four", "one two three four", "one\r\ntwo\rthree\u2028four"),
    ("one\u00a0\t\u3000two", "one two", "one\u00a0\t\u3000two"),
    ("\ufeffone\u200b two", "one two", "one\u200b two"),
    ("价格为１２３元，共", "123元,共", "１２３元，共"),
    ("ｶﾞｲﾄﾞ の", "ガイド", "ｶﾞｲﾄﾞ"),
    ("the cœur of it", "cœur", "cœur"),
    ("第一行\n第二行", "一行第二", "一行\n第二"),
    ("x² and ½ … done", "x2 and 1⁄2 ... done", "x² and ½ … done"),
]


@pytest.mark.parametrize(("text", "label", "meant"), FIXTURES)
def test_a_passage_is_found_through_its_normal_form_and_maps_back(text: str, label: str, meant: str) -> None:
    start = text.index(meant)
    assert find(normal(text), label) == [(start, start + len(meant))]


@pytest.mark.parametrize(("text", "label", "meant"), FIXTURES)
def test_every_point_of_a_passage_has_a_place_in_the_label(text: str, label: str, meant: str) -> None:
    start = text.index(meant)
    offsets = offsets_between(label, text, start, start + len(meant))
    if offsets is None:
        assert len(label) == len(meant)
        return
    assert len(offsets) == len(meant) + 1
    assert (offsets[0], offsets[-1]) == (0, len(label))
    assert offsets == sorted(offsets)


def test_oe_is_not_taken_apart() -> None:
    assert find(normal("the coeur"), "cœur") == []


def test_case_is_kept() -> None:
    assert find(normal("The Case"), "the case") == []


def test_a_plain_text_is_its_own_normal_form() -> None:
    text = "Nothing to fold, (here): 12 % of it."
    made = normal(text)
    assert made.text == text
    assert (list(made.starts), list(made.ends)) == (list(range(len(text))), list(range(1, len(text) + 1)))


def test_every_part_of_a_ligature_maps_to_the_whole_of_it() -> None:
    made = normal("aﬃx")
    assert made.text == "affix"
    assert list(zip(made.starts, made.ends, strict=True)) == [(0, 1), (1, 2), (1, 2), (1, 2), (2, 3)]


def test_occurrences_after_the_start_come_first_and_the_limit_holds() -> None:
    text = normal("ab  ab ab ab")
    assert find(text, "ab", start=4) == [(4, 6), (7, 9), (10, 12), (0, 2)]
    assert find(text, "ab", start=4, limit=2) == [(4, 6), (7, 9)]
    assert find(text, "ab ab", start=5) == [(7, 12), (0, 6), (4, 9)]


@pytest.mark.parametrize("quote", ["", "  \n", "\u00ad"])
def test_a_quote_of_blanks_stands_nowhere(quote: str) -> None:
    assert find(normal("some text \u00ad here"), quote) == []


@pytest.mark.parametrize(("quote", "place"), [("-op days", (5, 12)), ("a co-", (0, 4)), ("-op days-", (5, 12))])
def test_a_quote_that_begins_or_ends_with_the_hyphen_of_a_word_is_found_without_it(
    quote: str, place: tuple[int, int]
) -> None:
    assert find(normal("a co-op\ndays"), quote) == [place]


@pytest.mark.parametrize("quote", ["-5 degrees", "- op", "-", "--op"])
def test_a_minus_or_a_dash_is_not_taken_for_a_words_hyphen(quote: str) -> None:
    assert find(normal("5 degrees, an op"), quote) == []


def test_a_quote_beyond_the_text_stands_nowhere() -> None:
    assert find(normal(""), "x") == []
    assert find(normal("short"), "a quote longer than that") == []


def test_blanks_that_only_one_side_has_are_the_last_resort() -> None:
    assert find(normal("re trieval and retrieval"), "retrieval") == [(15, 24)]
    assert find(normal("re trieval only"), "retrieval") == [(0, 10)]


def test_spacing_accents_do_not_turn_into_blanks() -> None:
    assert normal("a ¨ b").text == "a ¨ b"


def test_offsets_are_one_to_one_when_only_characters_changed() -> None:
    assert offsets_between('"no"', "he “no”", 3, 7) is None
    assert offsets_between("same", "the same", 4, 8) is None


def test_a_hyphen_and_its_line_end_take_the_place_of_what_follows() -> None:
    assert offsets_between("into", "in-\nto", 0, 6) == [0, 1, 2, 2, 2, 3, 4]


def test_a_piece_of_a_ligature_in_the_label_goes_to_the_piece_that_ends_it() -> None:
    assert offsets_between("ﬁx", "fix", 0, 3) == [0, 0, 1, 2]


def test_unequal_passages_are_spread_evenly() -> None:
    assert offsets_between("abcd", "xy", 0, 2) == [0, 2, 4]
    assert offsets_between("abcd", "xy", 1, 1) == [4]


def test_letters_digits_marks_and_symbols_count() -> None:
    assert count("a1é+€ ,.-–\n\u0301語") == 7
    assert [char for char in "a ,+_" if is_counting(char)] == ["a", "+"]


def test_the_counting_rule_is_the_one_of_the_sql() -> None:
    """Characters newer than this Python's Unicode are the only ones on which the two differ."""
    duckdb = pytest.importorskip("duckdb", reason="duckdb holds the other half of the rule")
    rows = duckdb.execute(
        r"select i, regexp_matches(chr(i::int), '[\p{L}\p{N}\p{M}\p{S}]') from range(1, 1114112) as t(i)"
        " where i not between 55296 and 57343"
    ).fetchall()
    assert len(rows) == 0x10FFFF - 2_048
    differing = [code for code, counts in rows if counts != is_counting(chr(code))]
    newer_than_python = [code for code in differing if unicodedata.category(chr(code)) == "Cn"]
    newer_than_duckdb = [code for code in differing if is_counting(chr(code)) and code > 0x0870]
    assert set(differing) <= set(newer_than_python) | set(newer_than_duckdb)
    if unicodedata.unidata_version <= "15.0.0":  # DuckDB 2.0 knows Unicode 15 at least
        assert differing == newer_than_python


def test_the_nearest_passage_of_a_garbled_quote_is_named_with_its_similarity() -> None:
    filler = "Other words stand around it, and they say nothing of the matter at all. " * 40
    passage = "The committee adopted the amended budget for the following year by a narrow margin."
    garbled = passage.replace("committee", "cornmittee").replace("budget", "bud9et")
    text = filler + garbled + filler
    start, end, similarity = nearest(text, passage)
    assert text[start:end].startswith("The co")
    assert text[start:end].endswith("narrow margin")
    assert 0.85 < similarity < 1.0


def test_nothing_alike_is_similarity_zero() -> None:
    assert nearest("abc def", "xyz") == (0, 0, 0.0)
    assert nearest("", "xyz") == (0, 0, 0.0)
    assert nearest("abc", "...") == (0, 0, 0.0)


def test_a_passage_that_is_there_has_similarity_one() -> None:
    text = "一二三四五六七八九十。今天天气很好，我们去公园散步。"
    start, end, similarity = nearest(text, "今天天气很好,我们去公园")
    assert (text[start:end], similarity) == ("今天天气很好，我们去公园", 1.0)


def test_units_of_a_place_agree_and_come_back() -> None:
    text = "aé語😀x\ud800y"
    for offset in range(len(text) + 1):
        place = units(text, offset)
        assert place.code_points == offset
        for unit in alignment.UNITS:
            assert code_points(text, getattr(place, unit), unit) == offset
    assert code_points("😀x", 1, "utf16") == 0
    assert code_points("語x", 2, "utf8") == 0
    assert units("ab", 9) == (2, 2, 2)
    assert units("ab", -1) == (0, 0, 0)


def test_an_unknown_unit_is_refused() -> None:
    with pytest.raises(ValueError, match="unknown unit 'bytes'"):
        code_points("é", 1, "bytes")


def _seconds(call: object, *arguments: object) -> float:
    begun = time.perf_counter()
    call(*arguments)  # type: ignore[operator]  # any function of the module
    return time.perf_counter() - begun


def test_a_long_document_is_normalised_and_searched_in_bounded_time() -> None:
    """Generous limits: a quadratic search would need minutes."""
    lines = "".join(
        f"Line {n} of the “long” report says that item {n * 7919 % 10007} is due-\nly noted.\r\n" for n in range(11_000)
    )
    assert len(lines) > 700_000
    assert _seconds(normal, lines) < 2
    quote = lines[400_000:402_000].replace("e", "3", 60)
    assert _seconds(nearest, lines, quote) < 4
