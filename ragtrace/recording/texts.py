"""Where texts stand in one another: what is left of a text, chunks in their document. `prompts` finds texts in a prompt.

Blanks never decide: packers strip and reflow. All offsets are code points, all ranges half open. Nothing here raises.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from difflib import SequenceMatcher
from typing import NamedTuple

from ragtrace.alignment import Normal, count, find, normal

__all__ = ["LEAST_COUNTING", "cut", "longer", "place_chunks", "with_blanks"]

Range = tuple[int, int]

LEAST_COUNTING = 24
"""Counting characters a beginning or end of a text must have to tell that it is that text's: four words or so."""


def with_blanks(text: str, start: int, end: int) -> Range:
    """The range of a text, blanks counted, that holds the characters start to end of it, blanks not counted."""
    places = [at for at, char in enumerate(text) if not char.isspace()]
    return places[start], places[end - 1] + 1


# ------------------------------------------------------------------ one text from another

# Scripts without blanks between words: each character is a word.
_WORDS = re.compile(
    r"[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff]"
    r"|(?:(?![\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff])[^\W_])+"
    r"|[^\w\s]"
)
_MOST_WORDS = 20_000
"""Beyond, comparing word by word takes seconds."""


def cut(former: str, text: str) -> tuple[Range, ...] | None:
    """What of a text is left in a later one: ranges of the former in order; None when it was rewritten.

    The later text must be made of words of the former in their order; blanks, punctuation and marks of omission do
    not matter. () when nothing is left, the whole range when nothing is gone.
    """
    if former == text:
        return ((0, len(former)),)
    if text.strip() and (at := former.find(text)) >= 0:
        return ((at, at + len(text)),)  # to the letter, blanks at its ends too: where no text is on record they count
    bare, later = "".join(former.split()), "".join(text.split())
    if later and (at := bare.find(later)) >= 0:
        return (with_blanks(former, at, at + len(later)),)
    here, there = _words(former), _words(text)
    if not there:
        return ()
    if len(there) > len(here) or len(here) > _MOST_WORDS:
        return None
    matcher = SequenceMatcher(None, [word for word, _, _ in here], [word for word, _, _ in there], autojunk=False)
    blocks = [(block.a, block.size) for block in matcher.get_matching_blocks() if block.size]
    if sum(size for _, size in blocks) < len(there):
        # The matcher takes the longest runs first and can miss that every word has a place.
        blocks = _in_order([word for word, _, _ in here], [word for word, _, _ in there])
    return tuple((here[at][1], here[at + size - 1][2]) for at, size in blocks) or None


def _in_order(here: Sequence[str], there: Sequence[str]) -> list[tuple[int, int]]:
    """Runs (start, length) of words that are the later text, each word at its first place; none when they are not."""
    runs: list[tuple[int, int]] = []
    at = 0
    for word in there:
        while at < len(here) and here[at] != word:
            at += 1
        if at == len(here):
            return []
        if runs and sum(runs[-1]) == at:
            runs[-1] = (runs[-1][0], runs[-1][1] + 1)
        else:
            runs.append((at, 1))
        at += 1
    return runs


def _words(text: str) -> list[tuple[str, int, int]]:
    return [(word[0], *word.span()) for word in _WORDS.finditer(text) if count(word[0])]


def longer(former: str, text: str) -> Range | None:
    """Where a text stands inside a later, longer one (a window around it, its parent); None when it does not."""
    bare = "".join(former.split())
    at = "".join(text.split()).find(bare) if bare else -1
    return with_blanks(text, at, at + len(bare)) if at >= 0 else None


# ------------------------------------------------------------------ chunks in their document

_MOST_PLACES = 8
"""Places of one chunk that are weighed: more repeats than that within reach are taken nearest first."""


class _Place(NamedTuple):
    ranges: tuple[Range, ...]
    quality: str

    @property
    def start(self) -> int:
        return self.ranges[0][0]

    @property
    def end(self) -> int:
        return self.ranges[-1][1]


def place_chunks(
    text: str, pieces: Sequence[tuple[str | None, int | None, str | None]]
) -> list[tuple[tuple[Range, ...], str]]:
    """The ranges of a document's chunks and how sure they are, in the order of the chunks.

    A piece is (chunk text, hinted start or None, generated prefix or None). Hints that all hold and rise are taken.
    Else chunks are found by their text and chosen so that they follow one another in document order with the least
    text between them: a chunk may start before the end of the one before it, not before its start. Qualities:
    `exact` (text[start:end] is the chunk, generated prefix apart), `normalized` (equal in normal form, or its lines
    are, what was put before or between them apart), `ambiguous` (the same text stands elsewhere just as well),
    `none` (no ranges).
    """
    hinted = _hinted(text, pieces)
    if hinted is not None:
        return hinted
    finder = _Finder(text)
    # For each chunk its places, each with the least cost up to there and the place before it on that way.
    layers: list[list[_Place]] = []
    costs: list[list[float]] = []
    backs: list[list[int]] = []
    layer, cost, low = [_Place(((0, 0),), "start")], [0.0], 0
    rows: list[int] = []
    for row, (chunk, hint, generated) in enumerate(pieces):
        places = finder.places(chunk or "", hint, generated, low)
        if not places:
            continue
        steps = [[cost[at] + _step(text, before, place, hint) for at, before in enumerate(layer)] for place in places]
        backs.append([ways.index(min(ways)) for ways in steps])
        cost = [min(ways) for ways in steps]
        layer = places
        # Places that are only reached by going back do not hold the search back.
        low = min(place.start for place, up in zip(places, cost, strict=True) if up < min(cost) + len(text))
        layers.append(layer)
        costs.append(cost)
        rows.append(row)
    placed: list[tuple[tuple[Range, ...], str]] = [((), "none")] * len(pieces)
    rest = [float(len(text) - place.end) for place in layer]
    chosen = _cheapest([up + down for up, down in zip(cost, rest, strict=True)])
    for number in range(len(layers) - 1, -1, -1):
        through = [up + down for up, down in zip(costs[number], rest, strict=True)]
        place = layers[number][chosen]
        # Two ways that differ by less than the separators that splitters drop are equally good.
        rivals = sum(cost <= through[chosen] + _SEPARATORS for cost in through)
        placed[rows[number]] = (place.ranges, place.quality if rivals == 1 else "ambiguous")
        if number:
            hint = pieces[rows[number]][1]
            rest = [
                min(_step(text, before, after, hint) + down for after, down in zip(layers[number], rest, strict=True))
                for before in layers[number - 1]
            ]
            chosen = backs[number][chosen]
    return placed


