"""What the tabs of a migration compute: the migration's own pairs and queries, and figures that come out
the same twice.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.figures.style import COLUMN, Style
from relcore.migrate.figures import MigrationChart, PartialCurves, ThresholdScores
from relcore.migrate.migration import Migration
from relcore.migrate.partial import PartialReembedding, full_order, outlook
from relcore.migrate.retrieval import ndcg
from relcore.migrate.thresholds import ThresholdChange, fitted
from relcore.spaces.space import LatentSpace
from relcore.tasks.recipe import recipe_of
from tests.relcore.migration.planted import migration_spaces

TASK = Migration(adapter="procrustes", compared=("ridge",), sizes=(50, 100), draws=1)


@pytest.fixture(scope="module")
def planted():
    return migration_spaces(n=300, n_queries=40)


@pytest.fixture(scope="module")
def result(planted):
    return TASK.run(planted[0][:2])


@pytest.fixture(scope="module")
def settings(result):
    return {"migration": TASK, "adapter": result.adapter, "truth": result.truth}


@pytest.fixture(scope="module")
def specs(planted, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("spaces"), []
    for space in planted[0][:2]:
        np.savez(folder / f"{space.name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
        found.append(SpaceSpec("file", str(folder / f"{space.name}.npz")))
    return tuple(found)


def test_the_tabs_search_with_the_migrations_own_pairs_and_queries(planted, result, settings):
    found = fitted(TASK, result.adapter, result.truth, planted[0][:2])
    assert found.rows.ids[found.trial.own].tolist() == list(result.queries)
    for option in ("keep", "bridge", "re-embed"):
        best = np.argsort(-found.scores(option), axis=1)[:, : result.k]
        np.testing.assert_allclose(
            ndcg(best, found.trial.relevance, result.k), result.scores[option], atol=1e-5
        )


def test_the_share_of_none_is_bridging_and_of_all_is_re_embedding(planted, result, settings):
    outcome = PartialReembedding(**settings).run(planted[0][:2])
    for curve in outcome.curves:
        assert curve.quality[0] == pytest.approx(
            result.option("bridge").value, abs=0.01
        )  # scaled scores may change ties
        assert curve.quality[-1] == pytest.approx(result.option("re-embed").value, abs=1e-5)
    assert [curve.order for curve in outcome.curves] == ["residual", "random"]


def test_traffic_is_an_order_where_rows_have_counts(planted, settings):
    old, new = planted[0][:2]
    counted = LatentSpace(old.vectors, old.ids, counts=np.arange(len(old)))
    outcome = PartialReembedding(**settings).run((counted, new))
    assert [curve.order for curve in outcome.curves] == ["residual", "traffic", "random"]
    known = new.take(np.arange(250))
    assert full_order(counted, known, "procrustes", "traffic").tolist() == [
        f"d{row}" for row in range(299, 249, -1)
    ]


def test_a_threshold_keeps_its_number_of_rows(planted, settings):
    outcome = ThresholdChange(**settings, system="re-embed").run(planted[0][:2])
    assert outcome.accepted_old == pytest.approx(10, abs=2.5)  # ten by default, on half of the 60 queries
    assert outcome.accepted_after == pytest.approx(outcome.accepted_old, abs=2.5)
    assert outcome.beats_chance


def test_rows_without_new_vectors_cannot_be_embedded_step_by_step():
    spaces, judgements = migration_spaces(n=300, n_queries=40, n_new=200)
    task = Migration(adapter="procrustes", sizes=(), judgements=judgements)
    with pytest.raises(SpaceError, match="some rows without"):
        PartialReembedding(migration=task, adapter="procrustes", truth="judgements").run(spaces)


def test_judged_queries_are_searched_on_all_rows():
    spaces, judgements = migration_spaces(n=300, n_queries=40)
    task = Migration(adapter="procrustes", sizes=(), judgements=judgements)
    outcome = PartialReembedding(migration=task, adapter="procrustes", truth="judgements").run(spaces)
    assert (outcome.n_rows, outcome.n_queries) == (300, 40)


@pytest.mark.parametrize("kind", ["migration", "threshold", "partial"])
def test_a_recipe_draws_its_figure_again_to_the_byte(kind, specs, planted, result, settings):
    recipe = {
        "migration": lambda: MigrationChart(spaces=specs, migration=TASK),
        "threshold": lambda: ThresholdScores(spaces=specs, task=ThresholdChange(**settings)),
        "partial": lambda: PartialCurves(spaces=specs, task=PartialReembedding(**settings)),
    }[kind]()
    drawn = recipe.draw()
    again = recipe_of(json.loads(json.dumps(drawn.recipe)))
    assert again == recipe
    assert again.draw().bytes("csv") == drawn.bytes("csv")
    style = Style(width=COLUMN)
    assert again.draw().bytes("pdf", style=style) == drawn.bytes("pdf", style=style)
    assert drawn.interactive is not None
    assert len(drawn.interactive(style.theme).data) > 2


def test_results_come_back_from_the_store_as_they_were(planted, settings):
    for task in (ThresholdChange(**settings), PartialReembedding(**settings)):
        outcome = task.run(planted[0][:2])
        arrays, facts = records.pack(outcome)
        back = records.unpack(type(outcome), arrays, facts)
        assert back.describe() == outcome.describe()


def test_the_outlook_names_the_last_step(result):
    assert outlook(result).startswith("From 100 to 240 pairs, bridging gained ")
