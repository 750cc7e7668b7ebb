"""Load one's own files: which belong together, what each column is, how rows are paired, and straight to
Compare.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import compute, messages, session
from app.plain_text import plain, plain_name
from app.sharing import keep_upload
from app.spaces import catalogue
from app.spaces.columns import ChosenColumns, choose_columns
from app.spaces.unpaired import likely_by_rows
from app.widgets import space_labels, space_name
from app.workspace import Workspace, to_session_file
from relcore.base import records
from relcore.base.access import allowed, data_folder, may_read
from relcore.base.errors import SpaceError
from relcore.base.names import FORMATS
from relcore.base.numbers import counted
from relcore.base.portable import candidates, is_absolute, last_part, with_paths, without_paths
from relcore.base.records import MOST_BYTES
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import by_rows, is_numbered
from relcore.files.columns import what_loads
from relcore.files.items import is_metadata
from relcore.files.reading import shape_of
from relcore.files.tables import TABLES
from relcore.runs.digest import digest_of

# One file of vectors before it is loaded: which of its matrices, what its columns are, and which table
# describes its rows.

_NO_TABLE = "None"


@dataclass(frozen=True)
class FoundFile:
    """A space in the files, ready to be loaded.

    Attributes
    ----------
    n : int or None
        Its rows, where they are known before it is read.
    numbered : bool
        Its files have no ids, so that its rows are numbered.
    size : str
        ``"12 rows × 4 dimensions"``, as far as it is known.
    """

    spec: SpaceSpec
    n: int | None
    numbered: bool
    size: str


@dataclass(frozen=True)
class ChosenMatrix:
    """The matrix to read: the options of a spec that choose it, and its shape as far as it is known."""

    options: tuple[tuple[str, str], ...]
    shape: tuple[int | None, int | None]


def describe(
    path: Path,
    options: Sequence[tuple[str, str]],
    limit: int,
    table: Path | None = None,
    about: ChosenColumns | None = None,
) -> FoundFile | None:
    """A file with what its table of metadata is read as, or its own columns; None while a column or the
    matrix is unclear.
    """
    own = choose_columns(path) if path.suffix.lower() in TABLES and not table else None
    columns = about if table else own
    matrix = choose_matrix(path, options)
    if matrix is None or (columns is None and (table or path.suffix.lower() in TABLES)):
        return None
    options = (*options, *matrix.options)
    numbered = (columns is None or columns.columns.place("ids") is None) and _numbered(path, options)
    options = (
        *options,
        *((("metadata", str(table)),) if table else ()),
        *(columns.options if columns else ()),
    )
    n, dimension = own.shape if own else matrix.shape
    n = about.columns.n if about and n is None else n
    size = what_loads(n, dimension, limit)
    if not own:
        st.caption(f"{size}{' · no ids, so its rows are numbered from 0' * numbered}")
    return FoundFile(
        SpaceSpec("file", str(path), limit, options), n if n is None else min(n, limit), numbered, size
    )


def choose_matrix(path: Path, options: Sequence[tuple[str, str]] = ()) -> ChosenMatrix | None:
    """A chooser where a file has several matrices and the options choose none; None, with a message, until
    one is chosen.
    """
    matrices, usual = catalogue.matrices(path)
    if named := dict(options).get("matrix"):
        return ChosenMatrix((), matrices.get(named, (None, None)))
    if len(matrices) < 2:
        return ChosenMatrix((), shape_of(path) or (None, None))
    names = list(matrices)
    chosen = st.selectbox(
        "Matrix",
        names,
        index=None if usual is None else names.index(usual),
        format_func=lambda name: f"{name} · {what_loads(*matrices[name])}",
        key=f"import.matrix-{digest_of([str(path), *names])[:12]}",
        placeholder="Choose a matrix",
        help="The array, tensor or layer of the file that has a vector for each row.",
        width=400,
    )
    if chosen is None:
        messages.warning(f"{path.name} has {len(names):,} matrices. Choose the one to load.")
        return None
    return ChosenMatrix((("matrix", chosen),) * (chosen != usual), matrices[chosen])


def choose_table(path: Path, tables: Sequence[Path], proposed: Path | None) -> Path | None:
    """A chooser of the table of metadata; None where there is none, or none is chosen."""
    if not tables:
        return None
    options = [_NO_TABLE, *range(len(tables))]
    chosen = st.selectbox(
        "Metadata",
        options,
        index=options.index(tables.index(proposed)) if proposed in tables else 0,
        format_func=lambda one: one if isinstance(one, str) else tables[one].name,
        key=f"import.metadata-{digest_of([str(path), *map(str, tables)])[:12]}",
        help="The table that gives this file's ids, labels, texts, pictures and counts, one row per vector.",
        width=320,
    )
    return None if chosen == _NO_TABLE else tables[chosen]


def _numbered(path: Path, options: Sequence[tuple[str, str]]) -> bool:
    """Whether the first rows of a file have no ids; False where that cannot be seen yet."""
    matrix = [(name, value) for name, value in options if name == "matrix"]
    try:
        return is_numbered(compute.load_space(SpaceSpec("file", str(path), 3, matrix)))
    except SpaceError:  # told when it is loaded
        return False


_COMPARE = Path(__file__).parents[2] / "pages" / "compare.py"
_MOST_NAMED = 3  # spaces in the name of a step
_BY_IDS, _BY_ROWS = "Ids", "Row order"


def draw(workspace: Workspace) -> None:
    """The uploader and all that follows; the copies are deleted when the session ends."""
    uploaded = st.file_uploader(
        "Vectors, and tables of metadata that belong to them",
        accept_multiple_files=True,
        key="spaces.upload",
        help=(
            f"Vectors: {', '.join(sorted(FORMATS))}. Metadata: a .csv, .tsv or .parquet file with one row per"
            " vector, which gives ids, labels, texts, pictures and counts. Rows of two spaces are paired by"
            " their ids."
        ),
    )
    head, body = (
        st.container(),
        st.container(),
    )  # the buttons stay above the fold, however many columns there are
    with st.container(horizontal=True, vertical_alignment="bottom"):
        drop = st.toggle("Leave out rows with NaN or infinite values", key="spaces.drop-invalid")
        first = st.toggle("Keep only the first of duplicate ids", key="spaces.first-duplicate")
        limit = st.number_input(
            "Maximum number of rows",
            1000,
            10_000_000,
            1_000_000,
            10_000,
            key="spaces.upload-limit",
            width=220,
        )
    if not uploaded:
        return
    paths = list(dict.fromkeys(keep_upload(one, session.uploads_folder()) for one in uploaded))
    with body:
        found = _spaces(paths, (("duplicates", "first"),) * first + (("invalid", "drop"),) * drop, int(limit))
    with head:
        _load(workspace, found)


def _spaces(paths: Sequence[Path], options: Sequence[tuple[str, str]], limit: int) -> list[FoundFile | None]:
    """A section for each space; None for one whose columns are unclear."""
    proposed = dict(catalogue.together(paths))
    tables = [path for path in paths if len(paths) > 1 and is_metadata(path)]
    found: list[FoundFile | None] = []
    read: dict[Path, ChosenColumns] = {}  # what each table of metadata is read as
    for path in (path for path in paths if path not in tables):
        with _section(path, several=len(paths) > 1):
            table = choose_table(path, tables, proposed.get(path))
            if table in read:
                st.caption("The columns of the metadata are chosen above.")
            elif table:
                read[table] = choose_columns(table, metadata=True)
            found.append(describe(path, options, limit, table, read.get(table)))
    for path in (path for path in tables if path not in read):
        with _section(path, several=True):
            if any(catalogue.column_roles(path).places("dimension")):
                found.append(describe(path, options, limit))
            else:
                rows = ", ".join(f"{space_name(one.spec)}: {one.n:,}" for one in found if one and one.n)
                n = catalogue.metadata_columns(path).n
                messages.warning(
                    f"{path.name} has no vectors, and {counted(n, 'row')}. No file of vectors has as many"
                    f" ({rows})."
                )
    return found


def _section(path: Path, several: bool) -> DeltaGenerator:
    if not several:
        return st.container()
    section = st.container(border=True)
    section.markdown(f"**{plain_name(path.name)}**")
    return section


def _load(workspace: Workspace, found: Sequence[FoundFile | None]) -> None:
    """How the pair is chosen, and the buttons."""
    ready = [one for one in found if one is not None]
    unclear = len(ready) < len(found)
    own = [
        spec
        for spec in workspace.spaces
        if spec.source != "bundled" and spec not in [one.spec for one in ready]
    ]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pair = _pair(ready, own) if ready else None
        compare = pair is not None and st.button(
            "Load and compare",
            key="spaces.load-compare",
            type="primary",
            icon=":material/join_inner:",
            disabled=unclear,
            help=(
                "Makes the two spaces source and target, with anchors from their shared rows, and opens"
                " Compare."
            ),
        )
        only = st.button(
            _verb(ready, found),
            key="spaces.load-file",
            type="secondary" if pair else "primary",
            icon=":material/upload:",
            disabled=unclear or not ready,
        )
    if pair and pair.note:
        st.caption(pair.note)
    if compare:
        _load_and_compare(workspace, [one.spec for one in ready], pair)
    if only:
        load([one.spec for one in ready])


def _verb(ready: Sequence[FoundFile], found: Sequence[FoundFile | None]) -> str:
    if len(found) != 1 or not ready:
        return "Load only" if ready else "Load"
    size = ready[0].size
    return f"Load {plain_name(Path(ready[0].spec.name).name)}{': ' * bool(size)}{size}"


@dataclass(frozen=True)
class _Pair:
    """What is compared, whether rows are paired by their order, and why that is proposed."""

    source: SpaceSpec
    target: SpaceSpec
    rows: bool
    note: str


def _pair(ready: Sequence[FoundFile], own: Sequence[SpaceSpec]) -> _Pair | None:
    """The choosers of the pair; None where there is nothing to compare with."""
    offered = [*(one.spec for one in ready), *reversed(own)]
    if len(offered) < 2:
        return None
    labels, key = space_labels(offered), digest_of([one.name for one in offered])[:12]
    ends = [
        st.selectbox(
            title,
            range(len(offered)),
            index,
            lambda i: labels[offered[i]],
            key=f"import.{title}-{key}",
            width=200,
        )
        for index, title in enumerate(("Compare", "with"))
    ]
    source, target = (offered[end] for end in ends)
    known = {one.spec: one for one in ready}
    sides = [known[one] for one in (source, target) if one in known]
    bare = [side for side in sides if side.numbered]
    likely = len(sides) == 2 and len(bare) == 1 and sides[0].n == sides[1].n
    by = st.segmented_control(
        "Pair rows by",
        [_BY_IDS, _BY_ROWS],
        default=_BY_ROWS if likely else _BY_IDS,
        key=f"import.by-{digest_of([source.name, target.name, likely])[:12]}",
        required=True,
        help=(
            "Row order: row 1 with row 1, row 2 with row 2, and so on. It needs equally many rows in the same"
            " order."
        ),
    )
    note = (
        f"{plain(Path(bare[0].spec.name).name)} has no ids, and both files have equally many rows."
        if likely
        else ""
    )
    return None if source == target else _Pair(source, target, by == _BY_ROWS, note)


def _load_and_compare(workspace: Workspace, specs: Sequence[SpaceSpec], pair: _Pair) -> None:
    """One step: the spaces join the session, and these two are source and target."""
    ends = (pair.source, pair.target)
    if not read(list(dict.fromkeys([*specs, *ends]))):
        return
    n = [len(compute.load_space(one)) for one in ends]
    if pair.rows and n[0] != n[1]:
        messages.warning(f"Row order needs equally many rows. These have {n[0]:,} and {n[1]:,}.")
        return
    numbered = by_rows(*ends) if pair.rows else likely_by_rows(*ends)
    instead = dict(zip(ends, numbered, strict=True)) if numbered else {}
    source, target = (instead.get(one, one) for one in ends)
    session.edit(
        f"load and compare {space_name(source)} and {space_name(target)}",
        spaces=tuple(dict.fromkeys(instead.get(one, one) for one in (*workspace.spaces, *specs))),
        source=source,
        target=target,
    )
    if numbered:
        session.announce("Rows are paired by their order.")
    st.switch_page(_COMPARE)


def load(specs: Sequence[SpaceSpec]) -> None:
    """Add the spaces to the session as one step, once all can be read."""
    if not read(specs):
        return
    spaces = session.workspace().spaces
    named = ", ".join(space_name(spec) for spec in specs[:_MOST_NAMED])
    names = named if len(specs) <= _MOST_NAMED else counted(len(specs), "space")
    session.edit(f"load {names}", spaces=tuple(dict.fromkeys((*spaces, *specs))))
    if len(specs) == 1:
        space = compute.load_space(specs[0])
        names = f"{names}: {counted(len(space), 'row')}, {counted(space.dimension, 'dimension')}"
    session.announce(f"{names}. Choose {'it' if len(specs) == 1 else 'them'} in the sidebar.")
    st.rerun()


def read(specs: Sequence[SpaceSpec]) -> bool:
    """Whether all of them can be read; else the first error is shown, and nothing is added."""
    for spec in specs:
        try:
            with st.spinner(f"Reading {plain_name(space_name(spec))} …"):
                compute.load_space(spec)
        except SpaceError as error:
            messages.error(error)
            return False
    return True


# Files that a session file or a study file names without their folders: found again among what this session
# has.

_PANES = (  # on one line: a million ids with an indent each are 20 MB
    ',\n "panes": {\n  "selection": %s\n }\n}'
)


def session_file(
    workspace: Workspace, digests: Mapping[SpaceSpec, str], selection: Sequence[str] = ()
) -> str:
    """The session file that users download: it names files without their folders, and holds the selection.

    A selection with which the file would be too large to be opened is left out, and the file says so.
    """
    text = json.dumps(
        without_paths(json.loads(to_session_file(workspace, digests))), indent=1, ensure_ascii=False
    )
    ids = json.dumps(selection, ensure_ascii=False)
    if len((text + ids).encode()) > MOST_BYTES - len(_PANES):
        ids = "null"
    return text.removesuffix("\n}") + _PANES % ids


def rejoined(described: Any) -> Any:
    """The JSON with the path of each file in it: of a loaded space, an upload or a file of RELSCOPE_DATA with
    this name.

    Of several files the one whose digest the JSON tells is taken.

    Raises
    ------
    SpaceError
        There is none.
    """
    return with_paths(described, _find)


def _find(spec: Mapping[str, Any]) -> str:
    if is_absolute(spec["name"]) and allowed(spec["name"]).exists():
        return spec["name"]
    found = [
        str(path) for path in _known(spec) if may_read(path)
    ]  # a refusal would tell that a file is there
    if found:
        return next((path for path in found if _has_digest(path, spec)), found[0])
    if spec["source"] != "file":
        return spec["name"]
    content = (
        f" (content {spec['digest'][:8]}…)" if isinstance(spec.get("digest"), str) and spec["digest"] else ""
    )
    raise SpaceError(
        f"expected the file {last_part(spec['name'])!r}{content} in this session, got none of this name; load"
        " it on the Spaces page, then open this file again"
    )


def _known(spec: Mapping[str, Any]) -> Iterator[Path]:
    loaded = (Path(one.name).parent for one in session.workspace().spaces if one.source in ("file", "sample"))
    uploads = sorted(session.uploads_folder().glob("*/"))
    data = data_folder()
    return candidates(spec, dict.fromkeys((*loaded, *uploads)), [data] if data else [])


def _has_digest(path: str, spec: Mapping[str, Any]) -> bool:
    """Whether the file holds the space with the digest in the JSON; True where it tells none."""
    if not spec.get("digest"):
        return True
    described = {name: value for name, value in spec.items() if name != "digest"}
    try:
        return (
            compute.load_space(records.from_json(SpaceSpec, described | {"name": path})).digest
            == spec["digest"]
        )
    except SpaceError:
        return False
