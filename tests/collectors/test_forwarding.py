"""Onward to another back end: as it came, bounded, and never in the way of what is recorded."""

from __future__ import annotations

import gzip
import threading
import time
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
from collectors.sent import request
from collectors.test_kills import post, wait_until
from collectors.test_traces import service

from ragtrace.errors import ParameterError
from ragtrace_collectors.forwarding import Forward, headers_of


class BackEnd:
    """An OTLP receiver that answers what a test wants."""

    def __init__(self) -> None:
        self.taken: list[tuple[dict[str, str], bytes]] = []
        self.answers: list[tuple[int, dict[str, str]]] = []
        """Before it takes anything."""
        self.may_answer = threading.Event()
        self.may_answer.set()
        outer = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["content-length"]))
                outer.may_answer.wait(20)
                status, headers = outer.answers.pop(0) if outer.answers else (200, {})
                if status == 200:
                    outer.taken.append(
                        ({name.lower(): value for name, value in self.headers.items()}, gzip.decompress(body))
                    )
                self.send_response(status)
                for name, value in headers.items():
                    self.send_header(name, value)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.address = f"http://127.0.0.1:{self.server.server_port}/v1/traces"
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    def close(self) -> None:
        self.may_answer.set()
        self.server.shutdown()
        self.server.server_close()


@pytest.fixture
def back_end() -> Iterator[BackEnd]:
    made = BackEnd()
    yield made
    made.close()


def forward(address: str, said: list[str], **how: Any) -> Forward:
    return Forward(address, say=said.append, first_wait_s=0.01, **how)


def test_what_the_collector_takes_in_goes_on_as_it_came(
    collector: Callable[..., Any], rows: Callable[..., Any], back_end: BackEnd
) -> None:
    started = collector(
        "--forward", back_end.address, "--quiet-s", "0.1", RAGTRACE_FORWARD_HEADERS="authorization=Bearer secret"
    )
    sent = request(*service(trace=1)).SerializeToString()
    assert post(started.http, sent)
    wait_until(lambda: back_end.taken)
    assert started.stop() == 0
    ((headers, body),) = back_end.taken
    assert body == sent
    assert headers["authorization"] == "Bearer secret"
    assert headers["content-type"] == "application/x-protobuf"
    assert rows("select count(*) from queries") == [(1,)]


def test_a_back_end_that_is_not_there_costs_the_senders_nothing(
    collector: Callable[..., Any], rows: Callable[..., Any]
) -> None:
    started = collector("--forward", "http://127.0.0.1:9/v1/traces", "--quiet-s", "0.1")
    began = time.monotonic()
    for trace in range(1, 9):
        assert post(started.http, request(*service(trace=trace)).SerializeToString())
    assert time.monotonic() - began < 5
    assert started.stop() == 0
    assert rows("select count(*) from queries") == [(8,)]
    said = started.process.stderr.read()
    assert "were not forwarded to 127.0.0.1" in said


def test_a_full_queue_drops_what_comes_and_counts_it(back_end: BackEnd) -> None:
    said: list[str] = []
    back_end.may_answer.clear()
    onward = forward(back_end.address, said, most_bytes=100)
    for _ in range(10):
        onward.put(b"x" * 40)
    assert onward.n_dropped == 8
    back_end.may_answer.set()
    assert not onward.close()
    assert (onward.n_sent, len(back_end.taken)) == (2, 2)
    # Once at first, the rest at the end.
    assert [line.split()[0] for line in said] == ["1", "7"]


@pytest.mark.parametrize("status", [429, 503, 500])
def test_a_busy_back_end_is_asked_again(status: int, back_end: BackEnd) -> None:
    said: list[str] = []
    back_end.answers = [(status, {"Retry-After": "0"}), (status, {})]
    onward = forward(back_end.address, said)
    onward.put(b"spans")
    assert onward.close()
    assert [body for _, body in back_end.taken] == [b"spans"]
    assert said == []


@pytest.mark.parametrize(("status", "headers"), [(400, {}), (401, {}), (302, {"Location": "http://127.0.0.1:9/"})])
def test_a_refusal_is_final_and_a_redirect_is_one(status: int, headers: dict[str, str], back_end: BackEnd) -> None:
    said: list[str] = []
    back_end.answers = [(status, headers)]
    onward = forward(back_end.address, said)
    onward.put(b"refused")
    onward.put(b"taken")
    assert not onward.close()
    assert [body for _, body in back_end.taken] == [b"taken"]
    assert said == [f"1 requests were not forwarded to 127.0.0.1: it answers {status}"]


def test_ending_does_not_wait_for_a_back_end_that_hangs(back_end: BackEnd) -> None:
    back_end.answers = [(503, {"Retry-After": "30"})] * 10
    onward = forward(back_end.address, [])
    onward.put(b"spans")
    began = time.monotonic()
    assert not onward.close(timeout_s=0.2)
    assert time.monotonic() - began < 5


@pytest.mark.parametrize("address", ["phoenix:6006", "ftp://host/v1/traces", "http://", ""])
def test_what_is_no_address_is_said_at_once(address: str) -> None:
    with pytest.raises(ParameterError, match="--forward takes an address"):
        forward(address, [])


def test_an_address_without_a_path_is_that_of_its_traces() -> None:
    onward = forward("http://127.0.0.1:9", [])
    assert onward._address == "http://127.0.0.1:9/v1/traces"
    onward.close()


def test_headers_are_read_as_exporters_read_them() -> None:
    assert headers_of("authorization=Bearer a=b, x-project=docs,") == {
        "authorization": "Bearer a=b",
        "x-project": "docs",
    }
    assert headers_of("") == {}
    with pytest.raises(ParameterError, match="takes name=value"):
        headers_of("secret")
