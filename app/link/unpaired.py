"""What can be done if the rows of two spaces are not paired: link them, use links, or show the example."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app import session
from app.link.finished import draw_finished_links
from app.places import CONNECT, go
from app.workspace import Workspace
from relcore.catalog.catalog import SpaceSpec, base_of, is_linked


def draw_unpaired_rows(
    workspace: Workspace,
    pair: tuple[SpaceSpec, SpaceSpec],
    words: str,
    place: str,
    show_example: Callable[[], None],
    label: str = "Link the rows",
) -> None:
    """Draw a box that says why the rows of two spaces are not paired (`words`, as Markdown). Its buttons pair
    them (`label`) or show the example; their keys begin with `place`."""
    source, target = pair
    with st.container(border=True, key="unpaired"):
        st.markdown(words)
        others = (spec for spec in workspace.spaces if spec not in pair)
        linked = next((spec for spec in others if is_linked(spec, source, target)), None)
        with st.container(horizontal=True):
            kind = "primary"
            key = "link"
            if linked:
                label = "Use the links found"
                key = "use-links"
            elif draw_finished_links(pair, place):
                kind = "secondary"
            if st.button(label, key=f"{place}.{key}", icon=":material/hub:", type=kind):
                ends = {"source": source, "target": linked or target}
                if linked and base_of(linked) == source:
                    ends = {"source": linked, "target": target}
                session.edit("choose the two models", **ends)
                if not linked:
                    go(CONNECT, "Link")
                st.rerun()
            st.button(
                "Show the example instead",
                icon=":material/move_up:",
                key=f"{place}.example",
                type="tertiary",
                on_click=show_example,
            )
