"""Whatever passes through a stage comes back as it was, and never stops the recording."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt

from .recorded import recorded


class Hostile:
    """Raises whatever it is asked."""

    def _raise(self, *arguments: Any) -> Any:
        raise RuntimeError("do not look at me")

    __repr__ = __str__ = __eq__ = __hash__ = __len__ = __iter__ = __bool__ = __getitem__ = _raise  # type: ignore[assignment]
    __deepcopy__ = __copy__ = __reduce__ = __float__ = __index__ = __contains__ = _raise  # type: ignore[assignment]

    def __getattr__(self, name: str) -> Any:
        raise RuntimeError(name)


def cyclic() -> dict[str, Any]:
    made: dict[str, Any] = {"id": "a"}
    made["metadata"] = {"self": made, "list": [made]}
    return made


def deep() -> Any:
    made: Any = "end"
    for _ in range(10_000):
        made = [made]
    return made


VALUES: dict[str, Any] = {
    "hostile": Hostile(),
    "list of hostile": [Hostile(), Hostile()],
    "dict of hostile": {"id": Hostile(), "text": Hostile(), "score": Hostile()},
    "list of dicts of hostile": [{"id": Hostile(), "score": Hostile(), "metadata": Hostile()}],
    "cyclic": [cyclic()],
    "deep": deep(),
    "lock": threading.Lock(),
    "class": Hostile,
    "bytes": b"\xff",
    "odd keys": {(1, 2): [1], None: 3},
    "surrogate": [{"id": "\ud800", "text": "\udfff\0"}],
    "none": [None, None],
    "numbers": [1.5, float("nan")],
}


@pytest.mark.parametrize("name", VALUES)
@pytest.mark.parametrize("kind", [rt.retrieve, rt.fuse, rt.rerank, rt.compress, rt.rewrite, rt.generate, rt.parse, rt.chunk, rt.index],
                         ids=lambda kind: kind.kind)  # fmt: skip
def test_a_value_passes_through_untouched_and_the_run_is_recorded(kind: Any, name: str, ragtrace_store: Path) -> None:
    """I-23"""
    value = VALUES[name]

    @kind(name="stage", weights=value, filter=value)
    def through(given: Any, filter: Any = None, k: Any = None) -> Any:
        return given

    with rt.query("q"):
        began = time.perf_counter()
        assert through(value, filter=value, k=value) is value
        assert time.perf_counter() - began < 2
    found = recorded(ragtrace_store)
    assert len(found.stages) == 1 and found.query()["status"] == "ok"
    assert not [row for row in found.rows("loss") if row["reason"] != "unreadable_candidate"]


def test_ids_and_scores_of_foreign_kinds_are_read(ragtrace_store: Path) -> None:
    import decimal
    import uuid

    one = uuid.UUID(int=1)
    with rt.query("q"), rt.retrieve(name="stage") as stage:
        stage.output([{"id": one, "score": decimal.Decimal("0.5")}, {"id": 7, "score": float("inf")}])
    columns = recorded(ragtrace_store).stage("stage").one("out").columns
    assert columns is not None and list(columns.chunk_id) == [str(one), "7"]
    assert columns.score is not None and columns.score[0] == 0.5 and columns.score_flag == {1: "inf"}
