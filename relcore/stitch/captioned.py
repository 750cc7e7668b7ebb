"""Pictures and words: classify pictures by sentences about their classes, through pairs of a picture and
its caption alone.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_whole
from relcore.base.numbers import counted
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import Encoder, TrainedEncoder
from relcore.encoders.sentences import TfidfSvd
from relcore.represent.similarity import mean_row, unit_rows
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split
from relcore.stitch.heads import fit_head
from relcore.tasks.task import Task

# Image–text classification without training (ASIF): two encoders share only pairs of a picture and its
# caption.


def zero_shot_similarities(
    images: np.ndarray,
    prompts: np.ndarray,
    image_anchors: np.ndarray,
    text_anchors: np.ndarray,
    *,
    keep: int = 100,
    exponent: float = 8.0,
) -> np.ndarray:
    """Similarity of each image to each prompt through paired anchors (ASIF; Norelli et al. 2023).

    An image becomes its cosines to the image anchors, a prompt its cosines to the text anchors. The `keep`
    largest cosines of each are raised to `exponent`, all others are 0. The similarity is the cosine of the
    two.

    Parameters
    ----------
    images, prompts : arrays (n, d_image), (C, d_text)
        Encoded images, and one encoded prompt per class.
    image_anchors, text_anchors : arrays (k, d_image), (k, d_text)
        Row i is a picture and its caption.
    keep : int
        The paper keeps 800 of 1.6 million.
    exponent : float

    Returns
    -------
    array (n, C) float32, 0 … 1. The predicted class is the largest of a row.

    Raises
    ------
    SpaceError
        No anchors, unpaired anchors, widths that differ, or a `keep` or exponent not above 0.
    """
    for kind, rows, anchors in (("image", images, image_anchors), ("text", prompts, text_anchors)):
        if rows.ndim != 2 or anchors.ndim != 2 or rows.shape[1] != anchors.shape[1]:
            raise SpaceError(
                f"expected {kind} rows and anchors of one width, got shapes {rows.shape} and {anchors.shape}"
            )
    if len(image_anchors) != len(text_anchors) or not len(image_anchors):
        raise SpaceError(
            f"anchors: expected pairs, a picture and its caption, got {len(image_anchors)} pictures and"
            f" {len(text_anchors)} captions"
        )
    if keep < 1 or not exponent > 0:
        raise SpaceError(f"expected keep of 1 or more and an exponent above 0, got {keep} and {exponent}")
    found = [_sparse(images, image_anchors, keep, exponent), _sparse(prompts, text_anchors, keep, exponent)]
    return found[0] @ found[1].T


def _sparse(rows: np.ndarray, anchors: np.ndarray, keep: int, exponent: float) -> np.ndarray:
    """The kept cosines of the rows to the anchors, both centred by the mean of the anchors."""
    mean = mean_row(anchors)
    cosines = np.maximum(unit_rows(rows, mean) @ unit_rows(anchors, mean).T, 0)
    if keep < len(anchors):
        least = np.partition(cosines, -keep, axis=1)[:, -keep, None]
        cosines[cosines < least] = 0
    return unit_rows(cosines**exponent)


TEMPLATES = (
    "a hand-written {}",
    "a photo of the number {}",
    "the digit {}",
    "someone wrote {} on paper",
    "this is a {}",
    "a small grey picture of a {}",
)
GENERAL = (
    "a photo of a {}",
    "a picture of a {}",
    "this is a {}",
    "there is a {} in the picture",
    "one can see a {}",
    "a {}",
)
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class CaptionSpec:
    """The captions, and how pictures and sentences are compared.

    Attributes
    ----------
    templates : tuple of str
        Sentences with one {} for the class. The first is the query of a class and no caption; the others are
        used as captions in turn.
    n_pairs : int
        Number of pictures with captions, drawn at random, with balanced classes.
    keep, exponent : int, float
        Settings of ASIF, see `zero_shot_similarities`.
    test_fraction : float
    random_state : int
    """

    templates: tuple[str, ...] = TEMPLATES
    n_pairs: int = 300
    keep: int = 100
    exponent: float = 8.0
    test_fraction: float = 0.2
    random_state: int = 0

    def __post_init__(self) -> None:
        templates = self.templates
        if (
            any(one.count("{}") != 1 for one in templates)
            or len(templates) < 2
            or len(set(templates)) < len(templates)
        ):
            raise SpaceError(
                "templates: expected two or more different sentences, each with one {} for the class, got"
                f" {templates!r:.200}"
            )
        need_whole(self, n_pairs=2, keep=1, random_state=0)
        if not self.exponent > 0 or not 0 < self.test_fraction < 1:
            raise SpaceError(
                f"expected an exponent above 0 and a test_fraction between 0 and 1, got {self.exponent!r} and"
                f" {self.test_fraction!r}"
            )


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """Accuracy by the number of pairs, 0 … 1.

    Attributes
    ----------
    classes : C names
    counts : numbers of pairs, ascending, the last is all
    accuracy : one per count
    chance, head : float
        Accuracy of always answering the most frequent class; of a head trained on the labels of all rows not
        held out.
    test_ids, truth, answers : arrays (m,)
        Ids of the held-out rows, and numbers of their classes and of the answers with all pairs.
    """

    spec: CaptionSpec
    names: tuple[str, str]
    classes: tuple[str, ...]
    counts: tuple[int, ...]
    accuracy: tuple[float, ...]
    chance: float
    head: float
    test_ids: np.ndarray
    truth: np.ndarray
    answers: np.ndarray

    def wide(self) -> pd.DataFrame:
        """The table to print."""
        rows = [
            (counted(count, "pair"), score) for count, score in zip(self.counts, self.accuracy, strict=True)
        ]
        return pd.DataFrame(
            [*rows, ("head trained on labels", self.head), ("chance", self.chance)], columns=["", "accuracy"]
        )


def words_of(classes: Sequence[str]) -> tuple[str, ...]:
    """The words for the classes: names of digits, and spaces instead of underscores and hyphens."""
    if set(classes) <= set("0123456789"):
        return tuple(_DIGITS[int(name)] for name in classes)
    return tuple(name.replace("_", " ").replace("-", " ") for name in classes)


def captions(classes: Sequence[str], templates: Sequence[str]) -> tuple[str, ...]:
    """C × T sentences: every template of every class, class by class."""
    return tuple(template.format(word) for word in words_of(classes) for template in templates)


@dataclass(frozen=True)
class CaptionRows:
    """Rows of `captions`, (C × T, d)."""

    rows: np.ndarray


@dataclass(frozen=True)
class EncodeCaptions(Task["CaptionRows"]):
    """Encode `captions` by a text encoder of one output; rows that are in the store are read from it."""

    kind: ClassVar[str] = "captions"
    result: ClassVar[str] = "relcore.stitch.captioned:CaptionRows"

    classes: tuple[str, ...]
    templates: tuple[str, ...]
    encoder: Encoder

    @property
    def title(self) -> str:
        return f"{self.encoder.title}, {len(self.classes) * len(self.templates):,} captions"

    def content(self, spaces: Sequence[LatentSpace] = ()) -> str:
        """The files of the encoder's model."""
        return self.encoder.content()

    def seconds(self, spaces: Sequence[LatentSpace] = ()) -> float:
        return 0.1 if isinstance(self.encoder, TrainedEncoder) else 6.0  # a language model must be loaded

    def run(self, spaces: Sequence[LatentSpace], store: Store, report: Report = silent) -> CaptionRows:
        from relcore.catalog.encoding import encode

        report(0, 1, f"loading {self.encoder.title}")
        sentences = captions(self.classes, self.templates)
        if isinstance(self.encoder, TfidfSvd) and self.encoder.n_components >= len(sentences):
            raise SpaceError(
                f"captions: expected more than {self.encoder.n_components} sentences for"
                f" {self.encoder.title}, got {len(sentences)}; add some"
            )
        ids = [f"caption/{number}" for number in range(len(sentences))]
        items = Dataset(lambda start, stop: list(sentences[start:stop]), ids, name="captions", kind="texts")
        return CaptionRows(encode(items, self.encoder, store)[0].vectors)


