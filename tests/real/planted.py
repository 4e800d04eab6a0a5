"""Plant one fault in a real RAG, ask all questions, and set ragtrace's verdicts beside a plain oracle's."""

from __future__ import annotations

import json
import os
import unicodedata
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import duckdb

import ragtrace as rt
from ragtrace.gold.loading import load
from ragtrace.store.database import connect
from ragtrace.store.merge import merge

from .corpora import Corpus
from .rag import Piece, Rag, by_sentence, by_size

__all__ = ["CHUNKERS", "EXPECTED", "Outcome", "run_fault"]

CHUNKERS = {"size": by_size, "sentence": by_sentence}

EXPECTED = {
    "page_not_parsed": "parse",
    "chunk_cut": "split",
    "chunk_not_written": "store",
    "ann_crippled": "dense or lexical",
    "bad_rewrite": "dense or lexical",
    "filter_drops": "allow",
    "fusion_forgets_a_list": "fuse",
    "reranker_cuts": "rerank",
    "untraced_slice": "after allow",
    "budget_too_small": "pack",
}
"""The name ragtrace must give each planted fault."""

INGEST_FAULTS = ("page_not_parsed", "chunk_cut", "chunk_not_written")


class Outcome(NamedTuple):
    """What ragtrace said (`named`) and what the oracle says (`true`), per evidence id: a place's name or `kept`."""

    named: dict[str, str]
    true: dict[str, str]
    question_of: dict[str, str]


def _counts(char: str) -> bool:
    return unicodedata.category(char)[0] in "LNMS"


def _oracle(rag: Rag, question_id: str, span: dict[str, Any], original: str) -> str:
    """The earliest place at which a counting character of the span was seen for the last time."""
    doc_id, start, end = span["doc_id"], span["start"], span["end"]
    positions = [i for i in range(start, end) if _counts(original[i])] or list(range(start, end))
    if rag.texts[doc_id][start:end] != original[start:end]:
        return "parse"
    lists: list[tuple[str, list[Piece]]] = [
        ("split", []),
        ("store", rag.chunked[doc_id]),
        ("dense or lexical", list(rag.written.values())),
    ]
    seen = dict(rag.seen[question_id])
    seen.setdefault("lexical", [])
    lists.append(("fuse", seen["dense"] + seen["lexical"]))
    lists.append(("allow", seen["fuse"]))
    lists.append(("after allow", seen["allow"]))
    lists.append(("rerank", seen["rerank.in"]))
    lists.append(("pack", seen["rerank"]))
    lists.append(("kept", seen["pack"]))
    worst = len(lists) - 1
    for position in positions:
        last = 0
        for n, (_, pieces) in enumerate(lists):
            if n and any(p.doc_id == doc_id and p.start <= position < p.end for p in pieces):
                last = n
        worst = min(worst, last)
    return lists[worst][0]


def _gold_lines(corpus: Corpus, with_offsets: bool) -> Iterator[str]:
    for question in corpus.questions:
        row = {"question_id": question["question_id"], "question": question["question"], "gold": []}
        for span in question["gold"]:
            keys = ("doc_id", "start", "end", "quote") if with_offsets else ("doc_id", "quote")
            row["gold"].append({k: span[k] for k in keys})
        yield json.dumps(row, ensure_ascii=False)


def run_fault(corpus: Corpus, chunker: str, fault: str, folder: Path, touched: set[str]) -> Outcome:
    """Ingest, ask, merge, judge. `touched`: the questions that the fault hits."""
    store = folder / f"{corpus.name}-{chunker}-{fault}.duckdb"
    rag = Rag(corpus.documents, CHUNKERS[chunker], fault)
    sound = Rag(corpus.documents, CHUNKERS[chunker], "none")
    sound.texts = {d: _undecorated_parse(sound, d, raw) for d, raw in corpus.documents.items()}
    spans = {
        (q["question_id"], n): s
        for q in corpus.questions
        for n, s in enumerate(q["gold"], 1)
        # PDF text may differ by a version of the PDF library: such labels say nothing about the fault.
        if sound.texts[s["doc_id"]][s["start"] : s["end"]] == s["quote"]
        # Labels of this fault have no offsets: a quote that stands twice has no one place.
        and (fault != "page_not_parsed" or sound.texts[s["doc_id"]].count(s["quote"]) == 1)
    }
    if fault in INGEST_FAULTS:
        for (question_id, _), span in spans.items():
            if question_id in touched:
                middle = (span["start"] + span["end"]) // 2
                rag.lost_ranges.setdefault(span["doc_id"], []).append((middle, max(middle + 1, span["end"])))
    rt.configure(store, run=fault, merge="off")
    rag.ingest()
    for question in corpus.questions:
        rag.ask(question["question_id"], question["question"], question["question_id"] in touched)
    assert rt.flush(10)
    rt.shutdown(10)
    gold = store.with_suffix(".jsonl")
    # A label with offsets whose quote stands nowhere is a broken label; without offsets, a text that was not parsed.
    gold.write_text("\n".join(_gold_lines(corpus, fault != "page_not_parsed")) + "\n", encoding="utf-8")
    merge(store)
    with connect(store) as connection:
        load(connection, gold)
    named: dict[str, str] = {}
    true: dict[str, str] = {}
    question_of: dict[str, str] = {}
    with duckdb.connect(str(store), read_only=True) as connection:
        rows = connection.execute(
            "select s.question_id, e.doc_id, e.quote, s.verdict, s.lost_stage, s.lost_at, s.evidence_id"
            " from stage_loss as s join evidence as e using (evidence_id)"
        ).fetchall()
    by_quote = {(qid, s["doc_id"], s["quote"]): s for (qid, _), s in spans.items()}
    for question_id, doc_id, quote, verdict, lost_stage, lost_at, evidence_id in rows:
        span = by_quote.get((question_id, doc_id, quote))
        if span is None:
            continue
        place = f"after {lost_stage}" if lost_at == "after" else lost_stage
        named[evidence_id] = place if verdict == "lost" else verdict
        true[evidence_id] = _oracle(rag, question_id, span, sound.texts[doc_id])
        question_of[evidence_id] = question_id
    return Outcome(named, true, question_of)


def _undecorated_parse(rag: Rag, doc_id: str, raw: str | bytes) -> str:
    return rag.parse.__wrapped__(rag, doc_id, raw)  # type: ignore[attr-defined,no-any-return]


def full_run() -> bool:
    """True when every set and chunker is wanted (make test-all)."""
    return bool(os.environ.get("RAGTRACE_TEST_ALL"))
