"""What type checkers know of every public name: `check.py` reads this, nobody runs it."""

from pathlib import Path
from typing import Any, assert_type

import numpy as np
from pandas import DataFrame

from relcore import (
    METRICS,
    Affine,
    AlignedPair,
    BootstrapSpec,
    DriftChart,
    DriftCheck,
    InverseRelativeProjection,
    InversionSpec,
    LatentSpace,
    LeastSquares,
    Line,
    Lines,
    Matrices,
    MatrixPanel,
    Migration,
    MigrationChart,
    Passport,
    Procrustes,
    ProjectionSpec,
    RelativeProjection,
    Score,
    SpaceError,
    SpaceSpec,
    Split,
    StitchMatrix,
    StitchSpec,
    Thresholds,
    Universe,
    UniverseChart,
    UniverseSpec,
    adapters,
    angular_cka,
    angular_shape,
    bootstrap_anchors,
    bundled_results,
    chart_exportable,
    check,
    cknna,
    cycle_knn,
    drift,
    example_spaces,
    figure_of,
    gulp,
    histogram_exportable,
    invert,
    jaccard,
    kernel_cka,
    linear_cka,
    link,
    load_space,
    load_words,
    match,
    mean_cosine,
    migrate,
    mrr,
    mutual_knn,
    panes_of,
    procrustes_similarity,
    pwcca,
    read_selection,
    rsa,
    second_order_cosine,
    select_anchors,
    show,
    starting_models,
    stitch_matrix,
    svcca,
)
from relcore.base.names import MetricName
from relcore.drift.check import Drift
from relcore.figures.export import Exportable
from relcore.files.selections import Selection
from relcore.invert.inversion import Inversion
from relcore.linking.bootstrap import BootstrapResult
from relcore.linking.link import Linked
from relcore.migrate.migration import MigrationResult
from relcore.panes.widget import PanesWidget
from relcore.passport.check import Checked
from relcore.passport.passport import Change
from relcore.runs.entries import BundledResults
from relcore.scores.score import ChanceLevel
from relcore.spaces.space import Match
from relcore.stitch.stitching import StitchResult

X, rows = np.zeros((40, 3), np.float32), [[1.0, 2.0], [3.0, 4.0]]
space = assert_type(load_space("first.npy", limit=40), LatentSpace)
assert_type(load_words(Path("second.vec")), LatentSpace)
assert_type(LatentSpace(X, ["a"], labels=["b"]).labels, np.ndarray | None)
assert_type((space.vectors, space.ids, len(space), space.name), tuple[np.ndarray, np.ndarray, int, str])

pair = assert_type(match(space, X), Match)
assert_type((pair.source, pair.n_zero), tuple[LatentSpace, int])
anchors = assert_type(select_anchors(rows, 1), np.ndarray)
score = assert_type(linear_cka(space, X, debiased=True), Score)
assert_type((score.k, score.n, score.null, score.describe()), tuple[int | None, int, ChanceLevel | None, str])
assert_type([jaccard(X, rows, k=5), mrr(X, space, n_queries=10)], list[Score])

projection = assert_type(RelativeProjection(whiten=True).fit(space, anchors=anchors), RelativeProjection)
assert_type(projection.transform(rows), np.ndarray)
assert_type(projection.anchors_, np.ndarray)
assert_type(projection.set_output(transform="pandas").get_feature_names_out(), np.ndarray)
procrustes = assert_type(Procrustes(scale=False).fit(X, rows), Procrustes)
assert_type((procrustes.matrix_, procrustes.inverse_transform(X)), tuple[np.ndarray, np.ndarray])
inverse = assert_type(InverseRelativeProjection("ridge").fit(X, rows), InverseRelativeProjection)
assert_type((inverse.transform(X), inverse.rank_), tuple[np.ndarray, int])

found = assert_type(bootstrap_anchors(space, X, seeds=[("a", "b")], n_anchors=2), BootstrapResult)
assert_type((found.anchors, found.verdict), tuple[tuple[tuple[str, str], ...], str])
linked = assert_type(link(space, X, [("a", "b")], k=5), Linked)
assert_type((linked.links, linked.map, linked.pair), tuple[DataFrame, Procrustes | Affine, Match])
universe = assert_type(Universe.fit([space, space]), Universe)
assert_type((universe.names, universe.translate(X, "a", "b")), tuple[tuple[str, ...], np.ndarray])
assert_type(Universe.load("words.universe").add(space).table(), DataFrame)
stitched = assert_type(stitch_matrix([space, space]), StitchResult)
assert_type(stitched.matrix("relative"), tuple[np.ndarray, np.ndarray])
assert_type(read_selection("session.json"), Selection)
panes = assert_type(show(space, X, anchors=30), PanesWidget)
panes.selection = ["a"]

assert_type(
    [
        angular_cka(X, space),
        angular_shape(X, space),
        cknna(X, space),
        cycle_knn(X, space),
        gulp(X, space),
        kernel_cka(X, space),
        mutual_knn(X, space),
        procrustes_similarity(X, space),
        pwcca(X, space),
        rsa(X, space),
        second_order_cosine(X, space),
        svcca(X, space),
    ],
    list[Score],
)
assert_type(mean_cosine(X, X), Score)
assert_type(METRICS["mrr"].load()().score(AlignedPair.of(X, X, Split.held_out(["a", "b"]))), Any)
assert_type(METRICS["mrr"], MetricName)
assert_type((LeastSquares().fit(X, rows), Affine().fit(X, rows)), tuple[LeastSquares, Affine])

change = assert_type(drift(space, X, DriftCheck(k=5)), Drift)
assert_type(change.headline(change.judged(Thresholds())), str)
assert_type(invert(space, X, ["a"], InversionSpec(method="ridge")), Inversion)
assert_type(migrate(space, X, spec=Migration(adapter="ridge")), MigrationResult)
assert_type(adapters.load("bridge").transform(X), np.ndarray)
assert_type(Passport.of(space).check(X), Change)
assert_type(check(X, trusted=space, known=[Passport.of(space)]), Checked)
specs = assert_type(example_spaces("digits", bundled_results())[0], list[SpaceSpec])
assert_type((bundled_results(), specs[0].load()), tuple[BundledResults, LatentSpace])
assert_type(starting_models(bundled_results()), tuple[SpaceSpec, SpaceSpec] | None)
assert_type([ProjectionSpec(center=False)], list[ProjectionSpec])
assert_type([BootstrapSpec(n_anchors=3)], list[BootstrapSpec])
assert_type([StitchSpec(n_anchors=3), StitchSpec()], list[StitchSpec])
assert_type([UniverseSpec()], list[UniverseSpec])

figures = [panes_of(pair, ["a"]), figure_of("panes.pdf"), histogram_exportable({"a": X[0]}, "norm")]
figures += [chart_exportable(Lines((Line("a", [1, 2], [0.1, 0.2]),), "x", "y"))]
figures += [chart_exportable(Matrices((MatrixPanel("a", ("b",), ("c",), X),), (0, 1), "score", "alt"))]
figures += [DriftChart(old=specs[0], new=specs[1]).draw(change)]
figures += [
    UniverseChart(spaces=tuple(specs)).draw(universe),
    StitchMatrix(spaces=tuple(specs)).draw(stitched),
]
figures += [MigrationChart(spaces=tuple(specs), migration=Migration()).draw()]
assert_type(figures, list[Exportable])
try:
    load_space("none.npy")
except SpaceError as error:
    assert_type(str(error), str)
