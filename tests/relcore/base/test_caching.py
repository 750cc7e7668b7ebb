import numpy as np
import pytest

from relcore.base.rows import MadeOnce


@pytest.fixture
def counted():
    calls = []
    return MadeOnce(lambda array: calls.append(1) or float(array.sum())), calls


def fixed(array):
    array.flags.writeable = False
    return array


def test_an_array_that_nobody_can_write_to_is_looked_at_once(counted):
    total, calls = counted
    array = fixed(np.arange(5.0))
    assert [total(array), total(array), len(calls)] == [10, 10, 1]


@pytest.mark.parametrize("view", [lambda array: array, lambda array: fixed(array[:])])
def test_what_may_change_is_looked_at_each_time(counted, view):
    total, _ = counted
    array = np.arange(5.0)
    seen = view(array)
    assert total(seen) == 10
    array[0] = 7
    assert total(seen) == 17
