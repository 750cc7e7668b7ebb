"""Maps and scores that follow a moved anchor equal those that are computed again, on both devices."""

from dataclasses import replace

import numpy as np
import pytest

from relcore import LatentSpace, ProjectionSpec, SpaceError, match
from relcore.base.environment import use_device
from relcore.compare.live import LiveComparison
from relcore.compare.live_channel import why_not
from relcore.compare.live_rows import LiveRows, release_other_rows
from relcore.engine.device import NumpyDevice, cached_size, device_of
from relcore.maps.pane_maps import TWO, DrawnUnits, orient_pairs, pca_pair, turn_onto
from relcore.maps.principal_axes import ReductionSpec
from relcore.scores.comparison import class_labels, score_representations

N = 200
KINDS = ("cpu", "torch")
FIRST = ReductionSpec(fit="first")
APART = ReductionSpec()


def pair_of(n=N, widths=(12, 9), seed=0):
    """Two noisy views of the same rows, far from zero."""
    rng = np.random.default_rng(seed)
    hidden = rng.normal(size=(n, 6)) * np.arange(6, 0, -1)
    ids = [f"r{row}" for row in range(n)]
    sides = (hidden @ rng.normal(size=(6, d)) + rng.normal(size=(n, d)) + 3 for d in widths)
    return match(*(LatentSpace(rows.astype(np.float32), ids, name=str(i)) for i, rows in enumerate(sides)))


@pytest.fixture(params=KINDS)
def device(request):
    if request.param == "torch":
        pytest.importorskip("torch")
    with use_device(request.param):
        yield request.param


def fresh(pair, rows, anchors, projection, reduction, reference, representation="relative"):
    maps, _ = pca_pair(pair, rows, representation, tuple(pair.ids[anchors]), projection, reduction)
    if reference is None:
        return maps
    return orient_pairs({representation: (maps, "")}, reference, pair, reduction)[representation][0]


def agree(found, expected, turned):
    """Assert that maps are equal, up to 1e-5 of their size. Unless `turned`, the signs of the axes may
    differ, because no reference decides them."""
    for one, other in zip(found, expected, strict=True):
        if not turned:
            other = other * np.where(np.vecdot(one, other, axis=0) < 0, -1, 1)
        assert np.abs(one - other).max() <= 1e-5 * max(1, np.abs(other).max())


def test_steady_maps_do_not_turn_from_one_to_the_next(device):
    """With random references, maps flip from one to the next. Steady maps are the same maps, but do not flip."""
    pair = pair_of()
    rows = np.arange(N)
    rng = np.random.default_rng(3)
    reference = rng.normal(size=(N, 2)).astype(np.float32)
    held = LiveRows(pair, rows, reference=reference)
    loose = LiveComparison(held, [0, 1, 2])
    steady = LiveComparison(held, [0, 1, 2], steady=True)
    for one, other in zip(steady.maps()["relative"], loose.maps()["relative"], strict=True):
        np.testing.assert_allclose(one, other, atol=1e-5 * np.abs(other).max())  # the drag begins as drawn
    turns = {loose: [], steady: []}
    last = {}
    for row in range(10, 60):
        for live, found in turns.items():
            live.set_anchors([row, 1, 2])
            maps = live.maps()["relative"]
            if live in last:
                found.append(turn_onto(maps[0], last[live]))
            last[live] = maps[0]
            drawn = maps
            if live is loose:
                expected = maps
        turn = turn_onto(expected[0], drawn[0])
        for one, other in zip(drawn, expected, strict=True):  # all spaces turn alike
            shown = (other - other.mean(axis=0)) @ turn
            np.testing.assert_allclose(one - one.mean(axis=0), shown, atol=1e-4 * np.abs(other).max())
    assert max(np.abs(turn - np.eye(2)).max() for turn in turns[steady]) < 1e-3
    assert sum(np.linalg.det(turn) < 0 for turn in turns[loose]) > 2


