"""Of a migration between unrelated models no threshold is restored."""

import pytest

from relcore.migrate.migration import Migration
from relcore.migrate.thresholds import ThresholdChange
from tests.controls.spaces import unrelated


@pytest.mark.parametrize("system", ["bridge", "re-embed"])
def test_no_threshold_is_restored(system):
    restored = 0
    for state in range(20):
        migration = Migration(n_pairs=60, random_state=state)
        change = ThresholdChange(migration=migration, adapter="whitened", system=system)
        restored += change.run(unrelated(120, 60, state, ("old", "new"))).beats_chance
    assert restored <= 3  # 2.5 % of 20 draws
