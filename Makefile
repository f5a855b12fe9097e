# make demo, make test: nothing else to set up but Python 3.11+ and git.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed

.PHONY: demo test check format schemas lock clean

demo: $(STAMP)  ## the whole pipeline on the embedded broker; ends by itself
	$(BIN)/fluxplain demo

test: $(STAMP)  ## all tests
	$(BIN)/python -m pytest -n 2 --dist worksteal

check: $(STAMP)  ## format and lint as CI wants it, and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

format: $(STAMP)  ## mend what check would complain about, where a tool can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

schemas: $(STAMP)  ## write the JSON Schemas from the typed records
	$(BIN)/python -m schemas

lock: $(STAMP)  ## resolve the dependencies of pyproject.toml anew
	$(BIN)/pip install --quiet uv
	$(BIN)/uv pip compile pyproject.toml --extra dev --universal --python-version 3.11 \
		--generate-hashes --no-emit-index-url --quiet --upgrade \
		--custom-compile-command "make lock" --output-file requirements.lock

$(STAMP): pyproject.toml requirements.lock
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fluxplain needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

clean:
	rm -rf $(VENV) .fluxplain demo-output .pytest_cache .mypy_cache .ruff_cache .hypothesis
