"""What `ragtrace doctor` says of the files: the database, its spool, what was set aside, and how large they are."""

from __future__ import annotations

import os
from pathlib import Path

import duckdb

from ragtrace.spool import reader
from ragtrace.store import beside, clearing, database, rescue, sidecar
from ragtrace.store.findings import Finding, counted, moment, some

__all__ = ["beside_the_store", "logs", "sizes", "unopenable"]

BYTES_PER_CANDIDATE = 26
"""Three hundred merges of a thousand candidates each left 26 bytes a candidate, 17 after compacting."""
MANY_LOGS = 1000
"""A merge of a thousand small logs takes about a second; a reader should not have to wait for more."""


def beside_the_store(path: Path) -> list[Finding]:
    """What is known without opening the database: files set aside, and files of others in the spool."""
    return [*_set_aside(path), *_spool(path)]


def unopenable(path: Path) -> Finding:
    """What is known of a file that DuckDB cannot read."""
    kept = beside.read(database.spool_of(path))
    if kept is None:
        held = "how much it held is not known"
    else:
        counts = f"{kept.counts.get('n_queries', 0):,} queries and {kept.counts.get('n_candidates', 0):,} candidates"
        held = f"at {moment(kept.at_ns)} it held {counts}; those whose logs are still there come back, the others are at risk"
    return Finding(
        "incomplete",
        "database",
        0 if kept is None else kept.counts.get("n_queries", 0),
        f"{path.name} cannot be read, and the copy of its metadata does not help: {held}.",
        f"Run `ragtrace merge {path}`: it sets the file aside under a new name and builds a new one from the logs. "
        "If you have a backup of the file, keep it: rows that are in the backup only can be read from it.",
    )


def logs(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Finding]:
    """The logs of the spool, held against the ledger. Raises: duckdb.Error."""
    spool = database.spool_of(path)
    ledger = {
        row[0]: row[1:]
        for row in connection.execute(
            "select log, offset_bytes, status, n_damaged_bytes from ledger order by log"
        ).fetchall()
    }
    n_waiting = n_live = waiting_bytes = n_kept = 0
    unreadable, shrunk = [], []
    for log in reader.logs(spool):
        offset, status, _ = ledger.get(log.path.name, (0, "open", 0))
        try:
            size = log.path.stat().st_size
        except FileNotFoundError:
            continue  # a merge took it in just now
        if not os.access(log.path, os.R_OK):
            unreadable.append(log.path.name)
            continue
        n_live += log.is_alive
        n_kept += status in ("done", "damaged")
        if size < offset:
            shrunk.append(log.path.name)
        elif status not in ("done", "damaged") and size > offset:
            n_waiting += 1
            waiting_bytes += size - offset
    findings = [
        Finding(
            "good",
            "logs",
            n_live,
            f"{counted(n_live, 'process', 'processes')} writing." if n_live else "No process is writing.",
        )
    ]
    if n_waiting:
        findings.append(
            Finding(
                "note",
                "logs",
                waiting_bytes,
                f"{counted(n_waiting, 'log')} waiting with {waiting_bytes:,} bytes that are not merged yet.",
                f"The next report takes them in, or `ragtrace merge {path}`"
                + (
                    ": have it run every few minutes, so many logs make readers wait." if n_waiting > MANY_LOGS else "."
                ),
            )
        )
    if n_kept:
        findings.append(
            Finding(
                "good", "logs", n_kept, f"{counted(n_kept, 'merged log')} kept until the next merge, as a second copy."
            )
        )
    if unreadable:
        findings.append(
            Finding(
                "incomplete",
                "logs",
                len(unreadable),
                f"{counted(len(unreadable), 'log')} not readable by this user: {some(unreadable)}.",
                "Merge as the user of the service, or give the folder a group that both are in; nothing is lost meanwhile.",
            )
        )
    if shrunk:
        findings.append(
            Finding(
                "incomplete",
                "logs",
                len(shrunk),
                f"{counted(len(shrunk), 'log')} shorter than what was read of them: {some(shrunk)}.",
                "Something else cuts files in the spool (a log rotation that truncates?): leave the folder to ragtrace.",
            )
        )
    damaged = [name for name, (_, status, n_bytes) in ledger.items() if n_bytes or status == "damaged"]
    if damaged:
        n_bytes = sum(ledger[name][2] or 0 for name in damaged)
        findings.append(
            Finding(
                "incomplete",
                "logs",
                n_bytes,
                f"{n_bytes:,} bytes of logs were damaged and could not be read; {counted(len(damaged), 'log')} concerned: {some(damaged)}. What was "
                "whole before and behind the damage is in the store.",
                "A killed process leaves a cut end: then a query it had not finished writing is missing. Much more than a few "
                "kilobytes points to the disk.",
            )
        )
    missing = [name for name, (_, status, _) in ledger.items() if status == "missing"]
    if missing:
        findings.append(
            Finding(
                "incomplete",
                "logs",
                len(missing),
                f"{counted(len(missing), 'log')} removed by somebody else before their end was merged: {some(missing)}.",
                "What they held beyond that is gone: leave the spool folder to ragtrace.",
            )
        )
    return findings


