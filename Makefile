# Every target sets up what it needs; nothing is written outside this folder and the usual caches.
# `make` alone prints the list.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMPS := build/stamps
DEMO := demo-results
# pyo3 links the extension module against no libpython, so it has no Rust tests of its own; it is tested
# from Python.
CRATES := --workspace --exclude narrows-native

export CARGO_TARGET_DIR ?= $(CURDIR)/target
export PIP_DISABLE_PIP_VERSION_CHECK := 1

# Every record says which source it was made with.
NARROWS_GIT := $(shell git describe --always --dirty --abbrev=12 2>/dev/null)
# In an archive of the sources, git has written it into this file.
ifeq ($(NARROWS_GIT),)
NARROWS_GIT := $(shell grep -v Format .ci/commit | cut -c 1-12)
endif
ifneq ($(NARROWS_GIT),)
export NARROWS_GIT
endif

RUST_FILES := $(shell find core bpf drivers formats agent python/binding -name '*.rs' -o -name Cargo.toml -o -name '*.[ch]' \
                2>/dev/null) \
              Cargo.toml Cargo.lock rust-toolchain.toml

# Property tests draw the same cases every time: what passes here passes elsewhere. `make explore` draws others. See
# docs/decisions/0028.
SEED := 1
ROUNDS ?= 10
MINUTES ?= 1

.PHONY: help demo test nightly slurm mutants fuzz explore check portable arm bench profile golden build generated site wheel image dist lock clean
.PHONY: check-rust check-studies check-python

help: ## print this list
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

demo: build ## build everything, run first-look emulated and simulated, print tables and report
	@rm -rf $(DEMO)
	@status=0; .ci/step "first-look, emulated: five schemes in real time" "1 minute" \
	    $(BIN)/narrows run first-look -o $(DEMO)/emulate || status=$$?; \
	[[ $$status == 0 || $$status == 4 || $$status == 6 ]] || exit $$status; \
	.ci/step "first-look, simulated" "5 s" \
	    $(BIN)/narrows run first-look --where simulate -o $(DEMO)/simulate --no-report >/dev/null; \
	echo; \
	if [[ $$status == 4 ]]; then \
	    $(BIN)/narrows report $(DEMO)/simulate; $(BIN)/narrows show $(DEMO)/simulate; \
	else \
	    $(BIN)/narrows show $(DEMO)/emulate $(DEMO)/simulate; \
	    echo; echo "report: $(DEMO)/emulate/report.html"; \
	fi; \
	exit $$status

test: build $(STAMPS)/tools ## run all tests (Rust and Python), and say what was skipped
	@PROPTEST_RNG_SEED=$(SEED) $(PYTHON) .ci/tests

nightly: build $(STAMPS)/tools ## what repeats tests in full: known paths, studies, every figure in every size, three seeds; about an hour
	$(BIN)/pytest -m nightly $$(grep -l mark.nightly tests/python/test_*.py)
	cargo test --release --quiet $(CRATES) --test all -- --ignored --skip tunnel::
	NARROWS_FIGURES=all $(BIN)/pytest --numprocesses auto tests/python/test_figures_hold_data.py
	NARROWS_TAMPERED=1000 $(BIN)/pytest tests/python/test_tampering.py
	@$(MAKE) explore ROUNDS=3

slurm: build $(STAMPS)/tools ## run a sweep as a job array of a real SLURM on this machine (root; Debian's slurmctld, slurmd, munge)
	$(BIN)/pytest -m slurm tests/python/test_sweep_slurm.py

mutants: build $(STAMPS)/tools ## break the program in small ways, one after the other, and see that the tests notice
	$(BIN)/python .ci/mutants

fuzz: ## run every fuzz target for MINUTES with a new seed
	@MINUTES=$(MINUTES) .ci/fuzz

