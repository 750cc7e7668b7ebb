"""Estimators under scikit-learn's own checks, cloned, in a pipeline and in a grid search."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
from sklearn.base import clone
from sklearn.exceptions import NotFittedError
from sklearn.metrics import r2_score
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils import estimator_checks
from sklearn.utils.estimator_checks import check_estimator

import relcore
from relcore.base.errors import SpaceError
from relcore.migrate.adapters import ProcrustesAdapter, RidgeAdapter
from relcore.represent.estimator import Estimator
from relcore.represent.inverse import InverseRelativeProjection
from relcore.represent.projection import RelativeProjection
from relcore.represent.translation import Affine, LeastSquares, Procrustes


class Within(InverseRelativeProjection):
    """The inverse within one space. It ignores the targets of scikit-learn's checks: they have one column, so all
    their rows lie on a line.
    """

    _needs_target = False

    def fit(self, X, y=None):
        return super().fit(X, X)


MESSAGES = {
    "check_dtype_object": (
        "every error of a user is a SpaceError, a ValueError; the check asks for a TypeError"
    ),
}
COLUMN = "the target is a space (k, d); the check gives one number a row"
PAIRED = MESSAGES | {
    "check_fit_score_takes_y": "the parameters of fit are source and target, the names of this project",
    "check_transformer_data_not_an_array": COLUMN,
    "check_transformer_general": COLUMN,
    "check_transformer_preserve_dtypes": COLUMN,
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
    (Within(delta=0.0), MESSAGES),
    (Within("ridge"), MESSAGES),
    (Within("whitened"), MESSAGES),
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


@pytest.mark.parametrize(
    "estimator", [Procrustes(), LeastSquares(), Affine(), InverseRelativeProjection(delta=0.1)], ids=str
)
def test_pairs_with_nan_are_refused(spaces, estimator):
    """Rows with NaN are among scikit-learn's checks; a target with NaN is not."""
    X, rotated, _ = spaces
    rotated[3, 2] = np.nan
    with pytest.raises(SpaceError, match="expected finite numbers, got NaN or infinity; drop these rows"):
        estimator.fit(X, rotated)


# Names of columns, DataFrames as output, and what an estimator that was not fitted says.

MORE_CHECKS = (
    "check_get_feature_names_out_error",
    "check_set_output_transform",
    "check_set_output_transform_pandas",
    "check_transformer_get_feature_names_out",
    "check_transformer_get_feature_names_out_pandas",
)


@pytest.mark.parametrize("check", MORE_CHECKS)
@pytest.mark.parametrize("estimator", [RelativeProjection(), Within("ridge")], ids=str)
def test_scikit_learns_checks_of_names_and_output(estimator, check):
    getattr(estimator_checks, check)(type(estimator).__name__, estimator)


MAPS = [Procrustes, LeastSquares, Affine, lambda: InverseRelativeProjection("ridge")]
MAPS += [ProcrustesAdapter, RidgeAdapter]
EVERY = [RelativeProjection, *MAPS]


def test_every_public_estimator_is_here():
    public = [getattr(relcore, name) for name in relcore.__all__]
    estimators = {one for one in public if isinstance(one, type) and issubclass(one, Estimator)}
    assert estimators <= {type(make()) for make in EVERY}


@pytest.fixture
def tables(spaces):
    X, rotated, _ = spaces
    ids = [f"row {row}" for row in range(len(X))]
    return pd.DataFrame(X, ids, list("abcdef")), pd.DataFrame(rotated, ids, list("uvwxyz"))


@pytest.mark.parametrize("make", EVERY)
def test_columns_in_another_order_are_refused(make, tables):
    X, Y = tables
    fitted = make().fit(X, Y)
    assert fitted.feature_names_in_.tolist() == list("abcdef")
    assert np.array_equal(fitted.transform(X), make().fit(X.to_numpy(), Y.to_numpy()).transform(X.to_numpy()))
    assert np.array_equal(fitted.transform(X.to_numpy()), fitted.transform(X))
    for wrong, got in ((X[list("fedcba")], "another order"), (X.rename(columns={"c": "z"}), r"\('c', 'z'\)")):
        with pytest.raises(
            SpaceError, match=f"the columns of fit in their order, 'a', 'b', 'c' …, got .*{got}; take"
        ):
            fitted.transform(wrong)
    assert not hasattr(fitted.fit(X.to_numpy(), Y), "feature_names_in_")
    fitted.transform(X[list("fedcba")])  # nothing is known of the order


@pytest.mark.parametrize("make", EVERY)
def test_set_output_gives_table_with_rows_names(make, tables):
    X, Y = tables
    estimator = make().fit(X, Y)
    array = estimator.transform(X)
    names = estimator.get_feature_names_out()
    table = clone(estimator.set_output(transform="pandas")).fit(X, Y).transform(X)
    assert table.index.equals(X.index)
    assert table.columns.tolist() == names.tolist()
    assert np.array_equal(table.to_numpy(), array)
    assert estimator.set_output(transform=None).transform(X.to_numpy()).index.equals(pd.RangeIndex(len(X)))
    assert isinstance(estimator.set_output(transform="default").transform(X), np.ndarray)
    with pytest.raises(SpaceError, match="transform: expected one of None, default, pandas, got 'polars'"):
        estimator.set_output(transform="polars")


