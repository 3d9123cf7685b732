# Two commands for a fresh machine: `make demo` and `make test`. Everything they need goes into .venv.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin

.PHONY: setup system demo test probe check bench bench-quality clean

$(BIN)/.ready: pyproject.toml
	$(PYTHON) -c 'import sys; sys.exit("Outcrop needs Python 3.11 or newer; say: make PYTHON=python3.12 …") if sys.version_info < (3, 11) else 0'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet --editable . --group dev
	touch $@

setup: $(BIN)/.ready

# The tests run the real programs.
PROGRAMS := git fossil chromium

system:
	@missing=$$(for each in $(PROGRAMS); do command -v $$each >/dev/null || echo $$each; done); [ -z "$$missing" ] \
	  || { command -v apt-get >/dev/null && [ "$$(id -u)" = 0 ] && apt-get update -qq && apt-get install -qq -y $$missing; } \
	  || { echo "please install" $$missing "(Debian packages of these names): the tests run the real programs" >&2; exit 1; }

demo: setup
	$(BIN)/python examples/demo.py demo

# Does a real model retrieve on meaning, through the shipped query?
probe: setup
	$(BIN)/outcrop probe

test: system setup
	$(BIN)/python -m pytest -n auto

# Values of these two that were meant for another machine slow numpy's BLAS down, the scan and its baseline alike.
BENCHMARK := env -u OPENBLAS_CORETYPE -u OPENBLAS_L2_SIZE $(BIN)/python benchmarks

bench: system setup
	$(BENCHMARK)/scan.py
	$(BENCHMARK)/coldstart.py
	$(BENCHMARK)/index.py
	$(BENCHMARK)/writes.py
	$(BENCHMARK)/retrieval.py

# Everything about retrieval quality. FILES=DIR adds repositories with judged files, KIND=code asks their code alone,
# AGAINST=FILE compares with the rankings of another system, CHOOSE=1 constants chosen with one repository left out.
bench-quality: setup
	$(BENCHMARK)/quality.py $(if $(FILES),--files $(FILES)) $(addprefix --kind ,$(KIND)) $(addprefix --against ,$(AGAINST)) \
	  $(if $(FIGURE),--figure $(FIGURE)) $(if $(CHOOSE),--choose) $(if $(SCORES),--scores $(SCORES))

check: setup
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

clean:
	rm -rf $(VENV) demo .mypy_cache .ruff_cache .pytest_cache .hypothesis
