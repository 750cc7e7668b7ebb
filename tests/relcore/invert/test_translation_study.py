"""The translation study where the answer is known, a rotation; bad input is told."""

import json

import numpy as np
import pandas as pd
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import put_space
from relcore.catalog.task import task_job
from relcore.invert.inversion import Translation, TranslationSpec, translate_all
from relcore.represent.translation import InverseRelativeProjection, recovered
from relcore.runs.progress import Context
from relcore.runs.store import Store

ANCHORS = [f"r{row}" for row in range(60)]
WAYS = ("absolute", "irp-pruned", "irp-ridge", "procrustes")


@pytest.fixture
def vectors(rng):
    return rng.normal(size=(300, 12)).astype(np.float32)


@pytest.fixture
def rotated(vectors, rng, make_space):
    rotation, _ = np.linalg.qr(rng.normal(size=(12, 12)))
    labels = [str(row.argmax() // 4) for row in vectors]
    return [
        make_space(vectors, name="own", labels=labels),
        make_space(vectors @ rotation, name="rotated", labels=labels),
    ]


def test_a_rotation_comes_through_whole(rotated):
    found = translate_all(rotated, ANCHORS, TranslationSpec(WAYS, settings=settings(delta=0.0)))
    assert (found.n, found.n_anchors) == (240, 60)
    for way in ("irp-pruned", "procrustes"):
        np.testing.assert_allclose(found.matrix(way, "cosine"), 1, atol=1e-3)
        np.testing.assert_allclose(found.matrix(way, "mrr"), 1)
        np.testing.assert_allclose(found.matrix(way, "jaccard"), 1, atol=0.03)
        np.testing.assert_allclose(found.matrix(way, "accuracy"), [found.own] * 2, atol=0.021)
    absolute = found.matrix("absolute", "mrr")
    assert absolute.diagonal().tolist() == [1, 1]
    assert absolute[0, 1] < 0.2


def settings(**changes):
    return TranslationSpec().settings.__class__(**changes)


def test_the_cosine_is_that_of_the_inverse_itself(rotated, vectors, rng, make_space):
    noisy = make_space(rotated[1].vectors + 0.3 * rng.normal(size=(300, 12)), name="noisy")
    spec = TranslationSpec(("irp-pruned",), settings=settings(delta=0.5, omega=3), random_state=4)
    found = translate_all([rotated[0], noisy], ANCHORS, spec).matrix("irp-pruned", "cosine")[0, 1]
    means = {"source_mean": vectors.mean(axis=0), "target_mean": noisy.vectors.mean(axis=0)}
    inverse = InverseRelativeProjection("pruned", 3, 0.5, random_state=4).fit(
        vectors[:60], noisy.vectors[:60], **means
    )
    true = recovered(inverse.transform(vectors[60:]), noisy.vectors[60:], means["target_mean"])
    assert found == pytest.approx(true["cosine"].mean(), abs=1e-5)


def test_a_job_finds_the_same_and_its_result_comes_back_from_json(rotated, tmp_path):
    spec, store, told = TranslationSpec(("absolute", "irp-whitened")), Store(tmp_path), []
    context = Context("0" * 32, store)
    context.report = lambda done, total, message: told.append((done, total, message))
    task = Translation(tuple(ANCHORS), spec)
    task_job(context, task=task, inputs=[put_space(store, space) for space in rotated])
    again, expected = task.read(store.get("0" * 32)), translate_all(rotated, ANCHORS, spec)
    pd.testing.assert_frame_equal(again.table(), expected.table())
    for name in ("spec", "names", "n", "n_test", "own"):
        assert getattr(again, name) == getattr(expected, name)
    assert [done for done, _, _ in told] == [0, 1, 2, 3, 4]
    assert told[1] == (1, 4, "own to rotated")
    assert records.from_json(TranslationSpec, json.loads(json.dumps(records.to_json(spec)))) == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda s: s[:1], "expected two spaces or more to translate between, got 1"),
        (
            lambda s: [s[0].take(np.arange(66)), s[1]],
            r"more than k = 10 shared rows .* got 6 of 66; choose fewer anchors",
        ),
    ],
)
def test_spaces_that_cannot_be_translated(rotated, change, message):
    with pytest.raises(SpaceError, match=message):
        translate_all(change(rotated), ANCHORS)


def test_other_ids_and_other_labels_are_told(rotated, vectors, make_space):
    strangers = make_space(vectors, ids=[f"q{row}" for row in range(300)], name="strangers")
    with pytest.raises(SpaceError, match="rows that all spaces share, 'own', 'strangers' have none"):
        translate_all([rotated[0], strangers], ANCHORS)
    other = make_space(vectors, name="other", labels=["0"] * 300)
    with pytest.raises(SpaceError, match="'own' and 'other' have different labels for"):
        translate_all([rotated[0], other], ANCHORS)
