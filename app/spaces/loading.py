"""Load files as spaces. If two spaces have no id in common, pair their rows."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

import pandas as pd
import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session
from app.places import CONNECT, EXPLORE, go
from app.plain_text import plain, plain_name
from app.spaces import sources
from app.widgets import bound, space_labels, space_name
from app.workspace import BUNDLED, Workspace
from relcore.base import access, records
from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import counted, short
from relcore.base.records import candidates, is_absolute, last_part, with_paths
from relcore.catalog import row_tables
from relcore.catalog.catalog import SpaceSpec
from relcore.files import reading
from relcore.files.columns import (
    NO_CHOICES,
    OPTIONS,
    TEXT_OR,
    Choices,
    Columns,
    overview,
    shown_name,
    size_in_words,
)
from relcore.files.tables import TABLES
from relcore.runs.entries import digest_of
from relcore.scores.cka import linear_cka
from relcore.scores.score import Score
from relcore.spaces.space import LatentSpace

Result = TypeVar("Result")
Options = tuple[tuple[str, str], ...]  # the options of a `SpaceSpec`
ToLoad = tuple[SpaceSpec, str]  # a spec, and the size of the space in words if it is known
Read = tuple[Columns, Options]  # how to read a table
_AUTOMATIC = "Automatic"
_NONE = "None"
_CHOOSERS = {
    "id_column": ("Ids", "Rows of two spaces are paired by their ids."),
    "label_column": ("Labels", "One category per row, for colours and classifiers."),
    "count_column": ("Counts", "How often each row occurs; “most frequent” anchors use it."),
    "text_column": ("Text", "Shown on hover and in the inspector."),
    "picture_column": (
        "Pictures",
        "Pictures, or paths of picture files. Shown on hover and in the inspector.",
    ),
}
_ROLES = {option: role for role, option in OPTIONS.items()}
_FAILED = "relscope.spaces-failed"  # space that could not be loaded → the error

# State key: spaces without ids, which are compared once the user says how their rows are paired.
_OFFERED = "relscope.spaces-offered"
_MOST_NAMES = 2_000  # number of columns offered in a chooser
_COMPARED = 5000  # number of rows whose order is compared, taken from the start
_FEW = 8  # a file with at most this many columns of numbers may use one as ids
_MOST_NAMED = 3  # number of spaces in the name of an undo step


@compute.cached(128, key=lambda read, path, *settings: (read, path, compute.file_stamps([path]), *settings))
def read_about(read: Callable[..., Result], path: Path, *settings: Any) -> Result:
    """The result of a function that reads a file. The session must have access to the file. If the file has
    changed, it is read again."""
    return read(access.regular_file(access.readable_path(path)), *settings)


@compute.cached(32, key=lambda paths: (paths, compute.file_stamps(paths)))
def tables_of(paths: tuple[Path, ...]) -> dict[Path, Path | None]:
    """A dictionary from each file that is a space to the table that describes its rows, None if there is no
    table."""
    described = {path for path in paths if reading.is_metadata(path)}
    specs = [SpaceSpec("file", str(path)) for path in sorted(paths, key=described.__contains__)]
    joined = row_tables.with_their_tables(specs, in_order=False)
    tables = ((Path(spec.name), spec.option("metadata")) for spec in joined)
    return {path: Path(table) if table else None for path, table in tables}


def describe(
    path: Path,
    options: Options,
    limit: int,
    tables: Sequence[Path] = (),
    proposed: Path | None = None,
    known: dict[Path, Read | None] | None = None,
    below: DeltaGenerator | None = None,
) -> ToLoad | None:
    """The spec for a file, with the metadata, columns and matrix that the user chooses. While a choice is
    unclear, a message says so, and None is returned.

    `tables` are tables that may describe the rows of the file, and `proposed` is the most likely one. `known`
    has the result of each table that was read before, and `below` is the container that shows its columns.
    """
    known = {} if known is None else known
    table = None
    if tables:
        table = _choose_table(path, tables, proposed)
    if table and table not in known:
        with (below or st.container()).container(border=True):
            st.markdown(f"**{plain_name(table.name)}**")
            known[table] = choose_columns(table, metadata=True)
    is_table = not table and path.suffix.lower() in TABLES
    if table:
        read = known[table]
    elif is_table:
        read = choose_columns(path)
    else:
        read = None
    matrix = _choose_matrix(path, options)
    if matrix is None or (read is None and (table or is_table)):
        return None
    chosen, (n, dimension) = matrix
    if not is_table and dimension is None:
        compute.load_space(SpaceSpec("file", str(path), limit, options))  # an invalid file raises its error
    if read:
        if is_table:
            n = read[0].n
            dimension = read[0].dimension
        else:
            n = read[0].n if n is None else n
    size = size_in_words(n, dimension, limit)
    if not is_table:
        st.caption(". ".join(filter(None, (size, table and _joined(path, table, read[0])))))
    options = (*options, *chosen, *((("metadata", str(table)),) if table else ()), *(read[1] if read else ()))
    return SpaceSpec("file", str(path), limit, options), size


def _choose_matrix(path: Path, options: Options) -> tuple[Options, tuple[int | None, int | None]] | None:
    """The options that choose a matrix in the file, and its shape if it is known. Returns None until the user
    has chosen a matrix."""
    about = None
    if access.readable_path(path).is_file():
        about = read_about(reading.description_of, path)
    if about:
        matrices = about.choosable
        usual = about.usual
    else:
        matrices = {}
        usual = None
    if named := dict(options).get("matrix"):
        return (), matrices.get(named, (None, None))
    if len(matrices) < 2:
        return (), reading.shape_of(path) or (None, None)
    names = list(matrices)
    chosen = st.selectbox(
        "Matrix",
        names,
        index=None if usual is None else names.index(usual),
        format_func=lambda name: f"{name} · {size_in_words(*matrices[name])}",
        key=f"import.matrix-{digest_of([str(path), *names])[:12]}",
        placeholder="Choose a matrix",
        help="The array, tensor or layer of the file that has a vector for each row.",
        width=400,
    )
    if chosen is None:
        messages.warning(f"{path.name} has {len(names):,} matrices. Choose the one to load.")
        return None
    return (("matrix", chosen),) * (chosen != usual), matrices[chosen]


def _joined(path: Path, table: Path, columns: Columns) -> str:
    """A sentence on how `read_metadata` joins a table to a file of vectors."""
    if columns.place("ids") is not None and path.suffix.lower() != ".npy":
        return f"{plain_name(table.name)} is joined by id if this file has ids, else by row order."
    return f"Row 1 of {plain_name(table.name)} describes row 1 of this file, and so on."


def _choose_table(path: Path, tables: Sequence[Path], proposed: Path | None) -> Path | None:
    index = 0
    if proposed in tables:
        index = 1 + tables.index(proposed)
    chosen = st.selectbox(
        "Texts and labels",
        [_NONE, *range(len(tables))],
        index=index,
        format_func=lambda number: number if number == _NONE else tables[number].name,
        key=f"import.metadata-{digest_of([str(path), *map(str, tables)])[:12]}",
        help="The table that gives this file's ids, labels, texts, pictures and counts, one row per vector.",
        width=320,
    )
    if chosen == _NONE:
        return None
    return tables[chosen]


def choose_columns(path: Path, metadata: bool = False) -> Read | None:
    """Draw the columns and their choosers, and return how to read the table. While a column is unclear, a
    message says so, and None is returned.

    For metadata, the options state the role of every column, so a later change of the automatic roles has no
    effect.
    """
    if metadata:
        read = reading.metadata_columns
    else:
        read = reading.column_roles
    encoding = sources.choose_encoding(path)
    if encoding is None:
        return None

    def roles(choices: Choices = NO_CHOICES) -> Columns:
        return read_about(read, path, replace(choices, encoding=encoding))

    try:
        choices = _column_choosers([column.name for column in roles().columns], path, roles)
        columns = roles(choices)
    except SpaceError as error:
        messages.error(error)
        return None
    if columns.note:
        st.caption(f"Read with {plain(columns.note)}.")
    _draw_columns(columns, path, encoding)
    if metadata:
        places = {option: columns.place(role) for option, role in _ROLES.items()}
        chosen = {option: columns.columns[at].name for option, at in places.items() if at is not None}
    else:
        try:
            columns.check(path.name)
        except SpaceError as error:
            messages.warning(error)
            return None
        chosen = {option: value for option in _CHOOSERS if (value := getattr(choices, option)) is not None}
    if choices.ignore:
        chosen["ignore"] = json.dumps(list(choices.ignore), ensure_ascii=False)
    if encoding:
        chosen["encoding"] = encoding
    return columns, tuple(chosen.items())


def _column_choosers(names: Sequence[str], path: Path, roles: Callable[[Choices], Columns]) -> Choices:
    key = f"columns.{digest_of([str(path), list(names)])[:12]}"
    offered = list(names[:_MOST_NAMES])
    chosen: dict[str, Any] = {}
    with st.popover("Change columns", icon=":material/view_column:"):
        for option, (label, help_) in _CHOOSERS.items():
            none = _NONE
            if option == "id_column":
                none = "Row numbers"
            chosen[option] = st.selectbox(
                label,
                [_AUTOMATIC, none, *range(len(offered))],
                format_func=lambda choice: choice if isinstance(choice, str) else shown_name(offered[choice]),
                key=f"{key}.{option}",
                help=help_,
            )
        left_out = st.multiselect(
            "Leave out",
            range(len(offered)),
            format_func=lambda number: shown_name(offered[number]),
            key=f"{key}.ignore",
            placeholder="No column",
            help="Columns to skip: they are no dimensions and have none of the roles above.",
        )
    named = {option: offered[number] for option, number in chosen.items() if isinstance(number, int)}
    choices = Choices(**named, ignore=tuple(offered[number] for number in left_out))
    for option in (option for option in chosen if option not in named and chosen[option] != _AUTOMATIC):
        # Ignore columns that have this role by default, because the user chose no column for it.
        while taken := _columns_of_role(roles(choices), option):
            choices = replace(choices, ignore=(*choices.ignore, *taken))
    return choices


def _columns_of_role(columns: Columns, option: str) -> list[str]:
    ids = option == "id_column"
    role = _ROLES[option]
    return [item.name for item in columns.columns if item.role == role or (ids and item.reason == TEXT_OR)]


def _draw_columns(columns: Columns, path: Path, encoding: str) -> None:
    table = pd.DataFrame(overview(columns), columns=["column", "read as", "why"])
    cells = read_about(reading.first_cells, path, 3, encoding)
    names = {column.name for column in columns.columns}
    # A row of the overview may stand for several columns; show the cells of the first.
    firsts = [title if title in names else title.partition(" … ")[0] for title in table["column"]]
    for row in range(max(map(len, cells.values()), default=0)):
        table[f"row {row + 1}"] = [cells[name][row] if name in cells else "" for name in firsts]
    widths = {"column": 160, "read as": 120, "why": 220}
    look = {name: st.column_config.TextColumn(width=width) for name, width in widths.items()}
    height = min(35 * (len(table) + 1) + 3, 320)
    st.dataframe(table, hide_index=True, height=height, column_config=look)


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
    failed: dict[SpaceSpec, str] = st.session_state.get(_FAILED, {})
    told = " ".join(failed.values())
    asks = {
        "spaces.drop-invalid": "NaN or infinite" in told,
        "spaces.first-duplicate": "ids must be distinct" in told,
    }
    titles = ("Leave out rows with NaN or infinite values", "Keep only the first of duplicate ids")
    with head:  # for the buttons that correct the error
        for message in failed.values():
            messages.error(message)
        offered = _waiting_spaces(paths)
        if offered:
            _offer(offered)
    with more.popover("More", icon=":material/tune:"):
        limit = row_limit("upload-limit", 1_000_000)
        later = st.container()
    drop, first = (
        (head if asks[key] else later).toggle(title, key=key, persist_state="session")
        for key, title in zip(asks, titles, strict=True)
    )
    buttons = head.container(horizontal=True, vertical_alignment="center")
    errors = head.container()
    with buttons, st.spinner("Reading the files …"), body:
        options = (("duplicates", "first"),) * first + (("invalid", "drop"),) * drop
        described = _describe_all(paths, options, limit, errors)
    ready = [to_load[0] for to_load in described.values() if to_load]
    left_out = [path.name for path, to_load in described.items() if not to_load]
    names = [plain_name(Path(spec.name).name) for spec in ready]
    sizes = [to_load[1] for to_load in described.values() if to_load]
    size = ""
    if len(described) == 1 and ready and sizes[0]:
        size = f": {sizes[0]}"
    with buttons:
        pair = (
            len(ready) > 1
            and not offered
            and st.button(
                f"Load and compare {names[0]} and {names[1]}",
                key="spaces.load-compare",
                type="primary",
                icon=":material/join_inner:",
                help="Makes them source and target, with anchors from their shared rows.",
            )
        )
        only = ready and st.button(
            f"Load {names[0]}{size}" if len(ready) == 1 else f"Only load {counted(len(ready), 'file')}",
            key="spaces.load-file",
            type="secondary" if len(ready) > 1 else "primary",
            icon=":material/upload:",
        )
    if left_out and len(described) > 1:
        more = ""
        if len(left_out) > _MOST_NAMED:
            more = f" and {len(left_out) - _MOST_NAMED} more"
        with head:
            messages.warning(f"Not loaded: {', '.join(left_out[:_MOST_NAMED])}{more}.")
    if pair or only:
        load(ready, compare=pair)


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
    tables = [path for path in paths if len(paths) > 1 and reading.is_metadata(path)]
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
                    n = counted(read_about(reading.metadata_columns, path).n, "row")
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
    failed: dict[SpaceSpec, str] = {}
    for spec in specs:
        try:
            with st.spinner(f"Reading {plain_name(space_name(spec))} …"):
                compute.load_space(spec)
        except SpaceError as error:
            failed[spec] = str(error)
    st.session_state[_FAILED] = failed
    specs = [spec for spec in specs if spec not in failed]
    if len(specs) < 1 + compare:
        st.rerun()
    st.session_state.pop(_OFFERED, None)
    table = None
    if compare:
        table = _common_table(specs[:2])
    if (
        compare
        and not table
        and row_tables.pairs_in_order(specs[:2], list(map(compute.load_space, specs[:2])))
    ):
        st.session_state[_OFFERED] = tuple(specs)
        st.rerun()
    if compare:
        news = []
        if failed:
            news = [f"{counted(len(failed), 'file')} could not be read; Data says why."]
        if paired := row_tables.by_rows(*specs[:2]) if table else likely_by_rows(*specs[:2]):
            specs = (*paired, *specs[2:])
            why = ""
            if table:
                why = f", as in {plain_name(Path(table).name)}"
            news.append(f"Rows are paired by order{why}.")
        if news:
            session.announce(" ".join(news))
        _compare(specs)
        go(EXPLORE)
    sources.forget()
    present = session.workspace()
    names = _names(specs)
    known = tuple(dict.fromkeys((*present.spaces, *specs)))
    own = [spec for spec in known if spec not in BUNDLED]
    if len(own) > 1 and (present.source, present.target) == BUNDLED:  # the user has not chosen another pair
        session.compare(f"load {names}", *own[:2], specs)
        session.announce(f"Loaded {names}. Explore compares them.")
    else:
        session.edit(f"load {names}", spaces=known)
        them = "them"
        if len(specs) == 1:
            them = "it"
        session.announce(f"Loaded {names}. Choose {them} above.")
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
    first, second = (plain_name(space.name) for space in spaces)
    with st.container(border=True, key="unpaired"):
        st.subheader("How are the rows of these two spaces paired?", anchor=False)
        st.markdown(
            f"Neither **{first}** nor **{second}** has ids. Link finds which rows are the same thing. Pair by"
            " row order only if row 1 of both is the same item, row 2 of both, and so on."
        )
        likely = len(spaces[0]) == len(spaces[1]) and _agrees_in_order(spaces)
        with st.container(horizontal=True, vertical_alignment="bottom"):
            if _link_button(likely=not likely):
                _compare(specs)
                go(CONNECT, "Link")
            if _row_order_button(spaces, likely=likely):
                _compare((*row_tables.by_rows(*specs[:2]), *specs[2:]))
                go(EXPLORE)


def _common_table(specs: Sequence[SpaceSpec]) -> str | None:
    """The table that describes both of two spaces without ids. Returns None if there is none, or if paired in
    its row order the two spaces are not similar."""
    table = specs[0].option("metadata")
    spaces = list(map(compute.load_space, specs))
    if not table or table != specs[1].option("metadata") or not row_tables.pairs_in_order(specs, spaces):
        return None
    score = _score_in_order(spaces)
    if score > score.null.high:
        return table
    return None


def _score_in_order(spaces: Sequence[LatentSpace]) -> Score:
    return linear_cka(*(space.vectors[:_COMPARED] for space in spaces))


def _agrees_in_order(spaces: Sequence[LatentSpace]) -> bool:
    """Whether two spaces with equally many rows are similar in row order. A caption shows the score."""
    score = _score_in_order(spaces)
    agrees = score > score.null.high
    told = "rows do not agree in this order"
    if agrees:
        told = "rows agree, so they may be in the same order"
    st.caption(
        f"The {told}: linear CKA {short(score)}, chance up to {short(score.null.high)}, n = {score.n:,}."
    )
    return agrees


def _link_button(likely: bool) -> bool:
    return st.button(
        "Link the rows",
        type="primary" if likely else "secondary",
        key="unpaired.link",
        icon=":material/hub:",
        help="Finds which rows are the same thing, from a few pairs that you know or from none.",
    )


def draw_unpaired(workspace: Workspace) -> None:
    """Show examples of the ids of both spaces, and offer methods that pair their rows."""
    ends = workspace.source, workspace.target
    spaces = list(map(compute.load_space, ends))
    labels = space_labels(workspace.spaces)
    titles = [plain_name(labels[spec]) for spec in ends]
    with st.container(border=True, key="unpaired"):
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
            if _link_button(likely=not numbered or not same):
                go(CONNECT, "Link")
            if any(spec.source == "sample" for spec in ends):
                st.caption(
                    "Samples of shards pair by ids only: write the same ids into the shards of both folders."
                )
            elif _row_order_button(spaces, likely=numbered):
                pair = dict(zip(ends, row_tables.by_rows(*ends), strict=True))
                session.guarded(replace_spaces, "pair by row order", pair)
                st.rerun()
            for side, spec, title in zip(("source", "target"), ends, titles, strict=True):
                _id_column(spec, side, title)
        st.caption("You can also choose other spaces above.")


def _row_order_button(spaces: Sequence[LatentSpace], likely: bool) -> bool:
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
        key="unpaired.rows",
        icon=":material/format_list_numbered:",
        type="primary" if likely else "secondary",
        help="Right if both spaces have the same items in the same order.",
    )


def _id_column(spec: SpaceSpec, side: str, title: str) -> None:
    path = Path(spec.option("metadata") or spec.name)
    if spec.source != "file" or path.suffix.lower() not in reading.SUFFIXES:
        return
    if spec.option("metadata"):
        read = reading.metadata_columns
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
        if name != _AUTOMATIC:
            options |= {"id_column": name}
        replace_spaces(f"ids from {shown_name(name)}", {spec: replace(spec, options=tuple(options.items()))})

    key = f"unpaired.{side}-{digest_of(spec)[:12]}"
    value = chosen if chosen in names else _AUTOMATIC
    bound(
        st.selectbox,
        f"Id column of {title}",
        key,
        value,
        apply,
        options=[_AUTOMATIC, *names],
        format_func=shown_name,
        width=240,
    )


def replace_spaces(step: str, instead: Mapping[SpaceSpec, SpaceSpec]) -> None:
    """Replace spaces by others as one step. Raises a SpaceError if a new space cannot be read."""
    for spec in instead.values():
        compute.load_space(spec)
    session.set_workspace(step, session.with_spaces(session.workspace(), instead))


def likely_by_rows(source: SpaceSpec, target: SpaceSpec) -> tuple[SpaceSpec, SpaceSpec] | None:
    """Both spaces with row numbers as ids. Returns None if pairing by row number is not likely to be
    right."""
    if "sample" in (source.source, target.source):  # samples are not in a common order
        return None
    try:
        likely = row_tables.pairs_by_rows(compute.load_space(source), compute.load_space(target))
    except SpaceError:
        return None
    if likely:
        return row_tables.by_rows(source, target)
    return None


def with_file_paths(described: Any) -> Any:
    """The JSON with the paths of its files restored. Each file is found by its name and digest among the
    files of this session.

    Raises a SpaceError if a file is not found.
    """
    return with_paths(described, _find)


def _find(spec: Mapping[str, Any]) -> str:
    name = spec["name"]
    digest = spec.get("digest")
    if is_absolute(name) and access.readable_path(name).exists():
        return name
    # Skip files that the session may not read: an error would reveal that they exist.
    paths = [str(path) for path in _candidate_paths(spec) if access.may_read(path)]
    if paths:
        return next((path for path in paths if not digest or _digest(path, spec) == digest), paths[0])
    if spec["source"] != "file":
        return name
    content = ""
    if isinstance(digest, str) and digest:
        content = f" (content {digest[:8]}…)"
    raise SpaceError(
        f"expected the file {last_part(name)!r}{content} in this session, got none of this name; load it in"
        " Data, then open this file again"
    )


def _candidate_paths(spec: Mapping[str, Any]) -> Iterator[Path]:
    specs = session.workspace().spaces
    loaded = (Path(loaded.name).parent for loaded in specs if loaded.source in ("file", "sample"))
    uploads = sorted(session.member().uploads_folder().glob("*/"))
    data = access.data_folder()
    return candidates(spec, dict.fromkeys((*loaded, *uploads)), [data] if data else [])


def _digest(path: str, spec: Mapping[str, Any]) -> str:
    described = {name: value for name, value in spec.items() if name != "digest"}
    try:
        return compute.load_space(records.from_json(SpaceSpec, described | {"name": path})).digest
    except SpaceError:
        return ""
