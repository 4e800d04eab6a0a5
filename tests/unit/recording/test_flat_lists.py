"""Lists of flat dicts are read by a short way of their own: it must say what the general way says, or nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from ragtrace.recording.shapes_flat import read_flat
from ragtrace.recording.shapes_rows import rows_of
from ragtrace.recording.shapes_values import whole_ranges

ODD: list[Any] = [None, "", "a\0b", 7, 2.5, True, float("nan"), float("inf"), -1, 2**31 - 1, 2**31, 10**400, "text", []]


def item(rng: random.Random) -> dict[str, Any]:
    """A candidate as a client's JSON has it."""
    start = rng.randrange(1000)
    return {
        "id": f"c{rng.randrange(50)}",
        "score": rng.random(),
        "doc_id": f"d{rng.randrange(3)}",
        "start": start,
        "end": start + rng.randrange(900),
        "text": "some text",
    }


def test_the_short_way_says_what_the_general_way_says() -> None:
    rng = random.Random(3)
    n_short = 0
    for _ in range(3000):
        names = [
            *(["id"] if rng.random() < 0.7 else []),
            *rng.sample(["score", "doc_id", "text", "note"], k=rng.randrange(5)),
        ]
        names += ["start", "end"] if rng.random() < 0.5 else []
        items = [
            {name: value for name, value in (item(rng) | {"note": "n"}).items() if name in names} for _ in range(4)
        ]
        if rng.random() < 0.6:
            changed = rng.choice(items)
            name = rng.choice(names or ["id"])
            if rng.random() < 0.7:
                changed[name] = rng.choice(ODD)
            elif rng.random() < 0.5:
                changed.pop(name, None)
            else:
                changed[rng.choice(["title", "doc_id", "chunk_id"])] = "more"
        expected = rows_of(items, True, False)
        found = read_flat(items)
        if found is not None:
            n_short += 1
            assert expected is not None
            plain = [list(column) if isinstance(column, (list, tuple)) else column for column in found[0]]
            assert [list(column) if isinstance(column, (list, tuple)) else column for column in expected[0]] == plain
            assert expected[1] == found[1]
    assert n_short > 1000


@pytest.mark.parametrize(
    ("starts", "ends", "is_whole"),
    [
        ([0, 5], [0, 9], True),
        ([2**31 - 1], [2**31 - 1], True),
        ([0, 6, 0], [9, 5, 9], False),
        ([0], [2**31], False),
        ([2**31], [2**31], False),
        ([-1], [4], False),
        ([None], [4], False),
        ([1.0], [4], False),
        ([5, 0], [4, 9], False),
    ],
)
def test_ranges_are_whole_when_every_row_has_one_that_fits_the_column(
    starts: list[Any], ends: list[Any], is_whole: bool
) -> None:
    found = whole_ranges(starts, ends)
    assert (found is not None) == is_whole
    if found is not None:
        assert (list(found[0]), list(found[1])) == (starts, ends)
