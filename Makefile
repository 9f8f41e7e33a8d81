# All tasks of the project. `make run` and `make test` install everything they need on a plain Debian 12 with Python 3.11.
.DEFAULT_GOAL := help
.PHONY: help install install-test run test compiled-tests test-postgresql test-cluster test-opensearch check quick kills bench interop fuzz docs screenshots constraints sbom clean
SHELL := /bin/bash
VENV := .venv
BIN := $(VENV)/bin
DEMO := demo-home
# Each process starts with an equal part of the tests in order, and takes over some of another one at the end, so that
# fixtures shared by the tests of a file are created once, not in each. Five for two cores: tests often wait.
PARALLEL := -n 5 --dist worksteal
# If it were set, every command started by the tests would compile the whole program again.
export PYTHONDONTWRITEBYTECODE :=

help:
	@echo "make run          archive a sample site in five editions and open the portal at http://127.0.0.1:8080"
	@echo "make test         style, types, documentation and all tests"
	@echo "make install      create .venv with everything; the program is .venv/bin/webdepot"
	@echo "make check        ruff, mypy --strict, generated documentation up to date"
	@echo "make test-postgresql  the tests of services and pages on PostgreSQL; a part of them also runs in make test"
	@echo "make test-cluster start a cluster of PostgreSQL, SeaweedFS, Dask and our own roles on this machine, and try it"
	@echo "make test-opensearch  the tests of words on OpenSearch (Java, Maven); a part of them also runs in make test"
	@echo "make kills        thirty kills and thirty power cuts of each command that writes (as root, about an hour)"
	@echo "make bench        the benchmarks, compared with other programs in the same run"
	@echo "make interop      run programs of others against ours and print a table (SLOW=1: also those compiled first)"
	@echo "make fuzz         fuzz every parser for a minute each; FUZZ_SECONDS=600 FUZZ='warc css' for longer and fewer"
	@echo "make docs         regenerate the reference pages"
	@echo "make constraints  rewrite constraints/*.txt after a change of dependencies (UPGRADE=1: newest versions)"
	@echo "make sbom         write the software bill of materials to build/webdepot.cdx.json (CycloneDX)"
	@echo "make screenshots  take the screenshots for the README from the demo"

install: $(VENV)/.installed

$(VENV)/.installed: pyproject.toml $(wildcard constraints/*.txt) scripts/setup.sh scripts/vendor.py src/webdepot/browser_files.toml
	scripts/setup.sh run
	@touch $@

install-test: $(VENV)/.installed-test

# Does not depend on `install`: one installation of everything takes half the time of two.
$(VENV)/.installed-test: pyproject.toml $(wildcard constraints/*.txt) scripts/setup.sh scripts/vendor.py src/webdepot/browser_files.toml tests/web/browser_files.toml
	scripts/setup.sh test
	@touch $(VENV)/.installed $@

run: install
	$(BIN)/webdepot --home $(DEMO) demo

check: install-test
	$(BIN)/ruff format --check .
	$(BIN)/ruff check --no-cache .
	$(BIN)/mypy
	$(BIN)/python scripts/reference.py --check

test: install-test
	$(MAKE) --jobs 2 check compiled-tests
	$(BIN)/pytest $(PARALLEL) -m "not opensearch"
	$(BIN)/pytest -m opensearch tests/index

# Otherwise each of the parallel processes would compile all tests.
compiled-tests: install-test
	@$(BIN)/pytest --collect-only -qq > /dev/null || $(BIN)/pytest --collect-only -qq

# Tests whose archives have their databases on PostgreSQL, which the tests start.
POSTGRESQL := tests/services tests/selection tests/access tests/depot tests/exchange tests/web
test-postgresql: install-test
	WEBDEPOT_TEST_DATABASE=postgresql $(BIN)/pytest $(PARALLEL) -m "not browser" $(POSTGRESQL)

test-cluster: install-test
	WEBDEPOT_TEST_CLUSTER=1 $(BIN)/pytest tests/cluster

# One process of pytest, because all these tests share one server, which the tests start with Java. NODES=3 starts
# three nodes (3 GB of memory), and indexes have three shards with a replica.
NODES := 1
test-opensearch: install-test
	WEBDEPOT_TEST_OPENSEARCH_NODES=$(NODES) $(BIN)/pytest -m opensearch

quick: install-test
	$(BIN)/pytest $(PARALLEL) -m "not browser and not slow and not opensearch"

kills: install-test
	WEBDEPOT_KILLS=30 $(BIN)/pytest $(PARALLEL) tests/security/test_kills.py

bench: install-test
	$(BIN)/python -m bench

interop: install-test
	$(BIN)/python scripts/interop $(if $(SLOW),--slow)

FUZZ_SECONDS := 60
FUZZ :=
fuzz: $(VENV)/.installed-fuzz
	$(BIN)/python -m fuzz --seconds $(FUZZ_SECONDS) $(FUZZ)

$(VENV)/.installed-fuzz: $(VENV)/.installed-test
	scripts/setup.sh fuzz
	@touch $@

docs: install-test
	$(BIN)/python scripts/reference.py

screenshots: install-test
	$(BIN)/python scripts/screenshots.py --home $(DEMO) --words damast --url http://www.museum-veldwijk.example/ --at 2003

# Does not depend on `install`, which fails while the constraints do not match pyproject.toml.
constraints:
	scripts/constraints.sh $(if $(UPGRADE),--upgrade)

sbom: install
	@mkdir -p build
	$(BIN)/python scripts/sbom.py build/webdepot.cdx.json

clean:
	rm -rf $(VENV) $(DEMO) build dist
