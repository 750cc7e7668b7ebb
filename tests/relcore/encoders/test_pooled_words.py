"""Pooled word vectors against computations by hand."""

import numpy as np
import pytest

from relcore.encoders.sentences import PooledWords
from tests.relcore.encoders.texts import rows_of, texts_dataset

VECTORS = {
    "cat": [1.0, 0, 0],
    "dog": [0, 2.0, 0],
    "don't": [0, 0, 3.0],
    "Paris": [1.0, 1, 1],
    "paris": [-1.0, 0, 1],
}
TEXTS = ["Cat, dog; dog!", "A cat.", "Don’t: Paris", "PARIS cat", "xyzzy 42"]
KNOWN = [["cat", "dog", "dog"], ["cat"], ["don't", "Paris"], ["paris", "cat"], []]


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.vec"
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()]
    path.write_text(f"{len(lines)} 3\n" + "\n".join(lines) + "\n")
    return str(path)


def weighted_means(weight):
    means = [
        np.mean([weight[word] * np.array(VECTORS[word]) for word in known], axis=0) if known else np.zeros(3)
        for known in KNOWN
    ]
    return np.array(means)


def test_idf_counts_texts_not_words(words):
    texts_with = {"cat": 3, "dog": 1, "don't": 1, "Paris": 1, "paris": 1}
    idf = {word: 1 + np.log(6 / (1 + count)) for word, count in texts_with.items()}
    np.testing.assert_allclose(rows_of(PooledWords(words, "idf"), TEXTS), weighted_means(idf), atol=1e-6)


def test_sif_weighs_by_frequency_and_removes_the_first_direction(words):
    occurrences = {
        "cat": 3,
        "dog": 2,
        "don't": 1,
        "Paris": 1,
        "paris": 1,
    }  # 8 known words; the file has no counts
    means = weighted_means({word: 0.1 / (0.1 + count / 8) for word, count in occurrences.items()})
    first = np.linalg.svd(means)[2][0]
    expected = means - np.outer(means @ first, first)
    np.testing.assert_allclose(rows_of(PooledWords(words, "sif", smoothing=0.1), TEXTS), expected, atol=1e-6)


@pytest.mark.parametrize("weighting", ["plain", "idf", "sif"])
def test_a_text_without_a_known_word_is_a_zero_vector_and_counted(words, weighting):
    encoder, dataset = PooledWords(words, weighting), texts_dataset(TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    assert trained.metadata == {"texts": 5, "texts without a known word": 1}
    rows = encoder.restore(trained, dataset)(TEXTS)[""]
    np.testing.assert_array_equal(np.flatnonzero(~rows.any(axis=1)), [4])
    np.testing.assert_array_equal(encoder.restore(trained, dataset)(TEXTS[3:])[""], rows[3:])
