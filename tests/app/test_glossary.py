from pathlib import Path
from xml.etree import ElementTree

import pytest

from app.glossary import card
from app.glossary.terms import ENTRIES, linked_html, term, term_html, with_links
from app.plain_text import plain, plain_html, plain_name
from app.tables import chance_html
from relcore.scores.score import ChanceLevel

APP = Path(card.__file__).parents[1]


def test_every_entry_is_in_the_card_with_its_picture():
    tree = ElementTree.fromstring(card.html())
    articles = tree.findall("article")
    assert sorted(article.get("data-term") for article in articles) == sorted(ENTRIES)
    assert all(article.find("svg") is not None and len(article.find("p").text) > 30 for article in articles)
    assert len({heading.get("id") for heading in tree.iter("h2")}) == len(ENTRIES) + 1


def test_a_link_names_an_entry():
    assert term("held-out", "held-out rows") == "[held-out rows](#what-held-out)"
    assert term_html("chance", "a < b") == '<a href="#what-chance">a &lt; b</a>'
    with pytest.raises(KeyError, match="nothing"):
        term("nothing", "nothing")
    sources = [path for path in APP.rglob("*.py") if path.parent.name != "glossary"]
    assert [path.name for path in sources if "#what-" in path.read_text(encoding="utf-8")] == []


def test_the_first_mention_of_each_term_becomes_a_link():
    text = "Parallel anchors, anchors and anchors; `anchor` [query](x) \\MRR, semi-relative, pre-whitened."
    assert with_links(text) == text.replace(
        "Parallel anchors, anchors", "[Parallel anchors](#what-parallel), [anchors](#what-anchor)"
    )
    fragment = '<b title="chance level">held-out rows</b> &chance; <a href="x">CKA</a> ± .1'
    assert linked_html(fragment) == fragment.replace(
        "held-out", '<a href="#what-held-out">held-out</a>'
    ).replace("±", '<a href="#what-interval">±</a>')


def test_a_chance_level_is_a_number_with_its_band():
    assert chance_html(ChanceLevel(0.00042, 0.0, 0.0011)).endswith(">chance .00042</small>")
    assert chance_html(ChanceLevel(-1e-18, -0.01, 0.01)).endswith(">chance 0</small>")
    assert chance_html(ChanceLevel(0.052, 0.036, 0.07)) == (
        '<small title="95 % band of the chance level: .036 … .070">chance .052</small>'
    )


JOINER = "\N{WORD JOINER}"


@pytest.mark.parametrize("text", ["snake_case.npz", "12:30 is 1.5 × 2", "a, b; c: d (e) “f” 'g'"])
def test_a_usual_name_stays_as_it_is(text):
    assert plain(text).replace(JOINER, "").replace("\\", "") == text


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (":red[x] :star: http://a.b", rf":{JOINER}red\[x\] :{JOINER}star: http:{JOINER}//a.b"),
        ("two\n\nlines\t \u2028here", "two lines here"),
        ("\x1b[31m\u202eabc\u200b", "�\\[31m�abc�"),
    ],
)
def test_what_markdown_reads_is_escaped(text, expected):
    assert plain(text) == expected


def test_a_long_text_is_cut():
    assert plain("a" * 10**7, most=10) == "a" * 9 + "…"
    assert len(plain_name("*" * 10**7)) == 2 * 119 + 1


def test_html_keeps_line_breaks_and_escapes_the_rest():
    assert plain_html('<b a="1">\n\x1b') == "&lt;b a=&quot;1&quot;&gt;\n�"
