# Commands for developers; `make help` lists them.
PYTHON ?= python3
VENV := .venv
ifeq ($(OS),Windows_NT)
BIN := $(VENV)/Scripts
else
BIN := $(VENV)/bin
endif
INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable
OLDEST := $(subst $(VENV),$(VENV)-oldest,$(BIN))/python
WORKERS ?= 2
unexport PYTHONDONTWRITEBYTECODE  # tests and their subprocesses start faster from compiled files

.PHONY: help demo test test-fast test-oldest fuzz mutants check format bench docs dist api clean

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

test-oldest: ## run fast tests with the oldest versions of the dependencies, in .venv-oldest
	$(PYTHON) -m venv .venv-oldest
	$(OLDEST) -m pip install --quiet --disable-pip-version-check --constraint constraints-oldest.txt \
		--editable ".[pose,stats,boost,app,video,sql]" hypothesis pytest pytest-xdist
	HYPOTHESIS_PROFILE=fast $(OLDEST) -m pytest -n $(WORKERS) -q -m "not slow" \
		tests/core tests/metrics tests/formats tests/datasets tests/analysis tests/decoding tests/features tests/cli

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
	$(BIN)/codespell src tests docs *.md
	$(BIN)/codespell --builtin en-GB_to_en-US --ignore-words-list cancelled,cancelling,licence,modle,lable --skip "*/formats/*,*/datasets/*" \
		--ignore-regex "Measuring Behaviour|label\W+behaviour|\"(Behaviour|behaviours|centre)\"" src docs benchmarks *.md

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
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict --quiet
	@echo "python -m http.server --bind 127.0.0.1 --directory site    # to read it"

dist: $(VENV)/all ## build and check sdist and wheel in dist/
	$(BIN)/python -m build
	$(BIN)/python -m twine check --strict dist/*

api: $(VENV)/all ## accept changes of the public names, signatures and commands
	$(BIN)/python -m tests.public_api --update

clean: ## remove build products
	$(PYTHON) -c "import shutil; [shutil.rmtree(d, ignore_errors=True) for d in ('.venv', '.venv-oldest', 'dist', 'site', 'ethobench-demo', '.mypy_cache', '.ruff_cache', '.pytest_cache', '.hypothesis')]"
