"""Every argument of every public function, and of the methods of what they return, given values of other kinds: each
is refused by a RelscopeError, never by an error of a library, and never taken in silence. Rows are tested in
test_kinds_of_rows.py. A new public function needs a line here.
"""

import inspect
import re
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest

import relcore
from relcore import LatentSpace, RelscopeError, SpaceError, SpaceSpec, Split
from relcore.scores.sampled import fewer_permutations

N = 60
IDS = [f"w{row}" for row in range(N)]
X = np.random.default_rng(0).normal(size=(N, 4)).astype(np.float32)
Y = X[:, ::-1] + np.random.default_rng(1).normal(size=X.shape).astype(np.float32) / 3
FIRST = LatentSpace(X, IDS, name="a", labels=["red", "blue"] * 30)
SECOND = LatentSpace(Y, IDS, name="b", labels=["red", "blue"] * 30)
HERE = Path(__file__).parent

# Values, each with the words of annotations that allow it.
KINDS = {
    "array": (lambda: np.arange(3.0), "ndarray MatrixLike Sequence tuple"),
    "array of one": (lambda: np.array([1]), "ndarray MatrixLike Sequence tuple"),
    "array without axes": (lambda: np.array(1), ""),
    "mask": (lambda: np.ones(N, bool), "ndarray MatrixLike Sequence tuple"),
    "DataFrame": (lambda: pd.DataFrame(X), "ndarray MatrixLike LatentSpace"),
    "Series": (lambda: pd.Series(IDS), "ndarray MatrixLike Sequence tuple"),
    "LatentSpace": (lambda: FIRST, "ndarray MatrixLike LatentSpace"),
    "None": (lambda: None, "None"),
    "NaN": (lambda: float("nan"), ""),
    "infinity": (lambda: float("inf"), ""),
    "−1": (lambda: -1, "int float"),
    "0": (lambda: 0, "int float"),
    "10⁹": (lambda: 10**9, "int float"),
    "10⁴⁰⁰": (lambda: 10**400, "int"),
    "a fraction": (lambda: 0.5, "float"),
    "True": (lambda: True, "bool"),
    "a complex number": (lambda: 1j, ""),
    "NA": (lambda: pd.NA, ""),
    "NaT": (lambda: pd.NaT, ""),
    "a text": (lambda: "x", "str Path Literal Strategy Inverse"),
    "an empty text": (lambda: "", "str Path Literal"),
    "a text with a zero byte": (lambda: "a\0b", "str Path"),
    "bytes": (lambda: b"x", ""),
    "[]": (list, "Sequence tuple MatrixLike DatasetOptions CellTexts"),
    "[None]": (lambda: [None], "Sequence tuple MatrixLike"),
    "['x']": (lambda: ["x"], "Sequence tuple Pairs"),
    "[[]]": (lambda: [[]], "Sequence tuple MatrixLike CellTexts"),
    "()": (tuple, "Sequence tuple Pairs DatasetOptions CellTexts"),
    "{}": (dict, "Mapping DatasetOptions"),
    "a set": (lambda: {"x"}, ""),
    "an object": (object, ""),
    "a class": (lambda: KINDS.__class__, "Callable"),
    "a path": (lambda: Path("x"), "Path"),
    "a folder": (lambda: HERE, "Path"),
    "a function": (lambda: len, "Callable"),
}
FEW = ("array", "DataFrame", "NA", "None", "True", "a text", "an object", "10⁴⁰⁰")
CALLER = {"after", "report"}  # functions of the caller, whose own errors are passed on
MEASURES = (
    *("mutual_knn", "cknna", "cycle_knn", "second_order_cosine", "kernel_cka", "angular_cka", "rsa"),
    *("procrustes_similarity", "angular_shape", "svcca", "pwcca", "gulp", "jaccard", "mrr", "mean_cosine"),
)
SEEDS = [(one, one) for one in IDS[:8]]
STITCHING = relcore.StitchSpec(("absolute",), n_anchors=8, test_ids=tuple(IDS[:24]))
LINE = relcore.Line("a", [1, 2], [1.0, 2.0])
PANEL = relcore.MatrixPanel("a", ("b",), ("c",), np.ones((1, 1)))
LINES = relcore.Lines((LINE,), "x", "y")
SPECS = SpaceSpec("file", "a.npz"), SpaceSpec("file", "b.npz")
MIGRATION = relcore.Migration(adapter="in-place", sizes=(), n_pairs=30)


