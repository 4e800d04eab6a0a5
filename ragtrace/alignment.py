"""Where one text stands in another when they differ by blanks, Unicode form, ligatures, quotes, dashes or hyphenation.

The normal form of a text:

- a run of blanks (all of Unicode's, line ends included) is one space;
- every character is in NFKC, which takes ligatures apart and narrows full-width forms (œ is a letter and stays);
- curly quotes, primes and guillemets are ' or ", every dash is -;
- soft hyphens, byte order marks, zero-width and other invisible format and control characters are dropped;
- dashes between two letters are dropped, and so is a line end after them. "inter-⏎national" and "international",
  but also "well-⏎known" and "well-known", are then equal: which of the two a broken line had, its text does not tell;
- U+FFFE and U+0002, which PDF libraries put where a page hyphenates a word, are dropped with the line end after them.

Case is kept. All offsets are code points. Nothing here raises for any string.
"""

from __future__ import annotations

import re
import unicodedata
from bisect import bisect_left
from collections import Counter
from collections.abc import Sequence
from difflib import SequenceMatcher
from functools import cached_property
from itertools import compress
from typing import NamedTuple

__all__ = [
    "UNITS",
    "Normal",
    "Units",
    "code_points",
    "count",
    "counting",
    "find",
    "is_counting",
    "letters",
    "nearest",
    "normal",
    "offsets_between",
    "units",
]

Range = tuple[int, int]

UNITS = ("code_points", "utf16", "utf8")
"""The units in which tools count offsets: Python and SQL; Java, JavaScript and C#; Go, Rust and C."""


class _Counting(dict[str, bool]):
    """Remembers for each character whether it counts."""

    def __missing__(self, char: str) -> bool:
        counts = self[char] = unicodedata.category(char)[0] in "LNMS"
        return counts


_counts = _Counting()


def letters(similarity: float) -> str:
    """How much of a passage another has, in words; rounded down, for nothing but the whole is 100%."""
    if similarity >= 1:
        return "all of its letters in order, with others between them"
    return f"{int(similarity * 100)}% of its letters in order"


def is_counting(char: str) -> bool:
    r"""True for a letter, digit, mark or symbol: the characters of which coverage is a share.

    The same rule as ``[\p{L}\p{N}\p{M}\p{S}]`` in SQL, but for characters that are newer than the Unicode version
    of this Python (14.0 in 3.11) or of DuckDB: what one of them does not know yet, it does not count.
    """
    return _counts[char]


def counting(text: str) -> list[bool]:
    """`is_counting` of every character, in order."""
    return list(map(_counts.__getitem__, text))


def count(text: str) -> int:
    """How many characters of the text count."""
    return sum(map(_counts.__getitem__, text))


class Normal:
    """A text in normal form, and where each of its characters comes from."""

    def __init__(self, text: str, starts: Sequence[int], ends: Sequence[int]) -> None:
        self.text = text
        """The normal form."""
        self.starts = starts
        """Of each character of the normal form, the first code point of the original it was made of. Never falls."""
        self.ends = ends
        """Of each character, one past the last code point it was made of. Never falls."""

    @cached_property
    def without_blanks(self) -> Normal:
        """The same with every blank left out: for texts whose words were joined or taken apart."""
        kept = [char != " " for char in self.text]
        return Normal(self.text.replace(" ", ""), list(compress(self.starts, kept)), list(compress(self.ends, kept)))

    @cached_property
    def letters(self) -> Normal:
        """The same with counting characters only, in lower case: for texts that are only similar."""
        kept = counting(self.text)
        text = "".join(compress(self.text, kept))
        lower = text.lower()
        if len(lower) != len(text):  # a few capitals, such as İ, become two characters
            lower = "".join(low if len(low := char.lower()) == 1 else char for char in text)
        return Normal(lower, list(compress(self.starts, kept)), list(compress(self.ends, kept)))


