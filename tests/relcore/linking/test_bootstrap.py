"""Anchors are found in rotated spaces and not in unrelated ones; guessed pairs are never scored."""

import json
from contextlib import suppress
from dataclasses import replace

import numpy as np
import pytest

from relcore.audit.anchor_audit import PairAudit
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec, load, renamed_spec
from relcore.catalog.encodings import load_encoding, put_space
from relcore.catalog.renamed import put_pairing
from relcore.compare.all_pairs import AllPairs
from relcore.compare.reports import ExactScores
from relcore.drift.check import DriftCheck
from relcore.encoders.words import load_words
from relcore.explain.explanation import Explain
from relcore.files.links import read_links, write_links
from relcore.invert.inversion import InversionSpec, invert_pair
from relcore.linking.bootstrap import bootstrap_anchors, share_found
from relcore.linking.link import BootstrapSpec, held_out_split, relative_scores
from relcore.linking.links_found import links_table
from relcore.linking.pictures import BootstrapScores
from relcore.migrate.pairing import parts_of
from relcore.represent.representations import ProjectionSpec
from relcore.runs.store import Store
from relcore.spaces.ids import GuessedIds, mark_unscored
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.stitching import StitchSpec, stitch_matrix
from relcore.stitch.try_it import RetrievalSpec, retrieve

N = 500
SEEDS = [(f"s{row}", f"t{row}") for row in range(15)]
TRUTH = {f"s{row}": f"t{row}" for row in range(N)}


