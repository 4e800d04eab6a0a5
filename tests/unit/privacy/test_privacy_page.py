"""Every claim of docs/privacy.md is run: its table level by level, its redactor, its hashes."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest

import ragtrace as rt
from ragtrace import digest
from ragtrace.settings import CAPTURE_TEXT
from ragtrace.store import database, merge
from ragtrace.testing import raising
from tests.traced import Traced

from . import planted
from .test_planted_secrets import Sent, written

PAGE = Path(__file__).parents[3] / "docs" / "privacy.md"

STANDS_FOR = {
    "names:": "doc_id doc_version chunk_id index inventory question_id session candidate_id candidate_doc_id stage_name "
              "considered dropped_id",
    "words of your code:": "param nested_param index_param drop_reason dropped_by",
    "names of a filter": "filter_key",
    "words in a filter": "filter filter_list",
    "label of a sub-query": "sub_query",
    "parsed texts": "parsed page",
    "the question;": "question call_question query_text rewrite rewrites",
    "messages of exceptions": "stage_error parse_error",
    "texts of chunks and candidates": "chunk candidate_text considered_text compressed",
    "metadata,": "chunk_metadata metadata metadata_list argument document_argument keyword_argument prompt context answer "
                 "cause extract_error",
}  # fmt: skip
"""Which planted places a row of the page's table speaks of."""


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[str]]:
    """The places whose secret is found, by level, without a redactor."""
    found = {}
    for level in CAPTURE_TEXT:
        sent = Sent()
        with raising():
            found[level] = planted.found_in(written(tmp_path_factory.mktemp(level) / "store", sent, capture_text=level))
        sent.provider.shutdown()
    return found


def rows() -> list[tuple[str, list[str]]]:
    lines = re.findall(r"^\| (.+?) \| (.) \| (.) \| (.) \| (.) \|$", PAGE.read_text(encoding="utf-8"), re.MULTILINE)
    return [(line[0], list(line[1:])) for line in lines]


def test_the_table_speaks_of_every_place(seen: dict[str, set[str]]) -> None:
    spoken = [place for places in STANDS_FOR.values() for place in places.split()]
    assert sorted(spoken) == sorted(planted.PLACES)
    assert len(rows()) == len(STANDS_FOR)


@pytest.mark.parametrize(("what", "marks"), rows(), ids=lambda value: value[:30] if isinstance(value, str) else "")
def test_each_row_of_the_table_holds(what: str, marks: list[str], seen: dict[str, set[str]]) -> None:
    (places,) = [places.split() for start, places in STANDS_FOR.items() if what.startswith(start)]
    for level, mark in zip(CAPTURE_TEXT, marks, strict=True):
        assert {place for place in places if place in seen[level]} == (set(places) if mark == "●" else set()), level


def test_a_secret_is_seen_in_every_form_of_it() -> None:
    text = planted.secret("parsed")
    for form in (text, json.dumps(text), json.dumps(text, ensure_ascii=False)):
        for code in ("utf-8", "utf-16-le", "utf-16-be"):
            assert planted.found_in(b"\1" + form.encode(code) + b"\1") == {"parsed"}


def test_a_hash_stands_where_the_table_says_so(tmp_path: Path) -> None:
    found = recorded_at("none", tmp_path)
    assert found["question_hash"] == digest.of_text("what?") and found["question"] is None
    assert found["query_hash"] == digest.of_text("find it") and found["query_text"] is None
    assert found["sub_query"] == f"#{digest.of_text('a part')[:12]}"
    assert found["filter"] == '{"tenant":"[not captured]","year":2026}'
    assert found["text_hash"] == digest.of_text("a text") and found["text"] is None
    assert recorded_at("all", tmp_path)["text"] == "a text"


def recorded_at(level: str, folder: Path) -> dict[str, Any]:
    store = folder / f"{level}.duckdb"
    rt.configure(store, merge="off", capture_text=level)
    with raising():
        with rt.document("d"):
            rt.parse(lambda: "a text")()
        with (
            rt.query("what?"),
            rt.retrieve(query="find it", sub_query="a part", filter={"tenant": "t", "year": 2026}) as stage,
        ):
            stage.output(["a"])
    rt.shutdown(10)
    merge.merge(store)
    connection = database.connect(store)
    found = connection.execute(
        "select q.question_hash, q.question, s.query_hash, s.query_text, s.sub_query, s.filter, p.text_hash, t.text "
        "from queries as q join stages as s using (query_id), parses as p left join texts as t using (text_hash)"
    )
    row = dict(zip([column[0] for column in found.description or ()], found.fetchall()[0], strict=True))
    connection.close()
    return row