def classes_of(images: LatentSpace) -> tuple[str, ...]:
    """The names of the classes of a space of pictures.

    Raises
    ------
    SpaceError
        Fewer than 2 classes, or more than 1,000.
    """
    found = tuple(np.unique(images.labels.astype(str)).tolist()) if images.labels is not None else ()
    found = tuple(name for name in found if name)
    if not 2 <= len(found) <= 1000:
        raise SpaceError(
            f"{images.name!r}: expected pictures of 2 to 1,000 classes, whose names become captions, got"
            f" {len(found)}; choose a dataset with labels"
        )
    return found


def zero_shot(
    images: LatentSpace,
    texts: np.ndarray,
    spec: CaptionSpec,
    text_name: str = "captions",
    test_rows: np.ndarray | None = None,
) -> ZeroShot:
    """Classify each held-out picture as the class whose first sentence is most similar to it, by pictures
    with captions alone.

    Parameters
    ----------
    texts : array (C × T, d)
        Rows of `captions`, in its order.
    test_rows : array of row numbers, optional
        Rows to hold out, such as those that the encoder of the pictures was not trained on. Default: a share
        of the rows, drawn by their ids.

    Raises
    ------
    SpaceError
        A wrong number of caption rows, or too few pictures for the number of pairs.
    """
    classes, n_templates = classes_of(images), len(spec.templates)
    if len(texts) != len(classes) * n_templates:
        raise SpaceError(
            f"captions: expected {len(classes)} classes × {n_templates} templates ="
            f" {len(classes) * n_templates} rows, got {len(texts)}; encode them again"
        )
    number = {name: position for position, name in enumerate(classes)}
    targets = np.array([number.get(label, -1) for label in images.labels])
    rng = np.random.default_rng(spec.random_state)
    labelled = np.flatnonzero(targets >= 0)
    if test_rows is None:
        settings = {"test_fraction": spec.test_fraction, "random_state": spec.random_state}
        test_rows = labelled[Split.draw(images.ids[labelled], labels=targets[labelled], **settings).test]
    test = np.intersect1d(test_rows, labelled)
    train = _by_turns(
        [rng.permutation(np.setdiff1d(np.flatnonzero(targets == c), test)) for c in range(len(classes))]
    )
    if not len(test) or len(np.unique(targets[train])) < len(classes):
        raise SpaceError(
            f"{images.name!r}: expected training pictures of each class and held-out pictures; take more of"
            " them"
        )
    if len(train) < spec.n_pairs:
        raise SpaceError(
            f"n_pairs: expected at most {len(train):,}, the number of pictures not held out, got"
            f" {spec.n_pairs:,}; lower it"
        )
    pairs = train[: spec.n_pairs]
    by_class = texts.reshape(len(classes), n_templates, -1)
    turn = 1 + np.arange(len(pairs)) // len(classes) % (n_templates - 1)
    written = by_class[targets[pairs], turn]
    counts = tuple(
        sorted(
            {*(count for count in (10, 20, 50, 100, 200, 500, 1000, 2000) if count < len(pairs)), len(pairs)}
        )
    )
    answers = [
        _answers(images.vectors[test], by_class[:, 0], images.vectors[pairs[:c]], written[:c], spec)
        for c in counts
    ]
    head = fit_head(images.vectors[train], targets[train], len(classes))
    return ZeroShot(
        spec,
        (images.name, text_name),
        classes,
        counts,
        tuple(float(np.mean(found == targets[test])) for found in answers),
        float(np.mean(targets[test] == np.bincount(targets[labelled]).argmax())),
        float(np.mean(head.probabilities(images.vectors[test]).argmax(axis=1) == targets[test])),
        images.ids[test],
        targets[test],
        answers[-1],
    )


def _answers(
    images: np.ndarray, prompts: np.ndarray, anchors: np.ndarray, written: np.ndarray, spec: CaptionSpec
) -> np.ndarray:
    similar = zero_shot_similarities(
        images, prompts, anchors, written, keep=spec.keep, exponent=spec.exponent
    )
    return similar.argmax(axis=1)


def _by_turns(groups: Sequence[np.ndarray]) -> np.ndarray:
    """The first row of each group, then the second of each, …, so that the classes of any first part are
    balanced.
    """
    longest = max(map(len, groups))
    return np.array([rows[i] for i in range(longest) for rows in groups if i < len(rows)], dtype=np.int64)
