"""Brings an older store file to the current schema version, one step at a time, in one transaction."""

from __future__ import annotations

import contextlib
from collections.abc import Callable

import duckdb

from ragtrace import schema
from ragtrace.errors import SchemaVersionError, StoreError

__all__ = ["STEPS", "migrate", "version"]


def _add_probe_columns(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("alter table stages add column if not exists probed_stage_id bigint")
    connection.execute("alter table stages add column if not exists index_version varchar")


def _add_list_columns(connection: duckdb.DuckDBPyConnection) -> None:
    connection.execute("alter table lists add column if not exists also_same_as bigint[]")
    connection.execute("alter table lists add column if not exists declared_sources bigint[]")


def _to_version_2(connection: duckdb.DuckDBPyConnection) -> None:
    _add_probe_columns(connection)
    _add_list_columns(connection)


STEPS: dict[int, Callable[[duckdb.DuckDBPyConnection], None]] = {1: _to_version_2}
"""The step stored under n brings a file from version n to n + 1."""


def version(connection: duckdb.DuckDBPyConnection) -> int:
    """The schema version stored in the file. Raises StoreError when it says none."""
    # fetchall throughout: since DuckDB 2.0 a result that is not read to its end keeps the connection busy.
    rows = connection.execute("select value from store_facts where name = 'schema_version'").fetchall()
    if not rows or not str(rows[0][0]).isdigit():
        raise StoreError(
            "The store does not say its schema version; it was not made by ragtrace or was changed by hand."
        )
    return int(rows[0][0])


def migrate(connection: duckdb.DuckDBPyConnection, path: str, is_read_only: bool) -> None:
    """Do nothing for the current version, migrate an older file, refuse a newer one.

    Raises:
        SchemaVersionError: the file is newer, or it is older and opened read-only.
    """
    found = version(connection)
    if found == schema.SCHEMA_VERSION:
        return
    if found > schema.SCHEMA_VERSION:
        raise SchemaVersionError(
            f"{path} was written by a newer ragtrace (schema {found}, this one knows {schema.SCHEMA_VERSION}): "
            "upgrade ragtrace, or export the data with the version that wrote it.",
            path=path,
            found=found,
            known=schema.SCHEMA_VERSION,
        )
    if is_read_only:
        raise SchemaVersionError(
            f"{path} has schema {found} and needs schema {schema.SCHEMA_VERSION}: run `ragtrace merge {path}` once to migrate it.",
            path=path,
            found=found,
            known=schema.SCHEMA_VERSION,
        )
    connection.execute("begin")
    try:
        for step in range(found, schema.SCHEMA_VERSION):
            if step not in STEPS:
                raise SchemaVersionError(
                    f"{path} has schema {found}, which this ragtrace can no longer migrate: use an older release first.",
                    path=path,
                    found=found,
                    known=schema.SCHEMA_VERSION,
                )
            STEPS[step](connection)
            connection.execute("update store_facts set value = ? where name = 'schema_version'", [str(step + 1)])
        connection.execute("commit")
    except BaseException:
        # A full disk has ended the transaction already; what filled it is the error to tell.
        with contextlib.suppress(duckdb.Error):
            connection.execute("rollback")
        raise
