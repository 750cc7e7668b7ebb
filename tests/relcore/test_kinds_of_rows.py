"""Every public function takes rows in every form, with the numbers of an array to the last bit, and refuses
what is none with one sentence that says how to fix it. A new public function needs a line here.

All rows come in by `relcore.base.rows`, so some functions try every form, and every function some.
"""

import inspect
from itertools import product

import numpy as np
import pandas as pd
import pytest
from scipy import sparse

import relcore
from relcore import LatentSpace, RelativeProjection
from relcore.base.errors import SpaceError
from relcore.base.rows import MappedRows
from relcore.migrate.adapters import RidgeAdapter
from relcore.represent.translation import Affine, LeastSquares
from relcore.stitch.stitching import StitchSpec

N = 40
D = 4
IDS = [f"w{row}" for row in range(N)]


def torch_tensor(X):
    torch = pytest.importorskip("torch")
    return torch.tensor(X, requires_grad=True)


def half_tensor(X):
    torch = pytest.importorskip("torch")
    return torch.tensor(X).to(torch.bfloat16)


def sparse_tensor(X):
    return pytest.importorskip("torch").tensor(X).to_sparse()


KINDS = {
    "read-only": lambda X: np.frombuffer(X.tobytes(), X.dtype).reshape(X.shape),
    "Fortran order": np.asfortranarray,
    "list": lambda X: X.tolist(),
    "list of arrays": list,
    "objects": lambda X: X.astype(object),
    "DataFrame": lambda X: pd.DataFrame(X, columns=list("abcd")),
    "DataFrame of nullable numbers": lambda X: pd.DataFrame(X).convert_dtypes(),
    "DataFrame with ids": lambda X: pd.DataFrame(X, index=IDS),
    "tensor": torch_tensor,
    "tensor of bfloat16": half_tensor,
    "sparse tensor": sparse_tensor,
    "sparse matrix": sparse.csr_matrix,
    "sparse array": sparse.coo_array,
    "LatentSpace": lambda X: LatentSpace(X, IDS),
    "LatentSpace without ids": lambda X: LatentSpace(X, list(map(str, range(N)))),
    "rows in files": lambda X: MappedRows([X]),
}


def fitted(estimator):
    return lambda X, Y: estimator().fit(X, Y).transform(X)


