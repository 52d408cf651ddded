# `make run` and `make test` do all the set-up themselves; `make help` lists everything.
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.installed
BENCH_READY := $(VENV)/.installed-bench
BOOK_READY := $(VENV)/.installed-book
TEACH_READY := $(VENV)/.installed-teach
NOTEBOOKS := $(wildcard notebooks/*.py)

.PHONY: help run test lab sync publish report study book slides test-book test-teach lint bench clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(READY)  ## execute every chapter into build/ and write an HTML page of each
	@$(BIN)/python -m kscore run

test: $(READY)  ## run the tests
	@$(BIN)/ruff check .
	@$(BIN)/python -m pytest

test-teach: $(TEACH_READY)  ## test the exercises and their way through nbgrader
	@$(BIN)/python -m pytest tests/teach

lab: $(READY)  ## open the chapters in JupyterLab (options: make lab ARGS="--no-browser")
	@$(BIN)/jupyter lab --notebook-dir=notebooks $(ARGS)

sync: $(READY)  ## carry edits between the .py and .ipynb of each pair
	@$(BIN)/jupytext --quiet --sync $(NOTEBOOKS)

publish: $(READY)  ## copy the outputs of the last `make run` into notebooks/*.ipynb
	@$(BIN)/python -m kscore publish

report: $(READY)  ## write the replication report as one printable file, build/report.html
	@$(BIN)/python -m kscore report

study: $(READY)  ## train what the recorded study lacks (hours from nothing; stop and go on at any time)
	@$(BIN)/python -m kscore study

book: $(BOOK_READY)  ## bind the published chapters to a book, build/book/index.html
	@rm -rf build/book
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/book

slides: $(BOOK_READY)  ## make the slides of the lectures, build/slides/index.html
	@rm -rf build/slides
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b revealjs docs/slides build/slides

test-book: book slides  ## build both and test them, in Chromium if it is installed
	@$(BIN)/python -m pytest -n 0 tests/book

lint: $(READY)  ## check the code with ruff
	@$(BIN)/ruff check .

bench: $(BENCH_READY)  ## measure speed side by side with peers, as ratios
	@worst=0; for part in filter training batch; do $(BIN)/python benchmarks/$${part}_speed.py || worst=1; done; exit $$worst

clean:  ## remove build/ (keep the environment and everything recorded)
	rm -rf build

$(BENCH_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,bench]'
	@touch $@

$(BOOK_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,book]'
	@touch $@

$(TEACH_READY): $(READY)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test,teach]'
	@touch $@

$(READY): pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "K-Score needs Python 3.11 or newer, and '$(PYTHON)' was not found."; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo \
	  "K-Score needs Python 3.11 or newer, but '$(PYTHON)' is `$(PYTHON) --version 2>&1`: try 'make PYTHON=/path/to/python3.11'."; \
	  exit 1; }
	@echo "Setting up $(VENV) (once; a few minutes) ..."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[test]'
	@touch $@
