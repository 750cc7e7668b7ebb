"""Estimators under scikit-learn's own checks, cloned, in a pipeline and in a grid search."""

import warnings

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.linear_model import LogisticRegression
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.utils.estimator_checks import check_estimator

from relcore.base.errors import SpaceError
from relcore.represent.inversion import InverseRelativeProjection
from relcore.represent.projection import RelativeProjection
from relcore.represent.translation import Affine, LeastSquares, Procrustes


class Within(InverseRelativeProjection):
    """The inverse within one space, which needs no target: scikit-learn's targets of one column lie on one
    line.
    """

    _needs_target = False

    def fit(self, X, y=None):
        return super().fit(X, X)


OWN_WORDS = "the message is ours: it names what was expected and what came"
MESSAGES = {
    "check_n_features_in_after_fitting": OWN_WORDS,
    "check_estimators_empty_data_messages": OWN_WORDS,
    "check_fit2d_predict1d": OWN_WORDS,
    "check_dtype_object": (
        "every error of a user is a SpaceError, a ValueError; the check asks for a TypeError"
    ),
}
COLUMN = "the target is a space (k, d); the check gives one number a row"
PAIRED = MESSAGES | {
    "check_fit_score_takes_y": "the parameters of fit are source and target, the names of this project",
    "check_requires_y_none": OWN_WORDS,
    "check_transformer_data_not_an_array": COLUMN,
    "check_transformer_general": COLUMN,
    "check_transformer_preserve_dtypes": COLUMN,
}
INVERSE = MESSAGES | {
    "check_fit2d_1sample": OWN_WORDS,
    "check_fit2d_1feature": OWN_WORDS,
}
STEEP = (
    "where points coincide a float32 rounding of the cosine, 2e-7, is 2e-4 of half a turn; on some processors"
    " only"
)
ROUNDED = {"check_methods_subset_invariance": STEEP, "check_methods_sample_order_invariance": STEEP}
LAST_DIGIT = (
    "the last digit of a float32 product depends on the place of the row among the others; on some processors"
    " only"
)
PRODUCT = PAIRED | dict.fromkeys(ROUNDED, LAST_DIGIT)
ESTIMATORS = [
    (RelativeProjection(), MESSAGES),
    (RelativeProjection(whiten=True), MESSAGES),
    (RelativeProjection("angular", center=False), MESSAGES | ROUNDED),
    (RelativeProjection("euclidean"), MESSAGES),
    (RelativeProjection("l1"), MESSAGES),
    (RelativeProjection("quantised"), MESSAGES),
    (Procrustes(), PRODUCT),
    (Procrustes(scale=False), PRODUCT),
    (LeastSquares(), PRODUCT),
    (Affine(), PRODUCT),
    (Within(delta=0.0), INVERSE),
    (Within("ridge"), INVERSE),
    (Within("whitened"), INVERSE),
]


@pytest.mark.parametrize(("estimator", "exceptions"), ESTIMATORS, ids=[str(one) for one, _ in ESTIMATORS])
def test_scikit_learns_checks(estimator, exceptions):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = check_estimator(estimator, expected_failed_checks=exceptions, on_fail="raise", on_skip=None)
    failed = {one["check_name"] for one in found if one["status"] == "xfail"}
    assert failed | (ROUNDED.keys() & exceptions) == set(exceptions)  # no exception too many
    assert sum(one["status"] == "passed" for one in found) >= 35


@pytest.fixture
def spaces(rng):
    """Three classes in 6 dimensions, and the same rows rotated: (X, rotated, classes)."""
    classes = rng.integers(0, 3, 150)
    X = rng.normal(size=(150, 6)) + 4 * rng.normal(size=(3, 6))[classes]
    rotation, _ = np.linalg.qr(rng.normal(size=(6, 6)))
    return X, X @ rotation, classes


def test_a_clone_has_the_parameters_and_nothing_that_was_learned(spaces):
    fitted = InverseRelativeProjection("ridge", ridge=0.5, lengths="mean").fit(*spaces[:2])
    fresh = clone(fitted)
    assert fresh.get_params() == fitted.get_params()
    assert fresh.get_params()["ridge"] == 0.5
    assert not hasattr(fresh, "matrix_")
    assert clone(LeastSquares()).get_params() == {}


