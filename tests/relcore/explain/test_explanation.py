"""Planted reasons come first; without one, none is found; a coarser copy is called one."""

from dataclasses import replace

import numpy as np
import pandas as pd
import pytest

from relcore import Explain, LatentSpace, SpaceError, explain, load_space
from relcore.base.numbers import percent
from relcore.explain.coarser import FEWER, KINDS, PRINCIPAL, Coarsening, n_dimensions
from relcore.explain.explanation import rows_that_change
from relcore.explain.items import RowItems
from relcore.explain.moved import MovedRows, most_changed

N = 1200


@pytest.fixture(scope="module")
def words():
    space = load_space("word2vec-novels")
    rows = np.sort(np.random.default_rng(0).choice(8000, N, replace=False))
    return space.take(rows)


def rows_of(rng, n=N, d=12):
    """Rows of six groups, with noise."""
    return np.float32(2 * rng.normal(size=(6, d))[rng.integers(6, size=n)] + rng.normal(size=(n, d)))


def noisy(rng, X, level):
    return X + np.float32(level * (X - X.mean(axis=0)).std()) * rng.standard_normal(X.shape, dtype=np.float32)


def turned(rng, X):
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))[0].astype(np.float32)


def columns_of(rng, n=N):
    return {
        "kind": rng.choice(["a", "b", "c", "d", "e"], n),
        "colour": rng.choice(["red", "blue"], n),
        "size": rng.normal(size=n),
    }


@pytest.mark.parametrize("gathered_in", [0, 1])
def test_a_gathered_class_comes_first_and_alone(rng, gathered_in):
    X = rows_of(rng)
    columns = columns_of(rng)
    sides = [noisy(rng, X, 0.2), noisy(rng, turned(rng, X), 0.2)]
    inside = columns["kind"] == "c"
    sides[gathered_in][inside] += 8 * np.eye(X.shape[1], dtype=np.float32)[0]
    found = explain(*sides, columns=columns)
    (reason,) = found.reasons
    assert reason.title == "rows whose kind is c"
    assert reason.more == gathered_in
    np.testing.assert_array_equal(reason.rows, np.flatnonzero(inside))
    assert reason.shares[gathered_in] > 0.9
    assert abs(reason.shares[1 - gathered_in] - inside.mean()) < 0.06
    assert reason.low < reason.difference < reason.high
    assert reason.p < 0.001
    assert found.coarser is None


def test_shares_are_those_of_plain_counting(rng):
    """Shares are counted again by loops, on the half of the rows that did not suggest the reason."""
    X = rows_of(rng)
    columns = columns_of(rng)
    Y = turned(rng, X)
    inside = columns["kind"] == "c"
    Y[inside] += 8
    found = explain(X, Y, columns=columns, spec=Explain(k=5))
    (reason,) = found.reasons
    from relcore.spaces.split import row_keys

    testing = row_keys(np.arange(N).astype(str), "explain halves", 0) >= 0.5
    for side, share in zip((X, Y), reason.shares, strict=True):
        units = side - side.mean(axis=0)
        units /= np.linalg.norm(units, axis=1, keepdims=True)
        products = units @ units.T
        np.fill_diagonal(products, -2)
        of_rows = [
            inside[np.argsort(-products[row], kind="stable")[:5]].mean()
            for row in np.flatnonzero(inside & testing)
        ]
        assert share == pytest.approx(np.mean(of_rows), abs=2e-3)
    assert reason.n == np.count_nonzero(inside & testing)


def test_rotated_copy_has_no_reason(rng, words):
    Y = turned(rng, words.vectors - words.vectors.mean(axis=0))
    found = explain(words, LatentSpace(Y, words.ids, counts=words.counts))
    assert found.reasons == ()
    assert found.coarser is None
    assert found.report().sentence == f"No reason found among {found.n_features} features."
    smallest = np.array(found.smallest)
    assert np.all(np.isnan(smallest) | ((smallest >= 0.02) & (smallest <= 1)))


@pytest.mark.parametrize("level", [0.3, 0.8])
def test_equal_noise_has_no_reason(rng, words, level):
    sides = [noisy(rng, words.vectors, level) for _ in range(2)]
    spaces = [LatentSpace(side, words.ids, counts=words.counts) for side in sides]
    found = explain(*spaces)
    assert found.reasons == ()
    assert found.coarser is None


