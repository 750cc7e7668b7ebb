"""Ids, labels and counts of every format: as they were written, or an error with their row."""

from decimal import Decimal

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.files.formats import checked_counts, checked_ids


@pytest.mark.parametrize(
    ("given", "ids"),
    [
        (["a", "A", "é", "e\u0301", "a\nb", "a\tb", "NA", "nan", "\x85"], None),
        ([7, 2**53 + 1, -1], ["7", "9007199254740993", "-1"]),
        ([Decimal("2.00"), np.int64(4), np.str_("x")], ["2", "4", "x"]),
    ],
)
def test_ids_as_they_were_meant(given, ids):
    assert checked_ids(given, "t") == (ids or given)


@pytest.mark.parametrize(
    ("bad", "message"),
    [
        (None, "expected an id, got an empty one; fill it"),
        (0.5, "expected an id as text or a whole number, got 0.5; save the column as text"),
        (True, "whole number, got True"),
        ("\ud800x", "expected Unicode text"),
    ],
)
def test_ids_that_are_none_name_their_row(bad, message):
    with pytest.raises(SpaceError, match=f"t.csv, row 2: .*{message}"):
        checked_ids(["a", bad], "t.csv")


@pytest.mark.parametrize("bad", [-1, 2.5, 2**63, "many"])
def test_counts_that_are_none_name_their_row(bad):
    with pytest.raises(
        SpaceError, match=r"t\.csv, row 2: expected whole numbers as counts, 0 to 2⁶³ − 1, got .*; mend"
    ):
        checked_counts([1, bad], "t.csv")
