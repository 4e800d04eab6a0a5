"""A service with a secret of its own in every place where a text can hide, and all bytes that come of it."""

from __future__ import annotations

import contextlib
import re
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import duckdb

import ragtrace as rt

__all__ = ["PLACES", "ask", "bytes_of", "copy", "found_in", "masked", "secret", "varchars"]

# Not ASCII, with a quotation mark and a backslash: so that what is escaped looks different.
_SHAPE = 's3cr3t-{}-ключ"\\'
_TOKEN = re.compile(r's3cr3t-[a-z_]+-ключ"\\')
# The part that looks the same in UTF-8 and in JSON, escaped or not; and the same with a zero byte beside each letter.
_CORE = re.compile(rb"s3cr3t-([a-z_]+)-")
_WIDE_CORE = re.compile(rb"s\0003\000c\000r\0003\000t\000-\000((?:[a-z_]\000)+)-")

PLACES: list[str] = []
"""Every place that `ask` planted a secret in."""


def secret(place: str) -> str:
    """The secret of a place."""
    if place not in PLACES:
        PLACES.append(place)
    return _SHAPE.format(place)


def masked(text: str) -> str:
    """A redactor that keeps the length."""
    return _TOKEN.sub(lambda found: "*" * len(found[0]), text)


def found_in(data: bytes) -> set[str]:
    """The places whose secret stands in these bytes: in UTF-8, escaped in JSON, in UTF-16."""
    found = {match[1].decode() for match in _CORE.finditer(data)}
    return found | {match[1].replace(b"\0", b"").decode() for match in _WIDE_CORE.finditer(data)}


def varchars(connection: duckdb.DuckDBPyConnection) -> bytes:
    """Every text of every table of a store: in the file they are compressed."""
    parts = []
    for (table,) in connection.execute("select table_name from duckdb_tables()").fetchall():
        for row in connection.execute(f'select to_json(t)::varchar from "{table}" as t').fetchall():
            parts.append(str(row[0]))
    return "\n".join(parts).encode()


def bytes_of(folder: Path) -> bytes:
    """All bytes below a folder, names of files and the texts in compressed columns with them."""
    parts = []
    for path in sorted(folder.rglob("*")):
        parts.append(str(path).encode())
        if path.is_file():
            parts.append(path.read_bytes())
            if path.suffix == ".parquet":
                rows = duckdb.execute("select to_json(t)::varchar from read_parquet(?) as t", [str(path)]).fetchall()
                parts.extend(str(row[0]).encode() for row in rows)
    return b"\n".join(parts)


def copy(source: Path, target: Path) -> None:
    """The folder as it is now, the database's write-ahead log too."""
    shutil.copytree(source, target, dirs_exist_ok=True)


class Refused(Exception):
    """What the service's own code raises."""


def ask() -> None:
    """Ingest one document and ask one question, a secret in each of PLACES."""
    _ingest()
    with contextlib.suppress(Refused):
        _query()
    with rt.query(f"who calls {secret('call_question')}?"):
        rt.context(f"a prompt with {secret('context')} in it")


def _ingest() -> None:
    @rt.parse
    def parse(raw: bytes) -> list[str]:
        return [f"The code is {secret('parsed')}.", f"The next page has {secret('page')} on it."]

    @rt.chunk
    def chunk(pages: list[str]) -> list[dict[str, Any]]:
        return [{"text": page, "metadata": {"note": secret("chunk_metadata")}} for page in pages]

    @rt.chunk(name="strings")
    def strings(text: str) -> list[str]:
        return [text, "generated: " + secret("chunk")]

    @rt.index(index=secret("index"), model=secret("index_param"))
    def write(pieces: list[dict[str, Any]], vectors: Any, title: str) -> list[str]:
        return [f"c-{secret('chunk_id')}-{number}" for number in range(len(pieces))]

    @rt.parse(name="broken")
    def broken(raw: bytes) -> str:
        raise Refused(f"cannot parse {secret('parse_error')}")

    with rt.document(f"d-{secret('doc_id')}", version=secret("doc_version")):
        pieces = chunk(parse(b"raw"))
        strings("The code is here.")
        write(pieces, object(), secret("argument"))
        with contextlib.suppress(Refused):
            broken(b"")

    @rt.document
    def ingest(text: str) -> None:
        """Its first string is the document itself."""

    ingest(f"A text of several lines\nwith {secret('document_argument')} in the second, not a name.")
    rt.inventory(index="main", chunk_ids=[f"c-{secret('inventory')}"])


def _query() -> None:
    @rt.rewrite
    def rewrite(question: str) -> str:
        return f"rewritten {secret('rewrite')}"

    @rt.rewrite(name="several")
    def several(question: str) -> list[str]:
        return [f"one {secret('rewrites')}", "two"]

    @rt.retrieve(mode="ann", index="main", model=secret("param"), nested={"a": [secret("nested_param")]})
    def search(query: str, filter: Any, sub_query: str, **more: Any) -> list[dict[str, Any]]:
        return [
            {"id": "a", "text": f"a passage with {secret('candidate_text')}", "doc_id": "d",
             "metadata": {"note": secret("metadata"), "list": [secret("metadata_list")]}},
            {"id": f"c-{secret('candidate_id')}", "text": "b", "doc_id": f"d-{secret('candidate_doc_id')}"},
        ]  # fmt: skip

    @rt.compress
    def compress(found: list[dict[str, Any]]) -> list[dict[str, Any]]:
        return [{**hit, "text": hit["text"] + secret("compressed")} for hit in found]

    @rt.truncate
    def pack(found: list[dict[str, Any]]) -> str:
        return f"Context: {found[0]['text']} {secret('prompt')}"

    @rt.generate
    def stream(messages: list[dict[str, str]]) -> Iterator[str]:
        yield f"the answer is {secret('answer')}"
        raise Refused(f"no more of {secret('stage_error')}") from ValueError(secret("cause"))

    @rt.retrieve(name="unread", extract=lambda item: {}[secret("extract_error")])
    def unread(query: str) -> Any:
        return [object()]

    with rt.query(
        f"what is {secret('question')}?", question_id=f"q-{secret('question_id')}", session=secret("session")
    ):
        asked = rewrite("what?")
        several(asked)
        found = search(
            f"find {secret('query_text')}",
            {"tenant": secret("filter"), secret("filter_key"): [secret("filter_list")], "year": 2026},
            f"part {secret('sub_query')}",
            token=secret("keyword_argument"),
        )
        with rt.filter(name=f"stage {secret('stage_name')}") as stage:
            stage.input(found)
            stage.output(found)
            stage.considered([{"id": f"c-{secret('considered')}", "text": secret("considered_text")}])
            stage.dropped(
                f"c-{secret('dropped_id')}", f"because {secret('drop_reason')}", by=f"rule {secret('dropped_by')}"
            )
        unread("q")
        prompt = pack(compress(found))
        for _ in stream([{"role": "user", "content": prompt}]):
            pass
