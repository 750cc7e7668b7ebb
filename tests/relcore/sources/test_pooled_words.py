"""Pooled word vectors against computations by hand."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset
from relcore.encoders.sentences import PooledWords

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


def texts_dataset(texts):
    return Dataset(
        lambda start, stop: texts[start:stop],
        [f"t{row}" for row in range(len(texts))],
        name="told",
        kind="texts",
    )


def encode(encoder, texts):
    return encoder.prepare(texts_dataset(texts), lambda *_: None)(texts)[""]


def weighted_means(weight):
    """Of TEXTS, in float64."""
    means = [
        np.mean([weight[word] * np.array(VECTORS[word]) for word in known], axis=0) if known else np.zeros(3)
        for known in KNOWN
    ]
    return np.array(means)


def test_plain_means(words):
    rows = encode(PooledWords(words, "plain"), TEXTS)
    np.testing.assert_allclose(rows, weighted_means(dict.fromkeys(VECTORS, 1)), atol=1e-6)
    assert rows.dtype == np.float32


def test_idf_counts_texts_not_words(words):
    texts_with = {"cat": 3, "dog": 1, "don't": 1, "Paris": 1, "paris": 1}
    idf = {word: 1 + np.log(6 / (1 + count)) for word, count in texts_with.items()}
    np.testing.assert_allclose(encode(PooledWords(words, "idf"), TEXTS), weighted_means(idf), atol=1e-6)


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
    np.testing.assert_allclose(encode(PooledWords(words, "sif", smoothing=0.1), TEXTS), expected, atol=1e-6)


def test_sif_takes_the_counts_of_the_corpus_where_there_are_some():
    from relcore.encoders.words import load_words

    space = load_words("word2vec-novels")
    texts = ["the cat", "king of the dogs", "a small house"]
    known = [["the", "cat"], ["king", "of", "the", "dogs"], ["a", "small", "house"]]
    share = space.counts / space.counts.sum()
    means = []
    for row in map(space.rows, known):
        means.append((1e-3 / (1e-3 + share[row]) @ space.vectors[row]) / len(row))
    first = np.linalg.svd(np.array(means))[2][0]
    expected = np.array(means) - np.outer(np.array(means) @ first, first)
    np.testing.assert_allclose(encode(PooledWords(), texts), expected, atol=1e-5)


@pytest.mark.parametrize("weighting", ["plain", "idf", "sif"])
def test_a_text_without_a_known_word_is_a_zero_vector_and_counted(words, weighting):
    encoder, dataset = PooledWords(words, weighting), texts_dataset(TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    assert trained.metadata == {"texts": 5, "texts without a known word": 1}
    rows = encoder.restore(trained, dataset)(TEXTS)[""]
    np.testing.assert_array_equal(np.flatnonzero(~rows.any(axis=1)), [4])
    np.testing.assert_array_equal(encoder.restore(trained, dataset)(TEXTS[3:])[""], rows[3:])


def test_wrong_choices(words):
    with pytest.raises(
        SpaceError, match=r"expected texts with words of .*words\.vec', got none of 2; choose other words"
    ):
        encode(PooledWords(words, "plain"), ["xyzzy", "42"])
    with pytest.raises(SpaceError, match=r"got 1 empty of 2, rows 't0'"):
        encode(PooledWords(words), ["", "cat"])
    with pytest.raises(SpaceError, match="weighting: expected one of plain, idf, sif, got 'mean'"):
        PooledWords(weighting="mean")
    with pytest.raises(SpaceError, match="smoothing: expected a number above 0"):
        PooledWords(smoothing=0)
    with pytest.raises(SpaceError, match="got 'word2vec-noevls'"):
        encode(PooledWords("word2vec-noevls"), ["cat"])


def test_the_words_file_is_part_of_what_makes_the_rows(words, tmp_path):
    before = PooledWords(words).content()
    (tmp_path / "words.vec").write_text("1 3\ncat 1 2 3\n")
    assert before
    assert PooledWords(words).content() not in ("", before)
    assert PooledWords("word2vec-novels").content() != PooledWords("fasttext-novels").content() != ""
