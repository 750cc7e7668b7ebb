"""What the tabs of a migration compute: the migration's own pairs and queries, and figures that come out
the same twice.
"""

from __future__ import annotations

import json

import numpy as np
import pytest

from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import recipe_of
from relcore.figures.style import COLUMN, Style
from relcore.migrate.charts import MigrationChart, ThresholdScores
from relcore.migrate.migration import Migration
from relcore.migrate.thresholds import ThresholdChange
from tests.relcore.migrate.planted import migration_spaces

TASK = Migration(adapter="whitened", compared=("ridge",), sizes=(50, 100), draws=1)


@pytest.fixture(scope="module")
def planted():
    return migration_spaces(n=300, n_queries=40)


@pytest.fixture(scope="module")
def result(planted):
    return TASK.run(planted[0][:2])


@pytest.fixture(scope="module")
def settings(result):
    return {"migration": TASK, "adapter": result.adapter}


@pytest.fixture(scope="module")
def specs(planted, tmp_path_factory):
    folder, found = tmp_path_factory.mktemp("spaces"), []
    for space in planted[0][:2]:
        np.savez(folder / f"{space.name}.npz", vectors=space.vectors, ids=space.ids.astype(str))
        found.append(SpaceSpec("file", str(folder / f"{space.name}.npz")))
    return tuple(found)


@pytest.mark.parametrize("kind", ["migration", "threshold"])
def test_a_recipe_draws_its_figure_again_to_the_byte(kind, specs, planted, result, settings):
    recipe = {
        "migration": lambda: MigrationChart(spaces=specs, migration=TASK),
        "threshold": lambda: ThresholdScores(spaces=specs, task=ThresholdChange(**settings)),
    }[kind]()
    drawn = recipe.draw()
    again = recipe_of(json.loads(json.dumps(drawn.recipe)))
    assert again == recipe
    assert again.draw().bytes("csv") == drawn.bytes("csv")
    style = Style(width=COLUMN)
    assert again.draw().bytes("pdf", style=style) == drawn.bytes("pdf", style=style)
    assert drawn.interactive is not None
    assert len(drawn.interactive(style.theme).data) > 2
