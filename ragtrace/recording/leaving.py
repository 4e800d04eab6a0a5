"""When the process ends: what waits is written, and a child process merges the logs. No finished query depends on it.

One exit hook a process, however often it was configured; stores are merged one after the other, all within 5 s.
"""

from __future__ import annotations

import atexit
import os
import sys
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING
from weakref import WeakSet

from ragtrace import guard

if TYPE_CHECKING:
    from ragtrace.recording.recorder import Recorder

__all__ = ["arrange", "is_pool_worker"]

MERGE_WAIT_S = 5.0
DRAIN_WAIT_S = 2.0

_pid = 0
"""The process whose exit hook is registered."""
_recorders: WeakSet[Recorder] = WeakSet()
"""Those that have written; one that was replaced and has nothing open is let go."""
_stores: dict[Path, None] = {}
"""What is to be merged, in order of the first write."""


def arrange(recorder: Recorder) -> None:
    """Have the logs merged when this process ends; called at the first write of a recorder. Never raises."""
    global _pid  # noqa: PLW0603  # one exit hook a process
    try:
        if _pid != os.getpid():
            # First here, or in a forked child: what the parent arranged is the parent's to do.
            _pid = os.getpid()
            _recorders.clear()
            _stores.clear()
            atexit.register(_leave, _pid)
        _recorders.add(recorder)
        if recorder.settings.merge == "exit":
            _stores[recorder.settings.store] = None
    except Exception as error:  # the interpreter already ends: the next reader merges
        guard.swallow(error, "exit hook", recorder.losses)


def _leave(pid: int) -> None:
    if pid != os.getpid():
        return  # a forked child that ends in the normal way: the parent's hook is the parent's
    try:
        deadline = monotonic() + DRAIN_WAIT_S
        for recorder in list(_recorders):
            recorder.close(timeout_s=max(0.0, deadline - monotonic()))
        if not _is_started_by_multiprocessing():
            deadline = monotonic() + MERGE_WAIT_S
            for store in _stores:
                _merge(store, max(0.0, deadline - monotonic()))
    except Exception as error:  # at exit there is nobody to tell
        guard.swallow(error, "exit")


def _is_started_by_multiprocessing() -> bool:
    """Whether this process's parent merges, or the next reader.

    A pool of short tasks would else start an interpreter and DuckDB for each of them.
    """
    multiprocessing = sys.modules.get("multiprocessing")
    parent_process = getattr(multiprocessing, "parent_process", None)
    return parent_process is not None and parent_process() is not None


def is_pool_worker() -> bool:
    """Whether this process takes one task after the other for a pool of the standard library."""
    process = sys.modules.get("multiprocessing.process")
    current = process.current_process() if process is not None else None
    target = getattr(current, "_target", None)
    return getattr(target, "__module__", None) in ("multiprocessing.pool", "concurrent.futures.process")


def _merge(store: Path, wait_s: float) -> None:
    if not sys.executable or getattr(sys, "frozen", False) or "python" not in Path(sys.executable).name.lower():
        return  # embedded (uwsgi, an app bundle): there is no interpreter to start; the next reader merges
    import subprocess  # only at exit

    # The child finds this very ragtrace, however the parent found it.
    home = str(Path(__file__).resolve().parents[2])
    paths = [home, *filter(None, [os.environ.get("PYTHONPATH")])]
    child = subprocess.Popen(
        [sys.executable, "-m", "ragtrace.cli.merge_at_exit", str(store)],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env={**os.environ, "PYTHONPATH": os.pathsep.join(paths)},
        # An interrupt in the terminal is for the script, not for the merge.
        start_new_session=True,
    )
    try:
        child.wait(wait_s)
    except subprocess.TimeoutExpired:
        # It goes on without us. Popen would warn about a child that nobody waited for.
        child.returncode = 0