explore: build $(STAMPS)/tools ## draw other cases for the property tests, ROUNDS times; each seed repeats its cases
	@crates=$$(grep -l '^proptest' core/*/Cargo.toml | sed 's,core/\(.*\)/Cargo.toml,-p narrows-\1,'); \
	properties=$$(grep -l '^@given' tests/python/*.py); \
	for ((round = 1; round <= $(ROUNDS); round++)); do \
	    seed=$$(od -An -N4 -tu4 /dev/urandom | tr -d ' '); \
	    echo "== round $$round of $(ROUNDS): PROPTEST_RNG_SEED=$$seed, --hypothesis-seed=$$seed"; \
	    export PROPTEST_RNG_SEED=$$seed; \
	    cargo test --release --quiet $$crates; \
	    cargo test --release --quiet -p narrows-tests --test all fuzz::; \
	    cargo test --release --quiet -p narrows-realpath --test plans; \
	    $(BIN)/pytest --hypothesis-seed=$$seed --numprocesses auto $$properties; \
	    NARROWS_MUTATED=1000 NARROWS_MUTATED_SEED=$$seed $(BIN)/pytest --numprocesses auto \
	        tests/python/test_mutated_scenarios.py; \
	done

check: build $(STAMPS)/tools ## formatting, lints, lengths, types, generated files, licences, features, the example, additions, studies, kills
	@.ci/beside check-rust check-studies check-python

# Where cargo links, or waits for another cargo, a processor is left to those beside it.
check-rust:
	cargo fmt --all --check
	for crate in examples/own-*/Cargo.toml; do cargo fmt --check --manifest-path $$crate; done
	for crate in programs/*/Cargo.toml; do cargo fmt --check --manifest-path $$crate; done
	@! command -v gofmt >/dev/null || test -z "$$(gofmt -l programs | tee /dev/stderr)"
	$(BIN)/python .ci/licences
	$(BIN)/python .ci/built-once
	@.ci/step "clippy" "2 minutes" cargo clippy --release --quiet --workspace --all-targets \
	    --features narrows-endpoints/event-log -- -D warnings
	@cd examples/own-scheme && ../../.ci/step "examples/own-scheme" "20 s" cargo test --release --quiet --locked
	@.ci/step "additions to a copy of the workspace" "1 minute" cargo test --release --quiet $(CRATES) --test adding
	@NARROWS_KILLS=50 .ci/step "killed agents" "1 minute" \
	    cargo test --release --quiet $(CRATES) --test all no_process_survives

check-studies:
	@.ci/step "studies" "3 minutes" $(BIN)/pytest -m study $$(grep -l mark.study tests/python/test_*.py)

check-python:
	$(BIN)/python .ci/lints
	$(BIN)/python .ci/lengths
	$(BIN)/python .ci/counts
	$(BIN)/python .ci/circles
	$(BIN)/python .ci/language
	$(BIN)/ruff format --check --quiet python validation programs tests/python
	$(BIN)/ruff check python validation programs tests/python
	@.ci/step "types" "1 minute" $(BIN)/mypy
	$(BIN)/narrows schema | diff -u scenarios/scenario.schema.json - || { echo "run: make generated"; exit 1; }
	$(BIN)/narrows schema --reference | diff -u docs/guide/scenario-reference.md - || { echo "run: make generated"; exit 1; }
	@rm -rf build/reference && $(BIN)/narrows schema --elements build/reference
	@$(BIN)/narrows schema --schemes > build/reference/schemes.md
	@$(BIN)/narrows programs --reference > build/reference/programs.md
	$(BIN)/narrows schema --program | diff -u programs/program.schema.json - || { echo "run: make generated"; exit 1; }
	@$(BIN)/narrows lab list --reference > build/reference/labs.md
	@cp docs/guide/records.md build/records.md
	@$(BIN)/python -c "from pathlib import Path; from narrows.documents.reference import write; \
	    write(Path('build/reference/documents'), Path('build/records.md'))"
	diff -u docs/guide/records.md build/records.md || { echo "run: make generated"; exit 1; }
	$(BIN)/narrows schema --lab | diff -u labs/lab.schema.json - || { echo "run: make generated"; exit 1; }
	diff -ru docs/reference build/reference || { echo "run: make generated"; exit 1; }

portable: $(STAMPS)/tools ## check that what simulates, reports and compares compiles for macOS and for Linux on ARM
	.ci/portable

arm: build ## build the agent and a wheel for Linux on ARM into build/arm, and try the agent under qemu
	.ci/arm

bench: build ## print the benchmark table; HTSIM=FOLDER compares with csg-htsim there
	cargo bench --quiet -p narrows-bench --bench table

profile: build ## make the profile anew with which our crates are compiled, by simulations
	.ci/profile
	@find $$CARGO_TARGET_DIR -maxdepth 3 -path '*/.fingerprint/narrows-*' -exec rm -rf {} + ; rm -f $(STAMPS)/agent $(STAMPS)/extension

golden: ## rewrite the golden tables of the tests; look at the diff before you commit it
	UPDATE_GOLDEN=1 cargo test --release --quiet -p narrows-tests golden

# Where PYTHONDONTWRITEBYTECODE is set, each command would compile all that it imports: half of a short run's time.
build: $(STAMPS)/venv $(STAMPS)/agent $(STAMPS)/extension ## build the agent and the Python package in .venv
	@$(BIN)/python -m compileall -q python/narrows

generated: build ## rewrite the JSON Schema, the scenario reference, the references of elements and schemes
	$(BIN)/narrows schema > scenarios/scenario.schema.json
	@mkdir -p docs/guide
	$(BIN)/narrows schema --reference > docs/guide/scenario-reference.md
	$(BIN)/narrows schema --elements docs/reference
	$(BIN)/narrows schema --schemes > docs/reference/schemes.md
	$(BIN)/narrows programs --reference > docs/reference/programs.md
	$(BIN)/narrows schema --program > programs/program.schema.json
	$(BIN)/narrows lab list --reference > docs/reference/labs.md
	$(BIN)/narrows schema --lab > labs/lab.schema.json
	$(BIN)/python -c "from pathlib import Path; from narrows.documents.reference import write; \
	    write(Path('docs/reference/documents'), Path('docs/guide/records.md'))"
	COLUMNS=80 $(BIN)/python -c "from narrows.cli.all_commands import app; app(['--help'], prog_name='narrows')" > build/help.txt
	mv build/help.txt python/narrows/cli/help.txt

site: $(STAMPS)/tools ## build the documents as a web site with search into build/site
	@$(BIN)/python .ci/site

wheel: $(STAMPS)/venv $(STAMPS)/agent ## build an installable wheel into build/wheels
	@.ci/shipped python/narrows
	@rm -rf build/wheels && mkdir -p build/wheels/symbols
	@! command -v objcopy >/dev/null || for program in narrows-agent narrows-bpf; do \
	    built=$$CARGO_TARGET_DIR/release/$$program symbols=build/wheels/symbols/$$program.debug; \
	    objcopy --only-keep-debug $$built $$symbols; \
	    objcopy --strip-all --add-gnu-debuglink=$$symbols $$built python/narrows/_bin/$$program; \
	done
	$(BIN)/maturin build --release --strip --quiet --out build/wheels
	@.ci/shipped --remove python/narrows
	@$(BIN)/python .ci/wheel build/wheels/*.whl

dist: wheel ## make what a release publishes into build/dist: wheels for Linux and macOS, sources, SBOM, sums; half an hour
	.ci/dist

image: ## build the image of a container into build/image with podman, from the wheel, and try it
	@[[ -f $$(echo build/wheels/narrows-*.whl | cut -d' ' -f1) ]] || $(MAKE) wheel
	@.ci/image $(BASE)

lock: $(STAMPS)/venv ## choose new versions of the Python dependencies
	$(PYTHON) -m venv build/lock && build/lock/bin/pip install --quiet uv
	build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url pyproject.toml -o requirements.lock
	build/lock/bin/uv pip compile --quiet --upgrade --universal --python-version 3.11 --generate-hashes --no-header \
	    --no-annotate --no-emit-index-url --extra dev --group build -c requirements.lock pyproject.toml -o requirements-dev.lock
	for group in build dist; do \
	    build/lock/bin/uv pip compile --quiet --universal --python-version 3.11 --generate-hashes --no-header \
	        --no-annotate --no-emit-index-url --group $$group -c requirements-dev.lock -o requirements-$$group.lock; \
	done

clean: ## remove everything that was built
	rm -rf $(VENV) build target $(DEMO) python/narrows/_bin python/narrows/_native*.so

# -- how things are made -------------------------------------------------------------------------

$(STAMPS):
	@mkdir -p $@

$(STAMPS)/venv: requirements.lock requirements-build.lock .ci/system .ci/packages | $(STAMPS)
	@PYTHON=$(PYTHON) .ci/system
	@test -x $(BIN)/pip || .ci/step "a virtual environment of Python" "5 s" $(PYTHON) -m venv $(VENV)
	@.ci/step "tools that build: maturin and uv" "5 s" $(BIN)/pip install --quiet --require-hashes -r requirements-build.lock
	@UV_COMPILE_BYTECODE=1 .ci/step "Python packages" "15 s" .ci/packages $(VENV) requirements.lock
	@touch $@

# What tests, lints and types need besides.
$(STAMPS)/tools: requirements-dev.lock $(STAMPS)/venv
	@.ci/step "Python packages of the tests" "20 s" .ci/packages $(VENV) requirements-dev.lock
	@touch $@

# The programs and the extension module are compiled by one call of cargo, as what maturin calls (.ci/with-programs).
$(STAMPS)/extension: $(RUST_FILES) pyproject.toml $(STAMPS)/venv .ci/rustc .ci/with-programs/cargo | $(STAMPS)
	@mkdir -p python/narrows/_bin
	@export PATH=$(CURDIR)/.ci/with-programs:$$PATH PIP_QUIET=1 VIRTUAL_ENV=$(CURDIR)/$(VENV); \
	.ci/step "compiling the programs and the extension module" "5 minutes; a minute if only ours has changed" \
	    .ci/silent $(BIN)/maturin develop --release --quiet
	@touch $@

$(STAMPS)/agent: $(STAMPS)/extension
	@for program in narrows-agent narrows-bpf; do \
	    cp "$$CARGO_TARGET_DIR/release/$$program" python/narrows/_bin/.new; \
	    mv python/narrows/_bin/.new python/narrows/_bin/$$program; \
	done
	@touch $@
