"""A log is alive while its writer is, survives a missing folder, and never blocks or raises."""

from __future__ import annotations

import errno
import os
import threading
import time
from pathlib import Path

import pytest

from ragtrace.losses import Losses
from ragtrace.spool import frames, log, reader
from ragtrace.spool.records import Record


def frame(number: int, size: int = 0) -> bytes:
    return frames.encode(Record("loss", {"n": number, "detail": "x" * size}))


def numbers(spool: Path) -> list[int]:
    """What all logs of a spool hold, without the head."""
    found = []
    for one in reader.logs(spool):
        found += [record.body["n"] for record in reader.read(one.path).records if record.body["n"] >= 0]
    return sorted(found)


@pytest.fixture
def lost() -> Losses:
    return Losses()


@pytest.fixture
def one(tmp_path: Path, lost: Losses) -> log.Log:
    return log.Log(tmp_path / "spool", lambda: frame(-1), 10_000, lost)


def test_what_is_appended_can_be_read_at_once(one: log.Log, tmp_path: Path) -> None:
    one.append([frame(0), frame(1)])
    assert numbers(tmp_path / "spool") == [0, 1]


def test_a_log_is_alive_until_it_is_closed(one: log.Log, tmp_path: Path) -> None:
    one.append([frame(0)])
    assert [found.is_alive for found in reader.logs(tmp_path / "spool")] == [True]
    assert one.close(5)
    assert [found.is_alive for found in reader.logs(tmp_path / "spool")] == [False]


def test_an_append_after_closing_begins_a_new_log(one: log.Log, tmp_path: Path) -> None:
    one.append([frame(0)])
    one.close(5)
    one.append([frame(1)])
    assert len(reader.logs(tmp_path / "spool")) == 2
    assert numbers(tmp_path / "spool") == [0, 1]


def test_a_removed_log_is_begun_anew(one: log.Log, tmp_path: Path) -> None:
    one.append([frame(0)])
    assert one.path is not None
    one.path.unlink()
    one.append([frame(1)])
    assert numbers(tmp_path / "spool") == [1]


def test_a_full_log_is_followed_by_another(one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_LOG_BYTES", 500)
    for number in range(20):
        one.append([frame(number)])
    assert len(reader.logs(tmp_path / "spool")) > 1
    assert numbers(tmp_path / "spool") == list(range(20))


def test_no_reader_ever_sees_a_log_that_nobody_holds(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A log seen before it is locked would be taken for a dead one, merged and removed under its writer."""
    seen: list[bool] = []
    rename = os.rename

    def watched(source: os.PathLike[str], target: os.PathLike[str]) -> None:
        seen.extend(found.is_alive for found in reader.logs(tmp_path / "spool"))
        rename(source, target)
        seen.extend(found.is_alive for found in reader.logs(tmp_path / "spool"))

    monkeypatch.setattr(os, "rename", watched)
    one.append([frame(0)])
    assert seen == [True]


def test_a_disk_that_refuses_makes_records_wait_and_takes_them_later(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: Losses
) -> None:
    one.append([frame(0)])
    write = os.write

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    monkeypatch.setattr(os, "write", full)
    for number in range(1, 6):
        one.append([frame(number)])
    assert not one.flush(0.05)
    monkeypatch.setattr(os, "write", write)
    assert one.flush(5)
    assert numbers(tmp_path / "spool") == [0, 1, 2, 3, 4, 5]
    assert not lost


def test_what_does_not_fit_the_queue_is_counted_exactly(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, lost: Losses
) -> None:
    """I-18"""

    def full(fd: int, data: bytes) -> int:
        raise OSError(errno.ENOSPC, "no space")

    write = os.write
    monkeypatch.setattr(os, "write", full)
    for number in range(40):
        one.append([frame(number, size=900)])
    n_lost = sum(row["n"] for row in lost.take())
    assert n_lost >= 29
    monkeypatch.setattr(os, "write", write)
    assert one.flush(5)
    assert numbers(tmp_path / "spool") == list(range(40 - n_lost))


def test_a_write_that_is_cut_is_gone_on_with_from_the_first_frame_that_is_not_whole(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.append([frame(0)])
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: write(fd, data[: len(frame(1)) + 10]))
    one.append([frame(1), frame(2), frame(3)])
    monkeypatch.setattr(os, "write", write)
    assert one.flush(5)
    assert numbers(tmp_path / "spool") == [0, 1, 2, 3]


def test_a_stalled_disk_stops_holding_up_the_service(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    one.append([frame(-1)])
    write = os.write

    def stalled(fd: int, data: bytes) -> int:
        time.sleep(0.05)
        return write(fd, data)

    monkeypatch.setattr(os, "write", stalled)
    took = []
    for number in range(20):
        began = time.monotonic()
        one.append([frame(number)])
        took.append(time.monotonic() - began)
    assert min(took[:3]) >= 0.05 > max(sorted(took)[:10])
    assert one.flush(20)
    assert numbers(tmp_path / "spool") == list(range(20))


def test_a_single_slow_write_makes_nothing_wait_in_memory(
    one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What waits in memory is lost by os._exit, and on a busy machine some write is always slow."""
    one.append([frame(0)])
    write = os.write
    monkeypatch.setattr(os, "write", lambda fd, data: (time.sleep(0.05), write(fd, data))[1])
    one.append([frame(1)])
    monkeypatch.setattr(os, "write", write)
    one.append([frame(2)])
    assert numbers(tmp_path / "spool") == [0, 1, 2]


def test_a_folder_that_cannot_be_made_never_raises(tmp_path: Path, lost: Losses) -> None:
    (tmp_path / "file").write_text("in the way")
    one = log.Log(tmp_path / "file" / "spool", lambda: frame(-1), 200, lost)
    for number in range(20):
        one.append([frame(number)])
    assert not one.flush(0.1)
    assert sum(row["n"] for row in lost.take()) >= 10


def test_eight_threads_lose_and_tear_nothing(one: log.Log, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(log, "MAX_LOG_BYTES", 5000)
    monkeypatch.setattr(one._spill, "_max_bytes", 10_000_000)

    def work(first: int) -> None:
        for number in range(first, first + 200):
            one.append([frame(number)])

    threads = [threading.Thread(target=work, args=(1000 * number,)) for number in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert one.flush(10)
    assert numbers(tmp_path / "spool") == sorted(1000 * number + k for number in range(8) for k in range(200))
