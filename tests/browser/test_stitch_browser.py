"""The Stitch page in a real Chromium: from the bundled words to a heat map, and from a cell to its
confusion matrix.
"""

from __future__ import annotations

import re

import numpy as np
import pytest

from relcore.catalog.catalog import encoding_key, put_encoding
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_to_json
from relcore.encoders.small_vision import SmallVision
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from tests.browser.panes import settle


@pytest.fixture(scope="module")
def url(serve, tmp_path_factory):
    """An app whose store has the digits' four encodings: not trained, but turned and noisy pixels in their
    place.
    """
    folder = tmp_path_factory.mktemp("store")
    store, spec, rng = Store(folder), DatasetSpec("digits"), np.random.default_rng(0)
    dataset = load_dataset(spec)
    pixels = (
        np.array([np.asarray(item, dtype=np.float32).ravel() for item in dataset.items(0, len(dataset))]) / 16
    )
    for number, name in enumerate(("mlp", "cnn", "residual", "vit")):
        encoder = SmallVision(name)
        turn = np.linalg.qr(rng.normal(size=(64, 64)))[0].astype(np.float32)
        rows = pixels @ turn + (0.1 + 0.5 * (number == 3)) * rng.normal(size=pixels.shape).astype(np.float32)
        title = f"{encoder.title} · {dataset.name}"
        space = LatentSpace(rows.astype(np.float32), dataset.ids, name=title, labels=dataset.labels)
        facts = {
            "dataset_spec": spec.to_json(),
            "encoder": encoder_to_json(encoder),
            "output": encoder.outputs[0],
        }
        put_encoding(store, encoding_key(dataset.digest, encoder, encoder.outputs[0]), space, facts)
    return serve("app/main.py", env={"RELSCOPE_STORE": str(folder), "RELSCOPE_DATA": ""})


@pytest.fixture
def stitched(page, url):
    """The Stitch page with every pair of four encoders."""
    page.goto(f"{url}/stitch")
    page.get_by_role("button", name="Use it").click()
    page.get_by_role("button", name=re.compile("Train them here")).click()
    page.get_by_text("stitched pairs").wait_for()
    page.get_by_text("All methods in one table").wait_for()
    settle(page)
    return page


def cell(page, panel, row, column):
    """The middle of a cell of the heat maps, on the screen."""
    box = page.locator(".js-plotly-plot").first.locator(".heatmaplayer image").nth(panel).bounding_box()
    return box["x"] + box["width"] * (column + 0.5) / 4, box["y"] + box["height"] * (row + 0.5) / 4


def chosen(page, label):
    return page.get_by_role("combobox", name=re.compile(label)).input_value()


def test_a_click_on_a_cell_shows_its_confusion_matrix(stitched):
    page = stitched
    page.locator(".js-plotly-plot").first.scroll_into_view_if_needed()
    for row, column, encoder, head in (
        (3, 0, "ViT", "MLP"),
        (1, 2, "CNN", "Residual CNN"),
        (3, 0, "ViT", "MLP"),
    ):
        page.mouse.click(*cell(page, 2, row, column))
        page.get_by_text(f"{encoder} → head of {head}", exact=True).wait_for()
        settle(page)
    assert chosen(page, "^Method") == "relative, whitened"
    assert chosen(page, "^Encoder$|^Encoder ") == "ViT"
    assert page.locator(".js-plotly-plot").nth(1).locator(".heatmaplayer image").count() == 2
    page.get_by_text("Changed answers").wait_for()
