# Development tasks: `make TARGET`. `make` alone lists the targets.

PYTHON ?= $(shell for python in python3 python3.14 python3.13 python3.12 python3.11; do \
	$$python scripts/setup.py --fits 2>/dev/null && echo $$python && exit; done; echo python3)
BIN := .venv/bin
ARGS ?=
JOBS ?= 4
FAST := tests/unit tests/masking tests/observers tests/publisher tests/worker tests/fastapi
RELEASE ?= trixie

# Tests start hundreds of processes; each would compile all of Outbox again, which takes a third of its start.
unexport PYTHONDONTWRITEBYTECODE

.DEFAULT_GOAL := help
.PHONY: help setup dashboard docs screenshots run test test-unit test-fast test-rabbitmq test-postgresql chaos check check-types check-others bench bench-peers migrate lock format

help: ## List the targets
	@echo "make TARGET [ARGS='…']"
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  %-15s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: ## Create or update .venv from the locked requirements
	@$(PYTHON) scripts/setup.py

dashboard: setup ## Build the dashboard if its sources changed, with the installed Node or one from a wheel
	@$(BIN)/python scripts/dashboard.py

run: setup ## Run everything in one process with an embedded PostgreSQL, and print a link to the dashboard
	@$(BIN)/python scripts/dashboard.py --if-possible
	@exec $(BIN)/python -m app $(ARGS)

test: setup ## Run all tests on real servers, which are started, and installed if possible
	@echo "test: pytest, without the marker chaos, $(JOBS) files at a time, each with its own servers"
	@exec $(BIN)/python -m pytest -m "not chaos" -n $(JOBS) --dist loadfile --no-loadscope-reorder --max-worker-restart 0 $(ARGS)

test-unit: setup ## Run the unit tests; needs no servers and takes seconds
	@echo "test-unit: pytest tests/unit tests/masking"
	@exec $(BIN)/python -m pytest tests/unit tests/masking $(ARGS)

test-fast: setup ## Run the fast tests of modules, publishing, workers and FastAPI, without RabbitMQ; takes about a minute
	@echo "test-fast: pytest, without the markers rabbitmq, slow, chaos, $(JOBS) files at a time"
	@exec $(BIN)/python -m pytest -m "not rabbitmq and not slow and not chaos" -n $(JOBS) --dist loadfile $(FAST) $(ARGS)

test-rabbitmq: setup ## Run the RabbitMQ tests on the version of another Debian release (RELEASE=trixie); needs root on Debian
	@echo "test-rabbitmq: pytest, the marker rabbitmq, without chaos, on RabbitMQ of Debian $(RELEASE)"
	@OUTBOX_TEST_RABBITMQ=$(RELEASE) $(BIN)/python -m pytest -m "rabbitmq and not chaos" $(ARGS)

test-postgresql: setup ## Run the tests of the library on a PostgreSQL of this machine (PROGRAMS=/usr/lib/postgresql/15/bin)
	@echo "test-postgresql: pytest, without the markers rabbitmq, browser, slow and chaos, on $(PROGRAMS)"
	@OUTBOX_TEST_POSTGRESQL=$(PROGRAMS) $(BIN)/python -m pytest -m "not rabbitmq and not browser and not slow and not chaos" -n $(JOBS) --dist loadfile $(ARGS)

chaos: setup ## Run the long crash tests
	@echo "chaos: pytest, the marker chaos"
	@exec $(BIN)/python -m pytest -m chaos -o faulthandler_timeout=2400 $(ARGS)

check: setup ## Check format, lint, types, import layers, locks, documentation and the dashboard
	@$(MAKE) --no-print-directory --jobs 2 check-types check-others

check-types: setup ## Check types, which takes as long as all other checks
	@echo "check: types (mypy)" && $(BIN)/mypy

check-others: setup ## Check everything but types
	@echo "check: format (ruff)" && $(BIN)/ruff format --check .
	@echo "check: lint (ruff)" && $(BIN)/ruff check .
	@echo "check: import layers (import-linter)" && $(BIN)/lint-imports --no-cache
	@echo "check: words (scripts/glossary.py)" && $(BIN)/python scripts/glossary.py
	@echo "check: shape of the source" && $(BIN)/python scripts/shape.py
	@echo "check: locks" && $(BIN)/python scripts/lock.py --check
	@echo "check: documentation" && $(BIN)/python scripts/docs.py
	@$(BIN)/python scripts/dashboard.py --check

docs: setup ## Build the documentation site in build/docs/site; fails on warnings and dead links
	@$(BIN)/python scripts/docs.py

screenshots: setup dashboard ## Take the dashboard screenshots of the docs, with demo traffic
	@exec $(BIN)/python -m tests.dashboard.screenshots

bench: setup ## Measure throughput and latency on real servers
	@exec $(BIN)/python -m benchmarks $(ARGS)

bench-peers: setup ## Compare one worker with Celery, FastStream, pgqueuer and others, in a separate environment
	@exec $(BIN)/python -m benchmarks.peers $(ARGS)

migrate: setup ## Upgrade the database of OUTBOX_DATABASE_URL to the newest schema
	@exec $(BIN)/outbox migrate $(ARGS)

lock: setup ## Update the locks to the newest allowed versions
	@$(BIN)/python scripts/lock.py

format: setup ## Format the code and apply the linter's fixes
	@$(BIN)/ruff check --fix --exit-zero .
	@$(BIN)/ruff format .
