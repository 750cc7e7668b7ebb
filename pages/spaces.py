"""Loaded spaces and their defects, spaces on this machine, and spaces that have to be downloaded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, exports, messages, session
from app.encode import forms, jobs, panel
from app.encode.forms import data_folder
from app.plain_text import plain_name
from app.spaces import choose, own_files, unpaired
from app.spaces import shards as sample_line
from app.spaces import shards as shards_panel
from app.spaces import store as store_panel
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import NoCommonId, SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.compare.figures import MOST_TOGETHER, Norms
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace


def show_loaded(workspace: Workspace) -> dict[SpaceSpec, LatentSpace]:
    """A table of the session's spaces with possible defects of each."""
    loaded, labels = {}, space_labels(workspace.spaces)
    for spec in workspace.spaces:
        try:
            loaded[spec] = compute.load_space(spec)
        except SpaceError as error:
            messages.error(f"{labels[spec]}: {error}")
            show_gone(spec)
    roles = {"source": workspace.source, "target": workspace.target}
    table = pd.DataFrame(
        [
            {
                "space": labels[spec],
                "role": " and ".join(role for role, chosen in roles.items() if chosen == spec),
                "rows": len(space),
                "dimensions": space.dimension,
                "labels": len(set(space.labels) - {""}) if space.labels is not None else 0,
                "zero vectors": len(space.zero_rows),
                "equal rows": compute.equal_rows(space),
                "mean norm": float(space.norms.mean(dtype=np.float64)),
                "offset": float(
                    np.linalg.norm(space.vectors.mean(axis=0, dtype=np.float64))
                    / space.norms.mean(dtype=np.float64)
                ),
                "content": space.digest[:8],
            }
            for spec, space in loaded.items()
        ]
    )
    st.dataframe(
        table,
        hide_index=True,
        column_config={
            "space": st.column_config.TextColumn(width=300),
            "rows": st.column_config.NumberColumn(format="localized"),
            "offset": st.column_config.NumberColumn(
                format="%.2f",
                help=(
                    "Length of the mean vector ÷ mean length of the vectors. Above .1 centring changes the"
                    " results"
                ),
            ),
            "mean norm": st.column_config.NumberColumn(format="%.2f"),
            "equal rows": st.column_config.NumberColumn(help="Rows whose vector is equal to another row's"),
            "content": st.column_config.TextColumn(
                help="First digits of the content's digest. Equal content has an equal digest"
            ),
        },
    )
    with st.popover("Remove", icon=":material/close:", key="spaces.remove"):
        for spec in workspace.spaces:
            in_use = spec in (workspace.source, workspace.target)
            st.button(
                plain_name(labels[spec]),
                key=f"spaces.remove-{digest_of(spec)}",
                icon=":material/close:",
                type="tertiary",
                disabled=in_use,
                help=(
                    "It is the source or the target. Choose another one in the sidebar first"
                    if in_use
                    else None
                ),
                on_click=remove_space,
                args=(spec,),
            )
    return loaded


def unpairable(workspace: Workspace) -> bool:
    """Whether both chosen spaces are there and share no id."""
    try:
        compute.matched(workspace.source, workspace.target)
    except NoCommonId:
        return True
    except SpaceError:  # reported where the space is listed
        return False
    return False


def show_match(workspace: Workspace) -> None:
    """How many rows the two chosen spaces share, or how to pair those that share no id."""
    try:
        pair = compute.matched(workspace.source, workspace.target)
    except NoCommonId:
        unpaired.draw(workspace)
        return
    columns = st.columns(4)
    for column, (label, value) in zip(
        columns,
        (
            ("Rows in both", len(pair)),
            (f"Only in {plain_name(pair.source.name)}", pair.n_source_only),
            (f"Only in {plain_name(pair.target.name)}", pair.n_target_only),
            ("Zero vectors left out", pair.n_zero),
        ),
        strict=True,
    ):
        column.metric(label, f"{value:,}")


def show_norms(loaded: dict[SpaceSpec, LatentSpace]) -> None:
    """Distribution of vector lengths: it shows differences in scale, which cosine ignores."""
    digests, many = tuple(space.digest for space in loaded.values()), len(loaded) > MOST_TOGETHER
    figure = Norms(tuple(loaded), digests, many).draw(list(loaded.values()))
    exports.chart(figure.interactive(exports.theme()), "spaces.norms")
    exports.export_bar(figure, "norms")


def remove_space(spec: SpaceSpec) -> None:
    """Remove a space from the session; undo restores it."""
    spaces = tuple(one for one in session.workspace().spaces if one != spec)
    session.edit(f"remove {space_name(spec)}", spaces=spaces)


def show_gone(spec: SpaceSpec) -> None:
    """Encode again what is no longer in the store."""
    if spec.source == "encoding":
        st.button(
            "Encode it again",
            key=f"spaces.again-{digest_of(spec)}",
            icon=":material/replay:",
            on_click=session.guarded,
            args=(encode_again, spec),
        )


def encode_again(spec: SpaceSpec) -> None:
    """Run the same encoder on the current dataset, as a job."""
    found = forms.preview(spec.dataset)
    jobs.submit(spec.dataset, found.digest, found.name, [spec.encoder])


if jobs.collect():
    st.rerun()  # the sidebar is drawn already and must offer them
workspace = session.workspace()
st.subheader("In this session", anchor=False)
loaded = show_loaded(workspace)
sample_line.draw_sample_line(workspace)
folder = data_folder()
if jobs.awaited():
    st.session_state.setdefault("spaces.tab", "Encode")  # open after a reload, if jobs are in progress
elif unpairable(workspace):
    st.session_state.setdefault("spaces.tab", "What matches")  # how to pair them is the next step
names = ["Load a file", "Load more", "Load shards", "Encode", "What matches", "Norms", "Store"]
own, more, shards, encoding, matching, norms, store = st.tabs(names, key="spaces.tab", on_change="rerun")
with matching:
    show_match(workspace)
with encoding:
    if encoding.open:  # the only tab that reads data that are not loaded yet
        panel.draw(folder)
with norms:
    show_norms(loaded)
with more:
    choose.draw(folder)
with shards:
    shards_panel.draw()
with own:
    own_files.draw(workspace)
with store:
    if store.open:
        store_panel.draw()
