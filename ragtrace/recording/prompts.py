"""Which candidates' texts stand in a prompt, and what of them.

Blanks never decide: packers strip and reflow. All offsets are code points, all ranges half open. Nothing here raises.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain, compress
from operator import itemgetter

from ragtrace.alignment import is_counting
from ragtrace.recording.texts import LEAST_COUNTING, with_blanks

__all__ = ["find_in"]

Range = tuple[int, int]

_LEAST_NEW = 8
"""So many of them outside every other found text: fewer are a neighbour's overlap and a few letters of chance."""


def find_in(haystack: str, texts: Sequence[str | None]) -> list[tuple[int, tuple[Range, ...] | None]]:
    """Which of the texts stand in a prompt, in the order they stand there: (index, what of it stands there).

    None instead of ranges: the whole text. Else the text's longest beginning or end, or both when both stand there
    in order, each of at least 24 counting characters. Texts that are equal each need a place of their own, and go to
    those places in the order given. A text inside a longer one that stands there is found too, when it has at least
    24 counting characters. A beginning or end that lies in other found texts, but for a few letters, says nothing and
    is not found: neighbours overlap, and many chunks begin alike.
    """
    hay = _bare(haystack)
    if not hay:
        return []
    groups: dict[str, list[int]] = {}
    for index in _at_hand(hay, texts):
        groups.setdefault(_bare(texts[index] or ""), []).append(index)
    taken: list[Range] = []
    found: list[tuple[int, int, int, tuple[Range, ...] | None]] = []
    missing: list[tuple[str, int]] = []
    for bare in sorted(groups, key=len, reverse=True):
        places = _places(hay, bare, len(groups[bare]), taken)
        for index, place in zip(groups[bare], places, strict=False):
            taken.append((place, place + len(bare)))
            found.append((place, -len(bare), index, None))
        if not places:
            missing.append((bare, groups[bare][0]))
    # The longest first again: what a neighbour shares with it is then no longer new.
    sized = [(sum(start - end for _, start, end in _ends_in(hay, bare, taken)), bare, index) for bare, index in missing]
    for _, bare, index in sorted(one for one in sized if one[0]):
        parts = _ends_in(hay, bare, taken)
        if parts:
            taken.extend((place, place + end - start) for place, start, end in parts)
            text = texts[index] or ""
            ranges = tuple(with_blanks(text, start, end) for _, start, end in parts)
            found.append((parts[0][0], -len(bare), index, ranges))
    return [(index, ranges) for _, _, index, ranges in sorted(found, key=lambda one: one[:3])]


def _bare(text: str) -> str:
    """A text without blanks; taking out the commonest ones first is three times as fast as splitting at each."""
    return "".join(text.replace(" ", "").replace("\n", "").split())


_REACH = 40
"""Within so many characters there are nearly always 24 that are no blanks."""


def _at_hand(hay: str, texts: Sequence[str | None]) -> list[int]:
    """The texts of which something may stand in a prompt: those whose first or last 24 characters may.

    Whatever of a longer text is found begins or ends with these. Of every such run in the prompt there is a window at
    each fourth place, which is one of those at the run's own first four places: looking these up costs 2 µs a text,
    where searching the prompt for it takes 5 to 40.
    """
    rows = [row for row, text in enumerate(texts) if text]
    heads = _each_bare([text[:_REACH] for text in texts if text])
    tails = _each_bare([text[-_REACH:] for text in texts if text])
    chosen = set()
    for number, (head, tail) in enumerate(zip(heads, tails, strict=True)):
        if len(head) < LEAST_COUNTING or len(tail) < LEAST_COUNTING:
            heads[number] = tails[number] = whole = _bare(texts[rows[number]] or "")
            if whole and len(whole) < LEAST_COUNTING:
                chosen.add(rows[number])
    windows = [_of_head(head) + _of_tail(tail) for head, tail in zip(heads, tails, strict=True)]
    known: set[str] = set()
    for at in range(0, len(hay), _BLOCK):
        known.update(_of_block(hay[at : at + _BLOCK + _WINDOW]))
    known.discard("")  # past the end of the prompt; a text of blanks has no other window
    found = known.intersection(chain.from_iterable(windows))
    if found:
        chosen.update(row for row, of_ends in zip(rows, windows, strict=True) if not found.isdisjoint(of_ends))
    return sorted(chosen)


