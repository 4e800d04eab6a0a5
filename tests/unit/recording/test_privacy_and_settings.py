"""Settings by argument and environment, and no text where it was not allowed."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import errors
from ragtrace.recording import context
from ragtrace.testing import raising, records

from .recorded import recorded

SECRET = "s3cr3t-passw0rd"


def service() -> None:
    """Puts a secret wherever a text can hide."""

    @rt.parse
    def parse(raw: str) -> str:
        return raw

    @rt.chunk
    def chunk(text: str) -> list[str]:
        return [text]

    @rt.retrieve(model=SECRET)
    def search(query: str, filter: Any) -> list[dict[str, Any]]:
        return [{"id": "a", "text": f"a passage of {SECRET}", "metadata": {"note": SECRET}}]

    @rt.generate
    def answer(prompt: str) -> str:
        raise ValueError(SECRET)

    with rt.document("d"):
        chunk(parse(f"The code is {SECRET}."))
    with rt.query(f"what is {SECRET}?"):
        found = search(f"what is {SECRET}?", {"tenant": "t"})
        with pytest.raises(ValueError, match=SECRET):
            answer(found[0]["text"])


def logged(store: Path) -> bytes:
    rt.flush(5)
    return b"".join(path.read_bytes() for path in Path(f"{store}.spool").iterdir())


@pytest.mark.parametrize("settings", [{"redact": lambda text: text.replace(SECRET, "*" * len(SECRET))}])
def test_a_redacted_secret_is_in_no_byte_of_the_log(settings: dict[str, Any], ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", **settings)
    service()
    assert b"*" * len(SECRET) in logged(ragtrace_store)
    assert SECRET.encode() not in logged(ragtrace_store)


@pytest.mark.parametrize(
    ("capture", "has_document", "has_question"),
    [("none", False, False), ("documents", True, False), ("questions", True, True), ("all", True, True)],
)
def test_capture_text_says_which_texts_are_stored(
    capture: str, has_document: bool, has_question: bool, ragtrace_store: Path
) -> None:
    rt.configure(ragtrace_store, merge="off", capture_text=capture)
    service()
    log = logged(ragtrace_store)
    assert (f"The code is {SECRET}".encode() in log) == has_document
    assert (f"what is {SECRET}".encode() in log) == has_question
    assert f"a passage of {SECRET}".encode() not in log
    assert recorded(ragtrace_store).query()["question_hash"]


def test_a_redaction_that_changes_the_length_leaves_a_text_unaligned(ragtrace_store: Path) -> None:
    rt.configure(ragtrace_store, merge="off", redact=lambda text: text.replace(SECRET, "*"))
    service()
    assert not recorded(ragtrace_store).rows("text")[0]["is_aligned"]


def test_a_redactor_that_raises_costs_that_text_only(ragtrace_store: Path) -> None:
    """I-34"""

    def redact(text: str) -> str:
        if text.startswith("what"):
            raise KeyError(text)
        return text

    rt.configure(ragtrace_store, merge="off", redact=redact)
    service()
    found = recorded(ragtrace_store)
    assert found.query()["question"] == "[redaction failed]"
    assert found.rows("text")[0]["text"] == f"The code is {SECRET}."
    assert {row["reason"] for row in found.rows("loss")} == {"redactor_error"}


def test_every_setting_can_come_from_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    values = {
        "STORE": str(tmp_path / "from env.duckdb"), "RUN": "r1", "RUN_KIND": "oracle", "SERVICE": "s", "CAPTURE_TEXT": "none",
        "REDACT": "builtins:str", "TRACER_PROVIDER": "opentelemetry.trace:NoOpTracerProvider", "MAX_QUEUE_BYTES": "77",
        "MERGE": "off",
    }  # fmt: skip
    for name, value in values.items():
        monkeypatch.setenv(f"RAGTRACE_{name}", value)
    monkeypatch.setenv("RAGTRACE_TRACER_PROVIDER", "opentelemetry.trace:_PROXY_TRACER_PROVIDER")
    import opentelemetry.trace

    monkeypatch.setattr(
        opentelemetry.trace, "_PROXY_TRACER_PROVIDER", opentelemetry.trace.NoOpTracerProvider(), raising=False
    )
    rt.configure()
    assert context.recorder is not None
    made = context.recorder.settings
    assert (made.run, made.run_kind, made.service, made.capture_text) == ("r1", "oracle", "s", "none")
    assert (made.redact, made.max_queue_bytes, made.merge) == (str, 77, "off")
    assert made.store == tmp_path / "from env.duckdb"
    rt.configure(run="r2")
    assert context.recorder.settings.run == "r2"
    rt.shutdown()


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"store": 7},
        {"store": ""},
        {"store": "x", "run": 7},
        {"store": "x", "run_kind": "test"},
        {"store": "x", "capture_text": "some"},
        {"store": "x", "merge": "later"},
        {"store": "x", "max_queue_bytes": -1},
        {"store": "x", "max_queue_bytes": "1"},
        {"store": "x", "redact": "no"},
        {"store": "x", "tracer_provider": object()},
    ],
)
def test_wrong_settings_are_refused_at_configure(arguments: dict[str, Any]) -> None:
    with pytest.raises(errors.ConfigurationError) as caught:
        rt.configure(**arguments)
    assert pickle.loads(pickle.dumps(caught.value)).message == caught.value.message


def test_configuring_writes_nothing_and_a_second_one_replaces_the_first(ragtrace_store: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.duckdb"
    for _ in range(5):
        rt.configure(other, run="second", merge="off")
    assert list(tmp_path.iterdir()) == []
    with rt.query("q"):
        pass
    assert rt.flush(5)
    assert [record.kind for record in records(other)] == ["process", "query"]
    assert records(ragtrace_store) == []


def test_a_query_goes_on_where_it_began_when_another_store_is_configured(ragtrace_store: Path, tmp_path: Path) -> None:
    with rt.query("q"):
        rt.configure(tmp_path / "other.duckdb", merge="off")
        rt.filter(lambda: ["a"])()
    rt.flush(5)
    assert [record.kind for record in records(ragtrace_store)] == ["process", "stage", "query"]


def test_an_internal_error_is_counted_in_production_and_raised_under_test(
    ragtrace_store: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """I-25"""
    from ragtrace.recording import flow

    def broken(*arguments: Any) -> None:
        raise RuntimeError("a fault of ours")

    monkeypatch.setattr(flow, "take_output", broken)
    search = rt.retrieve(lambda query: ["a"])
    with pytest.raises(RuntimeError):
        search("q")
    with raising(False), rt.query("q"):
        assert search("q") == ["a"]
    found = recorded(ragtrace_store)
    assert {row["reason"] for row in found.rows("loss")} == {"internal_error"}
    assert found.stages[-1].row["capture_error"] == "RuntimeError while recording"


def test_a_read_only_place_never_raises(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    rt.configure(tmp_path / "file" / "traces.duckdb", merge="off", max_queue_bytes=1000)
    for _ in range(50):
        with rt.query("q"):
            rt.filter(lambda: ["a"])()
    assert not rt.flush(0.1)
    rt.shutdown(0.1)
