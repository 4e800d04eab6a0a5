"""A secret in each place where a text can hide: with a redactor it is in no byte that we write, send or print."""

from __future__ import annotations

import errno
import logging
import os
import warnings
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from typer.testing import CliRunner

import ragtrace as rt
from ragtrace.cli.main import app
from ragtrace.settings import CAPTURE_TEXT
from ragtrace.store import database, merge
from ragtrace.testing import raising

from . import planted


class Sent:
    """A provider and what its exporter sent."""

    def __init__(self) -> None:
        self.exporter = InMemorySpanExporter()
        self.provider = TracerProvider()
        self.provider.add_span_processor(SimpleSpanProcessor(self.exporter))

    def data(self) -> bytes:
        spans = self.exporter.get_finished_spans()
        assert spans
        said = repr([span.to_json() for span in spans]).encode()
        try:
            from opentelemetry.exporter.otlp.proto.common.trace_encoder import encode_spans
        except ImportError:  # the JSON above has the same names and values
            return said
        return said + encode_spans(spans).SerializeToString()


@pytest.fixture
def sent() -> Iterator[Sent]:
    made = Sent()
    yield made
    made.provider.shutdown()


def written(folder: Path, sent: Sent | None = None, *, with_commands: bool = False, **settings: Any) -> bytes:
    """All bytes that come of `planted.ask`: logs, database, its write-ahead log and sidecar, spans, exports, output."""
    folder.mkdir(exist_ok=True)
    store = folder / "traces.duckdb"
    rt.configure(store, merge="off", tracer_provider=sent.provider if sent else None, **settings)
    with raising():
        planted.ask()
    assert rt.shutdown(10)
    planted.copy(folder, folder / "before the merge")
    texts = []

    def while_open(connection: Any) -> None:
        texts.append(planted.varchars(connection))
        planted.copy(folder, folder / "within the merge")

    merge.merge(store, after=while_open)
    assert (folder / "within the merge" / "traces.duckdb.wal").stat().st_size
    connection = database.connect(store, read_only=True)
    texts.append(planted.varchars(connection))
    connection.close()
    if with_commands:
        texts.append(_printed(store))
    if sent is not None:
        texts.append(sent.data())
    return b"\n".join(texts) + planted.bytes_of(folder)


def _printed(store: Path) -> bytes:
    """What the commands print, their errors too; what they export stays beside the store."""
    runner = CliRunner()
    folder = store.parent
    texts = []
    for command in (
        ["doctor", store], ["report", store], ["report", store, "--format", "json"], ["merge", store],
        ["why", store, "what?", "--quote", "The next page"], ["why", store, "no such question"],
        ["sql", store, "from stages"], ["sql", store, "from no_such_table"],
        ["export", store, folder / "lake"], ["export", store, folder / "trec", "--to", "trec"],
        ["export", store, folder / "contexts.jsonl", "--to", "jsonl"],
    ):  # fmt: skip
        done = runner.invoke(app, [str(part) for part in command])
        texts.append(done.output.encode() + repr(done.exception).encode())
    return b"\n".join(texts)


@pytest.mark.parametrize("level", CAPTURE_TEXT)
def test_a_redacted_secret_is_nowhere(
    level: str, tmp_path: Path, sent: Sent, caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with warnings.catch_warnings(record=True) as warned, caplog.at_level(logging.DEBUG):
        data = written(
            tmp_path / "store", sent, with_commands=level == "all", capture_text=level, redact=planted.masked
        )
    printed = "\n".join((*capfd.readouterr(), caplog.text, *(str(one.message) for one in warned)))
    assert len(planted.PLACES) > 40
    assert planted.found_in(data + printed.encode()) == set()
    assert b"****" in data


def test_a_secret_is_nowhere_when_records_wait_for_the_disk_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    store = tmp_path / "traces.duckdb"
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (_ for _ in ()).throw(OSError(errno.ENOSPC, "no space")))
    rt.configure(store, merge="off", redact=planted.masked)
    planted.ask()
    monkeypatch.setattr(os, "write", write)
    assert rt.shutdown(10)
    data = planted.bytes_of(tmp_path)
    assert b"****" in data
    assert planted.found_in(data + caplog.text.encode()) == set()


def test_a_redactor_that_always_raises_lets_nothing_out(tmp_path: Path, sent: Sent) -> None:
    def redact(text: str) -> str:
        raise ValueError(text)

    data = written(tmp_path / "store", sent, redact=redact)
    assert planted.found_in(data) == set()
    assert b"[redaction failed]" in data and b"redactor_error" in data


def test_a_redactor_that_returns_something_else_lets_nothing_out(tmp_path: Path) -> None:
    assert planted.found_in(written(tmp_path / "store", redact=lambda text: text.encode())) == set()
