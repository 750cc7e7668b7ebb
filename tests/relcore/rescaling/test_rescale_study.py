"""Rescale injection as a study: what cannot see a length is flat, what has one length is unchanged at it."""

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import put_space
from relcore.invert.rescale import InputRescaleSpec, rescale_input
from relcore.represent.similarity import unit_rows
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.tasks.task import task_job


@pytest.fixture
def make_blobs(rng, make_space):
    """Three classes in three directions; all of one length, or of lengths that differ."""

    def make(length=None, n=240):
        classes = np.arange(n) % 3
        X = np.eye(8)[classes] * 2 + 0.5 * rng.normal(size=(n, 8))
        X = length * unit_rows(X.astype(np.float32)) if length else X
        return make_space(X, name="blobs", labels=[f"c{number}" for number in classes])

    return make


def test_a_network_that_normalises_first_is_flat(make_blobs):
    found = rescale_input(make_blobs(), InputRescaleSpec(("layernorm",), 8, 7, (0,)))
    (line,) = found.accuracy["layernorm"]
    assert set(line) == set(found.own["layernorm"])
    assert line[0] > found.chance + 0.3


def test_rows_of_one_length_are_unchanged_at_it(make_blobs):
    found = rescale_input(make_blobs(length=5), InputRescaleSpec(("relu", "cosine"), 16, 9, (0, 1)))
    assert found.mean_length == pytest.approx(5, rel=1e-4)
    assert found.lengths == pytest.approx((5, 5), rel=1e-4)
    assert found.alphas[4] == pytest.approx(5, rel=1e-4)
    for network in ("relu", "cosine"):
        assert [line[4] for line in found.accuracy[network]] == list(found.own[network])
    assert found.curve("cosine")[0].min() < found.curve("relu")[0].min()
    assert found.table()["all at the mean length"].tolist() == [
        np.mean(found.own[name]) for name in ("relu", "cosine")
    ]


def test_rows_that_were_held_out_are_the_ones_tested(make_blobs):
    space = make_blobs()
    held_out = tuple(space.ids[::5])
    spec = InputRescaleSpec(("relu",), 2, 3, (0,), n_rows=100, test_ids=held_out)
    found = rescale_input(space, spec)
    assert (found.n_test, found.n_train) == (20, 80)
    whole = rescale_input(space, InputRescaleSpec(("relu",), 2, 3, (0,), test_ids=held_out))
    assert (whole.n_test, whole.n_train) == (48, 192)


def test_a_job_finds_the_same_and_its_result_comes_back(make_blobs, tmp_path):
    space, store, spec = make_blobs(n=60), Store(tmp_path), InputRescaleSpec(("relu",), 4, 3, (0,))
    task_job(Context("a" * 32, store), task=spec, inputs=[put_space(store, space)])
    assert spec.read(store.get("a" * 32)) == rescale_input(space, spec)


def test_what_cannot_be_is_refused(make_blobs, make_space):
    with pytest.raises(SpaceError, match="'made': expected labels to train networks on, got none"):
        rescale_input(make_space(np.ones((20, 3))))
    with pytest.raises(SpaceError, match="two or more classes, each with several rows, got 1 different"):
        rescale_input(make_space(np.ones((20, 3)), labels=["a"] * 20))
    for settings, message in (
        ({"networks": []}, "networks: expected at least one"),
        ({"networks": ["sine"]}, "networks: expected one of relu, tanh, cosine, layernorm, got 'sine'"),
        ({"span": 1}, "span: expected a factor above 1"),
        ({"n_alphas": 1}, "n_alphas: expected a whole number from 2, got 1"),
        ({"colour": "red"}, "settings: expected settings among 'networks', .*, got 'colour'"),
    ):
        with pytest.raises(SpaceError, match=message):
            records.from_json(InputRescaleSpec, settings)