# Folded beside what NFKC does: a double prime would become two primes, a spacing accent a blank and a mark.
_FOLDS = {
    **dict.fromkeys("\u2018\u2019\u201a\u201b\u2032\u2035\u2039\u203a\u02bc\u02b9\u00b4`", "'"),
    **dict.fromkeys("\u201c\u201d\u201e\u201f\u2033\u2036\u00ab\u00bb\u301d\u301e\u301f", '"'),
    **dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212\ufe58\ufe63\uff0d\u2e3a\u2e3b", "-"),
    **dict.fromkeys("\n\r\v\f\x85\u2028\u2029", "\n"),
    "\ufffe": "",
}
_LINE_ENDS_TO_BLANKS = {0x0A: " "}
_WORD_BREAKS = "\u00ad\ufffe\u0002"
_LETTER = r"[^\W\d_]"
_LINE_END = r"(?:\s*\n\s*)"
_CUT_HYPHEN = re.compile(rf"^-(?={_LETTER})|(?<={_LETTER})-$")


def _fold(char: str) -> str:
    """What a single character becomes, line ends kept apart from other blanks. Remembered."""
    folded = _FOLDS.get(char)
    if folded is None:
        if char.isspace():
            folded = " "
        elif unicodedata.category(char) in ("Cf", "Cc"):
            folded = ""
        else:
            form = unicodedata.normalize("NFKC", char)
            # Spacing accents and some Arabic phrases decompose into blanks: they stay whole.
            folded = char if " " in form else "".join(_FOLDS.get(part, part) for part in form)
        _FOLDS[char] = folded
    return folded


def _joins(char: str) -> bool:
    """True for a character that may compose with the one before it."""
    return unicodedata.category(char)[0] == "M" or "\u1161" <= char <= "\u11ff"


def _escaped(chars: Sequence[str]) -> str:
    return "".join(map(re.escape, sorted(chars)))


def normal(text: str) -> Normal:
    """The normal form of a text, with the place in the original of each of its characters.

    Leading and trailing blanks are kept as one space. A million characters take 0.1 to 0.5 s.
    """
    if text.isascii():
        used = set(text) - _PLAIN
        same_length = {ord(char): folded for char in used if len(folded := _fold(char)) == 1}
    else:
        used = set(text)
        same_length = {ord(char): folded for char in used if len(folded := _fold(char)) == 1 and folded != char}
    even = text.translate(same_length) if same_length else text
    pattern, joining = _uneven_sites({char for char in used if len(_fold(char)) != 1}, even)
    pieces: list[str] = []
    starts: list[int] = []
    ends: list[int] = []
    at = 0
    for site in pattern.finditer(even):
        start, end = site.span()
        found = site[0]
        if joining and not joining.isdisjoint(found):
            made = unicodedata.normalize("NFC", "".join(map(_fold, found)))
            if made == found:
                continue
        elif site.lastgroup == "joined":
            made = ""
        elif site.lastgroup == "kept":
            made = "-"
        elif site.lastgroup == "gap":
            made = " " if any(map(str.isspace, found)) else ""
        else:
            made = _fold(found)
        pieces.append(even[at:start])
        starts.extend(range(at, start))
        ends.extend(range(at + 1, start + 1))
        if made:
            pieces.append(made)
            starts.extend([start] * len(made))
            ends.extend([end] * len(made))
        at = end
    if not at:
        return Normal(even.translate(_LINE_ENDS_TO_BLANKS), range(len(even)), range(1, len(even) + 1))
    pieces.append(even[at:])
    starts.extend(range(at, len(even)))
    ends.extend(range(at + 1, len(even) + 1))
    return Normal("".join(pieces).translate(_LINE_ENDS_TO_BLANKS), starts, ends)


# ASCII that stays as it is and needs no look.
_PLAIN = frozenset(map(chr, range(0x20, 0x7F))) - {"`"} | {"\n"}


def _uneven_sites(uneven: set[str], even: str) -> tuple[re.Pattern[str], set[str]]:
    """Finds the places whose length changes; and the composing characters, when any of them has still to compose."""
    joining: set[str] = set()
    if not even.isascii() and not unicodedata.is_normalized("NFC", even):
        joining = {char for char in set(even) if _joins(char)}
    breaks = _escaped([char for char in uneven if char in _WORD_BREAKS])
    dropped = _escaped([char for char in uneven if not _fold(char)])
    widened = _escaped([char for char in uneven if _fold(char)])
    alternatives = []
    if joining:
        marks = _escaped(list(joining))
        alternatives.append(rf"[^\s{marks}]?[{marks}]+")
    alternatives.append(rf"(?P<joined>(?<={_LETTER})[-{breaks}]+{_LINE_END}?(?={_LETTER})")
    if breaks:
        alternatives[-1] += rf"|[{breaks}]+{_LINE_END}?(?=\w)"
    alternatives[-1] += ")"
    alternatives.append(rf"(?P<kept>(?<=\w)-{_LINE_END}(?=\w))")
    alternatives.append(rf"(?P<gap>[\s{dropped}]{{2,}}" + (rf"|[{dropped}])" if dropped else ")"))
    if widened:
        alternatives.append(f"[{widened}]")
    return re.compile("|".join(alternatives)), joining


