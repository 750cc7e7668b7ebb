"""Arguments of public functions that no computation can use are refused with one sentence. Rows are tested in
test_kinds_of_rows.py."""

import numpy as np
import pytest
from sklearn.base import clone

import relcore
from relcore import AlignedPair, InverseRelativeProjection, RelativeProjection, Split
from relcore.base.arguments import need_number, row_numbers
from relcore.base.errors import SpaceError
from relcore.compare.clusters import dense_clusters
from relcore.represent.inverse import MOST_PRUNINGS
from relcore.represent.representations import MethodSettings
from relcore.scores.cka import OwnMoments

N = 60
X = np.random.default_rng(0).normal(size=(N, 5)).astype(np.float32)
Y = X[:, ::-1] + 1
IDS = [f"row {row}" for row in range(N)]
SPLIT = Split.held_out(IDS, range(10))
BROKEN = np.where(np.eye(*X.shape) > 0, np.nan, X)
MEASURES = [relcore.rsa, relcore.linear_cka, relcore.angular_cka, relcore.cknna]


def project(**settings):
    fit = {name: settings.pop(name) for name in ("anchors", "mean") if name in settings}
    return lambda: RelativeProjection(**settings).fit(X, **fit)


def inverse(**settings):
    return lambda: InverseRelativeProjection(**settings).fit(X, Y)


def link(*pairs, **settings):
    return lambda: relcore.link(X, Y, *pairs, **settings)


