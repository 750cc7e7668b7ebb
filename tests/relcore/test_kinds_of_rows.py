"""Every public function accepts rows in every form and returns the same numbers as for an array, to the last
bit. It refuses what is no matrix with one sentence that says how to fix it. Rows with ids are paired by id or
refused, never by accident. A new public function needs a line here.

Each test calls one function with all forms, so that none is exempt. Functions that take long get some forms
in the fast tests and all in the slow ones; all rows come in by `relcore.spaces.space.matrix`.
"""

import inspect
import warnings
from tempfile import TemporaryDirectory

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from scipy import sparse

import relcore
from relcore import AlignedPair, LatentSpace, RelativeProjection, Split
from relcore.base.errors import SpaceError
from relcore.base.mapped_rows import MappedRows
from relcore.migrate.adapters import RidgeAdapter
from relcore.represent.translation import Affine, LeastSquares
from relcore.scores.sampled import fewer_permutations
from relcore.stitch.stitching import StitchSpec

N = 60
D = 4
IDS = [f"w{row}" for row in range(N)]
ORDER = np.random.default_rng(1).permutation(N)
TESTED = 24  # number of rows that the functions with labels hold out


def tensor(X, **settings):
    return pytest.importorskip("torch").tensor(X, **settings)


def half_tensor(X):
    torch = pytest.importorskip("torch")
    return torch.tensor(X).to(torch.bfloat16)


# An index of each kind, in an order that is not the sorted one.
INDEXES = {
    "text": pd.Index(IDS),
    "integers": pd.Index(7 * ORDER + 3),
    "floats": pd.Index(ORDER / 4),
    "dates": pd.date_range("2026-01-01", periods=N, freq="h")[ORDER],
    "categories": pd.CategoricalIndex(np.array(IDS)[ORDER]),
    "levels": pd.MultiIndex.from_arrays([ORDER % 3, ORDER]),
}


def table(kind, order=slice(None)):
    return lambda X: pd.DataFrame(X, INDEXES[kind], columns=list("abcd")).iloc[order]


# Forms that hold the same numbers.
SAME = {
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "Fortran order": np.asfortranarray,
    "every second row": lambda X: np.repeat(X, 2, axis=0)[::2],
    "big-endian": lambda X: X.astype(">f4"),
    "float64": lambda X: X.astype(np.float64),
    "float16": lambda X: X.astype(np.float16),
    "whole numbers": lambda X: X.astype(np.int16),
    "list": lambda X: X.tolist(),
    "list of arrays": list,
    "objects": lambda X: X.astype(object),
    "texts of numbers": lambda X: X.astype(str),
    "masked array without masked cells": lambda X: np.ma.masked_equal(X, 99),
    "DataFrame": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "DataFrame of nullable numbers": lambda X: pd.DataFrame(X).convert_dtypes(),
    **{f"DataFrame, index of {kind}": table(kind) for kind in INDEXES},
    "tensor": lambda X: tensor(X, requires_grad=True),
    "tensor of bfloat16": half_tensor,
    "sparse tensor": lambda X: tensor(X).to_sparse(),
    "sparse matrix": sparse.csr_matrix,
    "sparse array": sparse.coo_array,
    "LatentSpace": lambda X: LatentSpace(X, IDS),
    "LatentSpace without ids": LatentSpace,
    "rows in files": lambda X: MappedRows([X]),
}


def with_cell(value, dtype=np.float32):
    def broken(X):
        X = X.astype(dtype)
        X[3, 1] = value
        return X

    return broken


def masked(X):
    return np.ma.masked_array(X, np.eye(*X.shape, dtype=bool))


def dates(X):
    return np.datetime64("2026-01-01") + X.astype(int)


