"""Figures of inversion from their recipes: the panes, the errors, δ × ω, and the lengths that inversion
loses.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.magnitude import lengths as row_lengths
from relcore.base.numbers import band, counted, general, short
from relcore.catalog.catalog import SpaceSpec
from relcore.charts.scene import Pane, Scene
from relcore.compare.scene import ComparisonRecipe, load_pair
from relcore.figures.export import Exportable, histogram_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.invert.recovery import Inversion, InversionSpec, invert_pair, side_names
from relcore.invert.sweep import Sweep, SweepSpec, inversion_sweep
from relcore.maps.reduction import ReductionSpec, reduce_spaces
from relcore.maps.views import ViewSpec, make_view
from relcore.panes.page import scene_exportable
from relcore.represent.similarity import mean_row
from relcore.spaces.space import LatentSpace, Match, distinct_names
from relcore.tasks.recipe import Recipe, load_all

COLORS = ("error", "pivots", "labels")
EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)  # fixed, so that pictures compare
ERROR_NAMES = ("below .05", ".05 – .1", ".1 – .2", ".2 – .3", ".3 – .4", ".4 – .5", ".5 – .7", ".7 and more")
# Viridis without its ends, which are hard to see on a dark or a white page.
ERROR_COLORS = ("#414487", "#355f8d", "#2a768e", "#218e8d", "#21a585", "#3dbc74", "#70cf57", "#b0dd2f")
MEASURES = {"recovered": "Recovered rows", "condition": "Condition number", "kept": "Anchors kept"}


def inversion_scene(
    pair: Match, found: Inversion, color_by: str = "error", view: ViewSpec | None = None
) -> Scene:
    """Original and recovered rows in the target's space, both by the PCA that was fitted on the original.

    `color_by` "pivots" and "labels" colour as `view` says, "error" by 1 − cosine in fixed steps.

    Raises
    ------
    SpaceError
        Colours that the pair does not have.
    """
    need_one_of("color_by", color_by, COLORS)
    coordinates = reduce_spaces([found.true, found.found], ReductionSpec(fit="first"))
    inverse = found.errors[found.spec.title]
    if color_by == "error":
        categories, names = np.digitize(inverse, EDGES), tuple(f"error {name}" for name in ERROR_NAMES)
    else:
        view = (
            ViewSpec((), everything=True, color_by="labels")
            if color_by == "labels"
            else replace(view or ViewSpec(), everything=True, color_by="pivots")
        )
        drawn = make_view(pair.source, view)
        categories, names = drawn.categories[found.rows], drawn.category_names
    source, target = side_names(pair, found.spec.route)
    origin = f"through {counted(found.n_anchors, 'anchor')}" if source == target else f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    caption = (
        f"{len(found.rows):,} of the {counted(found.n, 'row')}; both panes by the PCA of the original."
        f" Recovered through {counted(found.n_anchors, 'anchor')}, {found.spec.title},"
        f" {found.spec.settings()}: mean cosine to the true rows {short(found.scores[found.spec.title])} over"
        f" {counted(found.n_scored, 'held-out row')}. Coloured by"
        f" {'error, 1 − cosine' if color_by == 'error' else color_by}."
    )
    colors = ERROR_COLORS if color_by == "error" else ()
    return Scene(panes, pair.ids[found.rows], categories, names, caption=caption, category_colors=colors)


@dataclass(frozen=True)
class RecoveredRows(Recipe, ComparisonRecipe):
    """The two panes of original and recovered rows; the CSV has each row's errors."""

    figure: ClassVar[str] = "inversion"

    inversion: InversionSpec = InversionSpec()
    color_by: str = "error"

    def draw(self, result: tuple[Inversion, Scene] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            found = invert_pair(pair, self.anchors, self.inversion)
            result = found, inversion_scene(pair, found, self.color_by, self.view)
        found, scene = result
        drawn = scene_exportable(scene, self.to_json(), name="relscope-inversion")
        return replace(drawn, table=lambda: _with_errors(scene.table(), found))


def _with_errors(table: pd.DataFrame, found: Inversion) -> pd.DataFrame:
    columns = {f"error, {method}": errors for method, errors in found.errors.items()}
    return table.assign(**columns, distance=found.distance, held_out=found.scored)


@dataclass(frozen=True)
class RecoveryErrors(Recipe, ComparisonRecipe):
    """Histogram of 1 − cosine of the held-out rows by each method; as LaTeX the mean cosines with their
    chance levels.
    """

    figure: ClassVar[str] = "inversion-errors"

    inversion: InversionSpec = InversionSpec()

    def draw(self, result: Inversion | None = None) -> Exportable:
        found = result or invert_pair(load_pair(self), self.anchors, self.inversion)
        title = "1 − cosine of recovered and true row, held-out rows"
        drawn = histogram_exportable(
            found.held_out_errors, title, self.to_json(), name="relscope-inversion-errors"
        )
        return replace(drawn, latex=found.summary)


@dataclass(frozen=True)
class InversionGrid(Recipe, ComparisonRecipe):
    """δ × ω as heat maps of one measure; the CSV has all of them. The result comes with the names of both
    sides.
    """

    figure: ClassVar[str] = "inversion-grid"

    measure: str = "recovered"
    sweep: SweepSpec = SweepSpec()

    def __post_init__(self) -> None:
        super().__post_init__()
        need_one_of("measure", self.measure, MEASURES)

    def draw(self, result: tuple[Sweep, tuple[str, str]] | None = None) -> Exportable:
        if result is None:
            pair = load_pair(self)
            result = inversion_sweep(pair, self.anchors, self.sweep), side_names(pair, self.sweep.route)
        sweep, names = result
        matrices = sweep_matrices(sweep, self.measure, names)
        tables = (lambda: _printed(sweep, self.measure), sweep.table)
        return matrices_exportable(matrices, self.to_json(), f"relscope-inversion-{self.measure}", *tables)


def sweep_matrices(sweep: Sweep, measure: str, names: tuple[str, str]) -> Matrices:
    """The heat maps of one measure, ω by row, δ by column; `names` are those of the source's and the
    target's side.
    """
    source, target = names
    table = sweep.table()
    axes = {"row_title": "ω", "column_title": "δ"}
    best = table.loc[table["cosine"].idxmax()] if table["cosine"].notna().any() else None
    told = (
        f" Best cosine {short(best.cosine)} at δ {general(best.delta)}, ω {best.omega:g}."
        if best is not None
        else ""
    )
    chance = sweep.best_chance
    by_chance = f"; best cell by chance {band(chance.low, chance.high)}" if chance else ""
    told += f" Chance level of the best cell {band(chance.low, chance.high)}." if chance else ""
    if measure == "condition":
        panel = _panel(
            table,
            "condition",
            "Condition number",
            f"of what is inverted in {target}; colour by its logarithm",
            digits=1,
        )
        top = max(10.0, float(np.nanmax(panel.values, initial=10.0)))
        return Matrices(
            (panel,),
            (1.0, top),
            "condition number",
            f"Heat map of condition numbers over δ × ω.{told}",
            log=True,
            **axes,
        )
    if measure == "kept":
        panel = _panel(
            table,
            "kept",
            "Anchors kept",
            f"of {sweep.n_anchors:,}; {target} has {counted(sweep.dimension, 'dimension')}",
            digits=0,
        )
        alt = f"Heat map of anchors kept over δ × ω, {sweep.n_anchors:,} given.{told}"
        return Matrices((panel,), (0.0, float(sweep.n_anchors)), "anchors kept", alt, **axes)
    title = f"Within {target}" if source == target else f"{source} → {target}"
    rotation = f"; Procrustes {short(sweep.procrustes, 2)}" if source != target else ""
    panels = [_panel(table, "cosine", title, f"cosine{rotation}{by_chance}")]
    if table["within"].notna().any():
        panels.append(_panel(table, "within", f"Within {target}", "cosine, by the same prunings"))
    if sweep.not_stitched is not None:
        note = f"accuracy; not stitched {short(sweep.not_stitched, 2)}, chance {short(sweep.chance, 2)}"
        panels.append(_panel(table, "accuracy", f"Head of {target}", note))
    return Matrices(
        tuple(panels),
        (0.0, 1.0),
        "cosine and accuracy" if sweep.n_classes else "cosine",
        f"Heat maps over δ × ω.{told}",
        **axes,
    )


def _panel(table: pd.DataFrame, column: str, title: str, note: str, digits: int | None = None) -> MatrixPanel:
    wide = table.pivot(index="omega", columns="delta", values=column)
    texts = None
    if digits is not None:
        shown = wide.map(
            lambda value: (
                general(value, 2) if value >= 100 else "" if np.isnan(value) else short(value, digits)
            )
        )
        texts = tuple(map(tuple, shown.to_numpy()))
    cells = {(row.omega, row.delta): row for row in table.itertuples()}
    hover = tuple(tuple(_explain(cells[omega, delta]) for delta in wide.columns) for omega in wide.index)
    rows, columns = tuple(int(omega) for omega in wide.index), tuple(float(delta) for delta in wide.columns)
    return MatrixPanel(title, rows, columns, wide.to_numpy(dtype=float), texts, hover, note)


def _explain(cell: Any) -> str:
    measured = [
        ("cosine", cell.cosine),
        ("chance level", cell.chance),
        ("within the target", cell.within),
        ("accuracy", cell.accuracy),
    ]
    lines = [f"{name} {short(value)}" for name, value in measured if not pd.isna(value)]
    if pd.isna(cell.cosine):
        lines.append("a pruning is left with one anchor; lower δ")
    condition = "no full rank" if pd.isna(cell.condition) else f"condition number {short(cell.condition, 1)}"
    return "\n".join([*lines, condition, f"{short(cell.kept, 1)} anchors kept"])


def _printed(sweep: Sweep, measure: str) -> pd.DataFrame:
    column = "cosine" if measure == "recovered" else measure
    wide = sweep.table().pivot(index="omega", columns="delta", values=column)
    wide.columns = [f"δ = {delta:g}" for delta in wide.columns]
    return wide.rename_axis("ω").reset_index()


def lengths(space: LatentSpace) -> np.ndarray:
    """Length of each row from the space's mean, over their average, (n,); all 0 stay 0."""
    found = row_lengths(space.vectors, mean_row(space.vectors))
    return found / (found.mean() or 1.0)


def variation(values: np.ndarray) -> float:
    """Coefficient of variation: standard deviation over mean, 0 where the mean is."""
    mean = float(np.mean(values))
    return float(np.std(values)) / mean if mean else 0.0


@dataclass(frozen=True)
class Lengths(Recipe):
    """Lengths of centred rows over their average, one curve or panel per space (Fig. 5): no relative space
    contains them.
    """

    figure: ClassVar[str] = "inversion-lengths"
    newer: ClassVar[tuple[str, ...]] = ("digests", "panels")

    spaces: tuple[SpaceSpec, ...]
    digests: tuple[str, ...] = ()
    panels: bool = False

    def draw(self, result: Sequence[LatentSpace] | None = None) -> Exportable:
        if not self.spaces:
            raise SpaceError("spaces: expected at least one to draw the lengths of, got none")
        spaces = result or load_all(self.spaces, self.digests, self.figure)
        found = {name: lengths(space) for name, space in zip(distinct_names(spaces), spaces, strict=True)}
        title = "length from the mean / its average"
        drawn = histogram_exportable(
            found, title, self.to_json(), name="relscope-lengths", panels=self.panels
        )
        table = pd.DataFrame(
            [{"space": n, "rows": len(v), "varies by": variation(v)} for n, v in found.items()]
        )
        return replace(drawn, latex=lambda: table)
