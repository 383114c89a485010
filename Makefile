# Everything is set up on first use, in .venv; a second run installs nothing.
SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
# the first that runs and is new enough: a name on the PATH may be a mere stand-in
PYTHON ?= $(shell for p in python3.14 python3.13 python3.12 python3.11 python3; do \
	$$p -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' \
	2>/dev/null && echo $$p && break; done)
BIN := .venv/bin
LOWEST := .venv-lowest
READY := .venv/ready
NATIVE := walstream/kafka/librdkafka.abi3.so
BENCHED_BIN := .venv-bench/bin
BENCHED := .venv-bench/ready
POSTGRES_15 := $(or $(WALSTREAM_TEST_PG15_BIN),/usr/lib/postgresql/15/bin)
# each has servers of its own, 1.6 GB with them, and takes half a processor: the tests
# wait for servers the rest of the time
JOBS ?= $(shell [ "$$(nproc 2>/dev/null || echo 1)" -ge 2 ] && echo 4 || echo 2)
# those without servers wait for processes that they start: one more than processors
UNIT_JOBS := $(if $(filter command line environment,$(origin JOBS)),$(JOBS),$(shell \
	echo $$(($$(nproc 2>/dev/null || echo 1) + 1))))
# a package is for one Python: its system's own
PYTHON_OF_PACKAGE ?= /usr/bin/python3
PACKAGES = PYTHON=$(PYTHON_OF_PACKAGE) RELEASE=$(RELEASE) packaging/build.sh
# without their bytecode the processes that tests start would compile walstream each time
unexport PYTHONDONTWRITEBYTECODE
.PHONY: help fmt check unit test simulate callsites compiled manifests fault museum mutants fuzz lowest \
  bench bench-quick demo \
  dist dist-pure release audit package deb rpm image lock docs reference picture recording \
  cover-own clean python java

help: ## list the targets
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:.*##/\t/' | expand -t 12
fmt: $(READY) ## format, and apply the fixes of ruff
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .
check: $(READY) ## run ruff, mypy and the check of the layers
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports
unit: java $(READY) ## run the tests without servers; PYTEST_ARGS="-k name" JOBS=1
	$(BIN)/pytest tests/unit tests/property -n $(UNIT_JOBS) --dist worksteal \
	  -m 'not fault_long and not compiled' $(PYTEST_ARGS)
test: java $(READY) $(NATIVE) ## check, and run all but the long tests; PYTEST_ARGS="-k name" JOBS=1
	@[ -x $(POSTGRES_15)/postgres ] || \
	  echo "tests on PostgreSQL 15 are skipped: apt-get install postgresql"
	@PATH="$$PATH:/usr/sbin" command -v mariadbd >/dev/null || \
	  echo "tests on MariaDB are skipped: apt-get install mariadb-server"
	@command -v promtool >/dev/null || \
	  echo "tests of the alert rules are skipped: apt-get install prometheus"
	$(BIN)/pytest -n $(JOBS) --dist worksteal --one-kafka --fork \
	  --beside 'make --no-print-directory check' \
	  -m 'not fault_long and not compiled' $(PYTEST_ARGS)
simulate: $(if $(REAL),java) $(READY) ## run the whole program from seeds; SECONDS=60 SEED=7 SCHEDULE=file REAL=1
	$(BIN)/python -m tests.simulation$(if $(REAL),.real) --seconds $(or $(SECONDS),60) \
	  $(addprefix --seed ,$(SEED)) $(addprefix --schedule ,$(SCHEDULE))
callsites: java $(READY) ## kill at each call that changes state; SECONDS=600 SCENARIO=stream VERSION=18
	$(BIN)/python -m tests.callsites --seconds $(or $(SECONDS),600) \
	  $(addprefix --scenario ,$(SCENARIO)) $(addprefix --version ,$(VERSION)) \
	  $(addprefix --seed ,$(SEED)) $(if $(NAME),--name '$(NAME)') $(if $(AGAIN),--again)
compiled: $(READY) ## compile the hot path, and run its tests in both forms
	$(BIN)/pytest tests/property/test_forms.py -m compiled $(PYTEST_ARGS)
manifests: $(READY) ## decode the manifests for Kubernetes and the chart, with Go
	$(BIN)/pytest tests/fault/test_kubernetes.py -m fault_long $(PYTEST_ARGS)
fault: java $(READY) $(NATIVE) ## run the long tests; SHARD=2/4, RESUME=1, SAMPLE=SECONDS SEED=7
	$(BIN)/pytest -m fault_long $(if $(SAMPLE),--sample $(SAMPLE) \
	  $(addprefix --randomly-seed=,$(SEED)),--record=.fault-passed \
	  $(addprefix --shard ,$(SHARD)) $(if $(RESUME),--resume)) $(PYTEST_ARGS)
museum: $(READY) ## bring old bugs back, one at a time: a test notices each; NAME=part AGAIN=1
	$(BIN)/python -m tests.museum $(addprefix --name ,$(NAME)) $(if $(AGAIN),--again)
mutants: $(READY) ## break modules in small ways, against their tests; MODULE=ledger SECONDS=600
	$(BIN)/python -m tests.mutation $(addprefix --module ,$(MODULE)) \
	  $(addprefix --seconds ,$(SECONDS))
fuzz: $(READY) ## feed readers what nobody wrote; SECONDS=120 SEED=7 TARGET=pgoutput
	$(BIN)/python -m tests.fuzz $(addprefix --seconds ,$(SECONDS)) \
	  $(addprefix --seed ,$(SEED)) $(addprefix --target ,$(TARGET))
lowest: java $(READY) ## test with the lowest supported version of each dependency
	@mkdir -p $(LOWEST)
	@$(BIN)/python -m tests.support.project.lowest_versions > $(LOWEST)/constraints.txt
	@[ -x $(LOWEST)/bin/pip ] || $(PYTHON) -m venv $(LOWEST)
	$(LOWEST)/bin/python -m pip install --quiet --disable-pip-version-check \
	  -c $(LOWEST)/constraints.txt -e '.[dev]' httpx # an old starlette's tests ask with it
	$(LOWEST)/bin/pytest -W ignore::DeprecationWarning -m 'not fault_long' $(PYTEST_ARGS)
bench: java $(BENCHED) ## compare speed with other tools, for hours; PROFILE=A RUNS=5
	$(BENCHED_BIN)/python -m bench $(addprefix --profile ,$(PROFILE)) \
	  $(addprefix --runs ,$(RUNS)) $(BENCH)
	$(BENCHED_BIN)/python -m bench.chart
bench-quick: java $(BENCHED) ## run small versions of all benchmarks, in 10 minutes
	$(BENCHED_BIN)/python -m bench --quick $(addprefix --profile ,$(PROFILE)) $(BENCH)
demo: java $(READY) ## stream from PostgreSQL to Kafka, live; DEMO="--seconds 60"
	$(BIN)/walstream demo $(DEMO)
dist: dist-pure ## build the sdists and the wheels, pure and compiled, in dist/
	HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/python -m build # by way of the sdist: elsewhere
	$(BIN)/twine check --strict dist/*.whl dist/*.tar.gz
dist-pure: $(READY) ## build the sdists and the pure wheels, in dist/, which is emptied
	rm -rf dist
	$(BIN)/python -m build
	$(BIN)/python packaging/consumer/stage.py build/consumer
	$(BIN)/python -m build --outdir dist build/consumer
release: dist package ## build a release's files: dist/ with checksums; docs/releasing.md
	PYTHON=$(PYTHON) packaging/release.sh
audit: python ## look up known vulnerabilities of what the packages bundle
	PYTHON=$(PYTHON) packaging/release.sh audit
reference: $(READY) ## write docs/reference.md and docs/schemas/state.json from the code
	$(BIN)/python -m tests.support.project.reference
	$(BIN)/python -m tests.support.project.state_schema
picture: $(READY) ## draw docs/packages.svg from the imports
	$(BIN)/python -m tests.support.project.picture
docs: $(READY) ## build the documentation site, in build/docs/site
	$(BIN)/python -m tests.support.project.site
recording: java $(READY) ## record docs/demo.svg from a run of the demo
	$(BIN)/python -m tests.support.project.recording
package: ## build deb and rpm; PYTHON_OF_PACKAGE=/usr/bin/python3 RELEASE=1
	$(PACKAGES) deb rpm
image: ## build the container images, plain and with Spark; BASE=debian:trixie-slim
	packaging/container/build.sh
deb: ## build only the deb packages
	$(PACKAGES) deb
rpm: ## build only the rpm packages
	$(PACKAGES) rpm
lock: ## pin the versions that the packages bundle, and build tools
	PYTHON=$(PYTHON_OF_PACKAGE) packaging/lock.sh
cover-own: $(READY) ## measure each module's coverage by its own unit test
	$(BIN)/python -m tests.support.project.own_coverage
clean: ## delete everything that make created
	rm -rf .venv .venv-bench $(LOWEST) build dist *.egg-info .*_cache .hypothesis
	rm -f .museum-journal .mutants-journal .fuzz-journal .callsites-journal
	rm -f .simulated .simulated-real
	rm -f *.so $$(find walstream -name '*.so') # of a wheel that was built right here

$(READY): pyproject.toml | python
	@echo "setting up .venv with $(PYTHON)"
	@[ -x $(BIN)/pip ] || $(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[dev]'
	@touch $@
# tests of servers run the producer that packages have, where a compiler is
$(NATIVE): walstream/kafka/librdkafka.c packaging/hatch_build.py $(READY)
	@$(BIN)/python packaging/hatch_build.py 2>/dev/null || \
	  echo "$< is not compiled here: records go through confluent-kafka's producer"
# what is benched is installed, so that it is compiled where a compiler is; by way of the
# sdist, since compiled modules beside their sources would be what .venv runs
$(BENCHED): $(shell find walstream -name '*.py') $(READY)
	@echo "setting up .venv-bench: walstream compiled"
	@[ -x $(BENCHED_BIN)/pip ] || $(PYTHON) -m venv .venv-bench
	@rm -rf .venv-bench/dist
	@MYPYC_OPT_LEVEL=3 HATCH_BUILD_HOOKS_ENABLE=1 $(BIN)/python -m build \
	  --outdir .venv-bench/dist . > .venv-bench/build.log 2>&1 || { \
	  echo "it cannot be compiled here (.venv-bench/build.log ends so):"; \
	  tail -n 3 .venv-bench/build.log; echo "the pure form alone is benched"; \
	  $(BIN)/python -m build --wheel --outdir .venv-bench/dist . > /dev/null; }
	@$(BENCHED_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  --force-reinstall --no-deps .venv-bench/dist/*.whl
	@$(BENCHED_BIN)/python -m pip install --quiet --disable-pip-version-check \
	  "$$(echo .venv-bench/dist/*.whl)[dev]"
	@touch $@
python:
	@[ -n "$(PYTHON)" ] || { echo "Python 3.11 or later is needed:" \
	  "apt-get install python3 python3-venv" >&2; exit 1; }
java: python
	@$(PYTHON) -c 'from walstream.spark.java import main; main()'
