# Every target sets itself up in .venv; nothing but Python 3.11+, pip and make is needed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
WORKERS ?= 2
# Minutes after which `make test-slow` starts no other file, and where it writes those that it left out.
DEADLINE ?= 120
LEFT_OUT ?= /dev/null

OLDEST := .venv-oldest
# The oldest libraries that the project runs with, on the oldest Python; see pyproject.toml.
OLDEST_LIBRARIES := numpy==1.26.0 scipy==1.12.0 pandas==2.1.0 networkx==3.2 scikit-learn==1.6.0 joblib==1.3.0 cloudpickle==3.0.0 lazy_loader==0.4 \
	SQLAlchemy==2.0.30 click==8.1.0 tqdm==4.66.0 matplotlib==3.8.0 pyparsing==3.1.0 psycopg[binary]==3.1.18 cryptography==42.0.0 \
	optuna==4.0.0 lightgbm==4.6.0 xgboost-cpu==3.0.0
# Their wheels are for this Python.
OLDEST_PYTHON ?= $(shell for name in python3.11 $(PYTHON); do \
	$$name -c 'import sys; sys.exit(sys.version_info[:2] != (3, 11))' 2>/dev/null && echo $$name && break; done)
OLDEST_TESTS := tests/thresholdout/model_selection/test_contract.py tests/thresholdout/guard/test_scorer.py \
	tests/thresholdout/guard/test_guard.py tests/thresholdout/guard/test_guard_arguments.py tests/thresholdout/ledger/test_memory.py

# Engines of frames that are never in memory, beside those of the other tests; Spark needs Java 17 or newer as well.
ENGINES := .venv-engines
ENGINES_LIBRARIES := 'dask[dataframe,distributed]==2026.8.0' pyspark==4.3.0 duckdb==2.0.0 polars==2.1.0 narwhals==2.29.0

# The newer Pythons that the project is for, with the newest libraries that they have, where the machine has them (by
# name, or in pyenv): the docstrings' examples, the tests above, and what rounding, limits and noise are tested by.
NEWER_PYTHONS ?= 3.12 3.13
TRY_WHEEL := 'from graphs import Independent; from thresholdout import plan; print(plan(Independent(1000), queries=20))'
NEWER_TESTS := graphs thresholdout $(OLDEST_TESTS) tests/graphs/numerics tests/thresholdout/limits tests/thresholdout/noise

# The libraries whose loops the hooks are run in, as the table of docs/model_selection.md has them; and what they leave out.
HOOKS := .venv-hooks
HOOKS_LIBRARIES := gepa==0.1.4 dspy==3.4.1 openevolve==0.4.0 mlflow-skinny==3.17.2 inspect-ai==0.3.285
HOOKS_NEEDS := alembic matplotlib
HOOKS_TESTS := $(patsubst %,tests/thresholdout/integrations/test_%.py,gepa dspy openevolve mlflow inspect versions)
# Ray and those that train networks come later, into the same environment: they have two gigabytes.
TRAINERS_LIBRARIES := 'ray[tune]==2.60.0' torch==2.13.0 transformers==5.23.0 lightning==2.6.6 keras==3.15.1
TRAINERS_NEEDS := accelerate
TRAINERS_TESTS := $(patsubst %,tests/thresholdout/integrations/test_%.py,ray transformers versions) \
	tests/thresholdout/model_selection/test_trainer_loops.py
# Where PyTorch is without CUDA.
TRAINERS_INDEX ?= --extra-index-url https://download.pytorch.org/whl/cpu
# It pins libraries that the others need newer.
SHINKA := .venv-shinka
SHINKA_LIBRARY := shinka-evolve==0.0.7

# The tools whose logs are read; they need other versions than the hooks. promptfoo comes from npm, where that is.
EVALUATIONS := .venv-evaluations
EVALUATIONS_LIBRARIES := inspect-ai==0.3.285 lm-eval==0.4.13 mlflow==3.17.2
PROMPTFOO := promptfoo@0.121.20

# The packages whose guarantees others build on; `make coverage` fails below COVERED percent of their lines and branches.
CORE := graphs thresholdout/guard thresholdout/mechanisms thresholdout/certificates thresholdout/limits thresholdout/ledger
# Measured: 94 % of lines and branches.
COVERED ?= 93

# Slow files are processes of their own, and many tests start others: each would compile everything again.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: has-oldest help demo docs test test-default test-others test-statistical test-slow test-oldest test-pythons test-hooks test-loops test-trainers test-shinka test-engines test-evaluations system-packages lint coverage dist mutation bench experiments clean
.DEFAULT_GOAL := help

