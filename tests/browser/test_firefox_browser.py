"""One walk through all places in Firefox: each is drawn without an error, and a lasso reaches the
inspector.
"""

from __future__ import annotations

import json

import pytest

from tests.browser.chromium import SETTLED
from tests.browser.firefox import Firefox, find_firefox, without_screen
from tests.browser.panes import PLACES


@pytest.fixture
def firefox(tmp_path):
    path = find_firefox()
    if path is None:
        pytest.skip("no Firefox found: install firefox-esr, or set RELSCOPE_FIREFOX to its path")
    if without_screen():
        pytest.skip("no screen, and no Xvfb to make a virtual one: install xvfb")
    firefox = Firefox(path, tmp_path / "profile")
    yield firefox
    firefox.close()


@pytest.mark.slow
def test_a_walk_through_all_places(firefox, app):
    firefox.open(f"{app}/?panes=own")
    firefox.wait_for("document.querySelector('.ls-root[data-drawn]')")
    firefox.evaluate(f"({SETTLED})()")
    box = firefox.evaluate("JSON.stringify(document.querySelector('.ls-plot').getBoundingClientRect())")
    x, y, width, height = (json.loads(box)[name] for name in ("x", "y", "width", "height"))
    corners = [(0.3, 0.3), (0.7, 0.3), (0.7, 0.7), (0.3, 0.7)]
    firefox.drag([(x + a * width, y + b * height) for a, b in corners])
    firefox.wait_for("Number(document.querySelector('.ls-root').dataset.selected) > 0")
    firefox.wait_for(
        "[...document.querySelectorAll('.relscope-word')].some(one => one.innerText.includes('selected'))"
    )
    for title in PLACES:
        named = f"one => one.innerText.trim().endsWith({json.dumps(title)})"
        firefox.evaluate(
            f"[...document.querySelectorAll('[data-testid=stTopNavLink]')].find({named}).click()"
        )
        firefox.wait_for(f"document.querySelector('h2.relscope-unseen')?.innerText === {json.dumps(title)}")
        firefox.evaluate(f"({SETTLED})()")
        assert firefox.evaluate("document.querySelectorAll('[data-testid=stException]').length") == 0, title
        assert (
            firefox.evaluate("document.querySelector('[data-testid=stMain]').innerText.trim().length") > 100
        ), title
    assert firefox.errors == []
