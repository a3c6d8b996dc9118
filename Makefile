# `make demo` and `make test` set everything up themselves, in .venv.
# On a public index torch's default Linux build brings CUDA; a machine without a GPU saves gigabytes with
#   make demo TORCH_INDEX=https://download.pytorch.org/whl/cpu

PYTHON ?= $(shell for p in python3.11 python3 python3.12 python3.13; do \
  $$p -c 'import sys, venv, ensurepip; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 14))' 2>/dev/null && echo $$p && break; done)
TORCH_INDEX ?=
VENV := .venv
BIN := $(VENV)/bin
PIP := $(BIN)/python -m pip install --quiet --disable-pip-version-check $(if $(TORCH_INDEX),--extra-index-url $(TORCH_INDEX)) -c constraints.txt
TORCH := $(shell sed -n 's/^torch==/torch==/p' constraints.txt)
PYTEST_WORKERS ?= 2

.PHONY: demo test test-gpu lint reach bench bench-server clean test-editor demo-editor settings

demo: $(VENV)/.installed
	$(BIN)/mugraph optimize samples/rmsnorm_linear.py

# Hundreds of processes import the engine: none of them compiles it anew, also where PYTHONDONTWRITEBYTECODE is set.
test: $(VENV)/.installed-dev
	$(BIN)/python -m compileall -q engine server
	$(BIN)/python -m pytest -n $(PYTEST_WORKERS) --dist worksteal -m "not gpu" tests

test-gpu: $(VENV)/.installed-dev
	$(BIN)/python -m pytest -m gpu tests

lint: $(VENV)/.installed-dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/lint-imports

# What the editor's extension says of the settings, from their declarations in engine/mugraph/protocol/settings.py.
settings: $(VENV)/.installed
	$(BIN)/python editor-extension/settings.py

reach: $(VENV)/.installed
	$(BIN)/python -m mugraph.research.reach samples samples/reach

bench: $(VENV)/.installed
	$(BIN)/mugraph bench

bench-server: $(VENV)/.installed-dev
	$(BIN)/python -m tests.server.bench

# The extension in VS Code (code-server in Debian's Chromium) and Neovim; the first time it installs them, in minutes.
test-editor: $(VENV)/.installed
	tests/editor/run.sh $(BIN)/python test

demo-editor: $(VENV)/.installed
	tests/editor/run.sh $(BIN)/python demo

$(BIN)/python:
	@test -n "$(PYTHON)" || { echo "mugraph needs Python 3.11, 3.12 or 3.13 with the venv module (Debian: apt install python3-venv)" >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)

# torch in a step of its own, and exactly: with none present, a range would pull several gigabytes of CUDA packages.
$(VENV)/.torch: constraints.txt | $(BIN)/python
	$(PIP) "$(TORCH)"
	@touch $@

$(VENV)/.installed: pyproject.toml $(VENV)/.torch
	$(PIP) -e .
	@touch $@

$(VENV)/.installed-dev: $(VENV)/.installed
	$(PIP) -e ".[dev]"
	@touch $@

clean:
	rm -rf $(VENV) build dist *.egg-info
