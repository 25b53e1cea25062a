# SPDX-License-Identifier: Apache-2.0
# The doors of the house. `make run` and `make test` do everything on a fresh machine, set-up included.
SHELL := /bin/sh
.DEFAULT_GOAL := help

SCENARIO ?= quickstart
TOPOLOGY ?=
RUN_OPTIONS ?=
BENCH_OPTIONS ?=

PYTHON := .venv/bin/python
CARGO := cargo --quiet
FABRIC := --manifest-path harness/fabric/Cargo.toml

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing and build everything
	@harness/setup.sh

.PHONY: setup-tests
setup-tests:
	@WITH_TESTS=1 harness/setup.sh

.PHONY: setup-bench
setup-bench:
	@WITH_BENCH=1 harness/setup.sh

.PHONY: run
run: setup ## Run the main job: quickstart (SCENARIO=..., TOPOLOGY=..., RUN_OPTIONS=...)
	@./sundial run $(SCENARIO) $(if $(TOPOLOGY),--topology $(TOPOLOGY)) $(RUN_OPTIONS)

.PHONY: topology
topology: setup ## Boot the machines of TOPOLOGY and leave them up (sundial exec, console, down)
	@./sundial up $(if $(TOPOLOGY),$(TOPOLOGY),two-hosts-10base-t)

.PHONY: check
check: setup-tests ## Format, lint, types and every test that boots no machine
	@cd harness && ../$(PYTHON) -m ruff check --quiet . && ../$(PYTHON) -m ruff format --quiet --check .
	@cd harness && ../$(PYTHON) -m mypy --no-error-summary sundial benchmarks
	@$(CARGO) fmt $(FABRIC) --all --check
	@$(CARGO) clippy $(FABRIC) --release --all-targets --locked -- -D warnings
	@$(CARGO) test $(FABRIC) --release --locked
	@$(MAKE) --no-print-directory -s -C harness/clock test
	@$(MAKE) --no-print-directory -s -C guest-apps check
	@$(MAKE) --no-print-directory -s -C guest-apps/sss-core check
	@cd harness && ../$(PYTHON) -m pytest -q -n 2 -m "not vm" tests
	@$(PYTHON) -m pytest -q -m "not vm" images/linux/tests
	@$(PYTHON) -m pytest -q -m "not vm" images/ssscore/tests

.PHONY: test
test: check ## Pass every test, those with booted guests included
	@cd harness && ../$(PYTHON) -m pytest -q -m vm tests
	@$(PYTHON) -m pytest -q -m vm images/linux/tests
	@$(PYTHON) -m pytest -q -m vm guest-apps/sss-core/tests
	@$(PYTHON) -m pytest -q -m vm images/ssscore/tests

.PHONY: bench
bench: setup-bench ## Measure the figures that README.md promises, side by side (BENCH_OPTIONS="boot --quick --json FILE")
	@cd harness && ../$(PYTHON) -m benchmarks $(BENCH_OPTIONS)

.PHONY: clean
clean: ## Remove what was built (captures stay)
	rm -rf .venv .sundial images/out harness/fabric/target harness/clock/build guest-apps/sss-core/build
