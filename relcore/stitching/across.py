"""A head of one space asked about the rows of another, through parallel anchors from outside of both."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.similarity import mean_row
from relcore.spaces import LatentSpace, SpaceError, quote
from relcore.stitching.heads import fit_head
from relcore.stitching.methods import METHODS, Side, carrier, representation
from relcore.stitching.spec import StitchSpec


@dataclass(frozen=True)
class AcrossResult:
    """Shares of right answers, 0 … 1.

    Attributes
    ----------
    names : (of the head, of the rows)
    accuracy : method → score
        Of the head on the other's test rows; a method that needs equal widths is absent where they differ.
    home : method → score
        Of the same head on its own test rows, not stitched.
    ceiling : float
        Of a head that was trained on the other's rows and labels: what stitching does without.
    chance : float
        Of always answering the class that is most frequent where the head was trained.
    n, n_train, n_anchors : int
        Test rows of the other, rows that the head was trained on, pairs of anchors.
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
        """A row a method: method, stitched, at home, own head, chance, n, anchors."""
        rows = [(METHODS[name].title, score, self.home[name]) for name, score in self.accuracy.items()]
        table = pd.DataFrame(rows, columns=["method", "stitched", "head at home"])
        return table.assign(**{"own head": self.ceiling, "chance": self.chance, "n": self.n, "anchors": self.n_anchors})

    def to_json(self) -> dict[str, Any]:
        return asdict(self)

    @classmethod
    def from_json(cls, record: Mapping[str, Any]) -> AcrossResult:
        return cls(**{**record, "names": tuple(record["names"])})


def head_across(
    head_space: LatentSpace,
    row_space: LatentSpace,
    head_anchors: np.ndarray,
    row_anchors: np.ndarray,
    spec: StitchSpec | None = None,
) -> AcrossResult:
    """Train a head on the one space and ask it about the other, for each method of the spec, its first random state.

    A share of each class is held out of both spaces; of rows that both have it is the same.

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
    held = {label: number for number, label in enumerate(classes)}
    parts = [_split(space, held, spec.test_fraction, state) for space in (head_space, row_space)]
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
    majority = np.bincount(home.targets[home.train]).argmax()
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
    """Row numbers to train and test on; the class of every row, −1 where it has none that both spaces have."""

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray


def _split(space: LatentSpace, numbers: dict[str, int], share: float, random_state: int) -> _Part:
    """A share of each class; by the order of ids, so that what two spaces share is held out of both."""
    targets = np.array([numbers.get(label, -1) for label in space.labels], dtype=np.int64)
    test = []
    for number in numbers.values():
        rows = np.flatnonzero(targets == number)
        rows = rows[np.argsort(space.ids[rows].astype(str), kind="stable")]
        rows = rows[np.random.default_rng([random_state, number]).permutation(len(rows))]
        test.append(rows[: min(max(1, round(share * len(rows))), len(rows) - 1)])
    test = np.sort(np.concatenate(test))
    return _Part(np.setdiff1d(np.flatnonzero(targets >= 0), test), test, targets)


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
