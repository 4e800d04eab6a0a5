"""Texts in one another: candidates in prompts, what is left of a text, chunks of real splitters in their document."""

from __future__ import annotations

import random
import time
from collections.abc import Sequence
from typing import Any

import pytest

from ragtrace.alignment import count, normal
from ragtrace.recording.candidates import pieces
from ragtrace.recording.prompts import find_in
from ragtrace.recording.texts import cut, longer, place_chunks

A = "The committee met in March and adopted the budget for the year."
B = "A second passage says that the reserve fund stays where it is for now."
C = "Nothing of the third passage is ever found in any of the prompts here."


# ---------------------------------------------------------------- candidates in a prompt


def test_candidates_are_found_in_the_order_they_stand_in() -> None:
    assert find_in(f"Context:\n\n1. {B}\n\n2. {A}\n\nQuestion: why?", [A, B, C]) == [(1, None), (0, None)]


def test_blanks_that_a_packer_changed_do_not_hide_a_candidate() -> None:
    assert find_in("  " + "\n    ".join(A.split(" ")), [A]) == [(0, None)]


def test_a_beginning_or_an_end_that_stands_there_is_named() -> None:
    assert find_in(f"{A[:40]} ... and so on", [A]) == [(0, ((0, 40),))]
    assert find_in(f"... {A[-40:]}", [A]) == [(0, ((len(A) - 40, len(A)),))]


def test_a_beginning_and_an_end_are_both_named() -> None:
    text = f"{A} {B} {C}"
    assert find_in(f"{text[:60]} [...] {text[-59:]}", [text]) == [(0, ((0, 60), (len(text) - 59, len(text))))]


def test_less_than_24_counting_characters_say_nothing() -> None:
    assert find_in(f"{A[:20]} and no more", [A]) == []


def test_equal_texts_each_need_a_place_of_their_own() -> None:
    assert find_in(f"{A}\n{B}\n{A}", [A, B, A]) == [(0, None), (1, None), (2, None)]
    assert find_in(f"{A}\n{B}", [A, B, A]) == [(0, None), (1, None)]


def test_a_text_inside_a_longer_one_is_found_with_it() -> None:
    assert find_in(f"{A} {B}", [f"{A} {B}", A]) == [(0, None), (1, None)]


def test_a_short_text_inside_a_longer_one_is_chance() -> None:
    assert find_in(A, [A, "budget"]) == [(0, None)]
    assert find_in(f"{A} And a budget.", [A, "budget"]) == [(0, None), (1, None)]


def test_a_neighbours_overlap_inside_a_found_text_says_nothing() -> None:
    assert find_in(f"{A} {B}", [f"{A} {B}", f"{B} {C}"]) == [(0, None)]


def test_a_cut_neighbour_is_not_found_by_its_overlap_with_a_cut_text() -> None:
    whole = f"{A} {B} {C}"
    cut_off = whole[: len(A) + 50]
    assert find_in(f"{cut_off} ...", [f"{B} {C}", whole]) == [(1, ((0, len(cut_off)),))]


def test_windows_merged_into_one_passage_are_each_found() -> None:
    assert find_in(f"{A} {B} {C}", [f"{A} {B}", f"{B} {C}"]) == [(0, None), (1, None)]


@pytest.mark.parametrize("haystack", ["", "  \n", "Nothing of it."])
def test_a_prompt_without_any_of_them_gives_nothing(haystack: str) -> None:
    assert find_in(haystack, [A, None, "", "  "]) == []


def test_chinese_candidates_are_cut_too() -> None:
    text = "今天天气很好我们一起去公园散步然后在湖边的小店里喝茶聊天直到太阳下山才回家。"
    assert find_in(f"材料：{text[:30]}……", [text]) == [(0, ((0, 30),))]


# ---------------------------------------------------------------- what is left


def test_an_unchanged_text_is_all_there() -> None:
    assert cut(A, A) == ((0, len(A)),)


