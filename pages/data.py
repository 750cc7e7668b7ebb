"""Loaded spaces and their defects, spaces on this machine, and spaces that have to be downloaded."""

from __future__ import annotations

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, messages, session
from app.encode import forms, jobs, panel
from app.plain_text import plain, plain_name
from app.spaces import loading, shards, store
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import NoCommonId, SpaceError
from relcore.catalog.catalog import SpaceSpec
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace, Match


def show_loaded(workspace: Workspace) -> None:
    rows, notes, labels = [], [], space_labels(workspace.spaces)
    roles = {"source": workspace.source, "target": workspace.target}
    for spec in workspace.spaces:
        role = " and ".join(role for role, chosen in roles.items() if chosen == spec)
        try:
            space = compute.load_space(spec)
            rows.append({"space": labels[spec], "role": role} | facts_of(space))
            notes += [space.note] * bool(space.note)
        except SpaceError as error:
            messages.error(f"{labels[spec]}: {error}")
            if spec.source == "encoding":  # it is no longer in the store
                look = {"key": f"spaces.again-{digest_of(spec)}", "icon": ":material/replay:"}
                st.button("Encode it again", on_click=session.guarded, args=(encode_again, spec), **look)
    number, text = st.column_config.NumberColumn, st.column_config.TextColumn
    look = {
        "space": text(width=300),
        "rows": number(format="localized"),
        "offset": number(
            format="%.2f",
            help="Length of the mean vector ÷ mean length. Above .1 centring changes the results",
        ),
        "mean norm": number(format="%.2f"),
        "equal rows": number(help="Rows whose vector is equal to another row's"),
        "content": text(help="First digits of the content's digest. Equal content has an equal digest"),
    }
    st.dataframe(pd.DataFrame(rows), hide_index=True, column_config=look)
    for note in notes:
        st.caption(f":material/info: {plain(note)}.")
    with st.popover("Remove", icon=":material/close:", key="spaces.remove"):
        for spec in workspace.spaces:
            in_use = spec in roles.values()
            st.button(
                plain_name(labels[spec]),
                key=f"spaces.remove-{digest_of(spec)}",
                icon=":material/close:",
                type="tertiary",
                disabled=in_use,
                help="Choose another source or target above first" if in_use else None,
                on_click=remove_space,
                args=(spec,),
            )


def facts_of(space: LatentSpace) -> dict[str, object]:
    norm = float(space.norms.mean(dtype=np.float64))
    return {
        "rows": len(space),
        "dimensions": space.dimension,
        "labels": len(set(space.labels) - {""}) if space.labels is not None else 0,
        "zero vectors": len(space.zero_rows),
        "equal rows": compute.equal_rows(space),
        "mean norm": norm,
        "offset": float(np.linalg.norm(space.vectors.mean(axis=0, dtype=np.float64)) / norm),
        "content": space.digest[:8],
    }


def show_match(pair: Match) -> None:
    facts = {
        "Rows in both": len(pair),
        f"Only in {plain_name(pair.source.name)}": pair.n_source_only,
        f"Only in {plain_name(pair.target.name)}": pair.n_target_only,
        "Zero vectors left out": pair.n_zero,
    }
    for column, (label, value) in zip(st.columns(len(facts)), facts.items(), strict=True):
        column.metric(label, f"{value:,}")


def remove_space(spec: SpaceSpec) -> None:
    spaces = tuple(space for space in session.workspace().spaces if space != spec)
    session.edit(f"remove {space_name(spec)}", spaces=spaces)


def encode_again(spec: SpaceSpec) -> None:
    dataset = forms.preview(spec.dataset)
    jobs.submit(spec.dataset, dataset.digest, dataset.name, [spec.encoder])


if jobs.collect():
    st.rerun()  # the toolbar is drawn already and must offer them
workspace = session.workspace()
st.subheader("In this session", anchor=False)
show_loaded(workspace)
shards.draw_sample_line(workspace)
folder = forms.data_folder()
try:
    pair, unpaired = compute.matched(workspace.source, workspace.target), False
except SpaceError as error:  # reported where the space is listed
    pair, unpaired = None, isinstance(error, NoCommonId)
if jobs.awaited():
    st.session_state.setdefault("spaces.tab", "Encode")  # open after a reload, if jobs are in progress
elif unpaired:
    st.session_state.setdefault("spaces.tab", "What matches")  # how to pair them is the next step
names = ["Load a file", "Load more", "Load shards", "Encode", "What matches", "Store"]
own, more, sharded, encoding, matching, stored = st.tabs(names, key="spaces.tab", on_change="rerun")
with matching:
    if unpaired:
        loading.draw_unpaired(workspace)
    elif pair:
        show_match(pair)
with encoding:
    if encoding.open:  # the only tab that reads data that are not loaded yet
        panel.draw(folder)
with more:
    loading.draw_catalogue(folder)
with sharded:
    shards.draw()
with own:
    loading.draw_upload()
with stored:
    if stored.open:
        store.draw()
