"""The figure "layers" from a recipe: similarity of all row layers with all column layers, stitched accuracy beside it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.comparing.all_pairs import SETTINGS, used_settings
from relcore.comparing.layers import (
    LayerAccuracy,
    LayerPairs,
    LayerScores,
    cells_of_itself,
    layer_accuracy,
    need_rectangle,
)
from relcore.comparison import ProjectionSpec
from relcore.figures.export import Exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.metrics.calibration import Null
from relcore.names import METHODS
from relcore.numbers import counted
from relcore.recipe import Recipe, load_all
from relcore.sources.catalog import SpaceSpec
from relcore.stitching.classification import stitch_matrix
from relcore.stitching.figures import short, short_names
from relcore.stitching.result import StitchResult
from relcore.stitching.spec import StitchSpec


@dataclass(frozen=True, kw_only=True)
class LayerMaps(Recipe):
    """Two heat maps, or the first alone without `stitching`; `rows` and `columns` are numbers of the spaces, from 0.

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
        return described if self.stitching else {name: value for name, value in described.items() if name != "stitching"}

    def draw(self, result: tuple[LayerScores, StitchResult | None] | None = None) -> Exportable:
        scores, stitched = result or self._computed()
        data = layer_matrices(scores, stitched)
        return matrices_exportable(data, self.to_json(), "relscope-layers", table=lambda: layer_table(scores, stitched))

    def _computed(self) -> tuple[LayerScores, StitchResult | None]:
        need_rectangle(len(self.spaces), self.rows, self.columns)
        spaces = load_all(self.spaces, self.digests, self.figure)
        task = LayerPairs.of(**{name: getattr(self, name) for name in ("metric", "rows", "columns", *SETTINGS)})
        return task.run(spaces), stitch_matrix(spaces, self.stitching) if self.stitching else None


def layer_matrices(scores: LayerScores, result: StitchResult | None = None) -> Matrices:
    """The heat maps, the best cell of each framed, a space with itself dotted."""
    panels, titles = [_similarity_panel(scores)], [scores.title]
    if result is not None:
        panels.append(_accuracy_panel(scores, result))
        titles.append("accuracy")
    told = "; ".join(f"{panel.title}: {panel.note}" for panel in panels)
    alt = f"Heat maps of {len(scores.rows)} by {counted(len(scores.columns), 'space')}. {told}."
    axes = [_side(scores, side)[1] or name for side, name in ((scores.rows, "rows of"), (scores.columns, "columns of"))]
    return Matrices(tuple(panels), (0.0, 1.0), ", ".join(titles), alt, *axes, across=len(panels))


def best_told(scores: LayerScores) -> str:
    """``"layer 4 and layer 6, .830; the best of 9 pairs is .020 … .050 by chance"``; "" where no two can be compared."""
    if scores.best is None:
        return ""
    i, j = scores.best
    names = short_names(scores.names)[0]
    pair = f"{names[scores.rows[i]]} and {names[scores.columns[j]]}, {short(scores.scores[i][j])}"
    return pair + _by_chance(scores.best_chance, counted(len(scores.compared), "pair"))


def best_stitched_told(scores: LayerScores, result: StitchResult) -> str:
    """The best stitched cell as `best_told`, with the head on its own encoder; "" where nothing is stitched."""
    found = layer_accuracy(result, scores.rows, scores.columns)
    if found.best is None:
        return ""
    i, j = found.best
    names = short_names(scores.names)[0]
    pair = f"{names[scores.rows[i]]} through the head of {names[scores.columns[j]]}, {short(found.values[i, j])}"
    own = f" (not stitched {short(found.own[j])})"
    return pair + own + _by_chance(found.best_chance, f"{_n_stitched(scores, found)} cells")


def layer_table(scores: LayerScores, result: StitchResult | None = None) -> pd.DataFrame:
    """A row per cell.

    Columns: row, column, score, chance, null_low, null_high, n, k, queries, best_low, best_high (what the best of all pairs is
    by chance), reason; with a result also accuracy, not_stitched (the head on its own encoder), accuracy_chance,
    held_out_rows, best_accuracy_low, best_accuracy_high, method, n_anchors.
    """
    lines, best = [], scores.best_chance
    for i, j in np.ndindex(len(scores.rows), len(scores.columns)):
        score, names = scores.scores[i][j], (scores.names[scores.rows[i]], scores.names[scores.columns[j]])
        line = dict(zip(("row", "column"), names, strict=True)) | {"score": np.nan, "reason": scores.reasons[i][j]}
        line |= {"best_low": best.low if best else np.nan, "best_high": best.high if best else np.nan}
        line |= score.facts() if score is not None else {}
        lines.append(line)
    columns = ["row", "column", "score", "chance", "null_low", "null_high", "n", "k", "queries", "best_low", "best_high"]
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
        else counted(counts[0], "row")
        if len(counts) == 1
        else f"{counts[0]:,} to {counted(counts[-1], 'row')}"
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
        hover.append("no answer" if none else f"{told}\nchance {short(found.chance)}, {counted(found.n, 'held-out row')}")
    shape = found.values.shape
    best = f"best {short(found.values[found.best])}{_by_chance(found.best_chance, '', ', by chance ')}, " if found.best else ""
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