def fitted(kind):
    """A function with the settings of an estimator and the arguments of its `fit` together."""
    settings = inspect.signature(kind).parameters

    def call(**given):
        estimator = kind(**{name: given.pop(name) for name in [*given] if name in settings})
        return estimator.fit(**given)

    call.__signature__ = inspect.Signature(
        [
            inspect.Parameter(one.name, one.KEYWORD_ONLY, annotation=one.annotation)
            for one in (*settings.values(), *inspect.signature(kind.fit).parameters.values())
            if one.name not in ("self", "y")
        ]
    )
    return call


PAIR = {"source": X, "target": Y}
TABLE = {"source": FIRST, "target": SECOND}
# Name → the function, or a function that makes it, and arguments that are right.
CALLS = {
    **{name: (getattr(relcore, name), PAIR) for name in MEASURES},
    "linear_cka": (relcore.linear_cka, {"X": X, "Y": Y}),
    "LatentSpace": (LatentSpace, {"vectors": X}),
    "LatentSpace.rows": (FIRST.rows, {"ids": ["w1"]}),
    "LatentSpace.take": (FIRST.take, {"rows": [1, 2]}),
    "LatentSpace.as_written": (FIRST.as_written, {"ids": ["W1"]}),
    "SpaceSpec": (SpaceSpec, {"source": "file", "name": "a.npz"}),
    "load_space": (relcore.load_space, {"path": "a.npz"}),
    "save_space": (relcore.save_space, {"space": FIRST, "path": "c.npz"}),
    "load_words": (relcore.load_words, {"name_or_path": "a.npz"}),
    "example_spaces": (relcore.example_spaces, {"name": "digits", "finished": None}),
    "starting_models": (relcore.starting_models, {"finished": None}),
    "read_selection": (relcore.read_selection, {"path": "none.json"}),
    "match": (relcore.match, TABLE),
    "Match.pair": (relcore.match(FIRST, SECOND).pair, {}),
    "Split.held_out": (Split.held_out, {"ids": IDS}),
    "Split.draw": (Split.draw, {"ids": IDS}),
    "Split.queries": (Split.draw(IDS).queries, {}),
    "AlignedPair.of": (relcore.AlignedPair.of, {**PAIR, "split": Split.draw(IDS)}),
    "select_anchors": (relcore.select_anchors, {"space": FIRST, "n_anchors": 5}),
    "RelativeProjection": (fitted(relcore.RelativeProjection), {"X": X}),
    "RelativeProjection.fit_from": (
        relcore.RelativeProjection().fit_from,
        {"mean": X[0], "anchors": X[:5], "rows": X},
    ),
    "RelativeProjection.transform": (relcore.RelativeProjection(n_anchors=9).fit(X).transform, {"X": X}),
    "InverseRelativeProjection": (
        fitted(relcore.InverseRelativeProjection),
        {"source_anchors": X[:20], "target_anchors": Y[:20]},
    ),
    "InverseRelativeProjection.relative": (
        relcore.InverseRelativeProjection().fit(X, Y).relative,
        {"X": X},
    ),
    **{name: (fitted(getattr(relcore, name)), PAIR) for name in ("Procrustes", "LeastSquares", "Affine")},
    "Procrustes.transform": (relcore.Procrustes().fit(X, Y).transform, {"X": X}),
    "Procrustes.inverse_transform": (relcore.Procrustes().fit(X, Y).inverse_transform, {"X": Y}),
    **{
        f"adapters.{name}": (fitted(getattr(relcore.adapters, name)), {"new": Y, "old": X})
        for name in ("ProcrustesAdapter", "RidgeAdapter", "WhitenedInverseAdapter", "WhitenedRelativeAdapter")
    },
    "adapters.load": (relcore.adapters.load, {"path": "bridge"}),
    **{
        name: (getattr(relcore, name), {})
        for name in (
            *("ProjectionSpec", "InversionSpec", "StitchSpec", "BootstrapSpec", "UniverseSpec"),
            *("DriftCheck", "Migration", "Thresholds"),
        )
    },
    "invert": (
        relcore.invert,
        {**TABLE, "anchors": IDS[:12], "spec": relcore.InversionSpec(method="ridge")},
    ),
    "stitch_matrix": (relcore.stitch_matrix, {"spaces": [FIRST, SECOND], "spec": STITCHING}),
    "link": (relcore.link, {**TABLE, "n_anchors": 9, "pairs": SEEDS}),
    "bootstrap_anchors": (relcore.bootstrap_anchors, {**TABLE, "n_anchors": 9, "seeds": SEEDS}),
    "Universe.fit": (relcore.Universe.fit, {"spaces": [FIRST, SECOND]}),
    "axis": (relcore.axis, {**TABLE, "start": "w1", "end": ["w2"], "random_axes": 20}),
    "compare": (relcore.compare, {**TABLE, "anchors": 5, "k": 3}),
    "drift": (relcore.drift, {"old": FIRST, "new": SECOND}),
    "migrate": (relcore.migrate, {"old": FIRST, "new": SECOND, "spec": MIGRATION}),
    "move_threshold": (relcore.move_threshold, {"old": (X[:30], X), "new": (Y[:30], Y)}),
    "Passport.of": (relcore.Passport.of, {"space": FIRST}),
    "Passport.check": (relcore.Passport.of(FIRST).check, {"new": SECOND}),
    "Passport.save": (relcore.Passport.of(FIRST).save, {"path": "p.safetensors"}),
    "Passport.load": (relcore.Passport.load, {"path": "p.safetensors"}),
    "Passport.with_fingerprint": (relcore.Passport.of(FIRST).with_fingerprint, {"domains": [X, X, X]}),
    "check": (relcore.check, {"space": FIRST}),
    "show": (relcore.show, {**TABLE, "anchors": 5}),
    "panes_of": (relcore.panes_of, {"pair": relcore.match(FIRST, SECOND), "anchors": IDS[:5]}),
    "figure_of": (relcore.figure_of, {"recipe": "none.json"}),
    "Line": (relcore.Line, {"name": "a", "x": [1, 2], "y": [1.0, 2.0]}),
    "Lines": (relcore.Lines, {"lines": (LINE,), "x_title": "x", "y_title": "y"}),
    "MatrixPanel": (
        relcore.MatrixPanel,
        {"title": "a", "rows": ("b",), "columns": ("c",), "values": np.ones((1, 1))},
    ),
    "Matrices": (relcore.Matrices, {"panels": (PANEL,), "scale": (0, 1), "value_title": "s", "alt": "a"}),
    "chart_exportable": (relcore.chart_exportable, {"chart": LINES}),
    "histogram_exportable": (
        relcore.histogram_exportable,
        {"values_by_name": {"a": X[:, 0]}, "x_title": "x"},
    ),
    "Exportable.filename": (relcore.chart_exportable(LINES).filename, {"kind": "svg"}),
    "Exportable.bytes": (relcore.chart_exportable(LINES).bytes, {"kind": "csv"}),
    "Exportable.save": (relcore.chart_exportable(LINES).save, {"path": "chart.csv"}),
    "DriftChart": (relcore.DriftChart, {"old": SPECS[0], "new": SPECS[1]}),
    "DriftMap": (relcore.DriftMap, {"old": SPECS[0], "new": SPECS[1]}),
    "MigrationChart": (relcore.MigrationChart, {"spaces": SPECS, "migration": MIGRATION}),
    "StitchMatrix": (relcore.StitchMatrix, {"spaces": SPECS}),
    "UniverseChart": (relcore.UniverseChart, {"spaces": SPECS}),
}
# The methods of results that take arguments. A result is computed when its test runs.
OF_RESULTS = {
    "stitch_matrix": {
        **{name: {"method": "absolute"} for name in ("by_state", "matrix", "permuted", "chance_level")},
        **{name: {"method": "absolute", "encoder": 0, "head": 1} for name in ("confusion", "class_scores")},
        "chance": {},
        "report": {},
    },
    "Universe.fit": {
        "map": {"X": X, "name": "a"},
        "translate": {"X": X, "source": "a", "target": "b"},
        "member": {"name": "a"},
        "add": {"space": LatentSpace(X, IDS, name="c")},
        "save": {"path": "u.universe"},
    },
    "drift": {"judged": {"thresholds": relcore.Thresholds()}},
    "migrate": {
        **{name: {} for name in ("table", "order", "decided", "overview", "report")},
        "fitted": {"new": Y, "old": X},
        "option": {"name": "keep"},
        "cost_of": {"option": "keep"},
        "scaled": {"n_corpus": 1000},
        "worst_queries": {"option": "bridge"},
    },
    "check": {"rows": {"ids": IDS}, "report": {}},
}
NO_ARGUMENTS = {"bundled_results"}
# see encode/test_network.py and training/
OF_NETWORKS = {"layers", "watch", "watch_trainer", "watch_lightning", "open_run", "open_runs", "compare_runs"}
# These take long with few of their wrong values, such as 10⁹ steps.
SLOW = {"bootstrap_anchors", "link", "show", "Exportable.bytes", "Exportable.save"}


