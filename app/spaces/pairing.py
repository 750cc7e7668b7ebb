"""If two spaces have no id in common, pair their rows."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path

import streamlit as st

from app import compute, session
from app.link.finished import draw_finished_links
from app.places import CONNECT, go
from app.plain_text import plain_name
from app.spaces.file_settings import AUTOMATIC, read_about
from app.widgets import bound, space_labels
from app.workspace import Workspace
from relcore.base.errors import quote
from relcore.base.numbers import counted, short
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec
from relcore.files import item_rows, reading
from relcore.files.columns import NO_CHOICES, shown_name
from relcore.runs.entries import digest_of
from relcore.scores.cka import linear_cka
from relcore.scores.score import Score
from relcore.spaces.space import LatentSpace

_NAME = "unpaired"  # of the box, in the keys of its widgets
_COMPARED = 5000  # number of rows whose order is compared, taken from the start
_FEW = 8  # a file with at most this many columns of numbers may use one as ids


def score_in_order(spaces: Sequence[LatentSpace]) -> Score:
    return linear_cka(*(space.vectors[:_COMPARED] for space in spaces))


def agrees_in_order(spaces: Sequence[LatentSpace]) -> bool:
    """Whether two spaces with equally many rows are similar in row order. A caption shows the score."""
    score = score_in_order(spaces)
    agrees = score > score.null.high
    text = "rows do not agree in this order"
    if agrees:
        text = "rows agree, so they may be in the same order"
    st.caption(
        f"The {text}: linear CKA {short(score)}, chance up to {short(score.null.high)}, n = {score.n:,}."
    )
    return agrees


def link_button(name: str, likely: bool) -> bool:
    """Draw the button that leads to Link, and return whether the user clicked it. `name` tells boxes with
    such a button apart."""
    return st.button(
        "Link the rows",
        type="primary" if likely else "secondary",
        key=f"{name}.link",
        icon=":material/hub:",
        help="Finds which rows are the same thing, from a few pairs that you know or from none.",
    )


def draw_unpaired(workspace: Workspace) -> None:
    """Show examples of the ids of both spaces, and offer methods that pair their rows."""
    ends = workspace.source, workspace.target
    spaces = list(map(compute.load_space, ends))
    labels = space_labels(workspace.spaces)
    titles = [plain_name(labels[spec]) for spec in ends]
    with st.container(border=True, key=_NAME):
        st.subheader("How are the rows of these two spaces paired?", anchor=False)
        st.markdown(
            f"Rows are paired by their ids. **{titles[0]}** and **{titles[1]}** have no id in common."
        )
        if step := session.history().redo_step:
            st.markdown(f":material/redo: **Redo** (Ctrl+Y) brings back what you undid: {plain_name(step)}.")
        examples = (
            f"{title}: {counted(len(space), 'row')}, ids {plain_name(quote(space.ids[:3]))} …"
            for title, space in zip(titles, spaces, strict=True)
        )
        st.caption(" · ".join(examples))
        numbered = any(map(row_tables.is_numbered, spaces))
        same = len(spaces[0]) == len(spaces[1])
        if not numbered and same and not any(spec.source == "sample" for spec in ends):
            st.caption(
                "The ids of the two spaces look unrelated, so their rows are likely in different orders."
            )
        with st.container(horizontal=True, vertical_alignment="bottom"):
            linked = draw_finished_links(ends, _NAME)
            if link_button(_NAME, likely=not linked and (not numbered or not same)):
                go(CONNECT, "Link")
            if any(spec.source == "sample" for spec in ends):
                st.caption(
                    "Samples of shards pair by ids only: write the same ids into the shards of both folders."
                )
            elif row_order_button(_NAME, spaces, likely=numbered and not linked):
                pair = dict(zip(ends, row_tables.by_rows(*ends), strict=True))
                session.guarded(replace_spaces, "pair by row order", pair)
                st.rerun()
            for side, spec, title in zip(("source", "target"), ends, titles, strict=True):
                _id_column(spec, side, title)
        st.caption("You can also choose other spaces above.")


def row_order_button(name: str, spaces: Sequence[LatentSpace], likely: bool) -> bool:
    """Draw the button that pairs rows by their order, and return whether the user clicked it. If this pairing
    is `likely`, it is the main button."""
    n, n_target = map(len, spaces)
    if n != n_target:
        st.caption(
            f"Pairing by row order needs equally many rows; these spaces have {n:,} and {n_target:,}. If a"
            " file is cut, or rows are left out, load it again with all rows. Else choose columns of ids."
        )
        return False
    return st.button(
        "Pair by row order",
        key=f"{name}.rows",
        icon=":material/format_list_numbered:",
        type="primary" if likely else "secondary",
        help="Right if both spaces have the same items in the same order.",
    )


def _id_column(spec: SpaceSpec, side: str, title: str) -> None:
    path = Path(spec.option("metadata") or spec.name)
    if spec.source != "file" or path.suffix.lower() not in item_rows.SUFFIXES:
        return
    if spec.option("metadata"):
        read = item_rows.metadata_columns
    else:
        read = reading.column_roles
    columns = read_about(read, path, NO_CHOICES)
    if columns.dimension and columns.dimension > _FEW:
        others = ("dimension", "pictures")
    else:
        others = ("pictures",)
    names = [column.name for column in columns.columns if column.role not in others]
    chosen = spec.option("id_column")

    def apply(name: str) -> None:
        options = {option: value for option, value in spec.options if option not in ("ids", "id_column")}
        if name != AUTOMATIC:
            options |= {"id_column": name}
        replace_spaces(f"ids from {shown_name(name)}", {spec: replace(spec, options=tuple(options.items()))})

    key = f"{_NAME}.{side}-{digest_of(spec)[:12]}"
    value = chosen if chosen in names else AUTOMATIC
    bound(
        st.selectbox,
        f"Id column of {title}",
        key,
        value,
        apply,
        options=[AUTOMATIC, *names],
        format_func=shown_name,
        width=240,
    )


def replace_spaces(step: str, instead: Mapping[SpaceSpec, SpaceSpec]) -> None:
    """Replace spaces by others as one step. Raises a SpaceError if a new space cannot be read."""
    for spec in instead.values():
        compute.load_space(spec)
    session.set_workspace(step, session.with_spaces(session.workspace(), instead))
