"""The tabs of a migration between unrelated models: no threshold is restored, no class loses."""

from __future__ import annotations

import numpy as np
import pytest

from relcore.migrate.measurements import ThresholdChange
from relcore.migrate.migration import Migration, losses_by_group
from relcore.spaces.space import LatentSpace

DRAWS = 20
SETTINGS = {"adapter": "whitened"}


def unrelated(state, n=120):
    """Two models of 60 dimensions whose rows have nothing in common; half of the rows are pairs."""
    rng = np.random.default_rng(state)
    ids = [f"d{row}" for row in range(n)]
    return [LatentSpace(rng.normal(size=(n, 60)), ids, name=name) for name in ("old", "new")]


def outcomes_of(kind, **settings):
    for state in range(DRAWS):
        yield kind(migration=Migration(n_pairs=60, random_state=state), **SETTINGS, **settings).run(
            unrelated(state)
        )


@pytest.mark.parametrize("system", ["bridge", "re-embed"])
def test_no_threshold_is_restored(system):
    found = [outcome.beats_chance for outcome in outcomes_of(ThresholdChange, system=system)]
    assert sum(found) <= 3  # 2.5 % of 20 draws


def test_no_class_loses_where_none_does():
    found = 0
    for state in range(DRAWS):
        rng = np.random.default_rng(state)
        groups = rng.choice(["a", "b", "rare"], 60, p=[0.5, 0.4, 0.1])
        table = losses_by_group(rng.choice([-0.4, 0.0, 0.0, 0.3], 60), groups)
        found += len(table) and table.p.min() < 0.05
    assert found <= 4  # 5 % of 20 draws
