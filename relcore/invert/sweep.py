"""δ × ω: the scores of pruned inversion for each δ and ω (Figs. 3 and 6 of the paper)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of, need_whole
from relcore.base.names import ROUTES
from relcore.base.numbers import general
from relcore.invert.recovery import MOST_OMEGA, sides
from relcore.represent.anchors import shared_anchors
from relcore.represent.inversion import InverseRelativeProjection, pruned_decoders
from relcore.represent.similarity import mean_row, project_directions, unit_rows
from relcore.represent.translation import Procrustes
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.score import Null
from relcore.spaces.space import LatentSpace, Match, match
from relcore.spaces.split import Split, row_keys
from relcore.stitch.heads import Head, fit_head
from relcore.stitch.stitching import share_rows
from relcore.tasks.task import Task

# The chance level of a maximum: what the best of several cells reaches where rows are paired at random.

_PERMUTATIONS = 200
_MOST_BYTES = 256 * 2**20  # of cells that wait for the permuted rows
_AT_ONCE = 16  # permutations of the true rows in memory


class BestCellChance:
    """Collects the cells' rows, one array (m, d) at a time, and tells the distribution of the best mean
    cosine by chance.

    Each permutation of the true rows is applied to all cells alike, for cells of one grid resemble each
    other: the best of 50 that agree is hardly better by chance than one of them, and permutations of their
    own would widen the band. The permutations are single cycles, so no row stays with its own partner.

    Parameters
    ----------
    true : array (m, d) float32
        Unit rows.
    """

    def __init__(self, true: np.ndarray, n_permutations: int = _PERMUTATIONS, random_state: int = 0) -> None:
        rng = np.random.default_rng(random_state)
        orders = [rng.permutation(len(true)) for _ in range(n_permutations)]
        self._partners = [order[np.argsort(np.roll(order, 1))] for order in orders]
        self._true = true
        self._waiting: list[np.ndarray] = []
        self._best = np.full(n_permutations, -np.inf)

    def add(self, found: np.ndarray) -> None:
        """One more cell: unit rows (m, d) float32."""
        self._waiting.append(found)
        if len(self._waiting) * found.nbytes >= _MOST_BYTES:
            self._compare()

    def null(self) -> Null | None:
        """Mean and middle 95 % of the best cell's mean cosine over the permutations; None without cells."""
        self._compare()
        if not np.isfinite(self._best).all():
            return None
        low, high = np.quantile(self._best, [0.025, 0.975])
        return Null(float(self._best.mean()), float(low), float(high), len(self._best))

    def _compare(self) -> None:
        if not self._waiting:
            return
        cells = np.stack(self._waiting).reshape(len(self._waiting), -1)
        self._waiting = []
        for start in range(0, len(self._partners), _AT_ONCE):
            permuted = self._true[np.stack(self._partners[start : start + _AT_ONCE])]
            cosines = permuted.reshape(len(permuted), -1) @ cells.T / len(self._true)
            self._best[start : start + _AT_ONCE] = np.maximum(
                self._best[start : start + _AT_ONCE], cosines.max(axis=1)
            )


DELTAS = (0.0, 0.2, 0.4, 0.5, 0.6, 0.65, 0.7, 0.75, 0.8, 0.9)
OMEGAS = (1, 2, 4, 8, 16)
MOST_ROWS, MOST_TRAIN = (
    2000,
    4000,
)  # held-out rows that are translated in each cell, rows that the head is trained on


@dataclass(frozen=True)
class Sweep:
    """The scores of each cell on rows that are not anchors, and the numbers to compare them with.

    Attributes
    ----------
    cells : tuple of dict
        One per cell: delta, omega, cosine (mean over the held-out rows, by the route), chance (the same over
        permuted rows), within (the cosine from the target through its own relative space), condition and kept
        (means over the prunings), accuracy; None if missing.
    n, n_rows, n_anchors, dimension : int
        Rows of the pair, held-out rows translated, anchors, width of the target.
    procrustes : float
        Mean cosine by a rotation fitted on the same anchors; 1 within a space.
    not_stitched, chance : float or None
        Accuracy of the target's head on its own test rows, and that of always predicting the most frequent
        class.
    n_classes, n_train, n_test : int
        0 where the spaces have no labels.
    why_none : str
        Why there is no accuracy.
    best_chance : Null or None
        Of the best cell's cosine: the best of all cells if rows are paired at random.
    """

    cells: tuple[dict[str, float | None], ...]
    n: int
    n_rows: int
    n_anchors: int
    dimension: int
    procrustes: float
    not_stitched: float | None = None
    chance: float | None = None
    n_classes: int = 0
    n_train: int = 0
    n_test: int = 0
    why_none: str = ""
    best_chance: Null | None = None

    def table(self) -> pd.DataFrame:
        """One row per cell; columns as in `cells`, NaN for missing values."""
        return (
            pd.DataFrame(list(self.cells))
            .astype({"delta": float, "omega": int})
            .astype(float)
            .astype({"omega": int})
        )


