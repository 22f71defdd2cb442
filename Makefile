# Two commands do everything on a fresh machine with Python 3.11+ and make: `make demo`, `make test`.
PYTHON ?= python3
VENV ?= .venv
BIN := $(VENV)/bin
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Tests start hundreds of processes; without bytecode each of them would compile reconpriv anew.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo test test-fast study test-oldest test-newest package container docs figures lint bench campaign clean

$(BIN)/python:
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

# Stamps: an install is repeated only when pyproject.toml changes.
$(VENV)/.core: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e '.[query]'
	@touch $@

$(VENV)/.dev: pyproject.toml | $(BIN)/python
	@sh tools/system-packages.sh
	$(BIN)/python -m pip install --quiet -e . --group test --group lint
	@touch $@ $(VENV)/.core

$(VENV)/.docs: pyproject.toml | $(BIN)/python
	$(BIN)/python -m pip install --quiet -e . --group docs
	@touch $@

demo: $(VENV)/.core
	$(BIN)/reconpriv demo

test: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadscope

# What needs no Spark, browser, server or site.
test-fast: $(VENV)/.dev
	$(BIN)/python -m pytest -n 2 --dist loadscope tests/unit

# The study on the whole census, every coverage at full length, and every combination on Spark; an hour.
study: $(VENV)/.dev
	RECONPRIV_STUDY=full $(BIN)/python -m pytest tests/system/research tests/system/combinations

# The oldest versions that pyproject.toml allows, in an environment of their own.
test-oldest:
	$(PYTHON) -m venv --clear .venv-oldest
	.venv-oldest/bin/python -m pip install --quiet --upgrade pip
	.venv-oldest/bin/python tools/oldest_versions.py > .venv-oldest/constraints.txt
	.venv-oldest/bin/python -m pip install --quiet -c .venv-oldest/constraints.txt -e . --group test
	# The oldest py4j leaves sockets to the garbage collector.
	.venv-oldest/bin/python -m pytest -n 2 --dist loadscope \
	  -W ignore::ResourceWarning -W ignore::pytest.PytestUnraisableExceptionWarning

# The newest versions there are, likewise; try PYTHON=python3.14.
test-newest:
	$(PYTHON) -m venv --clear .venv-newest
	.venv-newest/bin/python -m pip install --quiet --upgrade pip
	.venv-newest/bin/python -m pip install --quiet --upgrade --upgrade-strategy eager -e . --group test
	.venv-newest/bin/python -m pytest -n 2 --dist loadscope

# Wheel and sdist, their description rendered, and the wheel tried as a user would who has no checkout.
package: $(VENV)/.dev
	rm -rf dist
	$(BIN)/python -m build --outdir dist
	$(BIN)/python -m twine check --strict dist/*
	cd dist && PIPX_HOME=$(CURDIR)/dist/.pipx ../$(BIN)/pipx run --spec ./*.whl reconpriv demo
	rm -rf dist/.pipx

# An image with the command line and the studio, built and checked by docker or podman; fails without either.
container:
	sh tools/container.sh

# Every figure, chart and screenshot of the documents, anew; what they measure stays as it was measured.
figures: $(VENV)/.dev
	$(BIN)/python -m pip install --quiet --group figures
	$(BIN)/python tools/make_idea_figure.py
	$(BIN)/python tools/badges.py
	$(BIN)/python tools/gallery.py
	$(BIN)/python tools/tutorial_charts.py
	$(BIN)/python -m lab.margins_figure
	$(BIN)/python -m lab.questions --draw
	$(BIN)/python -m lab.recommended --draw
	$(BIN)/python tools/report_screenshots.py
	PYTHONPATH=tests/support $(BIN)/python tests/system/studio/take_screenshots.py docs/screenshots

# The site, in site/index.html; a broken link fails the build. VERSION=0.2 builds site/0.2 beside others, and their list.
docs: $(VENV)/.docs
	$(BIN)/python tools/build_docs.py $(if $(VERSION),--version $(VERSION))

lint: $(VENV)/.dev
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

bench: $(VENV)/.dev
	$(BIN)/python benchmarks/bench_start.py
	$(BIN)/python benchmarks/bench_core.py
	$(BIN)/python benchmarks/bench_core.py --spread
	$(BIN)/python benchmarks/bench_queries.py
	$(BIN)/python benchmarks/bench_margins.py
	$(BIN)/python benchmarks/bench_scale.py
	# Its default is a billion records: 3.3 GB of disk, ten times as long.
	$(BIN)/python benchmarks/bench_billion.py --records 1e8
	$(BIN)/python benchmarks/bench_csv.py
	$(BIN)/python benchmarks/bench_spark.py
	$(BIN)/python benchmarks/bench_peers.py
	$(BIN)/python benchmarks/bench_tune.py
	$(BIN)/python benchmarks/bench_alternatives.py
	$(BIN)/python benchmarks/bench_attacks.py

# Ten thousand bad inputs in minutes; CAMPAIGN=--long for a night, --write to renew the page.
campaign: $(VENV)/.dev
	$(BIN)/python -m campaign $(CAMPAIGN)

clean:
	rm -rf $(VENV) .venv-oldest .venv-newest build dist site .cache .pytest_cache .mypy_cache .ruff_cache .hypothesis