def test_random_columns_are_no_reason_for_two_models(rng):
    spaces = [load_space(name) for name in ("word2vec-novels", "fasttext-novels")]
    vectors = [space.vectors[:N] for space in spaces]
    found = explain(*vectors, columns=columns_of(rng))
    own = [one for one in found.reasons if one.family in ("kind", "colour", "size")]
    assert own == []


@pytest.mark.parametrize(("kind", "coarse_side"), [(kind, place % 2) for place, kind in enumerate(KINDS)])
def test_coarser_copy_is_called_one(rng, words, kind, coarse_side):
    level = 2.0 if kind in (FEWER, PRINCIPAL) else 0.9
    worse = Coarsening(words.vectors, kind, 3).rows(level)
    sides = [words.vectors, turned(rng, worse)]
    if coarse_side == 0:
        sides.reverse()
    spaces = [LatentSpace(side, words.ids, name=name) for side, name in zip(sides, "ab", strict=True)]
    found = explain(*spaces)
    assert found.coarser is not None
    assert found.coarser.side == coarse_side
    assert found.reasons == ()
    assert found.report().sentence.startswith(f"{'ab'[coarse_side]} is like a noisier or coarser copy")


def test_level_of_noise_is_recovered(rng, words):
    found = explain(words, LatentSpace(noisy(rng, words.vectors, 0.9), words.ids))
    assert found.coarser.side == 1
    assert found.coarser.level == pytest.approx(0.9, abs=0.2)


def test_reason_beyond_noise_is_found(rng, words):
    """A noisy copy in which some words lie together, too."""
    inside = np.array([len(word) == 5 for word in words.ids])
    worse = noisy(rng, words.vectors, 0.8)
    worse[inside] += np.float32(1.5) * np.eye(worse.shape[1], dtype=np.float32)[0]
    found = explain(words, LatentSpace(worse, words.ids))
    assert found.reasons[0].title == "words of 5 letters"
    assert found.reasons[0].more == 1


@pytest.mark.slow
def test_fasttext_gathers_endings_and_word2vec_frequency():
    """What the models are known for: FastText reads parts of words (Bojanowski et al. 2017)."""
    spaces = [load_space(name) for name in ("word2vec-novels", "fasttext-novels")]
    rows = np.arange(0, 20_000, 2)
    found = explain(*(space.take(rows) for space in spaces))
    first = found.reasons[0]
    assert first.family.startswith("ending of")
    assert first.more == 1
    assert any(part.short == "-ing" for part in first.parts)
    frequency = [reason for reason in found.reasons if reason.family == "frequency"]
    assert frequency
    assert all(reason.more == 0 for reason in frequency)
    assert found.explained[1] > found.explained[0] > 0


def test_texts_signs_and_own_features(rng):
    X = rows_of(rng, 600)
    texts = ["no such old thing", "a grey hill side"] * 300
    texts[::3] = [f"a river in {1900 + row % 90}" for row in range(200)]
    Y = turned(rng, X)
    Y[::3] += 9
    spec = Explain(own=("contains:RIVER", "matches:^no .*thing$"))
    found = explain(X, Y, texts=texts, spec=spec)
    assert set(found.families) >= {"signs", "contains:RIVER", "matches:^no .*thing$"}
    assert found.reasons[0].rows.tolist() == list(range(0, 600, 3))


@pytest.mark.parametrize(
    ("own", "message"),
    [
        ("river", r"feature: expected contains:TEXT, matches:REGULAR EXPRESSION, got 'river'"),
        ("matches:(", r"feature: expected a regular expression, got '\('"),
        ("matches:" + "a" * 300, "feature: expected contains:TEXT"),
    ],
)
def test_wrong_features_are_refused(rng, own, message):
    X = rows_of(rng, 200)
    with pytest.raises(SpaceError, match=message):
        explain(X, X, spec=Explain(own=(own,)))


def test_endless_expression_ends(rng, monkeypatch):
    monkeypatch.setattr("relcore.explain.columns._SECONDS", 0.2)
    X = rows_of(rng, 200)
    with pytest.raises(SpaceError, match="expected a regular expression that is quick"):
        explain(X, X, texts=["a" * 40 + "b"] * 200, spec=Explain(own=(r"matches:^(a|a)*$",)))


