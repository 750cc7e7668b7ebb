"""Figures of inversion from their recipes: the panes, the errors, δ × ω, and the lengths that inversion cannot know."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore import __version__
from relcore.charts.scene import Pane, Scene
from relcore.comparing.scene import ComparisonRecipe, load_pair
from relcore.figures.export import Exportable, histogram_exportable, scene_exportable
from relcore.figures.matrices import Matrices, MatrixPanel, matrices_exportable
from relcore.inverting.inverted import Inversion, InversionSpec, invert_pair, side_names
from relcore.inverting.sweep import DELTAS, MOST_ROWS, OMEGAS, Sweep, inversion_sweep
from relcore.recipe import load_again
from relcore.reduction import ReductionSpec, reduce_spaces
from relcore.similarity import mean_row
from relcore.sources.catalog import SpaceSpec
from relcore.spaces import LatentSpace, Match, SpaceError, distinct_names, need_one_of
from relcore.views import ViewSpec, make_view

COLORS = ("error", "pivots", "labels")
EDGES = (0.05, 0.1, 0.2, 0.3, 0.4, 0.5, 0.7)  # fixed, so that pictures compare
ERROR_NAMES = ("below .05", ".05 – .1", ".1 – .2", ".2 – .3", ".3 – .4", ".4 – .5", ".5 – .7", ".7 and more")
# Viridis without its ends, of which one is lost on a dark page, the other on a white one.
ERROR_COLORS = ("#414487", "#355f8d", "#2a768e", "#218e8d", "#21a585", "#3dbc74", "#70cf57", "#b0dd2f")
MEASURES = {"recovered": "What comes back", "condition": "Condition number", "kept": "Anchors kept"}


def inversion_scene(pair: Match, found: Inversion, color_by: str = "error", view: ViewSpec | None = None) -> Scene:
    """Original beside recovered rows in the target's space, both by the one PCA that was fitted on the original.

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
    origin = f"through {found.n_anchors:,} anchors" if source == target else f"from {source}"
    panes = (Pane(f"Original {target}", coordinates[0]), Pane(f"Recovered {origin}", coordinates[1]))
    caption = (
        f"{len(found.rows):,} of the {found.n:,} rows; both panes by the PCA of the original. Recovered through "
        f"{found.n_anchors:,} anchors, {found.spec.title}, {found.spec.settings()}: mean cosine to the true rows "
        f"{float(found.scores[found.spec.title]):.3f} over {found.n_scored:,} held-out rows. "
        f"Coloured by {'error, 1 − cosine' if color_by == 'error' else color_by}."
    )
    colors = ERROR_COLORS if color_by == "error" else ()
    return Scene(panes, pair.ids[found.rows], categories, names, caption=caption, category_colors=colors)


def draw_inversion(
    recipe: ComparisonRecipe,
    spec: InversionSpec,
    *,
    color_by: str = "error",
    found: Inversion | None = None,
    scene: Scene | None = None,
) -> Exportable:
    """The two panes; the CSV has each row's error beside its places."""
    if found is None or scene is None:
        pair = load_pair(recipe)
        found = found or invert_pair(pair, recipe.anchors, spec)
        scene = inversion_scene(pair, found, color_by, recipe.view)
    own = {"figure": "inversion", "inversion": asdict(spec), "color_by": color_by}
    drawn = scene_exportable(scene, recipe.to_json() | own, name="relscope-inversion")
    return replace(drawn, table=lambda: _with_errors(scene.table(), found))


def _with_errors(table: pd.DataFrame, found: Inversion) -> pd.DataFrame:
    columns = {f"error, {method}": errors for method, errors in found.errors.items()}
    return table.assign(**columns, distance=found.distance, held_out=found.scored)


