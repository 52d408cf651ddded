# `make run` and `make test` do all the set-up themselves; `make help` lists everything.
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# What a target needs is an extra of pyproject.toml; the stamp of an extra says that it is installed.
NOTEBOOKS_READY := $(VENV)/.installed-notebooks
BOOK_READY := $(VENV)/.installed-book
TEST_READY := $(VENV)/.installed-test
BENCH_READY := $(VENV)/.installed-bench
CHAPTERS := $(wildcard notebooks/*.py)

.PHONY: help run test lab sync publish report study book slides lint bench clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(NOTEBOOKS_READY)  ## execute every chapter into build/ and write an HTML page of each
	@$(BIN)/python -m kscore run

test: $(TEST_READY)  ## run the tests: code, chapters, exercises, book and slides
	@$(BIN)/ruff check .
	@$(MAKE) --no-print-directory book slides
	@$(BIN)/python -m pytest

lab: $(NOTEBOOKS_READY)  ## open the chapters in JupyterLab (options: make lab ARGS="--no-browser")
	@$(BIN)/jupyter lab --ServerApp.contents_manager_class=kscore.chapters.lab.Chapters --notebook-dir=notebooks $(ARGS)

sync: $(NOTEBOOKS_READY)  ## carry edits between the .py and .ipynb of each pair
	@$(BIN)/jupytext --quiet --sync $(CHAPTERS)

publish: $(NOTEBOOKS_READY)  ## copy the outputs of the last `make run` into notebooks/*.ipynb
	@$(BIN)/python -m kscore publish

report: $(NOTEBOOKS_READY)  ## write the replication report as one printable file, build/report.html
	@$(BIN)/python -m kscore report

study: $(NOTEBOOKS_READY)  ## train what the archive of recorded runs lacks, and append it (hours from nothing; can be stopped)
	@$(BIN)/python -m kscore study --record

book: $(BOOK_READY)  ## bind the published chapters to a book, build/book/index.html
	@rm -rf build/book
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -c docs . build/book
	@echo "The book is in build/book/index.html"

slides: $(BOOK_READY)  ## make the slides of the lectures, build/slides/index.html
	@rm -rf build/slides
	@$(BIN)/sphinx-build --quiet --fail-on-warning --keep-going -b revealjs docs/slides build/slides
	@echo "The slides are in build/slides/index.html"

lint: $(TEST_READY)  ## check the code with ruff
	@$(BIN)/ruff check .

bench: $(BENCH_READY)  ## measure speed side by side with peers, as ratios
	@worst=0; for part in filter training batch; do $(BIN)/python benchmarks/$${part}_speed.py || worst=1; done; exit $$worst

clean:  ## remove build/ (keep the environment and everything recorded)
	rm -rf build

$(VENV)/.installed-%: pyproject.toml constraints.txt
	@command -v "$(PYTHON)" >/dev/null || { echo "K-Score needs Python 3.11 or newer, and '$(PYTHON)' was not found."; exit 1; }
	@$(PYTHON) -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo \
	  "K-Score needs Python 3.11 or newer, but '$(PYTHON)' is `$(PYTHON) --version 2>&1`: try 'make PYTHON=/path/to/python3.11'."; \
	  exit 1; }
	@echo "Setting up $(VENV) for '$*' (once; a few minutes) ..."
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]'
	@touch $(if $(filter test,$*),$(NOTEBOOKS_READY) $(BOOK_READY)) $@  # the tests' extra holds these
