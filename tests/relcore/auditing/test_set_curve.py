"""SetCurve: every number of anchors scored on the same rows, none of which is an anchor; recipes of both
charts.
"""

import json

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.audit_figures import InfluenceChart, SetCurveChart
from relcore.compare.figures import exportable
from relcore.compare.influence import AnchorInfluence
from relcore.compare.set_curve import SetCurve


@pytest.fixture
def spaces(make_space, rng):
    X = rng.normal(size=(400, 8))
    return make_space(X, name="a"), make_space(X[:, ::-1] + 0.3 * rng.normal(size=X.shape), name="b")


def test_more_anchors_help_up_to_a_plateau_and_all_use_the_same_rows(spaces):
    outcome = SetCurve(("random", "farthest-point"), (2, 5, 40, 1000), n_states=2).run(spaces)
    assert outcome.numbers == (2, 5, 40)
    assert outcome.values.shape == (2, 3, 2, 4)
    mrr = outcome.values[..., outcome.metrics.index("mrr")].mean(axis=(0, 2))
    assert mrr[0] < mrr[1] < mrr[2]
    assert outcome.n_rows >= 400 - 2 * 2 * 47


def test_unrelated_spaces_score_at_chance_for_every_number(make_space, rng):
    pair = [make_space(rng.normal(size=(400, 8)), name=name) for name in "ab"]
    outcome = SetCurve(("random",), (5, 20, 50), n_states=2).run(pair)
    mrr = outcome.values[..., outcome.metrics.index("mrr")]
    assert (
        mrr.max() < 0.06
    )  # chance: the sum of 1/rank to 10 over some 280 rows, .01; 280 queries have an error of .006


def test_what_has_no_rows_is_refused(spaces):
    with pytest.raises(SpaceError, match="expected one of at most 100 anchors"):
        SetCurve(("random",), (500,)).run(spaces)
    with pytest.raises(SpaceError, match="strategies: expected one of"):
        SetCurve(("best",))


@pytest.mark.parametrize(
    ("figure", "task"),
    [
        (SetCurveChart, {"curve": SetCurve(("random",), (5, 20), n_states=2)}),
        (
            InfluenceChart,
            {"influence": AnchorInfluence(tuple(f"r{row}" for row in range(12)), n_candidates=20)},
        ),
    ],
)
def test_charts_are_drawn_again_from_their_recipes(spaces, tmp_path, figure, task):
    specs = []
    for number, space in enumerate(spaces):
        path = tmp_path / f"space{number}.npz"
        np.savez(path, vectors=space.vectors, ids=np.array(space.ids.tolist()))
        specs.append(SpaceSpec("file", str(path)))
    drawn = figure(source=specs[0], target=specs[1], **task).draw(next(iter(task.values())).run(spaces))
    again = exportable(json.loads(drawn.bytes("json", full_paths=True)))
    assert again.bytes("csv") == drawn.bytes("csv")
