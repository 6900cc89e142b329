# Every target sets itself up in .venv; nothing but Python 3.11+, pip and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2

.PHONY: demo test test-slow lint bench clean
.DEFAULT_GOAL := help

help:
	@echo "make demo       the main job, on real data (under two minutes)"
	@echo "make test       lint, types, tests, docstrings and the README's examples"
	@echo "make test-slow  the long statistical tests too"
	@echo "make lint       ruff and mypy --strict"
	@echo "make bench      the measurements of benchmarks/README.md"

$(VENV)/.made:
	@$(PYTHON) -c 'import sys; sys.exit("Python 3.11 or newer is needed; this is " + sys.version.split()[0] + ". Name another with PYTHON=...") if sys.version_info < (3, 11) else None'
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/.demo: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[plot]'
	@touch $@

$(VENV)/.test: $(VENV)/.made pyproject.toml
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[test]'
	@touch $@ $(VENV)/.demo

demo: $(VENV)/.demo
	$(BIN)/thresholdout demo

lint: $(VENV)/.test
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

test: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile

test-slow: lint
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'slow or not slow'

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

clean:
	rm -rf $(VENV) .mypy_cache .pytest_cache .ruff_cache .hypothesis dist build