def find(normal: Normal, quote: str, *, start: int = 0, limit: int = 8) -> list[Range]:
    """Where the quote stands in a text, in its normal form, as ranges of the original text.

    Those that begin at or after `start` come first, then the earlier ones, each in document order; at most `limit`.
    When no place has the quote's blanks, places that differ from it in their blanks only; then, for a quote that begins
    or ends with the hyphen of a word it cuts, places without that hyphen. A quote of nothing but blanks stands nowhere.
    Blanks at the quote's ends are not part of the ranges.
    """
    if limit < 1:
        return []
    whole = _normal_text(quote).strip(" ")
    # Between letters a hyphen has no place in the normal form; at the quote's end nothing shows that it stood there.
    for needle in dict.fromkeys((whole, _CUT_HYPHEN.sub("", whole))):
        found = needle and (
            _occurrences(normal, needle, start, limit)
            or _occurrences(normal.without_blanks, needle.replace(" ", ""), start, limit)
        )
        if found:
            return found
    return []


def _normal_text(quote: str) -> str:
    return normal(quote).text


def _occurrences(normal: Normal, needle: str, start: int, limit: int) -> list[Range]:
    text, size = normal.text, len(needle)
    first = bisect_left(normal.starts, start)
    places: list[int] = []
    at = text.find(needle, first)
    while at >= 0 and len(places) < limit:
        places.append(at)
        at = text.find(needle, at + 1)
    at = text.find(needle, 0, first + size - 1) if first else -1
    while 0 <= at < first and len(places) < limit:
        places.append(at)
        at = text.find(needle, at + 1, first + size - 1)
    return [(normal.starts[at], normal.ends[at + size - 1]) for at in places]


def offsets_between(evidence_text: str, text: str, start: int, end: int) -> list[int] | None:
    """For every code point from `start` to `end` inclusive of a text, its place in the evidence's own text.

    The passage text[start:end] and the evidence should be equal in normal form, blanks and punctuation apart; what
    only one of them has (a hyphen, a blank) takes the place of what follows. Where they are not equal, places are
    spread evenly. None when both have the same length and go one to one. Places never fall; the first is 0, the last
    the evidence's length.
    """
    passage = text[start:end]
    if passage == evidence_text:
        return None
    size, target = end - start, len(evidence_text)
    here, there = normal(passage).without_blanks, normal(evidence_text).without_blanks
    if here.text != there.text:
        here, there = here.letters, there.letters  # they may still differ by punctuation alone
    if not here.text or here.text != there.text:
        if size == target:
            return None
        return [round(place * target / size) for place in range(size + 1)] if size > 0 else [target] * (size == 0)
    if size == target and list(here.starts) == list(there.starts) and list(here.ends) == list(there.ends):
        return None
    offsets: list[int] = []
    n_before = 0
    for place in range(size):
        while n_before < len(here.starts) and here.starts[n_before] < place:
            n_before += 1
        if n_before < len(here.starts):
            offsets.append(there.starts[n_before])
        else:
            offsets.append(max(offsets[-1], there.ends[-1]))
    offsets.append(target)
    offsets[0] = 0
    return offsets


# Figures of `nearest`: enough anchors that a passage with every tenth character wrong still has some, few enough
# that a text of a million characters is searched in about 0.1 s.
_N_ANCHORS = 160
_N_HITS = 48
_N_WINDOWS = 4


