# `make reproduce` does the project's main job, `make test` its tests; both set up .venv themselves.
PYTHON ?= python3
WORKDIR ?= runs/quickstart
BIN := .venv/bin
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: reproduce test test-parity lint format bench clean

reproduce: .venv/run.stamp
	$(BIN)/python -m experiments.ablate --config=table5:quickstart --workdir=$(WORKDIR)

# File after file as they stand: by their number of tests the slowest would come last.
test: .venv/dev.stamp
	$(BIN)/python -m pytest -n auto --dist loadfile --no-loadscope-reorder -m "not parity"

test-parity: .venv/peers.stamp
	$(BIN)/python -m pytest -m parity

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

bench: .venv/bench.stamp
	@cat benchmarks/README.md

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Python 3.11 to 3.13 is needed, not {v[0]}.{v[1]}: \
	make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv/run.stamp: .venv/bin/python requirements.txt
	$(BIN)/python -m pip install --quiet -r requirements.txt
	@touch $@

.venv/dev.stamp: .venv/run.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

.venv/peers.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -e '.[dev,peers]'
	@touch $@

.venv/bench.stamp: .venv/peers.stamp
	$(BIN)/python -m pip install --quiet -e '.[dev,peers,bench]'
	@touch $@

clean:
	rm -rf .venv runs