WRONG = {
    # neighbours
    "k is no number": lambda: relcore.mrr(X, Y, k=True),
    "k of a measure": lambda: relcore.cknna(X, Y, k=2.5),
    "queries of −1": lambda: relcore.jaccard(X, Y, queries=[-1]),
    "queries beyond the rows": lambda: relcore.jaccard(X, Y, queries=[N]),
    "queries twice": lambda: relcore.mrr(X, Y, queries=np.array([3, 3])),
    "a mask of queries": lambda: relcore.jaccard(X, Y, queries=np.arange(N) < 9),
    "queries of fractions": lambda: relcore.jaccard(X, Y, queries=[0.0, 1.0]),
    "no queries": lambda: relcore.jaccard(X, Y, queries=[]),
    "half a query": lambda: relcore.jaccard(X, Y, n_queries=2.5),
    "a seed of −1": lambda: relcore.jaccard(X, Y, n_queries=5, random_state=-1),
    "an unknown device": lambda: relcore.jaccard(X, Y, device="abacus"),
    "an unknown convention": lambda: relcore.jaccard(X, Y, convention="both"),
    # measures
    "a bandwidth of text": lambda: relcore.kernel_cka(X, Y, bandwidth="wide"),
    "a share of None": lambda: relcore.svcca(X, Y, share=None),
    "a ridge of text": lambda: relcore.gulp(X, Y, ridge="x"),
    "an infinite ridge": lambda: relcore.gulp(X, Y, ridge=np.inf),
    "most_rows of text": lambda: relcore.rsa(X, Y, most_rows="all"),
    "moments of others": lambda: relcore.linear_cka(X, Y, own=(OwnMoments.of(X[:9]),) * 2),
    "widths": lambda: relcore.mean_cosine(X, Y[:, :3]),
    # pairs and splits
    "a pair without split": lambda: AlignedPair.of(X, Y, None),
    "a pair with other rows": lambda: AlignedPair.of(X[1:], Y[1:], SPLIT),
    "a pair with NaN": lambda: AlignedPair.of(X, BROKEN, SPLIT),
    "a pair with other ids": lambda: AlignedPair.of(relcore.LatentSpace(X, IDS[::-1]), Y, SPLIT),
    "labels of a pair": lambda: AlignedPair.of(X, Y, SPLIT, ["red"]),
    "anchors beyond the rows": lambda: Split.draw(IDS, anchors=[120]),
    "an anchor of −1": lambda: Split.held_out(IDS, [-1]),
    "anchors of fractions": lambda: Split.held_out(IDS, anchors=[1.5]),
    "anchors by name": lambda: Split.held_out(IDS, anchors=["row 1"]),
    "a mask of anchors": lambda: Split.draw(IDS, anchors=np.arange(N) < 9),
    "anchors of None": lambda: Split.draw(IDS, anchors=None),
    "ids of a number": lambda: Split.held_out(5),
    "a share of text": lambda: Split.draw(IDS, test_fraction="half"),
    "too few labels": lambda: Split.draw(IDS, labels=["red"]),
    "queries of a split": lambda: SPLIT.queries(2.5),
    # anchors and estimators
    "no number of anchors": lambda: relcore.select_anchors(X, None),
    "True anchors": lambda: relcore.select_anchors(X, True),
    "a pool of text": lambda: relcore.select_anchors(X, 3, pool="all"),
    "an anchor seed of −1": lambda: relcore.select_anchors(X, 3, random_state=-1),
    "a projection seed of −1": project(random_state=-1),
    "a projection of True anchors": project(n_anchors=True),
    "anchor vectors with NaN": project(anchors=BROKEN[:9]),
    "anchor rows of fractions": project(anchors=[1.5]),
    "a mean of text": project(anchors=[0, 1], mean="mean"),
    "a mean with NaN": project(anchors=[0, 1], mean=BROKEN[0]),
    "a mean of another width": project(anchors=[0, 1], mean=np.zeros(3)),
    "a projection ridge of text": project(whiten=True, ridge="x"),
    "a threshold of text": project(similarity="quantised", threshold="x"),
    "an inverse ridge of text": inverse(method="ridge", ridge="x"),
    "a δ of text": inverse(delta="x"),
    "more prunings than the bound": inverse(omega=MOST_PRUNINGS + 1),
    "prunings of a fraction": inverse(omega=1.5),
    "an inverse seed of −1": inverse(random_state=-1),
    "prunings of a method": lambda: MethodSettings(omega=10**9),
    "masked row numbers": lambda: relcore.jaccard(X, Y, queries=np.ma.masked_equal([1, 2], 2)),
    "a masked mean": project(anchors=[0, 1], mean=np.ma.masked_less(X[0], 0)),
    "a strategy that is a list": lambda: relcore.select_anchors(X, 3, ["random"]),
    "a method that is an array": inverse(method=np.arange(3)),
    "a row to subtract": lambda: relcore.Procrustes().fit(X, Y).transform(X, less="x"),
    # spaces and files
    "no ids of a space": lambda: relcore.LatentSpace(X, 5),
    "labels that are a text": lambda: relcore.LatentSpace(X, IDS, labels="x" * N),
    "masked counts": lambda: relcore.LatentSpace(X, IDS, counts=np.ma.masked_less(np.arange(N), 3)),
    "a payload of a number": lambda: relcore.LatentSpace(X, IDS, payload=5),
    "rows of a number": lambda: relcore.LatentSpace(X, IDS).rows(5),
    "a file of a number": lambda: relcore.load_space(5),
    "words of None": lambda: relcore.load_words(None),
    "half a word": lambda: relcore.load_words("word2vec-novels", limit=[1]),
    "a selection of None": lambda: relcore.read_selection(None),
    "a figure of a number": lambda: relcore.figure_of(5),
    "a passport of a number": lambda: relcore.Passport.of(5),
    "a source of a list": lambda: relcore.SpaceSpec([], "a"),
    "options of a number": lambda: relcore.SpaceSpec("file", "a", options=5),
    # charts
    "a line of texts": lambda: relcore.Line("a", [1, 2], ["x", "y"]),
    "a line of dates": lambda: relcore.Line("a", np.array(["2026-01-01"], "M8[D]"), [1]),
    "lines of numbers": lambda: relcore.Lines([1], "x", "y"),
    "a scale of one": lambda: relcore.Matrices((), [1], "score", "alt"),
    "a histogram of texts": lambda: relcore.histogram_exportable({"a": ["x"]}, "x"),
    "a histogram of masked cells": lambda: relcore.histogram_exportable(
        {"a": np.ma.masked_less(X[0], 0)}, "x"
    ),
    "no chart": lambda: relcore.chart_exportable(None),
    # studies of two spaces
    "inversion anchors of a number": lambda: relcore.invert(X, Y, 5),
    "inversion anchors of row numbers": lambda: relcore.invert(X, Y, [0, 1, 2]),
    "one text as anchors": lambda: relcore.invert(X, Y, "row 1"),
    "an inversion spec": lambda: relcore.invert(X, Y, ["0", "1"], 5),
    "a drift spec": lambda: relcore.drift(X, Y, 5),
    "a migration spec": lambda: relcore.migrate(X, Y, spec=5),
    "migration queries": lambda: relcore.migrate(X, Y, queries=X),
    "a stitching spec": lambda: relcore.stitch_matrix([X, Y], 5),
    "one matrix to stitch": lambda: relcore.stitch_matrix(X),
    "one matrix in a universe": lambda: relcore.Universe.fit(X),
    "a universe of None": lambda: relcore.Universe.fit(None),
    "known passports": lambda: relcore.check(X, known=[5]),
    "a check seed of −1": lambda: relcore.check(X, random_state=-1),
    "a pair of panes": lambda: relcore.panes_of(X, ["0"]),
    "link pairs of a number": link(5),
    "link pairs of texts": link(["ab", "cd", "ef"]),
    "link k": link(k="x"),
    "link precision": link(precision="x"),
    "link seed of −1": link(random_state=-1),
    "link anchors": link(n_anchors=2.5),
}


