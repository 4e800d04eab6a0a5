"""Hold parsers against a gold file: how much of the labelled text does each of them put out?

    python compare.py --files FOLDER --gold questions.jsonl --store parsers.duckdb --table survival.csv

Every file is parsed by every parser for its kind that is installed, as a recorded parse stage of its own; the labels are
then looked for in each text. The table is the report `parse_survival`; afterwards the store answers further questions.
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Callable, Sequence
from importlib import import_module
from pathlib import Path

import duckdb

import ragtrace as rt
from ragtrace.gold import loading, placing
from ragtrace.reports import difference, render, run
from ragtrace.store import database, merge

Parser = Callable[[Path], list[str]]
"""From a file to the text of its pages."""


def by_pypdf(path: Path) -> list[str]:
    """In the order of the content stream."""
    import pypdf

    return [page.extract_text() for page in pypdf.PdfReader(path).pages]


def by_pdfminer(path: Path) -> list[str]:
    """By layout analysis: lines and boxes."""
    from pdfminer.high_level import extract_text

    return extract_text(path).removesuffix("\f").split("\f")


def by_pypdfium2(path: Path) -> list[str]:
    """By the engine of a browser."""
    pypdfium2 = import_module("pypdfium2")  # by name: it ships no types
    with pypdfium2.PdfDocument(path) as document:
        return [page.get_textpage().get_text_range() for page in document]


def by_pdfplumber(path: Path) -> list[str]:
    """By the places of the characters, line by line across columns."""
    import pdfplumber

    with pdfplumber.open(path) as document:
        return [page.extract_text() for page in document.pages]


def by_pymupdf(path: Path) -> list[str]:
    """By blocks, in the order of the page."""
    pymupdf = import_module("pymupdf")  # by name: another licence than the others', so it is nobody's dependency here
    with pymupdf.open(path) as document:
        return [page.get_text() for page in document]


def as_utf_8(path: Path) -> list[str]:
    """As most loaders read a text: what is no UTF-8 becomes U+FFFD."""
    return [path.read_bytes().decode("utf-8", "replace")]


def by_charset_normalizer(path: Path) -> list[str]:
    """In the encoding that the bytes look like."""
    from charset_normalizer import from_bytes

    best = from_bytes(path.read_bytes()).best()
    if best is None:
        raise ValueError("in no encoding that is known")
    return [str(best)]


def by_beautifulsoup(path: Path) -> list[str]:
    """The text between the tags, in the encoding that the file declares or looks like."""
    from bs4 import BeautifulSoup

    return [BeautifulSoup(path.read_bytes(), "html.parser").get_text()]


PDF = frozenset((".pdf",))
HTML = frozenset((".html", ".htm"))
TEXT = HTML | {".xml", ".csv", ".srt", ".txt", ".md"}

PARSERS: dict[str, tuple[str, Parser, frozenset[str]]] = {
    "pypdf": ("pypdf", by_pypdf, PDF),
    "pdfminer.six": ("pdfminer", by_pdfminer, PDF),
    "pypdfium2": ("pypdfium2", by_pypdfium2, PDF),
    "pdfplumber": ("pdfplumber", by_pdfplumber, PDF),
    "pymupdf": ("pymupdf", by_pymupdf, PDF),
    "utf-8": ("codecs", as_utf_8, TEXT),
    "charset-normalizer": ("charset_normalizer", by_charset_normalizer, TEXT),
    "beautifulsoup4": ("bs4", by_beautifulsoup, HTML),
}
"""The module to import, how to call it, and which files it reads, by the name of the distribution."""


def installed(asked: Sequence[str] | None, suffixes: set[str]) -> dict[str, Parser]:
    """The parsers for these files asked for, all when none is, that can be imported; what cannot is told on stderr."""
    from importlib.util import find_spec

    found = {}
    for name in asked or PARSERS:
        module, parser, reads = PARSERS[name]
        if reads.isdisjoint(suffixes):
            continue
        if find_spec(module) is None:
            print(f"{name} is not installed and left out: pip install {name}", file=sys.stderr)
        else:
            found[name] = parser
    return found


def parse_all(files: Sequence[Path], parsers: dict[str, Parser]) -> None:
    """Every file by every parser; a parser that fails on a file is recorded as failed and the next one goes on."""
    for number, path in enumerate(files, 1):
        for name, parser in parsers.items():
            if path.suffix.lower() not in PARSERS[name][2]:
                continue
            print(f"\r{number}/{len(files)} {path.name} by {name:<20}", end="", file=sys.stderr)
            try:
                with rt.document(path.stem), rt.parse(name=name) as stage:
                    stage.output("\f".join(parser(path)))
            except Exception as error:  # parsers raise whatever they like on a damaged file; the record has it
                print(f"\n{name} failed on {path.name}: {type(error).__name__}: {error}", file=sys.stderr)
    print(file=sys.stderr)


def labels(gold: Path, names: set[str]) -> list[dict[str, object]]:
    """The questions of a gold file whose evidence is in these documents.

    Offsets count in one parser's text: by them a label would belong to that parser alone. The quotes are kept.
    """
    kept = []
    for line in gold.read_text(encoding="utf-8").splitlines():
        question = json.loads(line)
        items = [
            {key: value for key, value in item.items() if key not in ("start", "end")}
            for item in question.get("gold", [])
            if item["doc_id"] in names and item.get("quote")
        ]
        if items:
            kept.append({**question, "gold": items, "alternatives": []})
    return kept


def main(words: Sequence[str] | None = None) -> int:
    """Parse, look, print the table; 2 when there is nothing to compare."""
    options = argparse.ArgumentParser(description="Hold parsers against a gold file.")
    options.add_argument(
        "--files",
        type=Path,
        required=True,
        help="folder of PDFs, HTML, XML, CSV and texts; a file's name without its last suffix is its doc_id",
    )
    options.add_argument(
        "--gold", type=Path, help="gold file with quotes; without one only the texts' lengths are shown"
    )
    options.add_argument("--store", type=Path, help="keep the recorded store here")
    options.add_argument("--table", type=Path, help="write the table here: .json, .csv or .md")
    options.add_argument("--parser", action="append", choices=list(PARSERS), help="only this one; may be repeated")
    options.add_argument("--document", action="append", help="only this doc_id; may be repeated")
    options.add_argument("--passages", action="store_true", help="show what stands where a passage is garbled")
    given = options.parse_args(words)
    files = [
        path
        for path in sorted(given.files.iterdir())
        if path.suffix.lower() in PDF | TEXT and (not given.document or path.stem in given.document)
    ]
    parsers = installed(given.parser, {path.suffix.lower() for path in files})
    if not files or not parsers:
        print(f"nothing to compare: {len(files)} files, {len(parsers)} parsers", file=sys.stderr)
        return 2
    with tempfile.TemporaryDirectory() as folder:
        store = given.store or Path(folder) / "parsers.duckdb"
        rt.configure(store, run="compare parsers", merge="off")
        parse_all(files, parsers)
        rt.shutdown(60)
        merge.merge(store)
        with database.connect(store) as connection:
            if given.gold:
                loading.load_rows(connection, labels(given.gold, {path.stem for path in files}))
            placing.place(connection)
            table = run.run(connection, "parse_survival")
            lengths = run.select(
                connection,
                "select stages.name as parser, parses.doc_id, parses.n_characters, stages.status"
                " from stages left join parses using (stage_id) where stages.kind = 'parse' order by all",
            )
            show(table if given.gold else lengths, given.table)
            if given.passages:
                show_damage(connection)
    return 0


def show_damage(connection: duckdb.DuckDBPyConnection) -> None:
    """Every passage that a parser put out with other letters: `[-lost-]` and `{+foreign+}`."""
    rows = connection.execute(
        "select stages.name, evidence_places.evidence_id, evidence.span_text, substring(texts.text,"
        " evidence_places.start_at + 1, evidence_places.end_at - evidence_places.start_at)"
        " from evidence_places join evidence using (evidence_id) join texts using (text_hash)"
        " join parses on parses.text_hash = texts.text_hash and parses.doc_id = evidence_places.doc_id"
        " join stages on stages.stage_id = parses.stage_id"
        " where evidence_places.quality = 'text_garbled' order by all"
    ).fetchall()
    for parser, evidence_id, wanted, there in rows:
        print(f"{parser}, {evidence_id}: {difference.marked(difference.parts(wanted, there))}\n")


def show(table: run.Result, path: Path | None) -> None:
    """On the terminal, and into the file when there is one."""
    from rich.console import Console

    Console(width=140).print(render.table(table, width=140))
    if path is not None:
        made = {".json": render.json_text, ".md": render.markdown_text}.get(path.suffix, render.csv_text)(table)
        path.write_text(made, encoding="utf-8")


if __name__ == "__main__":
    sys.exit(main())
