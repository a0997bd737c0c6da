# Two commands for a newcomer: `make demo` and `make test`. Relative paths only: the clone may lie under a space.

PYTHON ?=
ARGS ?=
PYTEST_ARGS ?=
BOOT := python3 tools/bootstrap.py
RUN := .venv/bin/python
export PYTHON

.PHONY: help demo test test-slow lint drill stop clean environment

help: ## Show this list
	@sed -n 's/^\([a-z-]*\):.*## /\1\t/p' Makefile

environment: ## Build .venv, or see that it is current
	@$(BOOT)

demo: environment ## Run real jobs until Ctrl-C (ARGS=--once ends by itself; ARGS="'/a folder' --once"; PORT=8001)
	@$(RUN) manage.py demo $(ARGS)

test: environment ## Run the tests (a part of them: PYTEST_ARGS=tests/domain)
	@$(RUN) -m pytest $(PYTEST_ARGS)

test-slow: environment ## Run the tests that start whole projects and processes
	@$(RUN) -m pytest -m "slow and not drill and not benchmark" $(PYTEST_ARGS)

drill: environment ## Run the long drills (random histories for longer: DRILL_SECONDS=3600)
	@$(RUN) -m pytest -m drill -o faulthandler_timeout=0 $(PYTEST_ARGS)

lint: environment ## Check style and types
	@$(RUN) -m ruff check .
	@$(RUN) -m ruff format --check .
	@$(RUN) -m mypy

stop: ## Stop this clone's PostgreSQL
	@python3 -S -m example_project.embedded stop

clean: ## Stop PostgreSQL; delete its data and the environment
	@python3 -S -m example_project.embedded remove
	@rm -rf .venv .tools .postgres .mypy_cache .pytest_cache .ruff_cache
	@echo "The environment: deleted. \`make demo\` and \`make test\` build it again."
