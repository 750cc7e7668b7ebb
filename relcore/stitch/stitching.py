"""Stitching of classifiers: combine every encoder with every head, which is a classifier of another encoder's
rows, by every method. The result, its tables and its report."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_whole
from relcore.base.errors import need_one_of, quote
from relcore.base.kinds import takes_kinds
from relcore.base.names import FIGURES, METHODS, STITCH_METRICS
from relcore.base.numbers import and_list, counted, short
from relcore.base.report import Report, Reported, Table
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Task
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.score import share_interval
from relcore.spaces.matching import as_spaces, distinct_names, need_spaces, short_names
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.stitch.classifiers import NO_ANSWER, Stitching, StitchRun, StitchSettings
from relcore.stitch.own_decoders import (
    DecoderScores,
    OwnDecoder,
    decoder_scores,
    own_decoders,
    shown_decoders,
    true_items,
)
from relcore.stitch.own_heads import own_heads
from relcore.stitch.shared_rows import share_rows

# Seconds of training: per row, column and class of a logistic head; per row, epoch and weight of a network.
_LOGISTIC = 2e-8
_NETWORK = 3e-10
_BATCH = 1.2e-3
_EPOCHS = 30
_WIDTH = 256


@dataclass(frozen=True)
class StitchSpec(
    StitchSettings, Task["StitchResult"], kind="stitching", version=3, title="Stitching every pair"
):
    """The task of stitching every encoder with every head, with the settings of `StitchSettings`.

    Examples
    --------
    >>> from relcore import StitchSpec
    >>> StitchSpec(("absolute", "procrustes"), n_anchors=100).methods
    ('absolute', 'procrustes')
    """

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        shared = share_rows(spaces, self.order)
        n = len(shared.targets) * (1 - self.test_fraction)
        n_classes = len(shared.classes)
        n_anchors = len(self.anchors) or self.n_anchors
        representations = [METHODS[method].representation for method in self.methods]
        total = 0.0
        for representation, space in product(set(representations), shared.spaces):
            width = n_anchors
            if representation == "absolute":
                width = space.dimension
            if self.head == "logistic":
                total += 0.01 + n * width * n_classes * _LOGISTIC
            else:
                weights = (width + _WIDTH + n_classes) * _WIDTH
                total += 0.2 + _EPOCHS * n * (_BATCH / 128 + _NETWORK * weights)
        widest = max(space.dimension for space in shared.spaces)
        n_pairs = representations.count("absolute") * len(spaces) ** 2
        total += n_pairs * (0.002 + n_anchors * widest * 2e-7)
        return total * len(self.random_states)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> StitchResult:
        return stitch_matrix(spaces, self, report=report)


@dataclass(frozen=True, repr=False)
class StitchResult(Reported):
    """The result of stitching: scores with encoders as rows and heads as columns. On the diagonal, each
    encoder has its own head. `own_heads` are the encoders whose heads the user gave, `decoded` are the scores
    of the user's decoders."""

    spec: StitchSpec
    encoders: tuple[str, ...]
    classes: tuple[str, ...]
    runs: tuple[StitchRun, ...]
    own_heads: tuple[str, ...] = ()
    decoded: DecoderScores | None = None

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
        if not names:
            return ""
        more = ""
        if len(names) > 3:
            more = f" and {len(names) - 3} more"
        return f"Classes not tested, because all their rows are trained on: {quote(names[:3])}{more}."

    @takes_kinds
    def by_state(self, method: str, metric: str = "accuracy") -> np.ndarray:
        """The scores (random states, E, E); NaN if a pair has no answer.

        Accuracy and weighted F1 are 0 … 1; 1 is perfect. MAE is in steps of the order of the labels; 0 is
        perfect.
        """
        need_one_of("metric", metric, self.metrics)
        self._need_method(method)
        return np.array(
            [
                [[self._score(run.truth, cell, metric) for cell in row] for row in run.answers[method]]
                for run in self.runs
            ]
        )

    @takes_kinds
    def matrix(self, method: str, metric: str = "accuracy") -> tuple[np.ndarray, np.ndarray]:
        """The mean and the standard deviation over the random states, both (E, E). If there is a single
        state, the deviation is 0."""
        return _mean_and_deviation(self.by_state(method, metric))

    @takes_kinds
    def chance(self, metric: str = "accuracy") -> float:
        """The score of always answering the most frequent class, averaged over the random states."""
        need_one_of("metric", metric, self.metrics)
        scores = [self._score(run.truth, np.full(len(run.truth), run.majority), metric) for run in self.runs]
        return float(np.mean(scores))

    @takes_kinds
    def permuted(self, method: str, metric: str = "accuracy") -> float:
        """The score of the same answers after the labels of the test rows are permuted. It is the exact mean
        over all permutations, averaged over stitched pairs and random states. If no pair can be stitched,
        NaN.

        For weighted F1, answers in all classes score higher than always answering the same class.
        """
        need_one_of("metric", metric, self.metrics)
        self._need_method(method)
        scores = [
            _score_of(_permuted(self._confusion(run.truth, answers)), metric)
            for run in self.runs
            for answers in run.answers[method][~np.eye(len(self.encoders), dtype=bool)]
            if answers[0] != NO_ANSWER
        ]
        if scores:
            return float(np.mean(scores))
        return float("nan")

    @takes_kinds
    def chance_level(self, method: str, metric: str = "accuracy") -> float:
        """The larger one of `chance` and `permuted`. Both ignore the rows."""
        levels = [self.chance(metric), self.permuted(method, metric)]
        if metric == "mae":
            return float(np.nanmin(levels))
        return float(np.nanmax(levels))

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
            stitched: tuple[np.ndarray | float, np.ndarray | float] = (np.nan, np.nan)
            if able.any():
                stitched = _mean_and_deviation(scores[:, off][:, able].mean(axis=1))
            own = _mean_and_deviation(scores[:, ~off].mean(axis=1))
            chance = self.chance(metric), self.permuted(method, metric)
            titles = METHODS[method].title, STITCH_METRICS[metric].title
            rows.append((*titles, *stitched, *own, *chance, int(able.sum()), able.size))
        columns = "method metric stitched stitched_deviation own own_deviation chance permuted pairs of"
        return pd.DataFrame(rows, columns=columns.split())

    @takes_kinds
    def report(
        self, metric: str = "accuracy", spaces: Sequence[SpaceSpec] = (), digests: Sequence[str] = ()
    ) -> Report:
        """A report with the best method and a matrix per method. The recipe of its figure names these
        spaces."""
        need_one_of("metric", metric, self.metrics)
        names, common = short_names(self.encoders)
        printed = printed_summary(self)
        several = len(self.runs) > 1
        lines = [list(printed.columns), *printed.astype(str).to_numpy().tolist()]
        summary = summary_table(self, metric)
        tables = [Table("rows", cell_table(self)), Table("summary", summary, lines)]
        for method in self.spec.methods:
            rows = [["encoder \\ classifier", *names]]
            for name, means, deviations in zip(names, *self.matrix(method, metric), strict=True):
                cells = [short(mean) for mean in means]
                if several:
                    cells = list(map(_with_deviation, means, deviations))
                rows.append([name, *cells])
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
        if self.own_heads:
            heads = quote(self.own_heads)
            notes.append(
                f"Heads that you gave, which no recipe holds: {heads}. Drawn again, they are trained. If a"
                " head has seen test rows in training, its scores are optimistic."
            )
        if self.decoded is not None:
            table = self.decoded.table(self.encoders).assign(test_rows=self.n_test)
            tables.append(Table("decoders", table, shown_decoders(table), "Decoders"))
            notes.append(self.decoded.note())
        matrix = FIGURES["stitch-matrix"].load()
        chart = matrix(spaces=tuple(spaces), digests=tuple(digests), stitching=self.spec, metric=metric)
        return Report(
            headline(self, metric),
            tables,
            {"encoders": self.encoders},
            [*filter(None, notes)],
            {"stitch-matrix": partial(chart.draw, self)},
        )

    @takes_kinds
    def confusion(self, method: str, encoder: int, head: int) -> np.ndarray:
        """The confusion matrix (C, C) over all random states: the number of test rows of each true class
        (rows) with each answered class (columns)."""
        self._need_method(method)
        for name, number in {"encoder": encoder, "head": head}.items():
            need_whole(name, number, 0, len(self.encoders) - 1)
        tables = [self._confusion(run.truth, run.answers[method][encoder, head]) for run in self.runs]
        return np.sum(tables, axis=0)

    @takes_kinds
    def class_scores(self, method: str, encoder: int, head: int) -> pd.DataFrame:
        """A table with one row per class. Columns: class, precision, recall, f1, rows (number of its test
        rows)."""
        precision, recall, f1, support = class_scores(self.confusion(method, encoder, head))
        columns = {"class": self.classes, "precision": precision, "recall": recall, "f1": f1, "rows": support}
        return pd.DataFrame(columns)

    def _need_method(self, method: str) -> None:
        need_one_of("method", method, self.runs[0].answers)

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
    """The mean and the standard deviation over the random states; the deviation of a single one is 0."""
    mean = by_state.mean(axis=0)
    if len(by_state) == 1:
        return mean, np.zeros_like(mean)
    return mean, by_state.std(axis=0, ddof=1)


