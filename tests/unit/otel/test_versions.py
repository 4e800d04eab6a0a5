"""Recording on every supported interpreter, and with the oldest and the newest OpenTelemetry: in environments made for it.

They are made in a temporary folder from what the package index has, so this runs with all tests only.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

CHECKOUT = Path(__file__).resolve().parents[3]
pytestmark = [
    pytest.mark.full,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(
        not os.environ.get("RAGTRACE_TEST_ALL"),
        reason="makes environments from the package index: set RAGTRACE_TEST_ALL=1",
    ),
]

# What the tests of recording themselves need; what the package needs comes with its versions below.
NEEDED = ["pytest>=8.2", "pytest-timeout", "hypothesis", "numpy", "duckdb", "pyarrow"]
NEWEST = ["opentelemetry-api", "opentelemetry-sdk"]
# The first API with NoOpTracerProvider; older ones record a process and no query.
OLDEST = ["opentelemetry-api==1.9.0", "opentelemetry-sdk==1.9.0"]
# Entry points of that age are read through pkg_resources, which later setuptools left out.
OF_THAT_AGE = ["setuptools<80"]


def interpreter(version: str) -> str | None:
    """A Python of that version, on the path or where pyenv keeps them; None when there is none that starts."""
    root = Path(os.environ.get("PYENV_ROOT", Path.home() / ".pyenv"))
    found = [shutil.which(f"python{version}"), *map(str, sorted(root.glob(f"versions/{version}.*/bin/python")))]
    for path in filter(None, found):
        said = subprocess.run(
            [path, "-c", "import sys; print('%d.%d' % sys.version_info[:2])"],
            capture_output=True,
            text=True,
            check=False,
        )
        if said.stdout.strip() == version:
            return path
    return None


def environment(folder: Path, python: str, packages: list[str]) -> Path:
    """A new virtual environment's interpreter."""
    subprocess.run([python, "-m", "venv", str(folder)], check=True, capture_output=True)
    made = folder / "bin" / "python"
    command = [str(made), "-m", "pip", "install", "--quiet", "--disable-pip-version-check", *packages]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return made


def passes(python: Path, folder: Path, *arguments: str) -> None:
    done = subprocess.run(
        [str(python), "-m", "pytest", "-q", "-p", "no:cacheprovider", "-c", str(CHECKOUT / "pyproject.toml"),
         "--basetemp", str(folder / "basetemp"), *arguments],
        cwd=CHECKOUT, capture_output=True, text=True, check=False,
        env={name: value for name, value in os.environ.items() if name not in ("RAGTRACE_TEST_ALL", "PYTEST_XDIST_WORKER")},
    )  # fmt: skip
    print(f"{python}: {done.stdout.strip().splitlines()[-1:]}")
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]


@pytest.mark.parametrize("version", ["3.10", "3.11", "3.12", "3.13"])
def test_recording_holds_on_each_interpreter(version: str, tmp_path: Path) -> None:
    found = interpreter(version)
    if found is None:
        pytest.skip(f"there is no Python {version} here: unverified")
    python = environment(tmp_path / "environment", found, [*NEEDED, *NEWEST])
    passes(python, tmp_path, "tests/unit/recording", "tests/unit/spool", "tests/unit/otel", "tests/process/test_endings.py",
           "tests/process/test_concurrency.py", "tests/process/test_forks.py")  # fmt: skip


@pytest.mark.parametrize("packages", [OLDEST + OF_THAT_AGE, NEWEST], ids=["oldest", "newest"])
def test_spans_and_rows_are_the_same_with_the_oldest_and_the_newest_sdk(packages: list[str], tmp_path: Path) -> None:
    """I-22"""
    python = environment(tmp_path / "environment", sys.executable, [*NEEDED, *packages])
    passes(python, tmp_path, "-W", "ignore::DeprecationWarning", "-W", "ignore::UserWarning",
           "tests/unit/otel", "tests/unit/recording/test_spans.py", "tests/unit/recording/test_generators.py")  # fmt: skip
