"""MNIST, TREC and Multi30k, where they lie under RELSCOPE_DATA: encoded, paired and compared as a user
would.
"""

import os
from dataclasses import replace

import pytest

from relcore.catalog.encoding import encode
from relcore.encoders.datasets import available_datasets
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.small_vision import SmallVision
from relcore.represent.anchors import select_anchors
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec, held_out, represent, score_pair
from relcore.spaces.space import match

pytestmark = [pytest.mark.data, pytest.mark.slow]


def dataset_named(name):
    folder = os.environ.get("RELSCOPE_DATA")
    found = {entry.name: entry.spec for entry in available_datasets()} if folder else {}
    if name not in found:
        pytest.skip(f"{name} is not under RELSCOPE_DATA")
    return found[name]


def compared(source, target, n_anchors=256):
    """Scores of the relative spaces, through random anchors."""
    pair = match(source, target)
    anchors = select_anchors(pair.source, n_anchors, random_state=0)
    return score_pair(
        *represent(pair, "relative", anchors, ProjectionSpec()), held_out(pair, anchors), n_queries=500
    )


def need_beyond_chance(scores, *metrics):
    for metric in metrics:
        assert float(scores[metric]) > 3 * scores[metric].null.high, scores[metric].describe()


def test_two_networks_see_mnist_alike(tmp_path):
    spec, store = dataset_named("mnist/test"), Store(tmp_path)
    (mlp,) = encode(spec, SmallVision("mlp", epochs=4, train_rows=3000), store)
    (cnn,) = encode(spec, SmallVision("cnn", epochs=2, train_rows=3000), store)
    assert len(mlp) == len(cnn) == 10_000
    need_beyond_chance(compared(mlp, cnn), "jaccard", "mrr", "cosine", "cka")


def test_words_and_topics_see_trec_alike(tmp_path):
    spec, store = dataset_named("trec/train"), Store(tmp_path)
    (topics,) = encode(spec, TfidfSvd(n_components=128), store)
    (words,) = encode(spec, PooledWords(weighting="sif"), store)
    assert len(topics) == len(words) > 5000
    need_beyond_chance(compared(topics, words), "jaccard", "cosine", "cka")


def test_two_languages_of_multi30k_have_the_same_ids(tmp_path):
    spec, store = dataset_named("multi30k/val"), Store(tmp_path)
    english, german = (
        encode(replace(spec, column=column), TfidfSvd(n_components=128), store)[0] for column in ("en", "de")
    )
    pair = match(english, german)
    assert len(pair) + pair.n_zero == len(english) == len(german) == 1014
    need_beyond_chance(compared(english, german), "cka")
