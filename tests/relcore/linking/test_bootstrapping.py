"""The experiment, the figures from their recipes, and renamed spaces."""

import json
from dataclasses import replace

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load, load_encoding, put_pairing, put_space, renamed_spec
from relcore.compare.scene import exportable
from relcore.compare.scoring import PairAudit
from relcore.linking.link import (
    BootstrapRounds,
    BootstrapScores,
    BootstrapSpec,
    held_out_split,
    relative_scores,
)
from relcore.represent.translation import ProjectionSpec, represent
from relcore.runs.entries import digest_of
from relcore.runs.store import Context, Store
from relcore.scores.comparison import score_pair
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

SPEC = BootstrapSpec(n_anchors=60)
KEY = digest_of("a job")


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.gamma(1.0, size=(200, 12)) + rng.normal(size=(4, 12))[rng.integers(4, size=200)]
    turn, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    specs = []
    for name, vectors in (("first", X), ("second", X @ turn + 0.3 * rng.normal(size=X.shape))):
        np.savez(
            tmp_path / f"{name}.npz",
            vectors=vectors.astype(np.float32),
            ids=[f"r{row}" for row in range(200)],
        )
        specs.append(SpaceSpec("file", str(tmp_path / f"{name}.npz")))
    return specs


@pytest.fixture
def spaces(files):
    return [load(spec) for spec in files]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    return Store()


def recipe_of(files, spaces):
    digests = tuple(space.digest for space in spaces)
    return {"source": files[0], "target": files[1], "digests": digests, "bootstrap": SPEC}


def test_the_hidden_are_found_and_scored_beside_truth_and_seeds(spaces):
    outcome = SPEC.run(spaces)
    assert outcome.known
    assert outcome.share > 0.95
    assert list(outcome.scores) == ["ground truth", "seeds", "found"]
    assert abs(outcome.scores["found"]["mrr"] - outcome.scores["ground truth"]["mrr"]) < 0.03
    assert outcome.scores["seeds"]["jaccard"].k == 10
    assert outcome.scores["seeds"]["jaccard"].null is not None
    n_hidden = len(outcome.result.anchors) - outcome.result.n_seeds
    assert len(outcome.wrong()) == round((1 - outcome.share) * n_hidden)


def test_ground_truth_is_what_compare_says_of_the_same_rows(spaces):
    outcome = SPEC.run(spaces)
    anchors = [one for one, _ in outcome.result.anchors]
    pair = represent(match(*spaces), "relative", anchors, ProjectionSpec())
    split = held_out_split(*spaces, outcome.result)
    for metric in ("jaccard", "mrr"):
        expected = float(score_pair(*pair, split)[metric])
        assert float(outcome.scores["ground truth"][metric]) == pytest.approx(expected, abs=1e-9)


def test_scores_look_at_held_out_rows_alone(spaces):
    """Other vectors for the anchors' own rows, found ones among them, change no score: they are never
    looked up.
    """
    outcome = SPEC.run(spaces)
    used = {identifier for pair in outcome.result.anchors for identifier in pair}
    assert outcome.scores["found"]["mrr"].n == 200 - len(used)
    split = held_out_split(*spaces, outcome.result)
    assert not used & set(split.ids[split.test])
    everything = tuple((one, one) for one in spaces[0].ids)
    assert relative_scores(*spaces, replace(outcome.result, anchors=everything)) == {}


def test_an_outcome_comes_back_from_the_store(store, spaces):
    outcome = SPEC.run(spaces)
    SPEC.finish(Context(KEY, store), spaces)
    back = SPEC.read(store.get(KEY))
    assert (back.result.anchors, back.result.pairs, back.result.null) == (
        outcome.result.anchors,
        outcome.result.pairs,
        outcome.result.null,
    )
    assert (back.share, back.wrong()) == (outcome.share, outcome.wrong())
    assert {form: dict(by) for form, by in back.scores.items()} == {
        form: dict(by) for form, by in outcome.scores.items()
    }


