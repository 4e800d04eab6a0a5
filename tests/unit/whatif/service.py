"""A service of which each test says how it chooses: thirty questions on one text of numbered facts, everything recorded."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import ragtrace as rt
from ragtrace.whatif import Examined, examine
from ragtrace.whatif.examining import Point
from tests.traced import Traced

N_FACTS = 40
N_QUESTIONS = 32
TEXT = "\n".join(f"Fact number {n:02} is the word {chr(97 + n % 26)}{n:02}." for n in range(N_FACTS))
LINE = len(TEXT.split("\n")[0]) + 1

Ask = Callable[[int, list[rt.Candidate]], Any]
"""The part of a query behind its retrieval: which question it is, and what was found, the right fact third."""


def fact(n: int, score: float | None = None, tokens: int | None = 10) -> rt.Candidate:
    """The chunk of one fact."""
    start = LINE * n
    return rt.Candidate(f"f{n:02}", score, "facts", start, start + LINE - 1, tokens=tokens)


def gold(n_questions: int = N_QUESTIONS) -> list[dict[str, Any]]:
    """Question n needs fact n."""
    lines = TEXT.split("\n")
    return [
        {
            "question_id": f"q{n}",
            "gold": [{"doc_id": "facts", "start": LINE * n, "end": LINE * n + LINE - 1, "quote": lines[n]}],
        }
        for n in range(n_questions)
    ]


def found_for(n: int, k: int, at: int = 3) -> list[rt.Candidate]:
    """The first k facts found for question n; the right one stands at rank `at`."""
    others = [(n + 1 + i) % N_FACTS for i in range(N_FACTS - 1)]
    order = [*others[: at - 1], n, *others[at - 1 :]]
    return [fact(name, 1.0 - rank / 100) for rank, name in enumerate(order[:k])]


class Runs:
    """Several runs in one store: each is recorded in its turn, all are merged and labelled at once."""

    def __init__(self, store: Path) -> None:
        self.traced = Traced(store)
        with rt.document("facts", version="1"):
            _ingest()

    def record(
        self,
        run: str,
        ask: Ask,
        *,
        n_questions: int = N_QUESTIONS,
        k: int = 8,
        at: int | Callable[[int], int] = 3,
        considered: int = 0,
        mode: str = "exact",
    ) -> None:
        """Ask every question. The right fact is found at rank `at` of k."""
        rt.configure(self.traced.store, run=run, merge="off")
        for n in range(n_questions):
            place = at(n) if callable(at) else at
            with rt.query(f"what is fact {n}?", question_id=f"q{n}"):
                with rt.retrieve(name="search", mode=mode, k=k, index="main", score_kind="similarity") as stage:
                    if considered:
                        stage.considered(found_for(n, considered, place))
                    hits = found_for(n, k, place)
                    stage.output(hits)
                ask(n, hits)

    def judge(self) -> None:
        """Everything into the store, with its labels."""
        self.traced.judge(gold())

    def examined(self, run: str) -> Examined:
        """What-if on one run."""
        assert self.traced.connection is not None
        return examine(self.traced.connection, run)


def _ingest() -> None:
    with rt.parse(name="read") as stage:
        stage.output(TEXT)
    with rt.chunk(name="split", index="main") as stage:
        stage.output(
            [rt.Chunk(c.id, TEXT[c.start : c.end], "facts", c.start, c.end) for c in map(fact, range(N_FACTS))]
        )


def rerank(n: int, hits: list[rt.Candidate], k: int = 2, **said: Any) -> list[rt.Candidate]:
    """Keeps the order found, lets k go on, shows the losers."""
    with rt.rerank(name="rerank", k=k, score_kind="similarity", **said) as stage:
        stage.input(hits)
        stage.considered(hits)
        best = hits[:k]
        stage.output(best)
    return best


def pack(hits: Sequence[rt.Candidate], budget: int = 1000, policy: str = "stop") -> list[rt.Candidate]:
    """What fits the budget, as the final context."""
    with rt.truncate(name="pack", budget_tokens=budget, final=True) as stage:
        stage.input(hits)
        left, kept = budget, []
        for hit in hits:
            if (hit.tokens or 0) <= left:
                kept.append(hit)
                left -= hit.tokens or 0
            elif policy == "stop":
                break
        stage.output(kept)
    return kept


def point(found: Examined, stage: str, parameter: str, value: float) -> Point:
    """What one value of one setting would do."""
    (curve,) = [c for c in found.curves if (c.axis.label[1], c.axis.parameter) == (stage, parameter)]
    (only,) = [p for p in curve.points if p.changes[0].value == value]
    return only
