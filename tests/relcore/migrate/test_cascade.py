"""A cascade: its candidates, its order, what it must equal at the ends, and its cost by a log of queries."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.special import comb

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.migrate.charts import CascadePrice, chart_of
from relcore.migrate.migration import Migration
from relcore.migrate.price import UNKNOWN, Rate, expected_rows, price_of
from relcore.migrate.trial import OPTIONS, Candidates, interleave, rerank
from relcore.scores.relevance import search
from tests.relcore.migrate.planted import migration_spaces


def test_lists_are_read_by_turns_without_repeats():
    first = np.array([[4, 2, 7, -1]])
    second = np.array([[2, 4, 9, 5]])
    assert interleave([first, second], 4).tolist() == [[4, 2, 7, 9]]
    assert interleave([first], 4).tolist() == [[4, 2, 7, -1]]
    assert Candidates("old", 2).of(first, second).tolist() == [[4, 2]]
    assert Candidates("bridged", 3).of(first, second).tolist() == [[2, 4, 9]]


def test_candidates_are_ranked_by_the_new_model_and_all_rows_as_candidates_are_re_embedding(rng):
    queries = rng.normal(size=(70, 8))
    corpus = rng.normal(size=(40, 8))
    candidates = np.array([rng.permutation(40) for _ in queries])
    assert (rerank(queries, corpus, candidates, 10) == search(queries, corpus, 10)).all()
    candidates[:, 3:] = -1
    found = rerank(queries, corpus, candidates, 5)
    assert (found[:, 3:] == -1).all()
    scores = np.take_along_axis(queries @ corpus.T, found[:, :3], axis=1)
    assert (np.diff(scores, axis=1) <= 0).all()


@pytest.mark.parametrize("lists", ["both", "old", "bridged"])
def test_its_score_is_between_those_of_keep_and_re_embed(lists):
    spaces, judgements = migration_spaces(n=300, n_queries=40, old_topics=5)
    settings = {"sizes": (), "judgements": judgements, "adapter": "inverse", "candidates": lists}
    found = Migration(**settings, n_candidates=20).run(spaces)
    scores = {one.option: one.value for one in found.options}
    assert tuple(scores) == OPTIONS
    assert scores["keep"] + 0.05 < scores["cascade"] <= scores["re-embed"] + 0.01


def lists_of(rng, q=60, n=20):
    """The rows (q, n) that queries about twelve themes find; each theme has 60 rows of its own."""
    return np.array([rng.choice(60, n, replace=False) + 60 * theme for theme in rng.integers(12, size=q)])


def test_the_curve_of_embedded_rows_is_rarefaction(rng):
    lists = lists_of(rng)
    price = price_of(lists, lists, 2000, Candidates("old", 20))
    counts = np.bincount(lists.ravel(), minlength=2000)
    by_hand = sum(1 - comb(60 - c, 7, exact=True) / comb(60, 7, exact=True) for c in counts if c)
    assert expected_rows(counts, 60, [7])[0] == pytest.approx(by_hand)
    assert price.curve[0] == (1, pytest.approx(20))
    assert price.curve[-1] == (60, pytest.approx(price.need.rows))
    assert price.next_query == pytest.approx(price.need.rows - expected_rows(counts, 60, [59])[0])


def test_the_interval_holds_for_another_log_as_long(rng):
    held = 0
    for _ in range(100):
        price = price_of(*[lists_of(rng)] * 2, 2000, Candidates("old", 20))
        held += price.need.low <= len(np.unique(lists_of(rng))) <= price.need.high
    assert held / 100 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 100)


def test_the_interval_holds_where_lists_hardly_overlap(rng):
    """20 queries with 20 candidates; each pair has a chance of 1 % to share half of them. Before, an interval
    from a log without such a pair was as good as empty."""
    held = 0
    for _ in range(100):
        rows = []
        for _ in range(2):
            lists = np.arange(400).reshape(20, 20)
            for query in range(1, 20):
                if rng.uniform() < 0.01 * query:
                    lists[query, :10] = lists[rng.integers(query), :10]
            rows.append(lists)
        price = price_of(rows[0], rows[0], 5000, Candidates("old", 20))
        held += price.need.low <= len(np.unique(rows[1])) <= price.need.high <= 400
    assert held / 100 > 0.95 - 3 * np.sqrt(0.05 * 0.95 / 100)


def test_the_interval_is_not_wider_than_another_log_needs(rng):
    """Random lists: which rows are found depends on pairs of queries, which the jackknife counts twice."""
    held = 0
    for _ in range(200):
        first, second = (np.array([rng.permutation(400)[:20] for _ in range(20)]) for _ in range(2))
        prices = [price_of(lists, lists, 400, Candidates("old", 20)) for lists in (first, second)]
        held += prices[0].need.low <= prices[1].need.rows <= prices[0].need.high
    deviation = np.sqrt(0.05 * 0.95 / 200)
    assert 0.95 - 3 * deviation < held / 200 < 0.95 + 2.5 * deviation


@pytest.fixture(scope="module")
def judged():
    """Spaces of 700 rows, and a function that runs a migration on them."""
    spaces, judgements = migration_spaces(n=700)
    run = lambda adapter, n_pairs=0: Migration(  # noqa: E731
        sizes=(), judgements=judgements, adapter=adapter, n_pairs=n_pairs
    ).run(spaces)
    return spaces, run


@pytest.fixture(scope="module")
def found(judged):
    return judged[1]("inverse", 300)


def test_costs_of_each_option(judged, found):
    costs = {option: found.cost_of(option) for option in found.scores}
    need = found.price.need.rows
    union = found.price.embedded
    assert max(need, 300) <= union <= min(need + 300, 700)
    assert [one.rows_now for one in costs.values()] == [0, 300, 300, union, 700]
    assert [one.models_per_query for one in costs.values()] == [1, 1, 2, 2, 1]
    assert costs["keep"].index_bytes == costs["bridge"].index_bytes == 4 * 24 * 700
    assert costs["re-embed"].index_bytes == 4 * 32 * 700
    assert [one.rewrites for one in costs.values()] == [False] * 4 + [True]
    head, *rows = found.overview(Rate(seconds=0.5, price=2, tokens=1000))
    # 700 rows of 1,000 tokens, and 10,000 queries of 16 tokens
    assert head[-2] == "in a year of 10,000 queries"
    assert rows[-1][-2] == "700 rows · 1.5 h · 1.72 USD"
    assert rows[0][-2] == "0 rows, only queries · 1.4 h · 0.32 USD"
    euros = Rate(seconds=0.5, price=2, tokens=1000, currency="€")
    assert found.overview(euros)[-1][-2] == "700 rows · 1.5 h · €1.72"
    assert (euros.least, Rate(price=2, tokens=9).least) == ("€100", "100 USD")
    sizes = [euros.size_of_year(cost, 700) for cost in costs.values()]
    assert [round(size, 2) for size in sizes] == [0.32, 0.92, 1.24, round(0.64 + 0.0014 * 1000, 2), 1.72]
    assert Rate(seconds=0.5).size_of_year(costs["re-embed"], 700) == 0.5 * (700 + 10_000)
    assert Rate().size_of_year(costs["re-embed"], 700) == 700
    assert found.details()[-1][-1] == "yes"
    recipe = CascadePrice(spaces=(SpaceSpec("file", "a.npz"),) * 4, migration=Migration())
    assert recipe.draw(found).table().y.tolist()[-2:] == [need, 700]  # the line's end, and the corpus
    assert [line.color for line in chart_of(found).lines] == [OPTIONS.index(one) for one in costs]
    whitened = judged[1]("whitened")
    assert whitened.cost_of("cascade").rewrites
    assert whitened.cost_of("cascade").index_bytes > costs["cascade"].index_bytes
    assert found.report().record()["price"]["need"]["rows"] == need


def test_rows_that_are_pairs_and_candidates_are_embedded_once(judged):
    """If all rows are pairs, a cascade has no further row to embed, and does not cost more than all rows."""
    everything = judged[1]("inverse")
    cost = everything.cost_of("cascade")
    assert (cost.rows_now, cost.rows_per_query) == (700, 0)
    assert cost.rows_of_year(10_000, 700) == 700
    assert everything.order().index("re-embed") < everything.order().index("cascade")


def with_gains(found, **gains):
    """The result with scores that are those of keeping the old model plus these gains."""
    keep = found.scores["keep"]
    scores = {name: keep + np.float32(gains.get(name.replace("-", "_"), 0)) for name in found.scores}
    return replace(found, scores=scores)


def test_a_cascade_is_worth_it_only_if_it_saves_enough(found):
    more, note = found.scaled(1_000_000)
    rows = {row[0].strip("▸ "): row[4] for row in more.overview()[1:]}
    most = found.n_candidates
    assert (rows["cascade"], rows["re-embed"]) == (f"300, then up to {most} per query", "all 1,000,000")
    assert note.startswith("The scores are of the 700 rows here.")
    equal = with_gains(found, cascade=0.1, re_embed=0.1)
    # 10,000 queries embed at most 500,300 of a million rows; at .02 a million tokens, this saves 1.80.
    cheap = Rate(price=0.02, tokens=180)
    for n, rate, option in (
        (700, UNKNOWN, "re-embed"),
        (1_000_000, UNKNOWN, "cascade"),
        (1_000_000, Rate(least_rows=500_000), "re-embed"),
        (1_000_000, Rate(queries=19_000), "re-embed"),
        (1_000_000, cheap, "re-embed"),
        (1_000_000, cheap._replace(least_money=1), "cascade"),
    ):
        scaled, _ = equal.scaled(n, rate)
        assert (scaled.verdict.option, scaled.verdict.is_clear) == (option, True)
        assert scaled.overview(rate)[1 + list(OPTIONS).index(option)][0].startswith("▸")
    assert "saves less than 100 USD compared with" in equal.scaled(1_000_000, cheap)[0].verdict.sentence
    assert found.sentence_at(700) == ""
    told = equal.sentence_at(1_000_000, cheap)
    assert told.startswith(
        "For 1,000,000 rows: re-embed the corpus, because it is clearly better and embedding costs 3.60 USD."
    )
    assert told.endswith(" The cascade saves 1.80 USD a year, less than your limit of 100 USD.")
    told = equal.sentence_at(1_000_000, Rate(least_rows=500_000))
    assert "The cascade saves 499,700 rows a year, less than your limit of 500,000 rows." in told
    worse = with_gains(found, cascade=-0.1, re_embed=0.3)  # no saving would make it a cascade
    assert "cascade" not in worse.sentence_at(1_000_000, cheap)
    assert "embeds at most 500,300 rows" in equal.sentence_at(1_000_000)
    for gains, option in (
        ({"cascade": 0.1, "re_embed": 0.3}, "re-embed"),
        ({"cascade": 0.1, "bridge": 0.1, "re_embed": 0.1}, "bridge"),
        ({"cascade": -0.1, "re_embed": -0.1}, "keep"),
    ):
        assert with_gains(found, **gains).scaled(1_000_000)[0].verdict.option == option


def test_queries_without_judgements_are_a_log_that_gives_the_cost(judged):
    spaces, _ = judged
    task = Migration(sizes=(), n_candidates=5, adapter="inverse")
    found = task.run(spaces)
    alone = task.run(spaces[:2])
    assert (found.price.n_queries, found.price.n_rows, alone.price) == (60, 700, None)
    assert [one.value for one in found.options] == [one.value for one in alone.options]
    assert f"60 queries need {found.price.need.rows} of 700 rows embedded" in found.verdict.sentence
    with pytest.raises(SpaceError, match="expected queries embedded by both models, got none"):
        CascadePrice(spaces=(SpaceSpec("file", "a.npz"),), migration=task).draw(alone)
