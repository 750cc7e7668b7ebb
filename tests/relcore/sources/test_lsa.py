"""TF-IDF + SVD against a decomposition by NumPy, and what cannot be decomposed."""

import numpy as np
import pytest
import scipy.sparse
from sklearn.decomposition import TruncatedSVD

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.sentences import TfidfSvd

TEXTS = [
    "the cat sat on the mat",
    "the dog sat on the cat",
    "a dog and a cat",
    "stars and planets shine",
    "the stars shine",
    "planets orbit stars",
]


def texts_dataset(texts):
    return Dataset(
        lambda start, stop: texts[start:stop],
        [f"t{row}" for row in range(len(texts))],
        name="told",
        kind="texts",
    )


def encode(encoder, texts):
    return encoder.prepare(texts_dataset(texts), lambda *_: None)(texts)[""]


def tfidf_by_hand(texts, words):
    counts = np.array([[text.split().count(word) for word in words] for text in texts], dtype=float)
    idf = 1 + np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0)))
    weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_rows_are_the_truncated_decomposition_of_tfidf():
    words = [
        "cat",
        "dog",
        "on",
        "planets",
        "sat",
        "shine",
        "stars",
        "the",
        "and",
    ]  # those in two texts or more
    matrix = tfidf_by_hand(TEXTS, words)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    rows = encode(TfidfSvd(3), TEXTS)
    # A decomposition is known up to the sign of each component: compare inner products.
    np.testing.assert_allclose(rows @ rows.T, (left[:, :3] * values[:3] ** 2) @ left[:, :3].T, atol=1e-5)
    assert (rows.shape, rows.dtype) == ((6, 3), np.float32)


def test_restored_weights_give_the_same_rows_and_new_texts_too():
    encoder, dataset = TfidfSvd(3), texts_dataset(TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    rows = encoder.restore(trained, dataset)(TEXTS)[""]
    np.testing.assert_array_equal(rows, encode(encoder, TEXTS))
    np.testing.assert_array_equal(
        encoder.restore(trained, dataset)(["unknown", TEXTS[0]])[""], [np.zeros(3), rows[0]]
    )
    assert trained.metadata["words"] == 9
    assert 0 < trained.metadata["explained variance"] < 1


def test_of_many_texts_every_second_is_fitted():
    copies = [text for text in TEXTS for _ in range(2)]  # every second one is the six texts again
    rows = encode(TfidfSvd(3, fit_texts=6), copies)
    np.testing.assert_allclose(rows[::2], encode(TfidfSvd(3), TEXTS), atol=1e-6)
    np.testing.assert_array_equal(rows[::2], rows[1::2])


def test_what_cannot_be_decomposed():
    with pytest.raises(
        SpaceError,
        match=r"fewer than the 6 texts and the 9 words that occur in 2 or more of them, got 6; lower it",
    ):
        encode(TfidfSvd(6), TEXTS)
    with pytest.raises(SpaceError, match="words that occur in at least 2 texts, got none; lower min_texts"):
        encode(TfidfSvd(1), ["one two", "three four"])
    with pytest.raises(SpaceError, match=r"got 1 empty of 2, rows 't1'"):
        encode(TfidfSvd(1), ["one two", "  "])
    with pytest.raises(SpaceError, match="n_components: expected a whole number from 1, got 0"):
        TfidfSvd(0)


def test_two_thousand_sentences_are_decomposed_once_in_five_passes_and_stay_sparse(monkeypatch):
    fitted, fit = [], TruncatedSVD.fit

    def counted(svd, matrix):
        fitted.append((scipy.sparse.issparse(matrix), svd.algorithm, svd.n_iter))
        return fit(svd, matrix)

    monkeypatch.setattr(TruncatedSVD, "fit", counted)
    dataset = load_dataset(DatasetSpec("wikipedia", limit=2_000))
    rows = TfidfSvd().prepare(dataset, lambda *_: None)(dataset.items(0, 2_000))[""]
    assert fitted == [(True, "randomized", 5)]
    assert rows.shape == (2_000, 384)
    assert np.linalg.norm(rows, axis=1).max() <= 1 + 1e-5  # a projection of rows of length 1
