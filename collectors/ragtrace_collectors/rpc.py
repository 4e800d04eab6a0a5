"""OTLP over gRPC: `TraceService/Export`. Answers as the protocol says, with the time to wait in `RetryInfo`."""

from __future__ import annotations

import asyncio
import hmac
import os
from concurrent.futures import Executor
from typing import Any, NoReturn

# Its own log repeats what the sentence of the command says. Read when it is loaded.
os.environ.setdefault("GRPC_VERBOSITY", "NONE")

import grpc
from google.protobuf.duration_pb2 import Duration
from google.rpc.error_details_pb2 import RetryInfo
from google.rpc.status_pb2 import Status
from opentelemetry.proto.collector.trace.v1 import trace_service_pb2_grpc
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceResponse

from ragtrace_collectors import otlp
from ragtrace_collectors.intake import Busy, Intake

__all__ = ["start"]

_DETAILS = "grpc-status-details-bin"


class _Service(trace_service_pb2_grpc.TraceServiceServicer):
    def __init__(self, intake: Intake, executor: Executor, token: str | None) -> None:
        self._intake = intake
        self._executor = executor
        self._token = token

    async def Export(self, request: otlp.Request, context: Any) -> ExportTraceServiceResponse:
        """Take one request in."""
        if self._token is not None:
            given = dict(context.invocation_metadata() or ()).get("authorization", "")
            if not hmac.compare_digest(str(given).encode(), f"Bearer {self._token}".encode()):
                await context.abort(
                    grpc.StatusCode.UNAUTHENTICATED, "the metadata `authorization: Bearer TOKEN` is missing or wrong"
                )
        try:
            taken = await asyncio.get_running_loop().run_in_executor(
                self._executor, lambda: self._intake.take(request, request.SerializeToString())
            )
        except Busy as busy:
            await _come_again(context, grpc.StatusCode.RESOURCE_EXHAUSTED, str(busy), busy.after_s)
        except OSError as error:
            await _come_again(
                context, grpc.StatusCode.UNAVAILABLE, f"the journal cannot be written ({error.strerror})", 5
            )
        except Exception:  # a request that we cannot take must not end the server; the sender tries again
            await _come_again(context, grpc.StatusCode.UNAVAILABLE, "internal error", 5)
        response = ExportTraceServiceResponse()
        if taken.n_rejected:
            response.partial_success.rejected_spans = taken.n_rejected
            response.partial_success.error_message = taken.why
        return response


async def _come_again(context: Any, code: grpc.StatusCode, why: str, after_s: int) -> NoReturn:
    """Refuse; a sender may try again only where `RetryInfo` says when."""
    status = Status(code=code.value[0], message=why)
    status.details.add().Pack(RetryInfo(retry_delay=Duration(seconds=after_s)))
    await context.abort(code, why, trailing_metadata=((_DETAILS, status.SerializeToString()),))
    raise AssertionError("abort raises")


async def start(
    intake: Intake, executor: Executor, host: str, port: int, token: str | None
) -> tuple[grpc.aio.Server, int]:
    """A server that takes requests, and its port. Raises: OSError when it cannot be listened on."""
    server = grpc.aio.server(
        options=(
            ("grpc.max_receive_message_length", intake.limits.body_bytes),
            ("grpc.so_reuseport", 0),  # a second collector on the port must be told so
        ),
        maximum_concurrent_rpcs=32,
    )
    trace_service_pb2_grpc.add_TraceServiceServicer_to_server(_Service(intake, executor, token), server)  # type: ignore[no-untyped-call]  # made by grpc
    try:
        bound = server.add_insecure_port(f"[{host}]:{port}" if ":" in host else f"{host}:{port}")
    except RuntimeError as error:
        raise OSError(98, "address already in use", f"{host}:{port}") from error
    await server.start()
    return server, bound
