"""AnchorInfluence: what each anchor does to the scores, and which to drop and to add, as a task."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, need_strings, need_whole
from relcore.represent.anchors import select_anchors, shared_anchors
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import LIVE_QUERIES, ProjectionSpec, score_differences
from relcore.scores.neighbours import CONVENTIONS, jaccard_rows
from relcore.scores.score import Difference
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split, row_keys
from relcore.tasks.task import Task

# What each anchor does to a score, by exact deletion: no column is projected again and no head is fitted
# again.
#
# Influence tells what an anchor contributes. It does not find wrong pairs: a ranking of 300 words by
# influence on CKA finds 10, 30 and 100 wrong ones with a precision of .04, .09 and .29 (our measurement).
# `relcore.represent.audit` finds them.

RIDGE = 1.0  # on rows of cosines: as much as one row with similarity 1
_ROUNDING = 1e-12  # of CKA, from its sums: less is no gain


@dataclass(frozen=True, eq=False)
class Products:
    """Squared entries of RᵀHS, RᵀHR and SᵀHS, each (m, m), of two relative spaces (n, m) over the same
    anchors.

    H centres the columns. Linear CKA of any subset of the columns is a ratio of sums over these entries.
    """

    cross: np.ndarray
    source: np.ndarray
    target: np.ndarray

    @classmethod
    def of(cls, R: np.ndarray, S: np.ndarray) -> Products:
        """Of paired rows (n, m) and (n, m), in float64.

        Raises
        ------
        SpaceError
            Shapes that differ.
        """
        if R.shape != S.shape:
            raise SpaceError(
                f"expected relative spaces of the same rows and anchors, got {R.shape} and {S.shape}"
            )
        R, S = (np.asarray(Z, dtype=np.float64) - Z.mean(axis=0, dtype=np.float64) for Z in (R, S))
        return cls((R.T @ S) ** 2, (R.T @ R) ** 2, (S.T @ S) ** 2)

    def cka(self, columns: np.ndarray) -> float:
        """Linear CKA of the spaces relative to these columns, (m,) bool, 0 … 1."""
        cross, source, target = (
            M[np.ix_(columns, columns)].sum() for M in (self.cross, self.source, self.target)
        )
        return float(cross / np.sqrt(source * target))

    def cka_changed(self, columns: np.ndarray) -> np.ndarray:
        """Linear CKA after each of the m columns is taken out, where it is among `columns` (m,) bool, or else
        added, (m,).

        Deleting an anchor deletes its row and column of each product, so all m values together cost three
        sums over m².
        """
        sums = []
        for M in (self.cross, self.source, self.target):
            total, own = M[np.ix_(columns, columns)].sum(), M.diagonal()
            strip = M[:, columns].sum(axis=1) + M[columns].sum(axis=0)
            sums.append(np.where(columns, total - strip + own, total + strip + own))
        cross, source, target = sums
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.where((source > 0) & (target > 0), cross / np.sqrt(source * target), np.nan)

    def greedy(self, columns: np.ndarray, allowed: np.ndarray, n: int) -> tuple[list[int], list[float]]:
        """Up to n columns among `allowed` (m,) bool, changed one after the other, each the one that raises
        CKA most, and CKA after each; fewer where nothing raises it or one column would be left."""
        columns, allowed = columns.copy(), allowed.copy()
        steps, values, now = [], [], self.cka(columns)
        while len(steps) < n and allowed.any() and (columns.sum() > 2 or not columns[allowed].any()):
            after = np.where(allowed, self.cka_changed(columns), -np.inf)
            best = int(np.nanargmax(after))
            if not after[best] > now + _ROUNDING:
                break
            columns[best], allowed[best], now = not columns[best], False, float(after[best])
            steps.append(best)
            values.append(now)
        return steps, values


def cosine_without(R: np.ndarray, S: np.ndarray) -> tuple[float, np.ndarray]:
    """Mean cosine of paired rows (n, m), and the same without each column, (m,)."""
    R, S = (np.asarray(Z, dtype=np.float64) for Z in (R, S))
    both, first, second = np.vecdot(R, S)[:, None], np.vecdot(R, R)[:, None], np.vecdot(S, S)[:, None]
    left = np.maximum((first - R * R) * (second - S * S), 0)
    found = np.divide(both - R * S, np.sqrt(left), out=np.zeros_like(R), where=left > 0)
    whole = np.divide(both, np.sqrt(first * second), out=np.zeros_like(both), where=first * second > 0)
    return float(whole.mean()), found.mean(axis=0)


@dataclass(frozen=True, eq=False)
class RidgeHead:
    """Ridge regression of class indicators on rows (n, m): scores = (x − mean) weights + offset.

    Attributes
    ----------
    mean : (m,), weights : (m, C), offset : (C,)
    inverse : array (m, m)
        (RᵀHR + ridge · I)⁻¹.
    """

    mean: np.ndarray
    weights: np.ndarray
    offset: np.ndarray
    inverse: np.ndarray

    @classmethod
    def fit(cls, R: np.ndarray, classes: Sequence[int], n_classes: int, ridge: float = RIDGE) -> RidgeHead:
        """Of rows (n, m) of classes 0 … C − 1."""
        R, wanted = np.asarray(R, dtype=np.float64), np.eye(n_classes)[np.asarray(classes)]
        mean, offset = R.mean(axis=0), wanted.mean(axis=0)
        moved = R - mean
        inverse = np.linalg.inv(moved.T @ moved + ridge * np.eye(R.shape[1]))
        return cls(mean, inverse @ (moved.T @ (wanted - offset)), offset, inverse)

    def scores(self, S: np.ndarray) -> np.ndarray:
        """Scores of rows (t, m), (t, C); the largest is the answer."""
        return (np.asarray(S, dtype=np.float64) - self.mean) @ self.weights + self.offset

    def scores_without(self, S: np.ndarray, column: int) -> np.ndarray:
        """`scores` of the head that is fitted without this column, (t, C), exactly.

        Without column j the other weights are w − a w_j / a_j, a the j-th column of the inverse (the inverse
        of a block matrix), so the scores lose (s · a) w_j / a_j: one outer product.
        """
        strip = self.inverse[:, column]
        moved = np.asarray(S, dtype=np.float64) - self.mean
        return self.scores(S) - np.outer(moved @ strip, self.weights[column] / strip[column])

    def answers_without(self, S: np.ndarray) -> np.ndarray:
        """Class of each row by the head without each column, (m, t)."""
        moved, scores = np.asarray(S, dtype=np.float64) - self.mean, self.scores(S)
        shifts = moved @ self.inverse
        factors = self.weights / self.inverse.diagonal()[:, None]
        return np.stack(
            [np.argmax(scores - np.outer(shifts[:, j], factors[j]), axis=1) for j in range(len(factors))]
        )


# What each anchor does to Jaccard and MRR, by exact deletion: neighbours are searched again, but no row is
# projected again.

_NOTHING = 1e-12  # share of a row's squared length below which nothing is left of it


@dataclass(frozen=True, eq=False)
class NeighboursWithout:
    """Scores of q queries with all of m anchors, in the first line, and without each of them: arrays (1 +
    m, q), 0 … 1.
    """

    jaccard: np.ndarray
    mrr: np.ndarray

    def by(self, metric: str) -> np.ndarray:
        """The mean "jaccard" or "mrr" with each anchor less that without it, (m,)."""
        means = getattr(self, metric).mean(axis=1)
        return means[0] - means[1:]


class _Cosines:
    """Cosines of query rows (q, m) to rows (n, m), with all columns or without one.

    Deleting column j takes one outer product from the inner products, and one number from each squared
    length. The length of a query changes none of its ranks, so it stays out.
    """

    def __init__(self, queries: np.ndarray, rows: np.ndarray, left_out: np.ndarray | None = None) -> None:
        self.queries, self.rows, self.left_out = queries, np.ascontiguousarray(rows.T), left_out
        self.products, self.squares = queries @ rows.T, np.vecdot(rows, rows)

    def without(self, column: int | None) -> np.ndarray:
        """(q, n); −∞ for the row that is left out of a query's list."""
        found, squares = self.products.copy(), self.squares
        if column is not None:
            found -= np.outer(self.queries[:, column], self.rows[column])
            squares = squares - self.rows[column] ** 2
        some = squares > _NOTHING * self.squares
        found *= np.divide(
            1, np.sqrt(squares, where=some, out=np.ones_like(squares)), out=np.zeros_like(squares), where=some
        )
        if self.left_out is not None:
            found[np.arange(len(found)), self.left_out] = -np.inf
        return found


