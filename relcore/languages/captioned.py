"""Pictures and words: classes of pictures by what sentences say of them, through pairs of a picture and its caption alone."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.evaluation import Split
from relcore.languages.zero_shot import zero_shot_similarities
from relcore.progress import Context
from relcore.sources.dataset import Dataset
from relcore.sources.encoder import Encoder
from relcore.sources.lsa import TfidfSvd
from relcore.spaces import LatentSpace, SpaceError
from relcore.stitching.heads import fit_head
from relcore.store import Store

TEMPLATES = (
    "a hand-written {}",
    "a photo of the number {}",
    "the digit {}",
    "someone wrote {} on paper",
    "this is a {}",
    "a small grey picture of a {}",
)
GENERAL = ("a photo of a {}", "a picture of a {}", "this is a {}", "there is a {} in the picture", "one can see a {}", "a {}")
_DIGITS = ("zero", "one", "two", "three", "four", "five", "six", "seven", "eight", "nine")


@dataclass(frozen=True)
class CaptionSpec:
    """What is written of pictures, and how it is compared.

    Attributes
    ----------
    templates : tuple of str
        Each with one {} for the class. The first asks, so no picture is captioned by it; the others take turns as captions.
    n_pairs : int
        Pictures with captions, drawn at random, the same number of each class as far as they go.
    keep, exponent : int, float
        Of ASIF, see `zero_shot_similarities`.
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
        whole = isinstance(templates, tuple) and all(isinstance(one, str) and one.count("{}") == 1 for one in templates)
        if not whole or len(templates) < 2 or len(set(templates)) < len(templates):
            raise SpaceError(
                f"templates: expected two or more different sentences, each with one {{}} for the class, got {templates!r:.200}"
            )
        for name, least in (("n_pairs", 2), ("keep", 1), ("random_state", 0)):
            if type(getattr(self, name)) is not int or getattr(self, name) < least:
                raise SpaceError(f"{name}: expected a whole number from {least}, got {getattr(self, name)!r}")
        if not self.exponent > 0 or not 0 < self.test_fraction < 1:
            raise SpaceError(
                f"expected an exponent above 0 and a test_fraction between 0 and 1, got {self.exponent!r} and "
                f"{self.test_fraction!r}"
            )

    def to_json(self) -> dict[str, Any]:
        return asdict(self) | {"templates": list(self.templates)}

    @classmethod
    def from_json(cls, record: dict[str, Any]) -> CaptionSpec:
        """Back from `to_json`; unknown or misplaced settings are a SpaceError."""
        try:
            return cls(**{**record, "templates": tuple(record.get("templates", TEMPLATES))})
        except TypeError as error:
            raise SpaceError(f"captions: a setting is unknown, misplaced or of the wrong type ({error})") from error