def test_a_part_is_a_range() -> None:
    assert cut(A, "adopted  the\nbudget") == ((31, 49),)


def test_sentences_picked_in_order_are_ranges_in_order() -> None:
    ranges = cut(f"{A} {B} {C}", f"{A} ... {C}")
    assert ranges is not None
    assert [f"{A} {B} {C}"[start:end] for start, end in ranges] == [A[:-1], C[:-1]]


def test_words_in_another_order_or_new_words_are_a_rewriting() -> None:
    assert cut(A, "The budget was adopted in March.") is None
    assert cut(A, f"{B} {A}") is None


def test_nothing_left_is_no_range() -> None:
    assert cut(A, " ... ") == ()


def test_chinese_sentences_are_picked() -> None:
    former = "今天天气很好。我们去公园。晚上回家吃饭。"
    ranges = cut(former, "今天天气很好。晚上回家吃饭。")
    assert ranges is not None
    assert "".join(former[start:end] for start, end in ranges) == "今天天气很好晚上回家吃饭"


def test_a_window_around_a_text_is_found() -> None:
    assert longer(A, f"{B}\n{A}\n{C}") == (len(B) + 1, len(B) + 1 + len(A))
    assert longer(A, B) is None
    assert longer("", B) is None


# ---------------------------------------------------------------- chunks by hand


def placed(text: str, *chunks: Any) -> list[tuple[list[str], str]]:
    made = [chunk if isinstance(chunk, tuple) else (chunk, None, None) for chunk in chunks]
    return [([text[start:end] for start, end in ranges], quality) for ranges, quality in place_chunks(text, made)]


def test_hints_that_hold_are_taken() -> None:
    assert place_chunks("one two one", [("one", 8, None)]) == [(((8, 11),), "exact")]


@pytest.mark.parametrize("hints", [(0, 0, 0), (-1, -1, -1), (None, None, None), (0, -1, 0), (0, 0, 12), (7, 8, 9)])
def test_first_repeats_and_missing_hints_are_found_in_document_order(hints: Sequence[int | None]) -> None:
    text = "chunk chunk chunk"
    assert place_chunks(text, [("chunk", hint, None) for hint in hints]) == [
        (((0, 5),), "exact"),
        (((6, 11),), "exact"),
        (((12, 17),), "exact"),
    ]


def test_fewer_chunks_than_repeats_are_ambiguous() -> None:
    assert [quality for _, quality in place_chunks("same. same. same.", [("same.", None, None)] * 2)] == [
        "ambiguous"
    ] * 2


def test_a_repeat_between_known_neighbours_is_not_ambiguous() -> None:
    text = f"{A} Yes. {B} Yes. {C}"
    assert place_chunks(text, [(A, None, None), ("Yes.", None, None), (B, None, None), (C, None, None)])[1] == (
        ((len(A) + 1, len(A) + 5),),
        "exact",
    )


def test_a_chunk_may_start_before_the_one_before_it_ends() -> None:
    text = "aa bb cc bb cc dd"
    assert placed(text, "aa bb cc", "bb cc bb", "bb cc dd") == [
        (["aa bb cc"], "exact"),
        (["bb cc bb"], "exact"),
        (["bb cc dd"], "exact"),
    ]


def test_parents_and_then_their_children_are_placed() -> None:
    text = f"{A} {B}"
    assert placed(text, text, A, B) == [([text], "exact"), ([A], "exact"), ([B], "exact")]


def test_changed_blanks_and_unicode_forms_are_normalized() -> None:
    text = "one\r\n\r\ntwo\tthree\u00a0four ﬁve inter-\nnational"
    assert placed(text, "one\n\ntwothreefour", "five international") == [
        (["one\r\n\r\ntwo\tthree\u00a0four"], "normalized"),
        (["ﬁve inter-\nnational"], "normalized"),
    ]