def _set_aside(path: Path) -> list[Finding]:
    names = sorted(file.name for file in path.parent.glob(f"{path.name}{rescue.ASIDE}*"))
    files = [name for name in names if not (name.endswith(".wal") and name[: -len(".wal")] in names)]
    n_bytes = sum(path.with_name(name).stat().st_size for name in names)
    return [
        Finding(
            "note",
            "database",
            n_bytes,
            f"{name} could not be read and was set aside."
            if len(files) == 1
            else f"{some(files)} could not be read and were set aside.",
            f"They take {n_bytes:,} bytes: delete them when you do not want to look into them; ragtrace never does.",
        )
        for name in files[:1]
    ]


def _spool(path: Path) -> list[Finding]:
    spool = database.spool_of(path)
    if not spool.is_dir():
        return []
    ours = {log.path.name for log in reader.logs(spool)}
    foreign = sorted(
        entry.name
        for entry in os.scandir(spool)
        if entry.name not in ours
        and entry.name not in ("merge.lock", beside.path_of(spool).name, sidecar.path_of(path).name)
        and not entry.name.endswith((clearing.DAMAGED_SUFFIX, ".new"))
        and not entry.name.startswith(f"{sidecar.path_of(path).name}.")
    )
    if not foreign:
        return []
    return [
        Finding(
            "note",
            "spool",
            len(foreign),
            f"{counted(len(foreign), 'file')} in the spool not ragtrace's: {some(foreign)}.",
            "They are left alone.",
        )
    ]


def _sidecar(path: Path) -> list[Finding]:
    if sidecar.path_of(path).exists():
        return []
    return [
        Finding(
            "note", "database", 0, "There is no copy of the file's metadata beside it yet: the next merge makes one."
        )
    ]


def sizes(connection: duckdb.DuckDBPyConnection, path: Path) -> list[Finding]:
    """How large file and spool are, and whether the file's metadata has its copy. Raises: duckdb.Error."""
    n_bytes = path.stat().st_size
    n_candidates = connection.execute("select count(*) from candidates").fetchall()[0][0]
    total, free = connection.execute("select total_blocks, free_blocks from pragma_database_size()").fetchall()[0]
    findings = [
        *_sidecar(path),
        Finding("good", "size", n_bytes, f"The file takes {n_bytes:,} bytes for {n_candidates:,} candidates."),
    ]
    is_loose = n_bytes > 50_000_000 and n_candidates and n_bytes / n_candidates > BYTES_PER_CANDIDATE
    if is_loose or (total > 40 and free / total > 0.3):
        findings.append(
            Finding(
                "note",
                "size",
                n_bytes,
                "Much of the file is free space.",
                f"`ragtrace doctor {path} --compact` writes it anew.",
            )
        )
    spool = database.spool_of(path)
    held = sum(file.stat().st_size for file in spool.iterdir() if file.is_file()) if spool.is_dir() else 0
    findings.append(Finding("good", "size", held, f"The spool takes {held:,} bytes."))
    return findings
