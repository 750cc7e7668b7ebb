"""Classification stitching: every encoder with every head, by every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import product
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import HEADS, METHODS, STITCH_METRICS, STITCHED, STRATEGIES
from relcore.base.settings import setting
from relcore.represent.anchors import select_anchors, shared_anchors
from relcore.represent.heads import Head, fit_head
from relcore.represent.methods import MethodSettings, Rows, Side, carrier, representation
from relcore.represent.similarity import mean_row
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, agreed_labels, distinct_names, shared_ids
from relcore.spaces.split import TEST_FRACTION, Split
from relcore.tasks.task import Task

# Seconds a row, column and class of a logistic head; a row, epoch and weight of a network: measured on two
# cores of 2026.
_LOGISTIC, _NETWORK, _BATCH = 2e-8, 3e-10, 1.2e-3
_EPOCHS, _WIDTH = 30, 256


@dataclass(frozen=True)
class StitchSpec(Task["StitchResult"]):
    """Methods, heads, anchors, split, and how often all is drawn again.

    Each random state draws the test rows, the anchors, the prunings and a network's first weights. `anchors`
    and `test_ids` are ids instead of what is drawn; all rows that are not tested are trained on.
    """

    kind: ClassVar[str] = "stitching"
    result: ClassVar[str] = "relcore.stitch.stitching:StitchResult"
    version: ClassVar[int] = 3

    methods: tuple[str, ...] = setting(STITCHED, choices=METHODS, distinct=True, help="Methods.")
    head: str = setting("logistic", choices=HEADS, help="Classifier that is trained on each space.")
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
        (), metavar="LABELS", help="Labels from low to high; errors are then counted in steps, too."
    )
    settings: MethodSettings = MethodSettings()

    title: ClassVar[str] = "Stitching every pair"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Heads are nearly all of it."""
        shared = share_rows(spaces, self.order)
        n, n_classes = len(shared.targets) * (1 - self.test_fraction), len(shared.classes)
        n_anchors = len(self.anchors) or self.n_anchors
        kinds = [METHODS[method].heads for method in self.methods]
        total = 0.0
        for kind, space in product(set(kinds), shared.spaces):
            width = space.dimension if kind == "absolute" else n_anchors * (4 if kind == "product" else 1)
            if self.head == "logistic":
                total += 0.01 + n * width * n_classes * _LOGISTIC
            else:
                weights = (width + _WIDTH + n_classes) * _WIDTH
                total += 0.2 + _EPOCHS * n * (_BATCH / 128 + _NETWORK * weights)
        widest = max(space.dimension for space in shared.spaces)
        total += kinds.count("absolute") * len(spaces) ** 2 * (0.002 + n_anchors * widest * 2e-7)
        return total * len(self.random_states)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> StitchResult:
        return stitch_matrix(spaces, self, report=report)


NO_ANSWER = -1


@dataclass(frozen=True)
class StitchRun:
    """One random state.

    Attributes
    ----------
    test_ids, truth : arrays (m,)
        The test rows, and the number of the class of each.
    majority : int
        The most frequent class of all rows: always answering it is the chance level. Of the training rows
        alone it would be the class that the draw left out of the test rows.
    answers : method → array (E, E, m) int16
        Class that the head of the second encoder gives the rows of the first; −1 where a pair has no answer.
    """

    random_state: int
    test_ids: np.ndarray
    truth: np.ndarray
    majority: int
    answers: Mapping[str, np.ndarray]


