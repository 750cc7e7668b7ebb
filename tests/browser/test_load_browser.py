"""Several sessions on one app at once, each with rows of its own: nobody sees an error, nor a row of
another.
"""

import os

import pytest

from benchmarks.browser_sessions import many_sessions
from benchmarks.load import phase
from tests.browser.conftest import find_chromium
from tests.waiting import run_apart


@pytest.mark.slow  # benchmarks/load.md has eight sessions for five minutes
def test_three_sessions_side_by_side(app, monkeypatch):
    pytest.importorskip("playwright.async_api")
    path = find_chromium()
    if path is None:
        pytest.skip("no Chromium found")
    monkeypatch.setenv("RELSCOPE_CHROMIUM", path)
    measured = run_apart(phase(app, os.getpid(), lambda *given: many_sessions(*given, 3, 15)))
    assert measured.faults == []
    assert {"lasso", "anchor", "page Compare"} <= measured.seconds.keys()
