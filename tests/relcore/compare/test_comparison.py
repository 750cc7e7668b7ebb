"""The function `relcore.compare`: the scores are those of the command, whatever the form of the rows."""

import json

import numpy as np
import pandas as pd
import pytest

import relcore
from relcore import Comparison, SpaceError, compare, load_space
from relcore.base.numbers import short
from relcore.scores.sampled import fewer_permutations

pytestmark = pytest.mark.usefixtures("own_store")


@pytest.mark.parametrize(
    ("settings", "options"),
    [
        ({}, ""),
        (
            {
                "anchors": 9,
                "strategy": "k-means",
                "projection": relcore.ProjectionSpec("angular", center=False, ridge=1),
                "k": 4,
                "convention": "mutual",
                "n_queries": None,
                "random_state": 2,
            },
            "--anchors 9 --strategy k-means --similarity angular --no-center --ridge 1 -k 4"
            " --convention mutual --queries all --random-state 2",
        ),
        ({"anchors": 0, "metrics": ["SVCCA", "rsa"]}, "--anchors 0 --metrics svcca,rsa"),
    ],
    ids=["defaults", "settings", "metrics"],
)
def test_scores_are_those_of_the_command(settings, options, run, files):
    with fewer_permutations(3):
        told = json.loads(run("compare", *files, options, "--json"))
        found = compare(*map(load_space, files), **settings)
    assert list(found.anchors) == told["anchors"]
    assert found.table.form.tolist() == [row["form"] for row in told["rows"]]
    assert found.table.metric.tolist() == [row["metric"] for row in told["rows"]]
    np.testing.assert_allclose(found.table.score, [row["score"] for row in told["rows"]], atol=1e-6)


def test_result_tells_itself_and_its_scores():
    X = np.random.default_rng(0).normal(size=(80, 6))
    found = compare(X, X @ np.linalg.qr(X[:6])[0], anchors=["1", "2", "3", "4", "5", "6", "7"], k=5)
    assert isinstance(found, Comparison)
    assert repr(found).startswith("<Comparison: source (80 × 6) and target (80 × 6), 7 anchors. ")
    assert "\n" not in repr(found)
    assert found.scores["procrustes"]["mrr"] == pytest.approx(1)
    assert found.scores["relative"]["mrr"].n == 73
    assert found.scores["absolute"]["mrr"].n == len(found.pair) == 80
    shown = found._repr_html_()
    assert found.report().sentence in shown
    assert short(found.scores["relative"]["cosine"]) in shown


def test_what_cannot_be_scored_is_refused():
    X = np.random.default_rng(0).normal(size=(40, 4))
    for settings, message in (
        ({"anchors": ["99"]}, "expected ids of 'source', got 1 unknown"),
        ({"anchors": 41}, "anchors: expected a whole number from 0 to 40"),
        ({"k": 41}, "k: expected 1 … 40 for 40 rows of 'source' and 'target'"),
        ({"n_queries": 0}, "n_queries: expected a whole number of 1 or more"),
        ({"metrics": ["mrrr"]}, "metrics: expected .*did you mean 'mrr'"),
        ({"metrics": "mrr"}, "metrics: expected a list"),
    ):
        with pytest.raises(SpaceError, match=message):
            compare(X, X, **settings)
    first = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(SpaceError, match="the same in another order"):
        compare(first, first[list("badc")])
    with pytest.raises(SpaceError, match="metrics: expected scores that exist"):
        compare(X, X[:, :3], anchors=0, metrics=["mrr"])