def neighbours_without(
    R: np.ndarray, S: np.ndarray, queries: np.ndarray, k: int = 10, convention: str = "paper"
) -> NeighboursWithout:
    """Jaccard and MRR of queries in relative spaces (n, m) and (n, m), and the same without each of the m
    anchors.

    They equal `scores.neighbours.find_neighbours` on the spaces without that column, where no two rows are
    equally near. For q queries this takes m passes over q × n numbers and a search in each: choose some
    hundred queries.

    Parameters
    ----------
    queries : array (q,)
        Row numbers.
    convention : "paper" or "mutual"

    Raises
    ------
    SpaceError
        Shapes that differ, one anchor only, a k that the rows do not have.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> R = rng.normal(size=(200, 6))
    >>> S = R + 0.1 * rng.normal(size=R.shape)
    >>> S[:, 2] = rng.normal(size=200)  # an anchor that is not the same in both
    >>> found = neighbours_without(R, S, np.arange(50))
    >>> int(found.by("mrr").argmin()), int(found.by("jaccard").argmin())
    (2, 2)
    """
    need_one_of("convention", convention, CONVENTIONS)
    if R.shape != S.shape or R.shape[1] < 2:
        raise SpaceError(
            f"expected relative spaces of the same rows and of two anchors or more, got {R.shape} and"
            f" {S.shape}"
        )
    if not 1 <= k <= len(R) - (convention == "mutual"):
        raise SpaceError(f"k: expected 1 … {len(R) - (convention == 'mutual')} for {len(R)} rows, got {k}")
    R, S = (np.asarray(Z, dtype=np.float64) for Z in (R, S))
    across = _Cosines(R[queries], S)
    if convention == "paper":
        lists, retrievals = (_Cosines(S[queries], S), across), (across,)
    else:
        lists = _Cosines(R[queries], R, queries), _Cosines(S[queries], S, queries)
        retrievals = across, _Cosines(S[queries], R)
    jaccard, mrr = [], []
    for column in (None, *range(R.shape[1])):
        found = {search: search.without(column) for search in {*lists, *retrievals}}
        jaccard.append(jaccard_rows(*(_nearest(found[search], k) for search in lists)))
        mrr.append(np.mean([_reciprocal_ranks(found[search], queries, k) for search in retrievals], axis=0))
    return NeighboursWithout(np.array(jaccard), np.array(mrr))


