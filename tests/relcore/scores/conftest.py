import pytest

from relcore.scores import passes


@pytest.fixture
def passes_over_few_rows(monkeypatch):
    """Spaces of few rows have their scores from passes over blocks, too, and not from matrices."""
    monkeypatch.setattr(passes, "FEW_ROWS", 0)