_SEPARATORS = 0.5
_BACKWARDS = 2.0
"""In document lengths: lists of parents and then children go back once, all others never."""
_HINT = 0.75
"""Settles what is otherwise equal: hints at a first repeat hold as often as right ones."""


def _cheapest(costs: Sequence[float]) -> int:
    return min(range(len(costs)), key=costs.__getitem__) if costs else 0


def _step(text: str, before: _Place, after: _Place, hint: int | None) -> float:
    """What it costs that a chunk follows another: the text between them, or twice over; going back costs most."""
    cost = float(abs(after.start - before.end))
    if before.quality != "start" and after.start <= before.start:
        is_longer = after.start == before.start and after.end > before.end
        cost = after.start + (0 if is_longer else _BACKWARDS * len(text))
    return cost - (_HINT if hint == after.start else 0)


def _hinted(
    text: str, pieces: Sequence[tuple[str | None, int | None, str | None]]
) -> list[tuple[tuple[Range, ...], str]] | None:
    placed: list[tuple[tuple[Range, ...], str]] = []
    last = -1
    for chunk, hint, generated in pieces:
        if not chunk or generated or hint is None or hint <= last or not text.startswith(chunk, hint):
            return None
        placed.append((((hint, hint + len(chunk)),), "exact"))
        last = hint
    return placed


class _Finder:
    """Looks chunks up in one document."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._normal: Normal | None = None

    @property
    def normal(self) -> Normal:
        if self._normal is None:
            self._normal = normal(self.text)
        return self._normal

    def places(self, chunk: str, hint: int | None, generated: str | None, low: int) -> list[_Place]:
        """Where a chunk can stand, from `low` on if it stands there at all."""
        chunk = _without(chunk, generated)
        if not chunk.strip():
            return []
        exact = self._exact(chunk, low) or self._exact(chunk, 0)
        if exact:
            if hint is not None and hint >= 0 and hint not in exact and self.text.startswith(chunk, hint):
                exact.append(hint)
            return [_Place(((at, at + len(chunk)),), "exact") for at in exact]
        if not count(chunk):
            return []  # a few dots: in normal form they stand anywhere
        ranges = find(self.normal, chunk, start=low, limit=_MOST_PLACES)
        after = [one for one in ranges if one[0] >= low]
        if ranges:
            return [_Place((one,), "normalized") for one in after or ranges]
        parts = self._by_lines(chunk, low)
        return [_Place(parts, "normalized")] if parts else []

    def _exact(self, chunk: str, low: int) -> list[int]:
        found: list[int] = []
        at = self.text.find(chunk, low)
        while at >= 0 and len(found) < _MOST_PLACES:
            found.append(at)
            at = self.text.find(chunk, at + 1)
        return found

    def _by_lines(self, chunk: str, low: int) -> tuple[Range, ...]:
        """The lines of a chunk that stand in the document near its longest line, in order; the others were made up."""
        lines = [line for line in re.split(r"[\r\n]+", chunk) if count(line)]
        if not lines:
            return ()
        longest = max(range(len(lines)), key=lambda number: len(lines[number]))
        if count(lines[longest]) < LEAST_COUNTING:
            return ()
        anchors = find(self.normal, lines[longest], start=low, limit=1)
        if not anchors:
            return ()
        reach = 2 * len(chunk) + 200
        ranges = [anchors[0]]
        for line in lines[longest + 1 :]:
            end = ranges[-1][1]
            after = find(self.normal, line, start=end, limit=1)
            if after and end <= after[0][0] <= end + reach:
                ranges.append(after[0])
        for line in reversed(lines[:longest]):
            start = ranges[0][0]
            before = [
                one
                for one in find(self.normal, line, start=max(0, start - reach), limit=_MOST_PLACES)
                if start - reach <= one[0] and one[1] <= start
            ]
            if before:
                ranges.insert(0, before[-1])
        if 2 * sum(count(self.text[start:end]) for start, end in ranges) < count(chunk):
            return ()
        return self._joined(ranges)

    def _joined(self, ranges: Sequence[Range]) -> tuple[Range, ...]:
        joined = [ranges[0]]
        for start, end in ranges[1:]:
            if count(self.text[joined[-1][1] : start]):
                joined.append((start, end))
            else:
                joined[-1] = (joined[-1][0], end)
        return tuple(joined)


def _without(chunk: str, generated: str | None) -> str:
    """The chunk without its generated prefix and the blanks after it."""
    if not generated:
        return chunk
    if chunk.startswith(generated):
        return chunk[len(generated) :].lstrip()
    bare = "".join(generated.split())
    if not "".join(chunk.split()).startswith(bare) or not bare:
        return chunk
    return chunk[with_blanks(chunk, 0, len(bare))[1] :].lstrip()
