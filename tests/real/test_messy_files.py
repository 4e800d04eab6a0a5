"""Files as they are found: other encodings, CRLF, marks of their own, characters beyond the basic plane.

A label whose offsets count something else than code points of the parsed text is told by what it counts.
"""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace.gold.loading import load_rows
from ragtrace.store.database import connect
from ragtrace.store.merge import merge

from .corpora import data_folder

SAID = {
    "utf16_units": "UTF-16 units",
    "utf8_bytes": "UTF-8 bytes",
    "universal_newlines": "line ends as one character",
    "nfc": "Unicode form NFC",
}


@pytest.fixture(scope="module")
def files() -> list[dict[str, Any]]:
    """Each text file with a passage of it, and where that stands counted in each unit."""
    folder = data_folder("messy")
    rows = [json.loads(line) for line in (folder / "manifest.jsonl").read_text("utf-8").split("\n") if line]
    return [{**row, "bytes": (folder / row["file"]).read_bytes()} for row in rows if row.get("anchor_at")]


def labelled(store: Path, texts: dict[str, str], gold: list[dict[str, Any]]) -> dict[str, tuple[str, str | None]]:
    """Parse the texts, load the labels; status and note of each by its question."""
    rt.configure(store, run="messy", merge="off")
    for name, text in texts.items():
        with rt.document(name), rt.parse(name="decode") as stage:
            stage.output(text)
    assert rt.shutdown(10)
    merge(store)
    with connect(store) as connection:
        load_rows(connection, gold)
        found = connection.execute("select question_id, label_status, label_note from evidence").fetchall()
    return {question_id: (status, note) for question_id, status, note in found}


def question(name: str, unit: str, item: dict[str, Any]) -> dict[str, Any]:
    return {"question_id": f"{name} {unit}", "question": f"{name} {unit}?", "gold": [item]}


def test_offsets_in_another_unit_are_told_by_the_unit(files: list[dict[str, Any]], tmp_path: Path) -> None:
    texts = {one["file"]: one["bytes"].decode(one["encoding"]) for one in files}
    gold, expected = [], {}
    for one in files:
        length = len(one["anchor"])
        for unit, at in one["anchor_at"].items():
            item = {"doc_id": one["file"], "start": at, "end": at + length, "quote": one["anchor"]}
            gold.append(question(one["file"], unit, item))
            is_other = at != one["anchor_at"]["code_points"]
            expected[f"{one['file']} {unit}"] = SAID[unit] if is_other else None
    found = labelled(tmp_path / "messy.duckdb", texts, gold)
    for name, unit in expected.items():
        status, note = found[name]
        assert status == ("placed" if unit is None else "misaligned"), name
        assert unit is None or unit in str(note), (name, note)
    assert {unit for unit in expected.values() if unit} == set(SAID.values())


def test_a_text_in_the_wrong_encoding_has_lost_its_letters_not_its_latin(
    files: list[dict[str, Any]], tmp_path: Path
) -> None:
    """As UTF-8: nothing of a Big5 passage is left; a UTF-16 one stands there with a NUL after every letter."""
    texts = {one["file"]: one["bytes"].decode("utf-8", "replace") for one in files}
    gold = [question(one["file"], "quote", {"doc_id": one["file"], "quote": one["anchor"]}) for one in files]
    found = labelled(tmp_path / "messy.duckdb", texts, gold)
    status = {name.removesuffix(" quote"): status for name, (status, _) in found.items()}
    assert status.pop("upsaid.com.xml") == "text_missing"
    assert status.pop("plane1-utf-16le.html") == "normalized"
    assert set(status.values()) == {"placed"}
