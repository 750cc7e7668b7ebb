"""The models of a universe: a click adds one or leaves it out, and a file that is dropped adds one."""

from __future__ import annotations

from collections.abc import Sequence

import streamlit as st

from app import compute, results, session
from app.page_settings import remembered
from app.places import CONNECT, DATA, go
from app.plain_text import plain
from app.widgets import space_labels, space_name
from relcore.catalog.catalog import SpaceSpec
from relcore.spaces.matching import short_names
from relcore.universe.universe import MOST_SPACES

DROPPED = "relscope.universe-dropped"  # the space whose file was dropped last
MODELS = "universe.of-own"  # widget key: which models are shown, if the session has models of its own
_DROPS = "relscope.universe-drops"  # number of dropped files, so that each is handled once
_MOST_PILLS = 16  # of more spaces, a list is easier to search


def share_rows(one: SpaceSpec, other: SpaceSpec, *, sure: bool) -> bool:
    """Whether two spaces share rows. If `sure`, rows paired only by an unconfirmed order do not count."""
    if not isinstance(compute.shared_rows(one, other), int):
        return False
    return not (sure and compute.is_paired_by_order(one, other))


def with_models_of_the_session(example: Sequence[SpaceSpec], own: Sequence[SpaceSpec]) -> list[SpaceSpec]:
    """The models of an example, and those of the session that have the same rows."""
    others = [spec for spec in own if spec not in example and spec.source != "bundled"]
    return [*example, *(spec for spec in others if example and share_rows(spec, example[0], sure=True))]


def choose_models(spaces: Sequence[SpaceSpec], usual: Sequence[SpaceSpec], shown: str) -> list[SpaceSpec]:
    """The models that the user chose, in order; the `usual` ones at first. `shown` names the group of models
    that is shown. Few models are all in sight, and a click adds or removes one."""
    names = dict(zip(spaces, short_names(list(space_labels(spaces).values()))[0], strict=True))
    key = f"universe.spaces-{results.place_of(spaces)}"
    label = "Models on the map"
    if len(names) <= min(MOST_SPACES, _MOST_PILLS):
        chosen = remembered(
            st.pills,
            label,
            list(names),
            default=list(usual),
            format_func=lambda spec: plain(names[spec]),  # pills render Markdown
            key=key,
            selection_mode="multi",
            help="Click a model to add it, or to leave it out.",
        )
    else:
        chosen = remembered(
            st.multiselect,
            label,
            list(names),
            default=list(usual)[:MOST_SPACES],
            format_func=names.get,
            key=key,
            max_selections=MOST_SPACES,
        )
    _draw_adding(shown)
    return [spec for spec in spaces if spec in chosen]


def _draw_adding(shown: str) -> None:
    """Draw the button under which a file can be dropped. A dropped file closes it."""
    n = st.session_state.get(_DROPS, 0)
    with st.popover("Add a model", icon=":material/add:", type="primary", key=f"universe.add-{n}"):
        key = f"universe.drop-{n}"
        st.file_uploader(
            "Drop a file with the model's vectors here",
            key=key,
            on_change=session.guarded,
            args=(_add_file, key, shown),
            help="For the same items as the other models, under the same ids: .npz, .safetensors, .parquet …",
        )
        if st.button(
            "Texts, folders and databases: open Data",
            icon=":material/database:",
            type="tertiary",
            key="universe.data",
        ):
            go(DATA)


def _add_file(key: str, shown: str) -> None:
    """Add the dropped file to the session, and stay with the models that are shown."""
    uploaded = st.session_state.get(key)
    if uploaded is None:
        return
    st.session_state[_DROPS] = st.session_state.get(_DROPS, 0) + 1
    spec = SpaceSpec("file", str(session.keep_upload(uploaded)))
    compute.load_space(spec)  # raises the error of a file that cannot be read
    present = session.workspace().spaces
    if spec not in present:
        session.edit(f"add {space_name(spec)} to the universe", spaces=(*present, spec))
    st.session_state[DROPPED] = spec
    st.session_state[MODELS] = shown


def draw_apart(spaces: Sequence[SpaceSpec]) -> None:
    """If the file that was dropped last has no rows in common with these models, say so and what to do."""
    dropped = st.session_state.get(DROPPED)
    if dropped is None or dropped in spaces or dropped not in session.workspace().spaces:
        return
    with st.container(border=True, horizontal=True, vertical_alignment="center", key="universe.apart"):
        st.markdown(
            f":material/link_off: **“{plain(space_name(dropped))}” shares no row ids with these models**, so"
            " it has no place on their map. It is in the session.",
            width="stretch",
        )
        st.button(
            "Show the models of this session",
            key="universe.show-own",
            icon=":material/hub:",
            on_click=st.session_state.update,
            args=({MODELS: "own"},),
        )
        if st.button("Find pairs in Link", key="universe.link-dropped", type="tertiary"):
            go(CONNECT, "Link")
