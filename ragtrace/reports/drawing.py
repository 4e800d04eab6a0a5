"""What a chart is made of: its form in Plotly's plain data, colours, labels, bars in numbered rows, axes.

Knows no result. Needs no Plotly: the page hands the forms to its JavaScript, a notebook to its Python.
"""

from __future__ import annotations

import html
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

from ragtrace.reports.render import visible
from ragtrace.reports.run import Result

__all__ = [
    "BLUE",
    "GREEN",
    "GREY",
    "PALE",
    "RED",
    "Form",
    "Picture",
    "View",
    "bar",
    "counts_axis",
    "label",
    "looks",
    "rows_layout",
]

Form = dict[str, Any]

# Read on white and on near-black, and told apart by the colour-blind: Okabe and Ito's, a little darker.
BLUE, PALE, RED, GREEN, GREY = "#2f81c7", "#9cc3e6", "#d1495b", "#1b9e77", "#8a8f98"
_OF_KIND = {
    "ingest": "#8c6d62", "parse": "#5a9e3e", "chunk": "#cc79a7", "index": "#00a3a3",
    "retrieve": "#e69f00", "fuse": "#7b6fd0", "filter": "#b07d2b", "rerank": "#d55e00", "expand": "#56b4e9",
    "compress": "#b5568a", "truncate": "#3f6f5f",
}  # fmt: skip
"""Of what was lost at a stage of that kind; RED where the place is not certain."""
_PATTERNS = ("", "/", "x", ".", "\\", "-", "+", "|")
"""Plotly's."""

_LONGEST_LABEL = 30
_ROW = 34
"""Pixels of a bar with its gap."""


class View(NamedTuple):
    """One of the ways to look at a picture; most have one."""

    name: str
    form: Form
    """`data` and `layout`, as Plotly takes them; `least_width` in pixels, below which it is not legible."""


class Picture(NamedTuple):
    """One chart of the page or of a notebook."""

    name: str
    title: str
    said: str
    """What it is counted over, and what was left out; a sentence or two."""
    views: tuple[View, ...]
    """Empty when there is nothing to draw; `said` tells why."""
    table: Result
    note: str = ""
    """How to read it, where the title does not say it."""


def label(text: object, longest: int = _LONGEST_LABEL) -> str:
    """A recorded name as a label: shortened, and no markup to Plotly, which reads some HTML."""
    shown = visible("none" if text is None else str(text))
    if len(shown) > longest:
        shown = f"{shown[: longest - 1]}…"
    return html.escape(shown, quote=False)


def bar(name: str, colour: str, values: Iterable[tuple[int, float, str]], pattern: str = "") -> Form:
    """Bars that lie on their side, at the rows given by number, with their hover texts."""
    values = list(values)
    return {
        "type": "bar",
        "orientation": "h",
        "name": name,
        "y": [y for y, _, _ in values],
        "x": [x for _, x, _ in values],
        "hovertext": [text for _, _, text in values],
        "hoverinfo": "text",
        "marker": {"color": colour, **({"pattern": {"shape": pattern, "fillmode": "replace"}} if pattern else {})},
    }


def rows_layout(names: Sequence[str], x_axis: Form) -> Form:
    """Numbered rows with names beside them: two stages of one name stay two rows."""
    return {
        "height": 130 + _ROW * len(names),
        "barmode": "stack",
        "bargap": 0.3,
        "xaxis": x_axis,
        "yaxis": {
            "tickvals": list(range(len(names))),
            "ticktext": list(names),
            "range": [len(names) - 0.5, -0.5],
            "automargin": True,
            "showgrid": False,
            "zeroline": False,
        },
    }


def counts_axis(title: str, largest: int) -> Form:
    """An axis of whole numbers; Plotly would mark halves of a small one."""
    return {
        "title": {"text": title},
        "rangemode": "tozero",
        "tickformat": ",d",
        **({"dtick": 1} if largest < 8 else {}),
    }


def looks(kinds: Sequence[str | None]) -> list[tuple[str, str]]:
    """Colour and pattern for losses at stages of these kinds: in every chart a kind has one colour.

    Of several losses at one kind the first is plain and the others are told apart by pattern.
    """
    n_of: Counter[str | None] = Counter()
    found = []
    for kind in kinds:
        found.append((_OF_KIND.get(kind or "", RED), _PATTERNS[n_of[kind] % len(_PATTERNS)]))
        n_of[kind] += 1
    return found
