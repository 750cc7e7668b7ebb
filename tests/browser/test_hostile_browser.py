"""A session whose texts are Markdown, HTML and LaTeX, in a browser: no other server is asked, and nothing
of it is rendered.
"""

from __future__ import annotations

import json
from dataclasses import replace
from pathlib import Path
from urllib.parse import urlencode

import pytest

from app.places import DATA, PLACES
from app.plain_text import plain
from app.workspace import to_session_file
from relcore.base.text import visible
from tests.app.hostile import FILE_MARK, MARK, hostile_workspace
from tests.browser.panes import settle
from tests.relcore.figures.test_hostile_labels import FIGURES

ROOT = Path(__file__).parents[2]
# What Markdown or HTML would have made of the texts; the inspector's own pictures are data.
RENDERED = (
    "img[src='x'], img[src*='evil'], a[href*='evil'], main script, section script, .katex, img[alt='Streamlit"
    " logo']"
)
# Markdown of all kinds, with what Streamlit's own extensions read.
TEXTS = [
    *(
        MARK,
        FILE_MARK,
        ":red[x] :smile: :100: :streamlit: :material_star: :+1: :blue-badge[x] :help[x] ::name :::note{a}",
    ),
    *(
        "http://evil.test www.evil.test me@evil.test <http://evil.test> HTTP://EVIL.test",
        "a -> b <- c -- d >= e ~= f <-> g",
    ),
    *(
        "# head",
        "- item",
        "1. one",
        "> quote",
        "--- ",
        "*** ",
        "`c` ~~s~~ _i_ __b__ a_b snake_case",
        "[a]: b [^1] - [ ] t",
    ),
    *(
        "&lt;b&gt; &#36; a&b",
        "a\\*b \\$ C:\new",
        "$$x$$ \\(x\\)",
        "| a | b |\n|-|-|",
        "\u202eabc \u200b",
        "```py\nx\n```",
    ),
]


@pytest.mark.slow
def test_no_page_renders_or_fetches_anything_of_a_hostile_session(watched, servers, monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    workspace = hostile_workspace(tmp_path)
    workspace = replace(workspace, spaces=workspace.spaces[:-1])  # a session whose file is gone is not opened
    (tmp_path / "session.json").write_text(to_session_file(workspace, {}), encoding="utf-8")
    page = watched
    monkeypatch.setenv("RELSCOPE_DATA", str(tmp_path))
    page.goto(servers.script(ROOT / "app" / "serve.py") + "/?panes=own")
    page.wait_for_selector(".ls-root[data-drawn]")
    page.locator(".st-key-toolbar-session button").click()
    menu = page.get_by_test_id("stPopoverBody")
    menu.locator("input[type=file]").set_input_files(tmp_path / "session.json")
    menu.get_by_role("button", name="Open the session").click()
    page.get_by_text("60 rows in both").wait_for()
    page.keyboard.press("Escape")
    settle(page)
    assert (
        "<img src=x onerror=alert(1)>" in page.locator(".relscope-word").inner_text()
    )  # the texts are there, as they are
    for place in PLACES.values():
        page.get_by_role("button" if place is DATA else "link", name=place.title).first.click()
        settle(page)
        for tab in (None, *place.tabs):
            if tab:
                page.get_by_role("tab", name=tab, exact=True).click()
                settle(page)
            assert page.locator(RENDERED).count() == 0, (place, tab)
            assert page.locator("[data-testid=stException]").count() == 0, (place, tab)


def test_the_app_lets_the_browser_ask_no_other_host(page, app):
    complaints = []
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.goto(f"{app}/?panes=own")
    page.wait_for_selector(".ls-root[data-drawn]")
    settle(page)
    assert complaints == []  # what the app itself loads is allowed
    page.evaluate("document.body.insertAdjacentHTML('beforeend', '<img src=https://evil.test/p.png>')")
    page.wait_for_function("document.querySelector('img[src*=evil]').complete")
    assert [one for one in complaints if "Content Security Policy" in one]


def test_a_browser_shows_a_plain_text_as_it_is(watched, demo):
    watched.goto(f"{demo}/?{urlencode({'captions': json.dumps([plain(text) for text in TEXTS])})}")
    captions = watched.locator("[data-testid=stCaptionContainer]")
    captions.nth(len(TEXTS) - 1).wait_for()
    settle(watched)
    assert [one.replace("\u2060", "").strip() for one in captions.all_inner_texts()] == [
        visible(one).strip() for one in TEXTS
    ]
    rendered = watched.locator("[data-testid=stMain]").locator(
        "img, a, code, em, strong, del, li, h1, blockquote, table, hr, .katex"
    )
    assert rendered.count() == 0


@pytest.mark.parametrize(
    ("name", "drawn"), [("panes", ".ls-root[data-drawn]"), ("lines", ".js-plotly-plot .legend .traces")]
)
def test_an_exported_page_is_drawn_under_its_own_policy(page, tmp_path, name, drawn):
    complaints = []
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    (tmp_path / "page.html").write_bytes(FIGURES[name]().bytes("html"))
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector(drawn)
    assert page.locator(".no-webgl").count() == 0  # Plotly's words for a policy that forbids its code
    assert page.locator("img").count() == 0
    page.evaluate(
        "document.body.insertAdjacentHTML('beforeend', '<img src=https://evil.test/p.png onerror=alert(3)>')"
    )
    page.wait_for_function(
        "document.querySelector('img').complete"
    )  # a policy's picture is complete at once, without size
    assert [one for one in complaints if "Content Security Policy" not in one] == []
    assert len(complaints) >= 1
