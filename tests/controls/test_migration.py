"""In a migration between unrelated models, no threshold is moved."""

import pytest

from relcore.migrate.migration import Migration
from relcore.migrate.thresholds import ThresholdChange
from tests.controls.spaces import unrelated


@pytest.mark.parametrize("system", ["bridge", "re-embed"])
def test_no_threshold_is_moved(system):
    moved = 0
    for state in range(20):
        migration = Migration(n_pairs=60, random_state=state)
        change = ThresholdChange(migration=migration, adapter="whitened", system=system)
        moved += change.run(unrelated(120, 60, state, ("old", "new"))).beats_chance
    assert moved <= 3  # 2.5 % of 20 draws
