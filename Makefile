# Two commands matter: `make demo` and `make test`. `make help` lists the rest.
PYTHON ?= $(shell command -v python3.11 || command -v python3)
VENV := .venv
BIN := $(VENV)/bin
DEMO_HOME ?= $(CURDIR)/.demo
BENCH ?= step_time
CHAOS_SEED ?= 1
TESTS_AT_ONCE ?= 4
# bytecode is kept, else every process compiles the program and its libraries again
export PYTHONDONTWRITEBYTECODE :=

.DEFAULT_GOAL := help
.PHONY: help install demo test tests check fmt docs bench chaos packages lock sbom wheels

help: ## list the targets
	@grep -hE '^[a-z]+:.*##' $(MAKEFILE_LIST) | awk -F':.*## ' '{printf "  make %-10s %s\n", $$1, $$2}'

install: $(VENV)/.installed ## make .venv with the pinned dependencies and the package

$(VENV)/bin/python:
	PYTHON=$(PYTHON) VENV=$(VENV) sh .ci/venv

# compiling everything takes a minute; most modules are never imported, the others are compiled when they are
$(VENV)/.installed: pyproject.toml constraints.txt | $(VENV)/bin/python
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt torch==2.13.0
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-compile -c constraints.txt -e '.[dev]'
	@touch $@

demo: install ## onboard three tasks, fetch, predict, show the reports
	ONBOARD_HOME=$(DEMO_HOME) PATH="$(CURDIR)/$(BIN):$$PATH" sh examples/demo.sh

packages: | $(VENV)/bin/python
	@sh .ci/packages
	@$(BIN)/python .ci/helm

test: ## every check and every test
	$(MAKE) --no-print-directory --jobs=2 install packages
	$(MAKE) --no-print-directory --jobs=2 check tests

# more at once than two cores compute, because many tests wait; tests/conftest.py puts the files in order; they are
# collected once before, else all processes compile the same modules at the same time
tests: install packages
	$(BIN)/python -m pytest --collect-only -qq > /dev/null || true
	$(BIN)/python -m pytest -n $(TESTS_AT_ONCE) --dist loadfile --no-loadscope-reorder --durations 20 --durations-min 5

check: install ## format, lint and types, exactly as CI does
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy

fmt: install ## format and mend what can be mended
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

docs: install ## the documentation as a site, into site/; fails on a link that leads nowhere
	$(BIN)/python -m mkdocs build --strict

bench: install ## measure, into bench/results; BENCH="curriculum ablations" for the long ones
	set -e; for each in $(BENCH); do $(BIN)/python -m bench.$$each; done

chaos: install packages ## kill workers, Redis and PostgreSQL under real jobs, count what was lost; under ten minutes
	$(BIN)/python -m bench.chaos --seed $(CHAOS_SEED)

wheels: install ## write the wheels and sources of onboard-client and onboard into dist/
	$(BIN)/python .ci/wheels

lock: install ## write requirements.lock: what a deployment needs, each with the digest that pip checks
	$(BIN)/python .ci/lock

sbom: ## write sbom.json: every pinned dependency as CycloneDX
	PYTHON=$(PYTHON) sh .ci/sbom
