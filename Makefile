# `make reproduce` does the project's main job, `make test` its tests; both set up .venv themselves.
PYTHON ?= python3
WORKDIR ?= runs/reproduce
BIN := .venv/bin
export TF_CPP_MIN_LOG_LEVEL ?= 2

.PHONY: docs dist gpu smoke-gpu reproduce reproduce-from-scratch test test-core test-slow test-parity test-lowest test-jax test-torch smoke-jax lint format bench clean

# The path from text to an answer; a night's Table 5, judged anew; Table 5 from the models of its rows.
# Four to five minutes of two cores with AVX-512; the same command goes on where it was interrupted.
reproduce: .venv/run.stamp
	$(BIN)/python -m experiments.ablate --config=path --workdir=$(WORKDIR)/path
	$(BIN)/python -m experiments.report --workdir=experiments/results/table5/night --output=$(WORKDIR)/night
	$(BIN)/python -m experiments.ablate --config=table5:checkpoints --workdir=$(WORKDIR)/table5

# All rows are pre-trained on the sample, for too few steps to show the paper's order: its docstring
# says what to expect. 10 minutes of two cores with AVX-512, 25 without.
reproduce-from-scratch: .venv/run.stamp
	$(BIN)/python -m experiments.ablate --config=table5:quickstart --workdir=$(WORKDIR)-from-scratch

# File after file as they stand: by their number of tests the slowest would come last.
PARALLEL := -n auto --dist loadfile --no-loadscope-reorder

# Each test once: the core's where there is nothing else, then those of what is beyond the paper.
test: .venv/dev.stamp
	$(BIN)/python -m tests.core_alone $(CORE) $(TESTS)
	$(BIN)/python -m pytest $(PARALLEL) -m "beyond and not parity and not slow" $(BEYOND)

# Every case of what the tests try on some: every character, every pattern, every step under XLA, on
# JAX every step in float32 too, all real text of the parity checks.
test-slow: .venv/peers.stamp .venv-jax/stamp
	$(BIN)/python -m pytest $(PARALLEL) -m "slow and not parity"
	BERT_SLOW=1 $(BIN)/python -m pytest -n auto --dist worksteal -m parity
	KERAS_BACKEND=jax .venv-jax/bin/python -m pytest $(PARALLEL) -m slow $(ON_JAX)
	KERAS_BACKEND=jax .venv-jax/bin/python -m pytest $(PARALLEL) $(SLOW_ON_JAX)

# The files with such tests: tables of the core's have rows of them (tests/guests.py).
BEYOND := tests/beyond tests/goldens tests/official_bert/test_outside_files.py \
	tests/official_bert/test_any_backend.py tests/experiments/tables/reporting/test_report.py tests/test_docs.py

# The paper alone: a copy of the tree without the guests' folders. Every module is imported, then these
# tests run, and a table in miniature, which `make test` leaves out; TESTS="tests/test_docs.py" runs a few.
TESTS ?= $(PARALLEL)
CORE := -m "not parity and not beyond and not slow"
test-core: .venv/dev.stamp
	$(BIN)/python -m tests.core_alone --table $(CORE) $(TESTS)

test-parity: .venv/peers.stamp
	$(BIN)/python -m pytest -n auto --dist worksteal -m "parity and not slow"  # one file has most of them

# With the oldest versions that pyproject.toml allows. Without these constraints uv would take a newer
# TensorFlow, and with it alone a protobuf that the newest tensorflow-metadata does not run with.
test-lowest: .venv-lowest/stamp
	.venv-lowest/bin/python -m pytest $(PARALLEL) -m "not parity"

# Without TensorFlow, in an environment of its own: what JAX alone does, and tests of any backend.
ANY_BACKEND := $(addprefix official_bert/test_,any_backend checkpoints_embedded checkpoints_model_folder features heads \
	model_predict objectives window_pooling) experiments/training/step/test_training_steps
ON_JAX := tests/without_tensorflow $(ANY_BACKEND:%=tests/%.py) tests/beyond/without_tensorflow
# Losses of guests run on TensorFlow always, on JAX before a release.
SLOW_ON_JAX := tests/beyond/common/test_objectives_of_guests.py tests/beyond/sentence_vectors/test_losses.py
test-jax: .venv-jax/stamp
	KERAS_BACKEND=jax .venv-jax/bin/python -m pytest $(PARALLEL) -m "not slow" $(ON_JAX)