@pytest.mark.parametrize(
    ("figure", "kind"), [(BootstrapRounds, "bootstrap"), (BootstrapScores, "bootstrap-scores")]
)
def test_recipes_draw_the_same_numbers_again(store, files, spaces, figure, kind):
    drawn = figure(**recipe_of(files, spaces)).draw(SPEC.run(spaces))
    recipe = json.loads(drawn.bytes("json", full_paths=True))
    assert recipe["figure"] == kind
    assert exportable(recipe).bytes("csv") == drawn.bytes("csv")
    assert b"bootstrap" in drawn.bytes("html") or kind in drawn.name
    del recipe["bootstrap"]["learning_rate"]  # a recipe of before it was a setting
    assert exportable(recipe).bytes("csv") == drawn.bytes("csv")
    recipe["bootstrap"]["speed"] = 1
    with pytest.raises(
        SpaceError, match=r"recipe of bootstrap.*: bootstrap: expected settings among .*, got 'speed'"
    ):
        exportable(recipe)


def test_real_use_has_no_truth(spaces, files):
    source, target = spaces
    stranger = LatentSpace(target.vectors, [f"q{row}" for row in range(200)])
    seeds = tuple((f"r{row}", f"q{row}") for row in range(6))
    outcome = BootstrapSpec(n_anchors=60, pairs=seeds, hide=False).run((source, stranger))
    assert not outcome.known
    assert outcome.scores == {}
    assert outcome.wrong() == ()
    assert np.mean([one[1:] == other[1:] for one, other in outcome.result.pairs]) > 0.95
    with pytest.raises(SpaceError, match="expected an experiment with the pairing hidden"):
        BootstrapScores(**recipe_of(files, spaces)).draw(outcome)
    with pytest.raises(SpaceError, match="expected 60 rows or more that are in both spaces, got 0; ask for"):
        SPEC.run((source, stranger))


def test_seeds_beyond_the_chosen_rows_take_part(spaces):
    seeds = tuple((f"r{row}", f"r{row}") for row in range(185, 200))
    outcome = BootstrapSpec(n_anchors=60, rows=100, pairs=seeds).run(spaces)
    assert (outcome.n_shared, outcome.result.anchors[:15]) == (115, seeds)


def test_renamed_spaces_are_read_from_base_and_pairing(store, files, spaces):
    key = put_pairing(store, [("x", "r5"), ("y", "r3")])
    spec = renamed_spec(files[1], key, "second · paired")
    assert SpaceSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
    renamed = load(spec)
    assert list(renamed.ids) == ["x", "y"]
    np.testing.assert_array_equal(renamed.vectors, spaces[1].vectors[[5, 3]])
    store.remove(key)
    with pytest.raises(
        SpaceError, match=r"expected the links .*, got none: recipes and scripts do not contain links\. Run"
    ):
        load(spec)


def test_of_guessed_pairs_the_confirmed_ones_alone_are_scored(store, files, spaces):
    pairs = [(f"r{row}", f"r{row}") for row in range(100)]
    unchecked, some = (
        match(spaces[0], load(renamed_spec(files[1], put_pairing(store, pairs, ids), "guessed")))
        for ids in ((), [f"r{row}" for row in range(20, 60)])
    )
    alone = len(spaces[0]) - 100
    assert (some.n_source_only, some.n_target_only) == (alone, alone), "rows without a link, on both sides"
    anchors = [f"r{row}" for row in range(30)]
    split = Split.held_out(some.ids, some.source.rows(anchors))
    assert set(split.ids[split.test]) == {f"r{row}" for row in range(30, 60)}
    drawn = Split.draw(some.ids, test_fraction=0.5)
    assert {int(one[1:]) for one in drawn.ids[drawn.test]} < set(range(20, 60))
    assert unchecked.source.digest != some.source.digest
    kept = load_encoding(store, put_space(store, some.source))  # as a job reads it
    assert (kept.digest, kept.ids.marks) == (some.source.digest, some.ids.marks)
    for split in (Split.held_out, Split.draw):
        with pytest.raises(SpaceError, match="expected known pairs to score, got links that are guesses"):
            split(unchecked.ids, anchors=unchecked.source.rows(anchors))
    audit = PairAudit(tuple(anchors))
    assert audit.run((unchecked.source, unchecked.target)).scores == {}
    assert audit.run((some.source, some.target)).scores["all anchors"]["mrr"].n == 30


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"n_anchors": 0}, "n_anchors: expected a whole number from 1, got 0"),
        ({"method": "magic"}, "method: expected one of self-learning, paper"),
    ],
)
def test_specs_that_are_none(settings, message):
    with pytest.raises(SpaceError, match=message):
        records.from_json(BootstrapSpec, settings)
