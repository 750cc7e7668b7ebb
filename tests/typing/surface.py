"""What type checkers know of every public name: `check.py` reads this, nobody runs it."""

from collections.abc import Iterator
from pathlib import Path
from typing import assert_type

import numpy as np
from pandas import DataFrame

from relcore import (
    InverseRelativeProjection,
    LatentSpace,
    Procrustes,
    RelativeProjection,
    Universe,
    bootstrap_anchors,
    jaccard,
    linear_cka,
    link,
    load_space,
    load_words,
    match,
    mrr,
    read_selection,
    read_selections,
    select_anchors,
    show,
    stitch_matrix,
)
from relcore.linking.bootstrap import BootstrapResult
from relcore.linking.link import Linked
from relcore.panes.widget import PanesWidget
from relcore.represent.translation import Affine
from relcore.scores.score import ChanceLevel, Score
from relcore.spaces.selections import Selection
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
assert_type(read_selections(["{}"]), Iterator[Selection])
panes = assert_type(show(space, X, anchors=30), PanesWidget)
panes.selection = ["a"]
