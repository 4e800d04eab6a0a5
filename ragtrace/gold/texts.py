"""One parsed text of a document, and where a labelled passage stands in it. Knows nothing of databases."""

from __future__ import annotations

import itertools
import unicodedata
from collections.abc import Callable, Iterator, Sequence
from functools import cached_property
from typing import Any, NamedTuple

from ragtrace import alignment, digest

__all__ = ["Hint", "Place", "Text", "garbled_from"]

Range = tuple[int, int]

_MOST_PLACES = 200
"""Occurrences of one quote that are looked at: a quote that stands more often says nothing about its place."""

_CLEARLY_NEARER = 4
"""The nearest of several occurrences is taken when the next one is at least this many times farther away."""

_FEWEST_LETTERS = 12
"""Counting characters from which a passage is found by these alone; fewer could run together from two words."""


def _lf(text: str) -> str:
    return text.replace("\r\n", "\n")


_FROM_ONE = "from 1, or a byte order mark that the parsed text does not have"

# What the labels' maker may have counted: the text as it was there, and how many of its parts are one unit.
_READINGS: tuple[tuple[str, Callable[[str], str | bytes], int], ...] = (
    ("UTF-16 units (as Java, JavaScript and C# do)", lambda text: text.encode("utf-16-le", "surrogatepass"), 2),
    ("UTF-8 bytes (as Go, Rust and C do)", lambda text: text.encode("utf-8", "surrogatepass"), 1),
    ("CRLF line ends as two characters, where the parsed text has LF", lambda text: _lf(text).replace("\n", "\r\n"), 1),
    ("line ends as one character, where the parsed text has CRLF", _lf, 1),
    ("characters of the text in Unicode form NFC", lambda text: unicodedata.normalize("NFC", text), 1),
    ("characters of the text in Unicode form NFD", lambda text: unicodedata.normalize("NFD", text), 1),
    ("characters of the text in Unicode form NFKC", lambda text: unicodedata.normalize("NFKC", text), 1),
    (_FROM_ONE, lambda text: "\ufeff" + text, 1),
)


def garbled_from(n_counting: int) -> float:
    """Similarity from which the nearest passage is taken for the quote, damaged.

    Quotes held against 200 wrong documents of seven sets: the nearest passage stays below 0.6 from 20 letters on
    (but for near copies), and below 0.8 for shorter ones.
    """
    return 0.6 if n_counting >= 20 else 0.8


class Place(NamedTuple):
    """Where a passage stands in a text; the columns of `evidence_places` of the same names."""

    is_found: bool
    start_at: int | None
    end_at: int | None
    quality: str
    similarity: float | None
    n_places: int = 1
    """How many occurrences there are."""


class Hint(NamedTuple):
    """Which of several occurrences is meant, told by the text the label was made on."""

    ordinal: int
    n_places: int
    share: float
    """How far into that text the passage stands, 0..1."""


