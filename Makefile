# Every command of the project. CI calls `make test` (through .ci/run) and nothing else.
# Needs: Python >= 3.11 and a C compiler; a Rust toolchain for the fast engine (without one the reference engine is used).

SHELL := /bin/bash
.SHELLFLAGS := -eu -o pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:

# The interpreter of the environment: PYTHON if given, else the first of these that is 3.11 or newer.
PYTHON ?= $(shell for p in python3 python3.11 python3.12 python3.13 python3.14; do \
	"$$p" -c 'import sys, venv, ensurepip; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 && echo "$$p" && break; done)
VENV ?= .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DEMO := $(VENV)/.demo
SITE := $(VENV)/.site
MUTATION := $(VENV)/.mutation
PACKAGING := build/packaging
CIBUILDWHEEL := build/cibuildwheel
RUST := $(shell find rust -name target -prune -o -type f \( -name '*.rs' -o -name '*.toml' -o -name 'Cargo.lock' \) -print 2>/dev/null)
JOBS ?= 2
# Many tests wait for servers and other processes: more of them run at once than there are processors.
TEST_JOBS ?= 3
FIXTURES ?= $(if $(wildcard ../shared/fixtures),../shared/fixtures,tests/fixtures)
SECONDS_PER_TARGET ?= 60

# For `make freethreaded`: packages that have wheels for free-threaded Python and leave its GIL off, and the tests that need
# no other package. (zfpy and zarrs have none; lmdb and netCDF4 need the GIL; one test asks mypy.)
FREE := build/freethreaded
FREE_PACKAGES := dask fsspec icechunk ml_dtypes msgpack mongomock obstore pcodec pillow pyarrow redis rich tblib tensorstore xarray zarr
FREE_TESTS ?= tests/native tests/core tests/codecs tests/indexing tests/properties tests/dtypes tests/grids tests/keys \
	tests/metadata tests/model tests/safety $(wildcard tests/stores/test_*.py tests/test_*.py) \
	--ignore=tests/native/test_foreign.py -k "not zfp and not of_another_type and not lmdb and not type_checker"
STRESS_SECONDS ?= 2

# For `make test-apps`.
APPS := build/apps

# For `make test-zarr-python`: releases of zarr-python 3, the oldest and the newest that tessarr is put inside, and those between.
INSIDE := build/inside
RELEASES ?= 3.1.6 3.2.1 3.3.0 3.4.0 3.4.1 3.4.2
# PYTHON if given, else the first of these that is there: releases from 3.2 on need 3.12.
INSIDE_PYTHON = $(if $(filter file,$(origin PYTHON)),$(shell for p in python3.13 python3.12 python3.14 "$(PYTHON)"; do \
	"$$p" -c 'import venv, ensurepip' >/dev/null 2>&1 && echo "$$p" && break; done),$(PYTHON))

# For `make test-oldest`: the oldest releases that the extras and `peers` allow.
OLDEST := build/oldest
OLDEST_PACKAGES := xarray==2025.6.0 dask[array]==2024.8.0 distributed==2024.8.0 zarr==3.1.0

export PIP_DISABLE_PIP_VERSION_CHECK := 1
export NO_MKDOCS_2_WARNING := 1

.PHONY: help setup demo screenshots test test-busy test-apps test-oldest test-zarr-python test-browser servers check check-python check-pyright check-rust format conformance fixtures bench bench-serving campaign ecosystem freethreaded fuzz wheel wheel-freethreaded docs docs-serve viewer changelog api-snapshot clean

help: ## what can be made
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 22

setup: $(STAMP) ## the environment .venv with tessarr, its extras, the peers and the tools

$(PY):
	@test -n "$(PYTHON)" || { echo "error: Python 3.11 or newer with venv is needed; set PYTHON=..." >&2; exit 1; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --upgrade "pip>=24"
	-$(PY) -m pip install --quiet --only-binary :all: "uv>=0.9"

# uv needs a twentieth of the time of pip. Where it cannot be had, or fails, pip installs, or says why not.
install = { $(PY) -m uv pip install --quiet --python $(PY) $(1) 2>/dev/null || $(PY) -m pip install --quiet $(1); }

$(STAMP): pyproject.toml setup.py $(RUST) | $(PY)
	$(call install,-e '.[dev]')
	@touch $@

# The packages that the demonstration uses; `make setup` adds the others to the same environment.
$(DEMO): pyproject.toml setup.py $(RUST) | $(PY)
	$(call install,-e '.[cli]' 'netCDF4>=1.6')
	@touch $@

# What builds the documentation site.
$(SITE): pyproject.toml | $(STAMP)
	$(call install,-e '.[docs]')
	@touch $@

# What makes the mutants of `make campaign NAME=mutation`.
$(MUTATION): pyproject.toml | $(STAMP)
	$(call install,-e '.[mutation]')
	@touch $@

# What reads the configuration of wheels for other systems.
$(CIBUILDWHEEL)/.installed: | $(PY)
	$(PY) -m venv $(CIBUILDWHEEL)
	$(CIBUILDWHEEL)/bin/python -m pip install --quiet 'cibuildwheel>=4.3,<5'
	@touch $@

demo: $(if $(wildcard $(STAMP)),$(STAMP),$(DEMO)) ## a tour: convert, read, write, check
	$(PY) scripts/demo.py

# What of the checks needs no environment runs while that is made. Tests start many processes: without bytecode each of them
# compiles what it imports.
test: ## everything CI asks for
	$(MAKE) --no-print-directory -j 3 servers check-rust check-python check-pyright
	$(PY) -m compileall -q -j 2 src tests scripts
	env -u PYTHONDONTWRITEBYTECODE $(PY) -m pytest -q -n $(TEST_JOBS) </dev/null

test-busy: $(STAMP) servers ## the whole suite, TIMES=5 times, beside BUSY=4 busy processes (TESTS="tests/stores")
	$(PY) scripts/busy.py --times $(or $(TIMES),5) --busy $(or $(BUSY),4) --jobs $(JOBS) -- $(TESTS) </dev/null

test-browser: $(STAMP) servers ## the page of `tessarr view` in Chromium (a Debian package, which `servers` installs as root)
	WHOLE_BROWSER=1 $(PY) -m pytest -q -s tests/browser </dev/null

screenshots: $(STAMP) servers ## the pictures of the page and of a notebook in docs/images, by Chromium
	$(PY) scripts/screenshots.py docs/images

test-apps: ## napari, iohub, PyTorch and anndata with tessarr, in an environment of their own (PYTHON=python3.12 or newer for iohub)
	test -x $(APPS)/bin/python || $(PYTHON) -m venv $(APPS)
	$(APPS)/bin/python -m pip install --quiet --upgrade "pip>=24"
	$(APPS)/bin/python -m pip install --quiet -e '.[apps]'
	$(APPS)/bin/python -m pytest -q -p no:npe2 -p no:napari -W default tests/applications </dev/null

test-oldest: ## the tests of xarray, dask and the alias with the oldest releases of xarray, dask and zarr-python that are supported
	test -x $(OLDEST)/bin/python || $(PYTHON) -m venv $(OLDEST)
	$(OLDEST)/bin/python -m pip install --quiet --upgrade "pip>=24"
	$(OLDEST)/bin/python -m pip install --quiet -e '.[cloud,fsspec,icechunk]' $(OLDEST_PACKAGES) aiohttp hypothesis ipykernel mypy "pytest>=8.2" pytest-xdist scipy tblib
	$(OLDEST)/bin/python -m pytest -q -n $(JOBS) tests/xarray tests/dask tests/as_zarr </dev/null

test-zarr-python: ## the patch, the codec pipeline and the entry points in RELEASES="3.1.6 3.4.2" of zarr-python (PYTHON=python3.12 or newer)
	test -x $(INSIDE)/bin/python || $(INSIDE_PYTHON) -m venv $(INSIDE)
	$(INSIDE)/bin/python -m pip install --quiet --upgrade "pip>=24"
	$(INSIDE)/bin/python -m pip install --quiet -e '.[cloud,codecs,dask,fsspec,ml,xarray]' "hypothesis>=6.100" "pytest>=8.2" "pytest-xdist>=3.6"
	for release in $(RELEASES); do \
		echo "zarr-python $$release"; \
		case "$$release" in 3.1.*) ;; *) $(INSIDE)/bin/python -c "import sys; sys.exit(sys.version_info < (3, 12))" || \
			{ echo "left out: it needs Python 3.12 (PYTHON=...)"; continue; };; esac; \
		$(INSIDE)/bin/python -m pip install --quiet "zarr==$$release"; \
		$(INSIDE)/bin/python -m pytest -q -n $(JOBS) tests/zarr_python </dev/null; \
	done