def _nearest(cosines: np.ndarray, k: int) -> np.ndarray:
    """Numbers of the k largest of each line, in any order, (q, k)."""
    n = cosines.shape[1]
    return np.argpartition(cosines, n - k, axis=1)[:, n - k :]


def _reciprocal_ranks(cosines: np.ndarray, queries: np.ndarray, k: int) -> np.ndarray:
    """1 / rank of each query's own row, 0 beyond k, (q,)."""
    own = cosines[np.arange(len(queries)), queries]
    rank = 1 + np.count_nonzero(cosines > own[:, None], axis=1)
    return np.where(rank <= k, 1 / rank, 0.0)


CANDIDATES = ("farthest-point", "k-means", "random")
_FEWEST_ROWS = 20
_MOST_ROWS = 4000  # of each half
_MOST_CLASSES = 50
_SEARCHED_ROWS, _QUERIES = 2000, 200  # of the rows that choose: one search per anchor


@dataclass(frozen=True, eq=False)
class InfluenceOutcome:
    """What k anchors do, and a suggestion; all changes are those that an anchor makes by being there.

    Attributes
    ----------
    anchors : tuple of k ids
    cka, cosine, jaccard, mrr : floats
        With all anchors, on the rows that choose; the last two for `n_queries` of them among `n_searched`.
    cka_by, cosine_by, jaccard_by, mrr_by : arrays (k,)
        The score with the anchor less the score without it.
    accuracy : float
        Of a ridge head of the source's relative rows on the target's; NaN without labels.
    classes : tuple of C strings
    accuracy_by, class_by : arrays (k,) and (k, C)
        The same difference of the accuracy, of all rows and of the rows of each class.
    drop, add : tuples of ids
        In the order of the exact gain in CKA on the rows that choose.
    after : "drop", "add" → metric → Difference
        What following the suggestion changes, on rows that did not choose it.
    n_choosing, n_judging, n_labelled : int
        Rows that choose, other rows that judge, and rows with a label among the latter, which the head is
        tested on.
    n_queries, n_searched : int
    """

    anchors: tuple[str, ...]
    cka: float
    cosine: float
    jaccard: float
    mrr: float
    cka_by: np.ndarray
    cosine_by: np.ndarray
    jaccard_by: np.ndarray
    mrr_by: np.ndarray
    accuracy: float
    classes: tuple[str, ...]
    accuracy_by: np.ndarray
    class_by: np.ndarray
    drop: tuple[str, ...]
    add: tuple[str, ...]
    n_choosing: int
    n_judging: int
    n_labelled: int
    n_queries: int
    n_searched: int
    after: Mapping[str, Mapping[str, Difference]] = field(default_factory=dict)

    def table(self) -> pd.DataFrame:
        """One row per anchor, the one that harms CKA most first.

        Columns: anchor, linear CKA, cosine, Jaccard, MRR and, with labels, accuracy and the accuracy of each
        class.
        """
        columns = {"anchor": list(self.anchors), "linear CKA": self.cka_by, "cosine": self.cosine_by}
        columns |= {"Jaccard": self.jaccard_by, "MRR": self.mrr_by}
        if self.classes:
            columns |= {"stitched accuracy": self.accuracy_by}
            columns |= {
                f"accuracy, {name}": self.class_by[:, number] for number, name in enumerate(self.classes)
            }
        return pd.DataFrame(columns).sort_values("linear CKA", kind="stable", ignore_index=True)