def nearest(text: str | Normal, quote: str) -> tuple[int, int, float]:
    """The passage most like a quote that is not there: (start, end, similarity).

    Similarity is the share of the quote's counting characters that stand in the passage in the same order, in runs
    of at least three (in short quotes: two or one), whatever their case. (0, 0, 0.0) when nothing is alike. Pass the
    text's `Normal` when several quotes are sought in it.
    """
    around = (text if isinstance(text, Normal) else normal(text)).letters
    sought = normal(quote).letters.text
    if not sought or not around.text:
        return (0, 0, 0.0)
    size = min(3, max(1, len(sought) // 4))
    best: tuple[float, int, int] = (0.0, 0, 0)
    for at in _windows(around.text, sought, size):
        low = max(0, at - len(sought) // 4 - size)
        window = around.text[low : at + len(sought) + len(sought) // 4 + size]
        blocks = SequenceMatcher(None, _grams(window, size), _grams(sought, size), autojunk=False).get_matching_blocks()
        matched = bytearray(len(sought))
        first, last = len(window), 0
        for in_window, in_sought, length in blocks:
            if length:
                matched[in_sought : in_sought + length + size - 1] = b"\1" * (length + size - 1)
                first, last = min(first, in_window), max(last, in_window + length + size - 1)
        similarity = sum(matched) / len(sought)
        if similarity > best[0]:
            best = (similarity, low + first, low + last)
    similarity, first, last = best
    if not last:
        return (0, 0, 0.0)
    return (around.starts[first], around.ends[last - 1], similarity)


def _grams(text: str, size: int) -> list[str]:
    return [text[at : at + size] for at in range(len(text) - size + 1)]


def _windows(text: str, sought: str, size: int) -> list[int]:
    """Where in the text the quote could begin, likeliest first: votes of its rarer pieces, by their places in both."""
    length = min(len(sought), size + 3 if len(sought) >= 24 else size)
    last = len(sought) - length
    step = max(1, last // _N_ANCHORS)
    width = max(8, len(sought) // 8)
    votes: Counter[int] = Counter()
    begins: dict[int, int] = {}
    while not votes:
        for offset in range(0, last + 1, step):
            anchor = sought[offset : offset + length]
            hits: list[int] = []
            at = text.find(anchor)
            while at >= 0 and len(hits) <= _N_HITS:
                hits.append(at)
                at = text.find(anchor, at + 1)
            if len(hits) > _N_HITS and len(sought) > 2 * length:
                continue  # says little about the place, and its hits beyond the limit are not known
            for at in hits:
                begin = at - offset
                for bucket in (begin // width, begin // width + 1):
                    votes[bucket] += 1
                    begins.setdefault(bucket, begin)
        if length <= size:
            break
        length, last = size, len(sought) - size
    return [begins[bucket] for bucket, _ in votes.most_common(_N_WINDOWS)]


class Units(NamedTuple):
    """One place in a text, in the three units."""

    code_points: int
    utf16: int
    """UTF-16 code units, as Java, JavaScript and C# count."""
    utf8: int
    """Bytes of UTF-8."""


def units(text: str, offset: int) -> Units:
    """A place given in code points in all three units; offsets beyond the text count as its end, below 0 as 0."""
    before = text[: max(0, offset)]
    n_utf16 = len(before) if before.isascii() else len(before.encode("utf-16-le", "surrogatepass")) // 2
    n_utf8 = len(before) if before.isascii() else len(before.encode("utf-8", "surrogatepass"))
    return Units(len(before), n_utf16, n_utf8)


def code_points(text: str, offset: int, unit: str) -> int:
    """A place given in one of `UNITS` in code points; one inside a character counts as that character's start.

    Offsets beyond the text count as its end, below 0 as 0. Raises: ValueError for an unknown unit.
    """
    offset = max(0, offset)
    if unit == "code_points" or (unit in UNITS and text.isascii()):
        return min(offset, len(text))
    if unit == "utf16":
        before = text[:offset].encode("utf-16-le", "surrogatepass")[: 2 * offset].decode("utf-16-le", "surrogatepass")
        is_cut = before and before[-1] != text[len(before) - 1]
        return len(before) - bool(is_cut)
    if unit == "utf8":
        raw = text[:offset].encode("utf-8", "surrogatepass")
        while offset < len(raw) and 0x80 <= raw[offset] < 0xC0:
            offset -= 1
        return len(raw[:offset].decode("utf-8", "surrogatepass"))
    raise ValueError(f"unknown unit {unit!r}: one of {', '.join(UNITS)}")
