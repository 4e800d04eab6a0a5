"""Every change that what-if promises exactly is made to a real service, which is run again: it keeps the very spans foretold."""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("bm25s", reason="the real-data pipelines need the extra `demo` (faiss, bm25s, scikit-learn)")
pytest.importorskip("faiss", reason="the real-data pipelines need the extra `demo` (faiss, bm25s, scikit-learn)")

from .corpora import load_corpus
from .planted import full_run
from .replayed import Row, made_for_real
from .tuned import DESIGNS

# Questions per set; at least 30 of them must be recorded in full for a promise.
SETS = {"hotpotqa_100": 40, "squad2_dev_half": 60, "policyqa_dev": 60, "expmrc_zh": 60}
EVERY = 1 if full_run() else 5
"""Of the exact changes, each so-manieth is made."""
CASES = [(s, d) for s in SETS for d in DESIGNS] if full_run() else [("cmrc2018_dev", "reranked")]


def _table(rows: list[Row]) -> str:
    head = "| set | design | setting | changes | exact | of these, moving a span | wrong |\n|---|---|---|---:|---:|---:|---:|\n"
    return head + "".join(f"| {' | '.join(str(cell) for cell in row)} |\n" for row in rows)


@pytest.mark.timeout(600)
@pytest.mark.parametrize(("name", "design"), CASES)
def test_every_change_promised_exact_keeps_the_very_spans_foretold(name: str, design: str, tmp_path: Path) -> None:
    corpus = load_corpus(name, SETS.get(name, 36))
    rows = made_for_real(corpus, design, tmp_path, EVERY)
    print(_table(rows))
    assert sum(row.n_wrong for row in rows) == 0
    assert sum(row.n_moving for row in rows) > 0
