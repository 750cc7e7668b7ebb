"""The digits in other looks: the same rows, in ways that can be told from the pixels."""

import numpy as np

from relcore.encoders.datasets import LOOKS, load_dataset
from relcore.encoders.encoder import DatasetSpec


def digits(look, limit=40):
    return load_dataset(DatasetSpec("digits", limit=limit, options=(("look", look),)))


def pixels(dataset):
    return np.stack([np.asarray(image) for image in dataset.items(0, len(dataset))]).astype(int)


def test_each_look_is_what_it_says():
    plain = pixels(digits("plain"))
    np.testing.assert_array_equal(pixels(digits("inverted")), 255 - plain)
    np.testing.assert_array_equal(pixels(digits("shifted"))[:, 1:, 1:], plain[:, :-1, :-1])
    thick = pixels(digits("thick"))
    assert (thick >= plain).all()
    np.testing.assert_array_equal(thick[:, :, 1:], np.maximum(plain[:, :, 1:], plain[:, :, :-1]))
    noise = (pixels(digits("noisy")) - plain)[(plain > 100) & (plain < 150)]
    assert 30 < noise.std() < 60
    assert abs(noise.mean()) < 5


def test_rows_stay_the_same_digits_and_the_content_tells_the_looks_apart():
    looks = [digits(look) for look in LOOKS]
    assert (
        len({dataset.digest for dataset in looks}) == len({dataset.name for dataset in looks}) == len(LOOKS)
    )
    for dataset in looks:
        np.testing.assert_array_equal(dataset.ids, looks[0].ids)
        np.testing.assert_array_equal(dataset.labels, looks[0].labels)
    assert digits("plain").digest == load_dataset(DatasetSpec("digits", limit=40)).digest
