"""The heat map of pairs: every number in its cell, chance beside it, reasons where there is none."""

import pytest

from relcore.compare.scoring import pair_matrices
from relcore.figures.export import chart_exportable
from relcore.scores.score import ChanceLevel, PairScores, Score


def score(value, null=(0.1, 0.08, 0.12), **circumstances):
    return Score(
        value, metric="mutual knn", **{"n": 900, "k": 10, "null": ChanceLevel(*null)} | circumstances
    )


@pytest.fixture
def scores():
    first, low = score(0.84), score(0.021, (0.02, 0.01, 0.03), interval=(0.01, 0.04), n_queries=300)
    itself, why = score(1.0), "they share no ids"
    rows = ((itself, first, None), (first, itself, low), (None, low, itself))
    return PairScores(
        ("cnn", "<vit>", "$words$"), "mutual knn", rows, (("", "", why), ("", "", ""), (why, "", ""))
    )


def test_the_csv_holds_numbers_nulls_and_reasons(scores):
    written = chart_exportable(pair_matrices(scores), table=scores.table).bytes("csv").decode().splitlines()
    assert written[0] == "first,second,score,chance,null_low,null_high,low,high,n,k,queries,reason"
    assert written[2] == "cnn,<vit>,0.84,0.1,0.08,0.12,,,900,10,900,"
    assert written[3].endswith("they share no ids")
