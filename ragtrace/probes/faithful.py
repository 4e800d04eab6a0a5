"""Whether a filter came through the record's JSON as the service gave it: only then may a probe be asked under it."""

from __future__ import annotations

import re
from typing import Any

from ragtrace.recording.capturing import NOT_CAPTURED, REDACTION_FAILED

__all__ = ["is_faithful"]

_CLASS_NAME = re.compile(r"[A-Za-z_]\w*(\.[A-Za-z_]\w*)+\Z")


def is_faithful(value: Any) -> bool:
    """False where an object of the service left its class's name, a long text its length, or words were kept out.

    A filter that really holds nothing but a dotted name under `type` is taken for one of these. Never raises.
    """
    if isinstance(value, dict):
        named = value.get("type")
        if set(value) == {"type", "length"} or (
            set(value) == {"type"} and isinstance(named, str) and _CLASS_NAME.match(named) is not None
        ):
            return False
        return all(map(is_faithful, value.values()))
    if isinstance(value, list):
        return all(map(is_faithful, value))
    return not (isinstance(value, str) and value in (NOT_CAPTURED, REDACTION_FAILED))
