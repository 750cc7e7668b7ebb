"""A toy encoder, registered in `relcore.base.names` alone, is on the page, on the command line, in the
store and in recipes.
"""

from __future__ import annotations

import json
import sys

import numpy as np
import pytest

from relcore.base import names
from relcore.catalog.catalog import SpaceSpec, encoding_spec, load
from relcore.catalog.encoding import encode
from relcore.cli import main
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_class, encoder_from_json
from relcore.runs.store import Store
from tests.app.conftest import Session

DIGITS = DatasetSpec("digits", limit=40)
TOY = '''
from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from relcore.encoders.encoder import Encoder
from relcore.base.settings import setting


@dataclass(frozen=True)
class Shades(Encoder):
    """The mean shade of each of `bands` bands of a picture."""

    direction: Literal["rows", "columns"] = setting("rows", several=True, help="Of the bands.")
    bands: int = setting(4, low=1, high=8, help="Dimension of the space.")
    power: float = 1.0
    inverted: bool = False

    kind: ClassVar = "images"

    @property
    def title(self):
        return f"Shades {self.direction} {self.bands}"

    def seconds(self, n, pixels=64):
        return 40 + n / 1000

    def prepare(self, dataset, report):
        def encode(images):
            pixels = np.stack([np.asarray(image.convert("L"), np.float32) / 255 for image in images])
            pixels = 1 - pixels if self.inverted else pixels
            parts = np.array_split(pixels**self.power, self.bands, axis=1 if self.direction == "rows" else 2)
            return {"": np.stack([part.mean(axis=(1, 2)) for part in parts], axis=1)}

        return encode
'''


@pytest.fixture
def toy(tmp_path, monkeypatch):
    """The class, in a package of its own; two lines add it: its file and its entry."""
    (tmp_path / "package" / "toys").mkdir(parents=True)
    (tmp_path / "package" / "toys" / "__init__.py").touch()
    (tmp_path / "package" / "toys" / "shades.py").write_text(TOY)
    monkeypatch.syspath_prepend(tmp_path / "package")
    monkeypatch.setitem(
        names.ENCODERS, "toy", names.Named("Shades of grey", "toys.shades:Shades", "or rows, columns")
    )
    yield encoder_class("toy")
    for name in ("toys", "toys.shades"):
        sys.modules.pop(name, None)


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    return Store()


def test_its_spaces_are_in_the_store_and_can_be_made_again(toy, store):
    encoder = toy("columns", 2)
    [space] = encode(DIGITS, encoder, store)
    pixels = np.stack([np.asarray(image, np.float32) / 255 for image in load_dataset(DIGITS).items(0, 40)])
    expected = np.stack([pixels[:, :, :4].mean(axis=(1, 2)), pixels[:, :, 4:].mean(axis=(1, 2))], axis=1)
    np.testing.assert_allclose(space.vectors, expected, atol=1e-6)
    [summary] = (one for one in store.summaries() if "encoder" in one.metadata)
    assert encoder_from_json(summary.metadata["encoder"]) == encoder
    spec = encoding_spec(DIGITS, encoder, "", summary.key, space.name)
    again = SpaceSpec.from_json(json.loads(json.dumps(spec.to_json())))
    assert (again.encoder, load(again, store).digest) == (encoder, space.digest)


def test_it_encodes_by_command_and_is_in_the_recipe_of_a_figure(toy, store, tmp_path, monkeypatch, capsys):
    from relcore.catalog.encoding import stored_encodings

    dataset = load_dataset(DIGITS)
    for direction in ("rows", "columns"):
        encode(
            DIGITS, toy(direction, 6), store
        )  # a worker process would know no toy: what is stored is found
    assert stored_encodings(store, dataset.digest, toy("rows", 6))
    arguments = [
        "encode",
        "digits",
        "--limit",
        "40",
        "--encoder",
        "rows,columns",
        "--bands",
        "6",
        "--quiet",
        "--json",
    ]
    assert main(arguments) == 0
    rows = json.loads(capsys.readouterr().out)["rows"]
    assert [row["name"] for row in rows] == ["Shades rows 6 · digits", "Shades columns 6 · digits"]
    compare = [
        "compare",
        *(row["key"] for row in rows),
        "--anchors",
        "8",
        "--recipe",
        str(tmp_path / "recipe.json"),
        "--quiet",
    ]
    assert main(compare) == 0
    recipe = (tmp_path / "recipe.json").read_text()
    assert '\\"encoder\\": \\"toy\\"' in recipe
    assert main(["figure", str(tmp_path / "recipe.json"), "-o", str(tmp_path / "figure.csv")]) == 0


def test_it_is_on_the_spaces_page_with_a_form_and_its_cost(toy, store, monkeypatch):
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    session = Session()
    session.at.session_state["data.kind"] = "Bundled"
    session.at.session_state["bundled.kind"] = "Texts, pictures and graphs"
    session.open("data")
    session.change("button_group", "encode.forms-images", ["toy"])
    assert not session.errors
    assert session.at.number_input(key="encode.toy.bands").value == 4
    session.change("number_input", "encode.toy.bands", 2)
    session.change("button_group", "encode.toy.direction", ["rows", "columns"])
    shown = " ".join(element.value for element in session.at.caption)
    assert "Shades rows 2" in shown
    assert "Shades columns 2" in shown
    session.change("button_group", "encode.toy.direction", [])
    assert session.at.button(key="encode.start").disabled
