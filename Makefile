# All set-up is done by the targets themselves: Python 3.11 or newer and make are enough.
# A certain Python: make PYTHON=/path/to/python3 …

VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip --disable-pip-version-check --no-input
LOCKS := requirements/build.txt requirements/run.txt requirements/embedded.txt requirements/dev.txt
FAST_TESTS := tests/unit tests/property tests/schemas

# No environment yet, its Python is gone, or the folder was moved: the environment is made anew.
USABLE := $(shell grep -qsF '$(CURDIR)/$(VENV)' $(BIN)/activate && $(BIN)/python -c '' 2>/dev/null && echo yes)

.DEFAULT_GOAL := help
.PHONY: help install demo up test faults check lock clean force

help: ## this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-9s %s\n", $$1, $$2 }' Makefile

install: $(VENV)/dev.stamp ## everything into .venv, the tools of development too

demo: $(VENV)/up.stamp ## the whole stack on this machine, with the football sample and a live game; PORT=8080
	$(BIN)/standings up --sample football $(if $(PORT),--port $(PORT))

up: $(VENV)/up.stamp ## the whole stack on this machine, empty; PORT=8080
	$(BIN)/standings up $(if $(PORT),--port $(PORT))

test: $(VENV)/dev.stamp ## all tests that need no Docker
	$(BIN)/python -m pytest

faults: $(VENV)/dev.stamp ## many schedules of faults on real servers: N=200 BROKER=embedded|kafka
	$(BIN)/python -m tests.faults.run --seeds $(or $(N),20) --broker $(or $(BROKER),embedded)

check: $(VENV)/dev.stamp ## lint, format, types, direction of imports, fast tests
	$(BIN)/ruff check
	$(BIN)/ruff format --check
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/python -m pytest -q $(wildcard $(FAST_TESTS))

# What is pinned already stays; a newer version: make lock LOCK='--upgrade' (or '--upgrade-package NAME').
COMPILE = $(BIN)/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes \
	--no-emit-index-url --custom-compile-command 'make lock' $(LOCK)
lock: $(VENV)/dev.stamp ## pin anew what pyproject.toml asks for
	$(COMPILE) pyproject.toml --extra embedded --extra test -o requirements/dev.txt
	$(COMPILE) pyproject.toml --extra embedded -c requirements/dev.txt -o requirements/embedded.txt
	$(COMPILE) pyproject.toml -c requirements/dev.txt -o requirements/run.txt
	$(COMPILE) --group pyproject.toml:build -o requirements/build.txt
	@! grep -nE '[a-z]+://' $(LOCKS)

clean: ## remove .venv and what tools left behind
	rm -rf $(VENV) .hypothesis .import_linter_cache .mypy_cache .pytest_cache .ruff_cache build *.egg-info
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

$(VENV)/pyvenv.cfg: $(if $(USABLE),,force)
	@found=; \
	for python in $(PYTHON) $(if $(PYTHON),,python3.13 python3.12 python3.11 python3); do \
		if $$python -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then found=$$python; break; fi; \
	done; \
	if [ -z "$$found" ]; then \
		echo "Standings needs Python 3.11 or newer: install it, or name it: make PYTHON=/path/to/python3" >&2; exit 1; \
	fi; \
	if ! $$found -c 'import ensurepip, venv' 2>/dev/null; then \
		echo "$$found can't make environments: install its venv module (Debian, Ubuntu: apt install python3-venv)" >&2; exit 1; \
	fi; \
	echo "$$found makes $(VENV)"; \
	$$found -m venv --clear $(VENV)

$(VENV)/up.stamp: $(VENV)/pyvenv.cfg pyproject.toml requirements/build.txt requirements/embedded.txt
	$(PIP) install --quiet --require-hashes -r requirements/build.txt -r requirements/embedded.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@

$(VENV)/dev.stamp: $(VENV)/pyvenv.cfg pyproject.toml $(LOCKS)
	$(PIP) install --quiet --require-hashes -r requirements/build.txt -r requirements/dev.txt
	$(PIP) install --quiet --no-deps --no-build-isolation --editable .
	@touch $@ $(VENV)/up.stamp
