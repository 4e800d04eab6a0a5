"""`ragtrace collect --file`: OTLP lines, what a Phoenix server exported, what Langfuse's API gives."""

from __future__ import annotations

import gzip
import json
import shutil
from pathlib import Path

import pytest
from collectors.conftest import settings_of
from collectors.zoo import EXPECTED, GOLD, PROMPT, QUESTION, RETRIEVED
from typer.testing import CliRunner

from ragtrace.cli.main import app
from ragtrace.integrations.otel.rules import said
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace_collectors.files import UnreadableFileError, spans_in
from ragtrace_collectors.importing import take_file

RECORDED = Path(__file__).parent / "recorded"


def observation(number, name, kind, given, output=None, parent=None):
    """Fields as the SDK's own type of an observation has them."""
    return {
        "id": f"o-{number}", "traceId": "t-1", "type": kind, "name": name, "input": given, "output": output,
        "startTime": f"2026-11-01T10:00:0{number}.000Z", "endTime": f"2026-11-01T10:00:0{number}.500Z",
        "parentObservationId": parent, "level": "DEFAULT", "statusMessage": None, "metadata": {"question_id": "q-1"},
    }  # fmt: skip


OBSERVATIONS = [
    observation(1, "dense", "RETRIEVER", QUESTION, RETRIEVED),
    observation(2, "rerank", "SPAN", {"query": QUESTION, "documents": RETRIEVED}, RETRIEVED[:3]),
    observation(3, "model", "GENERATION", [{"role": "user", "content": PROMPT}], "six apples"),
]
TRACE = {
    "id": "t-1",
    "name": "answer",
    "timestamp": "2026-11-01T10:00:00Z",
    "input": {"question": QUESTION},
    "sessionId": "s-1",
}


def langfuse_trace(folder):
    path = folder / "trace.json"
    path.write_text(json.dumps({**TRACE, "observations": OBSERVATIONS}, indent=1), encoding="utf-8")
    return path


def otlp_lines(folder):
    path = folder / "spans.jsonl.gz"
    with gzip.open(path, "wb") as file:
        file.write((RECORDED / "openinference_haystack.jsonl").read_bytes())
    return path


def phoenix_lines(folder):
    """Its dataframe, a row a line, as pandas writes it."""
    import pyarrow.parquet as pq

    path = folder / "spans.jsonl"
    rows = pq.read_table(RECORDED / "phoenix_dataframe.parquet").to_pylist()
    lines = [
        {**row, **{name: int(row[name].timestamp() * 1000) for name in ("start_time", "end_time")}} for row in rows
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines), encoding="utf-8")
    return path


def test_each_kind_of_file_gives_the_verdicts_of_the_service(store, tmp_path, rows):
    """In one store, each as a run of its own."""
    files = {
        "langfuse": langfuse_trace(tmp_path),
        "otlp": otlp_lines(tmp_path),
        "phoenix": RECORDED / "phoenix_spans.json",
    }
    for run, path in files.items():
        take_file(settings_of(store)._replace(run=run), VOCABULARIES, path)

    found = rows("select run, verdict, lost_kind, lost_at from stage_loss order by run, evidence_id", GOLD)
    assert found == [(run, *verdict) for run in sorted(files) for verdict in EXPECTED]
    assert rows("select distinct question from queries") == [(QUESTION,)]


def test_what_the_logs_or_the_store_have_already_is_left_out(store, tmp_path, rows):
    path = langfuse_trace(tmp_path)
    again = "0 traces with 4 spans are taken in; 1 were there already"

    assert take_file(settings_of(store), VOCABULARIES, path).endswith("1 traces with 4 spans are taken in")
    assert take_file(settings_of(store), VOCABULARIES, path).endswith(again)
    assert rows("select count(*), min(n_stages) from queries") == [(1, 3)]
    assert take_file(settings_of(store), VOCABULARIES, path).endswith(again)


@pytest.mark.parametrize(
    "made", [lambda _: RECORDED / "phoenix_dataframe.parquet", phoenix_lines], ids=["Parquet", "JSON lines"]
)
def test_phoenixs_dataframe_says_what_its_api_says(made, tmp_path):
    """The same trace of the same server."""

    def read(path):
        found = {span.name: (span, said(span, VOCABULARIES)) for span in spans_in(path)}
        return {
            name: (span.span_id, span.parent_id, one.kind, one.query, one.prompt, one.question_id, one.k, listed(one))
            for name, (span, one) in found.items()
        }

    def listed(one):
        return [
            [(row["id"], row["content"], row["metadata"]) for row in items.rows]
            for items in (one.input, one.output)
            if items
        ]

    found = read(made(tmp_path))
    assert len(found["dense"][-1][0]) == 5
    assert found == read(RECORDED / "phoenix_spans.json")


def test_observations_without_their_trace_stand_by_themselves(tmp_path):
    path = tmp_path / "observations.jsonl"
    rows = [
        observation(0, "answer", "CHAIN", {"question": QUESTION}),
        *({**one, "parentObservationId": "o-0"} for one in OBSERVATIONS),
    ]
    path.write_text("".join(json.dumps(one) + "\n" for one in rows), encoding="utf-8")
    root, *stages = spans_in(path)

    assert {span.parent_id for span in stages} == {root.span_id}
    assert {span.trace_id for span in stages} == {root.trace_id}
    assert [said(span, VOCABULARIES).kind for span in stages] == ["retrieve", "rerank", "generate"]


@pytest.mark.parametrize(
    ("name", "content", "why"),
    [
        ("a.jsonl", b'{"resourceSpans": []}\n{"x": 1}\n', "line 2: neither OTLP, nor"),
        ("a.jsonl", b'{"resourceSpans": []}\nnonsense\n', "line 2: no JSON"),
        ("a.jsonl", b"", "no spans in it"),
        ("a.json", b"[1, 2]", "line 1: neither an object nor a list"),
        ("a.json", b'{"data": [{"context": {}}]}', "line 1: "),
        ("a.json", b'\xff\xfe{"', "no JSON"),
        ("a.json.gz", b"not gzip", "no JSON"),
        ("a.parquet", b"not Parquet", "no Parquet"),
        ("a.jsonl", b'{"traceId": "t", "type": "SPAN", "id": "o", "startTime": "yesterday"}', "line 1: "),
    ],
)
def test_a_file_that_cannot_be_read_says_where(name, content, why, tmp_path):
    path = tmp_path / name
    path.write_bytes(content)

    with pytest.raises(UnreadableFileError, match=why):
        list(spans_in(path))


def test_the_command_says_what_it_took_in(store, tmp_path):
    shutil.copy(RECORDED / "phoenix_spans.json", tmp_path / "spans.json")
    result = CliRunner().invoke(
        app, ["collect", str(store), "--file", str(tmp_path / "spans.json")], env={"RAGTRACE_MERGE": "off"}
    )

    assert result.exit_code == 0
    assert "1 traces with 4 spans are taken in" in result.stderr
