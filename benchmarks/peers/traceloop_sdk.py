"""Traceloop (OpenLLMetry): a decorated task, whose result it keeps as JSON."""

import os

os.environ["TRACELOOP_TELEMETRY"] = "false"

from measuring import NullExporter, measure  # the environment is read at import
from traceloop.sdk import Traceloop
from traceloop.sdk.decorators import task

Traceloop.init(app_name="bench", exporter=NullExporter(), telemetry_enabled=False, instruments=set())
answer = []


@task(name="retrieve")
def retrieve(query):
    """What the client answered."""
    return answer[0]


def record(candidates):
    """One call."""
    answer[:] = [candidates]
    retrieve("how long is a vacation?")


measure(record, "traceloop-sdk")
