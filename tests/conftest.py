"""What holds for every test: a scrubbed environment, internal errors that are raised, warnings that are errors."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from ragtrace import guard
from tests.traced import Traced


def pytest_configure(config: pytest.Config) -> None:
    """Warnings are errors, and the one mark there is."""
    config.addinivalue_line("filterwarnings", "error")
    # The same examples every time, so that a failure is the change's; all of them, and new ones, with RAGTRACE_TEST_ALL.
    settings.register_profile("same examples", derandomize=not os.environ.get("RAGTRACE_TEST_ALL"))
    settings.load_profile("same examples")
    config.addinivalue_line("markers", "expects_internal_error: internal errors are swallowed as in production")


@pytest.fixture(autouse=True)
def _clean_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that the developer's shell says about ragtrace or OpenTelemetry reaches a test."""
    for name in list(os.environ):
        if name.startswith(("RAGTRACE_", "OTEL_")) and name != "RAGTRACE_SHARED_DATA":
            monkeypatch.delenv(name)


@pytest.fixture(autouse=True)
def _internal_errors(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Swallowed in production, raised under test."""
    is_expected = request.node.get_closest_marker("expects_internal_error") is not None
    monkeypatch.setattr(guard, "raise_internal", not is_expected)


@pytest.fixture
def traced(tmp_path: Path) -> Iterator[Traced]:
    """A store that is being recorded into, unconfigured again afterwards."""
    trace = Traced(tmp_path / "traces.duckdb")
    yield trace
    trace.close()
