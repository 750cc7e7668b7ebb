"""Lists of pairs from files, right and wrong ones."""

from __future__ import annotations

import pytest

from relcore.encoders.datasets import read_pair_list


@pytest.fixture
def write(tmp_path):
    def write(content, name="list.tsv"):
        path = tmp_path / name
        path.write_text(content, encoding="utf-8")
        return path

    return write


def test_columns_of_text_in_their_order_whatever_else_there_is(write):
    found = read_pair_list(write("n\ten\tfr\n1\tGood  day\tBonjour\n2\tThanks\tMerci\n"))
    assert found.name == "list"
    assert len(found) == 2
    assert found.columns == {"en": ("Good day", "Thanks"), "fr": ("Bonjour", "Merci")}
    assert found.pairs("fr", "en")[0] == ("Bonjour", "Good day")