class Text:
    """A captured text whose offsets hold."""

    def __init__(self, text_hash: str, text: str) -> None:
        self.text_hash = text_hash
        self.text = text
        self._counted: dict[str, Any] = {}

    @cached_property
    def normal(self) -> alignment.Normal:
        """Its normal form; worked out once, when first asked for."""
        return alignment.normal(self.text)

    @cached_property
    def is_redacted(self) -> bool:
        """True when the text is not the one its hash was made of: what it lacks may only have been masked."""
        return digest.of_text(self.text) != self.text_hash

    def holds(self, quote: str, offsets: Range) -> bool:
        """True when exactly the quote stands at these offsets."""
        start, end = offsets
        return self.text[start:end] == quote

    def is_masked_at(self, quote: str, offsets: Range) -> bool:
        """True when redaction masked part of what stands at these offsets, and the rest agrees with the quote."""
        start, end = offsets
        there = self.text[start:end]
        if len(there) != len(quote) or not self.is_redacted:
            return False
        return sum(map(str.__eq__, there, quote)) * 2 >= len(quote)

    def is_near(self, place: Place, offsets: Range) -> bool:
        """True when only blanks and punctuation lie between a place and the labelled start."""
        if place.start_at is None or not place.is_found:
            return False
        low, high = sorted((place.start_at, offsets[0]))
        return high <= len(self.text) and not alignment.count(self.text[low:high])

    def search(self, quote: str, offsets: Range | None = None, hint: Hint | None = None) -> Place | None:
        """Where the quote stands: by its letters, else in normal form, else the nearest passage.

        Several occurrences: the one at the offsets, else the one the hint means, else the one that the offsets mean
        when they are misread in a known way, else the one clearly nearest to them, else ambiguous (the first).
        None when it is not found and redaction may have hidden it.
        """
        if offsets is not None and (self.holds(quote, offsets) or self.is_masked_at(quote, offsets)):
            return Place(True, *offsets, "exact", 1.0)
        found = self.exact(quote)
        quality = "exact"
        if not found:
            found = self.loosely(quote)
            quality = "normalized"
        if found:
            number = self._choose(found, quote, offsets, hint)
            start, end = found[number or 0]
            return Place(True, start, end, quality if number is not None else "ambiguous", 1.0, len(found))
        if self.is_redacted:
            return None
        start, end, similarity = alignment.nearest(self.normal, quote)
        if similarity < garbled_from(alignment.count(quote)):
            return Place(False, None, None, "text_missing", similarity)
        return Place(False, start, end, "text_garbled", similarity)

    def exact(self, quote: str) -> list[Range]:
        """Every place where exactly the quote stands, in order."""
        return [(at, at + len(quote)) for at in itertools.islice(_places(self.text, quote), _MOST_PLACES)]

    def loosely(self, quote: str) -> list[Range]:
        """Places where it stands in normal form; none: where its letters stand in a row whatever is between them."""
        return alignment.find(self.normal, quote, limit=_MOST_PLACES) or self._by_letters(quote)

    def hint(self, quote: str, place: Place) -> Hint:
        """What a place in this text says about the same quote in another text."""
        found = self.exact(quote)
        start = place.start_at or 0
        ordinal = next((number for number, (at, _) in enumerate(found) if at == start), -1)
        return Hint(ordinal, len(found), start / max(1, len(self.text)))

    def _choose(self, found: Sequence[Range], quote: str, offsets: Range | None, hint: Hint | None) -> int | None:
        if len(found) == 1:
            return 0
        if hint is not None:
            if hint.n_places == len(found) and hint.ordinal >= 0:
                return hint.ordinal
            return _nearest(found, round(hint.share * len(self.text)))
        if offsets is None:
            return None
        reading = self.reading(quote, offsets[0])
        if reading is not None and reading[1] < len(found):
            return reading[1]
        return _nearest(found, offsets[0])

    def reading(self, quote: str, start: int) -> tuple[str, int] | None:
        """What the labelled start seems to count: everything by which exactly the quote stands there.

        And which of the quote's occurrences that is by the likeliest, 0 the first. None when nothing known fits.
        """
        names: list[str] = []
        ordinal = 0
        for name, count, width in _READINGS:
            there = self._as_counted(name, count)
            sought: Any = quote if name is _FROM_ONE else count(quote)
            at = start * width
            if there is None or there[at : at + len(sought)] != sought:
                continue
            if not names:
                ordinal = sum(place < at and place % width == 0 for place in _places(there, sought))
            names.append(name)
        return (", or ".join(names), ordinal) if names else None

    def _as_counted(self, name: str, count: Callable[[str], str | bytes]) -> Any:
        """The text in another count's units; None where it has the same places as the text itself."""
        if name not in self._counted:
            there = count(self.text)
            is_same = there == self.text or (name.startswith("UTF") and self.text.isascii())
            self._counted[name] = None if is_same else there
        return self._counted[name]

    def _by_letters(self, quote: str) -> list[Range]:
        """Places that have all the quote's counting characters in a row, whatever punctuation is between them."""
        sought = alignment.normal(quote)
        if len(sought.letters.text) < _FEWEST_LETTERS:
            return []
        letters = self.normal.letters
        found: list[Range] = []
        for at in itertools.islice(_places(letters.text, sought.letters.text), _MOST_PLACES):
            start, end = letters.starts[at], letters.ends[at + len(sought.letters.text) - 1]
            if _counting(alignment.normal(self.text[start:end]).text) == _counting(sought.text):
                found.append((start, end))
        return found


def _counting(text: str) -> str:
    return "".join(filter(alignment.is_counting, text))


def _places(there: Any, sought: Any) -> Iterator[int]:
    """Where one text or byte string stands in another, overlapping ones too."""
    place = there.find(sought)
    while place >= 0:
        yield place
        place = there.find(sought, place + 1)


def _nearest(found: Sequence[Range], start: int) -> int | None:
    first, second = sorted(range(len(found)), key=lambda number: abs(found[number][0] - start))[:2]
    is_clear = abs(found[first][0] - start) * _CLEARLY_NEARER <= abs(found[second][0] - start)
    return first if is_clear else None
