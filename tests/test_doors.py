"""The doors of the command line: every command has help with an example, is documented, and starts without a database."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from typer.testing import CliRunner

from docs import cli_page
from ragtrace.cli.examples import EXAMPLES
from ragtrace.cli.main import app

DOCS = Path(__file__).resolve().parent.parent / "docs"
COMMANDS = cli_page.commands()


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_has_help_with_an_example(command, monkeypatch):
    monkeypatch.setenv("COLUMNS", "200")
    result = CliRunner().invoke(app, [*command.split(), "--help"])

    assert result.exit_code == 0
    for line in EXAMPLES[command]:
        assert line in result.stdout


@pytest.mark.parametrize("command", COMMANDS)
def test_every_command_says_what_each_of_its_options_does(command):
    section = cli_page.page().split(f"## ragtrace {command}\n")[1].split("\n## ")[0]
    rows = re.findall(r"^\| `(.+?)` \| (.*) \|$", section, re.MULTILINE)

    assert rows
    assert all(len(meaning) > 8 for _, meaning in rows), rows


def test_every_example_belongs_to_a_command_and_begins_with_it():
    assert set(EXAMPLES) == set(COMMANDS)
    assert all(line.startswith(f"ragtrace {command}") for command, lines in EXAMPLES.items() for line in lines)


def test_the_reference_of_the_commands_is_not_stale():
    """`make docs` writes it anew."""
    assert (DOCS / "cli.md").read_text(encoding="utf-8") == cli_page.page()


def test_help_loads_neither_the_database_nor_the_recorder():
    """What is typed most often must answer at once."""
    code = (
        "import sys; from ragtrace.cli.main import app; app(['--help'], standalone_mode=False); "
        "print(sorted({'duckdb', 'pyarrow', 'opentelemetry', 'rich'} & set(sys.modules)), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)

    assert "Commands:" in done.stdout
    assert done.stderr.strip() == "[]"


def test_the_package_runs_as_a_module():
    done = subprocess.run([sys.executable, "-m", "ragtrace", "--help"], capture_output=True, text=True, check=True)

    assert done.stdout.startswith("Usage: ragtrace [OPTIONS] COMMAND")


def test_a_reader_that_goes_away_ends_the_command_quietly():
    """`ragtrace queries | head -1`."""
    command = f"{sys.executable} -m ragtrace queries --format csv | head -1"
    done = subprocess.run(["sh", "-c", command], capture_output=True, text=True, check=True)

    assert done.stdout == "name,kind,answers,parameters\n"
    assert done.stderr == ""