@dataclass(frozen=True)
class SweepSpec:
    """The grid and the rows.

    Attributes
    ----------
    route : see `InversionSpec`
    random_state : int
        Draws the prunings, and the rows that are scored.
    deltas, omegas : tuple of float, tuple of int
        Distinct; ω ascending.
    n_rows : int
        Number of held-out rows to translate in each cell, at most.
    test_ids : tuple of str
        Test rows of the head, such as rows that no encoder was trained on; default: drawn by their ids.
    """

    route: str = "forward"
    random_state: int = 0
    deltas: tuple[float, ...] = DELTAS
    omegas: tuple[int, ...] = OMEGAS
    n_rows: int = MOST_ROWS
    test_ids: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        need_one_of("route", self.route, ROUTES)
        need_whole(self, random_state=0, n_rows=1)
        deltas, omegas = self.deltas, self.omegas
        if not deltas or len(set(deltas)) < len(deltas) or not all(0 <= delta <= 1 for delta in deltas):
            raise SpaceError(f"deltas: expected distinct distances 0 … 1, got {list(deltas)!r}")
        if (
            not omegas
            or not all(1 <= omega <= MOST_OMEGA for omega in omegas)
            or list(omegas) != sorted(set(omegas))
        ):
            raise SpaceError(
                f"omegas: expected distinct whole numbers 1 … {MOST_OMEGA}, ascending, got {list(omegas)!r}"
            )


@dataclass(frozen=True)
class InversionSweep(Task[Sweep]):
    """`inversion_sweep` of a source and a target."""

    kind: ClassVar[str] = "inversion-sweep"
    result: ClassVar[str] = "relcore.invert.sweep:Sweep"
    title: ClassVar[str] = "Inversion, δ × ω"

    anchors: tuple[str, ...]
    spec: SweepSpec = SweepSpec()

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """Within a factor of three."""
        pair, spec = match(*spaces), self.spec
        target = sides(pair, spec.route)[1]
        k, d, m = len(self.anchors), target.dimension, min(len(pair), spec.n_rows)
        small, deltas, most = min(k, d), len(spec.deltas), max(spec.omegas)
        inverting = deltas * most * (4 * k * d * small + 60 * small**3) / 8e10
        ordering = most * k * (2e-5 + 2e-9 * k)
        translating = deltas * len(spec.omegas) * 2 * (2 * m * k * d / 4e10 + 8 * m * d / 2e9)
        chance = 200 * m * d * (4e-9 + deltas * len(spec.omegas) * 5e-11)
        training = (
            5e-7 * min(len(pair), MOST_TRAIN) * d
            if all(space.labels is not None for space in spaces)
            else 0.0
        )
        return float(inverting + ordering + translating + chance + training)

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> Sweep:
        return inversion_sweep(match(*spaces), self.anchors, self.spec, report)


