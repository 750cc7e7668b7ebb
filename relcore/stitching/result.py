"""StitchResult: the answers of every encoder × head pair, and their scores."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import pandas as pd

from relcore.names import METHODS, STITCH_METRICS
from relcore.spaces import need_one_of, quote
from relcore.stitching.spec import StitchSpec

NO_ANSWER = -1


@dataclass(frozen=True)
class StitchRun:
    """One random state.

    Attributes
    ----------
    test_ids, truth : arrays (m,)
        The test rows, and the number of the class of each.
    majority : int
        The most frequent class of all rows: always answering it is the chance level. Of the training rows alone it would be
        the class that the draw left out of the test rows.
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
    """Rows of every matrix are encoders, columns are heads, by the encoder on which they were trained; the diagonal is not
    stitched."""

    spec: StitchSpec
    encoders: tuple[str, ...]
    classes: tuple[str, ...]
    runs: tuple[StitchRun, ...]

    @property
    def metrics(self) -> tuple[str, ...]:
        return ("accuracy", "f1", "mae") if self.spec.order else ("accuracy", "f1")

    @property
    def n_test(self) -> int:
        """Test rows, the mean over the random states: each draws its own, so their number differs by a few."""
        return round(float(np.mean([len(run.truth) for run in self.runs])))

    @property
    def tested(self) -> str:
        """``"48 test rows"``; of several states ``"46 – 54 test rows a state"``."""
        counts = sorted({len(run.truth) for run in self.runs})
        return f"{counts[0]:,} test rows" if len(counts) == 1 else f"{counts[0]:,} – {counts[-1]:,} test rows a state"

    def by_state(self, method: str, metric: str = "accuracy") -> np.ndarray:
        """Scores (random states, E, E), NaN where a pair has no answer.

        Accuracy and weighted F1 0 … 1, 1 is perfect; MAE in steps of the labels' order, 0 is perfect.
        """
        need_one_of("metric", metric, self.metrics)
        return np.array(
            [[[self._score(run, cell, metric) for cell in row] for row in run.answers[method]] for run in self.runs]
        )

    def matrix(self, method: str, metric: str = "accuracy") -> tuple[np.ndarray, np.ndarray]:
        """Mean and deviation over the random states, (E, E) both; the deviation of a single one is 0."""
        return _mean_and_deviation(self.by_state(method, metric))

    def chance(self, metric: str = "accuracy") -> float:
        """The score of always answering the class that is most frequent, on the test rows; mean over the states."""
        return float(np.mean([self._score(run, np.full(len(run.truth), run.majority), metric) for run in self.runs]))

    def permuted(self, method: str, metric: str = "accuracy") -> float:
        """The score of the same answers if the labels of the test rows were permuted: the mean over all permutations, exactly,
        over the stitched pairs and over the states; NaN where no pair can be stitched.

        What heads reach that learned nothing about the rows: the weighted F1 of answers of all classes is above that of one
        class alone.
        """
        scores = [
            self._permuted_score(run, run.answers[method][i, j], metric)
            for run in self.runs
            for i in range(len(self.encoders))
            for j in range(len(self.encoders))
            if i != j and run.answers[method][i, j, 0] != NO_ANSWER
        ]
        return float(np.mean(scores)) if scores else float("nan")

    def chance_level(self, method: str, metric: str = "accuracy") -> float:
        """The better of `chance` and `permuted`: what needs no knowledge of the rows."""
        levels = [self.chance(metric), self.permuted(method, metric)]
        return float(np.nanmin(levels) if metric == "mae" else np.nanmax(levels))

    @property
    def untested(self) -> str:
        """Says which classes have no test row in any state, as a class of one row is trained on; "" where all have."""
        tested = {number for run in self.runs for number in np.unique(run.truth).tolist()}
        names = [name for number, name in enumerate(self.classes) if number not in tested]
        more = f" and {len(names) - 3} more" if len(names) > 3 else ""
        return f"Not tested, because all their rows are trained on: {quote(names[:3])}{more}." if names else ""

    def summary(self) -> pd.DataFrame:
        """One row per method and metric: mean over the stitched pairs, heads on their own encoders, and chance level.

        Columns: method, metric, stitched, stitched_deviation, own, own_deviation, chance (always the most frequent class),
        permuted (see `permuted`), pairs (how many can be stitched), of (how many there are). Deviations are over the random
        states.
        """
        off = ~np.eye(len(self.encoders), dtype=bool)
        rows = []
        for method in self.spec.methods:
            for metric in self.metrics:
                scores = self.by_state(method, metric)
                pairs = scores[:, off]
                able = ~np.isnan(pairs[0])
                stitched = _mean_and_deviation(pairs[:, able].mean(axis=1)) if able.any() else (np.nan, np.nan)
                own = _mean_and_deviation(scores[:, ~off].mean(axis=1))
                numbers = (*stitched, *own, self.chance(metric), self.permuted(method, metric), int(able.sum()), able.size)
                rows.append((METHODS[method].title, STITCH_METRICS[metric].title, *numbers))
        columns = ["method", "metric", "stitched", "stitched_deviation", "own", "own_deviation", "chance", "permuted"]
        columns += ["pairs", "of"]
        return pd.DataFrame(rows, columns=columns)

    def confusion(self, method: str, encoder: int, head: int) -> np.ndarray:
        """How often truth (rows) was answered by a class (columns), all random states together, (C, C)."""
        return sum(_confusion(run.truth, run.answers[method][encoder, head], len(self.classes)) for run in self.runs)

    def class_scores(self, method: str, encoder: int, head: int) -> pd.DataFrame:
        """Columns: class, precision, recall, f1, rows (how many test rows have it), one row per class."""
        precision, recall, f1, support = class_scores(self.confusion(method, encoder, head))
        columns = {"class": self.classes, "precision": precision, "recall": recall, "f1": f1, "rows": support}
        return pd.DataFrame(columns)

    def changed(self, method: str, encoder: int, head: int, run: int = 0) -> pd.DataFrame:
        """Test rows with another answer than on the head's own encoder; those that were right there come first.

        Columns: id, truth, own (the answer on its own encoder), stitched.
        """
        one = self.runs[run]
        own, stitched = one.answers[method][head, head], one.answers[method][encoder, head]
        rows = np.flatnonzero((own != stitched) & (stitched != NO_ANSWER))
        rows = rows[np.argsort(own[rows] != one.truth[rows], kind="stable")]
        names = np.array(self.classes, dtype=object)
        columns = {"id": one.test_ids[rows], "truth": names[one.truth[rows]], "own": names[own[rows]]}
        return pd.DataFrame(columns | {"stitched": names[stitched[rows]]})

    def _permuted_score(self, run: StitchRun, answers: np.ndarray, metric: str) -> float:
        truth, given = (np.bincount(of, minlength=len(self.classes)) / len(answers) for of in (run.truth, answers))
        if metric == "accuracy":
            return float(truth @ given)
        if metric == "mae":
            numbers = np.arange(len(self.classes))
            return float(truth @ np.abs(numbers[:, None] - numbers) @ given)
        return float(truth @ (2 * truth * given / np.maximum(truth + given, 1e-12)))  # F1 is linear in the right answers

    def _score(self, run: StitchRun, answers: np.ndarray, metric: str) -> float:
        if answers[0] == NO_ANSWER:
            return float("nan")
        if metric == "accuracy":
            return float(np.mean(answers == run.truth))
        if metric == "mae":
            return float(np.mean(np.abs(answers.astype(np.int64) - run.truth)))
        *_, f1, support = class_scores(_confusion(run.truth, answers, len(self.classes)))
        return float(np.average(f1, weights=support))


def _confusion(truth: np.ndarray, answers: np.ndarray, n_classes: int) -> np.ndarray:
    answered = answers != NO_ANSWER
    pairs = truth[answered].astype(np.int64) * n_classes + answers[answered]
    return np.bincount(pairs, minlength=n_classes**2).reshape(n_classes, n_classes)


def class_scores(confusion: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Precision, recall, F1 and number of rows of each class; 0 where a class was never answered or never there."""
    right, answered, support = np.diag(confusion), confusion.sum(axis=0), confusion.sum(axis=1)
    precision, recall = right / np.maximum(answered, 1), right / np.maximum(support, 1)
    return precision, recall, 2 * right / np.maximum(answered + support, 1), support


def _mean_and_deviation(by_state: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    mean = by_state.mean(axis=0)
    return mean, by_state.std(axis=0, ddof=1) if len(by_state) > 1 else np.zeros_like(mean)
