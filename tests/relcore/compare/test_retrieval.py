"""Search by meaning: what is nearest to a query in each space, and in a space that cannot encode it."""

from __future__ import annotations

import csv
from pathlib import Path

import numpy as np
import pytest

from relcore import bundled_results, example_spaces
from relcore.base.errors import SpaceError
from relcore.base.rows import unit_rows
from relcore.catalog.catalog import load
from relcore.compare.search import TextIndex, rank_rows, vector_in, words_row
from relcore.encoders.datasets import load_dataset
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

QUESTIONS = Path(__file__).parents[2] / "data" / "questions.tsv"


def rotated_pair(n=400, d=16, noise=0.0):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, d))
    other = X @ np.linalg.qr(rng.normal(size=(d, d)))[0] + noise * rng.normal(size=(n, d))
    ids = [f"r{row}" for row in range(n)]
    return match(LatentSpace(X, ids, name="first"), LatentSpace(other, ids, name="second"))


def test_row_as_query_is_found_first_with_its_cosines():
    pair = rotated_pair()
    found = rank_rows(pair, (pair.source.vectors[7], pair.target.vectors[7]), 5)
    assert found.rows[0] == 7
    np.testing.assert_allclose(found.similarities[0], 1, atol=1e-5)
    assert found.found.all()  # a rotation keeps all neighbours
    unit = unit_rows(pair.source.vectors, pair.source.vectors.mean(axis=0))
    np.testing.assert_allclose(found.similarities[:, 0], (unit @ unit[7])[found.rows], atol=1e-5)


def test_space_that_cannot_encode_query_is_searched_around_what_other_finds():
    pair = rotated_pair(noise=0.05)
    found = rank_rows(pair, (None, pair.target.vectors[7]), 5)
    assert found.rows[0] == 7
    assert found.found[0].all()
    assert found.how == ("the mean of the 5 rows nearest in second", "")


def test_rows_that_only_one_space_finds_are_told_apart():
    pair = rotated_pair()
    rng = np.random.default_rng(1)
    other = LatentSpace(rng.normal(size=(400, 16)), pair.ids, name="unrelated")
    found = rank_rows(match(pair.source, other), (pair.source.vectors[7], other.vectors[7]), 5)
    assert found.found.sum(axis=0).tolist() == [5, 5]
    assert found.rows[0] == 7
    # chance: the 5 nearest of 400 rows in unrelated spaces share .06 rows besides the query itself
    assert found.found.all(axis=1).sum() <= 3


def test_texts_are_searched_where_no_model_encodes_query():
    pair = rotated_pair(40)
    index = TextIndex(["a dog barks", "dogs and the dog", "a cat"] + ["nothing"] * 37)
    found = rank_rows(pair, (None, None), 5, words=index.similarities("dog"))
    assert set(found.rows[:2]) == {0, 1}
    with pytest.raises(SpaceError, match="Try other words"):
        rank_rows(pair, (None, None), 5, words=index.similarities("qzx"))
    assert TextIndex(["", "…"]).similarities("dog").tolist() == [0, 0]


def test_words_that_only_ask_count_where_there_is_no_other():
    space = LatentSpace(np.random.default_rng(0).normal(size=(4, 3)), ["kinds", "of", "drinks", "tea"])
    np.testing.assert_array_equal(words_row(space, "Kinds of drinks"), words_row(space, "of drinks"))
    assert words_row(space, "kinds") is not None


@pytest.mark.parametrize(
    ("query", "vector"),
    [
        ("[.5, −1; 3e-1]", [0.5, -1, 0.3]),
        ("(1 2)", [1, 2]),
        ("1 2 3 4", [1, 2, 3, 4]),  # as wide as a space
        (" ".join(map(str, range(9))), list(range(9))),
        ("1984 2001", None),
        ('"1 2 3 4"', None),
        ("[7]", None),
        ("apollo 11", None),
        ("nan inf", None),
        ("", None),
    ],
)
def test_a_vector_is_read_from_what_is_typed_and_a_few_numbers_are_words(query, vector):
    read = vector_in(query, (4, 6))
    assert (read is None) if vector is None else np.allclose(read, vector)


@pytest.mark.parametrize("number", ["inf", "-inf", "nan", "1e400"])
def test_a_query_that_is_not_finite_is_refused(number):
    """Before, it selected 24 arbitrary rows."""
    pair = rotated_pair(40, 3)
    query = vector_in(f"[.5 {number} 1]", ())
    with pytest.raises(SpaceError, match=r"expected finite numbers, got -?(inf|nan) as number 2; .* quotes"):
        rank_rows(pair, (query, None))


@pytest.mark.parametrize("factor", [1e38, 1e300, 1e-3])
def test_a_query_of_any_size_is_ranked_by_its_direction(factor):
    """Before, the square of such a number overflowed, and rows were ranked by their order."""
    pair = rotated_pair(100)
    mean = pair.source.vectors.mean(axis=0)
    centred = LatentSpace(pair.source.vectors - mean, pair.ids, name="centred")
    far = match(centred, pair.target)
    query = factor * centred.vectors[7].astype(np.float64)
    found = rank_rows(far, (query, None), 5)
    assert found.rows[0] == 7
    assert found.similarities[0, 0] == pytest.approx(1, abs=1e-3)


def test_a_query_equal_to_the_mean_is_refused():
    X = np.array([[1, 0], [-1, 0], [0, 1], [0, -1]], np.float32)
    pair = match(LatentSpace(X, list("abcd"), name="cross"), LatentSpace(X, list("abcd")))
    with pytest.raises(SpaceError, match="expected a vector other than the mean of cross"):
        rank_rows(pair, (np.zeros(2), None))


def test_forty_questions_find_their_article():
    """Mean reciprocal rank of the first sentence of the right article; .84 to .94 when the questions were written."""
    specs, _ = example_spaces("sentences", bundled_results())
    pair = match(load(specs[0]), load(specs[1]))
    dataset = load_dataset(specs[0].dataset)
    index = TextIndex(dataset.items(0, len(dataset)))
    with QUESTIONS.open(encoding="utf-8", newline="") as file:
        questions = list(csv.DictReader(file, delimiter="\t"))
    gains = []
    for line in questions:
        found = rank_rows(pair, (None, None), words=index.similarities(line["question"]))
        right = np.flatnonzero(pair.source.labels[found.rows] == line["article"])
        gains.append(1 / (1 + right[0]) if len(right) else 0)
    assert len(gains) == 40
    assert np.mean(gains) >= 0.6