help:
	@echo "make demo         the main job, on real data (under two minutes)"
	@echo "make test         lint, types, tests, docstrings and the documents' examples"
	@echo "make test-default the tests of it alone"
	@echo "make test-others  those of them that make coverage does not run"
	@echo "make test-statistical guarantees by simulation, at their small sizes"
	@echo "make test-slow    the slow tests, file by file, for DEADLINE minutes ($(DEADLINE)) at most"
	@echo "make test-pythons a part of the tests with every newer Python that is found ($(NEWER_PYTHONS))"
	@echo "make test-engines lazy frames and clusters of Dask and Spark, in an environment of its own (Spark needs Java)"
	@echo "make test-loops   hooks in the loops of other libraries, in an environment of its own"
	@echo "make test-hooks   the same, Ray, those that train networks, and ShinkaEvolve (two gigabytes more)"
	@echo "make test-evaluations readers on logs that Inspect, lm-eval, promptfoo and MLflow write there and then"
	@echo "make coverage     the part of the core's lines and branches that its tests run, with a least part"
	@echo "make dist         wheel and sdist, their files checked, and the wheel tried in a new environment"
	@echo "make lint         spelling, words, ruff, mypy --strict, and who may import whom"
	@echo "make docs         the documentation's site, in docs/_build; a warning is an error"
	@echo "make system-packages PostgreSQL and Chromium by apt-get (root or sudo), for the tests that need them"
	@echo "make experiments  every figure and table of benchmarks/experiments, in their quick sizes"
	@echo "make mutation     small changes to the code, each of which some test has to notice (hours)"
	@echo "make bench        the measurements of benchmarks/README.md"

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

