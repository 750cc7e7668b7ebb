"""What the studies of the open questions are measured on: spaces over the same rows, and anchors that no test row is among."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import permutations

import numpy as np

from relcore.encoding import encode
from relcore.evaluation import TEST_FRACTION, Split, row_keys
from relcore.progress import Report
from relcore.sources.dataset import DatasetSpec
from relcore.sources.lsa import TfidfSvd
from relcore.sources.parallel import LANGUAGES
from relcore.sources.pooled_words import PooledWords
from relcore.spaces import LatentSpace, SpaceError
from relcore.store import Store
from relcore.studies.material import LABELLED, dataset_of, labelled_spaces, test_ids_of, word_pair
from relcore.studies.study import Option

_HELP = {
    "languages": "438 everyday sentences in English, Spanish, French and Japanese, each language by its own TF-IDF + SVD.",
    "pooled": "2,000 Wikipedia sentences as plain means of the bundled Word2Vec and FastText word vectors.",
    "words": "The two bundled word spaces.",
    "digits": "An MLP, a CNN, a residual CNN and a ViT, tested on digits that none of them was trained on.",
    "reduced": "The bundled word spaces, each cut to its own first 3, 6, 12, 25 or 50 principal components.",
    "trainings": "MLPs and CNNs of width 8, 32 and 128 on the digits, each trained from two random states.",
    "sentences": "TF-IDF + SVD and MiniLM's layers 2, 4 and 6; the first run encodes them, which takes some minutes.",
}


def data_option(*choices: str, default: Sequence[str] = ()) -> Option:
    """The choice of data among these, several at once; default all of them."""
    told = " ".join(f"{name.capitalize()}: {_HELP[name]}" for name in choices)
    return Option("data", "On", choices, tuple(default or choices), many=True, help=told)


def studied_spaces(data: str, store: Store, report: Report) -> list[LatentSpace]:
    """Two or four spaces over the same ids, row for row."""
    if data == "words":
        pair = word_pair((), store)
        return [pair.source, pair.target]
    if data == "languages":
        encoder = TfidfSvd(128, min_texts=1)
        return [encode(DatasetSpec("parallel", language), encoder, store, report)[0] for language in LANGUAGES]
    if data == "pooled":
        encoders = [PooledWords(words, "plain") for words in ("word2vec-novels", "fasttext-novels")]
        return [encode(dataset_of("sentences"), encoder, store, report)[0] for encoder in encoders]
    return labelled_spaces(data, store, report)


def ordered_pairs(spaces: Sequence[LatentSpace]) -> list[tuple[int, int]]:
    """Every source with every other target."""
    return list(permutations(range(len(spaces)), 2))


def studied_split(data: str, space: LatentSpace, n_anchors: int, random_state: int, most_rows: int | None = None) -> Split:
    """Anchors, training rows and test rows; digits are tested on rows that the networks were not trained on either."""
    return anchored_split(
        space.ids,
        n_anchors,
        test_ids=test_ids_of(data, space) if data in LABELLED else (),
        labels=space.labels if data in LABELLED else None,
        most_rows=most_rows,
        random_state=random_state,
    )


def anchored_split(
    ids: Sequence[str],
    n_anchors: int,
    *,
    test_fraction: float = TEST_FRACTION,
    test_ids: Sequence[str] = (),
    labels: Sequence | None = None,
    most_rows: int | None = None,
    random_state: int = 0,
) -> Split:
    """Test rows as `Split.draw` draws them, and anchors at random among the others: fewer anchors are the first of more.

    Parameters
    ----------
    most_rows : int, optional
        Keep only this number of rows, drawn by their ids; the others are in no part.

    Raises
    ------
    SpaceError
        More anchors than rows that are not tested on; what `Split.draw` raises.
    """
    ids = np.asarray(ids, dtype=object)
    drawn = Split.draw(ids, test_fraction=test_fraction, test_ids=test_ids, labels=labels, random_state=random_state)
    train, test = drawn.train, drawn.test
    if most_rows is not None and most_rows < len(ids):
        kept = np.zeros(len(ids), dtype=bool)
        kept[np.argsort(row_keys(ids, "rows", random_state))[:most_rows]] = True
        train, test = train[kept[train]], test[kept[test]]
    if not 1 <= n_anchors <= len(train):
        raise SpaceError(f"n_anchors: expected 1 … {len(train):,}, the rows that are not tested on, got {n_anchors:,}")
    order = np.argsort(row_keys(ids[train], "anchors", random_state))
    return Split(ids, train[order[:n_anchors]], np.sort(train[order[n_anchors:]]), test, random_state)
