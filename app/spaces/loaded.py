"""The spaces of this session, problems with their data, and the rows that they share."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import pandas as pd
import streamlit as st

from app import compute, messages, session
from app.encode import forms, jobs
from app.plain_text import plain_name
from app.spaces import shards
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.runs.entries import digest_of
from relcore.spaces.matching import Match
from relcore.spaces.space import LatentSpace


def draw(workspace: Workspace, pair: Match | None) -> None:
    """Draw this session's spaces: a table, how many rows the compared ones share, and what can be done with
    them."""
    st.subheader("In this session", anchor=False)
    labels = space_labels(workspace.spaces)
    _draw_table(workspace, labels)
    if pair:
        _draw_shared_rows(workspace, pair, labels)
    shards.draw_sample_line(workspace)
    with st.container(horizontal=True, vertical_alignment="center"):
        removal = st.popover("Remove", icon=":material/close:", key="spaces.remove")
        st.toggle("More about each space", key="spaces.more")
    with removal:
        _draw_removal(workspace, labels)


def _draw_table(workspace: Workspace, labels: Mapping[SpaceSpec, str]) -> None:
    """A table of the spaces with their main properties. A switch below shows further properties."""
    rows = []
    more = bool(st.session_state.get("spaces.more"))
    roles = {"source": workspace.source, "target": workspace.target}
    for spec in workspace.spaces:
        role = " and ".join(role for role, chosen in roles.items() if chosen == spec)
        try:
            space = compute.load_space(spec)
            rows.append({"space": labels[spec], "compared as": role} | _facts_of(space, more))
            if space.note:
                rows[-1]["note"] = space.note
        except SpaceError as error:
            messages.error(f"{labels[spec]}: {error}")
            if spec.source == "encoding":  # the store no longer has the encoding
                st.button(
                    "Encode it again",
                    key=f"spaces.again-{digest_of(spec)}",
                    icon=":material/replay:",
                    on_click=session.guarded,
                    args=(_encode_again, spec),
                )
    number = st.column_config.NumberColumn
    text = st.column_config.TextColumn
    columns = {
        "space": text(width=180),
        "rows": number(format="localized"),
        "offset": number(
            format="%.2f",
            help="Length of the mean vector ÷ mean length. Above .1 centring changes the results",
        ),
        "mean norm": number(format="%.2f"),
        "equal rows": number(help="Rows whose vector is equal to another row's"),
        "note": text(width=640),
        "content": text(help="First digits of the content's digest. Equal content has an equal digest"),
    }
    table = pd.DataFrame(rows).fillna({"note": ""})
    st.dataframe(table, hide_index=True, column_config=columns)


def _draw_shared_rows(workspace: Workspace, pair: Match, labels: Mapping[SpaceSpec, str]) -> None:
    source = plain_name(labels[workspace.source])
    target = plain_name(labels[workspace.target])
    n = counted(len(pair), "row")
    if compute.is_paired_by_order(workspace.source, workspace.target):
        text = f"They have {n} each, not paired yet"
    else:
        text = f"They share {n}"
    if pair.n_source_only or pair.n_target_only:
        text += f"; {pair.n_source_only:,} only in the first, {pair.n_target_only:,} only in the second"
    if pair.n_zero:
        text += f"; {counted(pair.n_zero, 'zero vector')} left out"
    st.caption(f"Compared now: {source} (source) and {target} (target). {text}.")


def _draw_removal(workspace: Workspace, labels: Mapping[SpaceSpec, str]) -> None:
    """A button for each space that removes it from the session."""
    for spec in workspace.spaces:
        in_use = spec in (workspace.source, workspace.target)
        help_text = None
        if in_use:
            help_text = "Choose another source or target above first"
        st.button(
            plain_name(labels[spec]),
            key=f"spaces.remove-{digest_of(spec)}",
            icon=":material/close:",
            type="tertiary",
            disabled=in_use,
            help=help_text,
            on_click=session.edit,
            args=(f"remove {space_name(spec)}",),
            kwargs={"spaces": tuple(space for space in workspace.spaces if space != spec)},
        )


def _facts_of(space: LatentSpace, more: bool) -> dict[str, object]:
    labels = 0
    if space.labels is not None:
        labels = len(set(space.labels) - {""})
    facts: dict[str, object] = {"rows": len(space), "dimensions": space.dimension, "classes": labels}
    if not more:
        return facts
    norm = float(space.norms.mean(dtype=np.float64))
    return facts | {
        "zero vectors": len(space.zero_rows),
        "equal rows": compute.equal_rows(space),
        "mean norm": norm,
        "offset": float(np.linalg.norm(space.vectors.mean(axis=0, dtype=np.float64)) / norm),
        "content": space.digest[:8],
    }


def _encode_again(spec: SpaceSpec) -> None:
    dataset = forms.preview(spec.dataset)
    jobs.submit(spec.dataset, dataset.digest, dataset.name, [spec.encoder])
