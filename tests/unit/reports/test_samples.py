"""Samples for Ragas and DeepEval: the final context as it was sent, or no sample."""

from __future__ import annotations

import json
import re
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.errors import ParameterError, StoreError
from ragtrace.reports import samples
from tests.traced import Traced

FIRST, SECOND, THIRD = "A visitor may stay for ninety days.", "Then they leave.", "Or they ask for more."
TEXT = f"{FIRST} {SECOND} {THIRD}"
SPANS = {text: (TEXT.index(text), TEXT.index(text) + len(text)) for text in (FIRST, SECOND, THIRD)}
PAGE = Path(__file__).resolve().parents[3] / "docs" / "exports.md"


def hit(name: str, text: str, **more: Any) -> rt.Candidate:
    start, end = SPANS[text]
    return rt.Candidate(name, doc_id="handbook.md", start=start, end=end, text=text, **more)


def ask(question_id: str, context: Any) -> None:
    with rt.query(f"What of {question_id}?", question_id=question_id):
        with rt.retrieve(name="dense") as stage:
            stage.output([hit("a", FIRST), hit("b", SECOND), hit("c", THIRD)])
        if context is not None:
            rt.context(context)


@pytest.fixture(scope="module")
def traced(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Traced]:
    trace = Traced(tmp_path_factory.mktemp("samples") / "traces.duckdb")
    with rt.document("handbook.md"), rt.parse(name="reader") as stage:
        stage.output(TEXT)
    ask("plain", [hit("a", FIRST), hit("b", SECOND)])
    ask("placed", [hit("a", FIRST, position=2), hit("b", SECOND, position=1)])
    ask("joined", [rt.Candidate("ac", doc_id="handbook.md", ranges=[SPANS[FIRST], SPANS[THIRD]])])
    ask("empty", [])
    ask("rewritten", [rt.Candidate("a", doc_id="handbook.md", text="Visitors: three months at the most, it is said.")])
    ask("elsewhere", [rt.Candidate("z", doc_id="unseen.md", start=0, end=4)])
    trace.judge(
        [
            {
                "question_id": "plain",
                "question": "What of plain?",
                "answer": ["ninety days", "90 days"],
                "gold": [{"doc_id": "handbook.md", "quote": "ninety days"}],
            }
        ]
    )
    yield trace
    trace.close()


def written(traced: Traced, path: Path, package: str, **how: Any) -> tuple[samples.Written, dict[str, dict[str, Any]]]:
    assert traced.connection is not None
    counts = samples.write(traced.connection, path, package, **how)
    lines = [json.loads(line) for line in path.read_text(encoding="utf-8").splitlines()]
    return counts, {
        re.sub(r"What of (\w+)\?", r"\1", line.get("user_input", line.get("input"))): line for line in lines
    }


def test_contexts_are_the_texts_in_the_prompts_order_and_others_are_left_out(traced: Traced, tmp_path: Path) -> None:
    counts, lines = written(traced, tmp_path / "samples.jsonl", "ragas")
    assert {name: line["retrieved_contexts"] for name, line in lines.items()} == {
        "plain": [FIRST, SECOND],
        "placed": [SECOND, FIRST],
        "empty": [],
    }
    # Two ranges without the text as delivered: nobody knows what stood between them.
    assert counts == samples.Written(3, 0, 0, 3)


def test_ragas_names_are_those_of_its_samples(traced: Traced, tmp_path: Path) -> None:
    _, lines = written(
        traced, tmp_path / "samples.jsonl", "ragas", answers={"plain": "Ninety.", "What of empty?": "No."}
    )
    assert lines["plain"] == {
        "user_input": "What of plain?",
        "retrieved_contexts": [FIRST, SECOND],
        "retrieved_context_ids": ["a", "b"],
        "reference_contexts": ["ninety days"],
        "response": "Ninety.",
        "reference": "ninety days",
    }
    assert lines["empty"]["response"] == "No."


def test_deepeval_names_are_those_of_its_goldens(traced: Traced, tmp_path: Path) -> None:
    _, lines = written(traced, tmp_path / "goldens.jsonl", "deepeval", answers={"plain": "Ninety."})
    line = lines["plain"]
    assert line.pop("additional_metadata").keys() == {"query_id", "run", "context_ids"}
    assert line == {
        "name": "plain",
        "input": "What of plain?",
        "actual_output": "Ninety.",
        "expected_output": "ninety days",
        "context": ["ninety days"],
        "retrieval_context": [FIRST, SECOND],
    }


def test_a_text_of_several_ranges_is_known_when_its_hash_is(traced: Traced) -> None:
    from ragtrace import digest

    assert samples._text([FIRST, THIRD], digest.of_text(f"{FIRST}\n\n{THIRD}")) == f"{FIRST}\n\n{THIRD}"
    assert samples._text([FIRST, THIRD], digest.of_text(f"{FIRST} – {THIRD}")) is None
    assert samples._text([FIRST], digest.of_text(SECOND)) is None
    assert samples._text([FIRST, None], None) is None


def test_an_unknown_final_context_and_a_question_without_text_are_counted(tmp_path: Path) -> None:
    trace = Traced(tmp_path / "traces.duckdb", capture_text="documents")
    try:
        ask("silent", [hit("a", FIRST)])
        trace.judge([{"question_id": "loud", "question": "What of loud?", "gold": []}])
        counts, _ = written(trace, tmp_path / "samples.jsonl", "ragas")
        assert counts == samples.Written(0, 1, 0, 0)
    finally:
        trace.close()
    trace = Traced(tmp_path / "second.duckdb")
    try:
        with rt.query("What of nothing?"):
            pass
        trace.merge()
        counts, _ = written(trace, tmp_path / "samples.jsonl", "ragas")
        assert counts == samples.Written(0, 0, 1, 0)
    finally:
        trace.close()


def test_a_file_that_cannot_be_written_or_read_is_one_sentence(traced: Traced, tmp_path: Path) -> None:
    assert traced.connection is not None
    with pytest.raises(StoreError, match="give another path"):
        samples.write(traced.connection, tmp_path / "no" / "where.jsonl", "ragas")
    path = tmp_path / "answers.jsonl"
    path.write_text('{"question_id": "plain", "answer": "Ninety."}\n\n{"question": "What?", "answer": "So."}\n')
    assert samples.answers_of(path) == {"plain": "Ninety.", "What?": "So."}
    for wrong in ("[]", "{}", "not json", '{"answer": "x"}'):
        path.write_text(wrong)
        with pytest.raises(ParameterError, match="line 1: write"):
            samples.answers_of(path)
    with pytest.raises(ParameterError, match="cannot be read"):
        samples.answers_of(tmp_path / "nowhere.jsonl")


@pytest.mark.parametrize("package", ["ragas", "deepeval"])
def test_the_package_itself_loads_the_file(
    package: str, traced: Traced, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # the packages' own
        pytest.importorskip(package, reason=f"{package} is not installed")
        block = next(
            block for block in re.findall(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.S) if package in block
        )
        monkeypatch.chdir(tmp_path)
        written(traced, tmp_path / ("samples.jsonl" if package == "ragas" else "goldens.jsonl"), package)
        names: dict[str, Any] = {}
        exec(compile(block, PAGE.name, "exec"), names)
    dataset = names["dataset"]
    loaded = dataset.samples if package == "ragas" else dataset.goldens
    contexts = [one.retrieved_contexts if package == "ragas" else one.retrieval_context for one in loaded]
    assert contexts == [[FIRST, SECOND], [SECOND, FIRST], []]
