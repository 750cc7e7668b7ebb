"""Layer by layer: all layers of one model against all layers of another, similarity and stitched accuracy side by side."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from relcore.comparing.all_pairs import AllPairs
from relcore.comparing.pair_scores import ScoreGrid
from relcore.metrics.calibration import Null
from relcore.names import METRICS
from relcore.progress import Report, silent
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, SpaceError, distinct_names
from relcore.stitching.result import StitchResult
from relcore.store import Store

PERMUTATIONS = 1000
Cell = tuple[int, int]


@dataclass(frozen=True)
class Model:
    """Spaces that are outputs of one encoder of one dataset, the first layer first."""

    title: str
    layers: tuple[SpaceSpec, ...]


@dataclass(frozen=True)
class LayerScores(ScoreGrid):
    """Spaces of the rows with those of the columns, both numbers of spaces; a space may be a row and a column."""

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def itself(self) -> tuple[Cell, ...]:
        """Cells of a space with itself."""
        return cells_of_itself(self.rows, self.columns)

    @property
    def compared(self) -> list[Cell]:
        """Cells of two different spaces with a score, each pair once: those among which the best is looked for."""
        found = {}
        for i, row in enumerate(self.rows):
            for j, column in enumerate(self.columns):
                if row != column and self.scores[i][j] is not None:
                    found.setdefault((min(row, column), max(row, column)), (i, j))
        return list(found.values())

    @property
    def best(self) -> Cell | None:
        """The cell of the two different spaces that are most alike; None where no two can be compared."""
        return max(self.compared, key=lambda cell: self.scores[cell[0]][cell[1]], default=None)


def models(specs: Sequence[SpaceSpec]) -> list[Model]:
    """The encoders of which there are two or more outputs of one dataset among these spaces, in the order of these."""
    groups: list[list[SpaceSpec]] = []
    for spec in dict.fromkeys(specs):
        if spec.source == "encoding":
            group = next((group for group in groups if _same_model(group[0], spec)), None)
            if group is None:
                groups.append([spec])
            elif all(spec.option("output") != other.option("output") for other in group):
                group.append(spec)
    found: dict[str, Model] = {}
    for group in (sorted(group, key=_depth) for group in groups if len(group) > 1):
        title = plain = group[0].name.replace(f" {group[0].option('output')}", "", 1)
        while title in found:
            title = f"{plain} ({len(found) + 1})"
        found[title] = Model(title, tuple(group))
    return list(found.values())


def _same_model(first: SpaceSpec, second: SpaceSpec) -> bool:
    same_rows = first.option("dataset") == second.option("dataset")
    return same_rows and first.encoder.with_outputs_of(second.encoder) is not None


def _depth(spec: SpaceSpec) -> tuple[int, str]:
    """Sorts "layer 2" before "layer 10", and "last layer" behind both."""
    number = re.search(r"-?\d+", spec.option("output"))
    depth = int(number[0]) if number else 10**6
    return depth if depth >= 0 else 10**6 + depth, spec.option("output")


@dataclass(frozen=True)
class LayerPairs(AllPairs):
    """Score the spaces of the rows with those of the columns, numbers of the spaces; each number is that of `AllPairs`."""

    kind = "layers"
    result = "relcore.comparing.layers:LayerScores"

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"Layer by layer, {METRICS[self.metric].title}"

    def run(self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent) -> LayerScores:
        """
        Raises
        ------
        SpaceError
            Numbers that are no spaces, no two different spaces, and as in `AllPairs`.
        """
        need_rectangle(len(spaces), self.rows, self.columns)
        cells = self.cells(spaces, self.rows, self.columns, report)
        return LayerScores(tuple(distinct_names(spaces)), self.metric, *cells, self.rows, self.columns)


def need_rectangle(n: int, rows: Sequence[int], columns: Sequence[int]) -> None:
    """Raise a SpaceError unless rows and columns are numbers of n spaces, none twice, with two different ones among them."""
    for name, numbers in (("rows", rows), ("columns", columns)):
        if not len(numbers) or len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(n)):
            raise SpaceError(f"{name}: expected distinct numbers of the {n} spaces, from 0, got {list(numbers)!r:.80}")
    if len({*rows, *columns}) < 2:
        raise SpaceError("layers: expected at least two different spaces, got one; choose another for rows or columns")


@dataclass(frozen=True)
class LayerAccuracy:
    """How well the heads of the column layers read the rows of the row layers.

    Attributes
    ----------
    values : array (r, c)
        Accuracy on the held-out rows, NaN where there is no answer; a space with its own head is not stitched.
    own : array (c,)
        Accuracy of each head on its own encoder: not stitched.
    chance : float
        Of always answering the most frequent class of the training rows.
    n : int
        Held-out rows.
    best : (i, j) or None
        The best stitched cell.
    best_chance : Null or None
        What the best stitched cell would be if the held-out rows' labels were permuted, by one permutation for all cells. The
        heads never saw these labels, so nothing has to be fitted again. None for a single cell.
    """

    values: np.ndarray
    own: np.ndarray
    chance: float
    n: int
    best: Cell | None
    best_chance: Null | None


def layer_accuracy(result: StitchResult, rows: Sequence[int], columns: Sequence[int]) -> LayerAccuracy:
    """The rectangle of a result of `stitch_matrix` on the same spaces, by its first method and random state."""
    method, run = result.spec.methods[0], result.runs[0]
    whole = result.by_state(method)[0]
    values = whole[np.ix_(rows, columns)]
    stitched = np.array([[i != j for j in columns] for i in rows]) & ~np.isnan(values)
    best = best_chance = None
    if stitched.any():
        best = tuple(int(place) for place in np.unravel_index(np.argmax(np.where(stitched, values, -1)), values.shape))
    if stitched.sum() > 1:
        answers = run.answers[method][np.ix_(rows, columns)][stitched]
        rng = np.random.default_rng(0)
        best_chance = Null.from_draws(
            np.array([(answers == rng.permutation(run.truth)).mean(axis=1).max() for _ in range(PERMUTATIONS)])
        )
    return LayerAccuracy(values, np.diag(whole)[list(columns)], result.chance(), len(run.truth), best, best_chance)


def cells_of_itself(rows: Sequence[int], columns: Sequence[int]) -> tuple[Cell, ...]:
    """Cells of a space with itself."""
    return tuple((i, j) for i, row in enumerate(rows) for j, column in enumerate(columns) if row == column)
