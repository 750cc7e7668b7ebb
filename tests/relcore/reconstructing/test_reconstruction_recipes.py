"""Figures of reconstructions: what they show and say, on screen and on paper, and that a recipe draws the
same again.
"""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from io import BytesIO

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.compare.figures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.figures.export import read_recipe
from relcore.figures.picture_grid import PictureGrid, PictureRow, grid_layout
from relcore.figures.style import COLUMN, DARK, LIGHT, Style
from relcore.runs.store import Store
from relcore.stitch.autoencoders import AutoencoderSpec, PictureSpec
from relcore.stitch.reconstruction import (
    Planes,
    ReconstructionErrors,
    ReconstructionGrid,
    ReconstructionSpec,
    collect,
)

SMALL = Style(dpi=80)
BASE = ReconstructionSpec(PictureSpec(DatasetSpec("digits", limit=150)), random_states=(0, 1), n_anchors=20)
SPECS = [
    replace(BASE, model=AutoencoderSpec(form, variational, width=8, epochs=1))
    for variational in (False, True)
    for form in ("absolute", "relative")
]
PLANES = replace(BASE, model=AutoencoderSpec(width=2, epochs=1))


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return tmp_path_factory.mktemp("store")


@pytest.fixture(autouse=True)
def own_store(monkeypatch, folder):
    monkeypatch.setenv("RELSCOPE_STORE", str(folder))


@pytest.fixture
def figures():
    return {
        "grid": ReconstructionGrid.of(SPECS, encoder_state=1, decoder_state=0).draw(),
        "errors": ReconstructionErrors.of(SPECS).draw(),
        "planes": Planes.of([PLANES], reference_state=0, moving_state=1).draw(),
    }


@pytest.mark.parametrize("kind", ["grid", "errors", "planes"])
def test_a_recipe_draws_the_same_numbers_again(figures, kind):
    figure = figures[kind]
    again = exportable(json.loads(figure.bytes("json", full_paths=True)))
    assert again.bytes("csv") == figure.bytes("csv")
    assert again.bytes("html") == figure.bytes("html")


@pytest.mark.parametrize("kind", ["grid", "errors", "planes"])
@pytest.mark.parametrize("style", [SMALL, replace(SMALL, width=COLUMN, theme=DARK)])
def test_every_figure_prints_at_its_width_with_its_recipe(figures, kind, style):
    printed = figures[kind].bytes("png", style)
    assert Image.open(BytesIO(printed)).width == pytest.approx(style.width * style.dpi, abs=1)
    assert read_recipe(printed) == figures[kind].recipe


def test_the_grid_shows_the_pixels_and_tells_the_errors(figures):
    found = collect({spec: spec.stored(Store()) for spec in SPECS})
    figure = figures["grid"].interactive(LIGHT)
    alt = figure.layout.meta["alt"]
    assert "AE absolute, stitched" in alt
    assert "Encoder of random state 1, stitched to the decoder of 0; 30 test pictures." in alt
    mosaic = np.asarray(Image.open(BytesIO(base64.b64decode(figure.data[0].source.split(",")[1]))))
    shades = np.round(255 * found.originals[0]).astype(np.uint8)
    np.testing.assert_array_equal(
        mosaic[40 + 2 : 40 + 40 : 5, 2:40:5, 0], shades
    )  # below the title, five units a pixel
    table = figures["grid"].table()
    assert len(table) == 4 * 2 * 10
    row = table[(table.family == "VAE") & (table.name == "relative") & table.stitched]
    assert row.mean_mse.unique() == pytest.approx([found.mse["VAE, relative"][1, 0]])
    expected = 1000 * np.mean((found.pictures["VAE, relative"][1, 0] - found.originals) ** 2, axis=(1, 2))
    np.testing.assert_allclose(row.mse, expected, rtol=1e-5)


def test_errors_stand_beside_the_mean_picture_and_print_as_latex(figures):
    found = collect({spec: spec.stored(Store()) for spec in SPECS})
    alt = figures["errors"].interactive(DARK).layout.meta["alt"]
    assert f"the mean picture for each: {found.floor:.1f}" in alt
    assert alt.count("stitched") == 4
    latex = figures["errors"].bytes("tex").decode()
    assert f"{np.diag(found.mse['AE, absolute']).mean():.2f} ± " in latex
    assert latex.count(r"\\") == 5


def test_the_animation_begins_as_it_is_and_ends_at_the_disparity_of_scipy(figures):
    from scipy.spatial import procrustes

    codes = PLANES.stored(Store()).codes
    figure = figures["planes"].interactive(LIGHT)
    n = len(figure.data) // 2
    ends = [np.concatenate([np.column_stack([t.x, t.y]) for t in figure.frames[i].data]) for i in (0, -1)]
    still = np.concatenate([np.column_stack([trace.x, trace.y]) for trace in figure.data[:n]])
    assert sorted(map(tuple, ends[0].round(5))) == sorted(map(tuple, codes[1].astype(float).round(5)))
    spread = np.square(still - still.mean(axis=0)).sum()
    expected = procrustes(codes[0], codes[1])[2]
    assert np.square(ends[1] - still).sum() / spread == pytest.approx(expected, rel=1e-4)
    assert f"{short(expected, 2)} after" in figure.layout.meta["alt"]
    steps = figure.layout.sliders[0].steps
    assert [step.args[0][0] for step in steps] == [frame.name for frame in figure.frames]
    assert steps[-1].label == f"100 %, disparity {short(expected, 2)}"


def test_pictures_of_other_sizes_are_refused():
    row = PictureRow("AE", "relative", False, np.zeros((2, 4, 4)), 1.0)
    with pytest.raises(
        SpaceError, match=r"expected pictures of shape \(2, 5, 4\) as the originals, got \(2, 4, 4\)"
    ):
        PictureGrid(np.zeros((2, 5, 4)), (row,))
    with pytest.raises(SpaceError, match="expected one row of pictures or more"):
        PictureGrid(np.zeros((2, 4, 4)), ())
    layout = grid_layout(PictureGrid(np.zeros((2, 4, 4)), (row,)), LIGHT, stacked=False, left=10, right=10)
    assert [text for _, _, text in layout.labels] == ["original", "relative"]


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        (
            "grid",
            {"encoder_state": 7},
            r"random states: expected two different ones of \(0, 1\), got 7 and 0",
        ),
        (
            "grid",
            {"decoder_state": 1},
            r"random states: expected two different ones of \(0, 1\), got 1 and 1",
        ),
        ("grid", {"models": []}, "models: expected one kind of autoencoder or more, got none"),
        ("errors", {"colour": "red"}, "recipe of reconstruction-mse: expected settings among 'pictures'"),
        ("errors", {"dataset_digest": "0" * 32}, "expected content 00000000…, got"),
        (
            "errors",
            {"dataset_digest": 3},
            "recipe of reconstruction-mse: dataset_digest: expected a string, got 3",
        ),
        ("planes", {"moving_state": 9}, r"random states: expected two different ones of \(0, 1\), got 9"),
        ("planes", {"models": [{"width": 3, "epochs": 1}]}, "expected an absolute model of width 2"),
    ],
)
def test_recipes_that_cannot_be_are_refused(figures, kind, change, message):
    with pytest.raises(SpaceError, match=message):
        exportable({**figures[kind].recipe, **change})
