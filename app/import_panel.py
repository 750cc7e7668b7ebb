"""Load one's own files: which belong together, what each column is, how rows are paired, and straight to Compare."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import streamlit as st
from streamlit.delta_generator import DeltaGenerator

from app import catalogue, compute, messages, session
from app.column_panel import ChosenColumns, choose_columns
from app.found_file import Found, choose_table, describe
from app.plain_text import plain, plain_name
from app.unpaired import likely_by_rows
from app.uploads import keep_upload
from app.widgets import space_labels, space_name
from app.workspace import Workspace
from relcore.numbers import counted
from relcore.sources.belonging import by_rows, is_metadata
from relcore.sources.catalog import SpaceSpec
from relcore.sources.files import READERS
from relcore.spaces import SpaceError
from relcore.store import digest_of

_COMPARE = Path(__file__).parents[1] / "pages" / "compare.py"
_MOST_NAMED = 3  # spaces in the name of a step
_BY_IDS, _BY_ROWS = "Ids", "Row order"


def draw(workspace: Workspace) -> None:
    """The uploader and all that follows; the copies are deleted when the session ends."""
    uploaded = st.file_uploader(
        "Vectors, and tables of metadata that belong to them",
        accept_multiple_files=True,
        key="spaces.upload",
        help=(
            f"Vectors: {', '.join(sorted(READERS))}. Metadata: a .csv, .tsv or .parquet file with one row per vector, which "
            "gives ids, labels, texts, pictures and counts. Rows of two spaces are paired by their ids."
        ),
    )
    head, body = st.container(), st.container()  # the buttons stay above the fold, however many columns there are
    with st.container(horizontal=True, vertical_alignment="bottom"):
        drop = st.toggle("Leave out rows with NaN or infinite values", key="spaces.drop-invalid")
        first = st.toggle("Keep only the first of duplicate ids", key="spaces.first-duplicate")
        limit = st.number_input(
            "Maximum number of rows", 1000, 10_000_000, 1_000_000, 10_000, key="spaces.upload-limit", width=220
        )
    if not uploaded:
        return
    paths = list(dict.fromkeys(keep_upload(one, session.uploads_folder()) for one in uploaded))
    with body:
        found = _spaces(paths, (("duplicates", "first"),) * first + (("invalid", "drop"),) * drop, int(limit))
    with head:
        _load(workspace, found)


def _spaces(paths: Sequence[Path], options: Sequence[tuple[str, str]], limit: int) -> list[Found | None]:
    """A section for each space; None for one whose columns are unclear."""
    proposed = dict(catalogue.together(paths))
    tables = [path for path in paths if len(paths) > 1 and is_metadata(path)]
    found: list[Found | None] = []
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
                    f"{path.name} has no vectors, and {counted(n, 'row')}. No file of vectors has as many ({rows})."
                )
    return found


def _section(path: Path, several: bool) -> DeltaGenerator:
    if not several:
        return st.container()
    section = st.container(border=True)
    section.markdown(f"**{plain_name(path.name)}**")
    return section


def _load(workspace: Workspace, found: Sequence[Found | None]) -> None:
    """How the pair is chosen, and the buttons."""
    ready = [one for one in found if one is not None]
    unclear = len(ready) < len(found)
    own = [spec for spec in workspace.spaces if spec.source != "bundled" and spec not in [one.spec for one in ready]]
    with st.container(horizontal=True, vertical_alignment="bottom"):
        pair = _pair(ready, own) if ready else None
        compare = pair is not None and st.button(
            "Load and compare",
            key="spaces.load-compare",
            type="primary",
            icon=":material/join_inner:",
            disabled=unclear,
            help="Makes the two spaces source and target, with anchors from their shared rows, and opens Compare.",
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


def _verb(ready: Sequence[Found], found: Sequence[Found | None]) -> str:
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


def _pair(ready: Sequence[Found], own: Sequence[SpaceSpec]) -> _Pair | None:
    """The choosers of the pair; None where there is nothing to compare with."""
    offered = [*(one.spec for one in ready), *reversed(own)]
    if len(offered) < 2:
        return None
    labels, key = space_labels(offered), digest_of([one.name for one in offered])[:12]
    ends = [
        st.selectbox(title, range(len(offered)), index, lambda i: labels[offered[i]], key=f"import.{title}-{key}", width=200)
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
        help="Row order: row 1 with row 1, row 2 with row 2, and so on. It needs equally many rows in the same order.",
    )
    note = f"{plain(Path(bare[0].spec.name).name)} has no ids, and both files have equally many rows." if likely else ""
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
