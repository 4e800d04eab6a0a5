"""Requests onward to another back end, as they were taken in. Bounded, at most once, and never in the way of the intake.

A queue and one thread: what does not fit, or is refused too often, is dropped and counted. What a former collector left
in its journal is not sent again: it may have been.
"""

from __future__ import annotations

import gzip
import http.client
import threading
import time
import urllib.error
import urllib.request
from collections import deque
from collections.abc import Callable, Mapping
from urllib.parse import urlsplit

from ragtrace.errors import ParameterError

__all__ = ["Forward", "headers_of"]

MOST_BYTES = 64 << 20
"""Of requests that wait, as they were sent."""
_TRIES = 5
_LONGEST_WAIT_S = 30.0
_TIMEOUT_S = 10.0
_SAY_EVERY_S = 60.0
_COME_AGAIN = frozenset((408, 429, 500, 502, 503, 504))


class _NoRedirect(urllib.request.HTTPRedirectHandler):
    """The headers of one back end, its token among them, are for no other."""

    def redirect_request(self, *_: object) -> None:
        """None: then it is an error."""
        return


_OPENER = urllib.request.build_opener(_NoRedirect)


class Forward:
    """Sends requests on to one address. `put` may be called by any thread."""

    def __init__(
        self,
        address: str,
        headers: Mapping[str, str] | None = None,
        *,
        say: Callable[[str], None],
        most_bytes: int = MOST_BYTES,
        first_wait_s: float = 1.0,
    ) -> None:
        """`address` is that of the traces, such as http://host:4318/v1/traces. Raises: ParameterError for what is none."""
        parts = urlsplit(address)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ParameterError(
                f"--forward takes an address such as http://host:4318/v1/traces, not {address}", given=address
            )
        self._address = address if parts.path.strip("/") else f"{address.rstrip('/')}/v1/traces"
        self._headers = dict(headers or {})
        self._say = say
        self._most_bytes = most_bytes
        self._first_wait_s = first_wait_s
        self._waiting: deque[bytes] = deque()
        self._n_bytes = 0
        self._is_closing = False
        self._stop_at_s = float("inf")
        self._changed = threading.Condition()
        self._said_at_s = float("-inf")
        self._n_unsaid = 0
        self.n_sent = 0
        """Requests that the back end has taken."""
        self.n_dropped = 0
        """Requests that it has not, and will not get."""
        self._thread = threading.Thread(target=self._run, name="ragtrace-forward", daemon=True)
        self._thread.start()

    def put(self, data: bytes) -> None:
        """Queue the protobuf bytes of a request; dropped when the queue is full. Never blocks, never raises."""
        with self._changed:
            if self._n_bytes + len(data) > self._most_bytes:
                self._drop("the queue is full")
                return
            self._waiting.append(data)
            self._n_bytes += len(data)
            self._changed.notify()

    def close(self, timeout_s: float = 5.0) -> bool:
        """Send what waits, for so long at most; false when something was left. Says what was dropped."""
        with self._changed:
            self._is_closing = True
            self._stop_at_s = time.monotonic() + timeout_s
            self._changed.notify()
        self._thread.join(timeout_s + _TIMEOUT_S)
        with self._changed:
            for _ in range(len(self._waiting)):
                self._waiting.popleft()
                self._drop("the collector ends")
            if self._n_unsaid:
                self._tell("the collector ends")
        return self.n_dropped == 0

    def _run(self) -> None:
        while True:
            with self._changed:
                while not self._waiting and not self._is_closing:
                    self._changed.wait()
                if not self._waiting or time.monotonic() > self._stop_at_s:
                    return
                data = self._waiting[0]
            why = self._sent(data)
            with self._changed:
                self._waiting.popleft()
                self._n_bytes -= len(data)
                if why is None:
                    self.n_sent += 1
                else:
                    self._drop(why)

    def _sent(self, data: bytes) -> str | None:
        """None when it was taken, else why not."""
        body = gzip.compress(data, 1)
        headers = {"Content-Type": "application/x-protobuf", "Content-Encoding": "gzip", **self._headers}
        why = ""
        wait_s = self._first_wait_s
        for _ in range(_TRIES):
            request = urllib.request.Request(self._address, body, headers, method="POST")
            try:
                with _OPENER.open(request, timeout=_TIMEOUT_S):
                    return None
            except urllib.error.HTTPError as error:
                with error:
                    why = f"it answers {error.code}"
                    if error.code not in _COME_AGAIN:
                        return why
                    asked = error.headers.get("Retry-After", "")
                    if asked.isdecimal():
                        wait_s = float(asked)
            except (OSError, http.client.HTTPException) as error:
                why = f"it cannot be reached ({type(error).__name__})"
            if not self._wait(min(wait_s, _LONGEST_WAIT_S)):
                break
            wait_s *= 2
        return why

    def _wait(self, seconds: float) -> bool:
        """Whether there is time for another try."""
        until_s = time.monotonic() + seconds
        with self._changed:
            while (left_s := until_s - time.monotonic()) > 0 and until_s <= self._stop_at_s:
                self._changed.wait(left_s)
            return until_s <= self._stop_at_s

    def _drop(self, why: str) -> None:
        self.n_dropped += 1
        self._n_unsaid += 1
        if time.monotonic() - self._said_at_s >= _SAY_EVERY_S:
            self._tell(why)

    def _tell(self, why: str) -> None:
        self._say(f"{self._n_unsaid} requests were not forwarded to {urlsplit(self._address).hostname}: {why}")
        self._said_at_s = time.monotonic()
        self._n_unsaid = 0


def headers_of(text: str) -> dict[str, str]:
    """Headers written as OpenTelemetry's exporters read them: `name=value,name=value`. Raises: ParameterError."""
    headers = {}
    for part in filter(None, (one.strip() for one in text.split(","))):
        name, sign, value = part.partition("=")
        if not sign or not name.strip():
            raise ParameterError("RAGTRACE_FORWARD_HEADERS takes name=value,name=value", given=name)
        headers[name.strip()] = value.strip()
    return headers
