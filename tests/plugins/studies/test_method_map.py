"""The map of methods: what is exact where a method must be, and what is left to chance."""

import numpy as np
import pytest
from relscope_studies.anchors import METHODS, mixture_pair, scores_of, whitened_product
from relscope_studies.data import anchored_split

IDS = [f"r{row}" for row in range(1500)]


def test_without_noise_each_method_is_exact_where_its_map_allows_it():
    turned = scores_of(mixture_pair(1, 0, 0), anchored_split(IDS, 100))
    assert turned == pytest.approx(dict.fromkeys(METHODS, 1.0), abs=1e-6)
    stretched = scores_of(mixture_pair(10, 0, 0), anchored_split(IDS, 100))
    assert stretched["linear"] == stretched["product"] == pytest.approx(1)
    assert stretched["relative"] < stretched["whitened"] < 0.995


def test_unrelated_spaces_are_at_the_chance_level():
    # 1/rank among 318 rows, at most 10: mean .0092, deviation .06, so of 318 rows with error .0035
    pair = mixture_pair(1, 0, 0)[0], np.random.default_rng(9).normal(size=(1500, 40)).astype(np.float32)
    split = anchored_split(IDS, 100)
    chance = np.sum(1 / np.arange(1, 11)) / len(split.test)
    for name, score in scores_of(pair, split, 0.3).items():
        assert score == pytest.approx(chance, abs=0.0125), name


def test_the_whitened_product_is_its_formula_and_keeps_every_affine_map(rng):
    X = rng.normal(size=(200, 12)) + 0.5
    mean = X.mean(axis=0)
    inverse = np.linalg.inv(np.cov(X.T, bias=True))
    before = whitened_product(X, X[:9], X[50:])
    np.testing.assert_allclose(before, (X[50:] - mean) @ inverse @ (X[:9] - mean).T, atol=1e-4)
    moved = X @ rng.normal(size=(12, 12)) + 3
    np.testing.assert_allclose(whitened_product(moved, moved[:9], moved[50:]), before, atol=1e-3)
    flat = np.hstack([X, X[:, :2]])  # two directions without variance
    np.testing.assert_allclose(whitened_product(flat, flat[:9], flat[50:]), before, atol=1e-3)
