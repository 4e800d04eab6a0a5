"""docs/operation.md: its settings, commands and bounds are what the code does."""

from __future__ import annotations

import inspect
import re
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import settings
from ragtrace.spool.log import MAX_LOG_BYTES
from ragtrace.store import clearing, files, health
from ragtrace.store.merge import CHECKPOINT_WAL_BYTES, PIECE_BYTES

PAGE = Path(__file__).resolve().parents[3] / "docs" / "operation.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = re.findall(r"^\| `(\w+)` \| `(RAGTRACE_\w+)` \| ([^|]+) \|", TEXT, re.MULTILINE)

OTHERS = {
    "store": "other.duckdb", "run": "r", "run_kind": "oracle", "service": "s", "capture_text": "none", "max_queue_bytes": "12",
    "merge": "off", "redact": "builtins:str", "tracer_provider": "tests.unit.cli.test_operation_page:Provider",
}  # fmt: skip


class Provider:
    """What is taken for a tracer provider."""

    get_tracer = print


def _read(**given: Any) -> settings.Settings:
    names = [name for name, _, _ in ROWS if name != "store"]
    return settings.read(given.pop("store", None), **{name: given.get(name) for name in names})


def test_the_table_has_every_argument_of_configure() -> None:
    assert [name for name, _, _ in ROWS] == list(inspect.signature(rt.configure).parameters)
    assert {name for name, _, _ in ROWS} == set(settings.Settings._fields)


def test_defaults_are_those_of_the_table() -> None:
    found = _read(store="x.duckdb")
    for name, _, default in ROWS:
        if default.startswith("`"):
            assert str(getattr(found, name)) == default.strip("`")
        elif name != "store":
            assert getattr(found, name) is None


@pytest.mark.parametrize(("name", "variable"), [(name, variable) for name, variable, _ in ROWS])
def test_the_environment_sets_what_no_argument_does(name: str, variable: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("RAGTRACE_STORE", "first.duckdb")
    monkeypatch.setenv(variable, OTHERS[name])
    found = getattr(_read(), name)
    if name in ("redact", "tracer_provider"):
        assert callable(found)
    else:
        assert str(found).endswith(OTHERS[name])
    if name in ("run", "service"):
        assert getattr(_read(**{name: "argument"}), name) == "argument"


def test_every_command_of_the_page_runs(store: Path, run: Any) -> None:
    commands = re.findall(r"^\$ ragtrace (.+)$", TEXT, re.MULTILINE)
    assert len(commands) == 4
    for command in commands:
        assert run(*command.split()).exit_code == 0, command


def test_the_bounds_that_are_said_are_those_of_the_code() -> None:
    assert MAX_LOG_BYTES == 64 << 20
    assert clearing.MAX_DAMAGED == 20
    assert files.MANY_LOGS == 1000
    assert CHECKPOINT_WAL_BYTES + PIECE_BYTES <= 512 << 20


def test_sentences_to_alert_on_are_those_that_doctor_says() -> None:
    said = re.findall(r"^\| ([a-z][\w ]+) \| [^|]+ \| [^|]+ \|$", TEXT, re.MULTILINE)
    source = inspect.getsource(health) + inspect.getsource(files)
    for sentence in [one for one in said if one not in ("said", "argument", "file")]:
        words = sentence.removeprefix("are ").removeprefix("bytes of ")
        assert words in source, sentence
