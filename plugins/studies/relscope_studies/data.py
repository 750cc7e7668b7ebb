"""Data and statistics that studies of this package share; no test row is an anchor."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import permutations
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.settings import Setting
from relcore.catalog.encodings import encode
from relcore.encoders.bundled_data import LANGUAGES
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.pictures import pixel_array
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.figures.charts import Line
from relcore.represent.strategies import select_anchors
from relcore.runs.store import Store
from relcore.runs.work import Progress
from relcore.scores.estimate import Estimate
from relcore.scores.score import Z95
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split, row_keys
from relcore.studies.data import LABELLED, dataset_of, labelled_spaces, test_ids_of, word_pair
from relcore.studies.estimates import lines_over
from relcore.studies.study import Option, Settings

_HELP = {
    "mixture": "A mixture of Gaussians and its image under a linear map.",
    "languages": "438 everyday sentences in four languages, each by its own TF-IDF + SVD.",
    "pooled": "2,000 Wikipedia sentences as plain means of the bundled word vectors.",
    "words": "The two bundled word spaces.",
    "digits": "An MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on.",
    "reduced": "The bundled word spaces, each cut to its first 3, 6, 12, 25 or 50 principal components.",
    "trainings": "MLPs and CNNs of width 8, 32 and 128 on the digits, each trained from two random states.",
    "sentences": "TF-IDF + SVD and MiniLM's layers 2, 4 and 6; the first run takes some minutes.",
}


def data_option(*choices: str, default: Sequence[str] = ()) -> Setting:
    explained = " ".join(f"{name.capitalize()}: {_HELP[name]}" for name in choices)
    return Option("data", "On", choices, tuple(default or choices), many=True, help=explained)


def digit_pictures(store: Store) -> tuple[Dataset, np.ndarray]:
    """The digits, and their pictures (n, 8, 8) float32, 0 … 1."""
    dataset = load_dataset(DatasetSpec("digits"), store)
    images = dataset.items(0, len(dataset))
    pixels = pixel_array(images, "L", (images[0].height, images[0].width), dataset.name)[:, 0]
    return dataset, pixels / np.float32(255)


def random_anchors(settings: Settings, pair: Match) -> list[str]:
    return select_anchors(pair.source, settings["n_anchors"], random_state=settings["random_state"]).tolist()


def studied_spaces(data: str, store: Store, report: Progress) -> list[LatentSpace]:
    if data == "words":
        pair = word_pair((), store)
        return [pair.source, pair.target]
    if data == "languages":
        sets = [DatasetSpec("parallel", language) for language in LANGUAGES]
        return [encode(words, TfidfSvd(128, min_texts=1), store, report)[0] for words in sets]
    if data == "pooled":
        encoders = [PooledWords(words, "plain") for words in ("word2vec-novels", "fasttext-novels")]
        return [encode(dataset_of("sentences"), encoder, store, report)[0] for encoder in encoders]
    return labelled_spaces(data, store, report)


def ordered_pairs(spaces: Sequence[LatentSpace]) -> list[tuple[int, int]]:
    return list(permutations(range(len(spaces)), 2))


def studied_split(
    data: str, space: LatentSpace, n_anchors: int, random_state: int, most_rows: int | None = None
) -> Split:
    """Split rows into anchors, training and test rows; no network was trained on the test rows of digits."""
    if data in LABELLED:
        test_ids = test_ids_of(data, space)
        labels = space.labels
    else:
        test_ids = ()
        labels = None
    return anchored_split(space.ids, n_anchors, test_ids, labels, most_rows, random_state)


def anchored_split(
    ids: Sequence[str],
    n_anchors: int,
    test_ids: Sequence[str] = (),
    labels: Sequence | None = None,
    most_rows: int | None = None,
    random_state: int = 0,
) -> Split:
    """Split rows into test rows, as `Split.draw` does, and random anchors among the others; the anchors of a
    smaller number are a prefix of those of a larger one.

    Uses at most `most_rows` rows, drawn by their ids. Raises a SpaceError if there are too few rows for the
    anchors.
    """
    split = Split.draw(ids, test_ids=test_ids, labels=labels, random_state=random_state)
    ids = split.ids
    train = split.train
    test = split.test
    if most_rows is not None and most_rows < len(ids):
        kept = np.argsort(row_keys(ids, "rows", random_state))[:most_rows]
        train = train[np.isin(train, kept)]
        test = test[np.isin(test, kept)]
    if not 1 <= n_anchors <= len(train):
        allowed = f"1 … {len(train):,}, the rows that are not tested on"
        raise SpaceError(f"n_anchors: expected {allowed}, got {n_anchors:,}")
    order = np.argsort(row_keys(ids[train], "anchors", random_state))
    return Split(ids, train[order[:n_anchors]], np.sort(train[order[n_anchors:]]), test, random_state)


def n_needed(estimate: Estimate, effect: float) -> int:
    """The number of values that would show an effect with a power of 80 %, estimated from this interval."""
    return round(estimate.n * ((estimate.high - estimate.low) / 2 * (1 + 0.8416 / Z95) / effect) ** 2)


def lines_by(table: pd.DataFrame, x: str, column: str, by: str, names: Mapping[Any, str]) -> list[Line]:
    parts = table.groupby(by, sort=False)
    return [line for value, part in parts for line in lines_over(part, x, {column: names[value]})]
