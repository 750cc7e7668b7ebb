"""Everything that can be loaded, from this machine and over the network: choose one, or a whole series of
checkpoints.
"""

from __future__ import annotations

from pathlib import Path

import pandas as pd
import streamlit as st

from app.plain_text import plain_name
from app.spaces import catalogue, own_files
from app.spaces.columns import choose_columns
from app.spaces.own_files import FoundFile, choose_table, describe
from app.tables import chosen_rows
from relcore.catalog.catalog import CatalogEntry, SpaceSpec
from relcore.files.columns import what_loads
from relcore.runs.digest import digest_of


def draw(folder: str | None) -> None:
    """A table for each place, with the choosers of the chosen entry below it."""
    entries = catalogue.available(folder)
    for where, title in (("here", "On this machine"), ("needs the network", "Needs the network")):
        some = [entry for entry in entries if entry.where == where]
        if some:
            st.markdown(f"**{title}**")
            _draw_place(some, where, folder)


def _draw_place(entries: list[CatalogEntry], where: str, folder: str | None) -> None:
    table = pd.DataFrame(
        [
            {
                "name": entry.name,
                "kind": entry.kind,
                "rows": entry.n,
                "dimensions": entry.dimension,
                "megabytes": entry.size_bytes / 1e6,
                "what": entry.description,
            }
            for entry in entries
        ]
    )
    rows = chosen_rows(
        table,
        f"spaces.catalogue-{where}-{digest_of([entry.name for entry in entries])}",
        column_config={"megabytes": st.column_config.NumberColumn(format="%.0f")},
    )
    chosen = entries[rows[0]] if rows else None
    body, buttons = st.container(), st.container(horizontal=True, vertical_alignment="bottom")
    limit = int(
        buttons.number_input(
            "Maximum number of rows",
            1000,
            10_000_000,
            200_000,
            10_000,
            key=f"spaces.limit-{where}",
            width=220,
        )
    )
    with body:
        found = None if chosen is None else _described(chosen, limit)
    with buttons:
        verb = (
            "Load"
            if where == "here"
            else f"Download {chosen.size_bytes / 1e6:,.0f} MB and load"
            if chosen
            else "Download"
        )
        verb += f" {found.size}" if where == "here" and found and found.size else ""
        if st.button(
            verb,
            key=f"spaces.load-{where}",
            icon=":material/download:",
            disabled=found is None,
            type="primary",
        ):
            own_files.load([found.spec])
        if where == "here":
            _load_series(folder, chosen, found, limit)


def _described(entry: CatalogEntry, limit: int) -> FoundFile | None:
    """What is loaded of an entry; None while something about its file is unclear."""
    spec = entry.spec
    fits = spec.source == "bundled" or (entry.n is not None and entry.n <= limit)
    if spec.source != "file":
        whole = SpaceSpec(spec.source, spec.name, spec.limit if fits else limit, spec.options)
        return FoundFile(whole, entry.n, False, what_loads(entry.n, entry.dimension, None if fits else limit))
    path = Path(spec.name)
    tables = [] if path.is_dir() else [one for one in catalogue.tables_beside(path) if one != path]
    proposed = dict(catalogue.together([path, *tables])).get(path) if tables else None
    table = choose_table(path, tables, proposed)
    about = choose_columns(table, metadata=True) if table else None
    found = describe(path, spec.options, limit, table, about)
    if found is None or not fits:
        return found
    return FoundFile(
        SpaceSpec("file", spec.name, spec.limit, found.spec.options), found.n, found.numbered, found.size
    )


def _load_series(
    folder: str | None, chosen: CatalogEntry | None, found: FoundFile | None, limit: int
) -> None:
    """A button that loads all spaces of a folder of checkpoints, with the settings of the chosen one."""
    is_file = chosen is not None and chosen.spec.source == "file"
    if chosen is not None and not (is_file and found):
        return
    paths = catalogue.series(folder, Path(chosen.spec.name) if is_file else None)
    if len(paths) < 2:
        return
    place = Path(folder) if chosen is None else _around(paths)
    if st.button(
        f"Load all {len(paths)} of {plain_name(place.name)}",
        key="spaces.load-series",
        icon=":material/stacks:",
        help=(
            "A folder with one space per file, or per sub-folder, such as the checkpoints of a training, in"
            " natural order."
        ),
    ):
        options = found.spec.options if found else ()
        own_files.load(
            [SpaceSpec("file", str(path), found.spec.limit if found else limit, options) for path in paths]
        )


def _around(paths: list[Path]) -> Path:
    """The folder of a series: that of its files, or the one around the folders that hold one file each."""
    parents = {path.parent for path in paths}
    return parents.pop() if len(parents) == 1 else paths[0].parent.parent
