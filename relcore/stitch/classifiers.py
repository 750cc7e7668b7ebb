"""The classifiers of a stitching: heads that are trained on each encoder, and the maps by which they read
others."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import HEADS, METHODS, STITCHED, STRATEGIES
from relcore.base.rows import mean_row
from relcore.base.settings import check, setting
from relcore.represent.heads import Head, fit_heads
from relcore.represent.representations import (
    FittedSpace,
    MethodSettings,
    Rows,
    fit_representation,
    fit_translation,
)
from relcore.represent.strategies import Strategy, select_anchors, shared_anchors
from relcore.runs.work import Progress, silent
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import TEST_FRACTION, Split
from relcore.stitch.own_heads import OwnHead
from relcore.stitch.shared_rows import SharedRows

_FEW = 256  # maximum number of items for which all encoders share one call of a head
# of `least_sure`: share of right answers; their minimum number
_SURER = 0.95
_FEWEST_RIGHT = 20


@dataclass(frozen=True)
class StitchSettings:
    """The settings of a stitching: methods, heads, anchors, split, and number of repetitions.

    Each random state draws the test rows, the anchors, the prunings and the initial weights of networks. If
    `anchors` or `test_ids` are given, these ids are used instead of drawn ones.
    """

    methods: tuple[str, ...] = setting(STITCHED, choices=METHODS, distinct=True, help="Methods.")
    head: str = setting(
        "logistic", label="Classifier", choices=HEADS, help="Classifier that is trained on each space."
    )
    random_states: tuple[int, ...] = setting((0,), low=0, distinct=True)
    n_anchors: int = setting(300, option="anchors")
    strategy: str = setting("random", choices=STRATEGIES, help="How the anchors are chosen.")
    anchors: tuple[str, ...] = ()
    test_fraction: float = setting(
        TEST_FRACTION,
        above=0,
        below=1,
        metavar="SHARE",
        help="Share of test rows; each row is drawn by a hash of its id.",
    )
    test_ids: tuple[str, ...] = ()
    order: tuple[str, ...] = setting(
        (), metavar="LABELS", help="Labels from low to high; errors are then also counted in steps."
    )
    settings: MethodSettings = MethodSettings()

    def __post_init__(self) -> None:
        check(self)


NO_ANSWER = -1


@dataclass(frozen=True)
class StitchRun:
    """The answers (predicted classes) to the test rows of one random state.

    Attributes
    ----------
    test_ids, truth : arrays (m,)
        The ids of the test rows, and the class number of each.
    majority : int
        The most frequent class of all rows. The chance level is the score of always answering this class.
    answers : method → array (E, E, m) int16
        The class that the head of the second encoder predicts for rows of the first encoder; −1 if the pair
        has no answer.
    """

    random_state: int
    test_ids: np.ndarray
    truth: np.ndarray
    majority: int
    answers: Mapping[str, np.ndarray]


def split_rows(shared: SharedRows, spec: StitchSettings, random_state: int) -> Split:
    """The split into training and test rows, which the spec gives by ids or by a share. No anchor is a test
    row, and each class keeps a training row. If the spec has no anchors, they are selected among the non-zero
    training rows.

    Raises
    ------
    SpaceError
        Test ids that are unknown; no test rows; anchors that a space lacks; classes without training rows.
    """
    first = shared.spaces[0]
    if spec.anchors:
        anchors = first.rows(shared_anchors(spec.anchors, *shared.spaces))
    else:
        anchors = first.rows(())
    if spec.test_ids:
        first.rows(spec.test_ids)  # raises an error if ids are unknown
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
    if len(anchors):
        return split
    alive = split.train[np.all([space.norms[split.train] > 0 for space in shared.spaces], axis=0)]
    labels = [shared.classes[number] for number in shared.targets[alive]]
    rows = first.take(alive)
    candidates = LatentSpace(rows.vectors, rows.ids, name=first.name, labels=labels, counts=rows.counts)
    strategy = cast(Strategy, spec.strategy)  # the spec has seen that it is one of them
    anchors = select_anchors(candidates, spec.n_anchors, strategy, random_state=random_state)
    places = first.rows(anchors)
    return replace(split, anchors=places, train=np.setdiff1d(split.train, places))


class Stitching:
    """Everything that is fitted for one random state: heads, shared representations, and maps between
    encoders. Heads are trained on the anchors and the training rows."""

    def __init__(
        self,
        shared: SharedRows,
        spec: StitchSettings,
        random_state: int = 0,
        report: Progress = silent,
        heads: Sequence[OwnHead | None] = (),
    ) -> None:
        self.shared = shared
        self.spec = spec
        self.random_state = random_state
        self.split = split_rows(shared, spec, random_state)
        known = self.split.known
        anchors = self.split.anchors
        self._sides = [
            FittedSpace(space.vectors[known], space.vectors[anchors], mean_row(space.vectors[known]))
            for space in shared.spaces
        ]
        self._represent: dict[str, list[Rows]] = {}
        self._least_sure: dict[str, np.ndarray] = {}
        self._heads: dict[str, list[Head | OwnHead]] = {}
        representations = list(dict.fromkeys(METHODS[method].representation for method in spec.methods))
        for number, name in enumerate(representations):
            report(number, len(representations), f"{spec.head} classifiers on {name} rows")
            self._represent[name] = [fit_representation(name, side, spec.settings) for side in self._sides]
            sides = zip(self._represent[name], self._sides, strict=True)
            own = {place: head for place, head in enumerate(heads) if head is not None}
            missing = [place for place in range(len(self._sides)) if place not in own]
            trained = fit_heads(
                (function(side.train) for place, (function, side) in enumerate(sides) if place in missing),
                [shared.targets[known]] * len(missing),
                len(shared.classes),
                spec.head,
                random_state,
            )
            found: dict[int, Head | OwnHead] = {**own, **dict(zip(missing, trained, strict=True))}
            self._heads[name] = [found[place] for place in range(len(self._sides))]
        self._carriers = {
            (method, i, j): fit_translation(method, source, target, spec.settings, random_state)
            for method in spec.methods
            for i, source in enumerate(self._sides)
            for j, target in enumerate(self._sides)
            if i != j and METHODS[method].representation == "absolute"
        }

    def probabilities(self, method: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        """The class probabilities (E, E, m, C) float32 of m items, for each encoder (first axis) with each
        head (second axis). `rows` are E arrays (m, d). If an encoder and a head cannot be combined, NaN."""
        n = len(self.shared.spaces)
        representation = METHODS[method].representation
        widths = [side.train.shape[1] for side in self._sides]
        if [X.shape[1] for X in rows] != widths:
            expected = ", ".join(f"(m, {width})" for width in widths)
            raise SpaceError(f"expected rows of each encoder, {expected}, got {[X.shape for X in rows]}")
        answers = np.full((n, n, len(rows[0]), len(self.shared.classes)), np.nan, dtype=np.float32)
        own = [
            represent(np.asarray(X, dtype=np.float32))
            for represent, X in zip(self._represent[representation], rows, strict=True)
        ]
        for j, head in enumerate(self._heads[representation]):
            inputs = {}
            for i, X in enumerate(own):
                read = self.translated(method, i, j, X)
                if read is not None:
                    inputs[i] = read
            if len(rows[0]) <= _FEW and not getattr(head, "needs_company", False):
                # Encode few items with all encoders in one call, because calls take most of the time.
                parts = np.split(head.probabilities(np.concatenate(list(inputs.values()))), len(inputs))
            else:
                parts = [head.probabilities(rows) for rows in inputs.values()]
            for i, part in zip(inputs, parts, strict=True):
                answers[i, j] = part
        return answers

    def translated(self, method: str, i: int, j: int, X: np.ndarray) -> np.ndarray | None:
        """Represented rows X of encoder i as the head of encoder j reads them; None if the method cannot
        translate them."""
        if i == j or METHODS[method].representation != "absolute":
            return X
        carry = self._carriers[method, i, j]
        if carry is None:
            return None
        return carry(X)

    def least_sure(self, method: str) -> np.ndarray:
        """The threshold (E, E) of each pair. An answer with a lower probability is less sure than 95 % of the
        right answers of this pair to test rows. If there are fewer than 20 right answers, the threshold is 0.

        Measured on 16 articles of Wikipedia, with LSA, MiniLM and two encoders of pooled words, relative and
        whitened, in 3 draws; 96 rows gave the threshold, 96 other rows were tested. It rejects 8 % of the
        right answers (5 – 13), 38 % of the wrong answers (33 – 45), and 43 % of the answers to 400 everyday
        sentences (34 – 51). If the threshold comes from wrong answers instead, these are 2, 14 and 20 %. The
        similarity to the 1, 5 or 10 nearest training rows, alone or combined with the probability, rejects no
        more of the sentences (31 – 48 %).
        """
        if method not in self._least_sure:
            test = self.split.test
            rows = self.probabilities(method, [space.vectors[test] for space in self.shared.spaces])
            least = np.zeros(rows.shape[:2])
            right = rows.argmax(axis=-1) == self.shared.targets[test]
            for i, j in np.ndindex(least.shape):
                sure = rows[i, j][right[i, j]].max(axis=-1)
                if len(sure) >= _FEWEST_RIGHT and not np.isnan(sure).any():
                    least[i, j] = np.quantile(sure, 1 - _SURER)
            self._least_sure[method] = least
        return self._least_sure[method]

    def run(self) -> StitchRun:
        answers = {}
        test = self.split.test
        shared = self.shared
        for method in self.spec.methods:
            probabilities = self.probabilities(method, [space.vectors[test] for space in shared.spaces])
            none = np.isnan(probabilities[..., 0])
            answers[method] = np.where(none, NO_ANSWER, probabilities.argmax(axis=-1)).astype(np.int16)
        majority = int(np.bincount(shared.targets).argmax())
        return StitchRun(self.random_state, shared.ids[test], shared.targets[test], majority, answers)