@pytest.mark.parametrize("case", WRONG)
def test_wrong_argument_is_refused_in_one_sentence(case):
    with pytest.raises(SpaceError, match=r"(?s)expected .*\bgot\b"):
        pytest.fail(f"{WRONG[case]()!r:.80}")


@pytest.mark.parametrize("measure", MEASURES)
@pytest.mark.parametrize(
    "ids",
    [IDS[:-1], [*IDS[:-1], IDS[0]], [*IDS[:-1], ""], [*IDS[:-1], None], [*IDS[:-1], 0.5], 5, "row 1"],
    ids=["too few", "repeated", "empty", "None", "a fraction", "a number", "a text"],
)
def test_ids_of_scores_are_checked(measure, ids):
    with pytest.raises(SpaceError, match=r"ids.*(expected|must be distinct)"):
        measure(X, Y, ids=ids)


def test_ids_of_scores_may_be_any_list_of_texts():
    expected = float(relcore.rsa(X, Y, ids=IDS))
    for ids in (tuple(IDS), np.array(IDS), relcore.LatentSpace(X, IDS).ids):
        assert float(relcore.rsa(X, Y, ids=ids)) == expected


def test_moments_that_are_known_need_rows_in_one_order():
    own = OwnMoments.of(X), OwnMoments.of(Y)
    assert float(relcore.linear_cka(X, Y, own=own)) == float(relcore.linear_cka(X, Y))
    spaces = relcore.LatentSpace(X, IDS), relcore.LatentSpace(Y[::-1], IDS[::-1])
    with pytest.raises(SpaceError, match="own: expected moments of rows in one order"):
        relcore.linear_cka(*spaces, own=own)


def test_whole_numbers_of_numpy_are_numbers():
    assert relcore.mrr(X, Y, k=np.int64(5)).k == 5
    RelativeProjection(n_anchors=np.int32(3), ridge=np.float32(0.5), whiten=True).fit(X)
    InverseRelativeProjection(omega=np.int16(2), delta=np.float32(0.1)).fit(X, Y)
    clone(RelativeProjection(random_state=np.random.default_rng(0).bit_generator.seed_seq.entropy)).fit(X)


@pytest.mark.parametrize(
    ("bounds", "message"),
    [
        ({"low": 1, "whole": True}, "a: expected a whole number of 1 or more, got 0"),
        ({"low": 1, "high": 9, "whole": True}, "a: expected a whole number from 1 to 9, got 0"),
        ({"above": 0}, "a: expected a number above 0, got 0"),
        ({"above": 0, "high": 1}, "a: expected a number above 0 and at most 1, got 0"),
    ],
)
def test_message_names_the_bounds(bounds, message):
    with pytest.raises(SpaceError, match=f"^{message}$"):
        need_number("a", 0, **bounds)


def test_row_numbers_keep_their_order():
    assert row_numbers("rows", [4, 0, 2], 5).tolist() == [4, 0, 2]
    assert row_numbers("rows", (), 5).dtype == np.int64
    with pytest.raises(SpaceError, match=r"got a mask; numpy\.flatnonzero turns"):
        row_numbers("rows", [True, False], 2)


@pytest.mark.parametrize("n", [1, 2, 3, 9])
def test_few_rows_lie_in_no_dense_cluster(n):
    assert dense_clusters(X[:n]).tolist() == [-1] * n


def test_masked_points_of_a_line_are_gaps():
    line = relcore.Line("a", [1, 2], np.ma.masked_equal([3.0, 4.0], 4))
    assert line.y[0] == 3
    assert np.isnan(line.y[1])
