"""Stitching of classifiers: combine every encoder with every head, which is a classifier of another encoder's
rows, by every method."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from itertools import product

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.names import HEADS, METHODS, STITCH_METRICS, STITCHED, STRATEGIES
from relcore.base.numbers import and_list, counted, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import mean_row
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import SpacesRecipe, Task
from relcore.figures.export import Exportable, chart_exportable
from relcore.figures.matrices import Matrices, MatrixPanel
from relcore.represent.heads import Head, fit_heads
from relcore.represent.strategies import select_anchors, shared_anchors
from relcore.represent.translation import (
    FittedSpace,
    MethodSettings,
    Rows,
    fit_translation,
    representation,
)
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.score import share_interval
from relcore.spaces.matching import (
    agreed_labels,
    as_spaces,
    distinct_names,
    need_spaces,
    shared_ids,
    short_names,
    with_common_marks,
)
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import TEST_FRACTION, Split

# Seconds of training: per row, column and class of a logistic head; per row, epoch and weight of a network.
_LOGISTIC = 2e-8
_NETWORK = 3e-10
_BATCH = 1.2e-3
_EPOCHS = 30
_WIDTH = 256
_FEW = 256  # maximum number of items for which all encoders share one call of a head
# of `least_sure`: share of right answers; their minimum number
_SURER = 0.95
_FEWEST_RIGHT = 20


@dataclass(frozen=True)
class StitchSpec(Task["StitchResult"], kind="stitching", version=3, title="Stitching every pair"):
    """The task of stitching, with its settings: methods, heads, anchors, split, and number of repetitions.

    Each random state draws the test rows, the anchors, the prunings and the initial weights of networks. If
    `anchors` or `test_ids` are given, these ids are used instead of drawn ones.

    Examples
    --------
    >>> from relcore import StitchSpec
    >>> StitchSpec(("absolute", "procrustes"), n_anchors=100).methods
    ('absolute', 'procrustes')
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

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        shared = share_rows(spaces, self.order)
        n = len(shared.targets) * (1 - self.test_fraction)
        n_classes = len(shared.classes)
        n_anchors = len(self.anchors) or self.n_anchors
        kinds = [METHODS[method].heads for method in self.methods]
        total = 0.0
        for kind, space in product(set(kinds), shared.spaces):
            width = n_anchors
            if kind == "absolute":
                width = space.dimension
            if self.head == "logistic":
                total += 0.01 + n * width * n_classes * _LOGISTIC
            else:
                weights = (width + _WIDTH + n_classes) * _WIDTH
                total += 0.2 + _EPOCHS * n * (_BATCH / 128 + _NETWORK * weights)
        widest = max(space.dimension for space in shared.spaces)
        total += kinds.count("absolute") * len(spaces) ** 2 * (0.002 + n_anchors * widest * 2e-7)
        return total * len(self.random_states)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> StitchResult:
        return stitch_matrix(spaces, self, report=report)


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


