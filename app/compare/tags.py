"""Tags: names that the user gives to rows. Each is a column to colour, filter and export by."""

from __future__ import annotations

from dataclasses import replace
from itertools import count

import streamlit as st

from app import compute, messages, session
from app.page_settings import menu
from app.plain_text import plain_name
from app.selection import rows_of
from app.workspace import TAG_POLE, Workspace
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.compare.columns import TAGS
from relcore.maps.pane_maps import COLUMN
from relcore.spaces.matching import Match

_TAGGED = "relscope.tagged"  # the last name that rows got, these rows, and the key of the menu
_LONGEST = 60  # maximum number of characters of a name
_RESERVED = ("id", "text", "label", "labels", "count", TAGS)


def tag_menu(chosen: tuple[str, ...], key: str, **look: str) -> None:
    """A menu that gives these rows a new tag, adds them to a tag, or removes them from one."""
    about = "Names these rows. The name becomes a column that you can colour, filter and export by."
    with menu("Tag", key, icon=":material/sell:", help=about, **look) as is_open:
        if not is_open:
            st.space(280)  # room for the menu to open where it is not cut
            return
        _confirmation(chosen, key)  # above the form, or a menu near the end of the window would hide it
        with st.form(f"{key}.form", border=False):
            st.text_input(
                f"Tag {counted(len(chosen), 'row')} as",
                placeholder="Name of the tag",
                max_chars=_LONGEST,
                key=f"{key}.name",
            )
            st.form_submit_button(
                "Add tag",
                icon=":material/add:",
                key=f"{key}.new",
                on_click=_tag_by_name,
                args=(chosen, key),
                width="stretch",
            )
        for number, (name, ids) in enumerate(session.workspace().tags):
            inside = len(set(chosen).intersection(ids))
            if inside < len(chosen):
                st.button(
                    f"Add to {plain_name(name)}",
                    icon=":material/add:",
                    key=f"{key}.add-{number}",
                    on_click=_tag,
                    args=(name, chosen, key),
                    width="stretch",
                )
            if inside:
                st.button(
                    f"Remove from {plain_name(name)}",
                    icon=":material/remove:",
                    help=f"{inside:,} of the selected rows have this tag",
                    key=f"{key}.remove-{number}",
                    on_click=session.guarded,
                    args=(remove_from_tag, name, chosen),
                    width="stretch",
                )


def _tag_by_name(chosen: tuple[str, ...], key: str) -> None:
    name = st.session_state[f"{key}.name"].strip()
    st.session_state[f"{key}.name"] = ""
    if name:
        _tag(name, chosen, key)


def _tag(name: str, chosen: tuple[str, ...], key: str) -> None:
    """Tag these rows in the menu with this key, which then says so."""
    st.session_state[_TAGGED] = (name, chosen, key)
    session.guarded(add_to_tag, name, chosen)


def _confirmation(chosen: tuple[str, ...], key: str) -> None:
    """Say which tag these rows got last in this menu, while they have it, and offer to colour by it."""
    name, tagged, menu_of_tag = st.session_state.get(_TAGGED, ("", (), ""))
    workspace = session.workspace()
    there = dict(workspace.tags).get(name, ())
    if menu_of_tag != key or tagged != chosen or not set(chosen).issubset(there):
        return
    messages.success(f"{counted(len(chosen), 'row')} tagged “{name}”")
    if workspace.view.color_by != f"{COLUMN}{name}":
        _color_button(name, "Colour by it", f"{key}.colour")


def add_to_tag(name: str, ids: tuple[str, ...]) -> None:
    """Add these rows to the tag, which is new if no tag has this name. Raises a SpaceError if another column
    has the name."""
    present = session.workspace()
    tags = dict(present.tags)
    if name not in tags:
        _need_free_name(present, name)
    step = f"tag {counted(len(ids), 'row')} as “{name}”"
    session.edit(step, tags=tuple((tags | {name: (*tags.get(name, ()), *ids)}).items()))