# What is no matrix of finite numbers.
REFUSED = {
    "None": lambda X: None,
    "text": lambda X: "word2vec",
    "a number": lambda X: 3.5,
    "one row": lambda X: X[0],
    "three axes": lambda X: np.stack([X, X], axis=2),
    "no rows": lambda X: X[:0],
    "no columns": lambda X: X[:, :0],
    "complex": lambda X: X * 1j,
    "words": lambda X: np.full(X.shape, "word"),
    "rows of two lengths": lambda X: [[1.0, 2.0], [1.0]],
    "a table with a column of words": lambda X: pd.DataFrame({"word": IDS, "x": range(N)}),
    "a dictionary": lambda X: {"x": X},
    "a set": lambda X: {1.0, 2.0},
    "a generator": lambda X: (row for row in X),
    "missing numbers": lambda X: pd.DataFrame(X).convert_dtypes().mask(np.eye(N, D) > 0),
    "NaN": with_cell(np.nan),
    "infinity": with_cell(-np.inf, np.float64),
    "NaN of float16": with_cell(np.nan, np.float16),
    "NaN in Fortran order": lambda X: np.asfortranarray(with_cell(np.nan)(X)),
    "NaN in a DataFrame": lambda X: pd.DataFrame(with_cell(np.nan)(X), IDS),
    "NaN in a sparse matrix": lambda X: sparse.csr_matrix(with_cell(np.nan)(X)),
    "NaN in a tensor": lambda X: tensor(with_cell(np.nan)(X)),
    "NaN in rows in files": lambda X: MappedRows([with_cell(np.nan)(X)]),
    "objects with None": with_cell(None, object),
    "objects with a date": with_cell(pd.Timestamp("2026-01-01"), object),
    "objects with a date of NumPy": with_cell(np.datetime64("2026-01-01"), object),
    "objects too large": with_cell(10**400, object),
    "numbers too large": lambda X: X.astype(np.float64) * 1e30,
    "masked cells": masked,
    "a list of masked rows": lambda X: list(masked(X)),
    "dates": dates,
    "spans of time": lambda X: dates(X) - np.datetime64("2025-01-01"),
    "a DataFrame of dates": lambda X: pd.DataFrame(dates(X)),
    "a sparse matrix too large": lambda X: sparse.csr_array((10**6, 10**5)),
}


def fitted(estimator):
    return lambda X, Y: estimator().fit(X, Y).transform(X)


