"""Search of rows, and rows as links: what is found first, and what the browser may send."""

from __future__ import annotations

import pytest

from app.compare.inspector import SearchableRows
from app.components.rows import LONGEST_QUERY, read_pick, read_query

IDS = ["rivers", "River", "upriver", "sea", "lake", "pond"]
LABELS = ["", "", "", "river mouth", "a river", ""]
TEXTS = ["", "", "", "", "", "The pond beside the River."]


@pytest.mark.parametrize(
    ("query", "best"),
    [
        ("river", ["River", "rivers", "upriver", "sea", "lake", "pond"]),
        ("  RIVER ", ["River", "rivers", "upriver", "sea", "lake", "pond"]),
        ("the  pond", ["pond"]),
        ("qzx", []),
        (" ", []),
    ],
)
def test_ids_come_before_labels_and_these_before_texts(query, best):
    rows = SearchableRows(IDS, LABELS, TEXTS)
    found, n = rows.find(query)
    assert [rows.ids[row] for row in found] == best
    assert n == len(best)


@pytest.mark.parametrize(
    "sent",
    [
        None,
        "r1",
        {"row": 1, "pair": "other"},
        *({"row": row, "pair": "p"} for row in (-1, 5, True, 1.0, "1")),
    ],
)
def test_a_click_that_is_not_on_a_row_of_this_pair_is_ignored(sent):
    assert read_pick(sent, "p", 5) is None


def test_a_click_on_a_row_of_this_pair_is_its_number():
    assert read_pick({"row": 4, "pair": "p"}, "p", 5) == 4


@pytest.mark.parametrize(
    ("state", "query"), [(None, ""), ({"query": 3}, ""), ({"query": "a" * 900}, "a" * LONGEST_QUERY)]
)
def test_a_query_is_a_text_of_limited_length(state, query):
    assert read_query(state) == query
