"""Readers pass over damage, tell it from a write under way, and lose nothing to their own limits."""

from __future__ import annotations

from pathlib import Path

import pytest

from ragtrace.spool import frames, reader
from ragtrace.spool.records import Record


def frame(number: int, size: int = 0) -> bytes:
    return frames.encode(Record("loss", {"n": number, "detail": "x" * size}))


def numbers(batch: reader.Batch) -> list[int]:
    return [record.body["n"] for record in batch.records]


def test_a_whole_log_is_read(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(b"".join(map(frame, range(5))))
    assert numbers(reader.read(path)) == [0, 1, 2, 3, 4]
    assert reader.read(path).next_offset == path.stat().st_size


def test_a_log_cut_at_every_byte_gives_the_frames_before_the_cut_and_says_that_it_is_torn(tmp_path: Path) -> None:
    """D-17"""
    path = tmp_path / "1.log"
    whole = frame(0) + frame(1)
    for cut in range(len(whole)):
        path.write_bytes(whole[:cut])
        batch = reader.read(path)
        n_whole = int(cut >= len(frame(0)))
        assert numbers(batch) == list(range(n_whole))
        assert batch.next_offset == n_whole * len(frame(0))
        assert batch.is_torn_tail == (batch.next_offset != cut)
        assert batch.n_damaged_bytes == 0


def test_every_flipped_byte_costs_one_frame_and_no_other(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    whole = b"".join(map(frame, range(3)))
    begin, end = len(frame(0)), len(frame(0)) + len(frame(1))
    for at in range(begin, end):
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        batch = reader.read(path)
        assert numbers(batch) == [0, 2]
        assert batch.n_damaged_bytes == end - begin
        assert not batch.is_torn_tail


def test_a_write_that_was_cut_by_a_full_disk_is_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(frame(0) + frame(1)[:-3] + frame(1) + frame(2))
    batch = reader.read(path)
    assert numbers(batch) == [0, 1, 2]
    assert batch.n_damaged_bytes == len(frame(1)) - 3


@pytest.mark.parametrize("max_bytes", [1, 20, 60, 100, 10_000])
def test_a_read_cut_by_its_limit_is_no_torn_tail(tmp_path: Path, max_bytes: int) -> None:
    """A reader that took it for one lost 77,836 of 115,681 queries."""
    path = tmp_path / "1.log"
    path.write_bytes(b"".join(frame(number, size=number * 7) for number in range(20)))
    offset, found = 0, []
    while True:
        batch = reader.read(path, offset, max_bytes)
        assert not batch.is_torn_tail and batch.n_damaged_bytes == 0
        found += numbers(batch)
        if batch.next_offset == offset:
            break
        offset = batch.next_offset
    assert found == list(range(20))


def test_damage_at_a_limit_does_not_stop_the_reader(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    path.write_bytes(frame(0) + b"\xa7rt1" + b"\xff\xff\xff\x00" * 20 + frame(1))
    offset, found = 0, []
    while True:
        batch = reader.read(path, offset, 50)
        found += numbers(batch)
        if batch.next_offset == offset:
            break
        offset = batch.next_offset
    assert found == [0, 1]


def test_a_kind_of_a_newer_ragtrace_is_counted_and_passed_over(tmp_path: Path) -> None:
    path = tmp_path / "1.log"
    newer = bytearray(frame(9))
    newer[12] = 200
    import zlib

    newer[8:12] = zlib.crc32(bytes(newer[frames.HEADER.size :]), 200).to_bytes(4, "little")
    path.write_bytes(frame(0) + bytes(newer) + frame(1))
    batch = reader.read(path)
    assert numbers(batch) == [0, 1] and (batch.n_newer, batch.n_damaged_bytes) == (1, 0)


def test_a_missing_spool_has_no_logs(tmp_path: Path) -> None:
    assert reader.logs(tmp_path / "none") == []