def _with_deviation(mean: float, deviation: float) -> str:
    if np.isnan(mean):
        return short(mean)
    return f"{short(mean)} ± {short(deviation)}"


@long_call
def stitch_matrix(
    spaces: Sequence[MatrixLike],
    spec: StitchSpec = StitchSpec(),
    report: Progress = show_step,
    heads: Sequence[Any] | None = None,
    decoders: Sequence[Any] | None = None,
    items: Any = None,
) -> StitchResult:
    """Stitch every encoder with every head, by each method, for each random state of the spec.

    `heads` are classifiers of your own, one for each space, or None for a space whose head is to be trained:
    PyTorch modules that map rows (m, d) to a score for each class, in the sorted order of the labels or that
    of ``spec.order``, fitted classifiers of scikit-learn, whose classes are the labels, or paths of ONNX
    files, whose graphs map rows to scores as modules do. The methods must translate rows, as Procrustes does.
    Name rows that your heads were not trained on in ``spec.test_ids``.

    `decoders` are one for each space, or None: PyTorch modules or functions from rows (m, d) to pictures or
    vectors (m, …). Their scores, the mean squared error and the explained share of the variation, are
    ``result.decoded``. `items` (n, …) are the true pictures or vectors of the first space's rows. Without
    them, each decoder is compared with what it makes of its own encoder's rows.

    Raises
    ------
    SpaceError
        Rows, labels, a split, anchors, settings, heads, decoders or items that are not valid.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, stitch_matrix
    >>> from relcore import StitchSpec
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
    names = tuple(distinct_names(spaces))
    own = own_heads(heads, shared.spaces, names, shared.classes, spec.methods)
    own_decoded = own_decoders(decoders, names, spec.methods)
    truth = true_items(items, len(spaces[0]))
    if truth is not None:
        truth = truth[spaces[0].rows(shared.ids)]
    runs = []
    decoded = []
    n_states = len(spec.random_states)
    for number, state in enumerate(spec.random_states):

        def of_all(done: int, total: int, message: str, number: int = number, state: int = state) -> None:
            if n_states > 1:
                message += f", state {state}"
            report(number * total + done, total * n_states, message)

        stitching = Stitching(shared, spec, state, of_all, own)
        runs.append(stitching.run())
        if any(own_decoded):
            decoded.append(_decoded(stitching, own_decoded, truth))
    with_own_head = tuple(name for name, head in zip(names, own, strict=True) if head is not None)
    scores = None
    if decoded:
        scores = DecoderScores.of_states(own_decoded, truth is not None, decoded)
    return StitchResult(spec, names, shared.classes, tuple(runs), with_own_head, scores)


def _decoded(
    stitching: Stitching, decoders: Sequence[OwnDecoder | None], items: np.ndarray | None
) -> dict[str, np.ndarray]:
    """The scores of decoders on the test rows of one random state, by method (see `decoder_scores`)."""
    test = stitching.split.test
    rows = [space.vectors[test] for space in stitching.shared.spaces]
    truth = None
    if items is not None:
        truth = items[test]
    methods = stitching.spec.methods
    return {name: decoder_scores(decoders, name, rows, stitching.translated, truth) for name in methods}


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
    scores = {method: row.stitched for method, row in rows if row.pairs}
    if metric != "mae":  # higher is better
        scores = {method: -score for method, score in scores.items()}
    return tuple(sorted(result.spec.methods, key=lambda method: scores.get(method, np.inf)))


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
        stitched = f"{STITCH_METRICS[metric].title}, stitched"
        own = f"{STITCH_METRICS[metric].title}, not stitched"
        for line, row in zip(printed, summary_table(result, metric).itertuples(), strict=True):
            line[stitched] = score(row.stitched, row.stitched_deviation)
            line[own] = score(row.own, row.own_deviation)
            line["pairs"] = f"{row.pairs} of {row.of}"
        chance |= dict.fromkeys((stitched, own), f"{result.chance(metric):.3f}")
    return pd.DataFrame([*printed, chance]).fillna("")
