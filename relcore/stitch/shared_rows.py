"""The labelled rows that all encoders have."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.spaces.matching import agreed_labels, shared_ids, with_common_marks
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class SharedRows:
    """The rows that all encoders have, in the order of the first encoder. `targets` (n,) are the class
    numbers."""

    spaces: tuple[LatentSpace, ...]
    classes: tuple[str, ...]
    targets: np.ndarray

    @property
    def ids(self) -> np.ndarray:
        return self.spaces[0].ids


def share_rows(spaces: Sequence[LatentSpace], order: Sequence[str] = ()) -> SharedRows:
    """The labelled rows that every space has. `order`, if given, lists all classes from low to high.

    Raises
    ------
    SpaceError
        Fewer than two spaces; no shared rows; no labels; labels that differ between spaces; a single class;
        an order that does not have these classes.
    """
    if len(spaces) < 2:
        raise SpaceError(f"expected two encoders or more to stitch, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all encoders share, {quote([space.name for space in spaces])} have none;"
            " encode the same dataset with each, or link two of them first (Connect, Link)"
        )
    labels = agreed_labels([space.take(space.rows(ids)) for space in spaces if space.labels is not None])
    if labels is None:
        raise SpaceError(
            "expected labels to train classifiers on, none of the encoders has any; choose a dataset with"
            " labels"
        )
    labelled = np.flatnonzero(labels != "")
    classes = tuple(np.unique(labels[labelled]).tolist())
    if len(classes) < 2:
        raise SpaceError(f"expected labels of two classes or more, got {len(classes)} in the shared rows")
    if order:
        if set(order) != set(classes) or len(order) != len(classes):
            raise SpaceError(f"order: expected each of the labels once, {quote(classes)}, got {quote(order)}")
        classes = tuple(order)
    number = {name: position for position, name in enumerate(classes)}
    targets = np.array([number[label] for label in labels[labelled]], dtype=np.int64)
    return SharedRows(
        tuple(with_common_marks([space.take(space.rows(ids[labelled])) for space in spaces])),
        classes,
        targets,
    )
