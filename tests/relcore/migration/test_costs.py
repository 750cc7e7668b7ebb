"""Costs: sums that can be checked by hand."""

from dataclasses import dataclass

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.sentences import TfidfSvd
from relcore.migrate import costs
from relcore.migrate.costs import Prices, cost_table, option_costs, seconds_per_thousand


@dataclass
class Quality:
    value: float
    low: float = 0.0
    high: float = 1.0


PRICES = Prices(rows=1_000_000, queries=20_000, new_seconds=4, old_seconds=1, new_price=0.5, old_price=0.1)


def test_each_option_embeds_what_it_needs():
    costs = option_costs(PRICES, n_pairs=1000, n_embedded=300)
    assert {option: cost.rows for option, cost in costs.items()} == {
        "keep": 0,
        "bridge": 700,
        "twice": 700,
        "re-embed": 999_700,
    }
    assert costs["re-embed"].seconds == pytest.approx(999.7 * 4)
    assert costs["bridge"].price == pytest.approx(0.35)
    assert costs["keep"].monthly_seconds == 20
    assert costs["twice"].monthly_seconds == 100
    assert costs["bridge"].monthly_seconds == costs["re-embed"].monthly_seconds == 80
    assert costs["twice"].monthly_price == pytest.approx(12)


def test_more_pairs_than_needed_cost_nothing_more():
    assert option_costs(PRICES, n_pairs=100, n_embedded=300)["bridge"].rows == 0


def test_the_table_sets_gains_beside_costs():
    quality = {
        "keep": Quality(0.40),
        "bridge": Quality(0.38),
        "twice": Quality(0.42),
        "re-embed": Quality(0.41),
    }
    table = cost_table(option_costs(PRICES, 1000), quality, "nDCG@10").set_index("option")
    assert table.loc["ask twice", "gain per thousand rows"] == pytest.approx(0.02)
    assert table.loc["bridge", "gain per thousand rows"] == pytest.approx(-0.02)
    assert np.isnan(table.loc["keep", "gain per thousand rows"])
    assert table["nDCG@10"].tolist() == [0.40, 0.38, 0.42, 0.41]


def test_the_pace_of_an_encoder_is_measured_on_a_few_items():
    now, batches = [0.0], []

    def encode(items):
        batches.append(len(items))
        now[0] += 0.01 * len(items)

    assert seconds_per_thousand(encode, range(500), clock=lambda: now[0]) == pytest.approx(10)
    assert batches == [8, 64]
    with pytest.raises(SpaceError, match="got none"):
        seconds_per_thousand(encode, [])


@pytest.mark.parametrize(
    "wrong", [{"rows": 0}, {"rows": 10, "new_price": -1.0}, {"rows": 10, "new_seconds": float("inf")}]
)
def test_prices_that_make_no_sense_are_refused(wrong):
    with pytest.raises(SpaceError, match="expected a"):
        Prices(**wrong)


def test_pairs_beyond_the_corpus_are_refused():
    with pytest.raises(SpaceError, match="as many as the corpus has rows"):
        option_costs(Prices(rows=100), n_pairs=200)


def test_the_pace_task_encodes_items_of_the_dataset(monkeypatch):
    seen = []

    def count(encode, items):
        seen.append((len(items), encode(items[:3])[""].shape))
        return 12.5

    monkeypatch.setattr(costs, "seconds_per_thousand", count)
    task = costs.EncoderPace(DatasetSpec("parallel", "en"), TfidfSvd(8))
    assert task.run().seconds == 12.5
    assert seen == [(64, (3, 8))]
    assert task.title == "Pace of TF-IDF + SVD 8"
