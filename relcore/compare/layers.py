"""Layer by layer: all layers of one model against all layers of another, similarity and stitched accuracy
side by side.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.names import METHODS, METRICS
from relcore.base.numbers import counted, short
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.all_pairs import SETTINGS, AllPairs, used_settings
from relcore.figures.export import Exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import ProjectionSpec
from relcore.scores.pair_scores import ScoreGrid
from relcore.scores.score import Null
from relcore.spaces.space import LatentSpace, distinct_names
from relcore.stitch.figures import short_names
from relcore.stitch.stitching import StitchResult, StitchSpec, stitch_matrix
from relcore.tasks.recipe import Recipe, load_all

PERMUTATIONS = 1000
Cell = tuple[int, int]


@dataclass(frozen=True)
class LayeredModel:
    """Spaces that are outputs of one encoder of one dataset, the first layer first."""

    title: str
    layers: tuple[SpaceSpec, ...]


@dataclass(frozen=True)
class LayerScores(ScoreGrid):
    """Spaces of the rows with those of the columns, both numbers of spaces; a space may be a row and a
    column.
    """

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def itself(self) -> tuple[Cell, ...]:
        """Cells of a space with itself."""
        return cells_of_itself(self.rows, self.columns)

    @property
    def compared(self) -> list[Cell]:
        """Cells of two different spaces with a score, each pair once: those among which the best is looked
        for.
        """
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


def models(specs: Sequence[SpaceSpec]) -> list[LayeredModel]:
    """The encoders of which there are two or more outputs of one dataset among these spaces, in the order
    of these.
    """
    groups: list[list[SpaceSpec]] = []
    for spec in dict.fromkeys(specs):
        if spec.source == "encoding":
            group = next((group for group in groups if _same_model(group[0], spec)), None)
            if group is None:
                groups.append([spec])
            elif all(spec.option("output") != other.option("output") for other in group):
                group.append(spec)
    found: dict[str, LayeredModel] = {}
    for group in (sorted(group, key=_depth) for group in groups if len(group) > 1):
        title = plain = group[0].name.replace(f" {group[0].option('output')}", "", 1)
        while title in found:
            title = f"{plain} ({len(found) + 1})"
        found[title] = LayeredModel(title, tuple(group))
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
    """Score the spaces of the rows with those of the columns, numbers of the spaces; each number is that
    of `AllPairs`.
    """

    kind = "layers"
    result = "relcore.compare.layers:LayerScores"

    rows: tuple[int, ...] = ()
    columns: tuple[int, ...] = ()

    @property
    def title(self) -> str:
        return f"Layer by layer, {METRICS[self.metric].title}"

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> LayerScores:
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
    """Raise a SpaceError unless rows and columns are numbers of n spaces, none twice, with two different
    ones among them.
    """
    for name, numbers in (("rows", rows), ("columns", columns)):
        if not len(numbers) or len(set(numbers)) < len(numbers) or not set(numbers) <= set(range(n)):
            raise SpaceError(
                f"{name}: expected distinct numbers of the {n} spaces, from 0, got {list(numbers)!r:.80}"
            )
    if len({*rows, *columns}) < 2:
        raise SpaceError(
            "layers: expected at least two different spaces, got one; choose another for rows or columns"
        )


@dataclass(frozen=True)
class LayerAccuracy:
    """How well the heads of the column layers read the rows of the row layers.

    Attributes
    ----------
    values : array (r, c)
        Accuracy on the held-out rows, NaN where there is no answer; a space with its own head is not
        stitched.
    own : array (c,)
        Accuracy of each head on its own encoder: not stitched.
    chance : float
        Of always answering the most frequent class of the training rows.
    n : int
        Held-out rows.
    best : (i, j) or None
        The best stitched cell.
    best_chance : Null or None
        What the best stitched cell would be if the held-out rows' labels were permuted, by one permutation
        for all cells. The heads never saw these labels, so nothing has to be fitted again. None for a single
        cell.
    """

    values: np.ndarray
    own: np.ndarray
    chance: float
    n: int
    best: Cell | None
    best_chance: Null | None


def layer_accuracy(result: StitchResult, rows: Sequence[int], columns: Sequence[int]) -> LayerAccuracy:
    """The rectangle of a result of `stitch_matrix` on the same spaces, by its first method and random
    state.
    """
    method, run = result.spec.methods[0], result.runs[0]
    whole = result.by_state(method)[0]
    values = whole[np.ix_(rows, columns)]
    stitched = np.array([[i != j for j in columns] for i in rows]) & ~np.isnan(values)
    best = best_chance = None
    if stitched.any():
        best = tuple(
            int(place) for place in np.unravel_index(np.argmax(np.where(stitched, values, -1)), values.shape)
        )
    if stitched.sum() > 1:
        answers = run.answers[method][np.ix_(rows, columns)][stitched]
        rng = np.random.default_rng(0)
        best_chance = Null.from_draws(
            np.array(
                [(answers == rng.permutation(run.truth)).mean(axis=1).max() for _ in range(PERMUTATIONS)]
            )
        )
    return LayerAccuracy(
        values, np.diag(whole)[list(columns)], result.chance(), len(run.truth), best, best_chance
    )


def cells_of_itself(rows: Sequence[int], columns: Sequence[int]) -> tuple[Cell, ...]:
    """Cells of a space with itself."""
    return tuple((i, j) for i, row in enumerate(rows) for j, column in enumerate(columns) if row == column)


# The figure "layers" from a recipe: similarity of all row layers with all column layers, stitched accuracy
# beside it.


@dataclass(frozen=True, kw_only=True)
class LayerMaps(Recipe):
    """Two heat maps, or the first alone without `stitching`; `rows` and `columns` are numbers of the spaces,
    from 0.

    The result is that of `LayerPairs` and of `stitching` on all of these spaces.
    """

    figure: ClassVar[str] = "layers"

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    rows: tuple[int, ...]
    columns: tuple[int, ...]
    metric: str = "cka"
    anchors: tuple[str, ...] = ()
    projection: ProjectionSpec = ProjectionSpec()
    k: int = 10
    n_queries: int | None = None
    stitching: StitchSpec | None = None

    def to_json(self) -> dict[str, Any]:
        """Without the settings that nothing here needs."""
        described = used_settings(super().to_json())
        return (
            described
            if self.stitching
            else {name: value for name, value in described.items() if name != "stitching"}
        )

    def draw(self, result: tuple[LayerScores, StitchResult | None] | None = None) -> Exportable:
        scores, stitched = result or self._computed()
        data = layer_matrices(scores, stitched)
        return matrices_exportable(
            data, self.to_json(), "relscope-layers", table=lambda: layer_table(scores, stitched)
        )

    def _computed(self) -> tuple[LayerScores, StitchResult | None]:
        need_rectangle(len(self.spaces), self.rows, self.columns)
        spaces = load_all(self.spaces, self.digests, self.figure)
        task = LayerPairs.of(
            **{name: getattr(self, name) for name in ("metric", "rows", "columns", *SETTINGS)}
        )
        return task.run(spaces), stitch_matrix(spaces, self.stitching) if self.stitching else None


def layer_matrices(scores: LayerScores, result: StitchResult | None = None) -> Matrices:
    """The heat maps, the best cell of each framed, a space with itself dotted."""
    panels, titles = [_similarity_panel(scores)], [scores.title]
    if result is not None:
        panels.append(_accuracy_panel(scores, result))
        titles.append("accuracy")
    told = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = f"Heat maps of {len(scores.rows)} by {counted(len(scores.columns), 'space')}. {told}."
    axes = [
        _side(scores, side)[1] or name
        for side, name in ((scores.rows, "rows of"), (scores.columns, "columns of"))
    ]
    return Matrices(tuple(panels), (0.0, 1.0), ", ".join(titles), alt, *axes, across=len(panels))


def best_told(scores: LayerScores) -> str:
    """``"layer 4 and layer 6, .830; the best of 9 pairs is .020 … .050 by chance"``; "" where no two can
    be compared.
    """
    if scores.best is None:
        return ""
    i, j = scores.best
    names = short_names(scores.names)[0]
    pair = f"{names[scores.rows[i]]} and {names[scores.columns[j]]}, {short(scores.scores[i][j])}"
    return pair + _by_chance(scores.best_chance, counted(len(scores.compared), "pair"))


def best_stitched_told(scores: LayerScores, result: StitchResult) -> str:
    """The best stitched cell as `best_told`, with the head on its own encoder; "" where nothing is
    stitched.
    """
    found = layer_accuracy(result, scores.rows, scores.columns)
    if found.best is None:
        return ""
    i, j = found.best
    names = short_names(scores.names)[0]
    pair = (
        f"{names[scores.rows[i]]} through the head of {names[scores.columns[j]]}, {short(found.values[i, j])}"
    )
    own = f" (not stitched {short(found.own[j])})"
    return pair + own + _by_chance(found.best_chance, f"{_n_stitched(scores, found)} cells")


def layer_table(scores: LayerScores, result: StitchResult | None = None) -> pd.DataFrame:
    """A row per cell.

    Columns: row, column, score, chance, null_low, null_high, n, k, queries, best_low, best_high (what the
    best of all pairs is by chance), reason; with a result also accuracy, not_stitched (the head on its own
    encoder), accuracy_chance, held_out_rows, best_accuracy_low, best_accuracy_high, method, n_anchors.
    """
    lines, best = [], scores.best_chance
    for i, j in np.ndindex(len(scores.rows), len(scores.columns)):
        score, names = scores.scores[i][j], (scores.names[scores.rows[i]], scores.names[scores.columns[j]])
        line = dict(zip(("row", "column"), names, strict=True)) | {
            "score": np.nan,
            "reason": scores.reasons[i][j],
        }
        line |= {"best_low": best.low if best else np.nan, "best_high": best.high if best else np.nan}
        line |= score.facts() if score is not None else {}
        lines.append(line)
    columns = [
        "row",
        "column",
        "score",
        "chance",
        "null_low",
        "null_high",
        "n",
        "k",
        "queries",
        "best_low",
        "best_high",
    ]
    table = pd.DataFrame(lines).reindex(columns=[*columns, "reason"])
    table = table.astype(dict.fromkeys(("n", "k", "queries"), "Int64"))
    if result is None:
        return table
    found = layer_accuracy(result, scores.rows, scores.columns)
    best = found.best_chance
    return table.assign(
        accuracy=found.values.ravel(),
        not_stitched=np.tile(found.own, len(scores.rows)),
        accuracy_chance=found.chance,
        held_out_rows=found.n,
        best_accuracy_low=best.low if best else np.nan,
        best_accuracy_high=best.high if best else np.nan,
        method=METHODS[result.spec.methods[0]].title,
        n_anchors=len(result.spec.anchors) or result.spec.n_anchors,
    )


def _similarity_panel(scores: LayerScores) -> MatrixPanel:
    counts = sorted({score.n for row in scores.scores for score in row if score is not None})
    n = (
        ""
        if not counts
        else (
            counted(counts[0], "row")
            if len(counts) == 1
            else f"{counts[0]:,} to {counted(counts[-1], 'row')}"
        )
    )
    best = ""
    if scores.best:
        score = scores.scores[scores.best[0]][scores.best[1]]
        best = f"best {short(score)}{_by_chance(scores.best_chance, '', ', by chance ')}"
    note = ", ".join(filter(None, (best, n)))
    return MatrixPanel(
        scores.title,
        *_labels(scores),
        scores.values,
        tuple(tuple("" if score is None else short(score) for score in row) for row in scores.scores),
        tuple(tuple(scores.told(i, j) for j in range(len(scores.columns))) for i in range(len(scores.rows))),
        note,
        scores.itself,
        (scores.best,) if scores.best else (),
    )


def _accuracy_panel(scores: LayerScores, result: StitchResult) -> MatrixPanel:
    found = layer_accuracy(result, scores.rows, scores.columns)
    itself = cells_of_itself(scores.rows, scores.columns)
    texts, hover = [], []
    for i, j in np.ndindex(found.values.shape):
        value, own = found.values[i, j], short(found.own[j])
        stitched = (i, j) not in itself
        none = bool(np.isnan(value))
        texts.append("" if none else short(value) + (f"\nof {own}" if stitched else ""))
        told = f"stitched {short(value)}, not stitched {own}" if stitched else f"not stitched {own}"
        hover.append(
            "no answer"
            if none
            else f"{told}\nchance {short(found.chance)}, {counted(found.n, 'held-out row')}"
        )
    shape = found.values.shape
    best = (
        f"best {short(found.values[found.best])}{_by_chance(found.best_chance, '', ', by chance ')}, "
        if found.best
        else ""
    )
    return MatrixPanel(
        f"stitched accuracy, {METHODS[result.spec.methods[0]].title}",
        *_labels(scores),
        found.values,
        tuple(tuple(texts[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])),
        tuple(tuple(hover[i * shape[1] : (i + 1) * shape[1]]) for i in range(shape[0])),
        f"{best}chance {short(found.chance)}, {counted(found.n, 'held-out row')}",
        itself,
        (found.best,) if found.best else (),
    )


def _labels(scores: LayerScores) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return _side(scores, scores.rows)[0], _side(scores, scores.columns)[0]


def _side(scores: LayerScores, side: Sequence[int]) -> tuple[tuple[str, ...], str]:
    """Names of the rows or of the columns without the words that all of them begin with, and these words."""
    names = short_names(scores.names)[0]
    words = [names[number].split(" ") for number in side]
    n = 0
    while n + 1 < min(map(len, words)) and len({tuple(one[: n + 1]) for one in words}) == 1:
        n += 1
    return tuple(" ".join(one[n:]) for one in words), " ".join(words[0][:n])


def _by_chance(null: Null | None, of: str, before: str = "") -> str:
    if null is None:
        return ""
    band = f"{short(null.low)} … {short(null.high)}"
    return f"{before}{band}" if before else f"; the best of {of} is {band} by chance"


def _n_stitched(scores: LayerScores, found: LayerAccuracy) -> int:
    return int((~np.isnan(found.values)).sum()) - len(cells_of_itself(scores.rows, scores.columns))
