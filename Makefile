# `make run` and `make test` do all the set-up themselves; `make help` lists everything.
PYTHON ?= $(shell for p in python3.11 python3; do $$p -c "" 2>/dev/null && echo $$p && break; done)
VENV := .venv
BIN := $(VENV)/bin
# An environment is sound if its pip answers and no package in it was left half installed, by Ctrl-C for one.
SOUND := $(BIN)/python -m pip --version >/dev/null 2>&1 && $(BIN)/python -c 'import sys, sysconfig; \
  from importlib.metadata import distributions; found = distributions(path=[sysconfig.get_path("purelib")]); \
  sys.exit(not all(d.files and all(f.suffix == ".pyc" or f.locate().exists() for f in d.files) for d in found))'
# No stamp counts if the environment's interpreter is gone, as when the system's Python was replaced.
GONE := $(shell $(BIN)/python -c "" 2>/dev/null || echo gone)
# What a target needs is an extra of pyproject.toml; the stamp of an extra says that it is installed.
NOTEBOOKS_READY := $(VENV)/.installed-notebooks
TEST_READY := $(VENV)/.installed-test
BENCH_READY := $(VENV)/.installed-bench
# Pages are built beside the old ones and take their place as a whole, so that two builds at once do not mix.
BUILT = new=build/.$(1)-$$$$; trap 'rm -rf "$$new"' EXIT; $(BIN)/sphinx-build --quiet --fail-on-warning --keep-going $(2) "$$new" \
  && rm -rf build/$(1) && mv "$$new" build/$(1)
CHAPTERS := $(wildcard notebooks/*.py)

.PHONY: help run test test-all lab student sync publish report study book slides play play-offline lint bench clean
.DEFAULT_GOAL := help

help:  ## list the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-12s  %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(NOTEBOOKS_READY)  ## execute every chapter and build a site of them, build/index.html
	@$(BIN)/python -m kscore run

test: $(TEST_READY)  ## run the tests: code, chapters, exercises, book and slides
	@$(MAKE) --no-print-directory lint
	@$(MAKE) --no-print-directory --jobs=2 pages test-code  # the pages are built beside the tests that do not read them
	@$(BIN)/python -m pytest tests/book

test-all: test  ## the same, and what takes minutes: kills, a cluster, nbgrader, a browser on every page
	@$(BIN)/python -m pytest -m slow

test-code: $(TEST_READY)
	@$(BIN)/python -m pytest --ignore=tests/book

pages: $(TEST_READY)
	@$(MAKE) --no-print-directory book
	@$(MAKE) --no-print-directory slides
	@$(MAKE) --no-print-directory play-offline || echo "Its tests in a browser will be skipped."

lab: $(NOTEBOOKS_READY)  ## open the chapters in JupyterLab (options: make lab ARGS="--no-browser")
	@echo "These are the chapters with their solutions; 'make student' opens copies without them, in build/class."
	@$(BIN)/jupyter lab --ServerApp.contents_manager_class=kscore.chapters.lab.Chapters --notebook-dir=notebooks $(ARGS)

student: $(NOTEBOOKS_READY)  ## open copies without solutions in JupyterLab, build/class; yours to work in, and kept
	@$(BIN)/python -m kscore course student build/class --keep
	@echo "Points for your answers: .venv/bin/kscore course check build/class/01_filter_derivation.ipynb"
	@$(BIN)/jupyter lab --notebook-dir=build/class $(ARGS)

sync: $(NOTEBOOKS_READY)  ## carry edits between the .py and .ipynb of each pair
	@$(BIN)/jupytext --quiet --sync $(CHAPTERS)

publish: $(NOTEBOOKS_READY)  ## copy the outputs of the last `make run` into notebooks/*.ipynb
	@$(BIN)/python -m kscore publish

report: $(NOTEBOOKS_READY)  ## write the replication report as one printable file, build/report.html
	@$(BIN)/python -m kscore report

study: $(NOTEBOOKS_READY)  ## train what the archive of recorded runs lacks, and append it (hours from nothing; can be stopped)
	@$(BIN)/python -m kscore study --record

book: $(NOTEBOOKS_READY)  ## build the same site from the published chapters, without executing any, build/book/index.html
	@echo "Binding the published chapters: about a minute ..."
	@start=`date +%s`; $(call BUILT,book,-c docs .) && echo "The book took $$((`date +%s` - start)) s; open build/book/index.html"

slides: $(NOTEBOOKS_READY)  ## make the slides of the lectures, build/slides/index.html
	@echo "Making the slides of nine lectures: some seconds ..."
	@$(call BUILT,slides,-b revealjs docs/slides)
	@echo "The slides are there; open build/slides/index.html"

play: $(TEST_READY)  ## build the page that trains, build/play; it loads Python from the network when it is opened
	@$(BIN)/python play/build.py

play-offline: $(TEST_READY)  ## the same with Python in it, 16 MB, so that it needs no network
	@$(BIN)/python play/build.py --offline

lint: $(TEST_READY)  ## check the code and its layout with ruff
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check kscore tests play

bench: $(BENCH_READY)  ## measure speed side by side with peers, as ratios
	@worst=0; for part in filter training batch wrapper; do $(BIN)/python benchmarks/$${part}_speed.py || worst=1; done; exit $$worst

clean:  ## empty build/ (keep the environment, everything recorded, runs of your own, and student copies)
	@test ! -d build || find build -depth ! -type d ! -path 'build/class/*' ! -path 'build/runs/*' \
	  ! \( -name '*.jsonl' ! -name status.jsonl \) \
	  ! \( -name '*.ipynb' -exec grep -q '"kscore_copy"' {} \; \) -exec rm -f {} +
	@test ! -d build || find build -depth -type d -empty -exec rmdir {} +

$(VENV)/.installed-%: pyproject.toml constraints.txt $(GONE)
	@command -v "$(PYTHON)" >/dev/null || { echo "K-Score needs Python 3.11 or newer, and '$(PYTHON)' was not found."; exit 1; }
	@"$(PYTHON)" -c "import sys; sys.exit(sys.version_info < (3, 11))" || { echo "K-Score needs Python 3.11 or newer," \
	  "but '$(PYTHON)' is `"$(PYTHON)" --version 2>&1`: try 'make PYTHON=/path/to/python3.11'."; exit 1; }
	@echo "Setting up $(VENV) for '$*' (once; a few minutes) ..."
	@{ $(SOUND); } || "$(PYTHON)" -m venv --clear $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$*]' || { echo "The packages" \
	  "could not be installed for `$(BIN)/python --version`; pip says above what it lacks. The same command goes on."; exit 1; }
	@touch $(if $(filter test,$*),$(NOTEBOOKS_READY)) $@  # the tests' extra holds these

.PHONY: gone test-code pages
gone:
