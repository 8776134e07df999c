# `make demo` and `make test` need only Python 3.11 or newer, git and make.
.DEFAULT_GOAL := help
.PHONY: help demo demo-scale browser test test-slow test-random test-regressions test-all mutants test-matrix test-lowest test-aarch64 test-levels environments wheel check format docs serve-docs bench conform clean

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
LEVELS := x86-64-v3 x86-64-v2 x86-64
LEVEL_TESTS := tests/kernels tests/engine
SEED ?= $(shell date +%s)
COUNT ?= 500
RANDOM_TESTS := tests/engine/test_random_models.py tests/passes/test_random_conversion.py
PIP := $(BIN)/python -m pip --disable-pip-version-check --quiet
# Of a package with a plugin, pytest rewrites every module, which takes longer than the tests of this one.
PYTEST := $(BIN)/python -m pytest --disable-plugin-autoload -p xdist -p hypothesispytest -p pytest_eltwise

$(BIN)/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "eltwise needs Python 3.11 or newer; say which with: make PYTHON=python3.12 ...")'
	$(PYTHON) -m venv $(VENV)

$(VENV)/.installed: $(BIN)/python pyproject.toml constraints.txt
	$(PIP) install --constraint constraints.txt --editable .
	$(BIN)/python -m compileall -q src # For the many short processes of the tests, also where Python may not write.
	touch $@

$(VENV)/.installed-test: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[test]'
	touch $@

$(VENV)/.installed-scale: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[scale]'
	touch $@

$(VENV)/.installed-check: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[check]'
	touch $@

$(VENV)/.installed-runtimes: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[runtimes]'
	touch $@

$(VENV)/.installed-docs: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[docs]'
	touch $@

$(VENV)/.installed-bench: $(VENV)/.installed
	$(PIP) install --constraint constraints.txt --editable '.[bench]'
	touch $@

# Print what each target does.
help:
	@awk '/^# /{text=substr($$0, 3)} /^[a-z0-9-]+:/{if (text) {sub(/:.*/, ""); printf "%-16s %s\n", $$0, text}} !/^# /{text=""}' Makefile

# Show what the commands do, on files that `eltwise demo` makes.
demo: $(VENV)/.installed
	$(BIN)/eltwise demo

# Make small arrays and checkpoints, and run every command for files larger than memory on them.
demo-scale: $(VENV)/.installed-scale
	$(BIN)/python examples/demo_scale.py

# Install Chromium for the tests of pages, if it is missing and may be installed.
browser:
	.ci/browser

# The tests that take less than about two seconds.
test: browser $(VENV)/.installed-test
	$(PYTEST) -n auto -m "not slow" --durations=15

# The tests that take longer.
test-slow: browser $(VENV)/.installed-test
	$(PYTEST) -n auto -m slow --durations=15

# Random models beside the reference, run and converted in every way. SEED=7 COUNT=5000 draws others, and more.
test-random: $(VENV)/.installed-test
	ELTWISE_SEED=$(SEED) ELTWISE_EXAMPLES=$(COUNT) $(PYTEST) -n auto -k "not planted" $(RANDOM_TESTS)

# Public regressions in the versions of runtimes that have them; their environments are made in the user's cache.
test-regressions: $(VENV)/.installed-test
	ELTWISE_REGRESSIONS=1 $(BIN)/python -m pytest -n 0 tests/regressions tests/test_docs.py -k "regression or export or versions or mode or device"

# All tests, collected once; those of a module run in one process where that keeps both busy, as they share fixtures.
test-all: browser $(VENV)/.installed-test
	$(PYTEST) -n auto --dist worksteal --durations=30

# Lint, format and types.
check: $(VENV)/.installed-check $(VENV)/.installed-test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/basedpyright --pythonpath $(BIN)/python

# Fix what ruff can fix, and format.
format: $(VENV)/.installed-check
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# Build the documentation into build/site; a broken link or a public name without an entry is an error.
docs: $(VENV)/.installed-docs
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict

# Serve the documentation on this machine, built anew at each change.
serve-docs: $(VENV)/.installed-docs
	$(BIN)/mkdocs serve

# Measure eltwise beside other libraries and print a table. BENCH_OPTIONS=--quick takes about a minute.
bench: $(VENV)/.installed-bench
	$(BIN)/python -m benchmarks.run operators $(BENCH_OPTIONS)

# Test every installed runtime; write the results, the page and docs/conformance.md. CONFORM_OPTIONS=--quick is shorter.
conform: $(VENV)/.installed-runtimes
	mkdir -p build/conformance
	$(BIN)/eltwise conform $(CONFORM_OPTIONS) --json build/conformance/results.json \
		--html build/conformance/report.html --document docs/conformance.md || test $$? -eq 1

# Sample mutants of the source and run tests on each. MUTANTS="--count 100 --seed 7" draws others, and more.
mutants: $(VENV)/.installed-test
	$(PIP) install --constraint constraints.txt --editable '.[mutants]'
	$(BIN)/python .ci/mutants.py $(MUTANTS)

# Install everything that the checks below need, at once: each call of pip builds the package anew.
environments: $(BIN)/python
	$(PIP) install --no-compile --constraint constraints.txt --editable '.[test,check,docs]' build twine
	$(BIN)/python -m compileall -qq -j 0 src $(VENV)/lib || true # With all processors; some files of others are no Python.
	touch $(VENV)/.installed $(VENV)/.installed-test $(VENV)/.installed-check $(VENV)/.installed-docs

# Build the wheel and the source archive, check them, install one after the other into an empty environment, run the demo.
wheel: $(VENV)/.installed
	$(PIP) install build twine
	rm -rf dist build/wheel
	$(BIN)/python -m build --quiet
	$(BIN)/twine check --strict dist/*
	$(PYTHON) -m venv build/wheel
	build/wheel/bin/python -m pip --disable-pip-version-check --quiet install --constraint constraints.txt dist/*.tar.gz
	build/wheel/bin/eltwise demo >/dev/null
	build/wheel/bin/python -m pip --disable-pip-version-check --quiet install --force-reinstall --no-deps dist/*.whl
	build/wheel/bin/python examples/readme.py
	build/wheel/bin/eltwise demo
	build/wheel/bin/eltwise report

# The fast tests with every Python that is installed, and with the lowest and the newest allowed versions.
test-matrix: $(VENV)/.installed
	$(PIP) install uv
	UV=$(BIN)/uv .ci/matrix $(MATRIX_TESTS)

# The fast tests with the lowest allowed version of each direct dependency, on Python 3.11 and the newest one here.
test-lowest: $(VENV)/.installed
	$(PIP) install uv
	UV=$(BIN)/uv PYTHONS="python3.11 newest" RESOLUTIONS=lowest-direct .ci/matrix $(LOWEST_TESTS)

# The tests of kernels on an emulated arm64 processor; skipped where that cannot be set up.
test-aarch64: $(VENV)/.installed-test
	PYTHON=$(BIN)/python .ci/aarch64 $(AARCH64_TESTS)

# The tests of kernels as processors without AVX-512, AVX2 and SSE 4.2 run them, whatever this processor has.
test-levels: $(VENV)/.installed-test
	for level in $(LEVELS); do \
		ELTWISE_CPU=$$level $(PYTEST) -q -n auto -m "not slow" $(LEVEL_TESTS) || exit 1; \
	done

# Remove what the other targets made.
clean:
	rm -rf $(VENV) build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis examples/models