def draw_inversion_errors(recipe: ComparisonRecipe, spec: InversionSpec, *, found: Inversion | None = None) -> Exportable:
    """Histogram of 1 − cosine of the held-out rows by each method; as a table the mean cosine beside the chance level."""
    found = found or invert_pair(load_pair(recipe), recipe.anchors, spec)
    own = {"figure": "inversion-errors", "inversion": asdict(spec)}
    drawn = histogram_exportable(
        found.held_out_errors,
        "1 − cosine of recovered and true row, held-out rows",
        recipe.to_json() | own,
        name="relscope-inversion-errors",
    )
    return replace(drawn, latex=found.summary)


def draw_inversion_grid(
    recipe: ComparisonRecipe,
    *,
    route: str = "forward",
    measure: str = "recovered",
    random_state: int = 0,
    deltas: Sequence[float] = DELTAS,
    omegas: Sequence[int] = OMEGAS,
    n_rows: int = MOST_ROWS,
    test_ids: Sequence[str] = (),
    sweep: Sweep | None = None,
    names: tuple[str, str] | None = None,
) -> Exportable:
    """δ × ω as heat maps of one measure; the CSV has all of them. `names` of both sides come with the `sweep`."""
    need_one_of("measure", measure, MEASURES)
    settings = {"route": route, "random_state": random_state, "deltas": tuple(deltas), "omegas": tuple(omegas)}
    settings |= {"n_rows": n_rows, "test_ids": tuple(test_ids)}
    if sweep is None or names is None:
        pair = load_pair(recipe)
        names, sweep = side_names(pair, route), inversion_sweep(pair, recipe.anchors, **settings)
    plain = {name: list(value) if isinstance(value, tuple) else value for name, value in settings.items()}
    own = {"figure": "inversion-grid", "measure": measure, "sweep": plain}
    return matrices_exportable(
        sweep_matrices(sweep, measure, names),
        recipe.to_json() | own,
        name=f"relscope-inversion-{measure}",
        latex=lambda: _printed(sweep, measure),
        table=sweep.table,
    )


def sweep_matrices(sweep: Sweep, measure: str, names: tuple[str, str]) -> Matrices:
    """The heat maps of one measure: ω downwards, δ to the right; `names` are those of the source's and the target's side."""
    source, target = names
    table = sweep.table()
    axes = {"row_title": "ω", "column_title": "δ"}
    best = table.loc[table["cosine"].idxmax()] if table["cosine"].notna().any() else None
    told = f" Best cosine {best.cosine:.3f} at δ {best.delta:g}, ω {best.omega:g}." if best is not None else ""
    chance = sweep.best_chance
    by_chance = f"; best cell by chance {chance.low:.3f} … {chance.high:.3f}" if chance else ""
    told += f" Chance level of the best cell {chance.low:.3f} … {chance.high:.3f}." if chance else ""
    if measure == "condition":
        panel = _panel(
            table, "condition", "Condition number", f"of what is inverted in {target}; colour by its logarithm", digits=1
        )
        top = max(10.0, float(np.nanmax(panel.values, initial=10.0)))
        return Matrices(
            (panel,), (1.0, top), "condition number", f"Heat map of condition numbers over δ × ω.{told}", log=True, **axes
        )
    if measure == "kept":
        panel = _panel(
            table, "kept", "Anchors kept", f"of {sweep.n_anchors:,}; {target} has {sweep.dimension:,} dimensions", digits=0
        )
        alt = f"Heat map of anchors kept over δ × ω, {sweep.n_anchors:,} given.{told}"
        return Matrices((panel,), (0.0, float(sweep.n_anchors)), "anchors kept", alt, **axes)
    way = f"Within {target}" if source == target else f"{source} → {target}"
    rotation = f"; Procrustes {sweep.procrustes:.2f}" if source != target else ""
    panels = [_panel(table, "cosine", way, f"cosine{rotation}{by_chance}")]
    if table["within"].notna().any():
        panels.append(_panel(table, "within", f"Within {target}", "cosine, by the same prunings"))
    if sweep.not_stitched is not None:
        note = f"accuracy; not stitched {sweep.not_stitched:.2f}, chance {sweep.chance:.2f}"
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
        texts = tuple(tuple("" if np.isnan(value) else _number(value, digits) for value in line) for line in wide.to_numpy())
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
    lines = [f"{name} {value:.3f}" for name, value in measured if not pd.isna(value)]
    if pd.isna(cell.cosine):
        lines.append("a pruning is left with one anchor; lower δ")
    condition = "no full rank" if pd.isna(cell.condition) else f"condition number {cell.condition:,.1f}"
    return "\n".join([*lines, condition, f"{cell.kept:,.1f} anchors kept"])