def labelled(X, Y):
    pair = relcore.match(X, Y)
    return pair, np.array(["red", "blue"] * (N // 2))


def stitched(X, Y):
    pair, labels = labelled(X, Y)
    ids = pair.ids
    head = LatentSpace(np.eye(N, D) + np.arange(N)[:, None], ids, labels=labels)
    spec = StitchSpec(("absolute",), n_anchors=8, test_ids=tuple(ids[:TESTED]))
    return relcore.stitch_matrix([head, X, Y], spec).matrix("absolute")[0].shape


def shown(X, Y):
    pytest.importorskip("anywidget")
    widget = relcore.show(X, Y, anchors=0, panes=["absolute"])
    return [pane.coordinates for pane in widget.scene.panes]


def drawn(X, Y):
    pair = relcore.match(X, Y)
    return relcore.panes_of(pair, list(pair.ids[:5])).table().select_dtypes("number").to_numpy()


def matched(X, Y):
    pair = relcore.match(X, Y)
    return pair.source.vectors @ pair.target.vectors.T


def bootstrapped(X, Y):
    return np.array(relcore.bootstrap_anchors(X, Y, n_anchors=5).history[-1].objective)


def universal(X, Y):  # which rows are held out depends on their ids
    return [one.matrix.shape for one in relcore.Universe.fit([X, Y]).members]


def inverted(X, Y):
    anchors = relcore.match(X, Y).ids[:12].tolist()
    spec = relcore.InversionSpec(method="ridge")
    return [relcore.invert(X, Y, anchors, spec).scores["inverse, ridge"]]


def paired(X, Y):
    pair = AlignedPair.of(X, Y, Split.held_out(relcore.match(X, Y).ids))
    return [pair.linear_cka(), pair.neighbours.jaccard(), pair.cosines.mean()]


def migrated(X, Y):
    ids = relcore.match(X, Y).ids
    spec = relcore.Migration(adapter="in-place", sizes=(), n_pairs=30)
    return [len(relcore.migrate(X, Y, spec=spec).pairs), len(ids)]


def saved(X, Y):
    with TemporaryDirectory() as folder:
        for name, rows in (("x.npz", X), ("y.npz", Y)):
            relcore.save_space(rows, f"{folder}/{name}")
        first = relcore.load_space(f"{folder}/x.npz")
        second = relcore.load_space(f"{folder}/y.npz")
    return first.vectors @ second.vectors.T


def versions(X, Y):
    return [relcore.drift(X, Y).rho]


def compared(X, Y):
    anchors = relcore.match(X, Y).ids[:12].tolist()
    found = relcore.compare(X, Y, anchors, k=5, n_queries=None, metrics=["mrr", "cka"])
    return found.table.score.to_numpy()


def on_axis(X, Y):
    ids = relcore.match(X, Y).ids
    return relcore.axis(X, Y, ids[1], [ids[2], ids[3]], random_axes=20).places


# Functions of two spaces (N, D) whose values depend on nothing but their rows. Those that pair the rows:
MEASURES = {
    name: getattr(relcore, name)
    for name in (
        *("angular_cka", "angular_shape", "cycle_knn", "gulp", "jaccard", "kernel_cka", "linear_cka"),
        *("mean_cosine", "mrr", "mutual_knn", "procrustes_similarity", "pwcca", "rsa"),
        *("second_order_cosine", "svcca"),
    )
}
QUICK_PAIRS = {
    **MEASURES,
    "cknna": lambda X, Y: relcore.cknna(X, Y, k=20),
    "linear_cka, debiased": lambda X, Y: relcore.linear_cka(X, Y, debiased=True),
    "AlignedPair": paired,
    "InverseRelativeProjection": fitted(lambda: relcore.InverseRelativeProjection("ridge")),
    "Procrustes": fitted(relcore.Procrustes),
    "Affine": fitted(Affine),
    "LeastSquares": fitted(LeastSquares),
    "RidgeAdapter": fitted(RidgeAdapter),
    "match": matched,
    "invert": inverted,
    "axis": on_axis,
    "compare": compared,
}
LONG_PAIRS = {
    "Universe": universal,
    "drift": versions,
    "migrate": migrated,
    "move_threshold": lambda X, Y: relcore.move_threshold((X, X), (Y, Y)).new_threshold,
    "panes_of": drawn,
    "show": shown,
    "stitch_matrix": stitched,
}
QUICK = {
    **QUICK_PAIRS,
    "LatentSpace": lambda X, Y: LatentSpace(X, IDS).vectors @ LatentSpace(Y, IDS).vectors.T,
    "RelativeProjection": lambda X, Y: RelativeProjection().fit(X, anchors=[0, 1, 2]).transform(Y),
    "RelativeProjection of vectors": lambda X, Y: RelativeProjection().fit(X, anchors=Y).transform(X),
    "RelativeProjection of ids": lambda X, Y: (
        RelativeProjection().fit(X, anchors=relcore.select_anchors(X, 5)).transform(Y)
    ),
    "save_space": saved,
    "select_anchors": lambda X, Y: [len(set(relcore.select_anchors(rows, 5))) for rows in (X, Y)],
}
LONG = {
    **LONG_PAIRS,
    "bootstrap_anchors": bootstrapped,
    "check": lambda X, Y: [len(marked) for rows in (X, Y) for marked in relcore.check(rows).marks.values()],
    "link": lambda X, Y: np.array(relcore.link(X, Y, n_anchors=5).result.history[-1].objective),
}
SOME = ["list", "DataFrame, index of integers", "sparse tensor", "LatentSpace"]
SOME_REFUSED = ["text", "NaN", "masked cells"]
# These take charts, specs of spaces, or files.
OF_NO_ROWS = {
    *("chart_exportable", "example_spaces", "figure_of", "histogram_exportable", "starting_models"),
    *("load_space", "load_words", "read_selection", "layers", "watch", "watch_trainer", "watch_lightning"),
    *("open_run", "open_runs", "compare_runs"),
}


def test_every_public_name_that_takes_rows_is_called():
    functions = {name for name in relcore.__all__ if inspect.isfunction(getattr(relcore, name))}
    assert functions <= OF_NO_ROWS | QUICK.keys() | LONG.keys()


@pytest.fixture(scope="module")
def pair():
    """Numbers that bfloat16 holds, so that each form holds the same: (X, Y) float32."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 9, (N, D)).astype(np.float32)
    X[np.arange(N), np.arange(N) % D] += 16.0
    Y = X[:, ::-1] + rng.integers(0, 2, (N, D))
    return X, Y.astype(np.float32)


@pytest.fixture(autouse=True)
def _few_permutations_without_warnings():
    with warnings.catch_warnings():  # of NumPy, where a list of masked rows becomes an array
        warnings.simplefilter("ignore")
        with fewer_permutations(3):
            yield


def values(result):
    return np.asarray([float(result)] if isinstance(result, float) else result)


def need_same_numbers(call, kinds, pair):
    expected = values(call(*pair))
    for kind in kinds:
        found = values(call(*map(SAME[kind], pair)))
        assert np.array_equal(found, expected, equal_nan=True), kind


def need_refused(call, kinds, pair, sides=(0, 1)):
    for kind in kinds:
        for side in sides:
            given = [REFUSED[kind](rows) if place == side else rows for place, rows in enumerate(pair)]
            with pytest.raises(SpaceError, match=r"(?s)expected .*\bgot\b|hold NaN"):
                pytest.fail(f"{kind}, side {side}: {call(*given)!r:.80}")


@pytest.mark.parametrize("name", QUICK)
def test_rows_in_any_form_give_numbers_of_array(name, pair):
    need_same_numbers(QUICK[name], SAME, pair)


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize("kinds", [SOME, pytest.param(SAME, marks=pytest.mark.slow)], ids=["some", "all"])
def test_rows_in_any_form_give_numbers_of_array_in_long_computations(name, kinds, pair):
    need_same_numbers(LONG[name], kinds, pair)


@pytest.mark.parametrize("name", QUICK)
def test_what_is_no_matrix_of_finite_numbers_is_refused_with_the_fix(name, pair):
    kinds = dict(REFUSED)
    if name == "RelativeProjection of vectors":
        need_refused(QUICK[name], ["None"], pair, sides=[0])  # without anchors, rows are drawn
        kinds.pop("None")
    need_refused(QUICK[name], kinds, pair)


@pytest.mark.parametrize("name", LONG)
@pytest.mark.parametrize(
    "kinds", [SOME_REFUSED, pytest.param(REFUSED, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_long_computations_refuse_what_is_no_matrix(name, kinds, pair):
    need_refused(LONG[name], kinds, pair)


# Rows with ids.


def need_joined(call, kinds, pair):
    X, Y = pair
    expected = values(call(X, Y))
    order = ORDER[::-1]
    for kind in kinds:
        found = values(call(table(kind)(X), table(kind, order)(Y)))
        assert np.array_equal(found, expected, equal_nan=True), kind
    found = values(call(LatentSpace(X, IDS), LatentSpace(Y[order], np.array(IDS)[order])))
    assert np.array_equal(found, expected, equal_nan=True)


@pytest.mark.parametrize("name", QUICK_PAIRS)
def test_rows_with_the_same_ids_in_another_order_are_joined_by_id(name, pair):
    need_joined(QUICK_PAIRS[name], INDEXES, pair)


@pytest.mark.parametrize("name", LONG_PAIRS)
@pytest.mark.parametrize(
    "kinds", [["integers"], pytest.param(INDEXES, marks=pytest.mark.slow)], ids=["some", "all"]
)
def test_long_computations_join_rows_by_id(name, kinds, pair):
    need_joined(LONG_PAIRS[name], kinds, pair)


def numbered(X, index):
    return pd.DataFrame(X).set_axis(pd.Index(index))


NOT_PAIRED = {
    "default index and another order": lambda X, Y: (pd.DataFrame(X), pd.DataFrame(Y).iloc[ORDER]),
    "default index and other numbers": lambda X, Y: (pd.DataFrame(X), numbered(Y, np.arange(N) + 1)),
    "default index and its categories": lambda X, Y: (
        pd.DataFrame(X),
        pd.DataFrame(Y).set_axis(pd.CategoricalIndex(np.arange(N))).iloc[ORDER],
    ),
    "later rows of one table": lambda X, Y: (pd.DataFrame(X)[:-1], pd.DataFrame(Y)[1:]),
    "space without ids and another order": lambda X, Y: (
        relcore.LatentSpace(X, list(map(str, range(N)))),
        pd.DataFrame(Y).iloc[ORDER],
    ),
    "repeated ids in another order": lambda X, Y: (
        numbered(X, np.arange(N) // 2 + 5),
        numbered(Y, np.arange(N)[::-1] // 2 + 5),
    ),
    "no id in common": lambda X, Y: (table("dates")(X), table("levels")(Y)),
}


@pytest.mark.parametrize(
    "kind", [kind for kind in NOT_PAIRED if kind != "space without ids and another order"]
)
@pytest.mark.parametrize("name", QUICK_PAIRS)
def test_rows_that_no_id_pairs_are_refused(name, kind, pair):
    for given in (NOT_PAIRED[kind](*pair), NOT_PAIRED[kind](*pair)[::-1]):
        with pytest.raises(SpaceError, match=r"(?s)expected|share no ids"):
            pytest.fail(f"{QUICK_PAIRS[name](*given)!r:.80}")


@pytest.mark.parametrize("name", LONG_PAIRS)
def test_long_computations_refuse_rows_that_no_id_pairs(name, pair):
    with pytest.raises(SpaceError, match="the same numbers in another order"):
        LONG_PAIRS[name](*NOT_PAIRED["default index and another order"](*pair))


@pytest.mark.parametrize("name", MEASURES)
def test_rows_of_equal_ids_are_paired_even_if_these_repeat(name, pair):
    X, Y = pair
    repeated = [numbered(rows, np.arange(N) // 2) for rows in (X, Y)]
    assert float(MEASURES[name](*repeated)) == float(MEASURES[name](X, Y))


@pytest.mark.parametrize("name", ["linear_cka", "match", "Procrustes"])
def test_some_other_ids_are_not_paired_in_silence(name, pair):
    X, Y = pair
    call = QUICK_PAIRS[name]
    others = [*IDS[:-1], "other"]
    if name == "match":
        assert relcore.match(LatentSpace(X, IDS), LatentSpace(Y, others)).ids.tolist() == IDS[:-1]
        return
    with pytest.raises(SpaceError, match=r"the same ids on both sides, .* match\(\)"):
        call(LatentSpace(X, IDS), LatentSpace(Y, others))


def test_arrays_are_paired_by_row_and_take_ids_of_other_side(pair):
    X, Y = pair
    assert relcore.match(LatentSpace(X, IDS), Y).target.ids.tolist() == IDS
    assert relcore.match(X, pd.DataFrame(Y, index=IDS)).source.ids.tolist() == IDS
    assert relcore.match(X, Y).ids.tolist() == list(map(str, range(N)))
    by_id = relcore.match(pd.DataFrame(X, index=IDS), pd.DataFrame(Y[::-1], index=IDS[::-1]))
    assert np.array_equal(by_id.target.vectors, Y)
    with pytest.raises(SpaceError, match=r"paired by row, expected 59 rows, got 60; make both a LatentSpace"):
        relcore.match(X, Y[: N - 1])


def test_index_becomes_text_that_depends_only_on_the_value(pair):
    X, _ = pair
    index = pd.Index([1.0, 2.5, *range(10, N + 8)])
    assert relcore.match(numbered(X, index), X).ids[:3].tolist() == ["1", "2.5", "10"]
    assert relcore.match(table("levels")(X), X).ids[0] == str((str(ORDER[0] % 3), str(ORDER[0])))
    with pytest.raises(SpaceError, match="expected ids as strings, got None"):
        relcore.match(numbered(X, [None, *range(1, N)]), X)
    with pytest.raises(SpaceError, match=r"each value occurs once, got '0', .*reset_index"):
        relcore.select_anchors(numbered(X, np.arange(N) // 2), 3)


def test_a_column_of_rows_and_key_vectors_are_rows_with_ids():
    X = np.random.default_rng(0).normal(size=(4, 3)).astype(np.float32)
    ids = ["cup", "jug", "pot", "pan"]
    table = pd.DataFrame({"id": ids, "vector": list(X)})

    class KeyedVectors:  # as gensim's
        vectors = X
        index_to_key = ids

    for given in (table.set_index("id")["vector"], KeyedVectors()):
        space = LatentSpace(given)
        assert space.ids.tolist() == ids
        assert np.array_equal(space.vectors, X)
        assert float(relcore.linear_cka(given, X)) == pytest.approx(1)
    for one in (table, pa.Table.from_pandas(table)):
        with pytest.raises(SpaceError, match=r"table\.set_index\('id'\)\['vector'\]"):
            LatentSpace(one)


def test_what_holds_spaces_is_refused_with_what_to_write():
    space = LatentSpace(np.eye(3))
    with pytest.raises(SpaceError, match=r"take one of its 1 spaces or matrices, as spaces\['neck'\]"):
        relcore.match({"neck": space}, space)
    with pytest.raises(SpaceError, match=r"give one of the two spaces, \.source or \.target"):
        relcore.select_anchors(relcore.match(space, space), 2)
