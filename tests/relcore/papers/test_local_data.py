"""Data of the papers' runs: encoders that are independent of each other."""

from relcore.papers.local import text_encoders
from relcore.sources.pooled_words import PooledWords


def test_encoders_of_texts_are_trained_apart_and_give_one_space_each():
    encoders = text_encoders()
    trained_on = {(type(one), one.words if isinstance(one, PooledWords) else "") for one in encoders}
    assert len(trained_on) == len(encoders) == 4
    assert all(len(one.outputs) == 1 for one in encoders)
