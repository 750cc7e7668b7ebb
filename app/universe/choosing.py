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
_CHOICE = "relscope.universe-choice"  # for each group of models, what the user left out and added
_BEGINNINGS = "relscope.universe-beginnings"  # widget key: the models that were shown when it was new
_KEY = "relscope.universe-key"  # widget key of the chooser that is drawn now
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
    st.session_state[_KEY] = key
    first = st.session_state.setdefault(_BEGINNINGS, {}).setdefault(
        key, _with_earlier_choice(usual, spaces, shown)
    )
    label = "Models on the map"
    if len(names) <= min(MOST_SPACES, _MOST_PILLS):
        chosen = remembered(
            st.pills,
            label,
            list(names),
            default=first,
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
            default=first[:MOST_SPACES],
            format_func=names.get,
            key=key,
            max_selections=MOST_SPACES,
        )
    left_out = frozenset(first).union(usual).difference(chosen)
    added = frozenset(chosen).difference(usual)
    st.session_state.setdefault(_CHOICE, {})[shown] = left_out, added
    _draw_adding(shown)
    return [spec for spec in spaces if spec in chosen]


def _with_earlier_choice(
    usual: Sequence[SpaceSpec], spaces: Sequence[SpaceSpec], shown: str
) -> list[SpaceSpec]:
    """The models that a new chooser shows at first: the `usual` ones, with what the user left out or added
    in this group of models before."""
    left_out, added = st.session_state.get(_CHOICE, {}).get(shown, (frozenset(), frozenset()))
    dropped = st.session_state.get(DROPPED)
    return [
        spec
        for spec in spaces
        if spec in added or (spec in usual and (spec not in left_out or spec == dropped))
    ]


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


def draw_left_out(specs: Sequence[SpaceSpec], chosen: Sequence[SpaceSpec], reason: str) -> None:
    """Say why these of the chosen models have no place or no scores, and offer to take them out of the
    choice."""
    key = results.place_of(specs)
    with st.container(horizontal=True, vertical_alignment="center", gap="small", key=f"universe.left-{key}"):
        names = plain(", ".join(map(space_name, specs)))
        st.markdown(f":material/link_off: **{names}**: {reason}.", width="content")
        label = "Leave them out"
        if len(specs) == 1:
            label = "Leave it out"
        if st.session_state.get(_KEY) in st.session_state:
            st.button(
                label,
                key=f"universe.leave-{key}",
                type="tertiary",
                on_click=st.session_state.update,
                args=({st.session_state[_KEY]: [spec for spec in chosen if spec not in specs]},),
            )


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