def inversion_sweep(
    pair: Match, anchors: Sequence[str], spec: SweepSpec | None = None, report: Report = silent
) -> Sweep:
    """Invert by the pruned method over δ × ω; each cell shares its prunings with those of larger ω.

    The rows are a random sample of those that are not anchors. If both spaces have the same labels, a
    logistic head trained on rows of the target classifies translated test rows, none of them an anchor.

    Raises
    ------
    SpaceError
        Fewer than two anchors, ones that a space lacks, all on one line, no rows beside them.
    """
    spec = spec or SweepSpec()
    route, random_state, n_rows = spec.route, spec.random_state, spec.n_rows
    source, target = sides(pair, route)
    chosen = pair.source.rows(shared_anchors(anchors, pair.source, pair.target))
    judge = _Judge.of((source, target), pair.ids[chosen], spec.test_ids, n_rows, random_state)
    rows = Split.held_out(pair.ids, chosen, random_state).queries(n_rows)
    means = mean_row(source.vectors), mean_row(target.vectors)
    pairs = source.vectors[chosen], target.vectors[chosen]
    InverseRelativeProjection(omega=1, delta=0).fit(
        *pairs, source_mean=means[0], target_mean=means[1]
    )  # refuses bad anchors
    units = [unit_rows(vectors, mean) for vectors, mean in zip(pairs, means, strict=True)]
    true = unit_rows(target.vectors[rows], means[1])
    inputs = {"cosine": project_directions(source.vectors[rows], units[0].T, means[0])}
    if route != "within":
        inputs["within"] = project_directions(target.vectors[rows], units[1].T, means[1])
    tests = project_directions(source.vectors[judge.rows], units[0].T, means[0])
    cells, by_chance = [], BestCellChance(true, random_state=random_state)
    total = len(spec.deltas) * len(spec.omegas)
    for pruned in pruned_decoders(units[1], spec.deltas, spec.omegas, random_state):
        decoder, condition = pruned.matrix.astype(np.float32), float(np.mean(pruned.condition_numbers))
        sizes = [len(kept) for kept in pruned.kept]
        cell = {"delta": pruned.delta, "omega": pruned.omega, "cosine": None, "chance": None}
        cell |= {"within": None, "accuracy": None}
        cell |= {"condition": condition if np.isfinite(condition) else None, "kept": float(np.mean(sizes))}
        if min(sizes) > 1:
            for name, relative in inputs.items():
                found = unit_rows(relative @ decoder)
                cell[name] = float(np.einsum("ij,ij->i", found, true).mean(dtype=np.float64))
                if (
                    name == "cosine"
                ):  # over all permutations of the rows the mean is the product of the two means
                    cell["chance"] = float(mean_row(found) @ mean_row(true))
                    by_chance.add(found)
            if judge.head is not None:
                cell["accuracy"] = judge.accuracy(tests @ decoder + means[1])
        cells.append(cell)
        report(len(cells), total, f"δ {general(pruned.delta)}, ω {pruned.omega}")
    rotation = Procrustes().fit(*pairs).transform(source.vectors[rows])
    rotated = np.einsum("ij,ij->i", unit_rows(rotation, means[1]), true).mean(dtype=np.float64)
    return Sweep(
        tuple(cells),
        n=len(pair),
        n_rows=len(rows),
        n_anchors=len(chosen),
        dimension=target.dimension,
        procrustes=1.0 if route == "within" else float(rotated),
        not_stitched=judge.accuracy(target.vectors[judge.rows]),
        chance=judge.chance,
        n_classes=judge.n_classes,
        n_train=judge.n_train,
        n_test=len(judge.rows),
        why_none=judge.why_none,
        best_chance=by_chance.null(),
    )


@dataclass(frozen=True, eq=False)
class _Judge:
    """Test rows, and the head that classifies them; none without labels."""

    rows: np.ndarray
    head: Head | None = None
    targets: np.ndarray | None = None
    chance: float | None = None
    n_classes: int = 0
    n_train: int = 0
    why_none: str = ""

    @classmethod
    def of(
        cls,
        spaces: tuple[LatentSpace, LatentSpace],
        anchors: np.ndarray,
        test_ids: Sequence[str],
        n_rows: int,
        random_state: int,
    ) -> _Judge:
        source, target = spaces
        nobody = np.empty(0, dtype=np.int64)
        if source.labels is None or target.labels is None:
            return cls(nobody, why_none="No accuracy: the spaces have no labels.")
        try:
            shared = share_rows((source, target))
            labelled = shared.spaces[0].index.get_indexer(anchors)
            told = sorted(set(test_ids) & set(shared.ids) - set(anchors))
            settings = {"test_ids": told, "labels": shared.targets, "random_state": random_state}
            split = Split.draw(shared.ids, anchors=labelled[labelled >= 0], **settings)
        except SpaceError as error:
            return cls(nobody, why_none=f"No accuracy: {error}.")
        test, train = split.queries(n_rows), split.known
        if len(train) > MOST_TRAIN:
            keys = row_keys(shared.ids[train], "head", random_state)
            train = np.sort(train[np.argsort(keys)[:MOST_TRAIN]])
        if len(np.unique(shared.targets[train])) < len(shared.classes):
            return cls(
                nobody,
                why_none=f"No accuracy: the training sample lacks some of the {len(shared.classes)} classes.",
            )
        head = fit_head(shared.spaces[1].vectors[train], shared.targets[train], len(shared.classes))
        rows, targets = target.rows(shared.ids[test]), shared.targets[test]
        chance = float((targets == np.bincount(shared.targets).argmax()).mean())
        return cls(rows, head, targets, chance, len(shared.classes), len(train))

    def accuracy(self, found: np.ndarray) -> float | None:
        if self.head is None:
            return None
        return float((self.head.probabilities(found).argmax(axis=1) == self.targets).mean())
