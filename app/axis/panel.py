"""The axis between two poles: each row's place in one model against its place in the other."""

from __future__ import annotations

from collections.abc import Mapping

import streamlit as st

from app import compute, exports, messages, session
from app.page_settings import remembered, saved_value
from app.plain_text import bold_numbers, plain
from app.results import place_of, result_of
from app.tables import brushing_table
from app.workspace import Workspace
from relcore.axis.chart import AxisChart
from relcore.axis.places import AxisPlaces, pole_rows
from relcore.axis.task import PoleAxis
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.maps.pane_maps import View
from relcore.spaces.matching import Match

_USUAL = (("bad", "good"), ("he", "she"))  # poles in words, if the spaces have them
_TAG = "Tag: "
_MOST_TYPED = 20  # maximum number of rows of a selection that become a pole without a tag
_MOST_CLASSES = 20
_MOST_LISTED = 500
_UNASKED_SECONDS = 20.0


def draw(workspace: Workspace, models: Match, _: View) -> None:
    pair = models.pair()
    st.caption(
        "Projects each row onto the line between two poles, in both models. A pole is a row, or the mean of"
        " several rows."
    )
    groups = _groups(workspace, pair)
    usual = _usual_poles(pair, groups)
    with st.container(horizontal=True, vertical_alignment="bottom", key="axis-poles"):
        start = _pole(workspace, pair, "From", groups, usual[0])
        end = _pole(workspace, pair, "To", groups, usual[1])
    if not (start and end):
        st.caption("Type the name of a row for each pole, or choose a tag or a class.")
        return
    start, end = _without_common_rows(start, end)
    try:
        for name, ids in (("From", start), ("To", end)):
            pole_rows(pair.source, ids, name)
        task = PoleAxis(start, end)
        specs = (workspace.source, workspace.target)
        found = result_of(task, specs, label="Compare the places", unasked_seconds=_UNASKED_SECONDS)
    except SpaceError as error:
        messages.error(error)
        return
    if found is not None:
        _result(workspace, task, found)


def _without_common_rows(
    start: tuple[str, ...], end: tuple[str, ...]
) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Both poles without the rows that are in both, as of a tag and a class. A pole of such rows alone stays
    as it is, and the axis is refused."""
    both = set(start).intersection(end)
    if not 0 < len(both) < min(len(start), len(end)):
        return start, end
    st.caption(f"Left out of both poles: {counted(len(both), 'row')} that both have.")
    return tuple(one for one in start if one not in both), tuple(one for one in end if one not in both)


def _groups(workspace: Workspace, pair: Match) -> dict[str, tuple[str, ...]]:
    """Sets of rows that can be a pole, by the name of the choice: the tags, and the classes if they are
    few."""
    groups = {f"{_TAG}{name}": ids for name, ids in workspace.tags}
    labels = pair.source.labels
    if labels is None:
        return groups
    classes = sorted(set(labels.tolist()) - {""})
    if len(classes) <= _MOST_CLASSES:
        groups |= {f"Class: {name}": tuple(pair.ids[labels == name]) for name in classes}
    return groups


def _usual_poles(pair: Match, groups: Mapping[str, tuple[str, ...]]) -> tuple[list[str], list[str]]:
    """The poles at the first visit: two words if the spaces have them, else the first two of three or more
    classes. (With two classes, no row would be left to compare.)"""
    for start, end in _USUAL:
        if start in pair.source.index and end in pair.source.index:
            return [start], [end]
    classes = [name for name in groups if name.startswith("Class: ")]
    if len(classes) < 3:
        return [], []
    return classes[:1], classes[1:2]


def _pole(
    workspace: Workspace,
    pair: Match,
    label: str,
    groups: Mapping[str, tuple[str, ...]],
    usual: list[str],
) -> tuple[str, ...]:
    """The ids of the pole that the user chose. () if there is none."""
    key = f"axis.{label}-{place_of(workspace.models[:2])}"
    now = st.session_state.get(key, saved_value(key)) or usual
    chosen = remembered(
        st.multiselect,
        label,
        list(dict.fromkeys([*groups, *now])),
        default=usual,
        accept_new_options=True,
        placeholder="Type a row, or choose a tag",
        key=key,
        width=300,
    )
    selection = session.selection()
    st.button(
        "Use selection",
        icon=":material/select:",
        type="tertiary",
        help=f"Takes up to {_MOST_TYPED} selected rows. Tag more rows first, then choose the tag.",
        disabled=not 0 < len(selection) <= _MOST_TYPED,
        on_click=_use,
        args=(key, list(selection[:_MOST_TYPED])),
        key=f"{key}.selection",
    )
    ids: list[str] = []
    for one in chosen:
        if one in groups:
            ids += [identifier for identifier in groups[one] if identifier in pair.source.index]
        elif not one.startswith(_TAG):  # a tag may have been removed since
            ids += pair.source.as_written([one.strip()])
    return tuple(dict.fromkeys(ids))


def _use(key: str, ids: list[str]) -> None:
    st.session_state[key] = ids


def _result(workspace: Workspace, task: PoleAxis, found: AxisPlaces) -> None:
    messages.lead(bold_numbers(found.headline))
    specs = (workspace.source, workspace.target)
    recipe = AxisChart(source=specs[0], target=specs[1], digests=compute.digests(specs), axis=task)
    picture, listed = st.columns([1.6, 1], gap="large")
    with picture:
        exports.figure(recipe.draw(found), "axis.chart")
    with listed:
        start, end = found.pole_names
        first, second = found.names
        st.markdown("**Rows that differ most**")
        titles = {"source percentile": first, "target percentile": second, "difference": "difference"}
        table = found.table().head(_MOST_LISTED)[["id", *titles]]
        look = {
            name: st.column_config.NumberColumn(plain(title), width=110) for name, title in titles.items()
        }
        brushing_table(table, "axis.rows", places=0, height=380, column_config=look)
        st.caption(
            f"Percentile of each row: 0 is nearest to {plain(start)}, 100 to {plain(end)}. Click a row to"
            " select it in the maps."
        )
    for note in found.report().notes:
        st.caption(plain(note))
