# Two doors: `make report` and `make test`. Each sets up all it needs.
#   make report [STUDY=name-or-path] [SYSTEM=name-or-path] [PROFILE=local|slurm|…] [CORES=n]
STUDY ?= quick
SYSTEM ?= laptop
PROFILE ?= local
CORES ?=
PYTHON ?= python3
# Tests measure nothing: three files at a time, as some wait. Those of one file share what they set up.
WORKERS ?= 3
# Where a machine forbids it, every start of Python compiles the package again.
unexport PYTHONDONTWRITEBYTECODE
VENV := .venv
EXECUTOR := src/snakemake-executor-plugin-slurm-robust
BIN := $(VENV)/bin

.PHONY: report test test-all lint bench corpus docs site setup clean

report: $(VENV)/.driver
	@command -v which > /dev/null || { echo "transect: Snakemake's Slurm plug-in needs the program 'which' on PATH" >&2; exit 3; }
	@$(BIN)/snakemake --profile profiles/$(PROFILE) $(if $(CORES),--cores $(CORES)) \
		--config study=$(STUDY) system=$(SYSTEM)

# docs/testing.md: what there is, how long it takes, how to run a part. TESTS="--exhaustive -m fast" adds options of pytest.
test: $(VENV)/.test lint
	@mkdir -p build/tests
	@$(BIN)/python scripts/test-environments > build/tests/environments.log 2>&1 & \
	exec $(BIN)/python -m pytest -n $(WORKERS) --dist loadscope $(TESTS)

# Also the whole of what `make test` takes a part of: matrices of faults, fuzzing, every cut of every log, mutants.
test-all: override TESTS := --exhaustive $(TESTS)
test-all: test
	$(BIN)/python scripts/mutants run --jobs 2

lint: $(VENV)/.test
	$(BIN)/ruff check src tests scripts
	$(BIN)/ruff format --check src tests scripts
	$(BIN)/snakefmt --check Snakefile workflow
	$(BIN)/mypy
	$(BIN)/python scripts/lint-workflow.py

# Ratios, not seconds: prints to the terminal, asserts nothing.
bench: $(VENV)/.test
	for file in tests/benchmarks/bench_*.py; do $(BIN)/python $$file; done

# How much of what a person read in real logs the parsers find: TRANSECT_CORPUS names the folder.
corpus: $(VENV)/.test
	$(BIN)/python scripts/score-corpus.py

# Generated pages: the record's schema and the tables of plug-ins.
docs: $(VENV)/.driver
	$(BIN)/python scripts/generate-docs.py

# docs/ as a site in build/site; what is wrong with a link or the navigation ends it. With --quiet no warning would count.
SITE := build/site-environment
site: $(SITE)/.made
	@NO_MKDOCS_2_WARNING=1 $(SITE)/bin/python -m mkdocs build --strict --clean
	@echo build/site/index.html

$(SITE)/.made: envs/site/requirements.txt
	$(PYTHON) -m venv --clear $(SITE)
	$(SITE)/bin/python -m pip install --quiet --disable-pip-version-check -r envs/site/requirements.txt
	@touch $@

setup: $(VENV)/.driver

$(VENV)/.driver: envs/driver/requirements.txt pyproject.toml $(EXECUTOR)/pyproject.toml
	@$(PYTHON) -c 'import sys; v = sys.version_info; sys.exit(0 if v >= (3, 11) else f"transect needs Python 3.11 or newer, {sys.executable} is {v.major}.{v.minor}: set PYTHON=")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/driver/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --editable . --editable $(EXECUTOR)
	@touch $@

$(VENV)/.test: $(VENV)/.driver envs/test/requirements.txt
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r envs/test/requirements.txt
	@touch $@

clean:
	rm -rf $(VENV) build
