"""A recipe goes to JSON and back, finds out whether the data changed, and draws the same scene again."""

import dataclasses
import json

import numpy as np
import pytest

from relcore import __version__
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load
from relcore.charts.scene import StarLook
from relcore.compare.figures import Panes, exportable
from relcore.compare.scene import ComparisonRecipe, comparison_scene, drawn_view, load_pair
from relcore.maps.pane_maps import fitting_reduction, pane_matrices, reduce_pair, reduction_note
from relcore.maps.reduction import ReductionSpec
from relcore.maps.views import ViewSpec
from relcore.scores.comparison import ProjectionSpec
from relcore.spaces.space import match
from relcore.tasks.recipe import recipe_of

A, B = SpaceSpec("bundled", "a"), SpaceSpec("bundled", "b")
BARE = {
    "figure": "comparison",
    "source": {"source": "bundled", "name": "a"},
    "target": {"source": "bundled", "name": "b"},
    "anchors": ["r0", "r1", "r2"],
}


@pytest.fixture
def pair(rng, make_space):
    vectors = rng.normal(size=(60, 5)) + 1
    return match(make_space(vectors, name="s"), make_space(3 * vectors[:, ::-1] - 2, name="t"))


@pytest.fixture
def files(pair, tmp_path):
    """Specs of the pair as files."""
    specs = []
    for space in (pair.source, pair.target):
        path = tmp_path / f"{space.name}.npz"
        np.savez(path, vectors=space.vectors, ids=space.ids.astype(str))
        specs.append(SpaceSpec("file", str(path)))
    return specs


def test_the_look_of_anchors_and_the_orientation_come_back_and_are_left_out_while_they_are_as_before():
    recipe = ComparisonRecipe(A, B, ("r0", "r1"))
    drawn = Panes.of(recipe, stars=StarLook(0.5, 0.25, shown=False), oriented=True)
    assert recipe_of(json.loads(json.dumps(drawn.to_json()))) == drawn
    assert not {"stars", "oriented"} & set(Panes.of(recipe).to_json())
    with pytest.raises(SpaceError, match=r"stars: size: expected 0\.3 to 2, got 7"):
        recipe_of(drawn.to_json() | {"stars": {"size": 7.0}})


@pytest.mark.parametrize(
    "recipe",
    [
        ComparisonRecipe(A, B, ("r0", "r1")),
        ComparisonRecipe(
            SpaceSpec("file", "here.csv", 50, (("id_column", "word"), ("invalid", "drop"))),
            B,
            ("é", "r1"),
            ProjectionSpec("l1", center=False, ridge=1.0),
            ViewSpec(("r1", "r2"), 7, everything=True, show_anchors=True),
            ReductionSpec("tsne", n_components=3, align=True, random_state=4),
            ("absolute", "whitened"),
            "abc",
            "def",
        ),
    ],
    ids=["bare", "full"],
)
def test_json_and_back_is_the_same(recipe):
    record = json.loads(json.dumps(Panes.of(recipe).to_json()))
    assert recipe_of(record) == Panes.of(recipe)
    assert (record["relscope"], record["figure"]) == (__version__, "comparison")


def test_three_settings_are_enough():
    assert recipe_of(BARE) == Panes(A, B, ("r0", "r1", "r2"))


def without(name):
    return {key: value for key, value in BARE.items() if key != name}


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            [],
            "expected a JSON object whose \"figure\" is one of .* names, such as 'comparison', .*, got None",
        ),
        (None, "expected a JSON object"),
        (BARE | {"figure": "score"}, "got 'score'"),
        (without("anchors"), "recipe of comparison: the setting 'anchors' is missing"),
        ({"figure": "comparison"}, "the setting 'source' is missing"),
        (BARE | {"colour": "red"}, "recipe of comparison: expected settings among .* got 'colour'"),
        (
            BARE | {"view": {"colour": "red"}},
            "recipe of comparison: view: expected settings among .* got 'colour'",
        ),
        (BARE | {"view": "everything"}, "recipe of comparison: view: expected an object, got 'everything'"),
        (
            BARE | {"projection": ["cosine"]},
            r"recipe of comparison: projection: expected an object, got \['cosine'\]",
        ),
        (BARE | {"source": {"source": "file", "name": "a.csv", "options": ["invalid"]}}, "options"),
        (BARE | {"anchors": None}, "recipe of comparison: anchors: expected a list, got None"),
        (BARE | {"anchors": "r0, r1"}, "recipe of comparison: anchors: expected a list, got 'r0, r1'"),
        (
            BARE | {"source": "word2vec-novels"},
            "recipe of comparison: source: expected an object, got 'word2vec-novels'",
        ),
        (
            BARE | {"source": {"source": "web", "name": "a"}},
            (
                "source: expected one of 'bundled', 'file', 'index', 'gensim-data', 'encoding', 'renamed',"
                " 'sample', got 'web'"
            ),
        ),
        (BARE | {"reduction": {"method": "mds"}}, "method: expected one of 'pca', 'umap', 'tsne', got 'mds'"),
    ],
)
def test_mangled_recipes_are_refused(record, message):
    with pytest.raises(SpaceError, match=message):
        recipe_of(record)


def test_the_pair_is_loaded_and_matched(files, pair):
    loaded = load_pair(
        ComparisonRecipe(*files, ("r0",), source_digest=pair.source.digest, target_digest=pair.target.digest)
    )
    assert loaded.source.digest == pair.source.digest
    np.testing.assert_array_equal(loaded.target.vectors, pair.target.vectors)


