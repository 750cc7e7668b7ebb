# make app | test | lint | bench | clean. The first of them installs everything into .venv; after that each starts at once.
PYTHON ?= python3
PORT ?= 8501
ARGS ?=
BIN := .venv/bin
INSTALLED := .venv/installed

.PHONY: app test lint bench clean

app: $(INSTALLED)
	@$(BIN)/streamlit run app/main.py --server.port $(PORT)

# One process: two buy no time on two cores, and the engine's tests measure seconds. make test ARGS="-m 'not browser'" for less.
test: $(INSTALLED)
	@$(BIN)/python -m pytest -q $(ARGS)

lint: $(INSTALLED)
	@$(BIN)/ruff check --quiet .
	@$(BIN)/ruff format --check --quiet .

bench: $(INSTALLED)
	@$(BIN)/python -m benchmarks $(ARGS)

# Touched last, so that an install that broke off is done again.
$(INSTALLED): requirements.txt
	@echo "Installing into .venv, some minutes the first time …"
	@$(PYTHON) -m venv .venv
	@$(BIN)/python -m pip install -qq --disable-pip-version-check -r requirements.txt
	@touch $@

clean:
	@rm -rf .venv .pytest_cache .ruff_cache
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +
