# Commands for developers; `make help` lists them.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
WORKERS ?= 2
unexport PYTHONDONTWRITEBYTECODE  # tests and their subprocesses start faster from compiled files

.PHONY: help demo test test-fast fuzz mutants check format bench docs clean

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' Makefile | sed 's/:.*##/\t/' | expand -t 14

$(VENV)/made:
	$(PYTHON) -m venv $(VENV)
	@touch $@

$(VENV)/core: $(VENV)/made pyproject.toml constraints.txt
	$(INSTALL) .
	@touch $@

$(VENV)/all: $(VENV)/made pyproject.toml constraints.txt
	$(INSTALL) ".[all,dev]"
	@touch $@ $(VENV)/core

demo: $(VENV)/core ## install the core, then train, predict and score on synthetic data
	$(BIN)/ethobench demo

test: $(VENV)/all ## install everything and run all tests
	$(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q

test-fast: $(VENV)/all ## run the fast tests
	HYPOTHESIS_PROFILE=fast $(BIN)/python -m pytest -n $(WORKERS) --dist worksteal -q -m "not slow"

fuzz: $(VENV)/all ## feed mutated files to all readers; options: FUZZ="--seed 1 --count 5000 --formats boris,nwb --minutes 10"
	$(BIN)/python -m tests.fuzz $(FUZZ)

mutants: $(VENV)/all ## test the tests of core and metrics with random one-token mutants; options: MUTANTS="--count 60 --seed 0 --minutes 60"
	$(BIN)/python -m tests.mutants --workers $(WORKERS) --slow --related 20 --seconds 300 $(MUTANTS)

check: $(VENV)/all ## check style, types, layers, names and spelling
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m tests.code_metrics --check
	$(BIN)/codespell src tests docs README.md CONTRIBUTING.md CHANGELOG.md

format: $(VENV)/all ## format the code with ruff
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: $(VENV)/all ## measure speed relative to other packages in one run
	$(BIN)/python benchmarks/speed.py
	$(BIN)/python benchmarks/features.py
	$(BIN)/python benchmarks/networks.py
	$(BIN)/python benchmarks/scale.py
	$(BIN)/python benchmarks/study.py
	$(BIN)/python benchmarks/batch_prediction.py
	$(BIN)/python benchmarks/mabe2025_speed.py
	$(BIN)/python benchmarks/viewer.py
	$(BIN)/python benchmarks/teacher.py --time

docs: $(VENV)/all ## build the documentation into site/
	$(BIN)/mkdocs build --strict --quiet

clean: ## remove build products
	$(PYTHON) -c "import shutil; [shutil.rmtree(d, ignore_errors=True) for d in ('.venv', 'dist', 'site', 'ethobench-demo', '.mypy_cache', '.ruff_cache', '.pytest_cache', '.hypothesis')]"