def test_a_generated_prefix_is_no_part_of_the_place() -> None:
    text = f"{A}\n{B}"
    assert placed(text, (f"Summary: money.\n{B}", None, "Summary: money.\n")) == [([B], "exact")]
    assert placed(text, (f"Summary:  money.\n\n{B}", None, "Summary: money.")) == [([B], "exact")]


def test_an_unknown_header_is_left_out_of_the_place() -> None:
    assert placed(f"{A}\n{B}", f"Annual report > Money\n{B}") == [([B], "normalized")]


def test_lines_taken_from_several_places_are_several_ranges() -> None:
    text = f"{A}\nA line between that was dropped.\n{B}"
    assert placed(text, f"{A}\n{B}") == [([A, B], "normalized")]


def test_a_chunk_that_is_not_there_has_no_place_and_does_not_stop_the_others() -> None:
    assert placed(f"{A} {B}", A, C, None, "", B) == [
        ([A], "exact"),
        ([], "none"),
        ([], "none"),
        ([], "none"),
        ([B], "exact"),
    ]


def test_no_chunks_have_no_places() -> None:
    assert place_chunks(A, []) == []
    assert place_chunks("", [(A, 0, None)]) == [((), "none")]


def test_many_repeats_are_placed_in_bounded_time() -> None:
    text = "| a | b |\n" * 4_000
    begun = time.perf_counter()
    found = place_chunks(text, [("| a | b |", None, None)] * 4_000)
    assert time.perf_counter() - begun < 8
    assert [ranges[0][0] for ranges, _ in found] == list(range(0, 40_000, 10))


# ---------------------------------------------------------------- chunks of real splitters

PARAGRAPH = "Section {n} tells what the office does in month {m}. It was written by hand. Nothing else is said of it."
NOTICE = "All figures are unaudited."


def document(line_end: str = "\n", blank: str = " ") -> str:
    """Headings, repeats, tabs and the blanks asked for."""
    lines = ["# Report", ""]
    for n in range(24):
        lines += [f"## Part {n % 4}", "", PARAGRAPH.format(n=n % 5, m=n % 3), "", NOTICE, f"\titem {n}", ""]
    return line_end.join(lines).replace("tells what", f"tells{blank}what")


VARIANTS = {
    "plain": document(),
    "CRLF": document("\r\n"),
    "NBSP": document(blank="\u00a0"),
    "tabs": document(blank="\t"),
}


def assert_placed(text: str, chunks: Any, least_exact: float) -> list[tuple[tuple[tuple[int, int], ...], str]]:
    """Every chunk has a place; what is there has the chunk's letters; exact is exact; enough are exact."""
    found = pieces(chunks)
    assert found
    result = place_chunks(text, found)
    for piece, (ranges, quality) in zip(found, result, strict=True):
        assert quality in ("exact", "normalized", "ambiguous"), piece
        there = "".join(text[start:end] for start, end in ranges)
        assert normal(there).letters.text == normal(piece.text or "").letters.text
        if quality == "exact":
            assert there == piece.text
    exact = sum(quality == "exact" for _, quality in result)
    assert exact >= least_exact * len(result)
    return result