def test_names_that_come_out_are_those_that_are_known(tables):
    X, Y = tables
    assert Procrustes().fit(X, Y).get_feature_names_out().tolist() == list("uvwxyz")
    unnamed = Procrustes().fit(X, Y[["x", "y"]].to_numpy())
    assert unnamed.get_feature_names_out().tolist() == ["procrustes0", "procrustes1"]
    projection = RelativeProjection()
    for anchors in ([3, 1], ["row 3", "row 1"]):
        assert projection.fit(X, anchors=anchors).get_feature_names_out().tolist() == ["row 3", "row 1"]
    unnamed = projection.fit(X, anchors=X.to_numpy()[:1])
    assert unnamed.get_feature_names_out().tolist() == ["relativeprojection0"]
    space = relcore.LatentSpace(X, X.index)
    assert projection.fit(space, anchors=[5]).get_feature_names_out().tolist() == ["row 5"]


def test_a_pipeline_passes_on_names_and_output(tables):
    X, _ = tables
    pipeline = make_pipeline(StandardScaler(), RelativeProjection(n_anchors=4)).set_output(transform="pandas")
    table = pipeline.fit(X).transform(X)
    assert table.columns.tolist() == pipeline.get_feature_names_out().tolist()
    assert set(table.columns) < set(X.index)


@pytest.mark.parametrize("make", EVERY)
@pytest.mark.parametrize(
    "method", ["transform", "inverse_transform", "relative", "corpus", "get_feature_names_out"]
)
def test_what_was_not_fitted_says_so(make, method, spaces):
    if not hasattr(estimator := make(), method):
        return
    with pytest.raises(NotFittedError, match="expected a fitted estimator; call fit first") as refused:
        getattr(estimator, method)(*[spaces[0]] * (method != "get_feature_names_out"))
    assert isinstance(refused.value, SpaceError)
    assert str(pickle.loads(pickle.dumps(refused.value))) == str(refused.value)


@pytest.mark.parametrize("scale", [True, False])
@pytest.mark.parametrize("factor", [1.0, 1e-10, 1e10])
def test_procrustes_leads_back(scale, factor, spaces):
    X, rotated, _ = spaces
    Y = factor * (2 * rotated + 1)
    procrustes = Procrustes(scale).fit(X * factor, Y)
    back = procrustes.inverse_transform(procrustes.transform(X * factor))
    assert np.allclose(back / factor, X, atol=1e-5)
    if scale:
        assert np.allclose(procrustes.inverse_transform(Y) / factor, X, atol=1e-5)


def test_procrustes_leads_back_between_widths(spaces):
    X, rotated, _ = spaces
    wide = np.column_stack([rotated, np.full(len(X), 7.0)])
    onto = Procrustes().fit(X, wide)
    assert np.allclose(onto.inverse_transform(wide), X, atol=1e-5)
    narrow = Procrustes().fit(wide, X)
    there_and_back = narrow.transform(narrow.inverse_transform(X))
    assert np.allclose(there_and_back, X, atol=1e-5)
    with pytest.raises(SpaceError, match="expected rows of width 7 as in fit, got 6"):
        onto.inverse_transform(X)


def test_procrustes_to_one_point_has_no_way_back(spaces):
    X, _, _ = spaces
    with pytest.raises(SpaceError, match="expected a map that can be inverted, got one to a single point"):
        Procrustes().fit(X, np.ones_like(X)).inverse_transform(X)


@pytest.mark.parametrize("kind", [Procrustes, LeastSquares, Affine])
def test_a_map_between_spaces_is_scored_in_a_grid_search(kind):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    Y = X @ np.linalg.qr(rng.normal(size=(4, 4)))[0]
    Y += 0.3 * rng.normal(size=Y.shape)
    fitted = kind().fit(X[:40], Y[:40])
    expected = r2_score(Y[40:], fitted.transform(X[40:]), multioutput="variance_weighted")
    assert fitted.score(X[40:], Y[40:]) == pytest.approx(expected, abs=1e-6)
    assert cross_val_score(kind(), X, Y, cv=3).min() > 0.8
    with pytest.raises(SpaceError, match="y: expected rows of width 4 as in fit, got 3"):
        fitted.score(X, Y[:, :3])
    with pytest.raises(SpaceError, match="expected rows that differ"):
        fitted.score(X, np.ones_like(Y))


def test_a_grid_search_chooses_a_parameter_of_a_map():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(60, 4))
    found = GridSearchCV(Procrustes(), {"scale": [True, False]}, cv=3).fit(X, 5 * X[:, ::-1])
    assert found.best_params_ == {"scale": True}
