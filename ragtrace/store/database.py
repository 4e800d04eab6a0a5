"""Opens the store: one DuckDB file with the tables of `ragtrace.schema` and the views of `queries/views`.

Settings: storage version v1.2.0, so that DuckDB 1.2 to 2.0 read the file; no replacement scans, so that a Python variable
is never taken for a table; no progress bar; 1 GiB of memory, enough for reports over 100 million candidates (they spill beyond it);
checkpoints only where the merge asks for one (see `sidecar`).
"""

from __future__ import annotations

import contextlib
import os
import re
import time
import uuid
from pathlib import Path
from typing import Any

import duckdb

from ragtrace import schema
from ragtrace.errors import DamagedStoreError, StoreError, StoreNotFoundError
from ragtrace.spool.log import spool_of
from ragtrace.store import kept, migrations, sidecar, tables, views

__all__ = ["SETTINGS", "connect", "explained", "is_damage", "is_duckdb", "spool_of"]

STORAGE_VERSION = "v1.2.0"

SETTINGS: dict[str, float] = {"min_coverage": 1.0, "clock_skew_ms": 1000.0}
"""Defaults of the table `settings`."""

_LOCKED = re.compile(r"could not set lock on file", re.IGNORECASE)
_DAMAGED = re.compile(
    r"corrupt|not a valid duckdb|checksum|deserializ|serialization|failure while replaying|could not read enough bytes",
    re.IGNORECASE,
)


def connect(path: str | Path, read_only: bool = False) -> duckdb.DuckDBPyConnection:
    """Open a store; unless `read_only`, create it when it is not there and bring schema, views and verdicts up to date.

    A file torn in a checkpoint is repaired from its sidecar first. Verdicts that a killed merge left uncomputed are
    computed; for this connection alone when it is read-only.

    Raises:
        StoreNotFoundError: read-only and there is no file.
        SchemaVersionError: the file is newer than this ragtrace.
        DamagedStoreError: DuckDB cannot read the file and the sidecar does not help.
        StoreError: the file is locked by another process, is no ragtrace store, or cannot be written.
    """
    path = Path(path)
    if not path.exists():
        if read_only:
            raise StoreNotFoundError(
                f"There is no store at {path}: check the path, or run the traced service first.", path=str(path)
            )
        _make_folder(path)
    elif path.is_dir():
        raise StoreError(f"{path} is a folder: give the path of the .duckdb file.", path=str(path))
    connection = _open(path, read_only)
    try:
        _prepare(connection, path, read_only)
    except BaseException:
        connection.close()
        raise
    return connection


def is_duckdb(path: str | Path) -> bool:
    """Does the file begin like a DuckDB file?"""
    with open(path, "rb") as file:
        return file.read(12)[8:] == b"DUCK"


def _prepare(connection: duckdb.DuckDBPyConnection, path: Path, read_only: bool) -> None:
    names = {row[0] for row in connection.execute("select table_name from duckdb_tables()").fetchall()}
    if "store_facts" not in names:
        if names or read_only:
            raise StoreError(f"{path} is a DuckDB file but no ragtrace store: give another path.", path=str(path))
        _create(connection)
    migrations.migrate(connection, str(path), read_only)
    if not read_only:
        tables.split(connection, names)
    if read_only:
        if kept.is_stale(connection):
            kept.stand_in(connection)
    else:
        views.install(connection)
        kept.refresh(connection)
        # Without a sidecar a kill inside the next checkpoint may cost the file; a full disk must not cost the merge.
        with contextlib.suppress(OSError):
            sidecar.keep(connection, path)


def _create(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("begin")
    for statement in tables.create_statements():
        connection.execute(statement)
    facts = {
        "schema_version": str(schema.SCHEMA_VERSION),
        "created_by": "ragtrace",
        "created_at_ns": str(time.time_ns()),
        "store_id": uuid.uuid4().hex,
    }
    connection.executemany("insert into store_facts values (?, ?)", [list(fact) for fact in facts.items()])
    connection.executemany("insert into settings values (?, ?)", [list(setting) for setting in SETTINGS.items()])
    connection.execute("commit")


def _configuration(read_only: bool) -> dict[str, Any]:
    configuration: dict[str, Any] = {
        "python_enable_replacements": "false",
        "memory_limit": os.environ.get("RAGTRACE_MEMORY_LIMIT", "1GiB"),
    }
    if not read_only:
        configuration |= {"storage_compatibility_version": STORAGE_VERSION, "wal_autocheckpoint": "1TB"}
    return configuration


def _open(path: Path, read_only: bool) -> duckdb.DuckDBPyConnection:
    try:
        return _try(path, read_only)
    except duckdb.Error as error:
        if not _DAMAGED.search(str(error)):
            raise explained(error, path) from error
        if not sidecar.restore(path):
            raise explained(error, path) from error
    try:
        return _try(path, read_only)
    except duckdb.Error as error:
        raise explained(error, path) from error


def _try(path: Path, read_only: bool) -> duckdb.DuckDBPyConnection:
    connection = duckdb.connect(str(path), read_only=read_only, config=_configuration(read_only))
    # No option to connect with. A long statement would draw the bar into the output of whoever merges. In Jupyter without
    # ipywidgets DuckDB has it off already and refuses to be told so.
    with contextlib.suppress(duckdb.InvalidInputException):
        connection.execute("set enable_progress_bar = false")
    if not read_only:
        # Set after opening: unknown before DuckDB 2.0, where commits checkpoint by the size of the log alone. Large commits
        # must not checkpoint by themselves, since every checkpoint needs a fresh sidecar.
        with contextlib.suppress(duckdb.Error):
            connection.execute("set auto_checkpoint_skip_wal_threshold = 9000000000000")
    return connection


def _make_folder(path: Path) -> None:
    try:
        path.parent.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise StoreError(
            f"{path} cannot be created ({error.strerror}): give a path that can be written.", path=str(path)
        ) from error


def is_damage(error: duckdb.Error) -> bool:
    """Does DuckDB say that the file, not the machine, is at fault?"""
    return bool(_DAMAGED.search(str(error)))


def explained(error: duckdb.Error, path: Path) -> StoreError:
    """An error of opening or reading the file, as one that says what to do."""
    text = str(error)
    if _LOCKED.search(text):
        found = re.search(r"\(PID (\d+)\)", text)
        who = f"process {found[1]}" if found else "another process"
        return StoreError(
            f"{path} is in use by {who}: close it there (a DuckDB shell, a notebook, a merge) and try again.",
            path=str(path),
            pid=int(found[1]) if found else None,
        )
    if "different configuration" in text:
        return StoreError(
            f"{path} is already open in this process with other settings: close that connection first.", path=str(path)
        )
    if _DAMAGED.search(text):
        return DamagedStoreError(
            f"{path} cannot be read by DuckDB ({text.splitlines()[0]}): run `ragtrace merge {path}`, which sets the file "
            "aside under a new name and builds a new one from the logs that are still there.",
            path=str(path),
        )
    return StoreError(f"{path} cannot be opened: {text.splitlines()[0]}", path=str(path))
