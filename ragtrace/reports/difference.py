"""How a passage differs from what it should be: parts that are the same, lost or foreign. Compares texts, nothing else."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterator, Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

__all__ = ["FOREIGN", "LOST", "SAME", "Part", "marked", "parts"]

SAME, LOST, FOREIGN = "same", "lost", "foreign"

_TOKEN = re.compile(r"\w+|[^\w\s]|\s+")

_MOST_CHARACTERS = 4000
"""Of either text: comparing takes time by the square of its length."""

_FINE = 80
"""Longest stretch that is compared letter by letter; longer ones differ as a whole."""


class Part(NamedTuple):
    """A stretch of one text or of both."""

    kind: str
    """same (in both), lost (only in the text that should be there) or foreign (only in the other)."""
    text: str


def parts(wanted: str, there: str) -> list[Part]:
    """Both texts as one row of parts: without the foreign ones it is the wanted text, without the lost ones the other.

    A run of blanks counts as one blank, a ligature as its letters. Words are compared first, then letters inside stretches that differ. Only the
    first 4,000 characters of each are. Empty when both are. Never raises.
    """
    first, second = _tokens(wanted), _tokens(there)
    made: list[Part] = []
    for kind, text in _compared(first, second):
        if not text:
            continue
        if made and made[-1].kind == kind:
            made[-1] = Part(kind, made[-1].text + text)
        else:
            made.append(Part(kind, text))
    return made


def marked(compared: Sequence[Part]) -> str:
    """The parts as one line: `[-lost-]` and `{+foreign+}`."""
    signs = {SAME: ("", ""), LOST: ("[-", "-]"), FOREIGN: ("{+", "+}")}
    return "".join(f"{signs[part.kind][0]}{part.text}{signs[part.kind][1]}" for part in compared)


def _tokens(text: str) -> list[str]:
    flat = " ".join(unicodedata.normalize("NFKC", text[:_MOST_CHARACTERS]).split())
    return _TOKEN.findall(flat)


def _compared(first: Sequence[str], second: Sequence[str]) -> Iterator[tuple[str, str]]:
    for tag, i, i_end, j, j_end in SequenceMatcher(None, first, second, autojunk=False).get_opcodes():
        lost, foreign = "".join(first[i:i_end]), "".join(second[j:j_end])
        if tag == "equal":
            yield SAME, lost
        elif tag == "replace" and max(len(lost), len(foreign)) <= _FINE:
            yield from _letters(lost, foreign)
        else:
            yield LOST, lost
            yield FOREIGN, foreign


def _letters(lost: str, foreign: str) -> Iterator[tuple[str, str]]:
    matcher = SequenceMatcher(None, lost, foreign, autojunk=False)
    if matcher.ratio() < 0.7:  # letters that two unlike words share by chance tell nobody anything
        yield LOST, lost
        yield FOREIGN, foreign
        return
    for tag, i, i_end, j, j_end in matcher.get_opcodes():
        if tag == "equal":
            yield SAME, lost[i:i_end]
        else:
            yield LOST, lost[i:i_end]
            yield FOREIGN, foreign[j:j_end]
