"""The doors of the collector: bounds, tokens, the protocol's answers, and that no bad request harms the others."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from concurrent.futures import ThreadPoolExecutor

import grpc
import pytest
from collectors.conftest import environment, settings_of
from collectors.sent import request, send, span
from collectors.test_traces import service
from google.protobuf import json_format
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.exporter.otlp.proto.grpc.trace_exporter import OTLPSpanExporter
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor

from ragtrace.errors import SpoolError
from ragtrace.integrations.otel.vocabularies import VOCABULARIES
from ragtrace.spool.log import spool_of
from ragtrace_collectors import serving
from ragtrace_collectors.intake import Busy, Intake, Limits
from ragtrace_collectors.journal import Journal
from ragtrace_collectors.web import Receiver

PROTOBUF, JSON = "application/x-protobuf", "application/json"
SPANS = request(*service())
BODY = SPANS.SerializeToString()


class Door:
    """The ASGI application, called as a server calls it."""

    def __init__(self, store, limits: Limits, token=None):
        self.intake = Intake(settings_of(store), VOCABULARIES, limits)
        self._executor = ThreadPoolExecutor(1)
        self._receiver = Receiver(self.intake, self._executor, token)

    def post(self, body: bytes, path="/v1/traces", method="POST", pieces=1, **headers):
        """Status, headers and body of the answer."""
        headers.setdefault("content_type", PROTOBUF)
        scope = {
            "type": "http", "method": method, "path": path,
            "headers": [(name.replace("_", "-").encode(), value.encode()) for name, value in headers.items()],
        }  # fmt: skip
        size = len(body) // pieces + 1
        parts = [body[at : at + size] for at in range(0, max(len(body), 1), size)]
        messages = [{"type": "http.request", "body": part, "more_body": True} for part in parts]
        messages[-1]["more_body"] = False
        sent = []

        async def receive():
            return messages.pop(0)

        async def answer(message):
            sent.append(message)

        asyncio.run(self._receiver(scope, receive, answer))
        return sent[0]["status"], {name.decode(): value.decode() for name, value in sent[0]["headers"]}, sent[1]["body"]

    def close(self):
        self._executor.shutdown()
        self.intake.close()


@pytest.fixture
def door(store):
    made = []

    def open_door(token=None, **limits):
        made.append(Door(store, Limits(**limits), token))
        return made[-1]

    yield open_door
    for one in made:
        one.close()


def test_protobuf_json_and_gzip_are_taken(door):
    opened = door()
    value = json_format.MessageToDict(SPANS)
    for one in value["resourceSpans"][0]["scopeSpans"][0]["spans"]:
        for name in ("traceId", "spanId", "parentSpanId"):
            if name in one:
                one[name] = json_format.base64.b64decode(one[name]).hex()
    as_json = json.dumps(value).encode()

    assert opened.post(BODY)[0] == 200
    assert opened.post(BODY, pieces=7)[0] == 200
    assert opened.post(gzip.compress(BODY), content_encoding="gzip")[0] == 200
    assert opened.post(as_json, content_type="application/json; charset=utf-8") == (
        200, {"content-type": JSON, "content-length": "2"}, b"{}"
    )  # fmt: skip
    assert opened.post(gzip.compress(as_json), content_type=JSON, content_encoding="gzip")[0] == 200
    assert opened.intake.write_all() == 1  # five times the same trace


@pytest.mark.parametrize(
    ("body", "how", "status", "why"),
    [
        (b"\xff\xff not protobuf", {}, 400, "not an ExportTraceServiceRequest"),
        (b"{", {"content_type": JSON}, 400, "in JSON"),
        (b"[]", {"content_type": JSON}, 400, "not a JSON object"),
        (b'{"resourceSpans": [{"scopeSpans": [{"spans": [{"traceId": "xyz"}]}]}]}', {"content_type": JSON}, 400, "in JSON"),
        (b"[" * 100_000, {"content_type": JSON}, 400, "in JSON"),
        (b"plain", {"content_encoding": "gzip"}, 400, "not what its content encoding says"),
        (gzip.compress(BODY)[:-9], {"content_encoding": "gzip"}, 400, "is cut"),
        (BODY, {"content_encoding": "br"}, 415, "content encoding"),
        (BODY, {"content_type": "text/plain"}, 415, "content type"),
        (BODY, {"path": "/v1/logs"}, 404, "only /v1/traces"),
        (BODY, {"method": "GET"}, 405, "only POST"),
        (b"x" * 200_001, {}, 413, "may have 200000 bytes"),
        (b"", {"content_length": "99999999"}, 413, "may have 200000 bytes"),
        (gzip.compress(b"\0" * 50_000_000), {"content_encoding": "gzip"}, 413, "after decompression"),
    ],
)  # fmt: skip
def test_a_bad_request_gets_the_protocols_answer_and_harms_nothing(door, body, how, status, why):
    opened = door(body_bytes=200_000)
    answer = opened.post(body, **how)

    assert answer[0] == status
    said = json.loads(answer[2])["message"] if how.get("content_type") == JSON else Status.FromString(answer[2]).message
    assert why in said
    assert opened.post(BODY)[0] == 200


@pytest.mark.parametrize("header", [None, "Bearer wrong", "Basic secret", "secret"])
def test_without_the_token_nothing_is_taken(door, header):
    opened = door(token="secret")
    given = {} if header is None else {"authorization": header}

    assert opened.post(BODY, **given)[0] == 401
    assert opened.post(BODY, authorization="Bearer secret")[0] == 200
    assert opened.intake.write_all() == 1


def test_more_spans_a_second_than_allowed_are_told_to_come_later(door):
    opened = door(spans_a_second=10)
    answers = [opened.post(BODY)[:2] for _ in range(5)]

    assert [status for status, _ in answers[:2]] == [200, 200]
    refused = [headers["retry-after"] for status, headers in answers if status == 429]
    assert refused
    assert set(refused) == {"1"}


def test_a_request_larger_than_a_seconds_share_is_not_refused_for_ever(store):
    intake = Intake(settings_of(store), VOCABULARIES, Limits(spans_a_second=2))
    send(intake, *service())
    with pytest.raises(Busy):
        send(intake, *service())


def test_memory_for_unfinished_traces_is_bounded(door):
    """Traces without their outermost span wait; those that have it are written instead."""
    opened = door(waiting_bytes=3 * len(BODY))
    _root, *_stages = service()
    answers = []
    for trace in range(1, 7):
        body = request(*service(trace=trace)[1:]).SerializeToString()
        answers.append(opened.post(body))
        assert opened.intake.n_bytes <= 3 * len(BODY)
    assert answers[-1][0] == 429
    assert answers[-1][1]["retry-after"] == "5"
    opened.intake.write_all()
    for trace in range(10, 30):
        assert opened.post(request(*service(trace=trace)).SerializeToString())[0] == 200


def test_a_span_with_too_many_attributes_is_rejected_alone(door, told):
    opened = door(attributes=100)
    huge = span(9, "huge", {f"key.{number}": 1 for number in range(101)}, trace=7)
    status, _, body = opened.post(request(*service(), huge).SerializeToString())

    assert status == 200
    said = ExportTraceServiceResponse.FromString(body).partial_success
    assert (said.rejected_spans, "100 attributes" in said.error_message) == (1, True)
    opened.intake.write_all()
    assert [stage.row["name"] for stage in told()] == ["dense", "cross encoder", "model"]


def test_grpc_takes_the_sdks_exporter_and_refuses_by_the_protocol(collector, rows):
    """One process for all that is asked of it: HTTP beside gRPC, tokens, limits, a zip bomb."""
    started = collector("--spans-a-second", "100", "--body-mb", "1", RAGTRACE_COLLECT_TOKEN="secret")
    token = {"authorization": "Bearer secret"}
    provider = TracerProvider()
    exporter = OTLPSpanExporter(
        started.grpc, insecure=True, headers=token, timeout=5, compression=grpc.Compression.Gzip
    )
    provider.add_span_processor(BatchSpanProcessor(exporter))
    with provider.get_tracer("x").start_as_current_span(
        "dense", attributes={"openinference.span.kind": "RETRIEVER", "retrieval.documents.0.document.id": "c1"}
    ):
        pass
    provider.shutdown()
    with grpc.insecure_channel(started.grpc) as channel:
        export = trace_service_pb2_grpc.TraceServiceStub(channel).Export
        assert refusal(lambda: export(SPANS, timeout=5)).code() is grpc.StatusCode.UNAUTHENTICATED
        metadata = tuple(token.items())
        bomb = request(span(1, "x" * 3_000_000, {}))
        refused = refusal(lambda: export(bomb, timeout=5, metadata=metadata, compression=grpc.Compression.Gzip))
        assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        many = request(*(span(number, "x", {}, trace=number) for number in range(1, 90)))
        export(many, timeout=5, metadata=metadata)
        refused = refusal(lambda: export(many, timeout=5, metadata=metadata))
        assert refused.code() is grpc.StatusCode.RESOURCE_EXHAUSTED
        status = Status.FromString(dict(refused.trailing_metadata())["grpc-status-details-bin"])
        wait = RetryInfo()
        assert status.details[0].Unpack(wait)
        assert wait.retry_delay.seconds == 1
    with pytest.raises(urllib.error.HTTPError) as unauthorised:
        urllib.request.urlopen(urllib.request.Request(started.http, BODY, {"content-type": PROTOBUF}), timeout=5)
    assert unauthorised.value.code == 401
    unauthorised.value.close()

    assert started.stop() == 0
    assert rows("select kind, name from stages") == [("retrieve", "dense")]


def refusal(call):
    with pytest.raises(grpc.RpcError) as raised:
        call()
    return raised.value


@pytest.fixture
def taken_port():
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))
        taken.listen()
        yield taken.getsockname()[1]


def test_a_port_that_is_taken_is_one_sentence(store, taken_port):
    done = subprocess.run(
        [sys.executable, "-m", "ragtrace", "collect", str(store), "--http-port", "0", "--grpc-port", str(taken_port)],
        check=False, capture_output=True, text=True, timeout=60, env=environment(),
    )  # fmt: skip

    assert done.returncode == 2
    assert done.stderr == f"ragtrace: 127.0.0.1:{taken_port}: address already in use\n"


def test_the_http_door_says_the_same_of_a_port(door, taken_port):
    receiver = door()._receiver
    with pytest.raises(OSError, match=f"Address already in use: '127.0.0.1:{taken_port}'"):
        asyncio.run(serving._Web.start(receiver, "127.0.0.1", taken_port))


def test_a_second_collector_on_a_store_is_refused(store):
    first = Journal(spool_of(store))
    with pytest.raises(SpoolError, match="another collector writes to"):
        Journal(spool_of(store))
    first.close()
    Journal(spool_of(store)).close()


def test_without_the_extra_the_command_says_what_to_install(store):
    code = (
        "import sys; sys.modules['uvicorn'] = None\n"
        "from ragtrace.cli.main import app\n"
        f"app(['collect', {str(store)!r}])"
    )
    done = subprocess.run(
        [sys.executable, "-c", code],
        check=False,
        capture_output=True,
        text=True,
        timeout=60,
        env=environment(),
    )

    assert done.returncode == 2
    assert done.stderr.strip() == "ragtrace: ragtrace collect needs uvicorn: pip install 'ragtrace[collector]'"
