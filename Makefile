# make demo   install everything, distil the built-in dataset, show that it worked
# make test   install everything, format check, lint, types, tests; make lint, types or unit for a part
#             LORS_DEVICE=cuda make test runs the tests that compute on that device (see CONTRIBUTING.md)
# make test-xla   a run of every matcher on torch_xla, which computes on the CPU here; takes long
# make bench  install everything, time ours against plain references
# make docs   write the pages that come from the sources, build the site into site/
# make package   build the wheel and the sdist in dist/ and check them
# make versions   the tests with other Pythons and torches: VERSIONS="3.12-2.14 3.10-2.13"
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# One more than cores: many tests wait for processes that they start.
WORKERS ?= $(shell $(PYTHON) -c "import os; print(1 + os.cpu_count())")
VERSIONS ?= 3.10-2.13 3.11-2.15 3.12-2.14 3.13-2.15

.PHONY: bench demo docs test test-xla format lint types unit package versions clean

$(READY): pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 10) and "lors needs Python 3.10 or newer: make PYTHON=python3.11 …")'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/pip install --quiet --disable-pip-version-check --editable '.[dev]'
	touch $@

demo: $(READY)
	$(BIN)/python examples/demo.py

bench: $(READY)
	$(BIN)/python -m benchmarks.speed

docs: $(READY)
	$(BIN)/python -m lors.config.pages docs
	$(BIN)/python benchmarks/leaderboard.py
	NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --strict
	@echo "Open site/index.html, or run '$(BIN)/mkdocs serve'"

# Types are checked while tests run; if one of them fails, the other still ends first.
test: lint
	$(MAKE) --no-print-directory --jobs=2 types unit

lint: $(READY)
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/zizmor --offline --quiet --no-progress .github
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-workflows .github/workflows/*.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.dependabot .github/dependabot.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-forms $(filter-out %/config.yml,$(wildcard .github/ISSUE_TEMPLATE/*.yml))
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.github-issue-config .github/ISSUE_TEMPLATE/config.yml
	$(BIN)/check-jsonschema --quiet --builtin-schema vendor.citation-file-format CITATION.cff
	[ ! -x $(BIN)/hadolint ] || $(BIN)/hadolint Dockerfile
	$(BIN)/codespell

types: $(READY)
	$(BIN)/mypy

unit: $(READY)
	OMP_NUM_THREADS=1 $(BIN)/pytest --numprocesses $(WORKERS) --dist worksteal

# torch_xla needs a PyTorch of its own. XLA compiles for long: without optimisation, for less.
test-xla: export PJRT_DEVICE ?= CPU
test-xla: export XLA_FLAGS ?= --xla_backend_optimization_level=0 --xla_llvm_disable_expensive_passes=true
test-xla:
	$(PYTHON) -m venv .versions/xla
	.versions/xla/bin/pip install --quiet --disable-pip-version-check 'torch==2.9.*' 'torch_xla==2.9.*' 'torchvision==0.24.*' pytest hypothesis --editable .
	OMP_NUM_THREADS=1 LORS_HOME=$${LORS_HOME-.versions/xla/home} .versions/xla/bin/python -m tests.on_xla

package: $(READY)
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/twine check --strict dist/*
	LORS_DIST=dist $(BIN)/pytest tests/test_package.py

versions: $(VERSIONS:%=version-%)

# Python and torch, as in version-3.12-2.14; about 6 GB each while it runs.
version-%: THESE = $(subst -, ,$*)
version-%:
	python$(word 1,$(THESE)) -m venv .versions/$*
	.versions/$*/bin/pip install --quiet --disable-pip-version-check 'torch==$(word 2,$(THESE)).*' --editable '.[dev]'
	OMP_NUM_THREADS=1 .versions/$*/bin/pytest --numprocesses $(WORKERS) --dist worksteal
	rm -rf .versions/$*

format: $(READY)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean:
	rm -rf $(VENV) .versions dist runs site .mypy_cache .pytest_cache .ruff_cache
