"""The axis between two poles: each row's place in one model against its place in the other."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import streamlit as st

from app import compute, exports, messages, session
from app.compare.tags import free_tag_name
from app.plain_text import bold_numbers, plain
from app.results import result_of
from app.selection import selected_rows
from app.tables import brushing_table
from app.workspace import CLASS_POLE, TAG_POLE, Workspace
from relcore.axis.chart import AxisChart
from relcore.axis.places import AxisPlaces, pole_rows
from relcore.axis.task import PoleAxis
from relcore.base.errors import SpaceError
from relcore.base.numbers import and_list, counted
from relcore.maps.pane_maps import View
from relcore.runs.entries import digest_of
from relcore.spaces.matching import Match

_USUAL = (("bad", "good"), ("he", "she"))  # poles in words, if the spaces have them
_LABELS = ("From", "To")
_MOST_TYPED = 5  # maximum number of selected rows that become a pole one by one; more become a tag
_MOST_NAMED = 3  # number of tags, classes and rows in the name of a pole
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
    chosen = workspace.poles or _usual_poles(pair, groups)
    with st.container(horizontal=True, vertical_alignment="bottom", key="axis-poles"):
        for side, label in enumerate(_LABELS):
            _pole_chooser(pair, label, groups, chosen, side)
    start, end = (_ids_of(pair, groups, pole) for pole in chosen)
    if not (start and end):
        st.caption("Type the name of a row for each pole, or choose a tag or a class.")
        return
    start, end = _without_common_rows(start, end)
    try:
        for label, ids in zip(_LABELS, (start, end), strict=True):
            pole_rows(pair.source, ids, label)
        start_name, end_name = (_name_of(groups, pole) for pole in chosen)
        task = PoleAxis(start, end, start_name=start_name, end_name=end_name)
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
    groups = {f"{TAG_POLE}{name}": ids for name, ids in workspace.tags}
    labels = pair.source.labels
    if labels is None:
        return groups
    classes = sorted(set(labels.tolist()) - {""})
    if len(classes) <= _MOST_CLASSES:
        groups |= {f"{CLASS_POLE}{name}": tuple(pair.ids[labels == name]) for name in classes}
    return groups


def _usual_poles(pair: Match, groups: Mapping[str, tuple[str, ...]]) -> tuple[tuple[str, ...], ...]:
    """The poles until the user chooses others: two words if the spaces have them, else the first two of three
    or more classes. (With two classes, no row would be left to compare.)"""
    for start, end in _USUAL:
        if start in pair.source.index and end in pair.source.index:
            return (start,), (end,)
    classes = [name for name in groups if name.startswith(CLASS_POLE)]
    if len(classes) < 3:
        return (), ()
    return (classes[0],), (classes[1],)


def _pole_chooser(
    pair: Match,
    label: str,
    groups: Mapping[str, tuple[str, ...]],
    chosen: tuple[tuple[str, ...], ...],
    side: int,
) -> None:
    """Draw the chooser of one of the two `chosen` poles, and a button that makes the selected rows this
    pole."""
    now = list(chosen[side])
    # The key follows the value, so that a chosen pole closes the list, and Undo shows the earlier value.
    key = f"axis.{label}-{digest_of(now)[:8]}"
    st.multiselect(
        label,
        list(dict.fromkeys([*groups, *now])),
        default=now,
        accept_new_options=True,
        placeholder="Type a row, or choose a tag",
        key=key,
        on_change=_take,
        args=(chosen, side, key),
        width=300,
    )
    selection = selected_rows(pair)[0]
    words = "Use selection"
    if selection:
        words = f"Use selection · {counted(len(selection), 'row')}"
    st.button(
        words,
        icon=":material/select:",
        type="tertiary",
        help=f"Makes the selected rows this pole. More than {_MOST_TYPED} rows become a tag.",
        disabled=not selection,
        on_click=session.guarded,
        args=(_use, chosen, side, selection),
        key=f"axis.{label}.selection",
    )


def _ids_of(pair: Match, groups: Mapping[str, tuple[str, ...]], pole: tuple[str, ...]) -> tuple[str, ...]:
    """The ids of the rows of a pole. () if it names none."""
    ids: list[str] = []
    for one in pole:
        if one in groups:
            ids += [identifier for identifier in groups[one] if identifier in pair.source.index]
        else:
            ids += pair.source.as_written([one])
    return tuple(dict.fromkeys(ids))


def _name_of(groups: Mapping[str, tuple[str, ...]], pole: tuple[str, ...]) -> str:
    """What the result calls a pole that has a tag or a class. "" if it has only rows, which name it."""
    if not any(one in groups for one in pole):
        return ""
    names = []
    for one in pole:
        if one.startswith(CLASS_POLE):
            names.append(f"class “{one.removeprefix(CLASS_POLE)}”")
        else:
            names.append(f"“{one.removeprefix(TAG_POLE)}”")
    if len(names) > _MOST_NAMED:
        names = [*names[: _MOST_NAMED - 1], f"{len(names) - _MOST_NAMED + 1} more"]
    return and_list(names)


def _take(chosen: tuple[tuple[str, ...], ...], side: int, key: str) -> None:
    """Make what a chooser holds the pole."""
    names = tuple(name.strip() for name in st.session_state[key])
    session.guarded(_choose, chosen, side, names)


def _choose(chosen: tuple[tuple[str, ...], ...], side: int, pole: tuple[str, ...], **changes: Any) -> None:
    poles = list(chosen)
    poles[side] = pole
    session.edit(f"choose the pole “{_LABELS[side]}”", poles=tuple(poles), **changes)


def _use(chosen: tuple[tuple[str, ...], ...], side: int, selection: tuple[str, ...]) -> None:
    """Make the selected rows this pole. Many of them become a tag, unless a tag has exactly these rows."""
    if len(selection) <= _MOST_TYPED:
        _choose(chosen, side, selection)
        return
    present = session.workspace()
    same = (name for name, ids in present.tags if set(ids) == set(selection))
    name = next(same, "")
    tags = present.tags
    if not name:
        name = free_tag_name(present)
        tags = (*tags, (name, selection))
    _choose(chosen, side, (f"{TAG_POLE}{name}",), tags=tags)


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
