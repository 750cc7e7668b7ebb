"""Files that the browser asks for when no page runs are made with the rights of their session."""

import re
from pathlib import Path

import pytest

from tests.app.conftest import session_of_uploads

ROOT = Path(__file__).parents[2]


@pytest.fixture
def offered(monkeypatch):
    """The content of each download that a page offers, or the function that makes it."""
    found = {}

    def offer(label, data, name, *given, **look):
        found[name] = data
        return False

    monkeypatch.setattr("app.exports.st.download_button", offer)
    return found


def test_each_download_of_uploads_is_made_after_the_run(offered):
    session, _ = session_of_uploads()
    offered.clear()
    session.open("explore", "Selection").select("r1", "r2")
    later = {name: make for name, make in offered.items() if callable(make)}
    assert {"relscope-selection.csv", "relscope-session.zip", "relscope-panes-a-b.parquet"} <= later.keys()
    for name, make in later.items():
        assert make(), name


def test_only_one_function_offers_downloads():
    """It gives them the rights of the session."""
    pages = [*ROOT.glob("app/**/*.py"), *ROOT.glob("pages/*.py")]
    calls = [page.name for page in pages for _ in re.finditer(r"\.download_button\(", page.read_text())]
    assert calls == ["exports.py"]
