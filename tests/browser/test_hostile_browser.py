import json
from urllib.parse import urlencode

import pytest

from app.plain_text import plain
from relcore.base.text import visible
from tests.app.hostile import FILE_MARK, MARK
from tests.browser.panes import settle
from tests.relcore.figures.test_hostile_labels import FIGURES

EVIL = "<img src=https://evil.test/p.png onerror=alert(3)>"
# Markdown of all kinds, with what Streamlit's own extensions read.
TEXTS = [
    MARK,
    FILE_MARK,
    ":red[x] :smile: :100: :streamlit: :material_star: :+1: :blue-badge[x] :help[x] ::name :::note{a}",
    "http://evil.test www.evil.test me@evil.test <http://evil.test> HTTP://EVIL.test",
    "a -> b <- c -- d >= e ~= f <-> g",
    "# head",
    "- item",
    "1. one",
    "> quote",
    "--- ",
    "*** ",
    "`c` ~~s~~ _i_ __b__ a_b snake_case",
    "[a]: b [^1] - [ ] t",
    "&lt;b&gt; &#36; a&b",
    "a\\*b \\$ C:\new",
    "$$x$$ \\(x\\)",
    "| a | b |\n|-|-|",
    "\u202eabc \u200b",
    "```py\nx\n```",
]


def test_the_app_lets_the_browser_ask_no_other_host(page, own):
    complaints = []
    page.on("console", lambda message: message.type == "error" and complaints.append(message.text))
    page.goto(f"{own[0]}/_stcore/health")  # every answer of the app has the policy
    page.evaluate(f"document.body.insertAdjacentHTML('beforeend', '{EVIL}')")
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
    page.evaluate(f"document.body.insertAdjacentHTML('beforeend', '{EVIL}')")
    # A policy's picture is complete at once, without size.
    page.wait_for_function("document.querySelector('img').complete")
    assert [one for one in complaints if "Content Security Policy" not in one] == []
    assert len(complaints) >= 1