def test_every_public_function_is_called():
    functions = {name for name in relcore.__all__ if inspect.isroutine(getattr(relcore, name))}
    functions |= {"check", "compare", "drift", "invert", "migrate"}
    assert functions <= CALLS.keys() | NO_ARGUMENTS | OF_NETWORKS


def allowed(annotation, kind):
    text = str(annotation)
    return any(word in text for word in ("Any", "object", *KINDS[kind][1].split()))


def need_refused(function, right, kinds):
    """Call the function with one wrong argument after the other."""
    taken = []
    unclear = []
    for name, parameter in inspect.signature(function).parameters.items():
        if parameter.kind in (parameter.VAR_KEYWORD, parameter.VAR_POSITIONAL):
            continue
        for kind in kinds:
            if name in CALLER and kind in ("a function", "a class"):
                continue
            try:
                function(**{**right, name: KINDS[kind][0]()})
            except RelscopeError as error:
                if not re.search("expected|share no ids|must be|hold|; (choose|read) fewer", str(error)):
                    unclear.append(str(error))
            except Exception as error:
                pytest.fail(f"{name} = {kind}: {type(error).__name__}: {error!s:.100}")
            else:
                if not allowed(parameter.annotation, kind):
                    taken.append((name, kind))
    assert not taken
    assert not unclear