servers: $(STAMP) ## the servers that the tests of remote stores talk to, in build/test-servers
	PYTHON=$(abspath $(PY)) scripts/install_test_servers.sh </dev/null

check: $(STAMP) check-rust check-python check-pyright ## format, lint, types, import floors, house rules (public API, sizes, hops)
	$(PY) -m pytest -q tests/architecture </dev/null

check-python: $(STAMP) $(CIBUILDWHEEL)/.installed ## format, lint, types by mypy, stubtest, import floors, cibuildwheel's configuration
	$(PY) -m ruff format --check .
	$(PY) -m ruff check .
	$(PY) -m mypy
	if $(PY) -c 'import tessarr._native' 2>/dev/null; then $(PY) -m mypy.stubtest --ignore-disjoint-bases tessarr._native; fi
	$(VENV)/bin/lint-imports
	$(CIBUILDWHEEL)/bin/python scripts/wheel_targets.py

check-pyright: $(STAMP) ## pyright on the package and on tests/typing
	$(VENV)/bin/basedpyright --pythonpath $(PY)
	$(VENV)/bin/basedpyright --pythonpath $(PY) --project scripts/public_types.json

check-rust: ## the tests of the Rust modules, and clippy
	# With assertions and checks of overflow, and compiled in a third of the time that a release needs. Its tests mutate the
	# seeds of each fuzz target for a second.
	if command -v cargo >/dev/null; then MAKEFLAGS= CARGO_INCREMENTAL=0 CARGO_PROFILE_DEV_DEBUG=0 cargo test --quiet --manifest-path rust/Cargo.toml; fi
	# Mistakes alone: each release of clippy has further rules of style.
	if cargo clippy --version >/dev/null 2>&1; then MAKEFLAGS= cargo clippy --quiet --release --locked --manifest-path rust/schedules/Cargo.toml -- -D clippy::correctness -D clippy::suspicious -A clippy::style -A clippy::complexity; fi

