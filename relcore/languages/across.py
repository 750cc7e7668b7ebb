"""A head trained on one space classifies the rows of another, through parallel anchors that belong to neither."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.evaluation import Split
from relcore.names import METHODS
from relcore.progress import Report, silent
from relcore.similarity import mean_row, rows_among
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError, quote
from relcore.stitching.heads import fit_head
from relcore.stitching.methods import Side, carrier, representation
from relcore.stitching.one_item import encode_items
from relcore.stitching.spec import StitchSpec
from relcore.store import Store
from relcore.task import Task


@dataclass(frozen=True)
class HeadAcross(Task["AcrossResult"]):
    """`head_across` of two spaces; the anchors are pairs of items, each encoded by the encoder of its space.

    Attributes
    ----------
    specs : (SpaceSpec, SpaceSpec)
        The space of the head, and the space of the rows.
    pairs : tuple of (item, item)
        Such as a sentence and its translation.
    stitching : StitchSpec
    """

    kind: ClassVar[str] = "across"
    result: ClassVar[str] = "relcore.languages.across:AcrossResult"

    specs: tuple[SpaceSpec, SpaceSpec]
    pairs: tuple[tuple[str, str], ...]
    stitching: StitchSpec = StitchSpec()

    @property
    def title(self) -> str:
        return "A head across languages"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 10 + sum(map(len, spaces)) / 500  # measured: 20 s for two spaces of 6,000 Wikipedia sentences

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> AcrossResult:
        anchors = []
        for number, (one, sentences) in enumerate(zip(self.specs, zip(*self.pairs, strict=True), strict=True)):
            report(number, 3, f"{len(sentences):,} sentences through the encoder of {one.name}")
            anchors.append(encode_items(one, sentences, store))
        report(2, 3, "heads")
        return head_across(*spaces, *anchors, self.stitching)


@dataclass(frozen=True)
class AcrossResult:
    """Accuracies, 0 … 1.

    Attributes
    ----------
    names : (of the head's space, of the rows' space)
    accuracy : method → accuracy
        Of the head on the held-out rows of the other space. A method that needs equal widths is left out where they differ.
    home : method → accuracy
        Of the same head on held-out rows of its own space, not stitched.
    ceiling : float
        Of a head trained on the rows and labels of the other space.
    chance : float
        Of always answering the most frequent class of the head's space.
    n, n_train, n_anchors : int
        Held-out rows of the other space, training rows of the head, pairs of anchors.
    """

    names: tuple[str, str]
    accuracy: dict[str, float]
    home: dict[str, float]
    ceiling: float
    chance: float
    n: int
    n_train: int
    n_anchors: int

    def table(self) -> pd.DataFrame:
        """One row per method: method, stitched, head at home, own head, chance, n (held-out rows), anchors."""
        rows = [(METHODS[name].title, score, self.home[name]) for name, score in self.accuracy.items()]
        table = pd.DataFrame(rows, columns=["method", "stitched", "head at home"])
        return table.assign(**{"own head": self.ceiling, "chance": self.chance, "n": self.n, "anchors": self.n_anchors})


def head_across(
    head_space: LatentSpace,
    row_space: LatentSpace,
    head_anchors: np.ndarray,
    row_anchors: np.ndarray,
    spec: StitchSpec | None = None,
) -> AcrossResult:
    """Train a head on the first space and score it on the second, by each method, with the first random state of the spec.

    A share of the rows is held out by their ids, so a row that both spaces have is held out of both. `test_ids` of the spec
    replace the drawn rows. Anchors that are rows of the spaces are not scored.

    Parameters
    ----------
    head_anchors, row_anchors : arrays (k, d_head), (k, d_row)
        Row for row the same thing, such as a sentence and its translation.

    Raises
    ------
    SpaceError
        No labels, no shared class, one class only, anchors that are not paired or of another width.
    """
    spec = spec or StitchSpec()
    state = spec.random_states[0]
    for space, anchors in ((head_space, head_anchors), (row_space, row_anchors)):
        if anchors.ndim != 2 or anchors.shape[1] != space.dimension or len(anchors) != len(head_anchors):
            raise SpaceError(
                f"anchors: expected as many for both spaces, of {space.name!r} {space.dimension} wide, got {anchors.shape}"
            )
    classes = _classes(head_space, row_space)
    parts = _parts((head_space, row_space), (head_anchors, row_anchors), classes, spec)
    sides = [
        Side(space.vectors[part.train], np.asarray(anchors, dtype=np.float32), mean_row(space.vectors[part.train]))
        for space, part, anchors in zip((head_space, row_space), parts, (head_anchors, row_anchors), strict=True)
    ]
    (home, away), rows = parts, row_space.vectors[parts[1].test]

    def share(head, X: np.ndarray, truth: np.ndarray) -> float:
        return float(np.mean(head.probabilities(X).argmax(axis=1) == truth))

    accuracy, at_home, heads = {}, {}, {}
    for method in spec.methods:
        kind = METHODS[method].heads
        represent = [representation(kind, side, spec.settings) for side in sides]
        carry = carrier(method, sides[1], sides[0], spec.settings, state) if kind == "absolute" else represent[1]
        if carry is None:
            continue
        if kind not in heads:
            heads[kind] = fit_head(represent[0](sides[0].train), home.targets[home.train], len(classes), spec.head, state)
        accuracy[method] = share(heads[kind], carry(rows), away.targets[away.test])
        at_home[method] = share(heads[kind], represent[0](head_space.vectors[home.test]), home.targets[home.test])
    own = fit_head(sides[1].train, away.targets[away.train], len(classes), spec.head, state)
    majority = np.bincount(home.targets[home.targets >= 0]).argmax()
    return AcrossResult(
        (head_space.name, row_space.name),
        accuracy,
        at_home,
        share(own, rows, away.targets[away.test]),
        float(np.mean(away.targets[away.test] == majority)),
        len(away.test),
        len(home.train),
        len(head_anchors),
    )


@dataclass(frozen=True)
class _Part:
    """Row numbers of the labelled rows to train on and of those held out; the class of every row, −1 for one not shared."""

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray


def _parts(
    spaces: Sequence[LatentSpace], anchors: Sequence[np.ndarray], classes: Sequence[str], spec: StitchSpec
) -> tuple[_Part, _Part]:
    """The split of both spaces, drawn by the ids: a row that both have is held out of both, or of neither.

    The split must make exceptions for anchors and for the last training row of a class. A row of the second space is then not
    scored if the head was trained on it.
    """
    numbers = {label: number for number, label in enumerate(classes)}
    parts = []
    for space, given in zip(spaces, anchors, strict=True):
        targets = np.array([numbers.get(label, -1) for label in space.labels], dtype=np.int64)
        rows = np.flatnonzero(targets >= 0)
        split = Split.draw(
            space.ids[rows],
            anchors=np.flatnonzero(rows_among(space.vectors[rows], given)),
            test_fraction=spec.test_fraction,
            test_ids=spec.test_ids,
            labels=targets[rows],
            random_state=spec.random_states[0],
        )
        parts.append(_Part(rows[split.known], rows[split.test], targets))
    home, away = parts
    test = away.test[~np.isin(spaces[1].ids[away.test], spaces[0].ids[home.train])]
    if not len(test):
        raise SpaceError(f"{spaces[1].name!r}: expected held-out rows that the head was not trained on, got none")
    return home, replace(away, test=test)


def _classes(head_space: LatentSpace, row_space: LatentSpace) -> tuple[str, ...]:
    counts = []
    for space in (head_space, row_space):
        if space.labels is None:
            raise SpaceError(f"{space.name!r}: expected labels, got none; choose a dataset with a label column")
        counts.append(dict(zip(*np.unique(space.labels.astype(str), return_counts=True), strict=True)))
    shared = sorted(name for name in counts[0] if name and min(counts[0][name], counts[1].get(name, 0)) > 1)
    if len(shared) < 2:
        raise SpaceError(
            f"expected two classes or more that both spaces have, with two rows each, got {quote(shared) or 'none'}: "
            f"{head_space.name!r} has {quote(sorted(counts[0])[:4])}, {row_space.name!r} {quote(sorted(counts[1])[:4])}; "
            "choose label columns that mean the same"
        )
    return tuple(shared)
