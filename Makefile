# The one door: every task is a target here, and CI calls only these.
# ARGS passes options on: make test ARGS="-k snapshots -x"

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
MAKEFLAGS += --no-print-directory

VENV := $(CURDIR)/.venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.stamp
UV_VERSION := 0.13.7
VERSITYGW_VERSION := v1.8.0
ARGS ?=

.PHONY: help setup demo test lint format bench bench-fetch docs lock s3-server clean

help: ## list the tasks
	@awk 'BEGIN {FS = ":.*## "} /^[a-z0-9-]+:.*## / {printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

setup: $(STAMP) ## make .venv from the lock (only when the lock or pyproject.toml changed)

$(STAMP): requirements.lock pyproject.toml
	@tools/make-venv $(VENV)
	$(BIN)/python -m pip install --quiet --use-pep517 --require-hashes -r requirements.lock
	$(BIN)/python -m pip install --quiet --no-deps --no-build-isolation --editable .
	@$(BIN)/python -m pip check
	@touch $@

demo: setup ## run the main job on a small simulated web
	@PATH="$(BIN):$$PATH" examples/demo.sh $(ARGS)

test: setup s3-server ## run every test; ARGS go to pytest
	@tools/check-java
	$(BIN)/python -m pytest $(ARGS)

lint: setup ## check style, formatting and types; changes nothing
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: setup ## format the code and apply the safe fixes
	$(BIN)/ruff check --fix-only .
	$(BIN)/ruff format .

bench: setup ## measure, beside the bare libraries; ARGS go to the benchmarks
	$(BIN)/python -m benchmarks $(ARGS)

bench-fetch: setup ## measure the fetch stage beside pycurl, aiohttp and Scrapy; needs nginx
	$(BIN)/python -m benchmarks fetch $(ARGS)

docs: setup ## write the generated pages of docs/ anew
	$(BIN)/python -m gossamer.docs $(ARGS)

lock: ## resolve requirements.lock again; ARGS=--upgrade for newer versions
	@test -x .tools/uv-$(UV_VERSION)/bin/uv || { tools/make-venv .tools/uv-$(UV_VERSION) && .tools/uv-$(UV_VERSION)/bin/python -m pip install --quiet uv==$(UV_VERSION); }
	.tools/uv-$(UV_VERSION)/bin/uv pip compile --quiet --universal --python-version 3.11 --extra dev --generate-hashes \
		--no-emit-index-url --no-emit-find-links --custom-compile-command "make lock" $(ARGS) --output-file requirements.lock pyproject.toml

s3-server: ## build the S3 server the tests talk to, into .tools/bin (needs Go)
	@tools/get-s3-server $(VERSITYGW_VERSION)

clean: ## remove what make has made: .venv, .tools, caches, build output
	rm -rf .venv .tools .mypy_cache .ruff_cache .pytest_cache build dist
	find . -name __pycache__ -type d -not -path './.git/*' -prune -exec rm -rf {} +
