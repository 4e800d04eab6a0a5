"""The command as a person runs it, beside a small traced store."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path

import pytest
from typer.testing import CliRunner, Result

from ragtrace.cli.main import app
from tests.unit.cli import library

Run = Callable[..., Result]


@pytest.fixture(scope="session")
def library_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Traced, merged and labelled once; never to be written to."""
    folder = tmp_path_factory.mktemp("library")
    store = folder / "traces.duckdb"
    library.trace(store)
    result = CliRunner().invoke(app, ["gold", "load", str(store), str(library.write_gold(folder / "gold.jsonl"))])
    assert result.exit_code == 0, result.output
    return store


@pytest.fixture
def store(library_store: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A copy of it in the working folder, by its relative path `traces.duckdb`, with `gold.jsonl` and the module `service` beside it."""
    for name in ("traces.duckdb", "gold.jsonl"):
        shutil.copy(library_store.with_name(name), tmp_path / name)
    (tmp_path / "service.py").write_text("from tests.unit.cli.library import retrievers\n", encoding="utf-8")
    monkeypatch.chdir(tmp_path)
    return Path("traces.duckdb")


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs `ragtrace` with the given words, 100 columns wide."""
    monkeypatch.setenv("COLUMNS", "100")

    def invoke(*words: object) -> Result:
        return CliRunner().invoke(app, [str(word) for word in words])

    return invoke
