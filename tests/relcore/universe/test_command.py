import json

import numpy as np
import pytest

from relcore import LatentSpace, Universe, load_space
from relcore.catalog.task import recipe_of
from relcore.figures.export import read_recipe
from relcore.files.saving import save_space

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    true = rng.normal(size=(200, 5))
    ids = [f"row {i}" for i in range(200)]
    for name in "abcd":
        turn, _ = np.linalg.qr(rng.normal(size=(5, 5)))
        space = LatentSpace((true + 0.1 * rng.normal(size=true.shape)) @ turn, ids)
        save_space(space, tmp_path / f"{name}.npz")


def test_fit_add_and_map(files, tmp_path, run):
    record = json.loads(run("universe a.npz b.npz c.npz -o abc.universe --recipe abc.json --json"))
    assert record["spaces"] == ["a", "b", "c"]
    assert len(record["pairs"]) == 6
    universe = Universe.load("abc.universe")
    recipe = read_recipe(tmp_path / "abc.json")
    assert [row["accuracy"] for row in record["pairs"]] == universe.table().accuracy.tolist()
    assert recipe_of(recipe).draw().table().equals(universe.table())
    moving = recipe_of(recipe | {"chart": "rows"}).draw()
    assert moving.table()["map"].unique().tolist() == ["Mean of all", "a", "b", "c"]
    assert b"Plotly.addFrames" in moving.bytes("html")
    assert "d" in run("universe add abc.universe d.npz")
    larger = Universe.load("abc.universe")
    assert larger.names == ("a", "b", "c", "d")
    run("universe map abc.universe d.npz -o common.npy")
    np.testing.assert_array_equal(np.load("common.npy"), larger.map(load_space("d.npz").vectors, "d"))
    assert load_space("common.npy").ids.tolist() == load_space("d.npz").ids.tolist()
    run("universe map abc.universe d.npz --to a -o as-a.npz")
    rows = load_space("as-a.npz")
    true = load_space("a.npz")
    assert rows.ids.tolist() == true.ids.tolist()
    assert (np.vecdot(rows.vectors, true.vectors) / rows.norms / true.norms).mean() > 0.95


def test_rows_mapped_into_npy_have_their_own_ids_beside_them(files, tmp_path, run, refuse):
    run("universe a.npz b.npz -o ab.universe")
    (tmp_path / "x.ids.txt").write_text("old\n" * 200)
    run("universe map ab.universe a.npz -o x.npy")
    assert load_space("x.npy").ids.tolist() == load_space("a.npz").ids.tolist()
    (tmp_path / "x.labels.txt").write_text("red\n" * 200)
    assert "expected no labels beside x.npy" in refuse("universe map ab.universe a.npz -o x.npy")
