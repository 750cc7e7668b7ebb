"""Ids that are row numbers behave as the strings that they stand for."""

import json

import numpy as np
import pandas as pd

from relcore.spaces.ids import RowNumbers, as_json

IDS = list(map(str, range(70_000)))  # more than one piece of JSON


def test_row_numbers_are_the_strings():
    numbers = RowNumbers(70_000)
    assert list(numbers[:12]) == IDS[:12]
    assert (numbers[-1], len(numbers), list(RowNumbers(3))) == ("69999", 70_000, ["0", "1", "2"])
    assert numbers.at(np.array([5, 0, 69_999])).tolist() == ["5", "0", "69999"]
    assert numbers.at(slice(None)).tolist() == IDS
    assert numbers == RowNumbers(70_000) != RowNumbers(3)


def test_rows_of_ids_are_found_as_index_finds_them():
    asked = ["7", "0", "69999", "70000", "-1", "007", "1.0", "", "x", " 5", "٣", "1" * 400, 7, None]
    found = RowNumbers(70_000).rows(asked)
    assert found.tolist() == pd.Index(IDS, dtype=object).get_indexer(pd.Index(asked, dtype=object)).tolist()


def test_json_in_pieces_is_json_in_one():
    counts = np.arange(70_000)
    labels = np.array(['é\n"x'] * 70_000, dtype=object)
    whole = json.dumps([IDS, labels.tolist(), counts.tolist()])
    assert b"".join(as_json(RowNumbers(70_000), labels, counts)).decode() == whole
    assert b"".join(as_json(np.array(["a"], object), None, None)).decode() == json.dumps([["a"], None, None])
