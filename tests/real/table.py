"""One row per planted fault: how many spans it took away, how many of these were named right, how many others moved.

    python -m tests.real.table

runs every set with both chunkers and writes docs/planted-faults.md.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterable
from pathlib import Path

from .corpora import Corpus, load_corpus
from .planted import CHUNKERS, EXPECTED, Outcome, run_fault
from .rag import FAULTS

__all__ = ["SETS", "table_rows"]

# Questions per set.
SETS = {
    "chroma_chunking": 24,
    "cmrc2018_dev": 30,
    "expmrc_zh": 30,
    "financebench_pdf_dev": 14,
    "hotpotqa_100": 24,
    "policyqa_dev": 24,
    "squad2_dev_half": 30,
    "xquad_6langs": 30,
}
"""Questions taken of each set."""


def touched_questions(sound: Outcome) -> set[str]:
    """Every second question, by id, all of whose spans were kept without a fault."""
    kept: dict[str, bool] = {}
    for evidence_id, place in sorted(sound.true.items()):
        question = sound.question_of[evidence_id]
        kept[question] = kept.get(question, True) and place == "kept"
    return set([q for q, whole in kept.items() if whole][::2])


def table_rows(corpus: Corpus, chunker: str, folder: Path) -> list[dict[str, object]]:
    """One row per fault: how many spans it took away, how many of these were named right, how many others moved."""
    sound = run_fault(corpus, chunker, "none", folder, set())
    assert sound.named == sound.true, "without a fault, verdicts and oracle must agree"
    touched = touched_questions(sound)
    rows: list[dict[str, object]] = []
    for fault in FAULTS[1:]:
        seen = run_fault(corpus, chunker, fault, folder, touched)
        assert seen.named == seen.true, f"{corpus.name}, {chunker}, {fault}: verdicts and oracle differ"
        taken = [e for e in seen.true if seen.question_of[e] in touched and sound.true.get(e) == "kept" != seen.true[e]]
        right = [e for e in taken if seen.named[e] == EXPECTED[fault]]
        others = [e for e in seen.true if seen.question_of[e] not in touched]
        moved = [e for e in others if seen.named[e] != sound.named.get(e)]
        rows.append(
            {
                "set": corpus.name,
                "chunker": chunker,
                "fault": fault,
                "spans": len(seen.true),
                "taken": len(taken),
                "named right": len(right),
                "others": len(others),
                "others moved": len(moved),
            }
        )
    return rows


PAGE = """# Planted faults

Does the verdict name the right stage on real documents? A hybrid RAG (parse, chunk, index, rewrite, BM25 and an ANN index, rank fusion, filter,
rerank, token budget) runs over {n_sets} public sets with gold ranges, with two chunkers each. One fault at a time is planted for every second
question whose evidence arrives without it; all other questions stay as they are. Questions on PDFs are asked with the words of their
evidence behind them, so that a plain retriever finds the page at all. An oracle without ragtrace looks up, character by
character, where each span was last seen.

- *taken*: spans that the fault took away. *named right*: those whose verdict is the planted place.
- *moved*: spans of the other questions whose verdict changed. A page, a chunk or a cut that is missing changes what else the index
  returns, so there others may move: their verdicts equal the oracle's all the same.
- In every run each of the judged spans, kept or lost, equals the oracle's place: {n_judged:,} verdicts in all, {n_taken:,} of spans that a fault took away,
  {n_right:,} of these named right.

| fault | planted at | taken | named right | others | moved |
|---|---|---:|---:|---:|---:|
{by_fault}

| set | chunker | spans | taken | named right | others moved |
|---|---|---:|---:|---:|---:|
{by_set}

Made by `python -m tests.real.table`. {left_out}
"""


def _sums(
    rows: Iterable[dict[str, object]], keys: tuple[str, ...], values: tuple[str, ...]
) -> list[tuple[object, ...]]:
    found: dict[tuple[object, ...], list[int]] = {}
    for row in rows:
        sums = found.setdefault(tuple(row[key] for key in keys), [0] * len(values))
        for n, value in enumerate(values):
            sums[n] += int(str(row[value]))
    return [(*key, *sums) for key, sums in found.items()]


def page(rows: list[dict[str, object]]) -> str:
    """The page made of the rows of every set and chunker."""

    def lines(table: list[tuple[object, ...]]) -> str:
        return "\n".join(
            "| " + " | ".join(f"{v:,}" if isinstance(v, int) else str(v) for v in row) + " |" for row in table
        )

    by_fault = [
        (fault.replace("_", " "), EXPECTED[str(fault)], *sums)
        for fault, *sums in _sums(rows, ("fault",), ("taken", "named right", "others", "others moved"))
        if isinstance(fault, str)
    ]
    total = _sums(rows, (), ("spans", "taken", "named right"))[0]
    return PAGE.format(
        n_sets=len({row["set"] for row in rows}),
        n_judged=total[0],
        n_taken=total[1],
        n_right=total[2],
        by_fault=lines(by_fault),
        by_set=lines(_sums(rows, ("set", "chunker"), ("spans", "taken", "named right", "others moved"))),
        left_out="Labels whose quote is not at its offsets in the text as parsed here are left out, and where a page is not parsed also quotes that stand twice.",
    )


def main() -> None:
    """Run everything, a line a set and chunker on the way."""
    rows: list[dict[str, object]] = []
    for name, n_questions in SETS.items():
        for chunker in CHUNKERS:
            began = time.monotonic()
            with tempfile.TemporaryDirectory() as folder:
                rows += table_rows(load_corpus(name, n_questions), chunker, Path(folder))
            print(
                f"{name}, {chunker}: {time.monotonic() - began:.0f} s",
                *rows[-10:],
                sep="\n  ",
                file=sys.stderr,
                flush=True,
            )
    (Path(__file__).parents[2] / "docs" / "planted-faults.md").write_text(page(rows), encoding="utf-8")


if __name__ == "__main__":
    main()
