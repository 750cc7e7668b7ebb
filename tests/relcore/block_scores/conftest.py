import pytest

from relcore.scores import passes


@pytest.fixture(autouse=True)
def passes_over_few_rows(monkeypatch):
    """The spaces of these tests have few rows, whose scores would else come from matrices."""
    monkeypatch.setattr(passes, "FEW_ROWS", 0)
