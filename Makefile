# make demo   the main job, from nothing to a result
# make studio   the example project in a browser: label a handful, watch it learn
# make test   formatter, linter, types, import direction, tests
# make test-all   the tests on a local Dask and Ray cluster, in a browser, of the service with PostgreSQL and killed servers, and of the
#                 core install and a plugin in fresh environments

VENV := .venv
PYTHON ?= python3
BIN := $(VENV)/bin
READY := $(VENV)/.ready
CLUSTERS := $(VENV)/.clusters
BROWSER := $(VENV)/.browser
SERVICE := $(VENV)/.service

.PHONY: demo studio test test-all format clean

$(READY): pyproject.toml constraints.txt
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dev]'
	touch $(READY)

demo: $(READY)
	$(BIN)/handful demo

studio: $(READY)
	$(BIN)/handful studio --example

test: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python tests/fetch_encoder.py
	$(BIN)/pytest --numprocesses 2 --dist loadscope

$(CLUSTERS): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[dask,ray]'
	touch $(CLUSTERS)

$(BROWSER): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[browser]'
	command -v chromium >/dev/null || { [ "$$(id -u)" = 0 ] && apt-get install --yes --quiet chromium; } \
	  || echo "There is no Chromium, and no right to install it: the tests in a browser will be skipped."
	touch $(BROWSER)

$(SERVICE): $(READY)
	$(BIN)/pip install --quiet --disable-pip-version-check --constraint constraints.txt --editable '.[postgres]' schemathesis
	touch $(SERVICE)

test-all: $(CLUSTERS) $(BROWSER) $(SERVICE)
	$(BIN)/pytest -m cluster tests/cluster
	$(BIN)/pytest -m browser tests/browser
	$(BIN)/pytest -m studio tests/studio
	$(BIN)/pytest -m service tests/service
	HANDFUL_TEST_STORE=postgres $(BIN)/pytest tests/service
	$(BIN)/pytest -m install -s tests/install

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .mypy_cache .ruff_cache .import_linter_cache .hypothesis
