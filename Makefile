# make app | test | test-slow | lint | bench | clean. The first of them installs everything into .venv; after that each starts at once.
PYTHON ?= python3
PORT ?= 8501
ARGS ?=
SHARE ?=
WORKERS ?= 2
BIN := .venv/bin
INSTALLED := .venv/installed

# tests/conftest.py says which process gets which file. Compiled tests are kept, or each process would rewrite all.
PYTEST = PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -q -n $(WORKERS) --dist loadfile

.PHONY: app test test-slow lint bench clean

# make app SHARE=1 lets other machines use it; PORT=8502 listens elsewhere.
app: $(INSTALLED)
	@$(BIN)/python -m relcore app --port $(PORT) $(if $(SHARE),--share)

# make test ARGS="tests/relcore/metrics" for less; WORKERS=0 runs all in one process.
test: $(INSTALLED)
	@$(PYTEST) -m "not slow" $(ARGS)

test-slow: $(INSTALLED)
	@$(PYTEST) -m slow $(ARGS)

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .
	@$(BIN)/python tests/glossary.py

bench: $(INSTALLED)
	@$(BIN)/python -m benchmarks $(ARGS)

# Touched last, so that an install that broke off is done again.
$(INSTALLED): requirements.txt pyproject.toml
	@echo "Installing into .venv, some minutes the first time …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.txt
	@$(BIN)/python -m pip install -qq --disable-pip-version-check --no-deps --no-build-isolation -e .
	@touch $@

clean:
	@rm -rf .venv .pytest_cache .ruff_cache .hypothesis
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
