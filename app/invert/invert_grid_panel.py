"""δ × ω: what every pruning gives, as heat maps; a click on a cell makes its δ and ω those of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, results, session
from app.invert.invert_panel import NO_ANCHORS
from app.jobs import engine
from app.workspace import Workspace
from relcore.figures.matrices import Matrices
from relcore.inverting.figures import draw_inversion_grid, sweep_matrices
from relcore.inverting.inverted import side_names
from relcore.inverting.sweep import DELTAS, OMEGAS, Sweep, estimated_seconds, inversion_sweep, put_sweep, sweep_job
from relcore.sources.encodings import put_space
from relcore.spaces import Match, SpaceError


def draw(workspace: Workspace) -> None:
    """The whole tab."""
    if len(workspace.anchors) < 2:
        st.info(NO_ANCHORS, icon=":material/star:")
        return
    try:
        pair = compute.matched(workspace.source, workspace.target)
        sweep = _sweep(workspace, pair)
    except SpaceError as error:
        st.error(str(error), icon=":material/error:")
        st.caption("Choose other anchors or spaces in the sidebar; undo takes back the last step.")
        return
    if sweep is not None:
        _show(workspace, pair, sweep)


def _sweep(workspace: Workspace, pair: Match) -> Sweep | None:
    """From the store, at once or by a job; None while there is none, and then the page says what goes on."""
    spec = workspace.inversion
    settings = {"route": spec.route, "random_state": spec.random_state, "deltas": DELTAS, "omegas": OMEGAS}
    settings["test_ids"] = results.held_out_ids((workspace.source, workspace.target))
    entry = results.result_of(
        "inversion-sweep",
        (compute.pair_key(pair), workspace.anchors, settings),
        sweep_job,
        lambda: {
            "inputs": [put_space(engine().store, space) for space in (pair.source, pair.target)],
            "anchors": workspace.anchors,
            **settings,
        },
        title="Inversion, δ × ω",
        label=f"Invert by {len(DELTAS)} δ and {len(OMEGAS)} ω",
        seconds=estimated_seconds(pair, len(workspace.anchors), spec.route),
        slower=2.0,
        here=lambda context: put_sweep(context, inversion_sweep(pair, workspace.anchors, **settings)),
    )
    return Sweep.from_json(entry.metadata["sweep"]) if entry else None


def _show(workspace: Workspace, pair: Match, sweep: Sweep) -> None:
    names = side_names(pair, workspace.inversion.route)
    st.caption(_circumstances(sweep))
    recovered = sweep_matrices(sweep, "recovered", names)
    _heat_map(workspace, recovered, "recovered", width=1080)
    _export(workspace, pair, sweep, names, "recovered")
    for column, measure in zip(st.columns(2, gap="large"), ("condition", "kept"), strict=True):
        with column:
            _heat_map(workspace, sweep_matrices(sweep, measure, names), measure, width=560)
            _export(workspace, pair, sweep, names, measure)


def _export(workspace: Workspace, pair: Match, sweep: Sweep, names: tuple[str, str], measure: str) -> None:
    spec = workspace.inversion
    recipe = workspace.recipe(pair.source.digest, pair.target.digest)
    settings = {"route": spec.route, "random_state": spec.random_state, "measure": measure}
    settings["test_ids"] = results.held_out_ids((workspace.source, workspace.target))
    exports.export_bar(draw_inversion_grid(recipe, **settings, sweep=sweep, names=names), f"invert-{measure}")


def _heat_map(workspace: Workspace, data: Matrices, name: str, width: int) -> None:
    """The figure; its key holds the page's δ and ω, since a cell that is selected already would not hear a second click."""
    from relcore.figures.matrices_interactive import matrices_figure

    spec = workspace.inversion
    panel = data.panels[0]
    here = spec.method == "pruned" and spec.omega in panel.rows and spec.delta in panel.columns
    picked = (0, panel.rows.index(spec.omega), panel.columns.index(spec.delta)) if here else None
    figure = matrices_figure(data, exports.theme(), width=width, picked=picked)
    key = f"invert.map-{name}-{spec.omega}-{spec.delta:g}-{spec.method}"
    exports.chart(figure, key, picked=lambda points: _pick(points, data), tools=False)


def _pick(points: Sequence[Mapping[str, Any]], data: Matrices) -> None:
    if cell := cell_of(points, data):
        delta, omega = cell
        session.edit_spec(f"δ = {delta:g}, ω = {omega}", "inversion", method="pruned", delta=delta, omega=omega)


def cell_of(points: Sequence[Mapping[str, Any]], data: Matrices) -> tuple[float, int] | None:
    """δ and ω of the cell that was clicked; None where nothing is picked."""
    if not points:
        return None
    panel, row, column = points[0]["customdata"]
    return data.panels[panel].columns[column], data.panels[panel].rows[row]


def _circumstances(sweep: Sweep) -> str:
    table = sweep.table()
    if table["cosine"].isna().all():
        return "With these anchors every δ leaves a pruning with one anchor. Take more anchors."
    best = table.loc[table["cosine"].idxmax()]
    labelled = (
        f" Accuracy: a logistic head trained on {sweep.n_train:,} rows of the target, {sweep.n_classes} classes, "
        f"tested on {sweep.n_test:,} others, none of them an anchor; not stitched {sweep.not_stitched:.3f}, chance level "
        f"{sweep.chance:.3f} (most frequent class)."
        if sweep.n_classes
        else f" {sweep.why_none}"
    )
    return (
        f"{sweep.n_rows:,} of {sweep.n - sweep.n_anchors:,} held-out rows, {sweep.n_anchors:,} anchors, pruned method. Best "
        f"cosine **{best.cosine:.3f}** at δ {best.delta:g}, ω {best.omega:g}{_by_chance(sweep)}; a rotation fitted on the same "
        f"anchors (Procrustes) {sweep.procrustes:.3f}.{labelled} Click a cell to take its δ and ω."
    )


def _by_chance(sweep: Sweep) -> str:
    """The band in which the best of all cells lies where rows are paired at random."""
    if sweep.best_chance is None:
        return ""
    n_cells = int(sweep.table()["cosine"].notna().sum())
    return f" (chance level of the best of {n_cells} cells {sweep.best_chance.low:.3f} … {sweep.best_chance.high:.3f})"