def _number(value: float, digits: int) -> str:
    return f"{value:.{digits}f}" if value < 100 else f"{value:.0f}" if value < 10_000 else f"{value:.0e}".replace("e+0", "e")


def _printed(sweep: Sweep, measure: str) -> pd.DataFrame:
    column = "cosine" if measure == "recovered" else measure
    wide = sweep.table().pivot(index="omega", columns="delta", values=column)
    wide.columns = [f"δ = {delta:g}" for delta in wide.columns]
    return wide.rename_axis("ω").reset_index()


def lengths(space: LatentSpace) -> np.ndarray:
    """Length of each row from the space's mean, over their average, (n,); all 0 stay 0."""
    found = np.linalg.norm(space.vectors - mean_row(space.vectors), axis=1)
    return found / (found.mean() or 1.0)


def variation(values: np.ndarray) -> float:
    """Coefficient of variation: standard deviation over mean, 0 where the mean is."""
    mean = float(np.mean(values))
    return float(np.std(values)) / mean if mean else 0.0


def draw_lengths(specs: Sequence[SpaceSpec], spaces: Sequence[LatentSpace] | None = None) -> Exportable:
    """Lengths of centred rows over their average, one curve a space (Fig. 5): what a relative space does not hold."""
    if not specs:
        raise SpaceError("spaces: expected at least one to draw the lengths of, got none")
    spaces = [load_again(spec) for spec in specs] if spaces is None else spaces
    found = {name: lengths(space) for name, space in zip(distinct_names(spaces), spaces, strict=True)}
    recipe = {"relscope": __version__, "figure": "inversion-lengths", "spaces": [spec.to_json() for spec in specs]}
    drawn = histogram_exportable(found, "length from the mean / its average", recipe, name="relscope-lengths")
    table = pd.DataFrame([{"space": n, "rows": len(v), "varies by": variation(v)} for n, v in found.items()])
    return replace(drawn, latex=lambda: table)


def _inversion(settings: dict[str, Any], draw: Callable[..., Exportable], **own: Any) -> Exportable:
    spec = settings.pop("inversion", {})
    own = {name: settings.pop(name) for name in own if name in settings}
    try:
        spec = InversionSpec(**spec)
    except TypeError as error:
        raise SpaceError(f"recipe of inversion: unknown or misplaced setting ({error})") from error
    return draw(ComparisonRecipe.from_json({"figure": "comparison", **settings}), spec, **own)


def _grid(settings: dict[str, Any]) -> Exportable:
    sweep, measure = settings.pop("sweep", {}), settings.pop("measure", "recovered")
    recipe = ComparisonRecipe.from_json({"figure": "comparison", **settings})
    try:
        return draw_inversion_grid(recipe, measure=measure, **sweep)
    except TypeError as error:
        raise SpaceError(f"recipe of an inversion grid: unknown or misplaced setting ({error})") from error


def _lengths(settings: dict[str, Any]) -> Exportable:
    spaces = settings.get("spaces")
    if set(settings) != {"spaces"} or not isinstance(spaces, list) or not all(isinstance(one, Mapping) for one in spaces):
        raise SpaceError("recipe of lengths: expected a list 'spaces' of objects and nothing else")
    return draw_lengths([SpaceSpec.from_json(one) for one in spaces])


FIGURES: dict[str, Callable[[dict[str, Any]], Exportable]] = {
    "inversion": lambda settings: _inversion(settings, draw_inversion, color_by="error"),
    "inversion-errors": lambda settings: _inversion(settings, draw_inversion_errors),
    "inversion-grid": _grid,
    "inversion-lengths": _lengths,
}
