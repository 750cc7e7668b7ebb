"""What can be done if the rows of two spaces are not paired: link them, use links, or show the example. And
what can be done if they are paired by links, of which too few are confirmed."""

from __future__ import annotations

from collections.abc import Callable

import streamlit as st

from app import session
from app.link.finished import draw_finished_links
from app.places import CONNECT, go
from app.workspace import Workspace
from relcore.base.numbers import counted
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
            _offer_example(place, show_example)


def draw_unconfirmed_links(
    pair: tuple[SpaceSpec, SpaceSpec],
    counts: tuple[int, int, int],
    page: str,
    show_example: Callable[[], None] | None = None,
) -> None:
    """Draw a box that says that `page` counts only confirmed links, with a button that opens Link to confirm
    more. `counts` are the links, those of them that are confirmed, and those that the page needs."""
    n_links, n_confirmed, needed = counts
    place = page.lower()
    with st.container(border=True, key="unconfirmed"):
        missing = counted(needed - n_confirmed, "more confirmed pair")
        st.markdown(
            f"**{page} needs {missing}.** Link guessed {counted(n_links, 'pair')}, and a wrong guess would"
            f" look like a difference between the models. Only confirmed pairs count: {needed} or more, now"
            f" {n_confirmed}."
        )
        with st.container(horizontal=True):
            if st.button(
                "Confirm pairs in Link", key=f"{place}.confirm", icon=":material/hub:", type="primary"
            ):
                source, target = pair
                session.edit("choose the two models", source=source, target=target)
                go(CONNECT, "Link")
            if show_example:
                _offer_example(place, show_example)


def _offer_example(place: str, show_example: Callable[[], None]) -> None:
    st.button(
        "Show the example instead",
        icon=":material/move_up:",
        key=f"{place}.example",
        type="tertiary",
        on_click=show_example,
    )
