"""What-if curves as a picture: recall and tokens as a function of every setting that was replayed. Draws only."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from ragtrace.reports import changes
from ragtrace.reports.drawing import BLUE, GREEN, GREY, PALE, RED, Form, Picture, View, label
from ragtrace.reports.render import visible
from ragtrace.reports.words import counted
from ragtrace.whatif import Examined

__all__ = ["curves", "no_curves"]

_TITLE = "What other settings would have kept"

_SYMBOLS = {"exact": "circle", "unchecked": "circle-open", "passes": "diamond-open", "re-run": "x-thin-open"}

_WIDE = 50
"""A range of values with a larger ratio than this is drawn on a logarithmic axis."""

_RIGHT: Form = {
    "overlaying": "y",
    "side": "right",
    "rangemode": "tozero",
    "showgrid": False,
    "tickmode": "auto",
    "nticks": 6,
}

_NAMES = {"k": "how many go on", "budget_tokens": "budget in tokens", "weight": "weight"}


def curves(examined: Examined) -> Picture:
    """A view a setting, those that could gain most first."""
    table = changes.blocks(examined)["changes"]
    settings: dict[tuple[Any, ...], list[dict[str, Any]]] = {}
    for row in table.records():
        settings.setdefault((row["kind"], row["stage"], row["parameter"], row["of_list"]), []).append(row)
    ranked = sorted(settings.values(), key=lambda rows: -max(row["spans_gained"] - row["spans_lost"] for row in rows))
    said = f"{counted(examined.n_replayed, 'judged query')} of {examined.n_queries:,} replayed from the recorded lists."
    if examined.left_out:
        said += f" Left out: {'; '.join(f'{n:,} ({why})' for why, n in examined.left_out)}."
    note = (
        "Filled points are promised exactly; open ones are not: diamonds get through one stage only, circles could not"
        " be checked. The dotted upright is the recorded value. Nothing was run again."
    )
    return Picture("changes", _TITLE, said, tuple(_view(rows) for rows in ranked), table.without("run"), note)


def no_curves(why: str) -> Picture:
    """The sentence where nothing can be replayed."""
    empty = changes.no_changes()
    return Picture("changes", _TITLE, f"{why[:1].upper()}{why[1:]}.", (), empty.without("run"))


def _view(rows: Sequence[dict[str, Any]]) -> View:
    first = rows[0]
    of_list = f" of {visible(first['of_list'])}" if first["of_list"] else ""
    name = f"{visible(first['stage'])} ({first['kind']}): {first['parameter'].replace('_', ' ')}{of_list}"
    values = [row["value"] for row in rows]
    x_axis: Form = {
        "title": {"text": f"{_NAMES.get(first['parameter'], first['parameter'])} in {label(first['stage'])}"}
    }
    if min(values) > 0 and max(values) / min(values) > _WIDE:
        x_axis["type"] = "log"
    layout: Form = {
        "height": 340,
        "xaxis": x_axis,
        "yaxis": {"title": {"text": "recall"}, "range": [0, 1.02]},
        "hovermode": "closest",
    }
    data = [
        _line("final-context recall", "final_context_recall", rows, {"color": BLUE}),
        _line("candidate recall", "candidate_recall", rows, {"color": PALE, "dash": "dash"}),
    ]
    if sum(row["final_context_recall"] is not None for row in rows) <= 1:
        # Replayed through one stage only: what would reach the next one is all there is to say.
        data = [
            *data[1:],
            {**_line("spans gained", "spans_gained", rows, {"color": GREEN}), "yaxis": "y2"},
            {**_line("spans lost", "spans_lost", rows, {"color": RED}), "yaxis": "y2"},
        ]
        layout["yaxis2"] = {**_RIGHT, "title": {"text": "evidence spans"}}
    elif any(row["tokens"] is not None for row in rows):
        data.append({**_line("tokens a query", "tokens", rows, {"color": GREY, "dash": "dot"}), "yaxis": "y2"})
        layout["yaxis2"] = {**_RIGHT, "title": {"text": "tokens a query"}}
    if first["recorded"] is not None:
        layout["shapes"] = [
            {
                "type": "line",
                "x0": first["recorded"],
                "x1": first["recorded"],
                "yref": "paper",
                "y0": 0,
                "y1": 1,
                "line": {"color": GREY, "dash": "dot", "width": 1.5},
            }
        ]
    return View(name, {"data": [line for line in data if any(y is not None for y in line["y"])], "layout": layout})


def _line(name: str, column: str, rows: Sequence[dict[str, Any]], line: Form) -> Form:
    return {
        "type": "scatter",
        "mode": "lines+markers",
        "name": name,
        "x": [row["value"] for row in rows],
        "y": [row[column] for row in rows],
        "line": line,
        "marker": {"symbol": [_SYMBOLS.get(row["promise"], "circle-open") for row in rows], "size": 8},
        "hovertext": [_hover(row) for row in rows],
        "hoverinfo": "text",
    }


def _hover(row: dict[str, Any]) -> str:
    parts = [f"{row['parameter'].replace('_', ' ')} {changes.number(row['value'])}"]
    if row["final_context_recall"] is not None:
        parts.append(f"final-context recall {row['final_context_recall']:.3f}")
    if row["candidate_recall"] is not None:
        parts.append(f"candidate recall {row['candidate_recall']:.3f}")
    parts.append(f"{counted(row['spans_gained'], 'span')} gained, {row['spans_lost']:,} lost")
    if row["tokens"] is not None:
        parts.append(f"{row['tokens']:,.0f} tokens a query")
    reach = f" as far as {label(row['passes_to'])}" if row["passes_to"] else ""
    parts.append(f"{row['promise']}{reach}, {counted(row['n_queries'], 'query')}")
    return "<br>".join(parts)
