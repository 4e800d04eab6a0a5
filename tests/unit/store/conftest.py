"""An empty store to merge into, copied: installing the views takes longer than most of these tests."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

from ragtrace.store import database


@pytest.fixture(scope="session")
def _empty_store(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("empty") / "empty.duckdb"
    database.connect(path).close()
    return path


@pytest.fixture
def store(tmp_path: Path, _empty_store: Path) -> Path:
    """The path of a store with all tables and views and no rows."""
    path = tmp_path / "tr äces.duckdb"
    shutil.copyfile(_empty_store, path)
    return path
