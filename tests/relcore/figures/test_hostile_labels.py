"""Names and labels that are HTML, LaTeX, templates, control characters or half a surrogate pair, which tables of words
can bring and UTF-8 cannot hold: every kind of file is drawn and well-formed.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from html.parser import HTMLParser
from xml.etree import ElementTree

import numpy as np
import pandas as pd
import pytest

from relcore.figures.charts import Line, Lines
from relcore.figures.colorings import Pane
from relcore.figures.export import chart_exportable, read_recipe, scores_exportable
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.figures.scene import Scene
from relcore.figures.style import Style
from relcore.panes.page import scene_exportable

TEXT = (
    '$x^{$</script><script>alert(1)</script>"><img src=x onerror=alert(2)>%{x} --> ]]> \\input{a}'
    " \x00\x1b[2J\u202e {&amp;"
)
MARK = f"{TEXT} \ud800"
SMALL = Style(dpi=72, width=3.25)
RECIPE = {"figure": TEXT, "anchors": [TEXT]}


def scene(dimension):
    rng = np.random.default_rng(0)
    n = 30
    panes = (
        Pane(MARK, rng.normal(size=(n, dimension)), MARK),
        Pane(f"{MARK} 2", rng.normal(size=(n, dimension)), MARK),
    )
    ids = np.array([f"{MARK} {row}" for row in range(n)], dtype=object)
    drawn = Scene(panes, ids, np.arange(n) % 3 - 1, (f"{MARK} a", f"{MARK} b"), np.arange(3), MARK)
    return scene_exportable(drawn, RECIPE)


def scores():
    rows = [(TEXT, "absolute", 0.2, 0.0, 0.1), ("MRR", TEXT, 0.3, 0.0, 0.1)]
    columns = ["metric", "form", "score", "null_low", "null_high"]
    return scores_exportable(lambda: pd.DataFrame(rows, columns=columns), RECIPE)


def lines():
    line = Line(MARK, np.arange(3.0), np.arange(3.0), labels=(MARK,) * 3)
    return chart_exportable(
        Lines((line,), MARK, MARK, note=MARK, x_names=(MARK,) * 3, baselines=((MARK, 1.0),)), RECIPE
    )


def matrices():
    names = (f"{MARK} a", f"{MARK} b")
    panel = MatrixPanel(MARK, names, names, np.eye(2), hover=((f"{MARK}\n{MARK}",) * 2,) * 2, note=MARK)
    return chart_exportable(Matrices((panel,), (0, 1), MARK, MARK, MARK, MARK), RECIPE, "matrices")


FIGURES = {
    "panes": lambda: scene(2),
    "panes in 3-D": lambda: scene(3),
    "scores": scores,
    "lines": lines,
    "matrices": matrices,
}


class Page(HTMLParser):
    """The elements of a page with their attributes."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.elements: list[tuple[str, dict[str, str | None]]] = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))


# The panes: the recipe, the numbers, and what draws them. Plotly: the recipe, its settings, its script of 5
# MB, and the figure.
@pytest.mark.parametrize(("name", "scripts", "run"), [("panes", 3, 1), ("lines", 4, 3), ("matrices", 4, 3)])
def test_an_exported_page_has_its_own_elements_only(name, scripts, run):
    data = FIGURES[name]().bytes("html")
    page = Page(data.decode())
    tags = [tag for tag, _ in page.elements]
    assert any(attributes.get("aria-label") for _, attributes in page.elements)
    assert "img" not in tags
    assert tags.count("script") == scripts
    for _, attributes in page.elements:  # no code of a label, and nothing from a network
        assert not [one for one in attributes if one.startswith("on") or one in ("src", "href")]
    (policy,) = [attributes["content"] for _, attributes in page.elements if attributes.get("http-equiv")]
    assert policy.startswith("default-src 'none'; script-src 'sha256-")
    assert policy.count("'sha256-") == run
    assert "script-src 'unsafe-inline'" not in policy
    assert read_recipe(data) == RECIPE


@pytest.mark.parametrize("name", [name for name in FIGURES if FIGURES[name]().interactive])
def test_plotlys_texts_hold_no_html_mathematics_or_template_of_label(name):
    from relcore.figures.style import LIGHT

    figure = json.loads(FIGURES[name]().interactive(LIGHT).to_json())
    texts = [text for text in texts_of({key: figure[key] for key in ("data", "layout")}) if "onerror" in text]
    assert texts
    for text in texts:
        assert not re.search(r"<(?!/?(?:br|b|extra|span)\b)", text), text
        assert "$" not in text
        assert not re.search(r"%\{(?!hovertext|x|y|text|fullData)|\} \\input", text.replace("%{x}:", "")), (
            text
        )


def texts_of(value):
    """Strings of a figure, but for its text alternative and the names that group its traces."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from texts_of(inner) if key not in ("meta", "legendgroup") else ()
    elif isinstance(value, list):
        for inner in value:
            yield from texts_of(inner)
    elif isinstance(value, str):
        yield value


@pytest.mark.parametrize(
    ("name", "kind"), [*((name, "svg") for name in ("panes", "lines", "matrices")), ("lines", "pdf")]
)
@pytest.mark.filterwarnings("ignore:Glyph")
def test_a_printed_figure_is_drawn_and_well_formed(name, kind):
    data = FIGURES[name]().bytes(kind, SMALL)
    assert read_recipe(data) == RECIPE
    if kind == "svg":
        tags = {element.tag.rpartition("}")[2] for element in ElementTree.fromstring(data).iter()}
        assert not tags & {"script", "foreignObject", "a"}


def test_printed_table_holds_no_command_of_label():
    drawn = replace(FIGURES["lines"](), latex=lambda: pd.DataFrame({TEXT: [TEXT]}))
    assert "\N{REPLACEMENT CHARACTER}" in drawn.bytes("csv").decode()
    table = drawn.bytes("tex").decode()
    assert "\\textbackslash input\\{a\\}" in table
    assert not re.search(r"(?<!\\)[$&#%_]|\\input|[\x00\x1b]", table)
