"""Merges the logs of a spool into the store: each row exactly once, whatever crashes when.

One merger at a time (flock on `merge.lock`). Each log is read from its offset in the ledger, live ones too; rows and ledger are
committed together. A log is removed when its writer is dead, all of it is merged, and a later merge has opened the file again
(`clearing`). A file that cannot be opened is set aside (`rescue`), and what that costs is counted (`beside`).
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import duckdb

from ragtrace.errors import DamagedStoreError, StoreError, StoreNotFoundError
from ragtrace.progress import Progress
from ragtrace.spool import reader
from ragtrace.spool.records import Record, StageRecord
from ragtrace.store import again, beside, clearing, database, kept, rescue, sidecar
from ragtrace.store.commit import Committer, Mark, loss, without_collector
from ragtrace.store.lock import only_one
from ragtrace.store.staging import count_candidates

__all__ = ["Merged", "merge"]

# One piece of 10 M candidates was three times slower to parse than pieces of half a million: caches.
PIECE_CANDIDATES = 500_000
PIECE_BYTES = 256 << 20
READ_BYTES = 16 << 20
CHECKPOINT_WAL_BYTES = 256 << 20


class Merged(NamedTuple):
    """What a merge brought in."""

    n_queries: int = 0
    n_stages: int = 0
    n_candidates: int = 0
    n_logs: int = 0
    """Logs from which anything was read."""
    n_damaged_bytes: int = 0
    set_aside: str | None = None
    """New name of a database file that could not be opened or repaired."""


def merge(
    path: str | Path,
    progress: Progress | None = None,
    wait_s: float = 30.0,
    after: Callable[[duckdb.DuckDBPyConnection], object] | None = None,
) -> Merged:
    """Bring everything in the spool of `path` into the store.

    `progress` is called with what is done, bytes done, bytes in all. `after` is called with the open connection when all rows are in.

    Raises:
        StoreNotFoundError: there is neither a file nor a spool.
        StoreError: another process merges for longer than `wait_s` seconds, or has the file open.
    """
    path = Path(path)
    spool = database.spool_of(path)
    if not path.exists() and not spool.is_dir():
        raise StoreNotFoundError(
            f"There is no store and no spool at {path}: check the path, or run the traced service first.",
            path=str(path),
        )
    if not spool.is_dir() and path.is_file() and path.stat().st_size and not database.is_duckdb(path):
        raise StoreError(f"{path} is no DuckDB file: give the path of a ragtrace store.", path=str(path))
    with only_one(path, wait_s):
        opened = rescue.open_store(path)
        try:
            merged = _fill(opened, path, spool, progress, after)
        except DamagedStoreError:
            # A block that no opening reads: rows of it are gone as surely as with the whole file.
            opened.connection.close()
            opened = rescue.open_anew(path)
            merged = _fill(opened, path, spool, progress, after)
        finally:
            opened.connection.close()
    return merged._replace(set_aside=opened.set_aside)


def _fill(
    opened: rescue.Opened,
    path: Path,
    spool: Path,
    progress: Progress | None,
    after: Callable[[duckdb.DuckDBPyConnection], object] | None,
) -> Merged:
    """Merge into an open store. Raises: DamagedStoreError when a block of the file cannot be read."""
    connection = opened.connection
    try:
        clearing.sweep(path, spool)
        risk = beside.Risk(beside.read(spool), connection, opened.is_new_file)
        # Pieces are small: on one thread they take a quarter of the processor time of two, and the service keeps the other core.
        connection.execute("set threads = 1")

        def finish() -> None:
            _mark_interrupted(connection)
            connection.execute("reset threads")
            rescue.note_risk(connection, risk, opened.set_aside)
            if after is not None:
                after(connection)

        merged = _Merger(connection, path, spool, progress, risk, finish).run()
        beside.keep(connection, spool)
        if _size(_wal(path)):
            sidecar.checkpoint(connection, path)
    except duckdb.Error as error:
        if database.is_damage(error):
            raise database.explained(error, path) from error
        raise
    return merged


def _wal(path: Path) -> Path:
    return path.with_name(path.name + ".wal")


class _Merger:
    """One run over the logs of a spool."""

    def __init__(
        self,
        connection: duckdb.DuckDBPyConnection,
        path: Path,
        spool: Path,
        progress: Progress | None,
        risk: beside.Risk,
        finish: Callable[[], None],
    ) -> None:
        self.connection = connection
        self.path = path
        self.spool = spool
        self.progress = progress
        self.risk = risk
        self.committer = Committer(connection, finish)
        self.merged = Merged()
        self.records: list[Record] = []
        self.n_rows = 0
        self.piece_bytes = 0
        self.marks: dict[str, Mark] = {}

    def run(self) -> Merged:
        """Remove what an earlier merge brought in for good, then read every log."""
        ledger = {
            row[0]: row[1:]
            for row in self.connection.execute("select log, offset_bytes, status, process_id from ledger").fetchall()
        }
        logs = reader.logs(self.spool)
        states = {name: (offset, status) for name, (offset, status, _) in ledger.items()}
        clearing.clear(self.connection, self.path, self.spool, states, {log.path.name for log in logs})
        waiting = []
        for log in logs:
            offset, status, process_id = ledger.get(log.path.name, (0, "open", None))
            if status not in ("done", "damaged"):
                waiting.append((log, offset, process_id))
        total = sum(max(_size(log.path) - offset, 0) for log, offset, _ in waiting)
        done = 0
        with without_collector():
            for log, offset, process_id in waiting:
                for n_bytes in self._read(log, offset, process_id):
                    done += n_bytes
                    if self.progress is not None:
                        self.progress("merging logs", min(done, total), total)
        self._commit(is_last=True)
        return self.merged

    def _read(self, log: reader.Log, offset: int, process_id: int | None) -> Iterator[int]:
        """Take in one log piece by piece; yields the bytes read."""
        name = log.path.name
        n_damaged = 0
        has_read = is_again = False
        # An empty log has lost even the first record, which it is born with.
        is_damaged = _size(log.path) == 0
        if offset > _size(log.path):
            # Cut by a tool or by a crash of the machine, and written to since: what is there may be new or merged before.
            is_again = True
            self.records.append(_shrunk(name, process_id))
            offset = 0
        while True:
            known_until = self.risk.known_until(name)
            try:
                batch = reader.read(
                    log.path, offset, min(READ_BYTES, known_until - offset) if known_until > offset else READ_BYTES
                )
            except OSError:  # gone, or not ours to read: it stays where it is, and is asked for again
                if log.path.exists():
                    self.marks[name] = Mark(name, offset, n_damaged, "unreadable", process_id)
                return
            n_read = batch.next_offset - offset
            n_damaged += batch.n_damaged_bytes
            if batch.records:
                records = again.without_known(self.connection, batch.records) if is_again else batch.records
                if offset < known_until:
                    self.risk.bring_back(records)
                self.records += records
                self.n_rows += count_candidates(records)
                process_id = process_id or _process_id(batch.records)
            if batch.n_newer:
                self.records.append(_newer(batch.n_newer, process_id))
            offset = batch.next_offset
            has_read = has_read or n_read > 0
            is_end = n_read == 0 or batch.is_torn_tail or offset >= _size(log.path)
            status = "open"
            if is_end and not log.is_alive:
                # Nobody will finish a torn tail of a dead writer.
                torn = max(_size(log.path) - offset, 0)
                n_damaged += torn
                offset += torn
                status = "damaged" if n_damaged or is_damaged else "done"
            if has_read or status != "open":
                self.marks[name] = Mark(name, offset, n_damaged, status, process_id)
            self.piece_bytes += n_read
            if self.n_rows >= PIECE_CANDIDATES or self.piece_bytes >= PIECE_BYTES:
                self._commit()
                is_damaged, n_damaged = is_damaged or n_damaged > 0, 0
            yield n_read
            if is_end:
                break
        if has_read:
            self.merged = self.merged._replace(n_logs=self.merged.n_logs + 1)

    def _commit(self, is_last: bool = False) -> None:
        """Rows and ledger in one transaction; after the last ones also what the whole merge ends with."""
        if not self.marks and not is_last:
            return
        committed = self.committer.commit(self.records, list(self.marks.values()), is_last)
        entered = committed.entered
        self.merged = self.merged._replace(
            n_queries=self.merged.n_queries + entered.n_queries,
            n_stages=self.merged.n_stages + entered.n_stages,
            n_candidates=self.merged.n_candidates + entered.n_candidates,
            n_damaged_bytes=self.merged.n_damaged_bytes + sum(mark.n_damaged_bytes for mark in self.marks.values()),
        )
        self.records, self.n_rows, self.piece_bytes, self.marks = [], 0, 0, {}
        if _size(_wal(self.path)) > CHECKPOINT_WAL_BYTES:
            sidecar.checkpoint(self.connection, self.path)
        if committed.unfinished is not None:
            raise committed.unfinished


_INTERRUPTED = """
insert into queries (query_id, run, run_kind, status, started_at_ns, duration_ns, process_id, trace_id)
with
alive as (select distinct process_id from ledger where status = 'open' and process_id is not null),
cut_off as (
    select
        query_id, min(started_at_ns) as started_at_ns, max(started_at_ns + duration_ns) as ended_at_ns,
        any_value(process_id) as process_id, any_value(trace_id) as trace_id
    from stages
    where
        query_id is not null
        and query_id not in (select query_id from queries)
        and process_id is not null
        and process_id not in (select process_id from alive)
    group by query_id
),
labelled as (
    -- Its own label went down with its row: that of the process's nearest query stands for it.
    select
        cut_off.query_id,
        arg_min(queries.run, abs(queries.query_id - cut_off.query_id)) as run,
        arg_min(queries.run_kind, abs(queries.query_id - cut_off.query_id)) as run_kind
    from cut_off
    inner join queries on cut_off.process_id = queries.process_id
    group by cut_off.query_id
)
select
    cut_off.query_id, labelled.run, coalesce(labelled.run_kind, 'actual'), 'interrupted', cut_off.started_at_ns,
    cut_off.ended_at_ns - cut_off.started_at_ns, cut_off.process_id, cut_off.trace_id
from cut_off
left join labelled on cut_off.query_id = labelled.query_id
"""


def _mark_interrupted(connection: duckdb.DuckDBPyConnection) -> None:
    """Give queries without a row, whose process is dead, one with status `interrupted`."""
    if connection.execute(_INTERRUPTED).fetchall()[0][0]:
        kept.forget(connection)


def _shrunk(log: str, process_id: int | None) -> Record:
    return loss("log_shrank", 1, process_id, log)


def _newer(n: int, process_id: int | None) -> Record:
    return loss("newer_record", n, process_id)


def _process_id(records: Sequence[Record]) -> int | None:
    for record in records:
        row = record.body.row if isinstance(record.body, StageRecord) else record.body
        if isinstance(row, dict) and row.get("process_id") is not None:
            return int(row["process_id"])
    return None


def _size(path: Path) -> int:
    try:
        return path.stat().st_size
    except OSError:
        return 0
