"""One encoder with one head, looked into: what is confused, how each class fares, which items changed their answer."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import streamlit as st

from app import exports, messages, session
from app.items import with_items
from app.stitch.stitch_compute import StitchSetup, digests_of
from relcore.names import METHODS
from relcore.stitching.figures import StitchConfusion, gaps, short, short_names
from relcore.stitching.result import StitchResult

MOST_EXAMPLES = 200
_METHOD, _ENCODER, _HEAD = "stitch.cell-method", "stitch.cell-encoder", "stitch.cell-head"


def pick(cell: tuple[str, int, int] | None) -> None:
    """Look into this cell from the next run on."""
    if cell:
        for key, value in zip((_METHOD, _ENCODER, _HEAD), cell, strict=True):
            st.session_state[key] = value


def chosen(result: StitchResult) -> tuple[str, int, int] | None:
    """The cell that is looked into: the one picked, else the pair that loses most; None where there is nothing to see."""
    method, encoder, head = (st.session_state.get(key) for key in (_METHOD, _ENCODER, _HEAD))
    n = len(result.encoders)
    if method in result.spec.methods and encoder in range(n) and head in range(n):
        return method, encoder, head
    return _worst(result)


def _worst(result: StitchResult) -> tuple[str, int, int] | None:
    """The stitched pair that loses most by relative rows, or by the first method that has pairs."""
    for method in ("relative", *result.spec.methods):
        if method in result.spec.methods:
            lost = gaps(result, method)
            np.fill_diagonal(lost, np.nan)
            if not np.isnan(lost).all():
                encoder, head = np.unravel_index(np.nanargmax(lost), lost.shape)
                return method, int(encoder), int(head)
    return None


def draw(setup: StitchSetup, result: StitchResult) -> None:
    """The section beneath the heat maps."""
    cell = chosen(result)
    if cell is None:
        return
    st.markdown("#### One pair")
    pick(cell)
    every, name = list(range(len(result.encoders))), short_names(result.encoders)[0].__getitem__
    keep = {"persist_state": "session"}
    with st.container(horizontal=True, gap="medium"):
        st.selectbox(
            "Method", list(result.spec.methods), format_func=lambda one: METHODS[one].title, key=_METHOD, width=260, **keep
        )
        st.selectbox("Encoder", every, format_func=name, key=_ENCODER, width=260, **keep)
        st.selectbox("Head of", every, format_func=name, key=_HEAD, width=260, **keep)
    method, encoder, head = cell
    mean = result.matrix(method)[0]
    if np.isnan(mean[encoder, head]):
        messages.info(
            f"{name(encoder)} has another dimension than the head of {name(head)}, so {METHODS[method].title} has no answer. "
            "Choose another method.",
            icon=":material/width:",
        )
        return
    data = {"spaces": setup.specs, "digests": digests_of(setup), "stitching": setup.spec}
    figure = StitchConfusion(**data, method=method, encoder=encoder, head=head).draw(result)
    st.html(f'<p class="relscope-lead">{_told(result, method, encoder, head)}</p>')
    exports.chart(figure.interactive(exports.theme()), "stitch.confusion")
    exports.export_bar(figure, "stitch-confusion")
    classes, examples = st.columns([1, 1], gap="large")
    with classes:
        _classes(result, method, encoder, head)
    with examples:
        _examples(setup, result, method, encoder, head)


def _told(result: StitchResult, method: str, encoder: int, head: int) -> str:
    mean = result.matrix(method)[0]
    n, chance = result.n_test, short(result.chance())
    if encoder == head:
        return f"Not stitched: accuracy <b>{short(mean[head, head])}</b> of {n:,} test rows, chance level {chance}."
    return (
        f"Accuracy <b>{short(mean[encoder, head])}</b> stitched, <b>{short(mean[head, head])}</b> on the head's own encoder, "
        f"chance level {chance}; {n:,} test rows."
    )


def _classes(result: StitchResult, method: str, encoder: int, head: int) -> None:
    st.markdown("**Each class**")
    table = result.class_scores(method, encoder, head)
    if encoder != head:
        table.insert(4, "not stitched", result.class_scores(method, head, head)["f1"])
    bar = st.column_config.ProgressColumn("F1", min_value=0, max_value=1, format="%.3f")
    share = st.column_config.NumberColumn(format="%.3f")
    st.dataframe(
        table,
        key="stitch.classes",
        hide_index=True,
        height=min(38 + 35 * len(table), 420),
        column_config={
            "precision": share,
            "recall": share,
            "f1": bar,
            "not stitched": st.column_config.NumberColumn("F1 not stitched", format="%.3f"),
            "rows": st.column_config.NumberColumn(
                format="localized", help="Test rows of the class, all random states together"
            ),
        },
    )


def _examples(setup: StitchSetup, result: StitchResult, method: str, encoder: int, head: int) -> None:
    """Test rows whose answer stitching changed, with their picture or sentence; a click brushes them on every page."""
    st.markdown("**Changed answers**")
    changed = result.changed(method, encoder, head)
    one = result.runs[0]
    if encoder == head or changed.empty:
        st.caption("This is the head on its own encoder." if encoder == head else f"None of {len(one.truth):,} test rows.")
        return
    lost, won = int((changed.own == changed.truth).sum()), int((changed.stitched == changed.truth).sum())
    workspace = replace(session.workspace(), source=setup.specs[encoder], target=setup.specs[head])
    shown = changed.head(MOST_EXAMPLES).rename(columns={"truth": "label", "own": "not stitched"})
    table, look = with_items(workspace, shown)
    st.dataframe(table, key="stitch.changed", hide_index=True, height=min(38 + 41 * len(table), 420), **look)
    state = f", random state {one.random_state}" if len(result.runs) > 1 else ""
    st.caption(
        f"{len(changed):,} of {len(one.truth):,} test rows{state}: {lost:,} were right on the head's own encoder, "
        f"{won:,} are right when stitched, {len(changed) - lost - won:,} are wrong in both."
    )
