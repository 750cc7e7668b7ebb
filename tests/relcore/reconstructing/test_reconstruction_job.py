"""Autoencoders as a job: what is kept, what is not trained twice, what is refused, and what digits and
MNIST give.
"""

from __future__ import annotations

import os
from dataclasses import replace

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import available_datasets, load_dataset
from relcore.encoders.small_vision import held_out_rows
from relcore.runs.progress import Context
from relcore.runs.store import Store
from relcore.stitch import reconstruction as module
from relcore.stitch.autoencoders import AutoencoderSpec, PictureSpec, load_pictures, part_sizes
from relcore.stitch.reconstruction import ReconstructionSpec, collect, missing_trainings, training_key
from relcore.tasks.task import task_job

FEW = PictureSpec(DatasetSpec("digits", limit=150))
TINY = ReconstructionSpec(FEW, AutoencoderSpec("relative", width=8, epochs=1), (3, 1, 2), n_anchors=20)


@pytest.fixture
def store(tmp_path):
    return Store(tmp_path)


@pytest.fixture
def digest():
    return load_dataset(FEW.dataset).digest


class Killed(BaseException):
    pass


def test_what_was_killed_half_way_goes_on_with_what_is_finished(store, digest, monkeypatch, tmp_path):
    trained, fit = [], module.fit_autoencoder

    def counted(images, anchors, spec, state, report):
        if len(trained) == 2 and state == 2:
            trained.append("killed")
            raise Killed
        trained.append(state)
        return fit(images, anchors, spec, state, report)

    monkeypatch.setattr(module, "fit_autoencoder", counted)
    spec = replace(TINY, dataset_digest=digest)
    with pytest.raises(Killed):
        task_job(Context(spec.key(), store), task=spec)
    assert missing_trainings(store, spec) == (2,)
    told = []
    found = spec.stored(store, lambda *step: told.append(step))
    assert trained == [3, 1, "killed", 2]
    assert [step[:3] for step in told if step[2].endswith("trained before")] == [
        (2, 3, "2 of 3 trained before")
    ]
    assert list(told[-1][3]) == ["state 2"]
    at_once = TINY.stored(Store(tmp_path / "other"))
    (arrays, facts), (expected, expected_facts) = records.pack(found), records.pack(at_once)
    assert arrays.keys() == expected.keys()
    for name, array in expected.items():
        np.testing.assert_array_equal(arrays[name], array)
    assert facts == expected_facts


def test_another_choice_of_states_trains_only_the_new_ones_and_agrees(store, digest):
    two = replace(TINY, random_states=(1, 2)).stored(store)
    assert missing_trainings(store, replace(TINY, dataset_digest=digest)) == (3,)
    three = TINY.stored(store)
    np.testing.assert_array_equal(three.mse[1:, 1:], two.mse)
    assert three.mse.shape == (3, 3)
    assert three.pictures.shape == (3, 3, 10, 8, 8)
    assert 0 <= three.pictures.min() <= three.pictures.max() <= 1
    assert (three.n_train, three.n_test) == (120, 30)
    assert set(three.losses) == {"1", "2", "3"}


def test_keys_know_what_a_training_depends_on_and_nothing_else(digest):
    absolute = replace(TINY, model=AutoencoderSpec(epochs=1))
    assert training_key(digest, TINY, 1) != training_key(digest, replace(TINY, n_anchors=30), 1)
    assert training_key(digest, absolute, 1) == training_key(digest, replace(absolute, n_anchors=30), 1)
    assert training_key(digest, TINY, 1) == training_key(
        digest, replace(TINY, pictures=replace(FEW, n_test=5)), 1
    )
    assert training_key(digest, TINY, 1) != training_key(
        digest, replace(TINY, pictures=replace(FEW, n_train=50)), 1
    )
    whole = replace(TINY, dataset_digest=digest)
    assert whole.key() != replace(whole, pictures=replace(FEW, n_test=5)).key()
    assert whole.key() != replace(whole, dataset_digest="0" + digest[1:]).key()


def test_two_numbers_for_a_picture_are_kept_with_their_classes(store):
    spec = ReconstructionSpec(FEW, AutoencoderSpec(width=2, epochs=1), (0, 1))
    found = spec.stored(store)
    assert found.codes.shape == (2, 30, 2)
    dataset = load_dataset(FEW.dataset)
    labels = load_pictures(dataset, FEW).test_labels
    assert [found.classes[i] for i in found.labels] == labels.tolist()


def test_kinds_come_together_where_they_belong_together(store):
    kinds = [
        replace(TINY, random_states=(0, 1), model=AutoencoderSpec(name, width=8, epochs=1))
        for name in ("absolute", "whitened")
    ]
    found = collect({spec: spec.stored(store) for spec in kinds})
    assert list(found.mse) == ["AE, absolute", "AE, whitened"]
    assert found.table()["mean_picture"].unique() == pytest.approx([found.floor])
    other = replace(TINY, random_states=(1, 2))
    with pytest.raises(
        SpaceError, match="expected kinds trained on the same pictures with the same random states"
    ):
        collect({spec: spec.stored(store) for spec in (kinds[0], other)})