def remove_from_tag(name: str, ids: tuple[str, ...]) -> None:
    """Remove these rows from the tag. A tag without rows is deleted."""
    tags = dict(session.workspace().tags)
    gone = set(ids)
    left = tuple(identifier for identifier in tags[name] if identifier not in gone)
    session.edit(f"remove rows from tag “{name}”", tags=tuple((tags | {name: left}).items()))


def rename_tag(name: str, to: str) -> None:
    """Rename a tag, also where rows are coloured or filtered by it. Raises a SpaceError if another column has
    the new name."""
    present = session.workspace()
    if not to or to == name:
        return
    _need_free_name(present, to)
    old = f"{COLUMN}{name}"
    new = f"{COLUMN}{to}"
    renamed = {old: new}
    look = present.look
    conditions = tuple(replace(one, column=renamed.get(one.column, one.column)) for one in look.filter)
    session.edit(
        f"rename tag “{name}” to “{to}”",
        tags=tuple((to if one == name else one, ids) for one, ids in present.tags),
        view=replace(present.view, color_by=renamed.get(present.view.color_by, present.view.color_by)),
        look=replace(look, filter=conditions, second=renamed.get(look.second, look.second)),
        poles=_renamed_poles(present.poles, name, to),
    )


def _renamed_poles(poles: tuple[tuple[str, ...], ...], name: str, to: str) -> tuple[tuple[str, ...], ...]:
    renamed = {f"{TAG_POLE}{name}": f"{TAG_POLE}{to}"}
    return tuple(tuple(renamed.get(one, one) for one in pole) for pole in poles)


def free_tag_name(workspace: Workspace) -> str:
    """A name for a tag of selected rows, “selection 1” or with the next number that is free."""
    taken = compute.table_columns(workspace)
    return next(name for number in count(1) if (name := f"selection {number}") not in taken)


def delete_tag(name: str) -> None:
    tags = tuple(one for one in session.workspace().tags if one[0] != name)
    session.edit(f"delete tag “{name}”", tags=tags)


def _need_free_name(workspace: Workspace, name: str) -> None:
    if name.casefold() in _RESERVED or name in compute.table_columns(workspace):
        raise SpaceError(f"tag: expected a name that no other column has, got {name!r}; choose another")


def tags_list(workspace: Workspace, pair: Match) -> None:
    """Draw the tags. A click on one selects its rows. Its menu colours by it, renames it or deletes it."""
    if not workspace.tags:
        return
    with st.container(horizontal=True, vertical_alignment="center", key="tags"):
        st.caption("Tags", width="content")
        for number, (name, ids) in enumerate(workspace.tags):
            known = tuple(pair.ids[[row for row in rows_of(pair, ids).tolist() if row >= 0]])
            st.button(
                f"{plain_name(name)} · {len(known):,}",
                icon=":material/sell:",
                help="Selects the rows with this tag",
                disabled=not known,
                on_click=session.select,
                args=(known,),
                key=f"tags.select-{number}",
            )
            with menu("", f"tags.edit-{number}", icon=":material/more_vert:", type="tertiary") as is_open:
                if is_open:
                    _edit_menu(name, number)


def _edit_menu(name: str, number: int) -> None:
    _color_button(name, "Colour by this tag", f"tags.colour-{number}")
    key = f"tags.rename-{number}"
    st.text_input("Rename", name, max_chars=_LONGEST, key=key, on_change=_rename, args=(name, key))
    st.button(
        "Delete tag",
        icon=":material/delete:",
        help="The rows stay",
        on_click=delete_tag,
        args=(name,),
        key=f"tags.delete-{number}",
        width="stretch",
    )


def _color_button(name: str, label: str, key: str) -> None:
    st.button(
        label,
        icon=":material/palette:",
        on_click=session.edit_spec,
        args=(f"colour by {name}", "view"),
        kwargs={"color_by": f"{COLUMN}{name}", "everything": True},
        key=key,
        width="stretch",
    )


def _rename(name: str, key: str) -> None:
    to = st.session_state.pop(key).strip()
    session.guarded(rename_tag, name, to)
