"""Two spaces without a common id: nothing is wrong, their rows are only not paired yet. What can be done
about it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import streamlit as st

from app import compute, session
from app.plain_text import plain_name
from app.spaces import catalogue
from app.widgets import bound, space_labels
from app.workspace import Workspace
from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import counted
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import by_rows, pairs_by_rows
from relcore.files.columns import shown_name
from relcore.runs.digest import digest_of
from relcore.spaces.space import LatentSpace

_PAGES = Path(__file__).parents[2] / "pages"


def draw(workspace: Workspace) -> None:
    """What the two spaces' ids look like, and how to pair their rows: by order, by another column, or by
    Bootstrap.
    """
    source, target = (compute.load_space(spec) for spec in (workspace.source, workspace.target))
    labels = space_labels(workspace.spaces)
    titles = [plain_name(labels[spec]) for spec in (workspace.source, workspace.target)]
    with st.container(border=True, key="unpaired"):
        st.subheader("How are the rows of these two spaces paired?", anchor=False)
        st.markdown(
            f"Rows are paired by their ids. **{titles[0]}** and **{titles[1]}** have no id in common."
        )
        examples = [
            f"{title}: {counted(len(space), 'row')}, ids {plain_name(quote(space.ids[:3]))} …"
            for title, space in zip(titles, (source, target), strict=True)
        ]
        st.caption(" · ".join(examples))
        with st.container(horizontal=True, vertical_alignment="bottom"):
            _row_order(workspace, source, target)
            _id_column(workspace.source, "source", titles[0])
            _id_column(workspace.target, "target", titles[1])
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if st.button(
                "Find pairs with Bootstrap",
                key="unpaired.bootstrap",
                icon=":material/hub:",
                help=(
                    "Bootstrap pairs rows by their neighbourhoods, from a few pairs that you know, or from"
                    " none."
                ),
            ):
                st.switch_page(_PAGES / "bootstrap.py")
            if st.button("Load other files", key="unpaired.load", icon=":material/upload:"):
                st.session_state["spaces.tab"] = "Load a file"
                st.switch_page(_PAGES / "spaces.py")
        st.caption("You can also choose other spaces in the sidebar.")


def _row_order(workspace: Workspace, source: LatentSpace, target: LatentSpace) -> None:
    if any(spec.source == "sample" for spec in (workspace.source, workspace.target)):
        st.caption("Samples of shards pair by ids only: write the same ids into the shards of both folders.")
        return
    pair = by_rows(workspace.source, workspace.target)
    equal = len(source) == len(target)
    st.button(
        "Pair by row order",
        key="unpaired.rows",
        icon=":material/format_list_numbered:",
        type="primary" if equal else "secondary",
        disabled=not equal,
        help=(
            "Row 1 with row 1, row 2 with row 2, and so on. Right if both spaces have the same items in the"
            " same order."
            if equal
            else f"Row order needs equally many rows. These have {len(source):,} and {len(target):,}."
        ),
        on_click=session.guarded,
        args=(
            replace_spaces,
            "pair by row order",
            dict(zip((workspace.source, workspace.target), pair, strict=True)),
        ),
    )


def _id_column(spec: SpaceSpec, side: str, title: str) -> None:
    """A chooser of another column of ids, for a file with columns."""
    names = catalogue.columns_of(spec)
    if not names:
        return
    chosen = spec.option("id_column")
    automatic = "Automatic"

    def apply(name: str) -> None:
        options = {option: value for option, value in spec.options if option not in ("ids", "id_column")}
        options |= {} if name == automatic else {"id_column": name}
        replace_spaces(f"ids from {shown_name(name)}", {spec: replace(spec, options=tuple(options.items()))})

    bound(
        st.selectbox,
        f"Id column of {title}",
        f"unpaired.{side}-{digest_of(spec)[:12]}",
        chosen if chosen in names else automatic,
        apply,
        options=[automatic, *names],
        format_func=shown_name,
        width=240,
    )


def replace_spaces(step: str, instead: Mapping[SpaceSpec, SpaceSpec]) -> None:
    """Put spaces in the place of others, as one step; each is read first.

    Raises
    ------
    SpaceError
        One that cannot be read.
    """
    for spec in instead.values():
        compute.load_space(spec)
    present = session.workspace()
    session.edit(
        step,
        spaces=tuple(dict.fromkeys(instead.get(one, one) for one in present.spaces)),
        source=instead.get(present.source, present.source),
        target=instead.get(present.target, present.target),
    )


def likely_by_rows(source: SpaceSpec, target: SpaceSpec) -> tuple[SpaceSpec, SpaceSpec] | None:
    """Both spaces with row numbers as ids, where that is the likely way to pair them; else None."""
    if any(spec.source == "sample" for spec in (source, target)):  # their rows are in no common order
        return None
    try:
        likely = pairs_by_rows(compute.load_space(source), compute.load_space(target))
    except SpaceError:
        return None
    return by_rows(source, target) if likely else None
