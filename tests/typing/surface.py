"""What type checkers know of every public name, and six mistakes that they must find: `check.py` reads this, nobody
runs it.
"""

from collections.abc import Callable
from pathlib import Path
from typing import Any, assert_type

import numpy as np
from pandas import DataFrame

import relcore as rc
from relcore.base.families import MetricName
from relcore.panes.widget import PanesWidget

X = np.zeros((40, 3), np.float32)
rows = [[1.0, 2.0], [3.0, 4.0]]
space = assert_type(rc.load_space("first.npy", limit=40), rc.LatentSpace)
assert_type(rc.load_words(Path("second.vec")), rc.LatentSpace)
assert_type(rc.LatentSpace(X, ["a"], labels=["b"]).labels, np.ndarray | None)
assert_type(rc.LatentSpace(X).ids, np.ndarray)
assert_type(rc.save_space(space, Path("copy.npz")), None)
assert_type((space.vectors, space.ids, len(space), space.name), tuple[np.ndarray, np.ndarray, int, str])

assert_type(rc.encode(len, ["a text"], batch_size=8), rc.LatentSpace)
assert_type(rc.encode(len, X, layers="conv", folder="rows"), dict[str, rc.LatentSpace])
assert_type(rc.nn.RelativeLayer(X), rc.nn.RelativeLayer)
listed: Callable[..., DataFrame] = rc.layers
watching: Callable[..., rc.Watch] = rc.watch
watching_callbacks: list[Callable[..., Any]] = [rc.watch_trainer, rc.watch_lightning]
explanation = assert_type(rc.explain(space, X, texts=["a"], spec=rc.Explain(k=5)), rc.Explanation)
assert_type((explanation.reasons, explanation.n), tuple[tuple[rc.Reason, ...], int])
axis_chart: Callable[..., rc.AxisChart] = rc.AxisChart
pole_axis: Callable[..., rc.PoleAxis] = rc.PoleAxis
on_axis = assert_type(rc.axis(space, X, "a", ["b"], random_axes=20), rc.AxisPlaces)
choice = assert_type(rc.choose([space, X], spec=rc.Choose(epsilon=0.1)), rc.ModelChoice)
assert_type((choice.best, choice.is_decided), tuple[str, bool])
choice_chart: Callable[..., rc.ChoiceChart] = rc.ChoiceChart
family: Callable[..., rc.FeatureFamily] = rc.FeatureFamily
run = assert_type(rc.open_run(Path("runs/first")), rc.Run)
assert_type((rc.open_runs("runs"), run.rows(0, "conv")), tuple[list[rc.Run], np.ndarray])
assert_type(rc.compare_runs([run, run], rc.TrainingSpec(k=5)), rc.TrainingResult)
training_chart: Callable[..., rc.TrainingChart] = rc.TrainingChart.of

pair = assert_type(rc.match(space, X), rc.Match)
assert_type((pair.source, pair.n_zero), tuple[rc.LatentSpace, int])
anchors = assert_type(rc.select_anchors(rows, 1), np.ndarray)
score = assert_type(rc.linear_cka(space, X, debiased=True), rc.Score)
assert_type(
    (score.k, score.n, score.null, score.describe()), tuple[int | None, int, rc.ChanceLevel | None, str]
)
assert_type([rc.jaccard(X, rows, k=5), rc.mrr(X, space, n_queries=10)], list[rc.Score])

projection = assert_type(
    rc.RelativeProjection(whiten=True).fit(space, anchors=anchors), rc.RelativeProjection
)
assert_type(projection.transform(rows), np.ndarray)
assert_type(projection.anchors_, np.ndarray)
assert_type(projection.set_output(transform="pandas").get_feature_names_out(), np.ndarray)
procrustes = assert_type(rc.Procrustes(scale=False).fit(X, rows), rc.Procrustes)
assert_type((procrustes.matrix_, procrustes.inverse_transform(X)), tuple[np.ndarray, np.ndarray])
inverse = assert_type(rc.InverseRelativeProjection("ridge").fit(X, rows), rc.InverseRelativeProjection)
assert_type((inverse.transform(X), inverse.rank_), tuple[np.ndarray, int])

found = assert_type(rc.bootstrap_anchors(space, X, seeds=[("a", "b")], n_anchors=2), rc.BootstrapResult)
assert_type((found.anchors, found.verdict), tuple[tuple[tuple[str, str], ...], str])
linked = assert_type(rc.link(space, X, [("a", "b")], k=5), rc.Linked)
assert_type((linked.links, linked.map, linked.pair), tuple[DataFrame, rc.Procrustes | rc.Affine, rc.Match])
universe = assert_type(rc.Universe.fit([space, space]), rc.Universe)
assert_type((universe.names, universe.translate(X, "a", "b")), tuple[tuple[str, ...], np.ndarray])
assert_type(rc.Universe.load("words.universe").add(space).table(), DataFrame)
stitched = assert_type(rc.stitch_matrix([space, space]), rc.StitchResult)
assert_type(stitched.matrix("relative"), tuple[np.ndarray, np.ndarray])
assert_type(rc.read_selection("session.json"), rc.Selection)
panes = assert_type(rc.show(space, X, anchors=30), PanesWidget)
panes.selection = ["a"]