format: $(STAMP) ## put the code in form
	$(PY) -m ruff format .
	$(PY) -m ruff check --fix .

conformance: $(STAMP) servers ## per requirement: passing, failing, not covered (FAMILIES="N5 V3-SHARD OGC-01..05"; all)
	$(PY) scripts/conformance.py --jobs $(JOBS) $(FAMILIES) </dev/null

fixtures: $(STAMP) ## every array of other writers against its expected values (FIXTURES=dir)
	$(PY) scripts/fixtures.py $(FIXTURES) </dev/null

bench: ## side by side with the other implementations (ROWS="R1 W3" PEERS=... SECONDS_PER_LINE=20 BENCH_SCALE=small), or with itself: PEERS=old OLD=COMMIT
	$(if $(PYTHON),$(PYTHON),python3) benchmarks/setup_env.py $(if $(filter old,$(PEERS)),--old $(or $(OLD),HEAD~1)) $(if $(filter tessarr-free,$(PEERS)),--free)
	.bench/main/bin/python benchmarks/bench.py $(if $(ROWS),--rows $(ROWS)) $(if $(PEERS),--peers $(PEERS)) $(if $(SECONDS_PER_LINE),--seconds $(SECONDS_PER_LINE)) </dev/null

bench-serving: $(STAMP) ## `tessarr serve` beside http.server, zarr-http-server, xpublish and Tiled (SERVERS="tessarr tiled")
	$(PY) benchmarks/serving $(if $(SERVERS),--servers $(SERVERS)) </dev/null

ecosystem: $(STAMP) ## the tests of xarray, dask and others, with zarr-python and with tessarr in its place (PROJECTS="xarray dask")
	$(PY) scripts/ecosystem.py $(PROJECTS) --causes 10 </dev/null

fuzz: $(STAMP) ## hostile input: TARGETS="native-* documents" SECONDS_PER_TARGET=1800 JOBS=2 (TARGETS=list prints them; =coverage what kept inputs reach)
	$(if $(filter coverage,$(TARGETS)),$(PY) -m pip install --quiet coverage)
	$(PY) scripts/fuzz.py $(if $(filter list coverage,$(TARGETS)),--$(TARGETS),$(foreach t,$(TARGETS),'$(t)') --seconds $(SECONDS_PER_TARGET) --jobs $(JOBS) $(if $(SEED),--seed $(SEED))) </dev/null

