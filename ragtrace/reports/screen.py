"""The report as one screen of a terminal: bars, small tables, what was left out, what to type next. Draws only."""

from __future__ import annotations

import shlex
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragtrace.reports import sentences
from ragtrace.reports.render import table, visible, word
from ragtrace.reports.run import Result
from ragtrace.reports.summary import Summary
from ragtrace.reports.words import CAUSES, counted, gap, line_name

if TYPE_CHECKING:
    from rich.console import RenderableType

__all__ = ["draw"]

_MOST_ADVICE = 3
_BAR_WIDTH = 32
_LEAST_BAR = 8
_NUMBERS_WIDTH = 40
"""Columns right of the bars: recall, change, what was lost and gained."""
_EIGHTHS = " ▏▎▍▌▋▊▉█"


def draw(summary: Summary, store: str, *, width: int = 100, is_ascii: bool = False) -> Iterator[RenderableType]:
    """The parts of the screen for `width` columns, top to bottom; details are those of the newest run when there are several.

    A part that is a plain string is a command: to be printed on one line, whatever the width.
    """
    from rich.text import Text

    names = summary.run_names
    if not names:
        yield Text(f"{store}: no query is recorded yet.")
        yield from _incomplete(summary.blocks["incomplete"])
        return
    shown = names[0]
    blocks = {name: _of_run(result, shown) for name, result in summary.blocks.items() if name != "by"}
    yield from _header(blocks, store)
    if len(names) > 1:
        others = f"{len(names)} runs are in the store; the lines below are those of the newest, {shown}."
        yield Text(f"{others} --run picks another.", style="italic")
        yield table(summary.blocks["recall"], "Runs", width)
    if not any(row["n_judged"] for row in blocks["recall"].records()):
        yield from _without_labels(blocks, store)
    else:
        yield from _waterfall(blocks["waterfall"], width, is_ascii)
        yield from _recall(blocks["recall"])
        yield from _losses(blocks["losses"])
    if summary.by is not None:
        split = summary.blocks["by"]
        shown_split = split.without("run") if len(names) == 1 and summary.by != "run" else split
        yield table(shown_split, f"Recall by {summary.by}", width)
    yield from _left_out(blocks["left_out"])
    yield from _incomplete(summary.blocks["incomplete"])
    if "what_to_change" in blocks:
        yield from _what_to_change(blocks["what_to_change"], store)
    yield from _next(blocks["example"], store, has_groups=summary.by is not None)


