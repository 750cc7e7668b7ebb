"""What the app computes and keeps: scores, samples of many rows, files that change, anchors of a new pair."""

import os
from contextlib import nullcontext
from dataclasses import replace
from functools import partial
from threading import Event, Thread
from unittest.mock import Mock, patch

import numpy as np
import pytest
from streamlit.runtime.scriptrunner_utils.exceptions import StopException

from app import compute
from app.session import fit_to_pair
from app.workspace import ScoreSettings
from relcore.catalog.catalog import SpaceSpec
from relcore.files.reading import ReadOptions
from relcore.represent.representations import ProjectionSpec
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from tests.app.conftest import save_space

N = 900
ANCHORS = tuple(f"r{row}" for row in range(30))
X = np.random.default_rng(0).normal(size=(N, 8)).astype(np.float32)


@pytest.fixture
def pair():
    compute.score_differences.clear()
    compute.kept_scores.clear()
    noise = np.random.default_rng(1).normal(size=X.shape)
    ids = [f"r{row}" for row in range(N)]
    return match(LatentSpace(X, ids), LatentSpace(X + 0.5 * noise, ids))


def test_scores_do_not_depend_on_what_is_scored_beside_them(pair):
    def live(representation, **options):
        return compute.live_scores(pair, representation, ScoreSettings(ANCHORS, k=5), **options)

    alone = {name: live(name, alone=True) for name in ("relative", "whitened")}
    compute.kept_scores.clear()
    for representation, scores in alone.items():
        together = live(representation)
        assert scores.keys() == together.keys()
        for name, score in scores.items():
            assert (float(score), score.null) == (float(together[name]), together[name].null)
    assert float(alone["relative"]["cosine"]) != float(alone["whitened"]["cosine"])


@pytest.mark.parametrize(("most", "expected"), [(500, 500 + len(ANCHORS)), (N, N)])
def test_a_change_of_anchors_is_measured_on_a_sample(pair, monkeypatch, most, expected):
    read = []
    measure = compute.anchor_differences

    def counted(pair, *rest, **more):
        read.append(len(pair))
        return measure(pair, *rest, **more)

    monkeypatch.setattr(compute, "anchor_differences", counted)
    monkeypatch.setattr(compute, "DIFFERENCE_ROWS", most)
    assert compute.score_differences(pair, "relative", ANCHORS[:-1], ScoreSettings(ANCHORS, k=5))
    assert read == [expected]


@pytest.mark.parametrize(("most", "same"), [(N * len(ANCHORS), True), (N * len(ANCHORS) - 1, False)])
def test_a_matrix_above_the_limit_is_not_kept(pair, monkeypatch, most, same):
    monkeypatch.setattr(compute, "_MOST_KEPT", most)
    first, again = (compute.represent(pair, "relative", ANCHORS, ProjectionSpec())[0] for _ in range(2))
    assert (first is again) == same
    np.testing.assert_array_equal(first, again)


def write(path, rows, second):
    np.save(path, rows)
    os.utime(path, (second, second))


@pytest.mark.parametrize("added", [0, 1], ids=["the same numbers", "other numbers"])
def test_a_large_file_that_changes_is_read_again(tmp_path, added):
    specs = [SpaceSpec("file", str(tmp_path / f"{name}.npy")) for name in "ab"]
    for spec in specs:
        write(spec.name, X, 1)
    with patch("relcore.catalog.catalog.ReadOptions", partial(ReadOptions, map_from=1)):
        before = compute.matched_models(*specs)
        write(specs[0].name, X + np.float32(added), 2)
        pair = compute.matched_models(*specs)
    np.testing.assert_array_equal(pair.source.vectors, X + np.float32(added))
    np.testing.assert_array_equal(pair.target.vectors, X)
    assert (pair.source.digest == before.source.digest) is (added == 0)


def test_anchors_that_the_user_removed_stay_removed(make_workspace):
    workspace = replace(make_workspace(), anchors=(), anchors_from="")
    assert fit_to_pair(workspace, compute.matched_models(workspace.source, workspace.target)) == workspace


def test_a_choice_needs_no_work(make_session, make_workspace, tmp_path, monkeypatch):
    other = save_space(tmp_path / "other.npz", np.random.default_rng(2).normal(size=(60, 6)))
    session = make_session(spaces=(*make_workspace().spaces, other))
    with monkeypatch.context() as patch:
        patch.setattr(compute, "matched_models", Mock(side_effect=StopException))
        session.change("selectbox", "choose.target", other)
    session.run()
    assert session.workspace.target == other
    assert not session.errors


@pytest.mark.parametrize("before", [10, 200])
def test_the_number_of_anchors_depends_on_the_pair_only(make_workspace, tmp_path, before):
    rows = np.random.default_rng(3).normal(size=(50, 6))
    ends = tuple(save_space(tmp_path / f"{name}.npz", rows, prefix="x") for name in "ab")
    anchors = {"anchors": ("r0",), "anchors_from": f"random {before} 0"}
    opened = make_workspace(source=ends[0], target=ends[1], **anchors)
    fitted = fit_to_pair(opened, compute.matched_models(*ends))
    assert (len(fitted.anchors), fitted.anchors_from) == (10, "random 10 0")


def test_a_run_that_waits_for_another_one_says_so(monkeypatch):
    """Before, the place of the answer was blank while another run computed it."""
    began = Event()
    both = Event()
    told = []

    def spinner(text):
        told.append(text)
        if len(told) == 2:
            both.set()
        return nullcontext()

    @compute.cached(2, "Searching …")
    def search():
        began.set()
        return both.wait(5)

    monkeypatch.setattr(compute.st, "spinner", spinner)
    first = Thread(target=search)
    first.start()
    began.wait(5)
    assert search()
    first.join()
    assert told == ["Searching …"] * 2
    assert search()
    assert len(told) == 2  # a known result is shown at once
