"""Commits one piece of the record: its rows and how far its logs are read, together or not at all.

What cannot be entered is found by trial and counted; it keeps nothing else out. After the last piece comes what the whole
merge ends with, in the same transaction; when that fails the rows are committed without it.
"""

from __future__ import annotations

import contextlib
import gc
import heapq
import time
from collections.abc import Callable, Iterator, Sequence
from typing import NamedTuple

import duckdb

from ragtrace import guard
from ragtrace.spool.records import Record
from ragtrace.store import judging, kept
from ragtrace.store.entering import Entered, enter
from ragtrace.store.items import Book
from ragtrace.store.staging import Piece

__all__ = ["Committed", "Committer", "Mark", "loss", "without_collector"]

# About 200 bytes each: what is known of items is kept from piece to piece up to 400 MB.
BOOK_KEYS = 2_000_000
# One bad record among 100,000 takes 35 trials. An error of ours spoils all of them, and each one is a transaction.
MOST_TRIALS = 200

_GAPS = ("damaged", "missing", "unreadable")
_OF_THE_DISK = (duckdb.IOException, duckdb.FatalException, duckdb.OutOfMemoryException, OSError)
"""Errors that no record is to blame for: the logs wait."""


class Mark(NamedTuple):
    """How far a log is read: its row of the ledger."""

    log: str
    offset: int
    n_damaged_bytes: int
    """Since the last mark of this log."""
    status: str
    process_id: int | None


class Committed(NamedTuple):
    """What a commit brought in."""

    entered: Entered
    unfinished: Exception | None
    """Why what comes after the rows is not in; the rows are."""


class _UnfinishedError(Exception):
    """What comes after the rows failed: holds why."""

    def __init__(self, error: Exception) -> None:
        super().__init__(str(error))
        self.error = error


@contextlib.contextmanager
def without_collector() -> Iterator[None]:
    """Records are many objects that live as long as their piece, and hold no cycles: walking them took a third of a merge.

    Placing labels is not done inside: it makes cycles.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


class Committer:
    """Commits the pieces of one merge, one after the other; `finish` is called after the rows of the last."""

    def __init__(self, connection: duckdb.DuckDBPyConnection, finish: Callable[[], None]) -> None:
        self.connection = connection
        self.finish = finish
        self.change: judging.Change | None = None
        self.book = Book()

    def commit(self, records: Sequence[Record], marks: Sequence[Mark], is_last: bool) -> Committed:
        """Enter what can be entered; the rest is one row of `losses` with the reason `merge_error`.

        Raises: duckdb.Error, OSError when the disk or the memory, not a record, is at fault: nothing is entered then.
        """
        try:
            committed = self._commit_all(records, marks, is_last)
        except _OF_THE_DISK:
            raise
        except Exception as error:  # one record that cannot be entered must not keep all others out for ever
            guard.swallow(error, "merge")
            good = self._good(records, marks)
            if len(good) < len(records):
                good.append(loss("merge_error", len(records) - len(good), detail=type(error).__name__))
            committed = self._commit_all(good, marks, is_last)
        if committed.entered.is_new_ground or len(self.book.keys) > BOOK_KEYS:
            self.book = Book()
        return committed

    def _commit_all(self, records: Sequence[Record], marks: Sequence[Mark], is_last: bool) -> Committed:
        """The rows with what the merge ends with; when that fails, the rows alone."""
        try:
            return Committed(self._enter(records, marks, is_last=is_last), None)
        except _UnfinishedError as error:  # labels or verdicts fail, the rows do not
            return Committed(self._enter(records, marks), error.error)

    def _enter(
        self, records: Sequence[Record], marks: Sequence[Mark], is_trial: bool = False, is_last: bool = False
    ) -> Entered:
        """Enter records and ledger in one transaction; a trial is rolled back.

        The last one ends with what the whole merge ends with. Raises: _UnfinishedError when that fails.
        """
        self.connection.execute("begin")
        try:
            with without_collector():
                entered = self._enter_rows(records, Book() if is_trial else self.book, is_last)
            self._mark(marks)
            if is_last:
                try:
                    self.finish()
                    if self.change is not None:
                        self.change.judge()
                    kept.refresh(self.connection)
                except Exception as error:  # told by the merge, when the rows are in
                    raise _UnfinishedError(error) from error
            self.connection.execute("rollback" if is_trial else "commit")
        except BaseException:
            # A full disk has ended the transaction already; what filled it is the error to tell.
            with contextlib.suppress(duckdb.Error):
                self.connection.execute("rollback")
            self.book = Book()
            raise
        return entered

    def _enter_rows(self, records: Sequence[Record], book: Book, is_last: bool) -> Entered:
        self.change = None
        if not records:
            return Entered(0, 0, 0, False)
        piece = Piece()
        piece.add(records)
        self.change = judging.begin(self.connection, piece) if is_last else None
        entered = enter(self.connection, piece, book)
        if self.change is None or entered.is_new_ground:
            kept.forget(self.connection)
        return entered

    def _good(self, records: Sequence[Record], marks: Sequence[Mark]) -> list[Record]:
        """The records without those that cannot be entered, found by halving, the largest part first.

        After MOST_TRIALS what is still in doubt is left out too: by then it is small, or nothing can be entered.
        """
        doubted = [(-len(records), 0)]
        good: list[tuple[int, int]] = []
        for _ in range(MOST_TRIALS):
            if not doubted:
                break
            minus_n, start = heapq.heappop(doubted)
            n = -minus_n
            try:
                self._enter(records[start : start + n], marks, is_trial=True)
            except _OF_THE_DISK:
                raise
            except Exception:  # what is wrong with it was counted when the whole piece failed
                if n > 1:
                    heapq.heappush(doubted, (-(n // 2), start))
                    heapq.heappush(doubted, (-(n - n // 2), start + n // 2))
            else:
                good.append((start, n))
        return [record for start, n in sorted(good) for record in records[start : start + n]]

    def _mark(self, marks: Sequence[Mark]) -> None:
        if not marks:
            return
        names = [mark.log for mark in marks]
        known = self.connection.execute(
            "select log, n_damaged_bytes, status from ledger where list_contains(?, log)", [names]
        ).fetchall()
        before = {log: n_bytes for log, n_bytes, _ in known}
        # A gap in the record is what verdicts of the ingest side are held against.
        gaps = {log for log, _, status in known if status in _GAPS}
        if gaps != {mark.log for mark in marks if mark.status in _GAPS} or any(mark.n_damaged_bytes for mark in marks):
            kept.forget(self.connection)
        self.connection.execute("delete from ledger where list_contains(?, log)", [names])
        now_ns = time.time_ns()
        self.connection.executemany(
            "insert into ledger (log, offset_bytes, process_id, status, n_damaged_bytes, merged_at_ns) values (?, ?, ?, ?, ?, ?)",
            [
                [
                    mark.log,
                    mark.offset,
                    mark.process_id,
                    mark.status,
                    mark.n_damaged_bytes + (before.get(mark.log) or 0),
                    now_ns,
                ]
                for mark in marks
            ],
        )


def loss(reason: str, n: int, process_id: int | None = None, detail: str | None = None) -> Record:
    """What the merge itself could not take in, as a record like those of the recorder."""
    now_ns = time.time_ns()
    row = {
        "process_id": process_id,
        "reason": reason,
        "n": n,
        "first_at_ns": now_ns,
        "last_at_ns": now_ns,
        "detail": detail,
    }
    return Record("loss", row)