@pytest.fixture
def shuffled(files, pair, rng):
    """The files again, the target's rows in another order, 20 of them gone and one of its own."""
    kept = np.append(rng.permutation(60)[:40], 0)
    vectors, ids = pair.target.vectors[kept], [*pair.ids[kept[:-1]], "own"]
    np.savez(files[1].name, vectors=vectors, ids=np.array(ids, dtype=str))
    return files


def test_a_pair_that_had_to_be_matched_is_drawn_again(shuffled):
    matched = match(*map(load, shuffled))
    assert (len(matched), matched.n_source_only, matched.n_target_only) == (40, 20, 1)
    digests = {"source_digest": matched.source.digest, "target_digest": matched.target.digest}
    recipe = ComparisonRecipe(
        *shuffled, tuple(matched.ids[:4]), view=ViewSpec(tuple(matched.ids[:1]), 9), **digests
    )
    figure = Panes.of(recipe).draw(comparison_scene(recipe, matched))
    assert exportable(json.loads(figure.bytes("json", full_paths=True))).table().equals(figure.table())


def test_rows_that_only_one_space_has_may_change(shuffled, pair):
    recipe = ComparisonRecipe(*shuffled, ("r0",), source_digest=match(*map(load, shuffled)).source.digest)
    ids = load(shuffled[1]).ids
    alone = ~np.isin(pair.ids, ids)
    np.savez(shuffled[0].name, vectors=pair.source.vectors + alone[:, None], ids=pair.ids.astype(str))
    assert len(load_pair(recipe)) == 40


@pytest.mark.parametrize("side", ["source", "target"])
def test_data_that_has_changed_is_noticed(files, side):
    recipe = ComparisonRecipe(*files, ("r0",), **{f"{side}_digest": "0123456789abcdef"})
    with pytest.raises(SpaceError, match=f"'{side[0]}' has changed: expected content 01234567…, got"):
        load_pair(recipe)


def test_a_scene_has_two_panes_a_representation_and_is_the_same_again(pair, files):
    recipe = ComparisonRecipe(
        *files, ("r30", "r1", "r50"), view=ViewSpec(("r1", "r2"), 9), reduction=ReductionSpec(fit="first")
    )
    scene, again = comparison_scene(recipe, pair), comparison_scene(recipe)
    assert [pane.title for pane in scene.panes] == [
        "s · absolute",
        "t · absolute",
        "s · relative",
        "t · relative",
    ]
    assert scene.category_names == ("r1", "r2")
    assert scene.table().equals(again.table())
    for source, target in (scene.panes[:2], scene.panes[2:]):
        assert source.coordinates.shape == target.coordinates.shape == (len(scene), 2)
    # The target is the source with its axes turned, scaled and shifted: the relative pictures coincide, the
    # absolute do not.
    np.testing.assert_allclose(scene.panes[2].coordinates, scene.panes[3].coordinates, atol=1e-4)
    assert np.abs(scene.panes[0].coordinates - scene.panes[1].coordinates).max() > 1
    assert f"{len(scene)} of the 60 rows of s and t" in scene.caption
    assert "absolute: PCA, fitted on the first space" in scene.caption
    assert "3 anchors" in scene.caption


def test_anchors_point_at_their_rows_in_their_order(pair):
    recipe = ComparisonRecipe(A, B, ("r30", "r1", "r50"), view=ViewSpec(("r2",), 5, show_anchors=True))
    scene = comparison_scene(recipe, pair)
    assert scene.ids[scene.anchors].tolist() == ["r30", "r1", "r50"]


def test_anchors_that_are_not_drawn_have_no_star(pair):
    nearest = comparison_scene(ComparisonRecipe(A, B, ("r0", "r1"), view=ViewSpec(("r2",), 4)), pair).ids
    absent = [identifier for identifier in pair.ids if identifier not in set(nearest)]
    scene = comparison_scene(
        ComparisonRecipe(A, B, (absent[0], "r2", absent[-1]), view=ViewSpec(("r2",), 4)), pair
    )
    assert scene.ids.tolist() == nearest.tolist()
    assert scene.ids[scene.anchors].tolist() == ["r2"]


def test_matrices_are_the_drawn_rows_of_what_was_fitted_on_all(pair):
    rows = np.array([4, 9, 11])
    whole = pane_matrices(pair, np.arange(60), ("r0", "r1"), ProjectionSpec(), "relative")
    part = pane_matrices(pair, rows, ("r0", "r1"), ProjectionSpec(), "relative")
    for some, every in zip(part, whole, strict=True):
        np.testing.assert_array_equal(some, every[rows])


def test_only_t_sne_draws_a_sample(pair):
    spec = ReductionSpec("tsne", max_points=10)
    assert len(drawn_view(pair.source, ViewSpec((), everything=True), (), spec).rows) == 10
    assert (
        len(
            drawn_view(
                pair.source, ViewSpec((), everything=True), (), dataclasses.replace(spec, method="pca")
            ).rows
        )
        == 60
    )


def test_spaces_of_different_widths_are_fitted_apart(rng):
    narrow, wide = rng.normal(size=(20, 3)), rng.normal(size=(20, 5))
    first = ReductionSpec(fit="first")
    assert fitting_reduction([3, 5], first).fit == "apart"
    assert fitting_reduction([5, 5], first) == first
    pictures, note = reduce_pair([narrow, wide], first)
    assert [picture.shape for picture in pictures] == [(20, 2), (20, 2)]
    assert note == "PCA, each space fitted apart"


def test_the_note_tells_method_fit_and_alignment():
    assert (
        reduction_note(ReductionSpec("umap", align=True))
        == "UMAP, each space fitted apart, aligned by Procrustes"
    )
