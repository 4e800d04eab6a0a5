"""A store as a command meets it: logs that wait are merged first, labels placed, then it is opened."""

from __future__ import annotations

import contextlib
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ragtrace.cli.output import note, progress
from ragtrace.errors import RagtraceError, StoreError, StoreNotFoundError

if TYPE_CHECKING:
    import duckdb

    from ragtrace.store.merge import Merged

__all__ = ["StoreArgument", "bring_up_to_date", "must_exist", "reading", "writing"]

StoreArgument = Annotated[Path, typer.Argument(metavar="STORE", help="The .duckdb file.", show_default=False)]

_WAIT_S = 5.0
"""How long a reader waits for another process to let go of the file."""


def must_exist(store: Path, or_else: str = "run the traced service first") -> None:
    """Nothing, when there is a file or a folder of logs. Raises: StoreNotFoundError, with what else can be done."""
    from ragtrace.store.database import spool_of

    if not store.exists() and not spool_of(store).is_dir():
        raise StoreNotFoundError(
            f"there is no store at {store}, nor logs beside it: check the path ({or_else})",
            path=str(store),
        )


def bring_up_to_date(store: Path) -> Merged:
    """Merge the logs that wait and place the labels. Raises: StoreError."""
    from ragtrace.gold import placing
    from ragtrace.store.merge import merge

    must_exist(store)
    with progress() as show:
        merged = merge(store, show, after=lambda connection: placing.place(connection, show))
    if merged.set_aside:
        note(f"the database could not be opened and was set aside as {merged.set_aside}; a new one was built")
    return merged


@contextmanager
def reading(store: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store read only, brought up to date where that is possible; a note on stderr where it is not.

    Raises: StoreError.
    """
    must_exist(store)
    try:
        bring_up_to_date(store)
    except StoreError as error:
        # Two readers shut each other out of merging, not out of reading; so does a read-only folder.
        with contextlib.ExitStack() as stack:
            try:
                connection = stack.enter_context(_read_only(store))
            except RagtraceError:
                raise error from None
            note(f"shown is what was merged before: {error.message}")
            yield connection
        return
    with _read_only(store) as connection:
        yield connection


@contextmanager
def writing(store: Path) -> Iterator[duckdb.DuckDBPyConnection]:
    """The store with all logs merged, made when it is not there. Raises: StoreError."""
    from ragtrace.store import database

    if store.exists() or database.spool_of(store).is_dir():
        bring_up_to_date(store)
    with database.connect(store) as connection:
        yield connection


def _read_only(store: Path) -> duckdb.DuckDBPyConnection:
    """Opened once whoever merges at this moment is done. Raises: StoreError."""
    from ragtrace.store import database

    deadline = time.monotonic() + _WAIT_S
    while True:
        try:
            return database.connect(store, read_only=True)
        except StoreError as error:
            if error.fields.get("pid") is None or time.monotonic() > deadline:
                raise
        time.sleep(0.05)  # a merge of a running service takes a few milliseconds
