"""A checkpoint torn inside its in-place write of metadata, as a kill leaves it, and its repair."""

from __future__ import annotations

import contextlib
from pathlib import Path

import duckdb
import pytest

from ragtrace.errors import DamagedStoreError
from ragtrace.store import database, sidecar
from ragtrace.store.merge import merge
from tests.unit.store.logs import merged, new_id, out, query, rows, same, stage, write

HEADERS_BYTES = 3 * 4096
PAGE_BYTES = 4096


def _query() -> list[object]:
    query_id = new_id()
    found = out(["a", "b"])
    stages = [stage("retrieve", found, query_id=query_id), stage("generate", same(found), start=3, query_id=query_id)]
    return [*stages, query(query_id, stages)]


def _torn_checkpoint(store: Path) -> None:
    """Commit and checkpoint, then put the file into the state of a checkpoint killed inside a metadata write.

    Old header, write-ahead log still there, and of a rewritten metadata block the first page (with the checksum) new and the rest old.
    Whether that block still holds anything of the old state depends on where DuckDB found room: it is done until it does.
    """
    log = store.with_name(store.name + ".wal")
    for _ in range(20):
        with contextlib.closing(database.connect(store)) as connection:
            connection.execute("delete from settings where name = 'extra'; insert into settings values ('extra', 1)")
            before, log_before = store.read_bytes(), log.read_bytes()
            blocks = {row[0] for row in connection.execute("select block_id from pragma_metadata_info()").fetchall()}
            connection.execute("checkpoint")
            after = store.read_bytes()
        for block in sorted(blocks):
            at = HEADERS_BYTES + block * 262144
            if after[at : at + PAGE_BYTES] != before[at : at + PAGE_BYTES]:
                torn = before[:at] + after[at : at + PAGE_BYTES] + before[at + PAGE_BYTES :]
                if not _can_be_opened(torn, log_before, store.with_name("probed.duckdb")):
                    store.write_bytes(torn)
                    log.write_bytes(log_before)
                    return
    pytest.fail("no checkpoint rewrote a metadata block in place that the old state needs: nothing to tear")


def _can_be_opened(store: bytes, log: bytes, path: Path) -> bool:
    path.write_bytes(store)
    path.with_name(path.name + ".wal").write_bytes(log)
    try:
        duckdb.connect(str(path)).close()
    except duckdb.Error:
        return False
    return True


def test_a_torn_metadata_block_is_restored_with_every_committed_row(store: Path) -> None:
    merged(store, _query())
    _torn_checkpoint(store)
    with pytest.raises(duckdb.Error, match=r"(?i)corrupt|checksum"):
        duckdb.connect(str(store))
    assert rows(store, "select count(*) from queries") == [(1,)]
    assert rows(store, "select value from settings where name = 'extra'") == [(1.0,)]


def test_the_merge_after_a_repair_goes_on_as_if_nothing_had_been(store: Path) -> None:
    merged(store, _query())
    _torn_checkpoint(store)
    write(store, _query(), "2-2-b.log")
    brought = merge(store)
    assert (brought.n_queries, brought.set_aside) == (1, None)
    assert rows(store, "select count(*) from queries") == [(2,)]


def test_a_sidecar_of_another_header_is_refused(store: Path) -> None:
    """Mixing two states would be worse than a file that cannot be opened."""
    merged(store, _query())
    old = sidecar.path_of(store).read_bytes()
    merged(store, _query(), "2-2-b.log")
    _torn_checkpoint(store)
    sidecar.path_of(store).write_bytes(old)
    before = store.read_bytes()
    assert not sidecar.restore(store)
    assert store.read_bytes() == before
    with pytest.raises(DamagedStoreError):
        database.connect(store)


@pytest.mark.parametrize(
    "spoil", [lambda body: b"", lambda body: body[:-1], lambda body: body[:100] + b"x" + body[101:]]
)
def test_a_broken_sidecar_is_refused(store: Path, spoil: object) -> None:
    merged(store, _query())
    kept = sidecar.path_of(store)
    kept.write_bytes(spoil(kept.read_bytes()))  # type: ignore[operator]  # the lambdas above
    assert not sidecar.restore(store)


def test_there_is_a_sidecar_for_the_header_on_disk_whenever_a_store_is_open_for_writing(store: Path) -> None:
    for number in range(3):
        merged(store, _query(), f"{number}-1-a.log")
        with contextlib.closing(database.connect(store)):
            assert sidecar.restore(store)