def test_the_page_s_redactor_masks_and_keeps_the_length(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (code,) = [code for code in re.findall(r"```python\n(.*?)```", PAGE.read_text(), re.DOTALL) if "import re" in code]
    exec(code, {"rt": rt})  # the page's own example
    with rt.query("who is ann.lee@example.org?", session="ann.lee@example.org"):
        pass
    with rt.query("and bob?", session="bob@example.org"):
        pass
    rt.shutdown(10)
    merge.merge("traces.duckdb")
    connection = database.connect("traces.duckdb")
    found = connection.execute("select question, session_id from queries order by query_id").fetchall()
    connection.close()
    assert found[0][0] == f"who is {'*' * 19}?"
    assert found[0][1] == f"{'*' * 19}#{digest.of_text('ann.lee@example.org')[:12]}" != found[1][1]


GOLD = [{"question_id": "q", "question": "what?", "gold": [{"doc_id": "d", "quote": "kept for nine years"}]}]


@pytest.mark.parametrize(
    ("mask", "verdict"), [("****", "kept"), ("*", "unobserved"), ("***************", "unobserved")]
)
def test_a_document_whose_length_a_redaction_changes_is_unobserved_never_lost(
    mask: str, verdict: str, tmp_path: Path
) -> None:
    trace = Traced(tmp_path / "t.duckdb", redact=lambda text: text.replace("1234", mask))
    try:
        with rt.document("d"):
            rt.parse(lambda: "File 1234 is kept for nine years.")()
        with rt.query("what?"):
            found = rt.retrieve(lambda: [{"id": "c", "doc_id": "d", "start": 0, "end": 33}])()
            rt.truncate(final=True)(lambda hits: hits)(found)
        trace.judge(GOLD)
        assert [row["verdict"] for row in trace.rows("select verdict from stage_loss")] == [verdict]
    finally:
        trace.close()


def test_a_redactor_that_raises_on_one_text_costs_that_text_only(tmp_path: Path) -> None:
    def redact(text: str) -> str:
        if "bad" in text:
            raise KeyError(text)
        return text

    trace = Traced(tmp_path / "t.duckdb", redact=redact)
    try:
        with rt.document("d"):
            rt.parse(lambda: "It is kept for nine years.")()
        # Eighteen characters, as many as the marker that stands for it.
        with rt.document("bad document"):
            rt.parse(lambda: "it is a bad text!!")()
        with rt.query("what?", session="bad session"), rt.retrieve(name="dense", model="bad model") as stage:
            stage.output([{"id": "bad id", "doc_id": "d", "start": 0, "end": 26}, {"id": "good id"}])
        trace.judge(GOLD)
        assert trace.rows("select text, is_aligned from texts order by text") == [
            {"text": "It is kept for nine years.", "is_aligned": True},
            {"text": "[redaction failed]", "is_aligned": False},
        ]
        (query,) = trace.rows("select question, session_id from queries")
        assert query["question"] == "what?" and query["session_id"].startswith("[redaction failed]#")
        ids = [
            row["chunk_id"]
            for row in trace.rows(
                "select i.chunk_id from candidates as c join items as i on i.item = c.item order by c.rank"
            )
        ]
        assert ids == [f"[redaction failed]#{digest.of_text('bad id')[:12]}", "good id"]
        (stage_row,) = trace.rows("select params, name from stages where kind = 'retrieve'")
        assert json.loads(stage_row["params"]) == {"model": "[redaction failed]"}
        # The text, the document's name, the session, the id, the model.
        assert trace.rows("select reason, sum(n)::int as n from losses group by all") == [
            {"reason": "redactor_error", "n": 5}
        ]
        assert [row["verdict"] for row in trace.rows("select verdict from stage_loss")] == ["kept"]
    finally:
        trace.close()


def test_half_a_secret_at_a_cut_does_not_pass_the_redactor(tmp_path: Path) -> None:
    store = tmp_path / "t.duckdb"
    rt.configure(store, merge="off", redact=planted.masked)

    def search(filter: dict[str, str]) -> list[str]:
        raise planted.Refused("x" * 1995 + planted.secret("cut_message"))

    with raising(), pytest.raises(planted.Refused), rt.query("q"):
        rt.retrieve(search)({"a": "y" * 19_990, "b": planted.secret("cut_filter")})
    rt.shutdown(10)
    data = planted.bytes_of(tmp_path)
    planted.PLACES.remove("cut_message")
    planted.PLACES.remove("cut_filter")
    assert b"s3cr3t" not in data and b"x" * 1995 + b"*****" in data


def test_with_a_key_hashes_join_their_labels_and_nobody_else_s(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = []
    for number, (key, later) in enumerate([("", ""), ("k" * 100, "k" * 100), ("k" * 100, "k" * 99)]):
        _set_key(monkeypatch, key)
        trace = Traced(tmp_path / f"{number}.duckdb", capture_text="none")
        with rt.query("what?"):
            pass
        _set_key(monkeypatch, later)
        trace.judge(GOLD)
        (row,) = trace.rows(
            "select q.question_hash, count(g.question_id) as n from queries as q left join questions as g "
            "on g.question_hash = q.question_hash group by q.question_hash"
        )
        found.append((row["question_hash"], row["n"]))
        trace.close()
    _set_key(monkeypatch, "")
    assert [n for _, n in found] == [1, 1, 0]
    assert found[0][0] == digest.of_text("what?") != found[1][0] == found[2][0]


def _set_key(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    monkeypatch.setenv("RAGTRACE_HASH_KEY", key)
    digest._blank.cache_clear()