# Without TensorFlow or JAX: the library on PyTorch, in the version of the extra `peers`.
test-torch: .venv-torch/stamp
	KERAS_BACKEND=torch .venv-torch/bin/python -m pytest $(PARALLEL) tests/official_bert/test_any_backend.py tests/official_bert/test_heads.py

smoke-jax: .venv-jax/stamp
	KERAS_BACKEND=jax .venv-jax/bin/python -m experiments.ablate --config=table5:smoke --workdir=runs/smoke-jax

lint: .venv/dev.stamp
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

# The documentation as pages in site/, from the repository and the docstrings alone: no network.
docs: .venv/docs.stamp
	$(BIN)/mkdocs build --strict

# The files of a release in dist/, built twice and compared; CONTRIBUTING.md says how to upload them.
dist: .venv/dist.stamp
	$(BIN)/python -m tests.release

format: .venv/dev.stamp
	$(BIN)/ruff check --fix .
	$(BIN)/ruff format .

# No network and no environment of its own: $(PYTHON) has JAX for CUDA. The same command goes on.
gpu:
	KERAS_BACKEND=jax $(PYTHON) -m benchmarks.gpu --output=runs/gpu --seconds=$(or $(SECONDS),0)

# The same in miniature on a CPU, to see that all of it runs; SECONDS=300 as far as that goes.
smoke-gpu: export XLA_FLAGS := --xla_backend_optimization_level=0
smoke-gpu: .venv-jax/stamp
	KERAS_BACKEND=jax .venv-jax/bin/python -m benchmarks.gpu --output=runs/smoke-gpu --scale=smoke \
		--shapes=tiny --lengths=16 --tokens=64 --rounds=1 --seconds=$(or $(SECONDS),0)

bench: .venv/bench.stamp
	@cat benchmarks/README.md

.venv/bin/python:
	@$(PYTHON) -c 'import sys; v = sys.version_info[:2]; \
	sys.exit(0 if (3, 11) <= v <= (3, 13) else f"Python 3.11 to 3.13 is needed, not {v[0]}.{v[1]}: \
	make PYTHON=/path/to/python3.11 ...")'
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --upgrade pip

.venv-jax/stamp: .venv/bin/python requirements-base.txt pyproject.toml
	.venv/bin/python -m venv .venv-jax
	.venv-jax/bin/python -m pip install --quiet -e '.[jax]' pytest pytest-timeout pytest-xdist
	@touch $@

.venv-torch/stamp: .venv/bin/python requirements-base.txt pyproject.toml
	.venv/bin/python -m venv .venv-torch
	.venv-torch/bin/python -m pip install --quiet -e '.[torch]' torch==2.13.0 pytest pytest-timeout pytest-xdist onnx onnxruntime
	@touch $@

.venv-lowest/stamp: .venv/bin/python requirements.txt requirements-base.txt pyproject.toml
	.venv/bin/python -m venv .venv-lowest
	.venv-lowest/bin/python -m pip install --quiet uv
	printf 'tensorflow==2.20.*\nprotobuf>=6.31.1\n' > .venv-lowest/constraints.txt
	.venv-lowest/bin/uv pip install --quiet --python .venv-lowest/bin/python --resolution lowest-direct \
	  --only-binary :all: --no-binary seqeval --no-binary promise --no-binary rouge-score --no-binary pysword \
	  --no-binary official-bert \
	  -c .venv-lowest/constraints.txt -e '.[dev,tensorflow]'
	@touch $@

# make reproduce CONSTRAINTS=constraints.txt installs the versions behind the committed table.
.venv/run.stamp: .venv/bin/python requirements.txt requirements-base.txt
	$(BIN)/python -m pip install --quiet -r requirements.txt $(CONSTRAINTS:%=-c %)
	@touch $@

.venv/dev.stamp: .venv/run.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[dev]'
	@touch $@

.venv/peers.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -e '.[dev,peers]'
	@touch $@

.venv/docs.stamp: .venv/run.stamp pyproject.toml
	$(BIN)/python -m pip install --quiet -e '.[docs]'
	@touch $@

.venv/dist.stamp: .venv/dev.stamp
	$(BIN)/python -m pip install --quiet -e '.[dev,dist]'
	@touch $@

.venv/bench.stamp: .venv/peers.stamp
	$(BIN)/python -m pip install --quiet -e '.[dev,peers,bench]'
	@touch $@

clean:
	rm -rf .venv .venv-jax .venv-torch .venv-lowest runs site .cache
