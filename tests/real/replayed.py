"""Record a run, ask what-if, apply every promised change to the real service, run it again, compare the kept spans."""

from __future__ import annotations

import json
import unicodedata
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import ragtrace as rt
from ragtrace.gold.loading import load
from ragtrace.store.database import connect
from ragtrace.store.merge import merge
from ragtrace.whatif import Examined, examine
from ragtrace.whatif.examining import EXACT, Point
from ragtrace.whatif.replay import Change

from .corpora import Corpus
from .planted import CHUNKERS
from .tuned import DESIGNS, Design, Tuned

__all__ = ["Row", "applied", "made_for_real", "record"]

Kept = frozenset[tuple[str, str]]
"""(question_id, evidence_id) of the spans in the final context."""


class Row(NamedTuple):
    """What came of the changes to one setting."""

    corpus: str
    design: str
    setting: str
    n_changes: int
    n_exact: int
    n_moving: int
    """Exact changes that gain or lose a span."""
    n_wrong: int
    """Exact changes after which the real service kept other spans than predicted."""


class Recorded(NamedTuple):
    """A recorded run, what-if's word on it, and the service to run again."""

    service: Tuned
    examined: Examined
    kept: Kept
    spans: dict[str, list[tuple[str, str, set[int]]]]
    """By question: evidence, its document and the places of its counting characters."""
    question_of: dict[int, str]


def record(corpus: Corpus, design: Design, folder: Path) -> Recorded:
    """Ingest, ask every question, merge, label, examine."""
    store = folder / f"{corpus.name}.duckdb"
    service = Tuned(corpus.documents, CHUNKERS["size"], "none")
    rt.configure(store, run="now", merge="off")
    service.ingest()
    for question in corpus.questions:
        service.answer(question["question_id"], question["question"], design)
    assert rt.flush(10)
    rt.shutdown(10)
    gold = store.with_suffix(".jsonl")
    gold.write_text("\n".join(_gold_lines(corpus)) + "\n", encoding="utf-8")
    merge(store)
    with connect(store) as connection:
        load(connection, gold)
        examined = examine(connection, "now")
        rows = connection.execute(
            "select s.question_id, s.evidence_id, s.verdict, s.query_id, e.doc_id, e.start_at, e.end_at"
            " from stage_loss as s join evidence as e using (evidence_id)"
        ).fetchall()
    spans: dict[str, list[tuple[str, str, set[int]]]] = {}
    for question_id, evidence_id, verdict, _, doc_id, start, end in rows:
        if verdict in ("kept", "lost"):
            text = service.texts[doc_id]
            counting = {i for i in range(start, end) if unicodedata.category(text[i])[0] in "LNMS"}
            spans.setdefault(question_id, []).append((evidence_id, doc_id, counting or set(range(start, end))))
    kept = frozenset((q, e) for q, e, v, *_ in rows if v == "kept")
    service.is_recorded = False
    return Recorded(service, examined, kept, spans, {row[3]: row[0] for row in rows})


def _gold_lines(corpus: Corpus) -> Iterator[str]:
    for question in corpus.questions:
        gold = [{k: span[k] for k in ("doc_id", "start", "end", "quote")} for span in question["gold"]]
        yield json.dumps(
            {"question_id": question["question_id"], "question": question["question"], "gold": gold}, ensure_ascii=False
        )


def kept_for_real(recorded: Recorded, corpus: Corpus, design: Design) -> Kept:
    """Spans all of whose letters, digits, marks and symbols are in what the service packs; found without ragtrace."""
    found = set()
    for question in corpus.questions:
        question_id = question["question_id"]
        packed = recorded.service.answer(question_id, question["question"], design)
        for evidence_id, doc_id, counting in recorded.spans.get(question_id, ()):
            left = counting
            for p in packed:
                if p.doc_id == doc_id:
                    left = {i for i in left if not p.start <= i < p.end}
            if not left:
                found.add((question_id, evidence_id))
    return frozenset(found)


def applied(design: Design, changes: Sequence[Change]) -> Design:
    """The service's settings with the changes made to them."""
    for (kind, name), parameter, value, which in changes:
        if kind == "gap":
            design = design._replace(slice_after_fusion=int(value))
        elif parameter == "weight":
            weights = list(design.weights)
            weights[which] = value
            design = design._replace(weights=(weights[0], weights[1]))
        elif parameter == "constant":
            design = design._replace(constant=value)
        elif parameter == "budget_tokens":
            design = design._replace(budget_tokens=int(value))
        elif parameter == "threshold":
            key = "rerank_threshold" if kind == "rerank" else "threshold"
            design = design._replace(**{key: value})
        else:
            key = {"dense": "k_dense", "lexical": "k_lexical", "fuse": "k_fused", "rerank": "k_reranked"}[name]
            design = design._replace(**{key: int(value)})
    return design


def predicted(recorded: Recorded, point: Point) -> Kept:
    """The spans that a change is said to keep."""
    gained = {(recorded.question_of[query_id], span) for query_id, span in point.gained}
    lost = {(recorded.question_of[query_id], span) for query_id, span in point.lost}
    return frozenset((recorded.kept - lost) | gained)


def made_for_real(corpus: Corpus, name: str, folder: Path, every: int) -> list[Row]:
    """All exact changes of one design (each `every`-th), made for real; a row per setting."""
    design = DESIGNS[name]
    recorded = record(corpus, design, folder)
    assert kept_for_real(recorded, corpus, design) == recorded.kept, (
        "as recorded, the oracle and the verdicts must agree"
    )
    rows = []
    groups = [
        (f"{c.axis.label[1]}: {c.axis.parameter}", [p for p in c.points if p.changes[0].value != c.axis.recorded])
        for c in recorded.examined.curves
    ]
    groups.append(("several together", list(recorded.examined.sets)))
    for setting, points in groups:
        promises = Counter(point.promise for point in points)
        exact = [point for point in points if point.promise == EXACT][::every]
        wrong = [
            p for p in exact if kept_for_real(recorded, corpus, applied(design, p.changes)) != predicted(recorded, p)
        ]
        moving = sum(bool(point.gained or point.lost) for point in exact)
        assert not wrong, f"{corpus.name}, {name}: promised exact and wrong: {[p.changes for p in wrong][:5]}"
        rows.append(Row(corpus.name, name, setting, promises.total(), len(exact), moving, len(wrong)))
    return rows