def test_parameters_are_set_by_name_and_unknown_ones_refused():
    projection = RelativeProjection().set_params(similarity="l1", center=False)
    assert (projection.similarity, projection.center, projection.whiten) == ("l1", False, False)
    with pytest.raises(SpaceError, match=r"Procrustes: expected scale, got an invalid parameter 'angle'"):
        Procrustes().set_params(angle=3)
    with pytest.raises(SpaceError, match="Affine: expected no parameters"):
        Affine().set_params(scale=True)


def test_fit_transform_is_fit_and_transform(spaces):
    X, rotated, _ = spaces
    rows = np.arange(10)
    np.testing.assert_array_equal(
        RelativeProjection().fit_transform(X, anchors=rows),
        RelativeProjection().fit(X, anchors=rows).transform(X),
    )
    np.testing.assert_array_equal(
        Procrustes().fit_transform(X, rotated), Procrustes().fit(X, rotated).transform(X)
    )


def test_a_head_behind_relative_rows_answers_for_the_other_space(spaces):
    """A pipeline as stitching is described: the head of one space reads the rows of another, relative to
    the same anchors.
    """
    X, rotated, classes = spaces
    rows = np.arange(0, 150, 7)
    pipeline = make_pipeline(RelativeProjection(), LogisticRegression()).fit(
        X, classes, relativeprojection__anchors=rows
    )
    other = RelativeProjection().fit(rotated, anchors=rows)
    assert pipeline.score(X, classes) > 0.95
    assert (pipeline[-1].predict(other.transform(rotated)) == pipeline.predict(X)).all()


def test_without_anchors_the_same_rows_are_drawn_in_both_spaces(spaces):
    X, rotated, _ = spaces
    first, second = (
        RelativeProjection(n_anchors=20, random_state=3).fit_transform(space) for space in (X, rotated)
    )
    assert first.shape == (150, 20)
    np.testing.assert_allclose(first, second, atol=1e-5)
    assert RelativeProjection().fit_transform(X).shape == (150, 150)
    assert not np.allclose(first, RelativeProjection(n_anchors=20, random_state=4).fit_transform(X))
    with pytest.raises(SpaceError, match="n_anchors: expected 1 or more, got 0"):
        RelativeProjection(n_anchors=0).fit(X)


def test_a_grid_search_sets_the_parameters(spaces):
    X, _, classes = spaces
    pipeline = make_pipeline(RelativeProjection(), LogisticRegression(max_iter=1000))
    grid = {"relativeprojection__n_anchors": [2, 30], "relativeprojection__similarity": ["cosine", "l1"]}
    search = GridSearchCV(pipeline, grid, cv=2).fit(X, classes)
    assert search.best_score_ > 0.9
    assert search.best_params_["relativeprojection__n_anchors"] == 30


def broken_row(X):
    X = X.copy()
    X[3, 2] = np.nan
    return X


@pytest.mark.parametrize("similarity", ["cosine", "angular", "euclidean", "l1", "quantised"])
@pytest.mark.parametrize("center", [True, False])
def test_a_row_with_nan_is_refused_in_fit_and_transform(spaces, similarity, center):
    X = spaces[0]
    projection = RelativeProjection(similarity, center)
    with pytest.raises(SpaceError, match="X: expected finite numbers, got NaN or infinity; drop these rows"):
        projection.fit(broken_row(X), anchors=np.arange(3))
    with pytest.raises(SpaceError, match="expected finite numbers"):
        projection.fit(X, anchors=np.arange(3)).transform(broken_row(X))


@pytest.mark.parametrize(
    "estimator", [Procrustes(), LeastSquares(), Affine(), InverseRelativeProjection(delta=0.1)], ids=str
)
def test_pairs_with_nan_are_refused(spaces, estimator):
    X, rotated, _ = spaces
    with pytest.raises(SpaceError, match="expected finite numbers"):
        estimator.fit(X, broken_row(rotated))
    with pytest.raises(SpaceError, match="expected finite numbers"):
        estimator.fit(X, rotated).transform(broken_row(X))
