# make app | test | test-slow | pythons | lint | bench | docs | lock | audit | clean. The first of them installs everything into .venv; after that each starts at once.
PYTHON ?= python3
PORT ?= 8501
ARGS ?=
SHARE ?=
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/installed
PIP = $(BIN)/python -m pip install -qq --disable-pip-version-check --no-compile --no-deps
UV := $(shell sed -n 's,^uv==,,p' requirements.txt)
PIP_AUDIT := 2.10.1

# tests/conftest.py says which process gets which file. Compiled tests are kept, or each process would rewrite all.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile
# Collecting only the files that have slow tests saves half a minute.
SLOW = $(shell grep -rlE "mark\.slow|SLOW" tests --include="test_*.py")

.PHONY: app test test-slow pythons lint bench docs lock audit clean

# make app SHARE=1 lets other machines use it; PORT=8502 listens elsewhere.
app: $(INSTALLED)
	@$(BIN)/python -m relcore app --port $(PORT) $(if $(SHARE),--share)

# make test ARGS="tests/relcore/scores" for less; WORKERS=0 runs all in one process.
test: $(INSTALLED)
	@$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(INSTALLED)
	@$(PYTEST) -m slow $(or $(ARGS),$(SLOW))

# Some tests on each Python that is supported and here, in environments of their own without PyTorch.
pythons:
	@.ci/pythons $(or $(ARGS),3.11 3.12 3.13)

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python tests/glossary.py
	@$(BIN)/python tests/folds.py
	@$(BIN)/python tests/typing/bodies.py
	@$(BIN)/python tests/typing/check.py

bench: $(INSTALLED)
	@$(BIN)/python -m benchmarks.steps $(ARGS)

# The documentation site in the folder site/, its examples run and its links checked. What it needs is installed into .venv/docs.
docs: .venv/docs/installed
	@OMP_NUM_THREADS=1 PYTHONPATH=. .venv/docs/bin/python docs/site/build.py

# docs.lock names the packages that it takes from requirements.lock, and has the others.
.venv/docs/installed: docs.lock requirements.lock
	@echo "Installing into .venv/docs, a minute the first time …"
	@$(PYTHON) -m venv .venv/docs
	@awk 'NR == FNR {if (/^#/) for (i = 2; i <= NF; i++) taken[$$i]; next} /^[a-z]/ {split($$1, name, "=="); on = name[1] in taken} on' \
		docs.lock requirements.lock > .venv/docs/taken.lock
	@.venv/docs/bin/python -m pip install -qq --disable-pip-version-check --no-compile --no-deps --require-hashes -r .venv/docs/taken.lock -r docs.lock
	@touch $@

# Touched last, so that an install that broke off is done again.
$(INSTALLED): .venv/packages pyproject.toml
	@$(PIP) --no-build-isolation -e .
	@touch $@

# All but Relscope itself. uv takes a seventh of pip's time; where it cannot reach the index that pip is set up for, pip
# installs. Where pip finds PyTorch without CUDA, it is taken: it is a tenth of the size.
.venv/packages: requirements.lock torch.lock torch-cpu.lock
	@echo "Installing into .venv, some minutes the first time …"
	@$(PYTHON) -m venv .venv
	@awk '/^[a-z]/ {on = /^uv==/} on' requirements.lock > .venv/uv.lock
	@$(PIP) --require-hashes -r .venv/uv.lock
	@$(BIN)/uv pip install -q --python $(BIN)/python --no-deps --require-hashes -r requirements.lock || \
		$(PIP) --require-hashes -r requirements.lock
	@$(PIP) --require-hashes -r torch-cpu.lock 2>/dev/null || $(PIP) --require-hashes -r torch.lock
	@touch $@

# The versions of requirements.txt and of all that they need, with hashes, for every Python and system. ARGS="-P NAME" raises one of them.
lock:
	@$(PYTHON) -m venv .venv/lock
	@.venv/lock/bin/python -m pip install -qq --disable-pip-version-check uv==$(UV)
	@cat requirements.lock torch.lock > .venv/lock/all
	@.venv/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header $(ARGS) requirements.txt -o .venv/lock/all
	@awk '/^[a-z]/ {torch = /^(torch=|cuda|nvidia|triton)/} {print > (torch ? "torch.lock" : "requirements.lock")}' .venv/lock/all
	@.venv/lock/bin/uv pip compile -q --universal --python-version 3.11 --generate-hashes --no-annotate --no-header pyproject.toml --group docs \
		-c requirements.lock -o .venv/lock/docs
	@awk 'NR == FNR {if (/^[a-z]/) {split($$1, name, "=="); locked[name[1]]}; next} /^[a-z]/ {split($$1, name, "=="); on = !(name[1] in locked); if (!on) taken = taken " " name[1]} on {own = own $$0 "\n"} END {printf "#%s\n%s", taken, own}' \
		requirements.lock .venv/lock/docs > docs.lock

# Known faults of the locked versions. It needs the network.
audit:
	@$(PYTHON) -m venv .venv/audit && .venv/audit/bin/pip install -qq pip-audit==$(PIP_AUDIT)
	@.venv/audit/bin/pip-audit --require-hashes --disable-pip -r requirements.lock -r torch.lock

clean:
	@rm -rf .venv site .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
