"""Classification stitching: every encoder with every head, by every method."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from relcore.anchors.selection import select_anchors, shared_anchors
from relcore.evaluation import Split
from relcore.names import METHODS
from relcore.progress import Report
from relcore.similarity import mean_row, rows_among
from relcore.spaces import LatentSpace, SpaceError, distinct_names, quote, shared_ids
from relcore.stitching.heads import Head, fit_head
from relcore.stitching.methods import Rows, Side, carrier, representation
from relcore.stitching.result import NO_ANSWER, StitchResult, StitchRun
from relcore.stitching.spec import StitchSpec


@dataclass(frozen=True)
class SharedRows:
    """The rows that all encoders have, in the first one's order, and the class of each.

    Attributes
    ----------
    spaces : tuple of LatentSpace
        Over the same ids.
    classes : tuple of str
    targets : array (n,)
        Numbers of the classes.
    """

    spaces: tuple[LatentSpace, ...]
    classes: tuple[str, ...]
    targets: np.ndarray

    @property
    def ids(self) -> np.ndarray:
        return self.spaces[0].ids


def share_rows(spaces: Sequence[LatentSpace], order: Sequence[str] = ()) -> SharedRows:
    """Take the rows that every space has and that have a label.

    Parameters
    ----------
    order : strings, optional
        All classes from low to high; default by name.

    Raises
    ------
    SpaceError
        Fewer than two spaces, no shared rows, no labels or labels that differ, one class only, an order of other classes.
    """
    if len(spaces) < 2:
        raise SpaceError(f"expected two encoders or more to stitch, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all encoders share, {quote([space.name for space in spaces])} have none; encode the same "
            "dataset with each"
        )
    labels = _shared_labels([space.take(space.rows(ids)) for space in spaces if space.labels is not None])
    labelled = np.flatnonzero(labels != "")
    classes = tuple(np.unique(labels[labelled].astype(str)).tolist())
    if len(classes) < 2:
        raise SpaceError(f"expected labels of two classes or more, got {len(classes)} in the shared rows")
    if order:
        if set(order) != set(classes) or len(order) != len(classes):
            raise SpaceError(f"order: expected each of the labels once, {quote(classes)}, got {quote(order)}")
        classes = tuple(order)
    number = {name: position for position, name in enumerate(classes)}
    targets = np.array([number[label] for label in labels[labelled]], dtype=np.int64)
    return SharedRows(tuple(space.take(space.rows(ids[labelled])) for space in spaces), classes, targets)


def split_rows(
    shared: SharedRows, spec: StitchSpec, random_state: int, anchor_vectors: Sequence[np.ndarray] | None = None
) -> Split:
    """Test rows by their ids, or those of the spec; no anchor is tested, and each class keeps a row to train on.

    Anchors that the spec names, or that are given as vectors and are rows here, are taken out of the test rows. Where the spec
    names none, as many as it says are chosen among the training rows.

    Raises
    ------
    SpaceError
        Test ids that are unknown or leave nothing to test on, anchors that a space lacks, classes without training rows.
    """
    anchors = _given_anchors(shared, spec, anchor_vectors)
    if spec.test_ids:
        shared.spaces[0].rows(spec.test_ids)  # refuses those that are unknown
    split = Split.draw(
        shared.ids,
        anchors=anchors,
        test_fraction=spec.test_fraction,
        test_ids=spec.test_ids,
        labels=shared.targets,
        random_state=random_state,
    )
    missing = set(range(len(shared.classes))) - set(shared.targets[split.known].tolist())
    if missing:
        names = quote([shared.classes[number] for number in sorted(missing)][:3])
        raise SpaceError(
            f"expected training rows of every class, got none of {names}; test on fewer rows of "
            "them: a class of one row can only be trained on"
        )
    if len(anchors) or anchor_vectors is not None:
        return split
    anchors = chosen_anchors(shared, spec, split.train, random_state)
    return replace(split, anchors=anchors, train=np.setdiff1d(split.train, anchors))


def _given_anchors(shared: SharedRows, spec: StitchSpec, vectors: Sequence[np.ndarray] | None) -> np.ndarray:
    if vectors is not None:
        return np.flatnonzero(
            np.any([rows_among(space.vectors, given) for space, given in zip(shared.spaces, vectors, strict=True)], axis=0)
        )
    return shared.spaces[0].rows(shared_anchors(spec.anchors, *shared.spaces)) if spec.anchors else np.empty(0, np.int64)


def chosen_anchors(shared: SharedRows, spec: StitchSpec, train: np.ndarray, random_state: int) -> np.ndarray:
    """As many anchors as the spec says, by its strategy, among training rows that have a direction in every space."""
    first = shared.spaces[0]
    alive = train[np.all([space.norms[train] > 0 for space in shared.spaces], axis=0)]
    labels = [shared.classes[number] for number in shared.targets[alive]]
    candidates = first.take(alive)
    candidates = LatentSpace(candidates.vectors, candidates.ids, name=first.name, labels=labels, counts=candidates.counts)
    return first.rows(select_anchors(candidates, spec.n_anchors, spec.strategy, random_state=random_state))


class Stitching:
    """Everything fitted for one random state: heads, shared representations, and maps between the encoders.

    Parameters
    ----------
    anchor_vectors : one array (k, d) an encoder, optional
        Parallel anchors from elsewhere, row for row, such as translations; then none are chosen among the rows, and a row that
        is one of them is not tested.
    split : Split, optional
        Instead of `split_rows`: of shared rows that were drawn elsewhere.

    Attributes
    ----------
    split : Split
        Of the rows in `shared`. Heads are trained on its anchors and training rows, and tested on its test rows.
    """

    def __init__(
        self,
        shared: SharedRows,
        spec: StitchSpec,
        random_state: int = 0,
        anchor_vectors: Sequence[np.ndarray] | None = None,
        report: Report | None = None,
        split: Split | None = None,
    ) -> None:
        self.shared, self.spec, self.random_state = shared, spec, random_state
        if anchor_vectors is not None:
            self._check_anchors(anchor_vectors)
        self.split = split or split_rows(shared, spec, random_state, anchor_vectors)
        if anchor_vectors is None:
            anchor_vectors = [space.vectors[self.split.anchors] for space in shared.spaces]
        pairs, known = zip(shared.spaces, anchor_vectors, strict=True), self.split.known
        self._sides = [self._side(space.vectors[known], anchors) for space, anchors in pairs]
        self._represent: dict[str, list[Rows]] = {}
        self._heads: dict[str, list[Head]] = {}
        kinds = list(dict.fromkeys(METHODS[method].heads for method in spec.methods))
        for number, kind in enumerate(kinds):
            if report:
                report(number, len(kinds), f"{spec.head} heads on {kind} rows")
            self._represent[kind] = [representation(kind, side, spec.settings) for side in self._sides]
            self._heads[kind] = [
                fit_head(function(side.train), shared.targets[known], len(shared.classes), spec.head, random_state)
                for function, side in zip(self._represent[kind], self._sides, strict=True)
            ]
        self._carriers = {
            (method, i, j): carrier(method, source, target, spec.settings, random_state)
            for method in spec.methods
            if METHODS[method].heads == "absolute"
            for i, source in enumerate(self._sides)
            for j, target in enumerate(self._sides)
            if i != j
        }

    def probabilities(self, method: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        """What every head says of the same items as each encoder gives them: E arrays (m, d) → (E, E, m, C) float32.

        The encoder is the first axis, the head the second; NaN where the two cannot be put together. On the diagonal the
        encoder's own head reads its own rows as they are.
        """
        n, kind = len(self.shared.spaces), METHODS[method].heads
        if len(rows) != n or any(X.shape[1] != side.train.shape[1] for X, side in zip(rows, self._sides, strict=True)):
            expected = [f"(m, {side.train.shape[1]})" for side in self._sides]
            raise SpaceError(f"expected rows of each encoder, {', '.join(expected)}, got {[X.shape for X in rows]}")
        found = np.full((n, n, len(rows[0]), len(self.shared.classes)), np.nan, dtype=np.float32)
        for i, X in enumerate(rows):
            own = self._represent[kind][i](np.asarray(X, dtype=np.float32))
            for j, head in enumerate(self._heads[kind]):
                if i == j or kind != "absolute":
                    found[i, j] = head.probabilities(own)
                elif carry := self._carriers[method, i, j]:
                    found[i, j] = head.probabilities(carry(own))
        return found

    def run(self) -> StitchRun:
        """The answers to the test rows."""
        answers, test = {}, self.split.test
        for method in self.spec.methods:
            probabilities = self.probabilities(method, [space.vectors[test] for space in self.shared.spaces])
            none = np.isnan(probabilities[..., 0])
            answers[method] = np.where(none, NO_ANSWER, probabilities.argmax(axis=-1)).astype(np.int16)
        majority = int(np.bincount(self.shared.targets).argmax())
        return StitchRun(self.random_state, self.shared.ids[test], self.shared.targets[test], majority, answers)

    def _check_anchors(self, anchors: Sequence[np.ndarray]) -> None:
        widths = [(space.dimension,) for space in self.shared.spaces]
        given = [np.shape(matrix) for matrix in anchors]
        if [shape[1:] for shape in given] != widths or len({shape[0] for shape in given}) != 1:
            expected = ", ".join(f"(k, {width})" for (width,) in widths)
            raise SpaceError(f"anchors: expected as many for each encoder, {expected}, got {given}")

    def _side(self, train: np.ndarray, anchors: np.ndarray) -> Side:
        return Side(train, np.asarray(anchors, dtype=np.float32), mean_row(train))


def stitch_matrix(
    spaces: Sequence[LatentSpace],
    spec: StitchSpec | None = None,
    anchor_vectors: Sequence[np.ndarray] | None = None,
    report: Report | None = None,
) -> StitchResult:
    """Every encoder with every head, by each method and for each random state of the spec.

    `anchor_vectors` as in `Stitching`; `report` is called as ``report(done, total, message)`` before each step.

    Raises
    ------
    SpaceError
        Whatever is wrong with the rows, labels, split, anchors or settings, with the fix.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, stitch_matrix
    >>> from relcore.stitching.spec import StitchSpec
    >>> rng = np.random.default_rng(0)
    >>> labels = rng.integers(0, 3, 300)
    >>> X = rng.normal(size=(300, 8)) + 4 * rng.normal(size=(3, 8))[labels]
    >>> rotation, _ = np.linalg.qr(rng.normal(size=(8, 8)))
    >>> ids = [str(row) for row in range(300)]
    >>> names = [("red", "green", "blue")[label] for label in labels]
    >>> spaces = [LatentSpace(rows, ids, labels=names) for rows in (X, X @ rotation)]
    >>> result = stitch_matrix(spaces, StitchSpec(("relative",), n_anchors=30))
    >>> accuracy, _ = result.matrix("relative")
    >>> accuracy.shape, bool(accuracy.min() > 0.9)  # every encoder with every head
    ((2, 2), True)
    """
    spec = spec or StitchSpec()
    shared, runs = share_rows(spaces, spec.order), []
    n_states = len(spec.random_states)
    for number, state in enumerate(spec.random_states):

        def told(done: int, total: int, message: str, number: int = number, state: int = state) -> None:
            if report:
                report(number * total + done, total * n_states, message + (f", state {state}" if n_states > 1 else ""))

        runs.append(Stitching(shared, spec, state, anchor_vectors, told).run())
    return StitchResult(spec, tuple(distinct_names(spaces)), shared.classes, tuple(runs))


def _shared_labels(spaces: Sequence[LatentSpace]) -> np.ndarray:
    if not spaces:
        raise SpaceError("expected labels to train heads on, none of the encoders has any; choose a dataset with labels")
    first, *others = spaces
    for space in others:
        differ = np.flatnonzero(space.labels != first.labels)
        if len(differ):
            raise SpaceError(
                f"{first.name!r} and {space.name!r} have different labels for {len(differ)} shared rows, first "
                f"{quote(first.ids[differ[:1]])}: a head knows only the labels that it was trained on; choose the same label "
                "column for both"
            )
    return first.labels
