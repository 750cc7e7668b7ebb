"""What holds for every test: one core for linear algebra, because tests run beside each other, and one engine for most."""

from __future__ import annotations

import os

import pytest

for library in ("OMP", "OPENBLAS", "MKL"):  # read when NumPy and Torch are loaded, which is later
    os.environ.setdefault(f"{library}_NUM_THREADS", "1")


@pytest.fixture(scope="session")
def shared_engine(tmp_path_factory):
    """An engine of one worker for all tests of this process that need no engine of their own: to start one takes seconds.

    A test takes it through `one_worker`, or gives it a store of its own with `monkeypatch`.
    """
    from relcore.engine import Engine
    from relcore.store import Store

    engine = Engine(n_workers=1, store=Store(tmp_path_factory.mktemp("engine")))
    yield engine
    engine.close()


@pytest.fixture
def one_worker(shared_engine, monkeypatch, tmp_path):
    """The engine of one worker, with a store of the test's own and no job of another test."""
    from relcore.store import Store

    monkeypatch.setattr(shared_engine, "store", Store(tmp_path / "store"))
    monkeypatch.setattr(shared_engine, "_jobs", {})
    return shared_engine
