# From a fresh clone to values or to a test run; only Python 3.11 or newer, pip and make are needed.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
JOBS ?= 2
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check

.DEFAULT_GOAL := help
.PHONY: help demo test test-all test-browser lint format types docs reference smoke bench-tables clean

help:  ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "make %-13s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# The stamps say which step of the environment is done; the demo needs only the first.
# Compiling what is imported, instead of every file that pip unpacks, saves a fifth of the time.
$(VENV)/.base: pyproject.toml
	$(PYTHON) -m venv $(VENV)
	$(PIP) --no-compile --editable .
	@$(BIN)/python -c "import pandas, pyarrow.parquet, scipy.stats, sklearn.linear_model"
	@touch $@

$(VENV)/.dev: $(VENV)/.base requirements-dev.txt
	$(PIP) --no-compile --requirement requirements-dev.txt
	@touch $@

demo: $(VENV)/.base  ## value a data set with wrong labels in it, and show the result
	$(BIN)/python -m hcdv.apps.demo

test: $(VENV)/.dev  ## the tests, without the slow ones (which it names)
	$(BIN)/python -m pytest -n $(JOBS)

test-all: $(VENV)/.dev  ## every test, the slow ones included, with more examples drawn
	HYPOTHESIS_PROFILE=thorough $(BIN)/python -m pytest -n $(JOBS) -m "slow or not slow"

test-browser: $(VENV)/.dev  ## the report and the explorer in headless Chromium, where there is one
	$(BIN)/python -m pytest -n 0 -m "slow or not slow" tests/apps/report/test_browser.py tests/apps/explorer/test_browser.py

lint: $(VENV)/.dev  ## style, format and the direction of imports
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/lint-imports

format: $(VENV)/.dev  ## put style and format right where a tool can
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

types: $(VENV)/.dev  ## type-check the package
	PYRIGHT_PYTHON_IGNORE_WARNINGS=1 $(BIN)/pyright --pythonpath $(BIN)/python

docs: $(VENV)/.dev  ## the documentation site, warnings as errors, into docs/_build
	$(BIN)/python -m sphinx -W --keep-going -n -q -b html docs docs/_build
	@echo "docs/_build/index.html"

reference: $(VENV)/.dev  ## write docs/cli.md again from the command line itself
	$(BIN)/python docs/_ext/cli_reference.py

# HCDV_DATA names the folder of the data sets; without it, Adult and Fashion-MNIST come from
# OpenML, and the embeddings of `opendataval` are nowhere. Finished cells are not measured again.
TABLES ?= market stream ctr main opendataval augment
BENCH_OUT ?= benchmarks/results
bench-tables: $(VENV)/.dev  ## every table of the paper, the quick ones first: days of work
	set -e; for table in $(TABLES); do $(BIN)/hcdv bench $$table --out $(BENCH_OUT) $(BENCH); done

smoke:  ## install the wheel without extras into an environment of its own, and use it
	PYTHON=$(PYTHON) bash .ci/smoke

clean:  ## remove what the commands above have made
	rm -rf $(VENV) docs/_build .pytest_cache .ruff_cache .hypothesis .import_linter_cache