def assert_covers(text: str, placed: Sequence[tuple[tuple[tuple[int, int], ...], str]]) -> None:
    """In document order, with no letter of the text left out: nothing was put at a wrong repeat."""
    starts = [ranges[0][0] for ranges, _ in placed]
    assert starts == sorted(starts)
    covered = bytearray(len(text))
    for ranges, _ in placed:
        for start, end in ranges:
            covered[start:end] = b"\1" * (end - start)
    assert not count("".join(char for char, is_covered in zip(text, covered, strict=True) if not is_covered))


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize(("size", "overlap"), [(120, 0), (120, 60), (40, 0), (300, 30)])
@pytest.mark.parametrize("has_hints", [True, False])
def test_chunks_of_a_recursive_character_splitter_are_placed(
    text: str, size: int, overlap: int, has_hints: bool
) -> None:
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    splitter = splitters.RecursiveCharacterTextSplitter(
        chunk_size=size, chunk_overlap=overlap, add_start_index=has_hints
    )
    assert_covers(text, assert_placed(text, splitter.create_documents([text]), 0.95))


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
def test_wrong_hints_of_a_splitter_that_counts_words_are_set_right(text: str) -> None:
    """With a length that is not in characters, start_index is -1 or a later repeat for many chunks."""
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    splitter = splitters.RecursiveCharacterTextSplitter(
        chunk_size=20, chunk_overlap=8, length_function=lambda part: len(part.split()), add_start_index=True
    )
    documents = splitter.create_documents([text])
    assert_covers(text, assert_placed(text, documents, 0.9))


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
def test_chunks_of_a_markdown_splitter_that_changes_blanks_are_placed(text: str) -> None:
    splitters = pytest.importorskip("langchain_text_splitters", reason="langchain-text-splitters is not installed")
    splitter = splitters.MarkdownHeaderTextSplitter([("#", "title"), ("##", "part")], strip_headers=False)
    assert_covers(text, assert_placed(text, splitter.split_text(text), 0.0))


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize("forgets_places", [False, True])
def test_nodes_of_a_sentence_splitter_are_placed(text: str, forgets_places: bool) -> None:
    core = pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    parser = pytest.importorskip("llama_index.core.node_parser", reason="llama-index-core is not installed")
    splitter = parser.SentenceSplitter(chunk_size=40, chunk_overlap=10, tokenizer=str.split)
    nodes = splitter.get_nodes_from_documents([core.Document(text=text)])
    if forgets_places:
        for node in nodes:
            node.start_char_idx = node.end_char_idx = None
    assert_covers(text, assert_placed(text, nodes, 0.9))


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
def test_nodes_with_the_same_text_have_places_of_their_own(text: str) -> None:
    core = pytest.importorskip("llama_index.core", reason="llama-index-core is not installed")
    parser = pytest.importorskip("llama_index.core.node_parser", reason="llama-index-core is not installed")
    splitter = parser.TokenTextSplitter(chunk_size=12, chunk_overlap=0, tokenizer=str.split)
    nodes = splitter.get_nodes_from_documents([core.Document(text=text)])
    result = assert_placed(text, nodes, 0.9)
    assert len({ranges[0] for ranges, _ in result}) == len(nodes)


@pytest.mark.parametrize("text", VARIANTS.values(), ids=VARIANTS.keys())
@pytest.mark.parametrize(
    ("unit", "length", "overlap"), [("word", 20, 5), ("period", 2, 0), ("passage", 1, 0), ("line", 3, 1)]
)
def test_chunks_of_haystacks_splitter_are_placed(text: str, unit: str, length: int, overlap: int) -> None:
    haystack = pytest.importorskip("haystack", reason="haystack-ai is not installed")
    preprocessors = pytest.importorskip("haystack.components.preprocessors", reason="haystack-ai is not installed")
    splitter = preprocessors.DocumentSplitter(split_by=unit, split_length=length, split_overlap=overlap)
    if hasattr(splitter, "warm_up"):
        splitter.warm_up()
    chunks = splitter.run(documents=[haystack.Document(content=text)])["documents"]
    result = assert_placed(text, [chunk for chunk in chunks if count(chunk.content)], 0.95)
    assert_covers(text, result)


def test_random_cuts_with_overlap_are_found_where_they_were_made() -> None:
    drawn = random.Random(7)
    text = document()
    for _ in range(20):
        cuts, at = [], 0
        while at < len(text):
            end = min(len(text), at + drawn.randint(30, 200))
            cuts.append((at, end))
            at = max(at + 1, end - drawn.choice((0, 0, 10))) if end < len(text) else end
        result = place_chunks(text, [(text[start:end], None, None) for start, end in cuts if count(text[start:end])])
        wanted = [(start, end) for start, end in cuts if count(text[start:end])]
        wrong = [
            (one, want) for one, want in zip(result, wanted, strict=True) if one[1] == "exact" and one[0][0] != want
        ]
        assert wrong == []