campaign: $(STAMP) $(if $(filter mutation,$(NAME)),$(MUTATION)) $(if $(filter append differential faults histories power s3_histories,$(NAME)),servers) ## a search for lost bytes that goes on where it stopped: NAME=simulate SECONDS=3600 JOBS=2 (no NAME lists them); docs/campaigns.md
	$(PY) scripts/campaign.py $(if $(NAME),$(NAME) --seconds $(or $(SECONDS),600) --jobs $(JOBS),--list) </dev/null

freethreaded: ## the tests of engines, core and codecs without a GIL, on python3.14t (PYTHON=..., or one that is found or fetched), STRESS_SECONDS=2, FREE_TESTS="..."
	test -x $(FREE)/bin/python || { found=$$("$(PYTHON)" scripts/freethreaded_python.py "$(PYTHON)"); "$$found" -m venv $(FREE); }
	$(FREE)/bin/python -m pip install --quiet --upgrade "pip>=24"
	TESSARR_NATIVE=require CARGO_TARGET_DIR=$(abspath $(FREE)/target) $(FREE)/bin/python -m pip install --quiet -e . hypothesis jsonschema pytest pytest-xdist
	@for package in $(FREE_PACKAGES); do $(FREE)/bin/python -m pip install --quiet --only-binary :all: $$package || exit 1; done
	# For strace, by which tests of local stores see system calls.
	PYTHON=$(abspath $(FREE)/bin/python) scripts/install_test_servers.sh </dev/null
	# A module that needs the GIL switches it on with a warning, which is an error here.
	STRESS_SECONDS=$(STRESS_SECONDS) $(FREE)/bin/python -m pytest -q -n $(JOBS) -W "ignore:As the c extension:RuntimeWarning" $(FREE_TESTS) </dev/null

wheel: | $(PY) ## dist/*.whl (manylinux where zig links it) and dist/*.tar.gz, each tried in an empty environment
	test -x $(PACKAGING)/bin/python || $(PY) -m venv $(PACKAGING)
	$(PACKAGING)/bin/python -m pip install --quiet $$($(PY) scripts/distributions.py needs)
	rm -rf dist
	$(PACKAGING)/bin/python scripts/distributions.py build dist
	$(PACKAGING)/bin/python scripts/distributions.py check dist/*

wheel-freethreaded: ## the second wheel in dist, for a free-threaded CPython that is found, fetched or compiled (PYTHON=python3.14t)
	test -x $(PACKAGING)-free/bin/python || { found=$$("$(PYTHON)" scripts/freethreaded_python.py "$(PYTHON)"); "$$found" -m venv $(PACKAGING)-free; }
	$(PACKAGING)-free/bin/python -m pip install --quiet $$($(PACKAGING)-free/bin/python scripts/distributions.py needs)
	$(PACKAGING)-free/bin/python scripts/distributions.py build dist
	$(PACKAGING)-free/bin/python scripts/distributions.py check dist/*t-*.whl

docs: $(STAMP) $(SITE) ## every example of the documentation, run, and the site in build/site, whose links all lead somewhere
	$(PY) -m pytest -q tests/docs </dev/null
	$(PY) -m mkdocs build --strict --quiet
	@echo "build/site/index.html"

docs-serve: $(STAMP) $(SITE) ## the site on http://127.0.0.1:8000, built again when a page changes (ADDRESS=127.0.0.1:8001)
	$(PY) -m mkdocs serve --strict --dev-addr $(or $(ADDRESS),127.0.0.1:8000)

viewer: ## the page of `tessarr view`: checks, tests and builds viewer/ into src/tessarr/viewer (needs npm)
	cd viewer && npm ci --no-audit --no-fund && npm test && npm run build

changelog: | $(PY) ## what the fragments in changes/ come to; VERSION=3.4.1 puts it into CHANGELOG.md
	$(PY) -m pip install --quiet 'towncrier>=24.8'
	$(PY) -m towncrier build $(if $(VERSION),--yes --version $(VERSION),--draft --version unreleased)

api-snapshot: $(STAMP) ## accept the present public API as the new snapshot
	$(PY) scripts/api_snapshot.py

clean: ## remove what the other targets made
	rm -rf .venv .bench build dist .mypy_cache .pytest_cache .ruff_cache .hypothesis .import_linter_cache .conformance.json rust/target viewer/node_modules viewer/build
	find src -name '*.so' -delete
