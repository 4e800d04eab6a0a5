"""A WSGI service that is configured when it is loaded, in the master of a preforking server."""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable
from typing import Any

import ragtrace as rt

rt.configure()


@rt.retrieve(k=3)
def dense(query: str) -> list[tuple[str, float]]:
    return [("a", 0.9), ("b", 0.5), ("c", 0.1)]


@rt.rerank(k=2)
def rerank(query: str, found: list[tuple[str, float]]) -> list[tuple[str, float]]:
    return found[:2]


def application(environ: dict[str, Any], start_response: Callable[..., Any]) -> Iterable[bytes]:
    with rt.query(environ["QUERY_STRING"]) as query:
        rerank("q", dense("q"))
    start_response("200 OK", [("Content-Type", "application/json")])
    return [json.dumps({"query_id": query.id, "pid": os.getpid()}).encode()]
