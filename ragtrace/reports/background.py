"""What stands behind the losses of one query: the nearest parsed passage, chunk borders, the rewrite, distractors.

Data and drawing of the blocks that `why` shows below the evidence; each is empty where there is nothing to tell.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from ragtrace import alignment
from ragtrace.reports import difference
from ragtrace.reports.render import visible
from ragtrace.reports.run import Result, run

if TYPE_CHECKING:
    import duckdb
    from rich.console import RenderableType
    from rich.text import Text

    from ragtrace.reports.question import Explained

__all__ = ["Background", "draw", "look"]

_LEAST_ALIKE = 0.3
"""Similarity below which the nearest passage is not shown: half of unlike texts reach it by common words."""

_SHORTEST_WORD = 4
"""Dropped words of fewer letters are named only when they are a number, a date or a name."""

_STYLES = {difference.SAME: "", difference.LOST: "bold red strike", difference.FOREIGN: "bold green"}


class Background(NamedTuple):
    """What is known beyond the places; by the names under which it stands in JSON."""

    parse: list[dict[str, Any]]
    """Rows of `why_parse`, with `parts`, the difference letter by letter, and `is_nearest_guess`."""
    cuts: Result
    """Rows of `chunk_cuts` of evidence that was cut."""
    terms: Result
    """Rows of `rewrite_terms`."""
    distractors: Result
    """Rows of `distractor_ranks`."""

    def as_json(self) -> dict[str, Any]:
        """The same by stable names."""
        return self._asdict()


def look(connection: duckdb.DuckDBPyConnection, explained: Explained) -> Background:
    """Everything the store says behind one explained query; empty parts where it says nothing."""
    query_id = explained.query["query_id"]
    cut = {
        row["evidence_id"]
        for row in explained.reasons.records()
        if row["lost_kind"] == "chunk" or "split" in (row["notes"] or "").split(", ")
    }
    cuts = [run(connection, "chunk_cuts", evidence_id=evidence_id) for evidence_id in sorted(cut)]
    none = Result((), (), [])
    return Background(
        parse=[_compared(connection, row) for row in run(connection, "why_parse", query_id=query_id).records()],
        cuts=cuts[0]._replace(rows=[row for result in cuts for row in result.rows]) if cuts else none,
        terms=run(connection, "rewrite_terms", query_id=query_id),
        distractors=run(connection, "distractor_ranks", query_id=query_id),
    )


def _compared(connection: duckdb.DuckDBPyConnection, row: dict[str, Any]) -> dict[str, Any]:
    """The row with the passage most like the evidence, also where it is too unlike to count as the evidence."""
    is_guess = row["passage"] is None
    if is_guess and row["span_text"]:
        texts = run(connection, "parsed_text", text_hash=row["text_hash"]).records()
        if texts:
            start, end, similarity = alignment.nearest(texts[0]["text"], row["span_text"])
            if similarity >= _LEAST_ALIKE:
                row = {**row, "start_at": start, "end_at": end, "passage": texts[0]["text"][start:end]}
    parts = difference.parts(row["span_text"], row["passage"]) if row["span_text"] and row["passage"] else []
    return {**row, "is_nearest_guess": is_guess, "parts": [part._asdict() for part in parts]}


def draw(background: Background) -> Iterator[RenderableType]:
    """The blocks, top to bottom; nothing where there is nothing to tell."""
    for row in background.parse:
        yield from _parse(row)
    for row in background.cuts.records():
        yield _cut(row)
    yield from _terms(background.terms.records())
    yield from _distractors(background.distractors.records())


def _parse(row: dict[str, Any]) -> Iterator[Text]:
    from rich.text import Text

    parser = visible(row["parser"] or "the parser")
    share = "" if row["similarity"] is None else f" ({alignment.letters(row['similarity'])})"
    if not row["passage"]:
        yield Text(f"Parsed text: {parser} put out nothing like {visible(row['evidence_id'])}{share}.")
        return
    nearest = "the nearest passage, likely another one" if row["is_nearest_guess"] else "it stands there as"
    line = Text(
        f"Parsed text: {parser}, {visible(row['evidence_id'])} at [{row['start_at']}, {row['end_at']}), "
        f"{nearest}{share}; lost letters struck through, foreign ones in green:\n  "
    )
    for part in row["parts"]:
        open_sign, close_sign = {difference.LOST: ("[-", "-]"), difference.FOREIGN: ("{+", "+}")}.get(
            part["kind"], ("", "")
        )
        line.append(f"{open_sign}{visible(part['text'])}{close_sign}", style=_STYLES[part["kind"]])
    yield line


def _cut(row: dict[str, Any]) -> Text:
    from rich.text import Text

    after = visible(row["chunk_after"]) if row["chunk_after"] else "no chunk"
    line = Text(
        f"Cut: {visible(row['evidence_id'])} after {row['share_before']:.0%}, at {row['cut_at']}: "
        f"{visible(row['chunk_before'])} ends there, {after} goes on"
    )
    if row["next_at"] is not None and row["next_at"] != row["cut_at"]:
        line.append(f" from {row['next_at']}")
    if row["text_before"] is not None:
        between = visible(row["text_between"] or "")
        line.append("\n  …")
        line.append(_flat(row["text_before"]), style="dim")
        line.append(f"│{_flat(between)}│" if between.strip() else "│", style="bold red")
        line.append(_flat(row["text_after"]), style="dim")
        line.append("…")
    return line


def _terms(terms: Sequence[dict[str, Any]]) -> Iterator[Text]:
    """One line: what was searched for, what of the question is not in it, and what the rewrite added."""
    from rich.text import Text

    dropped = [_term(row) for row in terms if row["change"] == "dropped" and _is_telling(row)]
    added = [_term(row) for row in terms if row["change"] == "added" and _is_telling(row)]
    if not dropped and not added:
        return
    line = Text("Rewrite: searched for ")
    line.append("; ".join(f"“{_flat(text)}”" for text in terms[0]["searched"]), style="dim")
    if dropped:
        line.append("\n  not searched for: ")
        line.append(", ".join(dropped), style="bold")
    if added:
        line.append("\n  added: ")
        line.append(", ".join(added), style="bold")
    yield line


def _is_telling(row: dict[str, Any]) -> bool:
    if row["class"] != "word":
        return True
    # Another ending of the same word is no other word to a person: elements, element.
    stem = row["term"][: max(_SHORTEST_WORD, len(row["term"]) - 3)]
    other = "\n".join(row["searched"]) if row["change"] == "dropped" else row["question"]
    if len(stem) >= _SHORTEST_WORD and stem in other.lower():
        return False
    return bool(row["is_in_evidence"]) and (len(row["term"]) >= _SHORTEST_WORD or not row["term"].isascii())


def _term(row: dict[str, Any]) -> str:
    named = visible(row["term"]) if row["class"] == "word" else f"{row['class']} {visible(row['term'])}"
    return f"{named} (in the evidence)" if row["is_in_evidence"] and row["class"] != "word" else named


def _distractors(rows: Sequence[dict[str, Any]]) -> Iterator[Text]:
    """One line of the last place where a distractor stands."""
    from rich.text import Text

    standing = [row for row in rows if row["distractor_rank"] is not None]
    if not standing:
        return
    row = standing[-1]
    where = visible(row["stage"] or row["kind"])
    gold = f"the first gold at {row['gold_rank']}" if row["gold_rank"] is not None else "no gold is there"
    yield Text(f"Distractor: rank {row['distractor_rank']} in {where}, {gold}.")


def _flat(text: str | None) -> str:
    return " ".join(visible(text or "").split())