assert_type(
    [
        rc.angular_cka(X, space),
        rc.angular_shape(X, space),
        rc.cknna(X, space),
        rc.cycle_knn(X, space),
        rc.gulp(X, space),
        rc.kernel_cka(X, space),
        rc.mutual_knn(X, space),
        rc.procrustes_similarity(X, space),
        rc.pwcca(X, space),
        rc.rsa(X, space),
        rc.second_order_cosine(X, space),
        rc.svcca(X, space),
    ],
    list[rc.Score],
)
assert_type(rc.mean_cosine(X, X), rc.Score)
assert_type(rc.METRICS["mrr"].load()().score(rc.AlignedPair.of(X, X, rc.Split.held_out(["a", "b"]))), Any)
assert_type(rc.METRICS["mrr"], MetricName)
assert_type((rc.LeastSquares().fit(X, rows), rc.Affine().fit(X, rows)), tuple[rc.LeastSquares, rc.Affine])

compared = assert_type(rc.compare(space, X, 40, k=5, metrics=["rsa"]), rc.Comparison)
assert_type((compared.scores["relative"]["mrr"], compared.table), tuple[rc.Score, DataFrame])
change = assert_type(rc.drift(space, X, rc.DriftCheck(k=5)), rc.Drift)
assert_type(change.headline(change.judged(rc.Thresholds())), str)
assert_type(rc.invert(space, X, ["a"], rc.InversionSpec(method="ridge")), rc.Inversion)
assert_type(rc.migrate(space, X, spec=rc.Migration(adapter="ridge")), rc.MigrationResult)
assert_type(rc.move_threshold((X, X), (X, space), 0.5), rc.MovedThreshold)
assert_type(rc.adapters.load("bridge").transform(X), np.ndarray)
assert_type(rc.Passport.of(space).check(X), rc.PassportChange)
assert_type(rc.check(X, trusted=space, known=[rc.Passport.of(space)]), rc.Checked)
specs = assert_type(rc.example_spaces("digits", rc.bundled_results())[0], list[rc.SpaceSpec])
assert_type((rc.bundled_results(), specs[0].load()), tuple[rc.BundledResults, rc.LatentSpace])
assert_type(rc.starting_models(rc.bundled_results()), tuple[rc.SpaceSpec, rc.SpaceSpec] | None)
assert_type([rc.ProjectionSpec(center=False)], list[rc.ProjectionSpec])
assert_type([rc.BootstrapSpec(n_anchors=3)], list[rc.BootstrapSpec])
assert_type([rc.StitchSpec(n_anchors=3), rc.StitchSpec()], list[rc.StitchSpec])
assert_type([rc.UniverseSpec()], list[rc.UniverseSpec])

figures = [rc.panes_of(pair, ["a"]), rc.figure_of("panes.pdf"), rc.histogram_exportable({"a": X[0]}, "norm")]
figures += [rc.chart_exportable(rc.Lines((rc.Line("a", [1, 2], [0.1, 0.2]),), "x", "y"))]
figures += [
    rc.chart_exportable(rc.Matrices((rc.MatrixPanel("a", ("b",), ("c",), X),), (0, 1), "score", "alt"))
]
figures += [rc.ReasonsChart(spaces=(specs[0], specs[1])).draw(explanation)]
figures += [rc.DriftChart(old=specs[0], new=specs[1]).draw(change)]
figures += [rc.DriftMap(old=specs[0], new=specs[1]).draw()]
figures += [
    rc.UniverseChart(spaces=tuple(specs)).draw(universe),
    rc.StitchMatrix(spaces=tuple(specs)).draw(stitched),
]
figures += [rc.MigrationChart(spaces=tuple(specs), migration=rc.Migration()).draw()]
assert_type(figures, list[rc.Exportable])
try:
    rc.load_space("none.npy")
except rc.SpaceError as error:
    assert_type(str(error), str)
assert_type([rc.RelscopeError("no")], list[rc.RelscopeError])

rc.linear_cka("first.npy", X)  # mistake: a path is no matrix
rc.mrr(X, X, neighbours=5)  # mistake: the keyword is k
rc.select_anchors(space)  # mistake: how many is missing
print(pair.overlap)  # mistake: a match has no such attribute
rc.Procrustes().fit(X, None)  # mistake: there is no target
ids: list[str] = rc.linear_cka(X, X)  # mistake: a score is a number