@pytest.fixture(autouse=True)
def _in_a_folder_of_its_own(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    relcore.save_space(FIRST, "a.npz")
    with warnings.catch_warnings(), fewer_permutations(3):
        warnings.simplefilter("ignore")
        yield


@pytest.mark.parametrize("name", [name for name in CALLS if name not in SLOW])
def test_a_wrong_kind_of_argument_is_refused(name):
    need_refused(*CALLS[name], FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", CALLS)
def test_each_wrong_kind_of_argument_is_refused(name):
    need_refused(*CALLS[name], KINDS)


@pytest.mark.parametrize(
    "kinds", [FEW, pytest.param(tuple(KINDS), marks=pytest.mark.slow)], ids=["few", "all"]
)
@pytest.mark.parametrize("name", OF_RESULTS)
def test_a_wrong_kind_of_argument_of_a_result_is_refused(name, kinds):
    function, right = CALLS[name]
    result = function(**right)
    for method, arguments in OF_RESULTS[name].items():
        need_refused(getattr(result, method), arguments, kinds)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (
            lambda: relcore.linear_cka(X, Y, debiased=X),
            r"debiased: expected True or False, got ndarray of shape \(60, 4\)",
        ),
        (
            lambda: relcore.jaccard(X, Y, device=pd.Series(IDS)),
            r"device: expected a text, got Series of shape \(60,\)",
        ),
        (
            lambda: relcore.RelativeProjection(whiten=np.arange(2)).fit(X),
            r"whiten: expected True or False, got ndarray",
        ),
        (lambda: relcore.Procrustes(scale=None).fit(X, Y), "scale: expected True or False, got None"),
        (
            lambda: relcore.jaccard(X, Y, convention="papers"),
            "convention: expected one of mutual, paper, .*did you mean 'paper'",
        ),
        (
            lambda: relcore.stitch_matrix([FIRST, SECOND], STITCHING).matrix("relativ"),
            "method: expected one of absolute, got",
        ),
    ],
)
def test_the_message_names_argument_and_remedy(call, message):
    with pytest.raises(SpaceError, match=message):
        call()


@pytest.mark.parametrize("score", [relcore.mean_cosine, relcore.mrr])
def test_tables_whose_columns_are_in_another_order_are_refused_where_axes_count(score):
    first = pd.DataFrame(X, columns=list("abcd"))
    with pytest.raises(SpaceError, match=r"the same in another order, .* target\[source\.columns\]"):
        score(first, first[list("badc")])
    renamed = float(score(first, first.rename(columns=str.upper)))
    assert renamed == pytest.approx(float(score(X, X)), abs=1e-6)  # the layout decides the last digit
    assert float(relcore.linear_cka(first, first[list("badc")])) == pytest.approx(1)
