"""Numbers of an inverse, chosen by held-out anchors: the best on rows that nobody looked at, and never
from those rows.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from relcore.base.rows import mean_row, unit_rows
from relcore.encoders.words import BUNDLED, load_words
from relcore.invert import inversion
from relcore.invert.inversion import (
    DELTAS,
    OMEGAS,
    RIDGES,
    InversionSpec,
    choose_numbers,
    invert_pair,
    recovered_rows,
)
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

METHODS = ("pruned", "ridge", "whitened")


def noisy_pair(n=500, d=12, noise=0.5, random_state=0):
    rng = np.random.default_rng(random_state)
    X, ids = rng.normal(size=(n, d)), [f"r{row}" for row in range(n)]
    turn = np.linalg.qr(rng.normal(size=(d, d)))[0]
    return match(
        LatentSpace(X, ids, name="a"), LatentSpace(X @ turn + noise * rng.normal(size=(n, d)), ids, name="b")
    )


@pytest.fixture(scope="module")
def words():
    return match(*(load_words(name) for name in BUNDLED))


def chosen(pair, k, spec):
    sides = [space.vectors[:k] for space in (pair.source, pair.target)]
    return choose_numbers(*sides, (mean_row(pair.source.vectors), mean_row(pair.target.vectors)), spec)


@pytest.mark.parametrize("method", METHODS)
def test_each_setting_is_scored_as_the_estimator_fitted_on_the_other_anchors(method, monkeypatch):
    pair, k = noisy_pair(), 40
    spec = InversionSpec(method=method, tuned=True)
    means = [mean_row(space.vectors) for space in (pair.source, pair.target)]
    for name, few in (("DELTAS", DELTAS[3:5]), ("OMEGAS", OMEGAS[1:2]), ("RIDGES", RIDGES[3:4])):
        monkeypatch.setattr(inversion, name, few)
    choice = chosen(pair, k, spec)
    order, cosines = np.random.default_rng([0, k]).permutation(k), []
    for part in range(4):
        held_out = order[part::4]
        known = np.setdiff1d(order, held_out)
        inverse = replace(spec, **choice.numbers()).inverse()
        inverse.fit(
            pair.source.vectors[known], pair.target.vectors[known], source_mean=means[0], target_mean=means[1]
        )
        found = unit_rows(inverse.transform(pair.source.vectors[held_out]), means[1])
        cosines.append(
            np.einsum("ij,ij->i", found, unit_rows(pair.target.vectors[held_out], means[1])).mean()
        )
    assert choice.cosine == pytest.approx(np.mean(cosines), abs=1e-5)
    assert (choice.n_tried, choice.n_held_out) == (2 if method == "pruned" else 1, 10)


@pytest.mark.parametrize("method", METHODS)
def test_the_choice_is_nearly_the_best_of_the_grid_on_rows_that_took_no_part(words, method):
    anchors = tuple(words.ids[np.random.default_rng(1).choice(len(words), 200, replace=False)])
    found = invert_pair(words, anchors, InversionSpec(method=method, tuned=True), most_rows=1500)
    grid = [{"ridge": ridge} for ridge in RIDGES]
    if method == "pruned":
        grid = [{"delta": delta, "omega": 8} for delta in DELTAS]
    scores = [
        float(
            invert_pair(words, anchors, InversionSpec(method=method, **one), most_rows=1500).scores[
                found.spec.title
            ]
        )
        for one in grid
    ]
    assert float(found.scores[found.spec.title]) > max(scores) - 0.02
    assert max(scores) - min(scores) > 0.05


@pytest.mark.parametrize("method", METHODS)
def test_rows_that_are_no_anchors_have_no_say(method):
    pair, spec = noisy_pair(), InversionSpec(method=method, tuned=True)
    anchors = tuple(pair.ids[:60])
    before = invert_pair(pair, anchors, spec)
    rng = np.random.default_rng(1)
    # Other rows, of the same mean: the means of all rows centre the anchors.
    others = pair.target.vectors[60:][rng.permutation(len(pair) - 60)]
    changed = match(
        pair.source, LatentSpace(np.vstack([pair.target.vectors[:60], others]), pair.ids, name="b")
    )
    after = invert_pair(changed, anchors, spec)
    assert after.spec == before.spec
    assert after.choice.cosine == pytest.approx(before.choice.cosine, abs=1e-5)
    assert float(after.scores[spec.title]) < 0.2 < float(before.scores[spec.title])


def test_recovered_rows_are_nearest_to_themselves_and_by_chance_where_spaces_are_unrelated():
    anchors = [f"r{row}" for row in range(50)]
    near, far = (
        recovered_rows(pair, invert_pair(pair, anchors, InversionSpec(method="ridge")))
        for pair in (noisy_pair(noise=0.05), noisy_pair(noise=1000))
    )
    assert (near.first, near.n, near.among) == (1, 450, 500)
    assert all((rows[:, 0] == rows[:, 1]).all() for rows in near.groups.values())
    assert [len(rows) for rows in near.groups.values()] == [5, 5, 5]
    assert far.first < 0.02  # 1 of 500 by chance, and five standard errors
