"""Studies of unrelated spaces and of random labels: every number lies where chance puts it."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest

from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.swept_vision import SweptVision
from relcore.encoders.vision import held_out_rows
from relcore.runs.store import Store
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace
from relcore.studies import anchor_count, pruning, relative_training, similarity_performance
from relcore.studies.study import StudySpec, study_of

# Few rows, anchors a third of them or more, dimensions near the number of anchors, one class rare.
N = 330
D = 90
CLASSES = np.repeat(np.arange(4), [120, 110, 90, 10])
# The mean reciprocal rank of a random order of n rows, cut at k = 10, is H / n a query, its second moment Q /
# n.
H, Q = (float(np.sum(1 / np.arange(1, 11) ** power)) for power in (1, 2))


def unrelated(random_state=0, offset=0.0, names="ab"):
    rng = np.random.default_rng(random_state)
    labels = [f"c{one}" for one in rng.permutation(CLASSES)]
    ids = [f"r{i}" for i in range(N)]
    return [LatentSpace(rng.normal(size=(N, D)) + offset, ids, name=name, labels=labels) for name in names]


def measured(kind, keep=lambda one: True, n_states=3, **options):
    study = study_of(kind)
    settings = StudySpec.of(study, options).settings
    runs = [one for one in study.runs(settings) if keep(one) and one["random_state"] < n_states]
    rows = [
        {**one, **study.measure(one, None, lambda *told: None).values, "seconds": 1.0, "key": "0" * 32}
        for one in runs
    ]
    return study, settings, pd.DataFrame(rows)


def near_chance_of_accuracy(scores, m):
    # With random labels, an answer is right with the probability p of its class. The largest p is 120 / 330,
    # and the mean is near Σ p² = .33 or below. The standard error of a share of m answers is at most
    # √(.25 / m), and that of a mean of shares is not larger.
    return (scores < 0.37 + 4 * np.sqrt(0.25 / m)).all()


@pytest.fixture
def spaces(monkeypatch):
    spaces = unrelated()
    monkeypatch.setattr(pruning, "word_pair", lambda *arguments: match(*spaces))
    for module in (anchor_count, pruning, relative_training):
        monkeypatch.setattr(module, "labelled_spaces", lambda *arguments: spaces)
        monkeypatch.setattr(module, "test_ids_of", lambda data, space: ())
    monkeypatch.setattr("relcore.studies.data.test_ids_of", lambda data, space: ())
    return spaces


@pytest.mark.slow
def test_random_labels_are_not_learned_by_heads(spaces):
    _, _, counted = measured("anchor-count", lambda one: one["n_anchors"] in (10, 100), 3)
    _, _, trained = measured("training", n_states=3, n_anchors=100)
    stitched = counted[[name for name in counted if name.endswith(("stitched", "same space"))]].dropna(axis=1)
    assert near_chance_of_accuracy(stitched.to_numpy(dtype=float), N * 0.2)
    assert near_chance_of_accuracy(trained.accuracy.to_numpy(), N * 0.2)


@pytest.fixture
def shuffled_digits(tmp_path):
    digits = load_dataset(DatasetSpec("digits"), Store(tmp_path))
    labels = np.random.default_rng(0).permutation(digits.labels)
    return Dataset(digits.items, digits.ids, name="shuffled", kind="images", labels=labels)


def test_random_labels_are_not_learned_by_networks(shuffled_digits, monkeypatch):
    monkeypatch.setattr(relative_training, "load_dataset", lambda *arguments: shuffled_digits)
    _, _, table = measured("trained-count", lambda one: one["n_anchors"] == 50, 1, epochs=5)
    spec = SweptVision(epochs=4, width=16)
    best = similarity_performance._measure(spec, shuffled_digits, lambda *told: None, None).values["accuracy"]
    found = [best, *table[["absolute", "relative, same space", "relative, stitched"]].iloc[0]]
    # Ten classes of a tenth each: a share of m = 359 has a standard error of √(.09 / m) = .016.
    m = len(held_out_rows(len(shuffled_digits)))
    assert max(found) < 0.1 + 4 * np.sqrt(0.09 / m)


@pytest.mark.slow
@pytest.mark.parametrize("task", ["random", "different"])
def test_networks_of_unlike_tasks_do_not_come_to_agree(task):
    study, settings, table = measured(
        "training-agreement", lambda one: one["width"] == 16, 3, task=task, epochs=10
    )
    assert table["agreement, batches to 50%"].isna().all()
    assert table["agreement rise"].max() < 0.05
    assert study.conclusion(settings, table).startswith("They do not come to agree.")
    if task == "random":
        # The accuracy of 2 × 600 answers in ten classes has a standard error of √(.09 / 1200) = .0087.
        assert table["accuracy after"].max() < 0.1 + 4 * 0.0087
