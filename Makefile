# make demo   the main job, from nothing to a result
# make test   formatter, linter, types, import direction, tests
# make test-all   the tests that need a local Dask and a local Ray cluster, and those of the core install in a fresh environment

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLUSTERS := $(VENV)/.clusters

.PHONY: demo test test-all format clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/handful demo

test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/pytest

$(CLUSTERS): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dask,ray]'
	touch $(CLUSTERS)

test-all: $(CLUSTERS)
	$(BIN)/pytest -m cluster tests/cluster
	$(BIN)/pytest -m install -s tests/install

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
