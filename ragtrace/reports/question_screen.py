"""One question on a terminal: the verdict in words, and for each piece of evidence a table stage by stage. Draws only."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from ragtrace.reports import question, sentences
from ragtrace.reports.question import Explained
from ragtrace.reports.render import hanging, visible, word
from ragtrace.reports.words import SCOPES, STATES, role

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.text import Text

__all__ = ["draw"]

_NO_TEXT = "(its text is not on record: a recorded parse stage, with capture_text=documents, keeps it)"

_LAYERS = {"source": "source", "text": "parsed text", "chunks": "chunks", "index": "index"}


def draw(explained: Explained) -> Iterator[RenderableType]:
    """The parts of the screen, top to bottom."""
    from rich.text import Text

    query = explained.query
    asked = visible(query["question"]) if query["question"] else "(its text was not captured)"
    yield Text(asked, style="bold")
    facts = [f"query {query['query_id']}"]
    if query["question_id"] is not None:
        facts.append(visible(query["question_id"]))
    facts.append(f"run {visible(query['run'])}" if query["run"] else "no run")
    facts.append(f"{query['started_at']:%Y-%m-%d %H:%M:%S} UTC")
    if query["status"] != "ok":
        facts.append(query["status"])
    yield Text(" · ".join(facts), style="dim")
    verdict = explained.question_verdict
    if verdict is None:
        scope = query["scope"]
        said = SCOPES.get(scope, "none of its labels can be judged on this query")
        yield Text(f"Not judged: {said}.")
    else:
        yield _verdict_line(verdict)
    yield Text()
    for evidence in explained.evidence.records():
        yield from _evidence(explained, evidence)


def _verdict_line(verdict: dict[str, Any]) -> Text:
    from rich.text import Text

    style = {"kept": "bold green", "lost": "bold red"}.get(verdict["verdict"], "bold yellow")
    first, recalls = sentences.headline(verdict).split("\n")
    line = Text.assemble((visible(first), style), f"\n{recalls}")
    line.append(f"\nThe final context is {sentences.FINAL_HOW[verdict['final_how']]}.", style="dim")
    if not verdict["is_whole"]:
        line.append(" Rows of this query are missing.", style="red")
    return line


def _evidence(explained: Explained, evidence: dict[str, Any]) -> Iterator[RenderableType]:
    from rich.text import Text

    name = evidence["evidence_id"]
    where = visible(evidence["doc_id"] or evidence["chunk_id"] or "")
    texts = explained.surroundings.only(evidence_id=name).records()
    at = f" [{texts[0]['start_at']}, {texts[0]['end_at']})" if texts else ""
    yield Text.assemble(
        (f"Evidence {visible(name)}", "bold"), f"  {evidence['level']} in {where}{at}{visible(role(evidence))}"
    )
    yield _passage(evidence, texts)
    if evidence["state"] in STATES:
        yield Text(f"  Kept apart: {STATES[evidence['state']]}.", style="yellow")
    places = explained.places.only(evidence_id=name).records()
    reasons = explained.reasons.only(evidence_id=name).records()
    if places:
        yield _places(places)
    told = question.told(reasons)
    places_told = {sentences.place(row) for _, row in told if row["verdict"] == "lost"}
    is_shared = len(told) > 1 and len(places_told) == 1
    if is_shared:
        yield hanging("→ ", Text(visible(f"lost {places_told.pop()}:"), style="red"))
    for said, row in told:
        style = {"kept": "green", "lost": "red"}.get(row["verdict"], "yellow")
        about = f"{row['stage']}: {sentences.reason(row)}" if is_shared and row["stage"] else said
        line = Text(visible(about), style=style)
        if proof := sentences.proof(row):
            line.append(f" ({visible(proof)})", style="dim")
        yield hanging("  " if is_shared else "→ ", line)
        for note in sentences.notes(row):
            yield hanging("  ", Text(f"Note: {note}."))
        if change := sentences.change(row):
            yield hanging("  ", Text(visible(change)))
    if evidence["label_note"]:
        yield hanging("", Text(f"Label: {visible(evidence['label_note'])}", style="dim"))
    yield Text()


def _passage(evidence: dict[str, Any], texts: list[dict[str, Any]]) -> RenderableType:
    from rich.text import Text

    if not texts:
        return hanging("", Text(f"“{_short(evidence['span_text'])}”" if evidence["span_text"] else _NO_TEXT))
    row = texts[0]
    text = Text.assemble(
        "…",
        (_flat(row["before"])[-80:], "dim"),
        (f"«{_short(row['passage'])}»", "bold"),
        (_flat(row["after"])[:80], "dim"),
        "…",
    )
    return hanging("", text)


def _places(places: list[dict[str, Any]]) -> RenderableType:
    from rich import box
    from rich.table import Table
    from rich.text import Text

    grid = Table(box=box.SIMPLE_HEAD, pad_edge=False, collapse_padding=True, header_style="dim")
    for name, justify in (
        ("", "left"),
        ("stage", "left"),
        ("kind", "left"),
        ("list", "right"),
        ("rank", "right"),
        ("score", "right"),
        ("coverage", "right"),
        ("", "left"),
    ):
        grid.add_column(name, justify=justify, no_wrap=name != "stage")  # type: ignore[arg-type]  # rich's own names
    for row in places:
        ends = row["lost_here"] is not None
        is_faint = row["is_on_path"] is False or (not row["coverage"] and not row["coverage_in"])
        style = "bold red" if ends else "dim" if is_faint else ""
        remark = {"in": "← ends here", "after": "← lost after this"}.get(row["lost_here"] or "", "")
        if row["status"] not in (None, "ok"):
            remark = f"{row['status']} {remark}".strip()
        if row["is_complete"] is False:
            remark = f"list incomplete {remark}".strip()
        cells = (
            "▶" if ends else "",
            _stage(row),
            "" if row["stage"] is None else row["kind"],
            _sizes(row),
            _ranks(row),
            "" if row["score"] is None else f"{row['score']:.4g}",
            _coverage(row),
            remark,
        )
        grid.add_row(*(Text(visible(cell)) for cell in cells), style=style)
    return grid


def _stage(row: dict[str, Any]) -> str:
    return _LAYERS.get(row["kind"], row["kind"]) if row["stage"] is None else str(row["stage"])


def _sizes(row: dict[str, Any]) -> str:
    """`100→8`: taken and let through; one number where only one is recorded."""
    if row["n_in"] is None:
        return "" if row["n_out"] is None else str(row["n_out"])
    return f"{row['n_in']}→" if row["n_out"] is None else f"{row['n_in']}→{row['n_out']}"


def _ranks(row: dict[str, Any]) -> str:
    """`5→9`; a rank it was given without being let through stands in brackets."""
    out = (
        "–"
        if row["rank_out"] is None
        else str(row["rank_out"])
        if row["is_kept"] is not False
        else f"({row['rank_out']})"
    )
    if row["stage"] is None:
        return "" if row["rank_out"] is None else out
    if row["n_out"] is None and row["rank_out"] is None:
        return "–" if row["rank_in"] is None else f"{row['rank_in']}→"
    return out if row["rank_in"] is None else f"{row['rank_in']}→{out}"


def _coverage(row: dict[str, Any]) -> str:
    """Of what came out; with what may be there where that is more."""
    if row["coverage"] is None:  # it puts out no list: what it took is all there is to say
        return "" if row["coverage_in"] is None else word(row["coverage_in"])
    said = word(row["coverage"])
    if row["coverage_possible"] is not None and row["coverage_possible"] - row["coverage"] > 0.0005:
        said = f"{said}..{word(row['coverage_possible'])}"
    return said


def _flat(text: str | None) -> str:
    return " ".join(visible(text or "").split())


def _short(text: str | None) -> str:
    flat = _flat(text)
    return flat if len(flat) <= 300 else f"{flat[:200]} … {flat[-80:]}"
