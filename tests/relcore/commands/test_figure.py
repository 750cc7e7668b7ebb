"""figure: a figure comes back from its recipe with the same numbers, whatever file carries it."""

import json

import pytest

from relcore.base.records import without_paths
from relcore.catalog.catalog import SpaceSpec, load
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.cli import main
from relcore.compare.scene import Panes, Scores, comparison_scene
from relcore.figures.style import Style
from relcore.maps.pane_maps import ViewSpec
from relcore.maps.reduction import ReductionSpec
from relcore.represent.translation import REPRESENTATIONS
from relcore.scores.comparison import score_forms
from relcore.spaces.space import match

KINDS = ("comparison", "scores")


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
    """The figure as the app makes it: from results that it has already, with the recipe beside them."""

    def make(kind):
        pair = load_pair(recipe)
        if kind == "comparison":
            return Panes.of(recipe).draw(comparison_scene(recipe, pair))
        scores = score_forms(pair, REPRESENTATIONS, recipe.anchors, recipe.projection, k=5, n_queries=60)
        return Scores.of(recipe, k=5, n_queries=60).draw(scores)

    return make


@pytest.mark.parametrize("kind", KINDS)
def test_the_figure_drawn_again_holds_the_same_numbers(original, tmp_path, capsys, kind):
    figure = original(kind)
    recipe, numbers = tmp_path / "recipe.json", tmp_path / "numbers.csv"
    recipe.write_bytes(figure.bytes("json"))
    assert main(["figure", str(recipe), "-o", str(numbers)]) == 0
    assert numbers.read_bytes() == figure.bytes("csv")
    assert capsys.readouterr().out == f"{numbers}\n"


@pytest.mark.parametrize("carrier", ["png", "html"])
def test_any_exported_file_carries_its_recipe(original, tmp_path, carrier):
    figure = original("scores")
    path = tmp_path / f"figure.{carrier}"
    path.write_bytes(figure.bytes(carrier, Style(dpi=72), full_paths=True))
    assert main(["figure", str(path), "-o", str(tmp_path / "again.json"), "--full-paths"]) == 0
    assert json.loads((tmp_path / "again.json").read_text()) == figure.recipe
    assert main(["figure", str(path), "-o", str(tmp_path / "names.json")]) == 0
    assert json.loads((tmp_path / "names.json").read_text()) == without_paths(figure.recipe) != figure.recipe


@pytest.mark.parametrize("kind", KINDS)
def test_no_file_tells_where_the_data_are(original, tmp_path, kind):
    figure = original(kind)
    for suffix in ("html", "pdf", "svg", "png", "csv", "json", *(["tex"] if figure.latex else [])):
        assert str(tmp_path.parent).encode() not in figure.bytes(suffix, Style(dpi=72)), suffix
    assert str(tmp_path) in figure.bytes("json", full_paths=True).decode()


def test_a_recipe_finds_its_files_by_name_in_another_folder(original, tmp_path, monkeypatch, capsys):
    figure = original("comparison")
    elsewhere, data = tmp_path / "elsewhere", tmp_path / "elsewhere" / "data" / "vectors"
    data.mkdir(parents=True)
    (elsewhere / "recipe.json").write_bytes(figure.bytes("json"))
    (tmp_path / "first.npz").rename(data / "first.npz")
    (tmp_path / "second.npz").rename(elsewhere / "second.npz")
    monkeypatch.chdir(elsewhere)
    assert main(["figure", "recipe.json", "-o", "again.csv"]) == 2
    assert "'first.npz', which exists neither by this path nor in the folders" in capsys.readouterr().err
    for options in (["--data", "data"], ["--file", f"first.npz={data / 'first.npz'}"]):
        assert main(["figure", "recipe.json", "-o", "again.csv", *options]) == 0
        assert (elsewhere / "again.csv").read_bytes() == figure.bytes("csv")
    monkeypatch.setenv("RELSCOPE_DATA", str(elsewhere))
    assert main(["figure", "recipe.json", "-o", "again.json"]) == 0
    assert (elsewhere / "again.json").read_bytes() == figure.bytes("json")


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"figure": "score"}, "'scores'"),
        ({"figure": "scores", "k": "ten"}, "recipe of scores: k: expected a whole number, got 'ten'"),
        ({"anchors": ["w0", "w150"]}, "expected ids of 'first', got 1 unknown: 'w150'"),
        ({"source_digest": "0" * 32}, "'first' has changed"),
        ({"source": {"source": "file", "name": "gone.npz"}}, "'gone.npz', which exists neither"),
    ],
)
def test_a_wrong_recipe_is_one_line_and_code_2(recipe, tmp_path, capsys, change, message):
    path = tmp_path / "recipe.json"
    path.write_text(json.dumps(Panes.of(recipe).to_json() | change))
    assert main(["figure", str(path), "-o", str(tmp_path / "out.csv")]) == 2
    out, err = capsys.readouterr()
    assert message in err
    assert (out, err.count("\n")) == ("", 1)
    assert not (tmp_path / "out.csv").exists()