_STRIDE = 4
_WINDOW = LEAST_COUNTING - _STRIDE
_BLOCK = 64 * _STRIDE
# All windows of a text by one call: half of the time of cutting them one by one. Past an end of it they are shorter.
_of_head = itemgetter(*(slice(at, at + _WINDOW) for at in range(_STRIDE)))
_of_tail = itemgetter(*(slice(at - LEAST_COUNTING, at - _STRIDE) for at in range(_STRIDE)))
_of_block = itemgetter(*(slice(at, at + _WINDOW) for at in range(0, _BLOCK, _STRIDE)))


def _each_bare(texts: Sequence[str]) -> list[str]:
    bare = _bare("\0".join(texts)).split("\0")
    return bare if len(bare) == len(texts) else list(map(_bare, texts))  # one with a NUL in it, or no text at all


def _places(hay: str, bare: str, most: int, taken: Sequence[Range]) -> list[int]:
    """Up to `most` places of a text that do not overlap one another: those apart from longer found texts first."""
    apart: list[int] = []
    inside: list[int] = []
    at = hay.find(bare)
    while at >= 0 and len(apart) < most:
        (inside if _is_inside(at, at + len(bare), taken) else apart).append(at)
        at = hay.find(bare, at + len(bare))
    if len(apart) < most and inside and _first_counting(bare, LEAST_COUNTING) is not None:
        apart += inside[: most - len(apart)]
    return sorted(apart)


def _is_inside(start: int, end: int, taken: Sequence[Range]) -> bool:
    return any(low <= start and end <= high for low, high in taken)


def _first_counting(text: str, n: int) -> int | None:
    """The length of the shortest beginning with n counting characters; None when the text has fewer."""
    for at, char in enumerate(text):
        n -= is_counting(char)
        if not n:
            return at + 1
    return None


def _ends_in(hay: str, bare: str, taken: Sequence[Range]) -> list[tuple[int, int, int]]:
    """The longest beginning and end of a text that stand in the prompt: (place, start, end), at most two, in order."""
    head = _longest(hay, bare, _first_counting(bare, LEAST_COUNTING), taken, from_start=True)
    tail = _longest(hay, bare, _first_counting(bare[::-1], LEAST_COUNTING), taken, from_start=False)
    if head and tail:
        if head[2] <= tail[1] and head[0] + head[2] <= tail[0]:
            return [head, tail]
        return [max(head, tail, key=lambda part: part[2] - part[1])]
    return [part for part in (head, tail) if part]


def _longest(
    hay: str, bare: str, shortest: int | None, taken: Sequence[Range], *, from_start: bool
) -> tuple[int, int, int] | None:
    """The longest beginning or end of a text anywhere in the prompt, at its first place with something new."""
    if shortest is None:
        return None
    part = bare[:shortest] if from_start else bare[-shortest:]
    places = []
    at = hay.find(part)
    while at >= 0:
        length = _common(hay, at, bare, shortest) if from_start else _common_end(hay, at + shortest, bare, shortest)
        places.append((at if from_start else at + shortest - length, length))
        at = hay.find(part, at + 1)
    longest = max((length for _, length in places), default=0)
    for at, length in places:
        if length == longest and _n_new(hay, at, at + length, taken) >= _LEAST_NEW:
            return (at, 0, length) if from_start else (at, len(bare) - length, len(bare))
    return None


def _common(hay: str, at: int, bare: str, length: int) -> int:
    """How long a beginning of a text stands at a place, when `length` of it is known to."""
    too_long = min(len(bare), len(hay) - at) + 1
    while too_long - length > 1:
        middle = (length + too_long) // 2
        if hay.startswith(bare[:middle], at):
            length = middle
        else:
            too_long = middle
    return length


def _common_end(hay: str, end: int, bare: str, length: int) -> int:
    """How long an end of a text stands before a place, when `length` of it is known to."""
    too_long = min(len(bare), end) + 1
    while too_long - length > 1:
        middle = (length + too_long) // 2
        if hay.endswith(bare[-middle:], 0, end):
            length = middle
        else:
            too_long = middle
    return length


def _n_new(hay: str, start: int, end: int, taken: Sequence[Range]) -> int:
    """Counting characters of a part of the prompt that are in none of the found texts."""
    if _is_inside(start, end, taken):
        return 0
    is_new = bytearray(b"\1") * (end - start)
    for low, high in taken:
        first, last = max(low, start) - start, min(high, end) - start
        if first < last:
            is_new[first:last] = bytes(last - first)
    return sum(map(is_counting, compress(hay[start:end], is_new)))