def rotated(noise=0.1, wider=0):
    """A clustered space, and a rotated, scaled, shifted and noisy copy in another order."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(8, 24))[rng.integers(8, size=N)] + rng.gamma(1.0, size=(N, 24))
    turn, _ = np.linalg.qr(rng.normal(size=(24 + wider, 24 + wider)))
    Y = 3 * X @ turn[:24] + 7 + noise * rng.normal(size=(N, 24 + wider))
    order = rng.permutation(N)
    source = LatentSpace(X, [f"s{row}" for row in range(N)], name="first")
    return source, LatentSpace(Y[order], [f"t{row}" for row in order], name="second")


def test_a_noisy_rotation_is_found_whole():
    found = bootstrap_anchors(*rotated(wider=9), seeds=SEEDS, n_anchors=100, truth=TRUTH)
    assert found.verdict == "linked", found.reason
    assert found.anchors[:15] == tuple(SEEDS)
    assert len(found.anchors) == len(set(found.anchors)) == 100
    assert share_found(found, TRUTH) == 1
    assert np.mean([TRUTH[one] == other for one, other in found.pairs]) > 0.99
    assert len(found.pairs) > 0.95 * N


def test_file_of_all_links_names_those_not_kept_and_no_guess_is_certain(tmp_path):
    """Before, the file held 126 of 847 links, and two wrong ones had a precision of 1."""
    found = bootstrap_anchors(*rotated(noise=3.2), seeds=SEEDS, n_anchors=100)
    right = np.array([TRUTH[own] == other for own, other in found.pairs])
    for tenth in np.array_split(np.arange(15, len(right)), 10):
        assert found.nearby[tenth].mean() == pytest.approx(right[tenth].mean(), abs=0.2)
    assert found.nearby[-1] < 0.9 < found.nearby[15]
    every = links_table(found, every=True)
    kept = links_table(found)
    assert 15 < len(kept) == len(found.kept) < len(every) == len(found.pairs)
    assert every[: len(kept)].equals(kept)
    assert set(every.kind[len(kept) :]) == {"not kept"}
    assert ((every.precision == 1) == (every.kind == "seed")).all()
    for suffix in ("csv", "tsv", "parquet", "jsonl"):
        write_links(tmp_path / f"links.{suffix}", every)
        assert dict(zip(*read_links(tmp_path / f"links.{suffix}"), strict=True)).keys() == set(found.kept)


def test_without_seeds():
    found = bootstrap_anchors(*rotated(), n_anchors=50, truth=TRUTH)
    assert found.verdict == "linked", found.reason
    assert found.n_seeds == 0
    assert share_found(found, TRUTH) == 1


def test_rounds_count_the_rows_of_the_smaller_space():
    source, target = rotated()
    spaces = source, target.take(np.arange(400))
    for first, second in (spaces, spaces[::-1]):
        last = bootstrap_anchors(first, second, n_anchors=50).history[-1]
        assert last.pairs <= last.rows == 400


@pytest.mark.parametrize(("side", "seeds", "method"), [(0, SEEDS, "paper"), (1, [], "self-learning")])
def test_equal_rows_are_refused(side, seeds, method):
    spaces = list(rotated())
    rows = np.full_like(spaces[side].vectors, 0.1)
    spaces[side] = LatentSpace(rows, spaces[side].ids, name=spaces[side].name)
    with pytest.raises(
        SpaceError, match=f"{spaces[side].name}: expected rows that differ, got 500 equal ones"
    ):
        bootstrap_anchors(*spaces, seeds=seeds, method=method)


@pytest.mark.parametrize(("n", "n_seeds", "enough"), [(22, 15, False), (23, 15, True), (500, 495, False)])
def test_where_nearly_all_rows_are_seeds_it_cannot_be_told(n, n_seeds, enough):
    rng = np.random.default_rng(0)
    spaces = [LatentSpace(rng.normal(size=(n, 6)), [f"{side}{row}" for row in range(n)]) for side in "st"]
    found = bootstrap_anchors(*spaces, seeds=[(f"s{row}", f"t{row}") for row in range(n_seeds)], n_anchors=n)
    assert found.verdict != "linked"
    assert (f"8 are needed beside the known pairs, but there are {n - n_seeds}" in found.reason) is not enough


def test_real_words():
    """2,000 frequent words, 15 random seeds, 285 hidden."""
    source, target = (load_words(name, limit=2000) for name in ("word2vec-novels", "fasttext-novels"))
    rng = np.random.default_rng(0)
    ids = rng.permutation(source.ids)[:300]
    truth = dict(zip(source.ids, source.ids, strict=True))
    shuffled = target.take(rng.permutation(2000))
    found = bootstrap_anchors(source, shuffled, seeds=[(i, i) for i in ids[:15]], anchors=ids, truth=truth)
    assert found.verdict == "linked"
    assert share_found(found, truth) >= 0.99


SPEC = BootstrapSpec(n_anchors=60)
IDS = [f"r{row}" for row in range(200)]


def skewed(rng):
    """Rows (200, 12) in four clusters, skewed along each axis."""
    return rng.gamma(1.0, size=(200, 12)) + rng.normal(size=(4, 12))[rng.integers(4, size=200)]


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(0)
    specs = []
    X = skewed(rng)
    turn, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    for name, vectors in (("first", X), ("second", X @ turn + 0.3 * rng.normal(size=X.shape))):
        np.savez(tmp_path / f"{name}.npz", vectors=vectors.astype(np.float32), ids=IDS)
        specs.append(SpaceSpec("file", str(tmp_path / f"{name}.npz")))
    return specs


@pytest.fixture
def spaces(files):
    return [load(spec) for spec in files]


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    return Store()


def test_hidden_are_found_and_scored_beside_truth_and_seeds_on_held_out_rows_alone(spaces):
    outcome = SPEC.run(spaces)
    assert outcome.known
    assert outcome.share > 0.95
    assert list(outcome.scores) == ["ground truth", "seeds", "found"]
    assert abs(outcome.scores["found"]["mrr"] - outcome.scores["ground truth"]["mrr"]) < 0.03
    assert outcome.scores["seeds"]["jaccard"].k == 10
    assert outcome.scores["seeds"]["jaccard"].null is not None
    assert len(outcome.wrong()) == round((1 - outcome.share) * outcome.n_hidden)
    used = {identifier for pair in outcome.result.anchors for identifier in pair}
    assert outcome.scores["found"]["mrr"].n == 200 - len(used)
    split = held_out_split(*spaces, outcome.result)
    assert not used & set(split.ids[split.test])
    everything = tuple((one, one) for one in IDS)
    assert relative_scores(*spaces, replace(outcome.result, anchors=everything)) == {}


def test_real_use_has_no_truth(spaces, files):
    source, target = spaces
    stranger = LatentSpace(target.vectors, [f"q{row}" for row in range(200)])
    seeds = tuple((f"r{row}", f"q{row}") for row in range(6))
    outcome = BootstrapSpec(n_anchors=60, pairs=seeds, hide=False).run((source, stranger))
    assert (outcome.known, outcome.scores, outcome.wrong()) == (False, {}, ())
    assert np.mean([one[1:] == other[1:] for one, other in outcome.result.pairs]) > 0.95
    with pytest.raises(SpaceError, match="expected an experiment with the pairing hidden"):
        BootstrapScores(source=files[0], target=files[1], bootstrap=SPEC).draw(outcome)
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


def test_of_guessed_pairs_confirmed_ones_alone_are_scored(store, files, spaces):
    pairs = [(one, one) for one in IDS[:100]]
    unchecked, some = (
        match(spaces[0], load(renamed_spec(files[1], put_pairing(store, pairs, ids), "guessed")))
        for ids in ((), IDS[20:60])
    )
    assert (some.n_source_only, some.n_target_only) == (100, 100), "rows without a link, on both sides"
    anchors = IDS[:30]
    split = Split.held_out(some.ids, some.source.rows(anchors))
    assert set(split.ids[split.test]) == set(IDS[30:60])
    drawn = Split.draw(some.ids, test_fraction=0.5)
    assert set(drawn.ids[drawn.test]) < set(IDS[20:60])
    assert unchecked.source.digest != some.source.digest
    kept = load_encoding(store, put_space(store, some.source))  # as a job reads it
    assert (kept.digest, kept.ids.marks) == (some.source.digest, some.ids.marks)
    for split in (Split.held_out, Split.draw):
        with pytest.raises(SpaceError, match="expected known pairs to score, got links that are guesses"):
            split(unchecked.ids, anchors=unchecked.source.rows(anchors))


ANCHORS = tuple(IDS[:30])
SWAPPED = (IDS[1], IDS[0], *IDS[2:30])
# of 80 confirmed pairs, ten are anchors
MANY = 80
FEW = 70


def scored(representation, anchors, metric):
    task = ExactScores.on(representation, anchors, ProjectionSpec(), 5, "paper")
    return lambda *spaces: task.run(spaces).scores[metric].n


def audited(*partners):
    return lambda *spaces: PairAudit(ANCHORS, *partners).run(spaces).scores["all anchors"]["mrr"].n


SCORERS = {
    "scores": (scored("relative", ANCHORS, "mrr"), FEW),
    "absolute scores": (scored("absolute", (), "cka"), MANY),
    "all pairs": (lambda *spaces: AllPairs.of("cka").run(spaces).scores[0][1].n, MANY),
    "all pairs, neighbours": (lambda *spaces: AllPairs.of("mutual knn").run(spaces).scores[0][1].n, MANY),
    "all pairs, relative": (
        lambda *spaces: AllPairs.of("relative cosine", anchors=ANCHORS).run(spaces).scores[0][1].n,
        FEW,
    ),
    "explanation": (lambda *spaces: Explain.matched(spaces)[0], MANY),
    "audit": (audited(), FEW),
    "audit of a list": (audited(SWAPPED), FEW),
    "inversion": (lambda *spaces: invert_pair(match(*spaces), ANCHORS, InversionSpec()).n, FEW),
    "retrieval": (lambda *spaces: len(retrieve(match(*spaces), RetrievalSpec(n_anchors=30)).ids), None),
    "stitching": (lambda *spaces: stitch_matrix(spaces, StitchSpec(anchors=ANCHORS)).n_test, None),
    "migration": (lambda *spaces: len(parts_of(match(*spaces), 0, "random", False).held_out), None),
    "drift": (lambda *spaces: DriftCheck().run(spaces).n, MANY),
    "experiment": (lambda *spaces: BootstrapSpec(n_anchors=20).run(spaces).n_shared, MANY),
}


def not_removed(ids, scored):
    return mark_unscored(np.array(ids, dtype=object), set(ids).difference(scored))


@pytest.mark.parametrize("name", SCORERS)
@pytest.mark.parametrize(("mark", "swapped"), [(GuessedIds.of, False), (not_removed, True)])
def test_only_pairs_that_are_known_are_scored(name, mark, swapped):
    rng = np.random.default_rng(0)
    X = skewed(rng)
    labels = np.where(rng.random(200) < 0.5, "a", "b")
    known = LatentSpace(X, IDS, name="known", labels=labels)

    def spaces(confirmed):
        turned = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(12, 12)))[0]
        found = LatentSpace(turned, mark(IDS, confirmed), name="found", labels=labels)
        if swapped:
            return (found, known)
        return (known, found)

    score, expected = SCORERS[name]
    n = score(*spaces(IDS[20:100]))
    assert n == expected if expected else 0 < n <= MANY
    with suppress(SpaceError, KeyError, AttributeError):  # an error, or no score
        assert not score(*spaces(()))
