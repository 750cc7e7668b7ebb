"""What every adapter has in common."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import ADAPTERS


@pytest.fixture(params=ADAPTERS)
def adapter(request):
    return ADAPTERS[request.param].load()()


def test_a_rotated_copy_is_found_again_whatever_the_lengths_of_its_rows(adapter):
    rng = np.random.default_rng(0)
    old = rng.normal(size=(400, 8)) @ np.diag(np.linspace(2, 1, 8))
    rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    new = old @ rotation * rng.uniform(0.1, 50, size=(400, 1))
    adapter.fit(new[:300], old[:300])
    nearest = (adapter.transform(new[300:]) @ adapter.corpus(old[300:]).T).argmax(axis=1)
    assert np.mean(nearest == np.arange(100)) > 0.95


def test_unrelated_pairs_find_what_chance_finds(adapter):
    rng = np.random.default_rng(0)
    new, old = rng.normal(size=(400, 8)), rng.normal(size=(400, 6))
    adapter.fit(new[:300], old[:300])
    nearest = (adapter.transform(new[300:]) @ adapter.corpus(old[300:]).T).argmax(axis=1)
    assert np.mean(nearest == np.arange(100)) <= 0.06  # .01 by chance


def test_rows_that_do_not_pair_are_refused(adapter):
    rows = np.ones((5, 3))
    with pytest.raises(SpaceError, match="as many new rows as old ones"):
        adapter.fit(rows, rows[:4])
