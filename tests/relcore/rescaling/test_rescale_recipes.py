"""Figures of rescale injection, translation and domains come back from their recipes; wrong recipes are
told.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.cli import main
from relcore.compare.figures import exportable
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.small_vision import SmallVision
from relcore.invert.cross_domain import CrossDomainSpec
from relcore.invert.rescale import InputRescaleSpec, LayerRescaleSpec, RescaleInput, RescaleLayers
from relcore.invert.translation import (
    SessionCrossDomain,
    TrainedCrossDomain,
    TranslationSpec,
    TranslationTable,
)

ANCHORS = [f"r{row}" for row in range(30)]
TINY = SmallVision("mlp", width=8, epochs=1)
DIGITS = DatasetSpec("digits", limit=100)


@pytest.fixture(autouse=True)
def own_store(monkeypatch, tmp_path):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))


@pytest.fixture
def specs(tmp_path, rng):
    vectors, ids = rng.normal(size=(90, 6)), np.array([f"r{row}" for row in range(90)])
    for name in ("first", "second"):
        noise = 0.2 * rng.normal(size=vectors.shape)
        np.savez(
            tmp_path / f"{name}.npz",
            vectors=vectors + noise,
            ids=ids,
            labels=np.array([str(i % 2) for i in range(90)]),
        )
    return [SpaceSpec("file", str(tmp_path / f"{name}.npz")) for name in ("first", "second")]


@pytest.fixture
def make_figure(specs):
    def make(kind):
        digests = [load(spec).digest for spec in specs]
        if kind == "rescale-input":
            spec = InputRescaleSpec(("relu",), 4, 3, (0, 1))
            return RescaleInput(spaces=(specs[0],), digests=(digests[0],), spec=spec).draw()
        if kind == "rescale-layers":
            return RescaleLayers(dataset=DIGITS, encoder=TINY, spec=LayerRescaleSpec(60, 20, 4, 2)).draw()
        if kind == "translation-table":
            spec = TranslationSpec(("absolute", "procrustes"))
            made_of = {"spaces": tuple(specs), "digests": tuple(digests), "anchors": tuple(ANCHORS)}
            return TranslationTable(**made_of, metric="mrr", spec=spec).draw()
        spec = CrossDomainSpec(("procrustes", "absolute"), 20)
        if kind == "cross-domain":
            inverted = DatasetSpec("digits", limit=100, options=(("look", "inverted"),))
            made_of = {"datasets": (DIGITS, inverted), "encoders": (TINY,), "anchor_dataset": 0}
            return TrainedCrossDomain(**made_of, spec=spec, method="absolute").draw()
        named = {"domain_names": ("one", "two"), "encoder_names": ("net", "net"), "anchors": tuple(ANCHORS)}
        return SessionCrossDomain(spaces=tuple(specs), digests=tuple(digests), **named, spec=spec).draw()

    return make


KINDS = (
    "rescale-input",
    "rescale-layers",
    "translation-table",
    "cross-domain",
    "cross-domain of the session",
)


@pytest.mark.parametrize("kind", KINDS)
def test_drawn_again_it_holds_the_same_numbers(make_figure, tmp_path, kind):
    made, recipe, numbers = make_figure(kind), tmp_path / "recipe.json", tmp_path / "numbers.csv"
    recipe.write_bytes(made.bytes("json"))
    assert main(["figure", str(recipe), "-o", str(numbers)]) == 0
    assert numbers.read_bytes() == made.bytes("csv")
    assert made.recipe["figure"] == kind.removesuffix(" of the session")
    assert b"toprule" in made.bytes("tex")
    for file in ("html", "pdf"):
        assert made.bytes(file)


@pytest.mark.parametrize(
    ("kind", "change", "message"),
    [
        ("rescale-input", {"colour": 1}, "recipe of rescale-input: expected settings among"),
        ("rescale-input", {"spaces": []}, "recipe of rescale-input: expected one space, got 0"),
        ("rescale-input", {"digests": ["0" * 32]}, "'first' has changed"),
        ("rescale-input", {"spec": 3}, "recipe of rescale-input: spec: expected an object, got 3"),
        (
            "rescale-layers",
            {"dataset": "digits"},
            "recipe of rescale-layers: dataset: expected an object, got 'digits'",
        ),
        ("rescale-layers", {"spec": {"n_test": 0}}, "n_test: expected a whole number from 2"),
        ("translation-table", {"metric": "magic"}, "metric: expected one of cosine"),
        (
            "translation-table",
            {"anchors": "r1"},
            "recipe of translation-table: anchors: expected a list, got 'r1'",
        ),
        ("translation-table", {"digests": ["0" * 32]}, "expected 2 digests, one per space, got 1"),
        ("translation-table", {"spec": {"methods": ["magic"]}}, "methods: expected one of"),
        ("cross-domain", {"encoders": [3]}, 'expected a JSON object with "encoder"'),
        ("cross-domain", {"anchor_dataset": 7}, "anchor_dataset: expected 0 to 1, or none, got 7"),
        (
            "cross-domain",
            {"method": "relative"},
            "method: expected one of procrustes, absolute, got 'relative'",
        ),
        (
            "cross-domain of the session",
            {"domain_names": ["one"]},
            "a domain and an encoder for each of 2 spaces, got 1 and 2",
        ),
    ],
)
def test_a_wrong_recipe_says_what_is_right(make_figure, kind, change, message):
    with pytest.raises(SpaceError) as caught:
        exportable(make_figure(kind).recipe | change)
    assert message in str(caught.value)


def test_the_curves_say_what_they_are_beside(make_figure):
    table = make_figure("rescale-input").table().set_index("name")
    assert {"ReLU", "rows as they are", "chance", "mean length"} == set(table.index)
    assert table.loc["mean length", "x"] > 0
    assert (table.loc["ReLU", "high"] >= table.loc["ReLU", "low"]).all()


def test_a_recipe_without_what_it_needs_is_told():
    with pytest.raises(SpaceError, match="recipe of translation-table: the setting 'anchors' is missing"):
        exportable({"figure": "translation-table", "spaces": []})