@dataclass(frozen=True)
class StitchResult(Reported):
    """The result of stitching: scores with encoders as rows and heads as columns. On the diagonal, each
    encoder has its own head."""

    spec: StitchSpec
    encoders: tuple[str, ...]
    classes: tuple[str, ...]
    runs: tuple[StitchRun, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        if self.spec.order:
            return ("accuracy", "f1", "mae")
        return ("accuracy", "f1")

    @property
    def n_test(self) -> int:
        """The number of test rows, averaged over the random states."""
        return round(float(np.mean([len(run.truth) for run in self.runs])))

    @property
    def tested(self) -> str:
        """The number of test rows in words: ``"48 test rows"`` or ``"46 – 54 test rows per state"``."""
        sizes = {len(run.truth) for run in self.runs}
        if len(sizes) == 1:
            return f"{min(sizes):,} test rows"
        return f"{min(sizes):,} – {max(sizes):,} test rows per state"

    @property
    def untested(self) -> str:
        """A sentence on the classes that have no test row in any state; "" if there are none."""
        tested = {number for run in self.runs for number in np.unique(run.truth).tolist()}
        names = [name for number, name in enumerate(self.classes) if number not in tested]
        more = ""
        if len(names) > 3:
            more = f" and {len(names) - 3} more"
        text = f"Classes not tested, because all their rows are trained on: {quote(names[:3])}{more}."
        return text if names else ""

    def by_state(self, method: str, metric: str = "accuracy") -> np.ndarray:
        """The scores (random states, E, E); NaN if a pair has no answer.

        Accuracy and weighted F1 are 0 … 1; 1 is perfect. MAE is in steps of the order of the labels; 0 is
        perfect.
        """
        need_one_of("metric", metric, self.metrics)
        return np.array(
            [
                [[self._score(run.truth, cell, metric) for cell in row] for row in run.answers[method]]
                for run in self.runs
            ]
        )

    def matrix(self, method: str, metric: str = "accuracy") -> tuple[np.ndarray, np.ndarray]:
        """The mean and the standard deviation over the random states, both (E, E). If there is a single
        state, the deviation is 0."""
        return _mean_and_deviation(self.by_state(method, metric))

    def chance(self, metric: str = "accuracy") -> float:
        """The score of always answering the most frequent class, averaged over the random states."""
        scores = [self._score(run.truth, np.full(len(run.truth), run.majority), metric) for run in self.runs]
        return float(np.mean(scores))

    def permuted(self, method: str, metric: str = "accuracy") -> float:
        """The score of the same answers after the labels of the test rows are permuted. It is the exact mean
        over all permutations, averaged over stitched pairs and random states. If no pair can be stitched,
        NaN.

        For weighted F1, answers in all classes score higher than always answering the same class.
        """
        scores = [
            _score_of(_permuted(self._confusion(run.truth, answers)), metric)
            for run in self.runs
            for answers in run.answers[method][~np.eye(len(self.encoders), dtype=bool)]
            if answers[0] != NO_ANSWER
        ]
        if scores:
            return float(np.mean(scores))
        return float("nan")

    def chance_level(self, method: str, metric: str = "accuracy") -> float:
        """The larger one of `chance` and `permuted`. Both ignore the rows."""
        levels = [self.chance(metric), self.permuted(method, metric)]
        return float(np.nanmin(levels) if metric == "mae" else np.nanmax(levels))

    def summary(self) -> pd.DataFrame:
        """A table with one row per method and metric. It has the mean over stitched pairs, the mean of heads
        on their own encoders, and the chance level.

        Columns: method, metric, stitched, stitched_deviation, own, own_deviation, chance, permuted, pairs
        (number of pairs that can be stitched), of (number of all pairs). Deviations are over the random
        states.
        """
        off = ~np.eye(len(self.encoders), dtype=bool)
        rows = []
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

    def report(
        self, metric: str = "accuracy", spaces: Sequence[SpaceSpec] = (), digests: Sequence[str] = ()
    ) -> Report:
        """A report with the best method and a matrix per method. The recipe of its figure names these
        spaces."""
        names, common = short_names(self.encoders)
        printed = printed_summary(self)
        several = len(self.runs) > 1
        shown = [list(printed.columns), *printed.astype(str).to_numpy().tolist()]
        summary = summary_table(self, metric)
        tables = [Table("rows", cell_table(self)), Table("summary", summary, shown)]
        for method in self.spec.methods:
            rows = [["encoder \\ classifier", *names]]
            for name, means, deviations in zip(names, *self.matrix(method, metric), strict=True):
                spreads = [f" ± {short(one)}" if several else "" for one in deviations]
                cells = zip(means, spreads, strict=True)
                rows.append(
                    [name, *(short(mean) + (spread if mean == mean else "") for mean, spread in cells)]
                )
            tables.append(Table(shown=rows, title=f"{METHODS[method].title}, {metric}"))
        states = f"mean ± deviation over {len(self.runs)} random states"
        if not several:
            states = f"random state {self.runs[0].random_state}"
        anchors = counted(len(self.spec.anchors) or self.spec.n_anchors, "anchor")
        permuted = ", ".join(
            f"{METHODS[method].title} {short(self.permuted(method, metric))}" for method in self.spec.methods
        )
        common_name = ""
        if common:
            common_name = f" All names of encoders also contain {common!r}."
        notes = [
            f"{self.tested}, no anchors; {anchors}; {states}; the diagonal is not stitched.{common_name}",
            f"Score of the same answers, if labels are permuted: {permuted}.",
            self.untested,
        ]
        chart = StitchMatrix(spaces=tuple(spaces), digests=tuple(digests), stitching=self.spec, metric=metric)
        return Report(
            headline(self, metric),
            tables,
            {"encoders": self.encoders},
            [*filter(None, notes)],
            {"stitch-matrix": partial(chart.draw, self)},
        )

    def confusion(self, method: str, encoder: int, head: int) -> np.ndarray:
        """The confusion matrix (C, C) over all random states: the number of test rows of each true class
        (rows) with each answered class (columns)."""
        return sum(self._confusion(run.truth, run.answers[method][encoder, head]) for run in self.runs)

    def class_scores(self, method: str, encoder: int, head: int) -> pd.DataFrame:
        """A table with one row per class. Columns: class, precision, recall, f1, rows (number of its test
        rows)."""
        precision, recall, f1, support = class_scores(self.confusion(method, encoder, head))
        columns = {"class": self.classes, "precision": precision, "recall": recall, "f1": f1, "rows": support}
        return pd.DataFrame(columns)

    def _confusion(self, truth: np.ndarray, answers: np.ndarray) -> np.ndarray:
        answered = answers != NO_ANSWER
        n = len(self.classes)
        pairs = truth[answered].astype(np.int64) * n + answers[answered]
        return np.bincount(pairs, minlength=n**2).reshape(n, n)

    def _score(self, truth: np.ndarray, answers: np.ndarray, metric: str) -> float:
        if answers[0] == NO_ANSWER:
            return float("nan")
        return _score_of(self._confusion(truth, answers), metric)


def _score_of(confusion: np.ndarray, metric: str) -> float:
    if metric == "f1":
        *_, f1, support = class_scores(confusion)
        return float(np.average(f1, weights=support))
    numbers = np.arange(len(confusion))
    if metric == "accuracy":
        weights = np.eye(len(confusion))
    else:
        weights = np.abs(numbers[:, None] - numbers)
    return float((confusion * weights).sum() / confusion.sum())


def _permuted(confusion: np.ndarray) -> np.ndarray:
    """The mean confusion matrix over all permutations of the true classes. It gives mean scores, because
    scores are linear in it."""
    return np.outer(confusion.sum(axis=1), confusion.sum(axis=0)) / confusion.sum()


def class_scores(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """The precision, the recall, the F1 and the number of rows of each class. Values that are undefined,
    because a class is never answered or has no row, are 0."""
    right = np.diag(confusion)
    answered = confusion.sum(axis=0)
    support = confusion.sum(axis=1)
    precision = right / np.maximum(answered, 1)
    recall = right / np.maximum(support, 1)
    return precision, recall, 2 * right / np.maximum(answered + support, 1), support


def _mean_and_deviation(by_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = by_state.mean(axis=0)
    return mean, by_state.std(axis=0, ddof=1) if len(by_state) > 1 else np.zeros_like(mean)


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


def split_rows(shared: SharedRows, spec: StitchSpec, random_state: int) -> Split:
    """The split into training and test rows, which the spec gives by ids or by a share. No anchor is a test
    row, and each class keeps a training row. If the spec has no anchors, they are selected among the non-zero
    training rows.

    Raises
    ------
    SpaceError
        Test ids that are unknown; no test rows; anchors that a space lacks; classes without training rows.
    """
    first = shared.spaces[0]
    anchors = first.rows(shared_anchors(spec.anchors, *shared.spaces) if spec.anchors else ())
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
    anchors = select_anchors(candidates, spec.n_anchors, spec.strategy, random_state=random_state)
    places = first.rows(anchors)
    return replace(split, anchors=places, train=np.setdiff1d(split.train, places))


class Stitching:
    """Everything that is fitted for one random state: heads, shared representations, and maps between
    encoders. Heads are trained on the anchors and the training rows."""

    def __init__(
        self,
        shared: SharedRows,
        spec: StitchSpec,
        random_state: int = 0,
        report: Progress = silent,
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
        self._heads: dict[str, list[Head]] = {}
        kinds = list(dict.fromkeys(METHODS[method].heads for method in spec.methods))
        for number, kind in enumerate(kinds):
            report(number, len(kinds), f"{spec.head} classifiers on {kind} rows")
            self._represent[kind] = [representation(kind, side, spec.settings) for side in self._sides]
            sides = zip(self._represent[kind], self._sides, strict=True)
            self._heads[kind] = fit_heads(
                (function(side.train) for function, side in sides),
                [shared.targets[known]] * len(self._sides),
                len(shared.classes),
                spec.head,
                random_state,
            )
        self._carriers = {
            (method, i, j): fit_translation(method, source, target, spec.settings, random_state)
            for method in spec.methods
            for i, source in enumerate(self._sides)
            for j, target in enumerate(self._sides)
            if i != j and METHODS[method].heads == "absolute"
        }

    def probabilities(self, method: str, rows: Sequence[np.ndarray]) -> np.ndarray:
        """The class probabilities (E, E, m, C) float32 of m items, for each encoder (first axis) with each
        head (second axis). `rows` are E arrays (m, d). If an encoder and a head cannot be combined, NaN."""
        n = len(self.shared.spaces)
        kind = METHODS[method].heads
        widths = [side.train.shape[1] for side in self._sides]
        if [X.shape[1] for X in rows] != widths:
            expected = ", ".join(f"(m, {width})" for width in widths)
            raise SpaceError(f"expected rows of each encoder, {expected}, got {[X.shape for X in rows]}")
        answers = np.full((n, n, len(rows[0]), len(self.shared.classes)), np.nan, dtype=np.float32)
        own = [
            represent(np.asarray(X, dtype=np.float32))
            for represent, X in zip(self._represent[kind], rows, strict=True)
        ]
        for j, head in enumerate(self._heads[kind]):
            given = {}
            for i, X in enumerate(own):
                if i == j or kind != "absolute":
                    given[i] = X
                elif carry := self._carriers[method, i, j]:
                    given[i] = carry(X)
            if len(rows[0]) <= _FEW and not getattr(head, "needs_company", False):
                # Encode few items with all encoders in one call, because calls take most of the time.
                parts = np.split(head.probabilities(np.concatenate(list(given.values()))), len(given))
            else:
                parts = map(head.probabilities, given.values())
            for i, part in zip(given, parts, strict=True):
                answers[i, j] = part
        return answers

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


def stitch_matrix(
    spaces: Sequence[MatrixLike],
    spec: StitchSpec = StitchSpec(),
    report: Progress = silent,
) -> StitchResult:
    """Stitch every encoder with every head, by each method, for each random state of the spec.

    Raises
    ------
    SpaceError
        Rows, labels, a split, anchors or settings that are not valid.

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
    need_spaces("spaces", spaces)
    need_kind("spec", spec, StitchSpec)
    spaces = as_spaces(spaces, ["space"] * len(spaces))
    shared = share_rows(spaces, spec.order)
    runs = []
    n_states = len(spec.random_states)
    for number, state in enumerate(spec.random_states):

        def of_all(done: int, total: int, message: str, number: int = number, state: int = state) -> None:
            if n_states > 1:
                message += f", state {state}"
            report(number * total + done, total * n_states, message)

        runs.append(Stitching(shared, spec, state, of_all).run())
    return StitchResult(spec, tuple(distinct_names(spaces)), shared.classes, tuple(runs))


SHOWN = {"score": "score", "gap": "gap to not stitched"}
_WHY_NONE = "no answer: the dimensions differ, so this classifier cannot read these rows"


@dataclass(frozen=True, kw_only=True)
class StitchMatrix(SpacesRecipe, figure="stitch-matrix"):
    """A figure with one heat map per method: encoders as rows, heads as columns. On the diagonal, each
    encoder has its own head.

    Examples
    --------
    >>> from relcore import SpaceSpec, StitchMatrix
    >>> StitchMatrix(spaces=tuple(SpaceSpec("file", f"{name}.npz") for name in "ab")).figure
    'stitch-matrix'
    """

    stitching: StitchSpec = StitchSpec()
    metric: str = "accuracy"
    show: str = "score"

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = self.computed(result)
        data = stitch_matrices(result, self.metric, self.show)
        tables = (lambda: printed_summary(result), lambda: cell_table(result))
        return chart_exportable(data, self.to_json(), "relscope-stitching", *tables)


@dataclass(frozen=True, kw_only=True)
class StitchConfusion(SpacesRecipe, figure="stitch-confusion"):
    """A figure with two confusion matrices of a head: on another encoder, and on its own encoder."""

    stitching: StitchSpec = StitchSpec()
    method: str
    encoder: int
    head: int

    def draw(self, result: StitchResult | None = None) -> Exportable:
        result = self.computed(result)
        chosen = self.method, self.encoder, self.head
        data = confusion_matrices(result, *chosen)
        return chart_exportable(
            data, self.to_json(), "relscope-confusion", lambda: result.class_scores(*chosen)
        )


def stitch_matrices(result: StitchResult, metric: str = "accuracy", show: str = "score") -> Matrices:
    """One heat map per method, of scores or of what stitching loses (`show`).

    Raises
    ------
    SpaceError
        An unknown metric; an unknown form; MAE for labels without an order.
    """
    need_one_of("metric", metric, result.metrics)
    need_one_of("show", show, SHOWN)
    rows = dict(zip(result.spec.methods, summary_table(result, metric).itertuples(), strict=True))
    order = by_score(result, metric)
    panels = tuple(_panel(result, method, metric, show, rows[method]) for method in order)
    if len(order) > 1 and rows[order[0]].pairs:
        best = short(rows[order[0]].stitched)
        panels = tuple(
            replace(panel, title=f"{panel.title} · best") if short(rows[method].stitched) == best else panel
            for method, panel in zip(order, panels, strict=True)
        )
    title = STITCH_METRICS[metric].title
    scale = 0.0, 1.0  # equal for all accuracies and F1, so that figures can be compared
    if show == "gap":
        most = max(float(np.nanmax(panel.values, initial=0.0)) for panel in panels)
        scale = 0.0, max(0.05, float(np.ceil(most * 20) / 20))
        if metric == "mae":
            title = "error added by stitching, in steps"
        else:
            title = f"{title} lost to stitching"
    elif metric == "mae":  # the scale begins with the worst value (palest) and ends with 0
        worst = max(float(np.nanmax(panel.values)) for panel in panels)
        scale = max(worst, result.chance("mae"), 0.1), 0.0
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    n = len(result.encoders)
    alt = (
        f"Heat maps of {title}, {n} encoders by {n} classifiers, one per method. {notes}. Chance"
        f" {short(result.chance(metric))}."
    )
    return Matrices(panels, scale, title, alt, "encoder", "classifier of")


def gaps(result: StitchResult, method: str, metric: str = "accuracy") -> np.ndarray:
    """How much each pair loses compared with the same head on its own encoder, (E, E): in points or, for MAE,
    in steps."""
    mean, _ = result.matrix(method, metric)
    if metric == "mae":
        return mean - np.diag(mean)
    return np.diag(mean) - mean


def _panel(result: StitchResult, method: str, metric: str, show: str, row: pd.Series) -> MatrixPanel:
    mean, deviation = result.matrix(method, metric)
    lost = gaps(result, method, metric)
    several = len(result.runs) > 1
    values = mean if show == "score" else lost
    every = range(len(result.encoders))
    names = short_names(result.encoders)[0]

    def text(i: int, j: int) -> str:
        if np.isnan(values[i, j]):
            return ""
        spread = ""
        if several and show == "score":
            spread = f"\n± {short(deviation[i, j])}"
        return short(values[i, j]) + spread

    def hover(i: int, j: int) -> str:
        if np.isnan(mean[i, j]):
            return _WHY_NONE
        spread = ""
        if several:
            spread = f" ± {short(deviation[i, j])} over {len(result.runs)} random states"
        return (
            f"{STITCH_METRICS[metric].title} {short(mean[i, j])}{spread}\n"
            f"not stitched{'' if i == j else f' {short(mean[j, j])}'}\n"
            f"chance {short(result.chance(metric))}\n{result.tested}"
        )

    cells = (tuple(tuple(of(i, j) for j in every) for i in every) for of in (text, hover))
    diagonal = tuple((i, i) for i in every)
    note = _note(result, method, metric, show, row)
    return MatrixPanel(METHODS[method].title, names, names, values, *cells, note, diagonal)


def _note(result: StitchResult, method: str, metric: str, show: str, row: pd.Series) -> str:
    if not row.pairs:
        return "no two encoders of equal dimension"
    some = ""
    if row.pairs < row.of:
        some = f" ({row.pairs} of {counted(row.of, 'pair')})"
    if show == "gap":
        off = ~np.eye(len(result.encoders), dtype=bool)
        return f"mean gap {short(float(np.nanmean(gaps(result, method, metric)[off])))}{some}"
    spread = ""
    if len(result.runs) > 1:
        spread = f" ± {short(row.stitched_deviation)}"
    title = STITCH_METRICS[metric].title
    return f"{title} {short(row.stitched)}{spread} stitched{some}, {short(row.own)} not stitched"


def confusion_matrices(result: StitchResult, method: str, encoder: int, head: int) -> Matrices:
    """Two heat maps with the share of each answer for each true class: for this pair, and for the head on its
    own encoder.

    Raises
    ------
    SpaceError
        A method that the result lacks; an invalid index of an encoder; a pair without answers.
    """
    names = result.encoders
    need_one_of("method", method, result.spec.methods)
    for role, number in (("encoder", encoder), ("head", head)):
        if not (type(number) is int and 0 <= number < len(names)):
            raise SpaceError(f"{role}: expected a number from 0 to {len(names) - 1}, got {number!r}")
    if np.isnan(result.matrix(method)[0][encoder, head]):
        raise SpaceError(
            f"{names[encoder]} with the classifier of {names[head]}: {_WHY_NONE}; choose another method"
        )
    if encoder == head:
        pairs = [(encoder, head)]
    else:
        pairs = [(encoder, head), (head, head)]
    panels = tuple(_confusion_panel(result, method, *pair) for pair in pairs)
    notes = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    classes = counted(len(result.classes), "class", "classes")
    alt = f"Confusion matrices of {METHODS[method].title}, {classes}. {notes}."
    return Matrices(panels, (0.0, 1.0), "share of the true class", alt, "label", "answer", across=len(panels))


def _confusion_panel(result: StitchResult, method: str, encoder: int, head: int) -> MatrixPanel:
    counts = result.confusion(method, encoder, head)
    support = counts.sum(axis=1, keepdims=True)
    shares = counts / np.maximum(support, 1)
    names, _ = short_names(result.encoders)
    if encoder == head:
        own = "its own classifier"
    else:
        own = f"classifier of {names[head]}"
    texts = tuple(tuple(f"{count:,}" if count else "" for count in row) for row in counts.tolist())
    hover = tuple(
        tuple(
            f"{count:,} of {total:,} answers, {100 * share:.1f} %"
            for count, share in zip(row, line, strict=True)
        )
        for row, line, (total,) in zip(counts.tolist(), shares.tolist(), support.tolist(), strict=True)
    )
    mean, _ = result.matrix(method)
    note = (
        f"{'not stitched' if encoder == head else 'stitched'}, accuracy {short(mean[encoder, head])},"
        f" {counts.sum():,} answers"
    )
    return MatrixPanel(
        f"{names[encoder]} → {own}", result.classes, result.classes, shares, texts, hover, note
    )


def cell_table(result: StitchResult) -> pd.DataFrame:
    """A table with one row per method, encoder, head and metric. The column `not_stitched` is the score of
    the same head on its own encoder."""
    rows = []
    names = result.encoders
    for method, metric in product(result.spec.methods, result.metrics):
        mean, deviation = result.matrix(method, metric)
        for i, j in np.ndindex(mean.shape):
            titles = METHODS[method].title, names[i], names[j], STITCH_METRICS[metric].title
            rows.append((*titles, mean[i, j], deviation[i, j], mean[j, j], result.chance(metric)))
    columns = ["method", "encoder", "head", "metric", "score", "deviation", "not_stitched", "chance"]
    table = pd.DataFrame(rows, columns=columns)
    return table.assign(test_rows=result.n_test, random_states=len(result.runs))


def summary_table(result: StitchResult, metric: str = "accuracy") -> pd.DataFrame:
    """The table `StitchResult.summary` for one metric, with the number of test rows and the number of random
    states."""
    table = result.summary()
    table = table[table.metric == STITCH_METRICS[metric].title].drop(columns="metric").reset_index(drop=True)
    return table.assign(test_rows=result.n_test, random_states=len(result.runs))


def headline(result: StitchResult, metric: str = "accuracy") -> str:
    """The result in words: the score of the best methods on stitched pairs, and the score of classifiers on
    their own encoders. Methods whose score is inside the interval of the best method are named as close
    behind."""
    table = summary_table(result, metric)
    able = table[table.pairs > 0]
    if able.empty:
        return (
            "These methods cannot stitch any of these encoders: a classifier cannot read absolute rows of"
            " another dimension."
        )
    best = able.loc[able.stitched.agg("idxmin" if metric == "mae" else "idxmax")]
    title = STITCH_METRICS[metric].title
    chances = sorted({short(result.chance_level(method, metric)) for method in result.spec.methods})
    chance = " to ".join(dict.fromkeys((chances[0], chances[-1])))
    equal = able.stitched.map(short) == short(best.stitched)  # compared as printed, so that ties are ties
    reach = ""
    close = equal & ~equal
    if metric == "accuracy":
        low, high = share_interval(float(best.stitched), result.n_test)
        reach = f" (95 %: {short(low)} to {short(high)})"
        close = (able.stitched >= low) & ~equal
    tied = and_list(f"“{name}”" for name in able.method[equal])
    among = "Method"
    if len(able) > 1:
        among = f"Best of {counted(len(able), 'method')}"
    n_close = int(close.sum())
    others = ""
    if n_close > 0:
        others = f" {counted(n_close, 'other')} {'is' if n_close == 1 else 'are'} close behind."
    tie = ""
    if equal.sum() > 1:
        tie = ", a tie"
    among += f" ({counted(int(best.pairs), 'pair')}{tie})"
    return (
        f"With another model's encoder, a classifier's mean {title} is {short(best.stitched)}{reach}; with"
        f" its own, {short(best.own)}. A blind guess has {chance}. {among}: {tied}.{others}"
    )


def by_score(result: StitchResult, metric: str = "accuracy") -> tuple[str, ...]:
    """The methods, from the one with the best mean score of stitched pairs to the one with the worst. Methods
    that can stitch no pair come last."""
    rows = zip(result.spec.methods, summary_table(result, metric).itertuples(), strict=True)
    worse = {method: row.stitched * (1 if metric == "mae" else -1) for method, row in rows if row.pairs}
    return tuple(sorted(result.spec.methods, key=lambda method: worse.get(method, np.inf)))


def best_method(result: StitchResult) -> str:
    """The method whose stitched pairs are most accurate on average. The headline names it."""
    return by_score(result)[0]


def printed_summary(result: StitchResult) -> pd.DataFrame:
    """The summary in the layout of a paper: one row per method, and the chance level in the last row."""
    several = len(result.runs) > 1
    chance = {"method": "chance"}
    printed = [{"method": METHODS[method].title} for method in result.spec.methods]

    def score(mean: float, deviation: float) -> str:
        spread = f" ± {deviation:.3f}" if several else ""
        if np.isnan(mean):
            return "–"
        return f"{mean:.3f}{spread}"

    for metric in result.metrics:
        stitched, own = (f"{STITCH_METRICS[metric].title}, {how}" for how in ("stitched", "not stitched"))
        for line, row in zip(printed, summary_table(result, metric).itertuples(), strict=True):
            line[stitched] = score(row.stitched, row.stitched_deviation)
            line[own] = score(row.own, row.own_deviation)
            line["pairs"] = f"{row.pairs} of {row.of}"
        chance |= dict.fromkeys((stitched, own), f"{result.chance(metric):.3f}")
    return pd.DataFrame([*printed, chance]).fillna("")
