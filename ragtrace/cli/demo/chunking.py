"""Passages of a parsed text: sections first, then whole paragraphs up to a size. Knows nothing of tracing."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TypedDict

__all__ = ["Hit", "Passage", "split_text"]


class Passage(TypedDict):
    """A piece of a page."""

    id: str
    doc_id: str
    edition: str
    start: int
    """First character in the page's parsed text."""
    end: int
    """One past the last."""
    text: str


class Hit(Passage, total=False):
    """A passage as a step of the search returns it."""

    score: float
    tokens: int


_PARAGRAPH = re.compile(r".+?(?=\n\n|\Z)", re.S)
_HEADING = re.compile(r"#{1,5} [^\n]+\Z")
_SENTENCE_END = re.compile(r"(?<=[.!?:;]) ")


def split_text(doc_id: str, edition: str, text: str, *, max_chars: int, min_chars: int) -> list[Passage]:
    """Passages in text order, none of them across a heading.

    A paragraph longer than `max_chars` is cut after a sentence, or hard where it has none. Passages shorter than
    `min_chars` (headings alone, stray notes) are left out. An empty text has no passages. Never raises.
    """
    passages: list[Passage] = []
    for start, end in _spans(text, max_chars):
        if end - start >= min_chars:
            name = f"{doc_id}@{edition}:{len(passages):03}"
            passages.append(
                Passage(id=name, doc_id=doc_id, edition=edition, start=start, end=end, text=text[start:end])
            )
    return passages


def _spans(text: str, max_chars: int) -> Iterator[tuple[int, int]]:
    open_span: tuple[int, int] | None = None
    for start, end, is_heading in _pieces(text, max_chars):
        if open_span and not is_heading and end - open_span[0] <= max_chars:
            open_span = (open_span[0], end)
            continue
        if open_span:
            yield open_span
        open_span = (start, end)
    if open_span:
        yield open_span


def _pieces(text: str, max_chars: int) -> Iterator[tuple[int, int, bool]]:
    """Paragraphs, the long ones cut; with a mark for headings."""
    for paragraph in _PARAGRAPH.finditer(text):
        start = paragraph.start() + len(paragraph[0]) - len(paragraph[0].lstrip("\n"))
        end = paragraph.end()
        is_heading = bool(_HEADING.match(text[start:end]))
        while end - start > max_chars:
            cuts = [start + cut.end() for cut in _SENTENCE_END.finditer(text[start : start + max_chars])]
            cut = cuts[-1] if cuts else start + max_chars
            yield start, cut, False
            start = cut
        yield start, end, is_heading
