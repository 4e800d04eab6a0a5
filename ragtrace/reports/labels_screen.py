"""Wrong labels on a terminal: what to do once, below it the labels it is to be done with. Draws only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragtrace.reports.render import hanging, visible
from ragtrace.reports.words import counted

if TYPE_CHECKING:
    from rich.console import RenderableType

    from ragtrace.reports.run import Result

__all__ = ["draw"]

_LONGEST_QUOTE = 60


def draw(findings: Result) -> Iterator[RenderableType]:
    """The parts of the screen: a heading per problem and advice, in the order in which they first come."""
    from rich.text import Text

    groups: dict[tuple[str, bool, str], list[tuple[str, dict[str, Any]]]] = {}
    for row in findings.records():
        found, _, advice = row["what_to_do"].rpartition(": ")
        groups.setdefault((row["problem"], row["is_wrong"], advice), []).append((found, row))
    for (problem, is_wrong, advice), members in groups.items():
        style = "bold red" if is_wrong else "bold yellow"
        trust = "" if is_wrong else ", used on trust"
        said = {found for found, _ in members}
        shared = next(iter(said)) if len(said) == 1 else ""
        yield Text.assemble((problem, style), f" ({counted(len(members), 'label')}{trust})")
        yield hanging("→ ", Text(visible(f"{shared}: {advice}" if shared else advice)))
        for found, row in members:
            where = f" in {row['doc_id']}" if row["doc_id"] else ""
            quote = f" “{_short(row['quote'])}”" if row["quote"] else ""
            line = Text.assemble(
                (visible(row["evidence_id"] or row["question_id"]), "bold"), visible(f"{where}{quote}")
            )
            if found and not shared:
                line.append(f" ({visible(found)})", style="dim")
            yield hanging("  ", line)
        yield Text()


def _short(text: str) -> str:
    flat = " ".join(text.split())
    return flat if len(flat) <= _LONGEST_QUOTE else f"{flat[: _LONGEST_QUOTE - 1]}…"