@dataclass(frozen=True)
class StitchResult:
    """Rows of every matrix are encoders, columns are heads, by the encoder on which they were trained; the
    diagonal is not stitched."""

    spec: StitchSpec
    encoders: tuple[str, ...]
    classes: tuple[str, ...]
    runs: tuple[StitchRun, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("accuracy", "f1", "mae") if self.spec.order else ("accuracy", "f1")

    @property
    def n_test(self) -> int:
        """Test rows, the mean over the random states: each draws its own."""
        return round(float(np.mean([len(run.truth) for run in self.runs])))

    @property
    def tested(self) -> str:
        """``"48 test rows"``; of several states ``"46 – 54 test rows a state"``."""
        first, *_, last = sorted([len(run.truth) for run in self.runs] * 2)
        return f"{first:,} test rows" if first == last else f"{first:,} – {last:,} test rows a state"

    @property
    def untested(self) -> str:
        """Says which classes have no test row in any state, as a class of one row is trained on; "" where
        all have.
        """
        tested = {number for run in self.runs for number in np.unique(run.truth).tolist()}
        names = [name for number, name in enumerate(self.classes) if number not in tested]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        text = f"Not tested, because all their rows are trained on: {quote(names[:3])}{more}."
        return text if names else ""

    def by_state(self, method: str, metric: str = "accuracy") -> np.ndarray:
        """Scores (random states, E, E), NaN where a pair has no answer.

        Accuracy and weighted F1 0 … 1, 1 is perfect; MAE in steps of the labels' order, 0 is perfect.
        """
        need_one_of("metric", metric, self.metrics)
        return np.array(
            [
                [[self._score(run.truth, cell, metric) for cell in row] for row in run.answers[method]]
                for run in self.runs
            ]
        )

    def matrix(self, method: str, metric: str = "accuracy") -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation over the random states, (E, E) both; the deviation of a single one is 0."""
        return _mean_and_deviation(self.by_state(method, metric))

    def chance(self, metric: str = "accuracy") -> float:
        """The score of always answering the class that is most frequent, on the test rows; mean over the
        states.
        """
        constant = ((run.truth, np.full(len(run.truth), run.majority)) for run in self.runs)
        return float(np.mean([self._score(*answered, metric) for answered in constant]))

    def permuted(self, method: str, metric: str = "accuracy") -> float:
        """The score of the same answers if the labels of the test rows were permuted: the mean over all
        permutations, exactly, over the stitched pairs and over the states; NaN where no pair can be stitched.

        What heads reach that learned nothing about the rows: the weighted F1 of answers of all classes is
        above that of one class alone.
        """
        scores = [
            _score_of(_permuted(self._confusion(run.truth, answers)), metric)
            for run in self.runs
            for answers in run.answers[method][~np.eye(len(self.encoders), dtype=bool)]
            if answers[0] != NO_ANSWER
        ]
        return float(np.mean(scores)) if scores else float("nan")

    def chance_level(self, method: str, metric: str = "accuracy") -> float:
        """The better of `chance` and `permuted`: what needs no knowledge of the rows."""
        levels = [self.chance(metric), self.permuted(method, metric)]
        return float(np.nanmin(levels) if metric == "mae" else np.nanmax(levels))

    def summary(self) -> pd.DataFrame:
        """One row per method and metric: mean over the stitched pairs, heads on their own encoders, and
        chance level.

        Columns: method, metric, stitched, stitched_deviation, own, own_deviation, chance (always the most
        frequent class), permuted (see `permuted`), pairs (how many can be stitched), of (how many there are).
        Deviations are over the random states.
        """
        off, rows = ~np.eye(len(self.encoders), dtype=bool), []
        for method, metric in product(self.spec.methods, self.metrics):
            scores = self.by_state(method, metric)
            able = ~np.isnan(scores[0][off])
            stitched = np.nan, np.nan
            if able.any():
                stitched = _mean_and_deviation(scores[:, off][:, able].mean(axis=1))
            own = _mean_and_deviation(scores[:, ~off].mean(axis=1))
            chance = self.chance(metric), self.permuted(method, metric)
            titles = METHODS[method].title, STITCH_METRICS[metric].title
            rows.append((*titles, *stitched, *own, *chance, int(able.sum()), able.size))
        columns = "method metric stitched stitched_deviation own own_deviation chance permuted pairs of"
        return pd.DataFrame(rows, columns=columns.split())

    def confusion(self, method: str, encoder: int, head: int) -> np.ndarray:
        """How often truth (rows) was answered by a class (columns), all random states together, (C, C)."""
        return sum(self._confusion(run.truth, run.answers[method][encoder, head]) for run in self.runs)

    def class_scores(self, method: str, encoder: int, head: int) -> pd.DataFrame:
        """Columns: class, precision, recall, f1, rows (how many test rows have it), one row per class."""
        precision, recall, f1, support = class_scores(self.confusion(method, encoder, head))
        columns = {"class": self.classes, "precision": precision, "recall": recall, "f1": f1, "rows": support}
        return pd.DataFrame(columns)

    def _confusion(self, truth: np.ndarray, answers: np.ndarray) -> np.ndarray:
        answered, n = answers != NO_ANSWER, len(self.classes)
        pairs = truth[answered].astype(np.int64) * n + answers[answered]
        return np.bincount(pairs, minlength=n**2).reshape(n, n)

    def _score(self, truth: np.ndarray, answers: np.ndarray, metric: str) -> float:
        return float("nan") if answers[0] == NO_ANSWER else _score_of(self._confusion(truth, answers), metric)


def _score_of(confusion: np.ndarray, metric: str) -> float:
    """Accuracy, weighted F1 or mean absolute error of counts (C, C), truth by answer."""
    if metric == "f1":
        *_, f1, support = class_scores(confusion)
        return float(np.average(f1, weights=support))
    numbers = np.arange(len(confusion))
    weights = np.eye(len(confusion)) if metric == "accuracy" else np.abs(numbers[:, None] - numbers)
    return float((confusion * weights).sum() / confusion.sum())


def _permuted(confusion: np.ndarray) -> np.ndarray:
    """The mean over all permutations of the truth; each score is linear in it, as the counts of truth and of
    answers stay.
    """
    return np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / confusion.sum()


def class_scores(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall, F1 and number of rows of each class; 0 where a class was never answered or never
    there.
    """
    right, answered, support = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    precision, recall = right / np.maximum(answered, 1), right / np.maximum(support, 1)
    return precision, recall, 2 * right / np.maximum(answered + support, 1), support


def _mean_and_deviation(by_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = by_state.mean(axis=0)
    return mean, by_state.std(axis=0, ddof=1) if len(by_state) > 1 else np.zeros_like(mean)


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
        Fewer than two spaces, no shared rows, no labels or labels that differ, one class only, an order of
        other classes.
    """
    if len(spaces) < 2:
        raise SpaceError(f"expected two encoders or more to stitch, got {len(spaces)}")
    ids = shared_ids(spaces)
    if not len(ids):
        raise SpaceError(
            f"expected rows that all encoders share, {quote([space.name for space in spaces])} have none;"
            " encode the same dataset with each"
        )
    labels = agreed_labels([space.take(space.rows(ids)) for space in spaces if space.labels is not None])
    if labels is None:
        raise SpaceError(
            "expected labels to train heads on, none of the encoders has any; choose a dataset with labels"
        )
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


def split_rows(shared: SharedRows, spec: StitchSpec, random_state: int) -> Split:
    """Test rows by their ids, or those of the spec; no anchor is tested, and each class keeps a row to train
    on.

    Anchors that the spec names are taken out of the test rows. Where it names none, as many as it says are
    chosen among the training rows that have a direction in every space.

    Raises
    ------
    SpaceError
        Test ids that are unknown or leave nothing to test on, anchors that a space lacks, classes without
        training rows.
    """
    first = shared.spaces[0]
    anchors = first.rows(shared_anchors(spec.anchors, *shared.spaces) if spec.anchors else ())
    if spec.test_ids:
        first.rows(spec.test_ids)  # refuses those that are unknown
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
    anchors = select_anchors(candidates, spec.n_anchors, spec.strategy, random_state=random_state)
    places = first.rows(anchors)
    return replace(split, anchors=places, train=np.setdiff1d(split.train, places))


class Stitching:
    """Everything fitted for one random state: heads, shared representations, and maps between the encoders.

    Attributes
    ----------
    split : Split
        Of the rows in `shared`. Heads are trained on its anchors and training rows, and tested on its test
        rows.
    """

    def __init__(
        self,
        shared: SharedRows,
        spec: StitchSpec,
        random_state: int = 0,
        report: Report = silent,
    ) -> None:
        self.shared, self.spec, self.random_state = shared, spec, random_state
        self.split = split_rows(shared, spec, random_state)
        known, anchors = self.split.known, self.split.anchors
        self._sides = [
            Side(space.vectors[known], space.vectors[anchors], mean_row(space.vectors[known]))
            for space in shared.spaces
        ]
        self._represent: dict[str, list[Rows]] = {}
        self._heads: dict[str, list[Head]] = {}
        kinds = list(dict.fromkeys(METHODS[method].heads for method in spec.methods))
        for number, kind in enumerate(kinds):
            report(number, len(kinds), f"{spec.head} heads on {kind} rows")
            self._represent[kind] = [representation(kind, side, spec.settings) for side in self._sides]
            train = shared.targets[known], len(shared.classes), spec.head, random_state
            self._heads[kind] = [
                fit_head(function(side.train), *train)
                for function, side in zip(self._represent[kind], self._sides, strict=True)
            ]
        self._carriers = {
            (method, i, j): carrier(method, source, target, spec.settings, random_state)
            for method in spec.methods
            for i, source in enumerate(self._sides)
            for j, target in enumerate(self._sides)
            if i != j and METHODS[method].heads == "absolute"
        }

    def probabilities(self, method: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        """What every head says of the same items as each encoder gives them: E arrays (m, d) → (E, E, m, C)
        float32.

        The encoder is the first axis, the head the second; NaN where the two cannot be put together. On the
        diagonal the encoder's own head reads its own rows as they are.
        """
        n, kind = len(self.shared.spaces), METHODS[method].heads
        widths = [side.train.shape[1] for side in self._sides]
        if [X.shape[1] for X in rows] != widths:
            expected = ", ".join(f"(m, {width})" for width in widths)
            raise SpaceError(f"expected rows of each encoder, {expected}, got {[X.shape for X in rows]}")
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
        answers, test, shared = {}, self.split.test, self.shared
        for method in self.spec.methods:
            probabilities = self.probabilities(method, [space.vectors[test] for space in shared.spaces])
            none = np.isnan(probabilities[..., 0])
            answers[method] = np.where(none, NO_ANSWER, probabilities.argmax(axis=-1)).astype(np.int16)
        majority = int(np.bincount(shared.targets).argmax())
        return StitchRun(self.random_state, shared.ids[test], shared.targets[test], majority, answers)


def stitch_matrix(
    spaces: Sequence[LatentSpace],
    spec: StitchSpec | None = None,
    report: Report = silent,
) -> StitchResult:
    """Every encoder with every head, by each method and for each random state of the spec.

    `report` is called as ``report(done, total, message)`` before each step.

    Raises
    ------
    SpaceError
        Whatever is wrong with the rows, labels, split, anchors or settings, with the fix.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, stitch_matrix
    >>> from relcore.stitch.stitching import StitchSpec
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
    shared, runs, n_states = share_rows(spaces, spec.order), [], len(spec.random_states)
    for number, state in enumerate(spec.random_states):

        def of_all(done: int, total: int, message: str, number: int = number, state: int = state) -> None:
            message += f", state {state}" if n_states > 1 else ""
            report(number * total + done, total * n_states, message)

        runs.append(Stitching(shared, spec, state, of_all).run())
    return StitchResult(spec, tuple(distinct_names(spaces)), shared.classes, tuple(runs))
