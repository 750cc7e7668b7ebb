import json

import pytest

from relcore.base.records import without_paths
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.compare.pictures import Panes, Scores
from relcore.compare.scene import comparison_scene
from relcore.figures.style import Style
from relcore.maps.pane_maps import ViewSpec
from relcore.maps.principal_axes import ReductionSpec
from relcore.represent.representations import REPRESENTATIONS
from relcore.scores.comparison import score_representations
from relcore.spaces.matching import match

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.fixture
def specs(tmp_path, files):
    return tuple(SpaceSpec("file", str(tmp_path / name)) for name in files)


@pytest.fixture
def recipe(specs):
    pair = match(*map(load, specs))
    view = ViewSpec(pivots=("w3", "w4"), n_nearest=20, show_anchors=True)
    anchors = ("w9", "w1", "w30", "w40", "w77")
    digests = {"source_digest": pair.source.digest, "target_digest": pair.target.digest}
    return ComparisonRecipe(*specs, anchors, view=view, reduction=ReductionSpec(fit="first"), **digests)


@pytest.fixture
def original(recipe, specs):

    def make(kind):
        pair = load_pair(recipe)
        if kind == "comparison":
            return Panes.of(recipe).draw(comparison_scene(recipe, pair))
        scores = score_representations(
            pair, REPRESENTATIONS, recipe.anchors, recipe.projection, k=5, n_queries=60
        )
        return Scores.of(recipe, k=5, n_queries=60).draw(scores)

    return make


@pytest.mark.parametrize("kind", ["comparison", "scores"])
def test_the_figure_drawn_again_tells_no_folder(original, tmp_path, run, kind):
    figure = original(kind)
    (tmp_path / "recipe.json").write_bytes(figure.bytes("json"))
    assert run("figure recipe.json -o numbers.csv") == "numbers.csv\n"
    assert (tmp_path / "numbers.csv").read_bytes() == figure.bytes("csv")
    for suffix in ("html", "pdf", "svg", "png", "csv", "json", *(["tex"] if figure.latex else [])):
        assert str(tmp_path.parent).encode() not in figure.bytes(suffix, Style(dpi=72)), suffix
    assert str(tmp_path) in figure.bytes("json", full_paths=True).decode()


@pytest.mark.parametrize("carrier", ["png", "html"])
def test_any_exported_file_carries_its_recipe(original, tmp_path, run, carrier):
    figure = original("scores")
    name = f"figure.{carrier}"
    (tmp_path / name).write_bytes(figure.bytes(carrier, Style(dpi=72), full_paths=True))
    run("figure", name, "-o again.json --full-paths")
    assert json.loads((tmp_path / "again.json").read_text()) == figure.recipe
    run("figure", name, "-o names.json")
    assert json.loads((tmp_path / "names.json").read_text()) == without_paths(figure.recipe) != figure.recipe


def test_a_recipe_finds_its_files_in_another_folder(original, tmp_path, monkeypatch, run, refuse):
    figure = original("comparison")
    elsewhere = tmp_path / "elsewhere"
    data = tmp_path / "elsewhere" / "data" / "vectors"
    data.mkdir(parents=True)
    (elsewhere / "recipe.json").write_bytes(figure.bytes("json"))
    (tmp_path / "first.npz").rename(data / "first.npz")
    (tmp_path / "second.npz").rename(elsewhere / "second.npz")
    monkeypatch.chdir(elsewhere)
    assert "'first.npz', which exists neither" in refuse("figure recipe.json -o again.csv")
    for options in ("--data data", f"--file first.npz={data / 'first.npz'}"):
        run("figure recipe.json -o again.csv", options)
        assert (elsewhere / "again.csv").read_bytes() == figure.bytes("csv")
    monkeypatch.setenv("RELSCOPE_DATA", str(elsewhere))
    run("figure recipe.json -o again.json")
    assert (elsewhere / "again.json").read_bytes() == figure.bytes("json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figure": "score"}, "'scores'"),
        ({"figure": "scores", "k": "ten"}, "recipe of scores: k: expected a whole number, got 'ten'"),
        ({"anchors": ["w0", "w150"]}, "expected ids of 'first', got 1 unknown: 'w150'"),
        ({"source_digest": "0" * 32}, "'first' has changed"),
    ],
)
def test_a_wrong_recipe_writes_nothing(recipe, tmp_path, refuse, change, message):
    (tmp_path / "recipe.json").write_text(json.dumps(Panes.of(recipe).to_json() | change))
    assert message in refuse("figure recipe.json -o out.csv")
    assert not (tmp_path / "out.csv").exists()
