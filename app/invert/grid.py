"""δ × ω: scores of every pruning as heat maps; clicking a cell sets the page's δ and ω."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import streamlit as st

from app import compute, exports, messages, results, session
from app.invert.panel import NO_ANCHORS
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import band, counted, general, short
from relcore.figures.matrices import Matrices
from relcore.invert.figures import InversionGrid, sweep_matrices
from relcore.invert.recovery import side_names
from relcore.invert.sweep import DELTAS, OMEGAS, InversionSweep, Sweep, SweepSpec
from relcore.spaces.space import Match


def draw(workspace: Workspace) -> None:
    """The whole tab."""
    if len(workspace.anchors) < 2:
        st.info(NO_ANCHORS, icon=":material/star:")
        return
    pair = compute.matched(workspace.source, workspace.target)
    try:
        specs, spaces = (workspace.source, workspace.target), [pair.source, pair.target]
        label = f"Invert by {len(DELTAS)} δ and {len(OMEGAS)} ω"
        task = InversionSweep(workspace.anchors, _spec(workspace))
        sweep = results.computed(task, specs, label=label, spaces=spaces, slower=2.0)
    except SpaceError as error:
        messages.error(error)
        st.caption("Choose other anchors or spaces in the sidebar, or undo the last step.")
        return
    if sweep is not None:
        _show(workspace, pair, sweep)


def _spec(workspace: Workspace) -> SweepSpec:
    spec = workspace.inversion
    held_out = results.held_out_ids((workspace.source, workspace.target))
    return SweepSpec(spec.route, spec.random_state, test_ids=held_out)


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
    recipe = workspace.recipe(pair.source.digest, pair.target.digest)
    drawn = InversionGrid.of(recipe, measure=measure, sweep=_spec(workspace)).draw((sweep, names))
    exports.export_bar(drawn, f"invert-{measure}")


def _heat_map(workspace: Workspace, data: Matrices, name: str, width: int) -> None:
    """The figure; its key contains the page's δ and ω, because Streamlit ignores a second click on a
    selected cell.
    """
    from relcore.figures.matrices_screen import matrices_figure

    spec = workspace.inversion
    panel = data.panels[0]
    here = (
        spec.method == "pruned"
        and not spec.tuned
        and spec.omega in panel.rows
        and spec.delta in panel.columns
    )
    picked = (0, panel.rows.index(spec.omega), panel.columns.index(spec.delta)) if here else None
    figure = matrices_figure(data, exports.theme(), width=width, picked=picked)
    key = f"invert.map-{name}-{spec.omega}-{spec.delta:g}-{spec.method}"
    exports.chart(figure, key, picked=lambda points: _pick(points, data), tools=False)


def _pick(points: Sequence[Mapping[str, Any]], data: Matrices) -> None:
    if cell := cell_of(points, data):
        delta, omega = cell
        numbers = {"delta": delta, "omega": omega, "tuned": False}
        session.edit_spec(f"δ = {general(delta)}, ω = {omega}", "inversion", method="pruned", **numbers)


def cell_of(points: Sequence[Mapping[str, Any]], data: Matrices) -> tuple[float, int] | None:
    """δ and ω of the clicked cell; None without a selection."""
    if not points:
        return None
    panel, row, column = points[0]["customdata"]
    return data.panels[panel].columns[column], data.panels[panel].rows[row]


def _circumstances(sweep: Sweep) -> str:
    table = sweep.table()
    if table["cosine"].isna().all():
        return "With these anchors, every δ leaves a pruning with a single anchor. Choose more anchors."
    best = table.loc[table["cosine"].idxmax()]
    labelled = (
        f" Accuracy: a logistic head trained on {counted(sweep.n_train, 'row')} of the target,"
        f" {counted(sweep.n_classes, 'class', 'classes')}, tested on {sweep.n_test:,} others, none of them an"
        f" anchor; not stitched {short(sweep.not_stitched)}, chance level {short(sweep.chance)} (most"
        " frequent class)."
        if sweep.n_classes
        else f" {sweep.why_none}"
    )
    return (
        f"{sweep.n_rows:,} of {counted(sweep.n - sweep.n_anchors, 'held-out row')},"
        f" {counted(sweep.n_anchors, 'anchor')}, pruned method. Best cosine **{short(best.cosine)}** at δ"
        f" {general(best.delta)}, ω {best.omega:g}{_by_chance(sweep)}; Procrustes on the same anchors"
        f" {short(sweep.procrustes)}.{labelled} Click a cell to use its δ and ω."
    )


def _by_chance(sweep: Sweep) -> str:
    """The chance level of the best of all cells: rows paired at random."""
    if sweep.best_chance is None:
        return ""
    n_cells = int(sweep.table()["cosine"].notna().sum())
    return (
        f" (chance level of the best of {n_cells} cells"
        f" {band(sweep.best_chance.low, sweep.best_chance.high)})"
    )
