"""A service whose questions, ids, stage names and texts are hostile, Chinese, Arabic and Hebrew, traced."""

from __future__ import annotations

import json
from pathlib import Path

import ragtrace as rt
from ragtrace.gold import loading, placing
from ragtrace.store import database
from ragtrace.store.merge import merge

BREAK_OUT = "</script><script>window.hurt=1</script>"
IMAGE = "<img src=x onerror='window.hurt=2'>"
LINK = '<a href="javascript:window.hurt=3">here</a>'
TEMPLATE = "{{ 7*7 }} {% raw %} ${window.hurt=4} %{customdata} &lt;b&gt;"
OVERRIDE = "safe\u202egnorw"
CHINESE = "访客可以停留多久？"
ARABIC = "كم يومًا يمكن للزائر البقاء؟"
HEBREW = "כמה ימים מותר למבקר להישאר?"
LONG = "w" * 400

QUESTIONS = [BREAK_OUT, IMAGE, LINK, TEMPLATE, OVERRIDE, CHINESE, ARABIC, HEBREW, LONG]

PASSAGE = f"{BREAK_OUT} {IMAGE} 访客可以停留九十天。 يمكن للزائر البقاء تسعين يومًا. 90 days."
DOC_ID = f"{IMAGE}.pdf"

RETRIEVER = f"dense {IMAGE}"
RERANKER = BREAK_OUT


def build(path: Path, n_times: int = 1) -> None:
    """Ask every question so often: the first of each two keeps its evidence, the reranker drops that of the second."""
    rt.configure(path, run=f"run {IMAGE}", merge="off", capture_text="all")
    try:
        with rt.document(DOC_ID):
            text = rt.parse(name="read")(lambda: f"Before it. {PASSAGE} After it.")()
            chunks = [rt.Chunk("other", text[:9], DOC_ID, 0, 9), rt.Chunk("c-1", text[10:], DOC_ID, 10, len(text))]
            rt.chunk(name="split")(lambda text: chunks)(text)
            rt.index(name="store", index="main", complete=True)(lambda chunks: ["other", "c-1"])(chunks)
        for i, question in list(enumerate(QUESTIONS)) * n_times:
            with rt.query(question, question_id=f"{i} {IMAGE}"):
                found = rt.retrieve(name=RETRIEVER, mode="ann", k=2, index="main")(_found)(question)
                rt.generate(name="llm")(_told)(rt.rerank(name=RERANKER, k=1)(_first if i % 2 else _all)(found))
    finally:
        rt.shutdown(10)
    merge(path)
    with database.connect(path) as connection:
        loading.load(connection, _gold(path.with_suffix(".jsonl")))
        placing.place(connection)


def _found(question: str) -> list[tuple[str, float]]:
    return [("other", 0.9), ("c-1", 0.8)]


def _first(found: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return found[:1]


def _all(found: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return list(found)


def _told(found: list[tuple[str, float]]) -> str:
    return "an answer"


def _gold(path: Path) -> Path:
    lines = [
        {
            "question_id": f"{i} {IMAGE}",
            "question": question,
            "kind": f"kind {i % 3} {IMAGE}",
            "gold": [{"doc_id": DOC_ID, "quote": PASSAGE}],
        }
        for i, question in enumerate(QUESTIONS)
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path
