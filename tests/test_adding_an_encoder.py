"""A toy encoder, registered in `relcore.base.names` alone, is on the page, on the command line, in the
store and in recipes.
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace

import numpy as np
import pytest

from relcore.base import names
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, encoding_spec, load
from relcore.catalog.encoding import encode
from relcore.cli import main
from relcore.commands.encode import encoders_of
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_class, encoder_from_json, encoder_to_json
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


def test_its_settings_are_checked_and_go_to_json_and_back(toy):
    encoder = toy("columns", 2)
    record = encoder_to_json(encoder)
    assert record == {"encoder": "toy", "direction": "columns", "bands": 2, "power": 1.0, "inverted": False}
    assert encoder_from_json(json.loads(json.dumps(record))) == encoder
    assert (
        encoder_from_json(record | {"encoder": "toys.shades:Shades"}) == encoder
    )  # as a worker writes it that knows no toy
    for wrong, message in (
        ({"bands": 9}, "bands: expected a whole number from 1 to 8, got 9"),
        ({"direction": "diagonals"}, "direction: expected one of rows, columns, got 'diagonals'"),
        ({"inverted": "no"}, "inverted: expected true or false"),
        ({"width": 3}, "toy: expected settings among 'direction'"),
    ):
        with pytest.raises(SpaceError, match=message):
            encoder_from_json(record | wrong)


def test_it_is_on_the_command_line_with_its_settings_as_options(toy):
    dataset = load_dataset(DIGITS)
    assert encoders_of(Namespace(encoder=["toy"]), dataset) == [toy()]
    assert encoders_of(Namespace(encoder=["columns,toy:rows"], bands="2", power="0.5"), dataset) == [
        toy("columns", 2, 0.5),
        toy("rows", 2, 0.5),
    ]
    assert encoders_of(Namespace(encoder=["toy"], inverted="true"), dataset) == [toy(inverted=True)]
    with pytest.raises(SpaceError, match="--bands: expected a whole number from 1 to 8, got 'two'"):
        encoders_of(Namespace(encoder=["toy"], bands="two"), dataset)


def test_its_help_tells_its_name_and_with_it_its_settings(toy, capsys):
    for arguments, told in (
        ([], "toy (or rows, columns)"),
        (["--encoder", "toy"], "toy: Dimension of the space; default: 4"),
    ):
        with pytest.raises(SystemExit):
            main(["encode", *arguments, "--help"])
        assert told in " ".join(capsys.readouterr().out.split())


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
    session.at.session_state["spaces.tab"] = "Encode"
    session.open("spaces")
    session.change("button_group", "encode.forms-images", ["toy"])
    assert not session.errors
    shown = " ".join(element.value for kind in (session.at.markdown, session.at.caption) for element in kind)
    assert "**Shades of grey**" in shown
    assert "- Shades rows 4: about 42 s" in shown
    assert session.at.number_input(key="encode.toy.bands").value == 4
    assert session.at.number_input(key="encode.toy.power").value == 1.0
    session.change("number_input", "encode.toy.bands", 2)
    session.change("button_group", "encode.toy.direction", ["rows", "columns"])
    session.change("toggle", "encode.toy.inverted", True)
    shown = " ".join(element.value for element in session.at.caption)
    assert "- Shades rows 2: about 42 s" in shown
    assert "- Shades columns 2: about 42 s" in shown
    session.change("button_group", "encode.toy.direction", [])
    assert session.at.button(key="encode.start").disabled
