"""Decoders of users in a stitching: their scores equal scikit-learn's, and a translation that is exact loses
nothing."""

import numpy as np
import pytest
from sklearn.linear_model import LinearRegression
from sklearn.metrics import mean_squared_error, r2_score

from relcore import LatentSpace, Procrustes, SpaceError, StitchSpec, stitch_matrix
from relcore.base import records
from relcore.stitch.stitching import StitchResult
from tests.relcore.stitch.test_own_heads import IDS, LABELS, SPACES, SPEC, TURNED, X

RNG = np.random.default_rng(2)
TEST = slice(200, 300)  # as in SPEC
PICTURES = (
    (X @ RNG.normal(size=(8, 12)) + RNG.normal(size=(300, 12))).reshape(300, 1, 3, 4).astype(np.float32)
)
FLAT = PICTURES.reshape(300, 12)
FITTED = LinearRegression().fit(X[:200], FLAT[:200])


def decoder(rows):
    return FITTED.predict(rows).reshape(-1, 1, 3, 4)


def test_scores_are_those_of_scikit_learn_and_a_rotation_loses_nothing():
    result = stitch_matrix(SPACES, SPEC, decoders=[decoder, None], items=PICTURES)
    decoded = result.decoded
    assert decoded.decoders == ("one",)
    assert decoded.has_items
    translation = Procrustes().fit(*(rows[SPACES[0].rows(anchors_of())] for rows in (TURNED, X)))
    for i, rows in enumerate((X, translation.transform(TURNED))):
        made = FITTED.predict(rows[TEST])
        shares = r2_score(FLAT[TEST], made, multioutput="variance_weighted")
        assert decoded.error["procrustes"][0, i, 0] == pytest.approx(
            mean_squared_error(FLAT[TEST], made), 1e-4
        )
        assert decoded.explained["procrustes"][0, i, 0] == pytest.approx(shares, abs=1e-5)
        every = ((made[:, None] - FLAT[TEST][None]) ** 2).sum(axis=2).mean() / FLAT[TEST].var(axis=0).sum()
        assert decoded.permuted["procrustes"][0, i, 0] == pytest.approx(1 - every, abs=1e-4)
    explained = decoded.explained["procrustes"][0]
    assert explained[0, 0] == pytest.approx(explained[1, 0], abs=1e-5)
    assert explained[0, 0] > 0.9
    assert decoded.explained["absolute"][0, 1, 0] < 0.5  # the axes of the other space mean something else
    assert np.isnan(explained[:, 1]).all()  # no decoder


def anchors_of():
    from relcore.stitch.classifiers import Stitching
    from relcore.stitch.shared_rows import share_rows

    stitching = Stitching(share_rows(SPACES), SPEC)
    return stitching.shared.ids[stitching.split.anchors]


def test_without_items_each_decoder_is_compared_with_what_it_makes_of_its_own_rows():
    torch = pytest.importorskip("torch")
    made = torch.nn.Sequential(torch.nn.Linear(8, 12), torch.nn.Dropout(0.5), torch.nn.Unflatten(1, (3, 4)))
    spec = StitchSpec(("procrustes",), n_anchors=40, random_states=(0, 1))
    result = stitch_matrix(SPACES, spec, decoders=[None, made.train()])
    explained = result.decoded.explained["procrustes"]
    assert explained.shape == (2, 2, 2)
    assert explained[:, 1, 1].tolist() == [1, 1]
    assert explained[:, 0, 1] == pytest.approx(1, abs=1e-5)
    assert made.training
    report = result.report()
    table = next(one for one in report.tables if one.name == "decoders")
    assert table.rows.columns[:3].tolist() == ["method", "encoder", "decoder"]
    assert len(table.rows) == 2
    assert "Decoders that you gave: 'two'" in " ".join(report.notes)
    again = records.unpack(StitchResult, *records.pack(result))
    np.testing.assert_array_equal(again.decoded.explained["procrustes"], explained)


def test_rows_of_the_first_space_may_come_in_another_order_and_more_of_them():
    order = np.random.default_rng(3).permutation(300)
    more = LatentSpace(
        np.concatenate([X[order], X[:5] + 9]),
        [*np.array(IDS)[order], *(f"more {row}" for row in range(5))],
        labels=[*LABELS[order], *LABELS[:5]],
        name="one",
    )
    items = np.concatenate([PICTURES[order], PICTURES[:5] * 9])
    result = stitch_matrix([more, SPACES[1]], SPEC, decoders=[decoder, None], items=items)
    expected = stitch_matrix(SPACES, SPEC, decoders=[decoder, None], items=PICTURES)
    for scores in (result, expected):
        assert scores.decoded.explained["absolute"][0, 0, 0] > 0.9
    assert result.decoded.error["absolute"][0, 0, 0] == pytest.approx(
        expected.decoded.error["absolute"][0, 0, 0]
    )


def test_a_decoder_of_unrelated_items_explains_nothing():
    """The negative control: a regression on 8 numbers from 200 rows explains −.04 ± .02 of 12 others."""
    unrelated = np.random.default_rng(4).normal(size=(300, 12))
    fitted = LinearRegression().fit(X[:200], unrelated[:200])
    result = stitch_matrix(SPACES, SPEC, decoders=[fitted.predict, None], items=unrelated)
    explained = result.decoded.explained["procrustes"][0, :, 0]
    assert explained.min() > -0.15
    assert explained.max() < 0.03
    assert result.decoded.permuted["procrustes"][0, 1, 0] < 0


def test_wrong_decoders_and_items_are_refused():
    relative = StitchSpec(("relative",), n_anchors=40)
    for decoders, items, spec, match in (
        ([decoder], None, SPEC, "decoders: expected a list of 2"),
        ([decoder, None], None, relative, "because your decoders read rows"),
        ([5, None], None, SPEC, "expected a PyTorch module or a function"),
        ([lambda rows: rows[:3], None], None, SPEC, "expected an item for each of 100 rows"),
        ([lambda rows: rows[:, 0], None], None, SPEC, "expected an item for each of 100 rows"),
        ([lambda rows: rows * np.nan, None], None, SPEC, "finite numbers from the decoder of 'one'"),
        ([lambda rows: 1 / 0, None], None, SPEC, "got ZeroDivisionError"),
        ([decoder, None], FLAT[:, :5], SPEC, "items of 5 numbers .*, got 12"),
        (
            [decoder, None],
            FLAT[:5],
            SPEC,
            r"items: expected an item for each of the 300 rows .*, got \(5, 12\)",
        ),
        ([decoder, None], ["a"] * 300, SPEC, "items: expected numbers"),
        ([decoder, None], FLAT * np.inf, SPEC, "items: expected finite"),
    ):
        with pytest.raises(SpaceError, match=match):
            stitch_matrix(SPACES, spec, decoders=decoders, items=items)
