"""OTLP over HTTP: `POST /v1/traces`, protobuf or JSON, plain or gzip. Answers as the protocol says."""

from __future__ import annotations

import asyncio
import hmac
import json
import zlib
from collections.abc import Awaitable, Callable, Mapping
from concurrent.futures import Executor
from typing import Any

from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragtrace_collectors import otlp
from ragtrace_collectors.intake import Busy, Intake, Taken

__all__ = ["Receiver"]

_PROTOBUF, _JSON = "application/x-protobuf", "application/json"
_BODY_S = 30.0
"""How long a sender may take for one request."""
_CODES = {400: 3, 401: 16, 404: 12, 405: 12, 413: 8, 415: 3, 429: 8, 503: 14, 408: 4, 500: 13}
"""HTTP status -> google.rpc.Code."""

Scope = Mapping[str, Any]
Receive = Callable[[], Awaitable[Mapping[str, Any]]]
Send = Callable[[Mapping[str, Any]], Awaitable[None]]


class _Refused(Exception):
    def __init__(self, status: int, why: str, after_s: int | None = None) -> None:
        super().__init__(why)
        self.status = status
        self.after_s = after_s


class Receiver:
    """An ASGI application in front of an intake, which only `executor`, of one thread, touches."""

    def __init__(self, intake: Intake, executor: Executor, token: str | None = None) -> None:
        self._intake = intake
        self._executor = executor
        self._token = token
        self._limit = intake.limits.body_bytes
        self._n_bytes = 0
        """Of bodies that are being read or wait for the intake."""

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer one request."""
        if scope["type"] != "http":
            return
        headers = {name.decode("latin-1").lower(): value.decode("latin-1") for name, value in scope["headers"]}
        is_json = _media_type(headers) == _JSON
        try:
            taken = await self._export(scope, headers, receive, is_json)
        except _Refused as refused:
            await _answer(
                send, refused.status, _status(refused.status, str(refused), is_json), is_json, refused.after_s
            )
        except Exception:  # a request that we cannot take must not end the server; the sender tries again
            await _answer(send, 503, _status(503, "internal error", is_json), is_json, 5)
        else:
            await _answer(send, 200, _response(taken, is_json), is_json)

    async def _export(self, scope: Scope, headers: Mapping[str, str], receive: Receive, is_json: bool) -> Taken:
        if self._token is not None and not _is_token(headers.get("authorization", ""), self._token):
            raise _Refused(401, "the header `authorization: Bearer TOKEN` is missing or wrong")
        if scope["path"] != "/v1/traces":
            raise _Refused(404, "only /v1/traces is taken")
        if scope["method"] != "POST":
            raise _Refused(405, "only POST")
        if not is_json and _media_type(headers) != _PROTOBUF:
            raise _Refused(415, f"the content type must be {_PROTOBUF} or {_JSON}")
        encoding = headers.get("content-encoding", "identity").strip().lower()
        if encoding not in ("identity", "gzip", "deflate"):
            raise _Refused(415, "the content encoding must be gzip or deflate")
        length = headers.get("content-length", "")
        if length.isdecimal() and int(length) > self._limit:
            raise _Refused(413, f"a request may have {self._limit} bytes")
        if self._n_bytes > 2 * self._limit:
            raise _Refused(503, "too many requests at once", 1)
        body = await self._body(receive)
        self._n_bytes += len(body)
        try:
            return await asyncio.get_running_loop().run_in_executor(self._executor, self._take, body, encoding, is_json)
        finally:
            self._n_bytes -= len(body)

    async def _body(self, receive: Receive) -> bytes:
        parts: list[bytes] = []
        n_bytes = 0
        deadline = asyncio.get_running_loop().time() + _BODY_S
        while True:
            try:
                message = await asyncio.wait_for(receive(), deadline - asyncio.get_running_loop().time())
            except asyncio.TimeoutError:
                raise _Refused(408, "the request took too long") from None
            if message["type"] == "http.disconnect":
                raise _Refused(400, "the request was broken off")
            parts.append(message.get("body", b""))
            n_bytes += len(parts[-1])
            if n_bytes > self._limit:
                raise _Refused(413, f"a request may have {self._limit} bytes")
            if not message.get("more_body"):
                return b"".join(parts)

    def _take(self, body: bytes, encoding: str, is_json: bool) -> Taken:
        """In the intake's thread."""
        if encoding != "identity":
            body = unpacked(body, self._limit)
        try:
            if is_json:
                request = otlp.request_of_json(body)
                body = request.SerializeToString()
            else:
                request = otlp.request_of(body)
        except otlp.Malformed as error:
            raise _Refused(400, str(error)) from error
        try:
            return self._intake.take(request, body)
        except Busy as busy:
            raise _Refused(429, str(busy), busy.after_s) from busy
        except OSError as error:
            raise _Refused(503, f"the journal cannot be written ({error.strerror})", 5) from error


def unpacked(body: bytes, limit: int) -> bytes:
    """A gzip or deflate body, whose size is bounded while it is unpacked. Raises: a refusal."""
    unpacking = zlib.decompressobj(wbits=47)  # 32 + 15: it tells gzip from zlib by itself
    try:
        data = unpacking.decompress(body, limit + 1)
    except zlib.error as error:
        raise _Refused(400, f"the body is not what its content encoding says ({error})") from error
    if len(data) > limit:
        raise _Refused(413, f"a request may have {limit} bytes after decompression")
    if not unpacking.eof:
        raise _Refused(400, "the compressed body is cut")
    return data


def _media_type(headers: Mapping[str, str]) -> str:
    return headers.get("content-type", "").partition(";")[0].strip().lower()


def _is_token(header: str, token: str) -> bool:
    kind, _, given = header.partition(" ")
    return kind.lower() == "bearer" and hmac.compare_digest(given.strip().encode(), token.encode())


def _response(taken: Taken, is_json: bool) -> bytes:
    if is_json:
        said = {"partialSuccess": {"rejectedSpans": str(taken.n_rejected), "errorMessage": taken.why}}
        return json.dumps(said if taken.n_rejected else {}).encode()
    response = ExportTraceServiceResponse()
    if taken.n_rejected:
        response.partial_success.rejected_spans = taken.n_rejected
        response.partial_success.error_message = taken.why
    return bytes(response.SerializeToString())


def _status(status: int, why: str, is_json: bool) -> bytes:
    code = _CODES[status]
    if is_json:
        return json.dumps({"code": code, "message": why}).encode()
    return bytes(Status(code=code, message=why).SerializeToString())


async def _answer(send: Send, status: int, body: bytes, is_json: bool, after_s: int | None = None) -> None:
    headers = [
        (b"content-type", (_JSON if is_json else _PROTOBUF).encode()),
        (b"content-length", str(len(body)).encode()),
    ]
    if after_s is not None:
        headers.append((b"retry-after", str(after_s).encode()))
    if status == 401:
        headers.append((b"www-authenticate", b"Bearer"))
    await send({"type": "http.response.start", "status": status, "headers": headers})
    await send({"type": "http.response.body", "body": body})
