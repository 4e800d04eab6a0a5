"""The pictures of named results: each a chart, the sentence with its denominators, and its table."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ragtrace.reports import sentences
from ragtrace.reports.drawing import (
    BLUE,
    GREEN,
    GREY,
    PALE,
    RED,
    Picture,
    View,
    bar,
    counts_axis,
    label,
    looks,
    rows_layout,
)
from ragtrace.reports.render import visible
from ragtrace.reports.run import Result
from ragtrace.reports.words import counted, line_name

__all__ = ["DRAWN", "flow", "kinds", "losses", "moves", "spread", "waterfall"]

_LONGEST_NODE = 16


def waterfall(lines: Result, recall: Mapping[str, Any] | None) -> Picture:
    """Recall from source to final context: the height kept, what a line lost, what it gained."""
    rows = lines.records()
    known = [(y, row) for y, row in enumerate(rows) if row["recall"] is not None]
    main = [(y, row) for y, row in known if not row["is_branch"]]
    branches = [(y, row) for y, row in known if row["is_branch"]]
    bars = [
        bar("recall", BLUE, [(y, row["recall"] - max(row["change"] or 0, 0), _hover(row)) for y, row in main]),
        bar("one of several ways", PALE, [(y, row["recall"], _hover(row)) for y, row in branches]),
        bar("gained here", GREEN, [(y, row["change"], _hover(row)) for y, row in main if (row["change"] or 0) > 0]),
        bar("lost here", RED, [(y, -row["change"], _hover(row)) for y, row in main if (row["change"] or 0) < 0], "/"),
    ]
    names = [
        f"{label(line_name(row))}  {'not recorded' if row['recall'] is None else format(row['recall'], '.3f')}"
        for row in rows
    ]
    layout = rows_layout(names, {"title": {"text": "mean share of needs found"}, "range": [0, 1.005]})
    said = _judged(recall)
    return Picture(
        "waterfall",
        "Recall from source to final context",
        said,
        (View("", {"data": [one for one in bars if one["x"]], "layout": layout}),) if known else (),
        lines.without("run"),
        "Blue is what is still there, red what the line lost, green what it brought back. Pale bars are ways side by side.",
    )


def flow(ends: Result) -> Picture:
    """How far the evidence spans came: a band through the stages, and what leaves it where."""
    rows = ends.records()
    n_all = sum(row["n_spans"] for row in rows)
    nodes: list[tuple[str, str, str]] = []
    links: list[tuple[int, int, int, str]] = []

    def node(name: str, n: int, colour: str) -> int:
        nodes.append((f"{label(name, _LONGEST_NODE)}: {n:,}", f"{label(name, 80)}: {counted(n, 'span')}", colour))
        return len(nodes) - 1

    here = node("evidence", n_all, BLUE)
    place_no = None
    for row in rows:
        is_on_way = row["verdict"] == "passed" or (row["verdict"] == "lost" and row["lost_kind"] is not None)
        if is_on_way and row["place_no"] != place_no:
            behind = "after " if row["lost_at"] == "after" else ""
            head = node(f"{behind}{row['lost_stage'] or row['lost_kind']}", row["n_before"], BLUE)
            links.append((here, head, row["n_before"], "on"))
            here, place_no = head, row["place_no"]
        if row["verdict"] != "passed":
            name, colour = _flow_end(row)
            links.append((here, node(name, row["n_spans"], colour), row["n_spans"], row["verdict"]))
    colours = {"lost": "rgba(209,73,91,.35)", "unobserved": "rgba(138,143,152,.4)"}
    n_places = 1 + len({row["place_no"] for row in rows})
    form = {
        "data": [
            {
                "type": "sankey",
                "arrangement": "snap",
                "node": {
                    "label": [short for short, _, _ in nodes],
                    "customdata": [full for _, full, _ in nodes],
                    "color": [colour for _, _, colour in nodes],
                    "pad": 14,
                    "thickness": 14,
                    "hovertemplate": "%{customdata}<extra></extra>",
                },
                "link": {
                    "source": [source for source, _, _, _ in links],
                    "target": [target for _, target, _, _ in links],
                    "value": [n for _, _, n, _ in links],
                    "color": [colours.get(kind, "rgba(47,129,199,.3)") for *_, kind in links],
                    "hovertemplate": "%{value:,} spans<extra></extra>",
                },
            }
        ],
        "layout": {"height": max(320, 60 * n_places), "margin": {"l": 8, "r": 8, "t": 10, "b": 10}},
        "least_width": 105 * n_places,
    }
    n_unknown = sum(row["n_spans"] for row in rows if row["verdict"] == "unobserved")
    said = f"{counted(n_all, 'evidence span')} of scored queries"
    said += f", {n_unknown:,} of them unobserved." if n_unknown else "."
    return Picture(
        "flow",
        "How far the evidence came",
        said if n_all else "No evidence span is scored.",
        (View("", form),) if n_all else (),
        ends.without("run"),
        "Each span leaves the band at the one place where it was lost; the number is how many came that far.",
    )


def losses(lost: Result) -> Picture:
    """Lost spans by place, split by reason."""
    rows = lost.records()
    places = list(dict.fromkeys(sentences.place(row) for row in rows))
    reasons = list(dict.fromkeys(row["reason"] for row in rows))
    at = {place: y for y, place in enumerate(places)}
    bars = []
    first_kinds = [next(row["lost_kind"] for row in rows if row["reason"] == reason) for reason in reasons]
    for reason, (colour, pattern) in zip(reasons, looks(first_kinds), strict=True):
        name = (reason or "no reason").replace("_", " ")
        own = [row for row in rows if row["reason"] == reason]
        values = [
            (at[sentences.place(row)], row["n_spans"], f"{counted(row['n_spans'], 'span')}, {label(name)}")
            for row in own
        ]
        bars.append(bar(label(name), colour, values, pattern))
    total = sum(row["n_spans"] for row in rows)
    max_n = max((sum(row["n_spans"] for row in rows if sentences.place(row) == place) for place in places), default=0)
    return Picture(
        "losses",
        "Where evidence was lost, and why",
        f"{counted(total, 'lost evidence span')}; each counts at one place." if rows else "No evidence was lost.",
        (
            View(
                "",
                {"data": bars, "layout": rows_layout([label(p, 36) for p in places], counts_axis("lost spans", max_n))},
            ),
        )
        if rows
        else (),
        lost.without("run"),
    )


def kinds(ends: Result) -> Picture:
    """For each kind of question, the share of its spans that was kept, and where the others fell."""
    rows = ends.records()
    names = list(dict.fromkeys(row["kind"] for row in rows))
    totals = {name: sum(row["n_spans"] for row in rows if row["kind"] == name) for name in names}
    parts = {"kept": 0, "unobserved": 1}
    for row in sorted(rows, key=lambda row: -row["n_spans"]):
        parts.setdefault(_end(row), len(parts))
    present = [part for part in parts if any(_end(row) == part for row in rows)]
    kind_of = {_end(row): row["lost_kind"] for row in rows if row["verdict"] == "lost"}
    look_of = dict(zip(kind_of, looks(list(kind_of.values())), strict=True))
    bars = []
    for part in present:
        colour, pattern = look_of.get(part) or (BLUE if part == "kept" else GREY, "")
        values = [
            (
                names.index(row["kind"]),
                row["share"],
                f"{row['n_spans']:,} of {totals[row['kind']]:,} spans: {label(part, 60)}",
            )
            for row in rows
            if _end(row) == part
        ]
        bars.append(bar(label(part, 36), colour, values, pattern))
    labels = [f"{label('no kind' if name is None else name)} ({totals[name]:,})" for name in names]
    axis = {"title": {"text": "share of the spans of that kind"}, "range": [0, 1.005], "tickformat": ".0%"}
    return Picture(
        "kinds",
        "Losses by kind of question",
        f"{counted(sum(totals.values()), 'evidence span')} of scored queries; in brackets, the spans of each kind."
        if rows
        else "No evidence span is scored.",
        (View("", {"data": bars, "layout": rows_layout(labels, axis)}),) if rows else (),
        ends.without("run"),
    )


def spread(tenths: Result) -> Picture:
    """How recall is spread over queries, at the candidates and in the final context."""
    rows = tenths.records()
    bars, said = [], []
    for cut, colour in (("candidates", PALE), ("final context", BLUE)):
        own = [row for row in rows if row["cut"] == cut]
        if not own:
            continue
        bars.append(
            {
                "type": "bar",
                "name": cut,
                "x": [_band(row) for row in own],
                "y": [row["n_queries"] for row in own],
                "marker": {"color": colour},
                "hovertext": [f"{counted(row['n_queries'], 'query')} of {row['n_judged']:,}" for row in own],
                "hoverinfo": "x+text+name",
            }
        )
        below = {row["from_recall"]: row["share_below"] for row in own}
        said.append(f"{cut}: {below[1.0]:.0%} below 1, {below[0.5]:.0%} below 0.5")
    n_judged = rows[0]["n_judged"] if rows else 0
    layout = {
        "height": 320,
        "barmode": "group",
        "xaxis": {"type": "category", "title": {"text": "recall of the query"}},
        "yaxis": counts_axis("queries", max((row["n_queries"] for row in rows), default=0)),
    }
    return Picture(
        "spread",
        "Recall of single questions",
        f"{counted(n_judged, 'judged query')}; {'; '.join(said)}." if rows else "No query is judged.",
        (View("", {"data": bars, "layout": layout}),) if rows else (),
        tenths.without("run"),
    )


def moves(bands: Result) -> Picture:
    """Ranks before and after each stage: a view a stage."""
    rows = bands.records()
    stages = list(dict.fromkeys((row["stage_order"], row["kind"], row["stage"]) for row in rows))
    lows = sorted({low for row in rows for low in (row["from_before"], row["from_after"]) if low is not None})
    highs = {row[f"from_{side}"]: row[f"to_{side}"] for row in rows for side in ("before", "after")}
    names = [_ranks(low, highs[low]) for low in lows]
    views = []
    for stage_order, kind, stage in stages:
        own = [row for row in rows if (row["stage_order"], row["kind"], row["stage"]) == (stage_order, kind, stage)]
        cells = {(row["from_before"], row["from_after"]): row["n_spans"] for row in own}
        before: list[int | None] = [*lows, None]
        after: list[int | None] = [*lows, None]
        counts = [[cells.get((low, high)) for low in before] for high in after]
        form = {
            "data": [
                {
                    "type": "heatmap",
                    "x": [*names, "not in it"],
                    "y": [*names, "let go"],
                    "z": counts,
                    "text": [["" if n is None else f"{n:,}" for n in line] for line in counts],
                    "texttemplate": "%{text}",
                    "colorscale": [[0, "rgba(47,129,199,.12)"], [1, "rgba(47,129,199,.65)"]],
                    "showscale": False,
                    "xgap": 2,
                    "ygap": 2,
                    "hovertemplate": "rank before %{x}<br>rank after %{y}<br>%{z:,} spans<extra></extra>",
                }
            ],
            "layout": {
                "height": 140 + 28 * len(after),
                "xaxis": {"type": "category", "title": {"text": "best rank in what it took"}, "showgrid": False},
                "yaxis": {
                    "type": "category",
                    "title": {"text": "best rank in what it let through"},
                    "autorange": "reversed",
                    "automargin": True,
                    "showgrid": False,
                },
            },
            "least_width": 70 * len(before),
        }
        views.append(View(f"{visible(stage)} ({kind}), {counted(own[0]['n_stage'], 'span')}", form))
    return Picture(
        "moves",
        "Rank before and after each stage",
        "Evidence spans of scored queries that a stage took or put out; the best rank of a chunk that holds some of it."
        if rows
        else "No stage that takes and puts out a list met any evidence.",
        tuple(views),
        bands.without("run"),
        "Right of the diagonal a stage moved evidence up, left of it down; the last row is what it did not let through.",
    )


def _hover(row: Mapping[str, Any]) -> str:
    parts = [f"{label(line_name(row), 60)}: recall {row['recall']:.3f}"]
    if row["change"]:
        parts.append(f"{row['change']:+.3f}")
    if row["n_lost"]:
        parts.append(f"{counted(row['n_lost'], 'span')} lost")
    if row["n_gained"]:
        parts.append(f"{row['n_gained']:,} gained")
    return ", ".join(parts)


def _judged(recall: Mapping[str, Any] | None) -> str:
    if recall is None:
        return "No query has a label, so nothing can be said of recall."
    said = f"Mean over {recall['n_judged']:,} of {counted(recall['n_queries'], 'scored query')}"
    left = f"; {recall['n_unobserved']:,} unobserved are left out." if recall["n_unobserved"] else "."
    return said + left


def _flow_end(row: Mapping[str, Any]) -> tuple[str, str]:
    if row["verdict"] != "lost":
        return row["verdict"], BLUE if row["verdict"] == "kept" else GREY
    reason = (row["reason"] or "lost").replace("_", " ")
    return (reason if row["lost_kind"] is not None else f"{reason}, place not certain"), looks([row["lost_kind"]])[0][0]


def _end(row: Mapping[str, Any]) -> str:
    return sentences.place(row) if row["verdict"] == "lost" else str(row["verdict"])


def _band(row: Mapping[str, Any]) -> str:
    return "1" if row["from_recall"] == row["to_recall"] else f"{row['from_recall']:g}–{row['to_recall']:g}"


def _ranks(low: int, high: int | None) -> str:
    return f"{low}+" if high is None else str(low) if low == high else f"{low}–{high}"


DRAWN: dict[str, Callable[[Result], Picture]] = {
    "evidence_flow": flow,
    "losses": losses,
    "losses_by_kind": kinds,
    "recall_spread": spread,
    "rank_moves": moves,
}
"""The named results that are drawn as they are."""
