"""A head of one space asked about the rows of another, through parallel anchors from outside of both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.evaluation import Split
from relcore.names import METHODS
from relcore.similarity import mean_row, rows_among
from relcore.spaces import LatentSpace, SpaceError, quote
from relcore.stitching.heads import fit_head
from relcore.stitching.methods import Side, carrier, representation
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
        Of always answering the class that is most frequent among the rows of the head.
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
        """A row a method: method, stitched, head at home, own head, chance, n (test rows), anchors."""
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

    A share of the rows is held out of both spaces by their ids: a row that both have is held out of both. Anchors that are rows
    of the spaces are not scored. `test_ids` of the spec, where given, are the test rows instead.

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
    """Row numbers of the labelled rows to train and test on; the class of every row, −1 where it has none that both have."""

    train: np.ndarray
    test: np.ndarray
    targets: np.ndarray


def _parts(
    spaces: Sequence[LatentSpace], anchors: Sequence[np.ndarray], classes: Sequence[str], spec: StitchSpec
) -> tuple[_Part, _Part]:
    """Both spaces' parts, drawn by the ids: what both have is tested on in both or trained on in both.

    Where the draw had to give way, for an anchor or for the only row of a class that is left to train on, what one head was
    trained on is not asked of the other space.
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
        raise SpaceError(f"{spaces[1].name!r}: expected rows to test on that the head was not trained on, got none")
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