def test_few_rows_and_wrong_columns_are_refused(rng):
    X = rows_of(rng, 99)
    with pytest.raises(SpaceError, match="expected 100 rows or more that 'source' and 'target'"):
        explain(X, X)
    with pytest.raises(SpaceError, match="column 'kind': expected 200, one per row of 'source', got 3"):
        explain(rows_of(rng, 200), rows_of(rng, 200), columns={"kind": ["a", "b", "c"]})


def test_further_spaces_have_a_column_each(rng):
    X = rows_of(rng)
    columns = pd.DataFrame(columns_of(rng))
    Y = turned(rng, X)
    Y[columns["kind"] == "c"] += 8
    found = explain(X, Y, noisy(rng, X, 0.1), columns=columns)
    (reason,) = found.reasons
    assert len(reason.shares) == len(found.names) == 3
    assert reason.shares[2] == pytest.approx(reason.shares[0], abs=0.1)
    table = found.report().tables[0]
    assert list(table.rows.columns[4:7]) == list(found.names)


def test_numbers_say_how_well_neighbours_predict_them(rng):
    X = rows_of(rng)
    size = rng.normal(size=N)
    Y = turned(rng, X)
    Y[:, 0] += np.float32(8 * size)
    found = explain(X, Y, columns={"size": size})
    (reason,) = found.reasons
    assert reason.title == "rows of similar size"
    first, second = reason.predicted
    assert abs(first) < 0.2
    assert second > 0.8


def test_n_dimensions_falls_with_the_level():
    assert [n_dimensions(100, level) for level in (0, 1, 3, 1000)] == [100, 50, 10, 1]


def test_kinds_of_rows_that_moved(rng):
    """Rows of one kind get other vectors: nearly all of their neighbours change, and of others few."""
    X = rows_of(rng)
    columns = columns_of(rng)
    Y = turned(rng, X)
    inside = columns["kind"] == "c"
    Y[inside] = Y[rng.permutation(np.flatnonzero(inside))]
    found = explain(X, Y, columns=columns)
    first = found.moved[0]
    assert first.title == "rows whose kind is c"
    assert first.low < first.churn < first.high
    assert first.churn > 0.8 > 0.5 > first.of_all
    np.testing.assert_array_equal(first.rows, np.flatnonzero(inside))
    sentence = found.report().sentence
    assert sentence.startswith(
        f"Rows whose kind is c differ most: {percent(first.churn)} of their neighbours"
    )
    assert "No feature explains which neighbours changed" in sentence
    assert "No reason found" not in found.report().text()
    assert "more for" not in found.report().text()  # the headline has told it


def test_a_kind_that_changed_little_more_is_no_headline():
    kinds = [
        MovedRows(name, name, "kind", 100, churn, 0.6, churn - 0.02, churn + 0.02, 0.0, np.arange(9))
        for name, churn in (("rows of a", 0.66), ("rows of b", 0.3))
    ]
    assert most_changed(kinds) is None
    assert most_changed([replace(kinds[0], churn=0.8), *kinds]).churn == 0.8


def test_rows_that_change_at_random_have_no_kind(rng):
    items = RowItems()
    ids = [f"r{row}" for row in range(N)]
    items.add(LatentSpace(rows_of(rng), ids), columns=columns_of(rng))
    kinds, n_features = rows_that_change(rng.random(N), ids, items)
    assert kinds == ()
    assert n_features > 10


def test_a_feature_of_the_users_own_is_measured_whether_it_is_a_reason_or_not():
    rng = np.random.default_rng(0)
    first = LatentSpace(rng.normal(size=(600, 8)), [f"w{row}" for row in range(600)], name="first")
    has = np.array([one.endswith("3") for one in first.ids])
    moved = first.vectors + 6 * np.eye(8)[0] * has[:, None]
    gathered = LatentSpace(moved, first.ids, name="gathered")
    spec = Explain(own=("matches:3$", "matches:7$", "contains:nowhere"))
    gathered_3, other = explain(first, gathered, spec=spec).own
    assert gathered_3.high < -0.5 < other.low
    assert other.high > -0.02
    assert other.p > 0.05