def test_pictures_are_parted_as_for_encoders_and_always_the_same():
    dataset = load_dataset(DatasetSpec("digits"))
    spec = PictureSpec(DatasetSpec("digits"), n_train=200, n_test=50)
    first, again = load_pictures(dataset, spec), load_pictures(dataset, spec)
    np.testing.assert_array_equal(first.train, again.train)
    assert (len(first.train), len(first.test)) == part_sizes(1797, spec) == (200, 50)
    held_out = np.stack([np.asarray(dataset.item(int(row))) for row in held_out_rows(1797)]) / np.float32(255)
    known = {picture.tobytes() for picture in held_out}
    assert all(picture.tobytes() in known for picture in first.test)
    assert first.test_labels[first.examples()].tolist() == [str(digit) for digit in range(10)]
    resized = load_pictures(dataset, replace(spec, image_size=12))
    assert resized.train.shape == (200, 12, 12)


def test_pictures_that_are_tried_are_not_trained_on_and_their_number_moves_no_training_picture():
    dataset = load_dataset(DatasetSpec("digits"))
    few, more = (
        load_pictures(dataset, PictureSpec(DatasetSpec("digits"), n_train=200, n_test=n)) for n in (20, 50)
    )
    np.testing.assert_array_equal(
        few.train, more.train
    )  # a stored training is found again by a key without n_test
    trained = {picture.tobytes() for picture in more.train}
    assert len(trained) == 200
    assert not trained & {picture.tobytes() for picture in more.test}


def test_a_spec_comes_back_from_json():
    spec = replace(TINY, pictures=replace(FEW, image_size=16))
    assert records.from_json(ReconstructionSpec, records.to_json(spec)) == spec


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"random_states": [1, 1]}, "random_states: expected two different ones or more to stitch"),
        ({"random_states": [1]}, "random_states: expected two different ones or more to stitch"),
        ({"n_anchors": 1}, "n_anchors: expected a whole number from 2, got 1"),
        ({"model": {"width": 0}}, "width: expected a whole number from 1, got 0"),
        ({"model": {"wide": 3}}, "model: expected settings among 'representation', .*, got 'wide'"),
        ({"model": None}, "model: expected an object, got None"),
        (
            {"pictures": {"dataset": {"source": "digits"}, "n_train": 2}},
            "n_train: expected a whole number from 10",
        ),
        ({"pictures": {}}, "pictures: the setting 'dataset' is missing"),
    ],
)
def test_settings_that_cannot_be_are_refused(change, message):
    with pytest.raises(SpaceError, match=message):
        records.from_json(ReconstructionSpec, records.to_json(TINY) | change)


def test_datasets_that_cannot_be_are_refused(store, digest):
    with pytest.raises(SpaceError, match="expected pictures, got texts; choose a dataset of pictures"):
        replace(TINY, pictures=PictureSpec(DatasetSpec("parallel", "en"))).stored(store)
    changed = replace(TINY, dataset_digest="0" * 32)
    with pytest.raises(
        SpaceError, match=r"digits has changed: expected content 00000000…, got \w+…; load the original"
    ):
        changed.stored(store)
    with pytest.raises(SpaceError, match="digits has changed"):
        task_job(Context("0" * 32, store), task=changed)
    with pytest.raises(SpaceError, match="n_anchors: expected at most 120"):
        replace(TINY, n_anchors=121).stored(store)
    with pytest.raises(SpaceError, match="expected ten pictures or more, got 9"):
        replace(TINY, pictures=PictureSpec(DatasetSpec("digits", limit=9))).stored(store)


@pytest.mark.slow
@pytest.mark.parametrize("variational", [False, True])
def test_decoders_of_digits_draw_from_relative_codes_of_other_encoders_and_not_from_absolute_ones(
    store, variational
):
    def table_of(representation):
        model = AutoencoderSpec(representation, variational, epochs=10)
        spec = ReconstructionSpec(PictureSpec(DatasetSpec("digits")), model)
        return collect({spec: spec.stored(store)}).table().iloc[0]

    absolute, relative = table_of("absolute"), table_of("relative")
    assert absolute.stitched >= 5 * relative.stitched
    assert relative.stitched < 2 * relative.own < relative.mean_picture


@pytest.mark.data
@pytest.mark.slow
def test_decoders_of_mnist_do_so_too(store):
    known = (
        {entry.name: entry.spec for entry in available_datasets()} if os.environ.get("RELSCOPE_DATA") else {}
    )
    if "mnist/train" not in known:
        pytest.skip("mnist/train is not under RELSCOPE_DATA")
    pictures, found = PictureSpec(replace(known["mnist/train"], limit=7000), n_train=5000, n_test=300), {}
    for name in ("absolute", "relative"):
        spec = ReconstructionSpec(pictures, AutoencoderSpec(name, epochs=5), (0, 1, 2))
        found[name] = collect({spec: spec.stored(store)}).table().iloc[0]
    assert found["absolute"].stitched >= 5 * found["relative"].stitched
    assert found["relative"].own < found["relative"].mean_picture / 3