def bar(share: float | None, width: int = _BAR_WIDTH, *, is_ascii: bool = False) -> str:
    """A share of 0..1 as a bar of at most `width` columns, to an eighth of one; empty for None."""
    if share is None:
        return ""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if is_ascii:
        return "#" * round(eighths / 8)
    return "█" * (eighths // 8) + _EIGHTHS[eighths % 8].strip()


def _of_run(result: Result, run_name: str | None) -> Result:
    return result.only(run=run_name) if "run" in result.columns else result


def _header(blocks: dict[str, Result], store: str) -> Iterator[RenderableType]:
    from rich.text import Text

    run = blocks["runs"].records()[0]
    name = "without a name" if run["run"] is None else visible(run["run"])
    kind = "" if run["run_kind"] == "actual" else f" ({run['run_kind']})"
    span = f"{run['first_at']:%Y-%m-%d %H:%M} to {run['last_at']:%Y-%m-%d %H:%M} UTC"
    yield Text.assemble(
        (store, "bold"), "  run ", (name, "bold"), f"{kind}  {counted(run['n_queries'], 'query')}, {span}"
    )
    known = [
        f"{sentences.FINAL_HOW[row['final_how']]} ({counted(row['n_queries'], 'query')})"
        for row in blocks["final_context"].records()
    ]
    yield Text(f"The final context is {'; '.join(known)}.", style="dim")
    yield Text()


def _without_labels(blocks: dict[str, Result], store: str) -> Iterator[RenderableType]:
    from rich.text import Text

    row = next(iter(blocks["recall"].records()), None)
    if row is not None and row["n_unobserved"]:
        yield Text(f"No query could be judged: {row['n_unobserved']} unobserved.")
    else:
        yield Text("No query of this run has a gold label, so nothing can be said of recall.")
        yield Text(f"Load labels:    ragtrace gold load {store} gold.jsonl")
        yield Text(f'Or ask for one: ragtrace why {store} "the question" --quote "the passage that has it"')
    yield Text()


def _waterfall(waterfall: Result, width: int, is_ascii: bool) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    grid = Table.grid(padding=(0, 2, 0, 0))
    for justify in ("left", "left", "right", "right", "left"):
        grid.add_column(justify=justify, no_wrap=True)
    rows = waterfall.records()
    widest = max((len(_indented(row)) for row in rows), default=0)
    bar_width = max(_LEAST_BAR, min(_BAR_WIDTH, width - widest - _NUMBERS_WIDTH))
    for row in rows:
        style = "dim" if row["is_branch"] else "bold" if row["kind"] == "final context" else ""
        change = row["change"]
        grid.add_row(
            Text(_indented(row), style=style),
            Text(bar(row["recall"], bar_width, is_ascii=is_ascii), style="dim cyan" if row["is_branch"] else "cyan"),
            Text("not recorded" if row["recall"] is None else word(row["recall"]), style=style),
            Text("" if not change else f"{change:+.3f}", style="red" if change and change < 0 else "green"),
            Text(_moved(row), style=style),
        )
    yield Text("Recall from source to final context", style="bold")
    yield grid
    yield Text()


def _indented(row: dict[str, Any]) -> str:
    name = visible(line_name(row))
    return f"  · {name}" if row["is_branch"] else name


def _moved(row: dict[str, Any]) -> str:
    """What was lost and gained at a line."""
    parts = [f"{counted(row['n_lost'], 'span')} lost"] if row["n_lost"] else []
    parts += [f"{row['n_gained']} gained"] if row["n_gained"] else []
    return ", ".join(parts)


def _recall(recall: Result) -> Iterator[RenderableType]:
    from rich.table import Table
    from rich.text import Text

    row = recall.records()[0]
    judged = f"{row['n_judged']} of {counted(row['n_queries'], 'query')} judged, {row['n_unobserved']} unobserved"
    grid = Table.grid(padding=(0, 3, 0, 0))
    for justify in ("left", "right", "right", "left"):
        grid.add_column(justify=justify, no_wrap=True)
    grid.add_row("", *(Text(word_, style="dim") for word_ in ("recall", "complete", "bounds")))
    for name, side in (("candidate recall", "candidate"), ("final-context recall", "final")):
        of = "candidate_recall" if side == "candidate" else "final_context_recall"
        bounds = f"{word(row[f'{of}_low'])} to {word(row[f'{of}_high'])}"
        grid.add_row(Text(name, style="bold"), word(row[of]), word(row[f"{side}_complete"]), Text(bounds))
        if side == "candidate":
            grid.add_row("  gained after it", f"+{word(row['gained'])}")
            grid.add_row("  lost after it", f"-{word(row['lost'])}")
    yield Text.assemble(("Candidates against final context", "bold"), f"  {judged}")
    yield grid
    yield Text()


def _losses(losses: Result) -> Iterator[RenderableType]:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    if not losses.rows:
        yield Text("No evidence was lost.", style="bold")
        yield Text()
        return
    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, header_style="dim", padding=(0, 1))
    for name in ("where", "why"):
        grid.add_column(name, overflow="fold")
    for name in ("spans", "queries", "share"):
        grid.add_column(name, justify="right", no_wrap=True)
    for row in losses.records():
        cells = (sentences.place(row), row["reason"] or "", f"{row['n_spans']:,}", f"{row['n_queries']:,}")
        grid.add_row(*(Text(visible(cell)) for cell in cells), f"{row['share']:.0%}")
    yield Text("Where evidence was lost, and why", style="bold")
    yield grid


def _left_out(left_out: Result) -> Iterator[RenderableType]:
    from rich.text import Text

    rows = left_out.records()
    if not rows:
        return
    said = [
        f"{counted(row['n_queries'], 'query') if row['n_spans'] is None else counted(row['n_spans'], 'span')} "
        f"{CAUSES.get(row['cause'], row['cause'])}"
        for row in rows
    ]
    yield Text.assemble(("Left out of these numbers: ", "bold"), "; ".join(said), ".")


def _incomplete(incomplete: Result) -> Iterator[RenderableType]:
    from rich.text import Text

    rows = incomplete.records()
    for row in rows:
        style = "bold red" if row["is_serious"] else "yellow"
        mark = "Incomplete: " if row["is_serious"] else "Note: "
        yield Text.assemble((mark, style), visible(gap(row)))
    if any(row["is_serious"] for row in rows):
        yield Text("Rows are missing, so a loss above may be none; `ragtrace doctor` says more.", style="red")


def _what_to_change(advice: Result, store: str) -> Iterator[RenderableType]:
    from rich.text import Text

    rows = advice.records()
    if not rows:
        return
    yield Text()
    yield Text.assemble(("What to change", "bold"), f"  replayed over {counted(rows[0]['n_queries'], 'query')}")
    for row in rows[:_MOST_ADVICE]:
        yield Text(f"  {visible(row['sentence'])}")
    yield f"  ragtrace whatif {shlex.quote(store)}"


def _next(examples: Result, store: str, *, has_groups: bool) -> Iterator[RenderableType]:
    """Commands that work on this very store as they stand."""
    from rich.text import Text

    quoted = shlex.quote(store)
    commands = []
    if example := next(iter(examples.records()), None):
        asked = example["question_id"] if example["question_id"] is not None else str(example["query_id"])
        commands.append(f"ragtrace why {quoted} {shlex.quote(asked)}")
    if not has_groups:
        commands.append(f"ragtrace report {quoted} --by kind")
    commands.append(f'ragtrace sql {quoted} "select question_id, lost_stage, reason from stage_loss"')
    yield Text()
    yield Text("Next", style="bold")
    for command in commands:
        yield f"  {visible(command)}"
