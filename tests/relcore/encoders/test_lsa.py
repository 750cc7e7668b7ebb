"""TF-IDF + SVD against a decomposition by NumPy, and what cannot be decomposed."""

import numpy as np

from relcore.encoders.sentences import TfidfSvd
from tests.relcore.encoders.texts import rows_of, texts_dataset

TEXTS = [
    "the cat sat on the mat",
    "the dog sat on the cat",
    "a dog and a cat",
    "stars and planets shine",
    "the stars shine",
    "planets orbit stars",
]


def tfidf_by_hand(texts, words):
    counts = np.array([[text.split().count(word) for word in words] for text in texts], dtype=float)
    idf = 1 + np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0)))
    weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_rows_are_the_truncated_decomposition_of_tfidf():
    # Words in two texts or more.
    words = ["cat", "dog", "on", "planets", "sat", "shine", "stars", "the", "and"]
    matrix = tfidf_by_hand(TEXTS, words)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    rows = rows_of(TfidfSvd(3), TEXTS)
    # A decomposition is known up to the sign of each component: compare inner products.
    np.testing.assert_allclose(rows @ rows.T, (left[:, :3] * values[:3] ** 2) @ left[:, :3].T, atol=1e-5)
    assert (rows.shape, rows.dtype) == ((6, 3), np.float32)


def test_restored_weights_give_the_same_rows_and_new_texts_too():
    encoder, dataset = TfidfSvd(3), texts_dataset(TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    rows = encoder.restore(trained, dataset)(TEXTS)[""]
    np.testing.assert_array_equal(rows, rows_of(encoder, TEXTS))
    np.testing.assert_array_equal(
        encoder.restore(trained, dataset)(["unknown", TEXTS[0]])[""], [np.zeros(3), rows[0]]
    )
    assert trained.metadata["words"] == 9
    assert 0 < trained.metadata["explained variance"] < 1
