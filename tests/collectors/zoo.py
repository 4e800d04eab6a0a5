"""One small service, as spans: five passages found, three kept by the reranker, two in the prompt."""

from __future__ import annotations

import json
from typing import Any

QUESTION = "What does animal 2 eat?"
TEXTS = [f"Sentence number {i} says that animal {i} eats {i * 3} apples a day." for i in range(6)]
DOC = "zoo.txt"


def passage(number: int) -> dict[str, Any]:
    return {
        "id": f"c{number}",
        "score": 0.9 - number / 10,
        "content": TEXTS[number],
        "metadata": {"source": DOC, "start_index": number * 100},
    }


RETRIEVED = [passage(number) for number in range(5)]
PROMPT = f"Answer from this:\n{TEXTS[0]}\n\n{TEXTS[1]}\nQuestion: {QUESTION}"
GOLD = [
    {
        "question_id": "q-1",
        "question": QUESTION,
        "gold": [{"doc_id": DOC, "start": start, "end": start + 20} for start in (0, 200, 400, 500)],
    }
]
"""In the prompt; lost after the reranker; lost in the reranker; never found."""
LOSSES = "select verdict, lost_kind, lost_at from stage_loss order by evidence_id"
EXPECTED = [
    ("kept", None, None),
    ("lost", "rerank", "after"),
    ("lost", "rerank", "in"),
    ("lost", None, None),
]


def documents(prefix: str, rows: list[dict[str, Any]]) -> dict[str, Any]:
    """OpenInference's numbered attributes."""
    found: dict[str, Any] = {}
    for number, row in enumerate(rows):
        for key, value in row.items():
            found[f"{prefix}.{number}.document.{key}"] = json.dumps(value) if isinstance(value, dict) else value
    return found
