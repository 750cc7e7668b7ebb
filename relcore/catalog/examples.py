"""Labelled tasks whose encodings are bundled with Relscope."""

from __future__ import annotations

from dataclasses import dataclass

from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.encoders.datasets import TASK
from relcore.encoders.encoder import DatasetSpec, Encoder
from relcore.encoders.sentences import PooledWords
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import DistortedVision
from relcore.runs.entries import BundledResults, FinishedGroup


@dataclass(frozen=True)
class Example:
    """A dataset of `n` rows and its encoders."""

    title: str
    explanation: str
    n: int
    dataset: DatasetSpec
    encoders: tuple[Encoder, ...]


EXAMPLES = {
    "digits": Example(
        "Digits, four networks",
        "1,797 scans of digits; four networks learned to read them, each from its own random start.",
        1797,
        DatasetSpec("digits"),
        tuple(DistortedVision(name) for name in ("mlp", "cnn", "residual", "vit")),
    ),
    "sentences": Example(
        "Wikipedia sentences, three encoders",
        "960 sentences of 16 articles. The label is the article. Encoders: weighted means of Word2Vec and of"
        " FastText vectors, and MiniLM.",
        960,
        DatasetSpec("wikipedia", limit=960, options=TASK.options),
        (PooledWords("word2vec-novels"), PooledWords("fasttext-novels"), MiniLM()),
    ),
}


def example_spaces(
    name: str, finished: BundledResults | None
) -> tuple[list[SpaceSpec], FinishedGroup | None]:
    """The specs of an example's encodings, and when they were computed; none if one is missing.

    Examples
    --------
    >>> from relcore import bundled_results, example_spaces
    >>> specs, _ = example_spaces("digits", bundled_results())
    >>> len(specs)
    4
    """
    group = finished.groups.get(name) if finished else None
    if group is None:
        return [], None
    specs = [
        spec
        for key in group.files
        if (summary := finished.summary(key)) and (spec := stored_encoding_spec(summary))
    ]
    return specs, finished.bundled_group(group.files[0])