def stitched(X, Y):
    ids = relcore.match(X, Y).ids
    labelled = LatentSpace(np.eye(N, D) + np.arange(N)[:, None], ids, labels=["red", "blue"] * (N // 2))
    spec = StitchSpec(("absolute",), n_anchors=8, test_ids=tuple(ids[:20]))
    return relcore.stitch_matrix([labelled, X, Y], spec).matrix("absolute")[0].shape


def shown(X, Y):
    pytest.importorskip("anywidget")
    widget = relcore.show(X, Y, anchors=0, panes=["absolute"])
    return [pane.coordinates for pane in widget.scene.panes]


def matched(X, Y):
    pair = relcore.match(X, Y)
    return pair.source.vectors @ pair.target.vectors.T


def bootstrapped(X, Y):
    return np.array(relcore.bootstrap_anchors(X, Y, n_anchors=5).history[-1].objective)


def universal(X, Y):  # which rows are held out depends on their ids
    return [one.matrix.shape for one in relcore.Universe.fit([X, Y]).members]


# Functions of two spaces (N, D) whose values depend on nothing but their rows.
CALLS = {
    "InverseRelativeProjection": fitted(lambda: relcore.InverseRelativeProjection("ridge")),
    "LatentSpace": lambda X, Y: LatentSpace(X, IDS).vectors @ LatentSpace(Y, IDS).vectors.T,
    "Procrustes": fitted(relcore.Procrustes),
    "RelativeProjection": lambda X, Y: RelativeProjection().fit(X, anchors=[0, 1, 2]).transform(Y),
    "RelativeProjection of vectors": lambda X, Y: RelativeProjection().fit(X, anchors=Y).transform(X),
    "RelativeProjection of ids": lambda X, Y: (
        RelativeProjection().fit(X, anchors=relcore.select_anchors(X, 5)).transform(Y)
    ),
    "Universe": universal,
    "bootstrap_anchors": bootstrapped,
    "check": lambda X, Y: [len(marked) for rows in (X, Y) for marked in relcore.check(rows).marks.values()],
    "jaccard": relcore.jaccard,
    "link": lambda X, Y: np.array(relcore.link(X, Y, n_anchors=5).result.history[-1].objective),
    "linear_cka": relcore.linear_cka,
    "linear_cka, debiased": lambda X, Y: relcore.linear_cka(X, Y, debiased=True),
    "match": matched,
    "mrr": relcore.mrr,
    "select_anchors": lambda X, Y: [int(one.lstrip("w")) for one in relcore.select_anchors(X, 5)],
    "show": shown,
    "stitch_matrix": stitched,
    "Affine": fitted(Affine),
    "LeastSquares": fitted(LeastSquares),
    "RidgeAdapter": fitted(RidgeAdapter),
}
# Measures are called with arrays in tests/relcore/scores; the others take specs, labelled
# spaces, charts or files.
MEASURES = {
    *[
        "angular_cka",
        "angular_shape",
        "cknna",
        "cycle_knn",
        "gulp",
        "kernel_cka",
        "mean_cosine",
        "mutual_knn",
    ],
    *["procrustes_similarity", "pwcca", "rsa", "second_order_cosine", "svcca"],
}
OF_SPECS = {
    *[
        "chart_exportable",
        "drift",
        "example_spaces",
        "figure_of",
        "histogram_exportable",
        "invert",
        "migrate",
    ],
    *["panes_of", "starting_models"],
}
OF_FILES = {"load_space", "load_words", "read_selection"}


@pytest.fixture(scope="module")
def pair():
    """Numbers that bfloat16 holds, so that each form holds the same: (X, Y) float32."""
    rng = np.random.default_rng(0)
    X = rng.integers(-8, 9, (N, D)).astype(np.float32)
    X[np.arange(N), np.arange(N) % D] += 16.0
    Y = X[:, ::-1] + rng.integers(0, 2, (N, D))
    return X, Y.astype(np.float32)


def values(result):
    if isinstance(result, float):
        return float(result)
    return np.asarray(result)


def test_every_public_name_that_takes_rows_is_called():
    functions = {name for name in relcore.__all__ if inspect.isfunction(getattr(relcore, name))}
    assert functions <= MEASURES | OF_FILES | OF_SPECS | set(CALLS)


def combined(kinds, some):
    """(function, form): every form for a function of each kind, some forms for every function."""
    every = product(("match", "mrr", "Procrustes", "select_anchors", "RelativeProjection"), kinds)
    return sorted({*every, *product(CALLS, some)})


SOME = ("list", "DataFrame with ids", "sparse tensor", "LatentSpace")


@pytest.mark.parametrize(("name", "kind"), combined(KINDS, SOME))
def test_rows_in_any_form_give_numbers_of_array(name, kind, pair):
    X, Y = pair
    given = [KINDS[kind](rows) for rows in pair]
    assert np.array_equal(values(CALLS[name](*given)), values(CALLS[name](X, Y)), equal_nan=True)


NO_ROWS = {
    "None": None,
    "text": "word2vec",
    "one row": np.ones(D),
    "three axes": np.ones((N, D, 2)),
    "no rows": np.ones((0, D)),
    "no columns": np.ones((N, 0)),
    "complex": np.ones((N, D)) * 1j,
    "words": np.full((N, D), "word"),
    "rows of two lengths": [[1.0, 2.0], [1.0]],
    "a table with a column of words": pd.DataFrame({"word": IDS, "x": range(N)}),
    "a dictionary": {"x": np.ones(N)},
    "missing numbers": pd.DataFrame(np.ones((N, D))).convert_dtypes().mask(np.eye(N, D) > 0),
    "a sparse matrix too large": sparse.csr_array((10**6, 10**5)),
}


@pytest.mark.parametrize(("name", "kind"), combined(NO_ROWS, ("text", "no rows", "missing numbers")))
@pytest.mark.parametrize("side", [0, 1])
def test_what_is_no_matrix_is_refused_with_the_fix(name, kind, side, pair):
    given = [NO_ROWS[kind] if place == side else rows for place, rows in enumerate(pair)]
    if side == 1 and (name == "select_anchors" or (name, kind) == ("RelativeProjection of vectors", "None")):
        return  # takes one space; draws anchors
    with pytest.raises(SpaceError, match=r"(?s)expected .*\bgot\b"):
        CALLS[name](*given)


@pytest.mark.parametrize(
    "name",
    ["jaccard", "linear_cka", "mrr", "Procrustes", "InverseRelativeProjection", "Affine", "RidgeAdapter"],
)
@pytest.mark.parametrize(
    "form", [lambda X, ids: LatentSpace(X, ids), lambda X, ids: pd.DataFrame(X, index=ids)]
)
def test_rows_of_other_ids_are_not_paired_in_silence(name, form, pair):
    X, Y = pair
    with pytest.raises(SpaceError, match=r"the same ids in the same order .* match\(\)"):
        CALLS[name](form(X, IDS), form(Y, IDS[::-1]))


def test_arrays_are_paired_by_row_and_take_ids_of_other_side(pair):
    X, Y = pair
    assert relcore.match(LatentSpace(X, IDS), Y).target.ids.tolist() == IDS
    assert relcore.match(X, pd.DataFrame(Y, index=IDS)).source.ids.tolist() == IDS
    assert relcore.match(X, Y).ids.tolist() == list(map(str, range(N)))
    by_id = relcore.match(pd.DataFrame(X, index=IDS), pd.DataFrame(Y[::-1], index=IDS[::-1]))
    assert np.array_equal(by_id.target.vectors, Y)
    with pytest.raises(SpaceError, match=r"paired by row, expected 39 rows, got 40; make both a LatentSpace"):
        relcore.match(X, Y[:39])