$(OLDEST)/.made: Makefile
	$(OLDEST_PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --disable-pip-version-check $(OLDEST_LIBRARIES) \
		'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'sybil>=9'
	@touch $@

$(SHINKA)/.made: Makefile pyproject.toml
	$(PYTHON) -m venv $(SHINKA)
	$(SHINKA)/bin/python -m pip install --quiet --disable-pip-version-check -e . \
		$(SHINKA_LIBRARY) 'pytest>=8' 'hypothesis>=6.100' 'sybil>=9'
	@touch $@

$(HOOKS)/.made: Makefile pyproject.toml
	$(PYTHON) -m venv $(HOOKS)
	$(HOOKS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[client]' \
		$(HOOKS_LIBRARIES) $(HOOKS_NEEDS) 'pytest>=8' 'hypothesis>=6.100' 'sybil>=9'
	@touch $@

$(HOOKS)/.trainers: $(HOOKS)/.made
	$(HOOKS)/bin/python -m pip install --quiet --disable-pip-version-check $(TRAINERS_INDEX) \
		$(TRAINERS_LIBRARIES) $(TRAINERS_NEEDS)
	@touch $@

$(EVALUATIONS)/.made: Makefile pyproject.toml
	$(PYTHON) -m venv $(EVALUATIONS)
	$(EVALUATIONS)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[evals]' \
		$(EVALUATIONS_LIBRARIES) 'pytest>=8' 'hypothesis>=6.100' 'sybil>=9'
	if command -v npm; then npm install --silent --no-save --prefix $(EVALUATIONS)/npm $(PROMPTFOO); fi
	@touch $@

$(ENGINES)/.made: Makefile pyproject.toml
	$(PYTHON) -m venv $(ENGINES)
	$(ENGINES)/bin/python -m pip install --quiet --disable-pip-version-check -e '.[big,postgres]' $(ENGINES_LIBRARIES) \
		'pytest>=8' 'hypothesis>=6.100' 'sybil>=9'
	@touch $@

demo: $(VENV)/.demo
	$(BIN)/thresholdout demo

lint: $(VENV)/.test
	$(BIN)/codespell
	$(BIN)/python -m tests.words
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

docs: $(VENV)/.test
	$(BIN)/python -m sphinx -q -W --keep-going -b html docs docs/_build

# The one target that installs anything outside of the project's folder. Tests use what is there, and say what is not.
system-packages: $(VENV)/.test
	@$(BIN)/python -m tests.thresholdout.ledger.postgres_server
	@$(BIN)/python -m tests.thresholdout.report.browser

# Workers use all cores: more threads of linear algebra wait for each other, and double its processor time.
test-default test-others test-statistical test-oldest coverage: export OPENBLAS_NUM_THREADS = 1
test-default test-others test-statistical test-oldest coverage: export OMP_NUM_THREADS = 1

# Types, documents and the oldest libraries have a process each, and there are two cores, as a rule.
test: $(VENV)/.test
	$(MAKE) --jobs=2 --output-sync=line lint docs test-oldest WORKERS=1
	$(MAKE) test-default

test-default: $(VENV)/.test
	$(BIN)/python -m tests.parts --workers $(WORKERS)

test-others: $(VENV)/.test
	$(BIN)/python -m tests.parts --workers $(WORKERS) $(CORE:%=--ignore-glob='tests/%/*') $(CORE:%=--ignore-glob='%/*')

test-statistical: $(VENV)/.test
	$(BIN)/python -m pytest -n $(WORKERS) --dist loadfile -m 'statistical and not slow' tests

test-slow: $(VENV)/.test
	$(BIN)/python -m tests.slow_run --minutes $(DEADLINE) --workers $(WORKERS) --left-out $(LEFT_OUT)

has-oldest:
	@test -n "$(OLDEST_PYTHON)"

ifeq ($(OLDEST_PYTHON),)
test-oldest:
	@echo "no Python 3.11, which the oldest supported libraries need: the tests with them are skipped"
else
test-oldest: $(OLDEST)/.made
	$(OLDEST)/bin/python -m pytest -n $(WORKERS) --dist loadfile -W 'ignore:X does not have valid feature names:UserWarning' $(OLDEST_TESTS)
endif

test-engines: $(ENGINES)/.made
	$(ENGINES)/bin/python -m pytest -m slow tests/engines

# Each file in a process of its own: some of these libraries fork, and hang where others have started threads. Some leave
# streams open, and no fault of theirs is one of ours.
each_of = failed=0; for file in $(1); do OPENBLAS_NUM_THREADS=1 $(HOOKS)/bin/python -m pytest -m 'slow or not slow' \
	-W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning $$file || failed=1; done; exit $$failed

test-hooks: test-loops test-trainers test-shinka

test-loops: $(HOOKS)/.made
	$(call each_of,$(HOOKS_TESTS))

test-trainers: $(HOOKS)/.trainers
	$(call each_of,$(TRAINERS_TESTS))
	$(HOOKS)/bin/python examples/torch_digits.py

test-shinka: $(SHINKA)/.made
	OPENBLAS_NUM_THREADS=1 $(SHINKA)/bin/python -m pytest tests/thresholdout/integrations/test_shinka.py

test-evaluations: $(EVALUATIONS)/.made
	PATH=$(CURDIR)/$(EVALUATIONS)/npm/node_modules/.bin:$$PATH $(EVALUATIONS)/bin/python -m pytest -m slow \
		-W ignore tests/thresholdout/evaluations/test_tools.py

test-pythons: $(NEWER_PYTHONS:%=test-python%)

# The command that runs a newer Python: by name, or in pyenv; nothing where there is none.
newer = $(shell for name in python3.$(1) $(HOME)/.pyenv/versions/3.$(1).*/bin/python; do \
	$$name -c 'import sys; sys.exit(sys.version_info[:2] != (3, $(1)))' 2>/dev/null && echo $$name && break; done)

has-python3.%:
	@test -n "$(call newer,$*)"

test-python3.%:
	@if [ -z "$(call newer,$*)" ]; then echo "no Python 3.$*: the tests with it are not run"; exit 1; fi
	$(call newer,$*) -m venv .venv-3.$*
	.venv-3.$*/bin/python -m pip install --quiet --disable-pip-version-check '.[examples,postgres,encryption]' \
		'xgboost-cpu>=3.0' 'pytest>=8' 'pytest-xdist>=3.5' 'hypothesis>=6.100' 'sybil>=9' 'mpmath>=1.3'
	cd .venv-3.$* && bin/python -I -c $(TRY_WHEEL) && bin/thresholdout --version
	.venv-3.$*/bin/python -m pytest -q -n $(WORKERS) --dist loadfile $(NEWER_TESTS)

mutation: $(VENV)/.test
	$(BIN)/python -m tests.mutation run sample
	$(BIN)/python -m tests.mutation run critical
	$(BIN)/python -m tests.mutation tables

coverage: $(VENV)/.test
	$(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile --cov-branch $(CORE:%=--cov=%) --cov-report=term:skip-covered \
		--cov-fail-under=$(COVERED) $(CORE:%=tests/%) $(CORE)

dist: $(VENV)/.test
	$(BIN)/python -m tests.distribution

bench: $(VENV)/.test
	$(BIN)/python -m benchmarks

experiments: $(VENV)/.test
	$(BIN)/python -m benchmarks.experiments --jobs $(WORKERS)

clean:
	rm -rf $(VENV) $(OLDEST) $(HOOKS) $(SHINKA) $(ENGINES) $(EVALUATIONS) .venv-3.* .mypy_cache .pytest_cache .ruff_cache .import_linter_cache
	rm -rf .hypothesis .benchmarks .coverage dist build docs/_build docs/generated docs/gallery docs/sg_execution_times.rst
	rm -rf thresholdout-demo.png benchmarks/experiments/.cells *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
