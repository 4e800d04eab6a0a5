"""What `why` says, as a person reads it at 80 columns."""

from __future__ import annotations

import io
import itertools

import pytest
from rich.console import Console

import ragtrace as rt
from ragtrace import alignment
from ragtrace.reports import labels_screen, question, question_screen, sentences
from ragtrace.reports.run import Result
from tests.traced import Traced


def _printed(parts) -> str:
    stream = io.StringIO()
    screen = Console(file=stream, width=80, highlight=False, emoji=False)
    for part in parts:
        screen.print(part)
    return "\n".join(line.rstrip() for line in stream.getvalue().splitlines())


def _why(traced: Traced, asked: str) -> str:
    assert traced.connection is not None
    return _printed(
        part
        for row in question.find(traced.connection, asked).records()
        for part in question_screen.draw(question.explain(traced.connection, row))
    )


def _asked(*retrievers: str) -> None:
    with rt.query("How long?", question_id="q"):
        for name in retrievers:
            with rt.retrieve(name=name, k=1) as stage:
                stage.output([{"id": "c", "doc_id": "other.txt", "start": 0, "end": 10}])


LABEL = {"question_id": "q", "gold": [{"doc_id": "house.txt", "start": 29, "end": 40}]}


def test_an_unobserved_question_says_so_with_both_bounds(traced: Traced):
    with rt.query("How long?", question_id="q"), rt.retrieve(name="dense", k=1, final=True) as stage:
        stage.output([{"id": "c", "doc_id": "house.txt"}])  # somewhere in the document: nothing tells where
    traced.judge([LABEL])

    said = _why(traced, "q")

    assert "UNOBSERVED: what was recorded does not tell whether the evidence arrived" in said
    assert "candidate recall 0.000 to 1.000, final-context recall 0.000 to 1.000" in said


@pytest.mark.parametrize(
    ("low", "high", "said"),
    [(0.0, 1.0, "0.000 to 1.000"), (0.5, 0.5, "0.500"), (None, None, "undefined")],
)
def test_a_recall_stands_with_both_bounds_where_they_differ(low, high, said):
    row = {
        "verdict": "lost", "lost_kind": "rerank", "lost_stage": "ce", "lost_at": "in",
        "candidate_recall": low, "candidate_recall_high": high,
        "final_context_recall": 0.0, "final_context_recall_high": 0.0,
    }  # fmt: skip

    assert sentences.headline(row) == f"LOST in ce (rerank)\ncandidate recall {said}, final-context recall 0.000"


def test_what_is_said_of_retrievers_follows_the_flow_and_names_the_place_once(library_store):
    row = question.find(library_store, "q-018").records()[0]

    said = _printed(question_screen.draw(question.explain(library_store, row)))

    told = said[said.index("→ lost") :]
    assert told.startswith("→ lost in bm25 or dense (retrieve):\n    dense: the record alone")
    assert told.index("dense: ") < told.index("bm25: ")


def test_retrievers_of_which_the_same_is_said_stand_in_one_line_by_name():
    names = ("verdict", "lost_kind", "lost_stage", "lost_at", "stage", "reason", "probe", "detail")
    missed = ("lost", "retrieve", "a or b or c", "in")
    rows = [
        dict(zip(names, (*missed, stage, "unprobed", probe, None), strict=True))
        for stage, probe in (("a", "exact"), ("b", "deeper"), ("c", "deeper"))
    ]

    assert [row["stage"] for _, row in question.told(rows)] == ["a", "b and c"]


def test_long_lines_hang_below_their_first_letter(traced: Traced):
    _asked("dense")
    traced.judge([LABEL])

    lines = _why(traced, "q").splitlines()

    assert max(map(len, lines)) <= 80
    wrapped = [after for line, after in itertools.pairwise(lines) if line.startswith("  → ") and len(line) > 70]
    assert all(line.startswith("    ") or not line for line in wrapped)
    assert "(its text is not on record: a recorded parse stage, with capture_text=documents, keeps it)" in " ".join(
        " ".join(lines).split()
    )


@pytest.mark.parametrize(
    ("similarity", "said"),
    [
        (0.874, "87% of its letters in order"),
        (0.9991, "99% of its letters in order"),
        (1.0, "all of its letters in order, with others between them"),
    ],
)
def test_a_passage_that_only_resembles_is_never_called_alike_to_the_whole(similarity, said):
    assert alignment.letters(similarity) == said


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"reason": "reranked_out", "rank_after": 9, "n_out": 8, "gap": 0.02},
         "9th by the reranker, only 8 go on, 0.02 behind"),
        ({"reason": "fused_out", "rank_before": 1, "n_out": 11},
         "1st in one of the lists it took, yet not among the 11 that go on"),
        ({"reason": "reranked_out", "rank_before": 1, "n_out": 1}, "1st in the list it took, yet another one went on"),
        ({"reason": "reranked_out", "rank_before": 5, "n_out": 0}, "5th in the list it took, none goes on"),
        ({"reason": "over_budget", "rank_before": 4, "n_out": 1}, "4th in line, only 1 goes on"),
        ({"reason": "over_budget", "rank_before": 4, "tokens": 212, "tokens_left": 40, "budget": 800},
         "4th in line, needed 212 tokens, 40 of 800 were left"),
    ],
)  # fmt: skip
def test_a_cut_is_said_with_who_ranked_and_how_many_pass(given, said):
    names = ("rank_before", "rank_after", "n_out", "k", "gap", "tokens", "tokens_left", "budget", "detail")

    assert sentences.reason({**dict.fromkeys(names), **given}) == said


def test_advice_on_labels_stands_once_above_the_labels_it_is_for():
    columns = ("problem", "is_wrong", "question_id", "evidence_id", "doc_id", "quote", "what_to_do")
    missing = "the quote is nowhere, the nearest passage has {}% of its letters in order: check the parser"
    rows = [
        ("text_missing", True, "q1", "q1#1.1", "a.txt", "ninety days", missing.format(41)),
        ("stale", True, "q2", "q2#1.1", "b.txt", None, "the newest text no longer holds it: label it anew"),
        ("text_missing", True, "q3", "q3#1.1", "c.txt", "ten francs", missing.format(24)),
        ("question_repeated", False, "q4", None, None, None, "give them ids"),
    ]

    said = _printed(labels_screen.draw(Result(columns, ("varchar",) * len(columns), rows)))

    assert (
        said
        == """\
text_missing (2 labels)
  → check the parser
    q1#1.1 in a.txt “ninety days” (the quote is nowhere, the nearest passage has
    41% of its letters in order)
    q3#1.1 in c.txt “ten francs” (the quote is nowhere, the nearest passage has
    24% of its letters in order)

stale (1 label)
  → the newest text no longer holds it: label it anew
    q2#1.1 in b.txt

question_repeated (1 label, used on trust)
  → give them ids
    q4
"""
    )
