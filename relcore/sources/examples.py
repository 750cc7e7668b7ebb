"""Examples: labelled tasks whose encodings come with Relscope: there is something to stitch before anything is trained."""

from __future__ import annotations

from dataclasses import dataclass

from relcore.sources.catalog import SpaceSpec, stored_encoding_spec
from relcore.sources.dataset import DatasetSpec
from relcore.sources.encoder import Encoder
from relcore.sources.pooled_words import PooledWords
from relcore.sources.small_vision import SmallVision
from relcore.sources.text import MiniLM
from relcore.sources.wikipedia import TASK
from relcore.store import Finished, Made


@dataclass(frozen=True)
class Example:
    """A dataset and its encoders.

    Attributes
    ----------
    title : str
        In a few words.
    explanation : str
        The data, the labels and the encoders, in a sentence or two.
    n : int
        Rows.
    """

    title: str
    explanation: str
    n: int
    dataset: DatasetSpec
    encoders: tuple[Encoder, ...]


EXAMPLES = {
    "digits": Example(
        "Digits, four networks",
        "1,797 scans of handwritten digits. Four architectures learned to classify them, each from its own random start.",
        1797,
        DatasetSpec("digits"),
        tuple(SmallVision(name) for name in ("mlp", "cnn", "residual", "vit")),
    ),
    "sentences": Example(
        "Wikipedia sentences, three encoders",
        "960 sentences of 16 articles. The label is the article. Encoders: weighted means of Word2Vec and of FastText vectors, "
        "and MiniLM.",
        960,
        DatasetSpec("wikipedia", limit=960, options=TASK.options),
        (PooledWords("word2vec-novels"), PooledWords("fasttext-novels"), MiniLM()),
    ),
}


def example_spaces(name: str, finished: Finished | None) -> tuple[list[SpaceSpec], Made | None]:
    """The specs of an example's encodings in the order of its encoders, and when they were computed; none if missing."""
    group = finished.groups.get(name) if finished else None
    if group is None:
        return [], None
    found = [spec for key in group.files if (summary := finished.summary(key)) and (spec := stored_encoding_spec(summary))]
    return found, finished.made(group.files[0])
