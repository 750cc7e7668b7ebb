"""universe on the command line: a file, a space added to it, rows mapped and translated."""

import json

import numpy as np
import pytest

from relcore import LatentSpace, Universe, load_space
from relcore.catalog.task import recipe_of
from relcore.cli import main
from relcore.figures.export import read_recipe
from relcore.files.reading import write_space


@pytest.fixture
def files(tmp_path):
    """Paths of four rotated copies of one space with noise."""
    rng, paths = np.random.default_rng(0), []
    true, ids = rng.normal(size=(200, 5)), [f"row {i}" for i in range(200)]
    for name in "abcd":
        turn, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        paths.append(tmp_path / f"{name}.npz")
        write_space(LatentSpace((true + 0.1 * rng.normal(size=true.shape)) @ turn, ids), paths[-1])
    return paths


def test_fit_add_and_map(files, tmp_path, capsys):
    *three, last = map(str, files)
    made = str(tmp_path / "abc.universe")
    recipe = tmp_path / "abc.json"
    assert main(["universe", *three, "-o", made, "--recipe", str(recipe), "--json"]) == 0
    record = json.loads(capsys.readouterr().out)
    assert record["spaces"] == ["a", "b", "c"]
    assert len(record["pairs"]) == 6
    universe = Universe.load(made)
    assert [row["accuracy"] for row in record["pairs"]] == universe.table().accuracy.tolist()
    drawn = recipe_of(read_recipe(recipe)).draw()
    assert drawn.table().equals(universe.table())
    moving = recipe_of(read_recipe(recipe) | {"chart": "rows"}).draw()
    assert moving.table()["map"].unique().tolist() == ["Mean of all", "a", "b", "c"]
    assert b"Plotly.addFrames" in moving.bytes("html")

    assert main(["universe", "add", made, last]) == 0
    assert "d" in capsys.readouterr().out
    larger = Universe.load(made)
    assert larger.names == ("a", "b", "c", "d")
    np.testing.assert_array_equal(larger.members[0].matrix, universe.members[0].matrix)

    common, translated = tmp_path / "common.npy", tmp_path / "as-a.npz"
    assert main(["universe", "map", made, last, "-o", str(common)]) == 0
    assert main(["universe", "map", made, last, "--to", "a", "-o", str(translated)]) == 0
    np.testing.assert_array_equal(np.load(common), larger.map(load_space(last).vectors, "d"))
    rows, true = load_space(translated), load_space(three[0])
    assert rows.ids.tolist() == true.ids.tolist()
    cosine = np.vecdot(rows.vectors, true.vectors) / rows.norms / true.norms
    assert cosine.mean() > 0.95
