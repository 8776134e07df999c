# Two commands do everything: `make demo` and `make test`. Nothing but Python 3.11 or newer, git and make is needed.
.PHONY: demo test check format bench conform clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "eltwise needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	touch $@

$(VENV)/.installed-check: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[check]'
	touch $@

$(VENV)/.installed-witnesses: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[witnesses]'
	touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[bench]'
	touch $@

# Runs the main job on the example models and prints what came out.
demo: $(VENV)/.installed
	$(BIN)/python examples/make_models.py
	$(BIN)/python examples/demo.py

# Installs what the tests need and runs them all.
test: $(VENV)/.installed-test
	.ci/browser
	$(BIN)/python -m pytest -n auto

# Lint, format and types.
check: $(VENV)/.installed-check
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.installed-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Measures beside the peers and prints the table: some minutes; BENCH_OPTIONS=--quick for one.
bench: $(VENV)/.installed-bench
	$(BIN)/eltwise bench $(BENCH_OPTIONS)

# Judges every runtime and writes the results, the page and the document; CONFORM_OPTIONS=--quick for the short one.
conform: $(VENV)/.installed-witnesses
	mkdir -p build/conformance
	$(BIN)/eltwise conform $(CONFORM_OPTIONS) --json build/conformance/results.json \
		--html build/conformance/report.html --document docs/conformance.md

clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/models
