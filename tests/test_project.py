"""The project as a newcomer meets it: what is packaged, what is declared, what the commands are called."""

from __future__ import annotations

import ast
import os
import re
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
QUERIES = ROOT / "queries"

if sys.version_info >= (3, 11):
    import tomllib
else:
    tomllib = pytest.importorskip("tomli", reason="Python 3.10 has no tomllib; tomli is not installed")

PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]

# Import name → distribution, where they differ.
DISTRIBUTIONS = {"faiss": "faiss-cpu", "sklearn": "scikit-learn", "opentelemetry": "opentelemetry-api"}


@pytest.fixture(scope="module")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The wheel, built from the checkout without a network."""
    folder = tmp_path_factory.mktemp("dist")
    subprocess.run(
        [sys.executable, "-m", "hatchling", "build", "-t", "wheel", "-d", str(folder)],
        cwd=ROOT,
        check=True,
        capture_output=True,
    )
    (built,) = folder.glob("*.whl")
    return built


def test_the_wheel_holds_every_query_the_type_marker_and_the_demos_questions(wheel: Path) -> None:
    names = set(zipfile.ZipFile(wheel).namelist())
    sql = {f"ragtrace/queries/{path.relative_to(QUERIES).as_posix()}" for path in QUERIES.rglob("*.sql")}
    assert sql
    assert sql <= names
    assert {"ragtrace/py.typed", "ragtrace/cli/demo/questions.jsonl", "ragtrace_collectors/__init__.py"} <= names


def test_the_wheel_holds_no_tests_and_nothing_else_at_the_top_level(wheel: Path) -> None:
    tops = {name.partition("/")[0] for name in zipfile.ZipFile(wheel).namelist()}
    assert {top for top in tops if not top.endswith(".dist-info")} == {"ragtrace", "ragtrace_collectors"}


def test_the_catalogue_and_a_new_store_come_from_the_wheel_alone(wheel: Path, tmp_path: Path) -> None:
    """Away from the checkout the queries are found inside the package."""
    packages = tmp_path / "packages"
    zipfile.ZipFile(wheel).extractall(packages)
    script = (
        "import ragtrace; from ragtrace.reports import catalogue; from ragtrace.store import database\n"
        "connection = database.connect('new.duckdb')\n"
        "assert connection.execute('select count(*) from stage_loss').fetchone() == (0,)\n"
        "print(ragtrace.__file__); print(len(catalogue.load()))"
    )
    # -P is 3.11's; -c puts the working folder on the path, which holds nothing of ours here.
    environment = {**os.environ, "PYTHONPATH": str(packages)}
    done = subprocess.run(
        [sys.executable, "-c", script], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    where, n_queries = done.stdout.split()
    assert Path(where).is_relative_to(packages)
    assert int(n_queries) == len(list(QUERIES.rglob("*.sql")))


def _imported(path: Path) -> set[str]:
    tree = ast.parse(path.read_text("utf-8"))
    names = {alias.name for node in ast.walk(tree) if isinstance(node, ast.Import) for alias in node.names}
    names |= {node.module or "" for node in ast.walk(tree) if isinstance(node, ast.ImportFrom) and not node.level}
    return {name.partition(".")[0] for name in names}


def _declared(requirements: list[str]) -> set[str]:
    return {re.split(r"[\s\[<>=!~;]", requirement, maxsplit=1)[0].lower() for requirement in requirements}


@pytest.mark.parametrize(
    ("folder", "extras"),
    [("", ()), ("cli/demo", ("demo",))],
    ids=["everywhere", "demo"],
)
def test_every_package_that_is_imported_is_declared(folder: str, extras: tuple[str, ...]) -> None:
    """What one part needs stands in its extra; everything else in the dependencies of all."""
    optional = PROJECT["optional-dependencies"]
    integrations = ROOT / "ragtrace" / "integrations"
    declared = _declared(PROJECT["dependencies"])
    for extra in extras or ("sdk", "html", "notebook", "collector", "stats"):
        declared |= _declared(optional[extra])
    undeclared: dict[str, set[str]] = {}
    for path in sorted((ROOT / "ragtrace" / folder).rglob("*.py")):
        if (not folder and path.is_relative_to(ROOT / "ragtrace/cli/demo")) or path.is_relative_to(integrations):
            continue
        foreign = _imported(path) - set(sys.stdlib_module_names) - {"ragtrace", "ragtrace_collectors"}
        if path.name == "testing.py":
            foreign -= {"pytest"}  # fixtures: who asks for them has it
        unknown = {name for name in foreign if DISTRIBUTIONS.get(name, name) not in declared}
        if unknown:
            undeclared[path.relative_to(ROOT).as_posix()] = unknown
    assert undeclared == {}


def test_the_dev_extra_brings_all_other_extras() -> None:
    optional = PROJECT["optional-dependencies"]
    match = re.fullmatch(r"ragtrace\[(.+)\]", optional["dev"][0])
    assert match
    # Clients in `stores` weigh 1 GB and hold grpcio and protobuf back.
    assert set(match[1].split(",")) == set(optional) - {"dev", "stores"}


def test_every_make_target_that_a_page_names_exists() -> None:
    targets = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text("utf-8"), re.M))
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    named = {name for page in pages for name in re.findall(r"`make ([a-z-]+)", page.read_text("utf-8"))}
    assert {"demo", "test"} <= targets
    assert named <= targets


def test_importing_ragtrace_loads_neither_the_database_nor_arrow() -> None:
    script = "import sys, ragtrace; print(sorted({'duckdb', 'pyarrow', 'numpy', 'typer', 'rich'} & set(sys.modules)))"
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "[]"


def test_no_module_has_grown_into_two_jobs() -> None:
    """About 400 lines is where a file has two jobs; past 500 there is nothing left to argue."""
    long = {
        path.relative_to(ROOT).as_posix(): n_lines
        for folder in ("ragtrace", "collectors", "examples")
        for path in (ROOT / folder).rglob("*.py")
        if (n_lines := len(path.read_text("utf-8").splitlines())) > 500
    }
    assert long == {}


def test_every_broad_except_says_why_on_its_line() -> None:
    """`except BaseException` is not one: it cleans up and raises again."""
    broad = re.compile(r"except Exception\b[^#]*$")
    silent = [
        f"{path.relative_to(ROOT).as_posix()}:{number}"
        for folder in ("ragtrace", "collectors", "examples", "benchmarks")
        for path in (ROOT / folder).rglob("*.py")
        for number, line in enumerate(path.read_text("utf-8").splitlines(), 1)
        if broad.search(line)
    ]
    assert silent == []


def test_ci_runs_from_any_folder() -> None:
    script = ROOT / ".ci" / "run"
    assert os.access(script, os.X_OK)
    subprocess.run(["sh", "-n", str(script)], check=True)