def test_drags_equal_fresh_maps_and_one_column_is_computed_in_each(device):
    pair = pair_of(widths=(12, 9, 7))
    rng = np.random.default_rng(1)
    rows = np.sort(rng.choice(N, 150, replace=False))
    anchors = list(rng.choice(N, 8, replace=False))
    reference = rng.normal(size=(150, 2)).astype(np.float32)
    for projection, reduction, turned in (
        (ProjectionSpec(), FIRST, reference),
        (ProjectionSpec(center=False), APART, reference),
        (ProjectionSpec(), FIRST, None),
        (ProjectionSpec(ridge=0.1), APART, None),
    ):
        held = LiveRows(pair, rows, projection.center, turned)
        live = LiveComparison(held, anchors, projection, reduction, ("relative", "whitened"))
        before = live.n_columns
        for _ in range(8):
            slot = rng.integers(8)
            row = rng.integers(N)
            if row in anchors:
                continue
            anchors[slot] = int(row)
            live.set_anchors(anchors)
            found = live.maps()
            before += 3
            assert live.n_columns == before
            for representation, maps in found.items():
                expected = fresh(pair, rows, anchors, projection, reduction, turned, representation)
                agree(maps, expected, turned is not None)


@pytest.mark.parametrize("convention", ["paper", "mutual"])
def test_class_agreement_is_that_of_explore(device, convention):
    """The classes follow a coordinate of the space, and a tenth of the rows has no class."""
    pair = pair_of(widths=(9, 9))
    rng = np.random.default_rng(4)
    column = pair.source.vectors[:, 0]
    labels = (column > np.median(column)).astype(str).astype(object)
    labels[rng.permutation(N)[: N // 10]] = ""
    pair = match(pair.source.with_columns(labels=labels), pair.target)
    live = LiveComparison(LiveRows(pair, np.arange(N)), range(12))
    settings = {"n_queries": 60, "convention": convention}
    scores = score_representations(
        pair, ["relative"], pair.ids[:12], ProjectionSpec(), labels=class_labels(pair), **settings
    )
    expected = scores["relative"]["class agreement"]
    assert expected > 0.6
    assert live.scores(**settings).classes == pytest.approx(expected, abs=1e-6)
    assert np.isnan(LiveComparison(LiveRows(pair_of(), np.arange(N)), range(12)).scores().classes)


def test_anchors_that_come_and_go_and_more_anchors_than_columns(device):
    pair = pair_of()
    live = LiveComparison(LiveRows(pair, np.arange(N)), range(3))
    for anchors in ([0, 1, 2, 50], [0, 2, 50], [50], [7], range(20), range(5, 120), [5, 6, *range(8, 120)]):
        live.set_anchors(anchors)
        anchors = list(anchors)
        expected = fresh(pair, np.arange(N), anchors, ProjectionSpec(), FIRST, None)
        agree(live.maps()["relative"], expected, False)
        scores = score_representations(
            pair, ["relative"], tuple(pair.ids[anchors]), ProjectionSpec(), n_queries=50
        )
        found = live.scores(n_queries=50)
        scores = scores["relative"]
        assert found.cka == pytest.approx(scores["cka"], abs=1e-5)
        # by one anchor no row is nearer than another
        if len(anchors) > 1:
            mrr = scores["mrr"]
        else:
            mrr = np.nan
        assert found.mrr == pytest.approx(mrr, abs=1e-5, nan_ok=True)


def cosines(space, rows):
    """The cosines between all rows of a space and some, after centring."""
    unit = space.vectors - space.vectors.mean(axis=0)
    unit /= np.linalg.norm(unit, axis=1, keepdims=True)
    return unit @ unit[rows].T


def test_frame_of_some_rows_lies_on_maps_of_all_and_has_what_is_near(device):
    pair = pair_of()
    shown = np.arange(0, N, 2)
    for reduction in (FIRST, ReductionSpec(align=True)):
        held = LiveRows(pair, np.arange(N))
        representations = ("relative", "whitened")
        live = LiveComparison(
            held, range(6), reduction=reduction, shown=shown, representations=representations
        )
        chosen = np.arange(3, 70, 2)
        some = live.frame(chosen, row=31, k=5)
        whole = live.frame(row=31, k=5)
        for side, space in enumerate((pair.source, pair.target)):
            similar = cosines(space, 31)[shown]
            assert whole.near[side].tolist() == np.argsort(-similar)[:5].tolist()
            assert some.near[side].tolist() == chosen[np.argsort(-similar[chosen])[:5]].tolist()
        for one, other in zip(some.maps, whole.maps, strict=True):
            expected = np.frombuffer(other, "<f2").reshape(2, -1)[:, chosen]
            np.testing.assert_allclose(np.frombuffer(one, "<f2").reshape(2, -1), expected, atol=2e-3)


def test_axes_of_two_anchors_are_similarities_to_them(device):
    pair = pair_of()
    live = LiveComparison(LiveRows(pair, np.arange(N)), [4, 9, 2], representations=(TWO,))
    for side, space in enumerate((pair.source, pair.target)):
        np.testing.assert_allclose(live.maps()[TWO][side], cosines(space, [4, 9]), atol=1e-5)


def test_drag_brings_map_from_device_and_no_row_to_it_but_those_of_anchor(monkeypatch):
    pair = pair_of()
    monkeypatch.setenv("RELSCOPE_DEVICE", "cpu")
    live = LiveComparison(LiveRows(pair, np.arange(N)), range(8))
    live.frame()
    put = []
    products = []
    whole = NumpyDevice.product

    def counted(self, rows, matrix, name):
        products.append((rows.shape, matrix.shape))
        return whole(self, rows, matrix, name)

    monkeypatch.setattr(NumpyDevice, "put", lambda self, array: put.append(array.size) or array)
    monkeypatch.setattr(NumpyDevice, "product", counted)
    live.set_anchors([40, *range(1, 8)])
    frames = live.frame().maps
    assert products == [((2, 12), (12, N)), ((2, 9), (9, N))]  # and no (n, k) matrix
    assert put == [24, 18]  # the weights of the maps, two numbers a column of the space
    assert [len(frame) for frame in frames] == [4 * N, 4 * N]


def test_unit_rows_are_held_once_for_all_and_leave_with_their_spaces(monkeypatch, device):
    release_other_rows(())  # what earlier tests left
    pair = pair_of(seed=11)
    other = pair_of(seed=12)
    made = []
    gathered = type(device_of()).all_on_device
    monkeypatch.setattr(type(device_of()), "all_on_device", lambda *given: made.append(1) or gathered(*given))
    comparisons = [
        LiveComparison(LiveRows(one, np.arange(0, N, 2), units_of=many), range(5))
        for one in (pair, pair, pair_of(seed=11), other)
    ]
    for one in comparisons:
        one.frame()
        one.scores(n_queries=20)
    assert len(made) == 8  # both spaces of two pairs, drawn rows and all rows
    n, n_bytes = cached_size()
    release_other_rows({other.source.digest, other.target.digest})
    numbers = 1.5 * N * (pair.source.dimension + pair.target.dimension)
    assert cached_size() == (n - 4, n_bytes - 4 * numbers)
    comparisons[0].frame()
    assert len(made) == 10  # they come back where they are needed


def many(*given):
    return replace(DrawnUnits.of(*given), few=None)


def test_what_cannot_follow_is_refused():
    held = LiveRows(pair_of(), np.arange(N))
    with pytest.raises(SpaceError, match="anchors: expected one or more"):
        LiveComparison(held, [])
    pair = held.pair
    assert why_not(pair, ProjectionSpec(), APART) == ""
    assert "UMAP" in why_not(pair, ProjectionSpec(), ReductionSpec(method="umap"))
    assert "three dimensions" in why_not(pair, ProjectionSpec(), ReductionSpec(n_components=3))
    assert "the cosine" in why_not(pair, ProjectionSpec(similarity="euclidean"), APART)
