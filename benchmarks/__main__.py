"""All benchmarks, and the page made of them: `python -m benchmarks [--only NAME,…] [--scale X] [--json] [--no-page]`."""

from __future__ import annotations

import json
import os
import platform
import shlex
import subprocess
import sys
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from importlib import import_module
from importlib.metadata import version
from pathlib import Path

from benchmarks.harness import Options, Row, arguments, shown

PAGE = Path(__file__).parent.parent / "docs" / "benchmarks.md"
PARTS = {
    "recording": "Recording, on the request thread",
    "beside": "Tracing products, one retrieve call",
    "durability": "What is lost when a process ends",
    "service": "A service under load",
    "memory": "Memory",
    "imports": "Import",
    "store": "From the log to the database",
    "ingestion": "A tracing server, from the client to its database",
    "verdicts": "Verdicts",
    "metrics": "Rank metrics",
}
PACKAGES = ("ragtrace", "duckdb", "pyarrow", "opentelemetry-sdk")


def processor() -> str:
    """The processor's name, where the machine tells."""
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.machine()
    names = [line.partition(":")[2].strip() for line in lines if line.startswith("model name")]
    return names[0] if names else platform.machine()


def commit() -> str:
    """The commit that was measured."""
    command = ["git", "-C", str(PAGE.parent), "rev-parse", "--short", "HEAD"]
    done = subprocess.run(command, check=False, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)
    return done.stdout.strip() or "unknown"


def load() -> str:
    """The load averages."""
    return ", ".join(f"{value:.1f}" for value in os.getloadavg()) if hasattr(os, "getloadavg") else "unknown"


def page(found: dict[str, list[Row]], load_before: str) -> str:
    """The results as the page of the documentation."""
    met = [row for part in found.values() for row in part if row.is_met is not None]
    names = ", ".join(f"{name} {version(name)}" for name in PACKAGES)
    lines = [
        "# Benchmarks", "",
        "Made by `make bench`. Each figure is measured beside its peer or limit in the same run; budgets are what ragtrace promises.", "",
        f"- Date: {datetime.now(timezone.utc):%Y-%m-%d %H:%M} UTC, commit {commit()}",
        f"- Command: `{' '.join(['python -m benchmarks', *map(shlex.quote, sys.argv[1:])])}`",
        f"- Machine: {processor()}, {os.cpu_count()} cores, {platform.system()} {platform.release()}",
        f"- Versions: Python {platform.python_version()}, {names}",
        f"- Load averages before and after: {load_before}; {load()}",
        f"- Budgets met: {sum(row.is_met is True for row in met)} of {len(met)}", "",
    ]  # fmt: skip
    for name, rows in found.items():
        lines += [f"## {PARTS[name]}", "", "| what | measured | | budget | |", "|---|---:|---|---:|---|"]
        for row in rows:
            mark = {True: "met", False: "**missed**", None: ""}[row.is_met]
            end = f"{mark}; {row.note}" if mark and row.note else mark or row.note
            lines.append(f"| {row.what} | {row.measured:,.3g} | {row.unit} | {row.limit} | {end} |")
        lines.append("")
    return "\n".join(lines)


def run(names: list[str], options: Options, is_quiet: bool) -> Iterator[tuple[str, list[Row]]]:
    """Each part's rows."""
    for name in names:
        rows: Callable[[Options], Iterator[Row]] = import_module(f"benchmarks.{name}").rows
        if not is_quiet:
            print(f"-- {PARTS[name]}", flush=True)
        yield name, list(shown(rows(options), is_quiet))


def main() -> int:
    """Run, print, write the page; 1 when a row misses its budget."""
    parser = arguments()
    parser.description = __doc__
    parser.add_argument("--only", default=",".join(PARTS), help="the parts to run, by name")
    parser.add_argument("--no-page", action="store_true", help="leave docs/benchmarks.md as it is")
    given = parser.parse_args()
    names = given.only.split(",")
    unknown = [name for name in names if name not in PARTS]
    if unknown:
        parser.error(f"no part is called {', '.join(unknown)}; there are {', '.join(PARTS)}")
    load_before = load()
    found = dict(run(names, Options(given.scale, given.cache), given.json))
    if given.json:
        print(
            json.dumps(
                {name: [row._asdict() for row in rows] for name, rows in found.items()}, indent=1, ensure_ascii=False
            )
        )
    if not given.no_page:
        PAGE.write_text(page(found, load_before), "utf-8")
    return int(any(row.is_met is False for rows in found.values() for row in rows))


if __name__ == "__main__":
    sys.exit(main())
