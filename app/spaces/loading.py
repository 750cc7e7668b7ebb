"""Load files as spaces."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session, sources
from app.places import CONNECT, EXPLORE, go
from app.plain_text import plain, plain_name
from app.spaces.file_settings import Options, Read, ToLoad, describe, read_about, tables_of
from app.spaces.pairing import agrees_in_order, link_button, row_order_button, score_in_order
from app.widgets import space_name
from app.workspace import BUNDLED
from relcore.base.errors import SpaceError
from relcore.base.numbers import counted
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec
from relcore.files import item_rows, reading

_FAILED = "relscope.spaces-failed"  # space that could not be loaded → the error
# State key: spaces without ids, which are compared once the user says how their rows are paired.
_OFFERED = "relscope.spaces-offered"
_OFFER = "offered"  # the name of the box of an offer; Data may also show that of the compared spaces
_MOST_NAMED = 3  # number of spaces in the name of an undo step


def draw_vectors() -> None:
    paths, _ = sources.chosen("Vectors")
    if not paths:
        return
    kinds = {path: sources.known_kind(path) for path in paths}
    if "Vectors" not in kinds.values():
        sources.offer_others("Vectors", paths)
        if all(reading.description_of(path).shape is None for path in paths):
            return  # if a shape is known, the numbers may be vectors, so the file is loaded
    # the buttons in `head` stay at the top
    head = st.container()
    body = st.container()
    more = st.container()
    with head:
        for message in st.session_state.get(_FAILED, {}).values():
            messages.error(message)
        offered = _waiting_spaces(paths)
        if offered:
            _offer(offered)
    with more.popover("More", icon=":material/tune:"):
        limit = row_limit("upload-limit", 1_000_000)
        options = _choose_corrections(head, st.container())
    buttons = head.container(horizontal=True, vertical_alignment="center")
    errors = head.container()
    with buttons, st.spinner("Reading the files …"), body:
        described = _describe_all(paths, options, limit, errors)
    ready = [to_load for to_load in described.values() if to_load]
    with buttons:
        clicked = _load_buttons(ready, len(described) == 1, bool(offered))
        _draw_loaded([spec for spec, _ in ready])
    left_out = [path.name for path, to_load in described.items() if not to_load]
    if left_out and len(described) > 1:
        others = ""
        if len(left_out) > _MOST_NAMED:
            others = f" and {len(left_out) - _MOST_NAMED} more"
        with head:
            messages.warning(f"Not loaded: {', '.join(left_out[:_MOST_NAMED])}{others}.")
    if clicked:
        load([spec for spec, _ in ready], compare=clicked == "compare")


def _draw_loaded(specs: Sequence[SpaceSpec]) -> None:
    """A line that names those of the spaces that are in the session, with their sizes."""
    known = [spec for spec in specs if spec in session.workspace().spaces]
    if not known:
        return
    spaces = [compute.load_space(spec) for spec in known]
    sizes = [f"{plain_name(one.name)} ({counted(len(one), 'row')} × {one.dimension:,})" for one in spaces]
    st.markdown(f":material/check: Loaded: {', '.join(sizes)}", width="content")


def _choose_corrections(head: DeltaGenerator, later: DeltaGenerator) -> Options:
    """The options that leave out invalid or duplicate rows. A toggle that corrects an error of the last load
    is drawn in `head`, below the error, and otherwise in `later`."""
    errors = " ".join(st.session_state.get(_FAILED, {}).values())
    place = later
    if "NaN or infinite" in errors:
        place = head
    drop = place.toggle(
        "Leave out rows with NaN or infinite values", key="spaces.drop-invalid", persist_state="session"
    )
    place = later
    if "ids must be distinct" in errors:
        place = head
    first = place.toggle(
        "Keep only the first of duplicate ids", key="spaces.first-duplicate", persist_state="session"
    )
    options: Options = ()
    if first:
        options = (("duplicates", "first"),)
    if drop:
        options = (*options, ("invalid", "drop"))
    return options


def _load_buttons(ready: Sequence[ToLoad], is_only_file: bool, waits: bool) -> str:
    """Draw the buttons that load files. Returns "compare" or "load" after a click, otherwise "". If other
    spaces wait (`waits`), there is no button that compares."""
    if not ready:
        return ""
    clicked = ""
    names = [plain_name(Path(spec.name).name) for spec, _ in ready]
    if len(ready) > 1 and not waits:
        compares = st.button(
            f"Load and compare {names[0]} and {names[1]}",
            key="spaces.load-compare",
            type="primary",
            icon=":material/join_inner:",
            help="Makes them source and target, with anchors from their shared rows.",
        )
        if compares:
            clicked = "compare"
    label = f"Only load {counted(len(ready), 'file')}"
    if len(ready) == 1:
        label = f"Load {names[0]}"
        size = ready[0][1]
        if is_only_file and size and ready[0][0] not in session.workspace().spaces:
            label += f": {size}"
    loads = st.button(
        label,
        key="spaces.load-file",
        type="secondary" if len(ready) > 1 else "primary",
        icon=":material/upload:",
    )
    if loads and not clicked:
        clicked = "load"
    return clicked


def _waiting_spaces(paths: Sequence[Path]) -> Sequence[SpaceSpec]:
    """The spaces that wait for the user to pair their rows. Returns () if their files are no longer
    chosen."""
    offered = st.session_state.get(_OFFERED, ())
    if {Path(spec.name) for spec in offered} <= set(paths):
        return offered
    return ()


def row_limit(key: str, usual: int) -> int:
    return int(
        st.number_input(
            "Maximum number of rows", 1000, 10_000_000, usual, 10_000, key=f"spaces.{key}", width=220
        )
    )


def _describe_all(
    paths: tuple[Path, ...], options: Options, limit: int, errors: DeltaGenerator
) -> dict[Path, ToLoad | None]:
    """The spec for each file. If a choice for a file is unclear, a message says so, and its spec is None.
    Files that cannot be read are listed in `errors`."""
    proposed = tables_of(paths)
    tables = [path for path in paths if len(paths) > 1 and item_rows.is_metadata(path)]
    described: dict[Path, ToLoad | None] = {}
    known: dict[Path, Read | None] = {}
    files = st.container()
    below = st.container()
    for path in sorted(paths, key=tables.__contains__):
        if path in known:
            continue
        look = {}
        if tables and path not in tables:
            look = {"horizontal": True, "vertical_alignment": "center"}
        with files.container(border=len(paths) > 1, **look):
            if len(paths) > 1:
                st.markdown(f"**{plain_name(path.name)}**", width="content")
            try:
                if path not in tables:
                    described[path] = describe(path, options, limit, tables, proposed.get(path), known, below)
                elif any(read_about(reading.column_roles, path).places("dimension")):
                    described[path] = describe(path, options, limit)
                else:
                    n = counted(read_about(item_rows.metadata_columns, path).n, "row")
                    messages.warning(
                        f"{path.name} has {n} and no vectors. Encode its texts under Texts, or, if it has ids"
                        " and labels, load a file with as many vectors beside it."
                    )
            except SpaceError as error:
                st.caption("Not loaded.")
                errors.error(plain(error), icon=":material/error:")
    return described


def load(specs: Sequence[SpaceSpec], *, compare: bool = False) -> None:
    """Add the spaces that can be read, as one step. With `compare`, the first two become source and target.

    The errors of the other spaces are shown beside their files. If fewer than two spaces are left to compare,
    nothing is loaded.
    """
    failed = _errors_of(specs)
    st.session_state[_FAILED] = failed
    specs = [spec for spec in specs if spec not in failed]
    fewest = 1
    if compare:
        fewest = 2
    if len(specs) < fewest:
        st.rerun()
    st.session_state.pop(_OFFERED, None)
    if compare:
        _pair_and_compare(specs, len(failed))
    else:
        _add(specs)


def _errors_of(specs: Sequence[SpaceSpec]) -> dict[SpaceSpec, str]:
    """Read all spaces. Returns the error messages of those that cannot be read."""
    errors = {}
    for spec in specs:
        try:
            with st.spinner(f"Reading {plain_name(space_name(spec))} …"):
                compute.load_space(spec)
        except SpaceError as error:
            errors[spec] = str(error)
    return errors


def _pair_and_compare(specs: Sequence[SpaceSpec], n_failed: int) -> None:
    """Make the first two spaces source and target, and open Explore. If it is unknown how their rows are
    paired, ask instead."""
    source, target, *others = specs
    table = _common_table(specs[:2])
    spaces = [compute.load_space(source), compute.load_space(target)]
    if not table and row_tables.pairs_in_order((source, target), spaces):
        st.session_state[_OFFERED] = tuple(specs)
        st.rerun()
    news = []
    if n_failed:
        news.append(f"{counted(n_failed, 'file')} could not be read; Data says why.")
    if table:
        source, target = row_tables.by_rows(source, target)
        news.append(f"Rows are paired by order, as in {plain_name(Path(table).name)}.")
    elif likely := compute.likely_by_rows(source, target):
        source, target = likely
        news.append("Rows are paired by order.")
    if news:
        session.announce(" ".join(news))
    _compare((source, target, *others))
    go(EXPLORE)


def _add(specs: Sequence[SpaceSpec]) -> None:
    """Add spaces to the workspace. They become source and target if the user has not chosen a pair yet."""
    sources.forget()
    present = session.workspace()
    names = _names(specs)
    known = tuple(dict.fromkeys((*present.spaces, *specs)))
    own = [spec for spec in known if spec not in BUNDLED]
    if len(own) > 1 and (present.source, present.target) == BUNDLED:  # the user has not chosen another pair
        session.compare(f"load {names}", *own[:2], specs)
        session.announce(f"Explore now compares {' and '.join(space_name(spec) for spec in own[:2])}.")
    else:
        session.edit(f"load {names}", spaces=known)
    st.rerun()


def _names(specs: Sequence[SpaceSpec]) -> str:
    names = ", ".join(space_name(spec) for spec in specs[:_MOST_NAMED])
    if len(specs) <= _MOST_NAMED:
        return names
    return counted(len(specs), "space")


def _compare(specs: Sequence[SpaceSpec]) -> None:
    st.session_state.pop(_OFFERED, None)
    sources.forget()
    session.compare(f"load and compare {_names(specs)}", *specs[:2], specs)


def _offer(specs: Sequence[SpaceSpec]) -> None:
    """Ask how the rows of two spaces without ids are paired: only the user knows whether row i of both is the
    same item."""
    spaces = list(map(compute.load_space, specs[:2]))
    first = plain_name(spaces[0].name)
    second = plain_name(spaces[1].name)
    with st.container(border=True, key=_OFFER):
        st.subheader("How are the rows of these two spaces paired?", anchor=False)
        st.markdown(
            f"Neither **{first}** nor **{second}** has ids. Link finds which rows are the same thing. Pair by"
            " row order only if row 1 of both is the same item, row 2 of both, and so on."
        )
        likely = len(spaces[0]) == len(spaces[1]) and agrees_in_order(spaces)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if link_button(_OFFER, likely=not likely):
                _compare(specs)
                go(CONNECT, "Link")
            if row_order_button(_OFFER, spaces, likely=likely):
                _compare((*row_tables.by_rows(*specs[:2]), *specs[2:]))
                go(EXPLORE)


def _common_table(specs: Sequence[SpaceSpec]) -> str | None:
    """The table that describes both of two spaces without ids. Returns None if there is none, or if paired in
    its row order the two spaces are not similar."""
    table = specs[0].option("metadata")
    spaces = list(map(compute.load_space, specs))
    if not table or table != specs[1].option("metadata") or not row_tables.pairs_in_order(specs, spaces):
        return None
    score = score_in_order(spaces)
    if score > score.null.high:
        return table
    return None
