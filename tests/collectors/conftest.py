"""A collector's intake in this process, and the real command in another."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from ragtrace import settings
from ragtrace.cli.opening import bring_up_to_date
from ragtrace.gold import loading
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace.spool import reader
from ragtrace.spool.log import spool_of
from ragtrace.spool.records import StageRecord
from ragtrace.store import database
from ragtrace_collectors.intake import Intake, Limits

ROOT = Path(__file__).parents[2]


@pytest.fixture
def store(tmp_path: Path) -> Path:
    return tmp_path / "traces.duckdb"


@pytest.fixture
def intake(store: Path) -> Iterator[Intake]:
    """Without a journal; a request taken in is written by `write_all`."""
    made = Intake(settings_of(store), VOCABULARIES, Limits())
    yield made
    made.close()


def settings_of(store: Path) -> settings.Settings:
    return settings.read(
        store, run="test", run_kind=None, service=None, tracer_provider=None, capture_text=None, redact=None,
        max_queue_bytes=None, merge="off",
    )  # fmt: skip


@pytest.fixture
def rows(store: Path) -> Callable[..., list[tuple[Any, ...]]]:
    """Merge, load labels when there are any, and ask."""

    def ask(sql: str, gold: list[dict[str, Any]] | None = None) -> list[tuple[Any, ...]]:
        bring_up_to_date(store)
        if gold:
            with database.connect(store) as connection:
                loading.load_rows(connection, gold)
        with database.connect(store, read_only=True) as connection:
            return connection.execute(sql).fetchall()

    return ask


@pytest.fixture
def told(store: Path) -> Callable[[], list[StageRecord]]:
    """The stages in the logs, in the order in which they began: no database is needed to look at them."""

    def read() -> list[StageRecord]:
        records = [record for log in reader.logs(spool_of(store)) for record in reader.read(log.path).records]
        stages = [record.body for record in records if record.kind == "stage"]
        return sorted(stages, key=lambda stage: stage.row["start_no"])

    return read


def environment(**given: str) -> dict[str, str]:
    """This very checkout in another process."""
    return {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT), str(ROOT / "collectors")]), **given}


class Collector:
    """`ragtrace collect` in a process of its own."""

    def __init__(self, store: Path, *arguments: str, **given: str) -> None:
        self.process = subprocess.Popen(
            [
                sys.executable,
                "-m",
                "ragtrace",
                "collect",
                str(store),
                "--http-port",
                "0",
                "--grpc-port",
                "0",
                *arguments,
            ],
            stderr=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            text=True,
            env=environment(RAGTRACE_MERGE="off", **given),
        )
        assert self.process.stderr is not None
        self.said = []
        self.http = ""
        while not self.http:
            line = self.process.stderr.readline()
            if not line:
                raise AssertionError(f"the collector did not start: {self.said}")
            self.said.append(line)
            if "http://" in line:
                self.grpc, self.http = re.findall(r" at (\S+?)(?:,|\s*$)", line)

    def stop(self) -> int:
        self.process.terminate()
        return self.process.wait(20)

    def kill(self) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait(10)
        if self.process.stderr is not None:
            self.process.stderr.close()


@pytest.fixture
def collector(store: Path) -> Iterator[Callable[..., Collector]]:
    """Starts a collector on the store; whatever was started has ended when the test ends."""
    started: list[Collector] = []

    def start(*arguments: str, **given: str) -> Collector:
        started.append(Collector(store, *arguments, **given))
        return started[-1]

    yield start
    for one in started:
        one.kill()
