"""Points drawn by the page itself, where there is no graphics card, look like those that WebGL draws."""

import base64
import io
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from tests.browser.panes import ROOT, at_rest, settle

DEMO = Path(__file__).parent / "demo_linked_scatter.py"
CHOSEN = "window.relscopePoints = new URLSearchParams(location.search).get('points')"


def pictures(page):
    """The points of each pane on white, (height, width, 3)."""
    urls = page.evaluate(
        "Array.from(document.querySelectorAll('.ls-points'), (canvas) => canvas.toDataURL())"
    )
    images = [Image.open(io.BytesIO(base64.b64decode(url.split(",")[1]))).convert("RGBA") for url in urls]
    return [
        np.asarray(Image.alpha_composite(Image.new("RGBA", image.size, "white"), image))[..., :3]
        for image in images
    ]


def drawn(page, url, points, *clicks):
    page.goto(f"{url}&points={points}")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    at_rest(page)
    for click in clicks:
        page.get_by_text(click).click()
        page.wait_for_selector(f"{ROOT}:not([data-selected='0'])")
    settle(page)
    return pictures(page)


@pytest.mark.parametrize(
    ("query", "clicks"),
    [
        ("n=300&named=.5", ()),
        ("n=300&named=.5", ("Highlight ten",)),
        ("n=5000&named=.5", ("Highlight one",)),
        ("n=5000&named=.5", ()),
        ("n=2000&solid=1", ()),
    ],
)
def test_both_renderers_draw_the_same_picture(page, serve, query, clicks):
    page.add_init_script(CHOSEN)
    url = f"{serve(DEMO)}/?{query}"
    ours, theirs = (drawn(page, url, points, *clicks) for points in ("page", "webgl"))
    assert len(ours) == len(theirs) == 4
    for mine, other in zip(ours, theirs, strict=True):
        assert mine.shape == other.shape
        differences = np.abs(mine.astype(int) - other).max(axis=-1)
        assert (other < 250).any(axis=-1).mean() > 0.02, "an empty picture is like any other"
        assert differences.mean() < 0.5
        assert np.quantile(differences, 0.999) < 20


def test_the_page_draws_where_webgl_is_missing_or_runs_in_software(page, serve):
    kinds = "Array.from(document.querySelectorAll('.ls-points'), (canvas) => !canvas.getContext('2d'))"
    page.goto(f"{serve(DEMO)}/?n=300")
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.evaluate(kinds) == [False] * 4, "the browser of this test has no graphics card"
    page.add_init_script("""const known = HTMLCanvasElement.prototype.getContext;
        HTMLCanvasElement.prototype.getContext = function (kind, ...rest) {
          return kind === "webgl2" ? null : known.call(this, kind, ...rest);
        };""")
    page.reload()
    page.wait_for_selector(f"{ROOT}[data-drawn]")
    assert page.evaluate(kinds) == [False] * 4
    assert all((picture < 250).any() for picture in pictures(page))