@dataclass(frozen=True)
class AnchorInfluence(Task[InfluenceOutcome]):
    """Exact deletions on half of the held-out rows; suggestions are scored on the other half.

    See `compare.influence` and `compare.influence`.

    Attributes
    ----------
    anchors : ids of both spaces
    projection : ProjectionSpec
    candidates : one of `CANDIDATES`
        How rows are chosen that may be added.
    n_candidates, n_suggested : int
    """

    kind: ClassVar[str] = "influence"
    version: ClassVar[int] = 2
    result: ClassVar[str] = "relcore.compare.influence:InfluenceOutcome"
    title: ClassVar[str] = "Influence of the anchors"

    anchors: tuple[str, ...]
    projection: ProjectionSpec = ProjectionSpec()
    candidates: str = "farthest-point"
    n_candidates: int = 100
    n_suggested: int = 10
    k: int = 10
    convention: str = "paper"

    def __post_init__(self) -> None:
        need_strings("anchors", self.anchors)
        need_one_of("candidates", self.candidates, CANDIDATES)
        need_whole(self, n_candidates=1, n_suggested=1, k=1)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores."""
        m, n = len(self.anchors) + self.n_candidates, min(len(spaces[0]), 2 * _MOST_ROWS)
        searched = 2e-8 * len(self.anchors) * min(n // 2, _SEARCHED_ROWS) * min(n // 2, _QUERIES)
        return (
            0.3 + 4e-10 * n * m * m + 1e-8 * n * m * 10 + 5e-9 * len(spaces[0]) * self.n_candidates + searched
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> InfluenceOutcome:
        """
        Raises
        ------
        SpaceError
            Anchors that a space lacks, fewer than 3, fewer than 20 rows beside anchors and candidates.
        """
        report(0, 4, "choosing candidates")
        pair = match(*spaces)
        anchors = shared_anchors(self.anchors, pair.source, pair.target)
        if len(anchors) < 3:
            raise SpaceError(f"influence: expected 3 anchors or more, got {len(anchors)}; choose more")
        rows, candidates = self._candidates(pair, pair.source.rows(anchors))
        columns = np.concatenate([rows, candidates])
        split = self._split(pair, columns)
        report(1, 4, "deleting each anchor")
        fitted = self.projection.projection()
        relative = [
            fitted.fit(space.vectors, anchors=columns).transform(space.vectors)
            for space in (pair.source, pair.target)
        ]
        R, S = (Z[split.train] for Z in relative)
        is_anchor = np.arange(len(columns)) < len(rows)
        products = Products.of(R, S)
        cka = products.cka(is_anchor)
        cosine, without = cosine_without(R[:, is_anchor], S[:, is_anchor])
        drop, _ = products.greedy(is_anchor, is_anchor, min(self.n_suggested, len(rows) - 2))
        add, _ = products.greedy(is_anchor, ~is_anchor, self.n_suggested)
        report(2, 4, "searching neighbours without each anchor")
        neighbours, n_searched = self._neighbours(pair, split, [Z[:, is_anchor] for Z in relative])
        report(3, 4, "scoring the suggestions")
        after = {}
        for name, changed in (("drop", drop), ("add", add)):
            if changed:
                after[name] = self._judged(relative, split, is_anchor, changed)
        accuracy, classes, by, by_class, n_labelled = _head_influence(
            pair, [Z[:, is_anchor] for Z in relative], split
        )
        return InfluenceOutcome(
            anchors=tuple(anchors),
            cka=cka,
            cosine=cosine,
            jaccard=float(neighbours.jaccard[0].mean()),
            mrr=float(neighbours.mrr[0].mean()),
            cka_by=cka - products.cka_changed(is_anchor)[is_anchor],
            cosine_by=cosine - without,
            jaccard_by=neighbours.by("jaccard"),
            mrr_by=neighbours.by("mrr"),
            accuracy=accuracy,
            classes=classes,
            accuracy_by=by,
            class_by=by_class,
            drop=tuple(anchors[place] for place in drop),
            add=tuple(pair.ids[columns[place]] for place in add),
            n_choosing=len(split.train),
            n_judging=len(split.test),
            n_labelled=n_labelled,
            n_queries=neighbours.mrr.shape[1],
            n_searched=n_searched,
            after=after,
        )

    def _candidates(self, pair: Match, rows: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The anchors' rows, and rows that may be added: at most a third of the others."""
        free = np.setdiff1d(np.arange(len(pair)), rows)
        others = pair.source.take(free)
        n = min(self.n_candidates, len(free) // 3)
        if n < 1:
            return rows, free[:0]
        return rows, free[others.rows(select_anchors(others, n, self.candidates))]

    def _split(self, pair: Match, columns: np.ndarray) -> Split:
        """Rows that are no column: `train` chooses, `test` judges."""
        free = np.setdiff1d(np.arange(len(pair)), columns)
        if len(free) < _FEWEST_ROWS:
            raise SpaceError(
                f"influence: expected {_FEWEST_ROWS} rows or more beside the anchors, got {len(free)}; use"
                " fewer anchors"
            )
        keys = row_keys(pair.ids[free], "influence")
        order = free[np.argsort(keys)]
        half = len(order) // 2
        choosing, judging = order[:half][:_MOST_ROWS], order[half:][:_MOST_ROWS]
        return Split(pair.ids, columns, np.sort(choosing), np.sort(judging))

    def _neighbours(
        self, pair: Match, split: Split, relative: Sequence[np.ndarray]
    ) -> tuple[NeighboursWithout, int]:
        """Of some queries among some of the rows that choose, and the number of the latter."""
        rows = split.train[Split.held_out(pair.ids[split.train]).queries(_SEARCHED_ROWS)]
        queries = Split.held_out(pair.ids[rows]).queries(_QUERIES)
        k = max(1, min(self.k, len(rows) - 1))
        return neighbours_without(*(Z[rows] for Z in relative), queries, k, self.convention), len(rows)

    def _judged(
        self, relative: Sequence[np.ndarray], split: Split, columns: np.ndarray, changed: Sequence[int]
    ) -> dict[str, Difference]:
        other = columns.copy()
        other[list(changed)] = ~other[list(changed)]
        before, now = (tuple(Z[:, chosen] for Z in relative) for chosen in (columns, other))
        k = max(1, min(self.k, len(split.test) - 1))
        return score_differences(before, now, split, k=k, convention=self.convention, n_queries=LIVE_QUERIES)


def _head_influence(
    pair: Match, relative: Sequence[np.ndarray], split: Split
) -> tuple[float, tuple[str, ...], np.ndarray, np.ndarray, int]:
    """Accuracy of a head of the source's rows that choose on the target's rows that judge, its classes, and
    what each anchor adds to the accuracy and to that of each class, and the number of rows; NaN and no
    classes where there are no labels.
    """
    nothing = float("nan"), (), np.full(relative[0].shape[1], np.nan), np.empty((relative[0].shape[1], 0)), 0
    if pair.source.labels is None:
        return nothing
    labels = pair.source.labels.astype(str)
    train, test = (rows[labels[rows] != ""] for rows in (split.train, split.test))
    classes = np.intersect1d(labels[train], labels[test])
    if not 2 <= len(classes) <= _MOST_CLASSES:
        return nothing
    train, test = (rows[np.isin(labels[rows], classes)] for rows in (train, test))
    numbers, truth = (np.searchsorted(classes, labels[rows]) for rows in (train, test))
    head = RidgeHead.fit(relative[0][train], numbers, len(classes))
    right = np.argmax(head.scores(relative[1][test]), axis=1) == truth
    change = right[None].astype(np.float64) - (head.answers_without(relative[1][test]) == truth)
    by_class = np.stack([change[:, truth == number].mean(axis=1) for number in range(len(classes))], axis=1)
    return float(right.mean()), tuple(classes.tolist()), change.mean(axis=1), by_class, len(test)
