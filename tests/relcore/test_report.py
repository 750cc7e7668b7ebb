"""A report as text, JSON, Markdown and HTML; names from a file steer none of them."""

import re

import numpy as np
import pandas as pd
import pytest

import relcore
from relcore.base.report import Report, Reported, Table
from relcore.spaces.space import LatentSpace
from relcore.stitch.stitching import StitchSpec, stitch_matrix

HOSTILE = "a|b <b>@bob</b> [x](http://e.x) `c` www.e.x"


@pytest.fixture
def report():
    rows = pd.DataFrame({"name": ["first", HOSTILE], "score": [np.float32(0.5), float("nan")]})
    shown = [["name", "score"], ["first", ".500"], [HOSTILE, "–"]]
    table = Table("rows", rows, shown, "Scores", "n = 3 rows.")
    return Report(f"Two rows of {HOSTILE}", [table], {"n": np.int64(3)}, ["A note."])


def test_the_text_has_all_parts_in_order(report):
    lines = report.text().splitlines()
    assert lines[0] == report.sentence
    assert lines[2:5] == ["Scores", f"  {'name':{len(HOSTILE)}}  score", f"  {'first':{len(HOSTILE)}}   .500"]
    assert lines[-3:] == ["n = 3 rows.", "", "A note."]


def test_the_record_has_all_digits(report):
    record = report.record()
    assert (record["n"], record["notes"]) == (3, ["A note."])
    assert record["rows"] == [{"name": "first", "score": 0.5}, {"name": HOSTILE, "score": None}]


def test_markdown_holds_no_link_mention_or_html(report):
    text = report.markdown()
    [row] = [line for line in text.splitlines() if line.startswith("| `")]
    assert row.count("|") == 3
    for sign in ("<b>", "@bob", "[x](", "http://", " `c", " www."):
        assert sign not in re.sub("`[^`]*`", "", text.replace("\\`", "")) + " "


@pytest.mark.parametrize(("alarm", "sign"), [(True, "❌"), (False, "✅")])
def test_markdown_begins_with_the_verdict(alarm, sign):
    assert Report("Rows changed.", facts={"alarm": alarm}).markdown() == f"{sign} Rows changed.\n"


def test_html_escapes_what_files_hold(report):
    html = report._repr_html_()
    assert "<b>" not in html
    assert html.count("<tr>") == 3
    assert "<li>A note.</li>" in html


def test_a_figure_is_a_picture_in_the_html():
    class Drawn:
        def _repr_png_(self):
            return b"png"

    report = Report("A figure.", figures={"any": Drawn})
    assert report._repr_png_() == b"png"
    assert 'src="data:image/png;base64,cG5n"' in report.html()
    assert Report("None.")._repr_png_() is None


def test_stitch_matrix_shows_its_heat_map_in_notebook():
    rng = np.random.default_rng(0)
    labels = rng.integers(0, 3, 120)
    X = rng.normal(size=(120, 6)) + 4 * rng.normal(size=(3, 6))[labels]
    spaces = [LatentSpace(rows, list(map(str, range(120))), labels=labels.astype(str)) for rows in (X, -X)]
    result = stitch_matrix(spaces, StitchSpec(("relative",), n_anchors=20))
    assert result._repr_png_().startswith(b"\x89PNG")
    html = result._repr_html_()
    assert "mean accuracy is 1.000" in html
    assert html.count("<table>") == 2


def test_a_result_is_its_sentence_in_a_terminal():
    rng = np.random.default_rng(0)
    labels = np.tile(["a", "b"], 60)
    spaces = [LatentSpace(rng.normal(size=(120, 5)), labels=labels) for _ in range(2)]
    result = stitch_matrix(spaces, StitchSpec(("relative",), n_anchors=10))
    assert repr(result) == f"<StitchResult: {result.report().sentence}>"


@pytest.mark.parametrize("name", relcore.__all__)
def test_no_result_shows_all_its_arrays_in_a_terminal(name):
    kind = getattr(relcore, name)
    if isinstance(kind, type) and issubclass(kind, Reported):
        assert not hasattr(kind.__repr__, "__wrapped__")  # the one that a dataclass makes
