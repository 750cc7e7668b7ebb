"""How a notebook and a console show a score."""

import copy
import json
import pickle

import numpy as np
import pytest

from relcore import jaccard, linear_cka
from relcore.base.numbers import short


@pytest.fixture(scope="module")
def rows():
    return np.random.default_rng(0).normal(size=(2, 60, 5))


def test_a_notebook_shows_chance_k_and_n(rows):
    score = jaccard(*rows, k=7)
    shown = score._repr_html_()
    for text in (short(score), str(score.null), "k = 7", "<td", ">60<", short(score.null.high)):
        assert text in shown


def test_a_console_shows_the_score_with_its_chance_level_and_print_the_number(rows):
    score = linear_cka(rows[0], rows[0])
    assert repr(score) == f"<Score {score.describe()}>"
    assert "n = 60; chance " in repr(score)
    assert str(score) == str(float(score))
    assert f"{score:.2f}" == "1.00"
    assert json.loads(json.dumps(score)) == score
    for again in (pickle.loads(pickle.dumps(score)), copy.deepcopy(score)):
        assert repr(again) == repr(score)
