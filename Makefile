# Every target makes its own virtual environment first; the second time that costs nothing.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
DEMO_STORE ?= demo.duckdb
# Tests of one file stay on one worker, so that what a file sets up once is set up once.
PYTEST_ARGS ?= -n 2 --dist loadfile -q

.DEFAULT_GOAL := help
.PHONY: help demo test test-all check fix bench golden docs wheel clean

help: ## this list
	@grep -E '^[a-z-]+:.*##' Makefile | sed -E 's/:.*## /\t/' | expand -t 12

$(VENV)/created:
	@$(PYTHON) -c 'import sys; sys.exit(None if sys.version_info >= (3, 10) else "ragtrace needs Python 3.10 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@touch $@

# ready-demo: what `ragtrace demo` needs. ready-dev: everything for checks, tests and examples.
$(VENV)/ready-%: pyproject.toml | $(VENV)/created
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --editable '.[$*]'
	@touch $@

demo: $(VENV)/ready-demo ## build, trace and report a real hybrid RAG over the Python language reference
	$(BIN)/ragtrace demo $(DEMO_STORE)

test: $(VENV)/ready-dev ## all tests, kills and servers reduced
	$(BIN)/python -m pytest -m 'not full' $(PYTEST_ARGS)

test-all: $(VENV)/ready-dev ## all tests in full
	RAGTRACE_TEST_ALL=1 $(BIN)/python -m pytest $(PYTEST_ARGS)

check: $(VENV)/ready-dev ## format, lint, types, layers, SQL, spelling
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/pyright
	$(BIN)/lint-imports
	$(BIN)/sqlfluff lint --processes 2 queries
	$(BIN)/codespell

fix: $(VENV)/ready-dev ## formatters and safe fixes
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .
	$(BIN)/sqlfluff fix queries
	$(BIN)/codespell --write-changes

bench: $(VENV)/ready-dev ## benchmarks, each as a ratio in one run
	$(BIN)/python -m benchmarks

golden: $(VENV)/ready-dev ## rewrite golden files; then read the diff
	RAGTRACE_GOLDEN=rewrite $(BIN)/python -m pytest -q tests/golden

docs: $(VENV)/ready-dev ## rewrite the reference pages made from code
	$(BIN)/python -m docs

wheel: $(VENV)/ready-dev ## build the wheel and the source archive into dist/
	$(BIN)/python -m pip wheel --quiet --no-deps --wheel-dir dist .

clean: ## remove the virtual environment and what tools left
	rm -rf $(VENV) dist .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