@dataclass(frozen=True, eq=False)
class ZeroShot:
    """Accuracy by the number of pairs, 0 … 1.

    Attributes
    ----------
    classes : C names
    counts : numbers of pairs, ascending, the last is all
    accuracy : a score for each
    chance, head : float
        Always the most frequent class; a head trained on the labels of all rows that are not tested.
    test_ids, truth, answers : arrays (m,)
        With all pairs; numbers of classes.
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

    def confusion(self) -> np.ndarray:
        """Shares (C, C), rows the truth, of each its answers; rows sum to 1."""
        counts = np.zeros((len(self.classes),) * 2)
        np.add.at(counts, (self.truth, self.answers), 1)
        return counts / counts.sum(axis=1, keepdims=True)

    def wide(self) -> pd.DataFrame:
        """As one prints it."""
        rows = [(f"{count:,} pairs", score) for count, score in zip(self.counts, self.accuracy, strict=True)]
        return pd.DataFrame([*rows, ("head trained on labels", self.head), ("chance", self.chance)], columns=["", "accuracy"])


def words_of(classes: Sequence[str]) -> tuple[str, ...]:
    """Classes as one says them: digits by their names, underscores as spaces."""
    if set(classes) <= set("0123456789"):
        return tuple(_DIGITS[int(name)] for name in classes)
    return tuple(name.replace("_", " ").replace("-", " ") for name in classes)


def captions(classes: Sequence[str], templates: Sequence[str]) -> tuple[str, ...]:
    """Every template of every class, class by class, so C × T sentences."""
    return tuple(template.format(word) for word in words_of(classes) for template in templates)


def caption_dataset(classes: Sequence[str], templates: Sequence[str]) -> Dataset:
    """The captions as a dataset, for any text encoder."""
    sentences = captions(classes, templates)
    ids = [f"caption/{number}" for number in range(len(sentences))]
    return Dataset(lambda start, stop: list(sentences[start:stop]), ids, name="captions", kind="texts")


def encode_captions(classes: Sequence[str], templates: Sequence[str], encoder: Encoder, store: Store) -> np.ndarray:
    """Every template of every class through a text encoder of one output, (C × T, d), from the store where they are there.

    Raises
    ------
    SpaceError
        Fewer sentences than a TF-IDF needs; what the encoder lacks.
    """
    from relcore.encoding import encode

    n = len(captions(classes, templates))
    if isinstance(encoder, TfidfSvd) and encoder.n_components >= n:
        raise SpaceError(
            f"captions: expected more than {encoder.n_components} sentences for {encoder.title}, got {n}; add some"
        )
    (space,) = encode(caption_dataset(classes, templates), encoder, store)
    return space.vectors


def captions_job(context: Context, *, classes: Sequence[str], templates: Sequence[str], encoder: Encoder) -> None:
    """`encode_captions` as a job of the Engine; the rows are the array "rows"."""
    context.report(0, 1, f"loading {encoder.title}")
    context.put({"rows": encode_captions(classes, templates, encoder, context.store)}, {})


def classes_of(images: LatentSpace) -> tuple[str, ...]:
    """The classes of a space of pictures, by name.

    Raises
    ------
    SpaceError
        None, one only, or more than 1,000.
    """
    found = tuple(np.unique(images.labels.astype(str)).tolist()) if images.labels is not None else ()
    found = tuple(name for name in found if name)
    if not 2 <= len(found) <= 1000:
        raise SpaceError(
            f"{images.name!r}: expected pictures of 2 to 1,000 classes, whose names become captions, got {len(found)}; choose "
            "a dataset with labels"
        )
    return found


def zero_shot(
    images: LatentSpace,
    texts: np.ndarray,
    spec: CaptionSpec,
    text_name: str = "captions",
    test_rows: np.ndarray | None = None,
) -> ZeroShot:
    """Ask which class's sentence describes a picture best, having seen pictures only beside captions.

    Parameters
    ----------
    texts : array (C × T, d)
        Rows of `captions`, in its order.
    test_rows : array of row numbers, optional
        Such as those that the pictures' encoder was not trained on; default a share of the rows, drawn by their ids.

    Raises
    ------
    SpaceError
        Other numbers of rows, too few pictures for so many pairs.
    """
    classes, n_templates = classes_of(images), len(spec.templates)
    if len(texts) != len(classes) * n_templates:
        raise SpaceError(
            f"captions: expected {len(classes)} classes × {n_templates} templates = {len(classes) * n_templates} rows, got "
            f"{len(texts)}; encode them anew"
        )
    number = {name: position for position, name in enumerate(classes)}
    targets = np.array([number.get(label, -1) for label in images.labels])
    rng = np.random.default_rng(spec.random_state)
    labelled = np.flatnonzero(targets >= 0)
    if test_rows is None:
        settings = {"test_fraction": spec.test_fraction, "random_state": spec.random_state}
        test_rows = labelled[Split.draw(images.ids[labelled], labels=targets[labelled], **settings).test]
    test = np.intersect1d(test_rows, labelled)
    train = _by_turns([rng.permutation(np.setdiff1d(np.flatnonzero(targets == c), test)) for c in range(len(classes))])
    if not len(test) or len(np.unique(targets[train])) < len(classes):
        raise SpaceError(f"{images.name!r}: expected pictures of each class to learn from and some to test; take more of them")
    if len(train) < spec.n_pairs:
        raise SpaceError(
            f"n_pairs: expected at most the {len(train):,} pictures that are not tested, got {spec.n_pairs:,}; lower it"
        )
    pairs = train[: spec.n_pairs]
    by_class = texts.reshape(len(classes), n_templates, -1)
    turn = 1 + np.arange(len(pairs)) // len(classes) % (n_templates - 1)
    written = by_class[targets[pairs], turn]
    counts = tuple(sorted({*(count for count in (10, 20, 50, 100, 200, 500, 1000, 2000) if count < len(pairs)), len(pairs)}))
    answers = [_answers(images.vectors[test], by_class[:, 0], images.vectors[pairs[:c]], written[:c], spec) for c in counts]
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
    similar = zero_shot_similarities(images, prompts, anchors, written, keep=spec.keep, exponent=spec.exponent)
    return similar.argmax(axis=1)


def _by_turns(groups: Sequence[np.ndarray]) -> np.ndarray:
    """One of each group, then the next of each: so that any first part is balanced."""
    longest = max(map(len, groups))
    return np.array([rows[i] for i in range(longest) for rows in groups if i < len(rows)], dtype=np.int64)
