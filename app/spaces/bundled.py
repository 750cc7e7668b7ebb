"""The bundled vectors and datasets, and those in the data folder."""

from __future__ import annotations

import os
from dataclasses import replace
from functools import partial
from itertools import islice
from pathlib import Path

import pandas as pd
import streamlit as st

from app import messages, sharing
from app.encode import forms, panel
from app.page_settings import segments
from app.spaces import file_settings, loading
from app.tables import chosen_rows
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.catalog import catalog
from relcore.catalog.catalog import CatalogEntry
from relcore.files import item_rows
from relcore.files.columns import size_in_words
from relcore.runs.entries import digest_of

_MOST_TABLES = 50  # number of tables offered from one folder


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[CatalogEntry]:
    return catalog.available(folder)


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _tables_in(folder: str) -> list[str]:
    tables = (path for path in sorted(Path(folder).iterdir()) if path.suffix.lower() in item_rows.SUFFIXES)
    return [str(path) for path in islice(tables, _MOST_TABLES) if item_rows.is_metadata(path)]


def draw() -> None:
    """Draw the vectors and datasets that are bundled, and those in the data folder."""
    with st.container(horizontal=True, vertical_alignment="center"):
        kinds = ("Vectors", "Texts and pictures")
        kind = segments("What", kinds, "bundled.kind", label_visibility="collapsed")
        with st.popover("Data folder", icon=":material/folder:"):
            folder = _data_folder()
    if kind == "Vectors":
        _draw_catalogue(folder)
    else:
        panel.draw(partial(forms.choose_bundled, folder))


def _data_folder() -> str | None:
    """The folder that the user chose. Its files appear in the lists of datasets and spaces. None means
    RELSCOPE_DATA."""
    if access.is_shared():
        usual = "A folder inside the data folder"
    else:
        usual = os.environ.get(access.DATA)
    folder = st.text_input(
        "Data folder",
        value=None,
        placeholder=usual or "A folder on the machine that runs Relscope; RELSCOPE_DATA sets the default",
        help=sharing.help_with_paths("Datasets and spaces in it appear in these lists."),
        key="spaces.folder",
        width=480,
        persist_state="session",
    )
    if access.is_shared():
        st.caption(sharing.paths())
    try:
        if not folder or access.readable_path(folder).is_dir():
            return folder or None
        problem = f"“{folder}” is not a folder on the machine that runs Relscope."
    except SpaceError as error:
        folder = None
        problem = str(error)
    messages.warning(problem, icon=":material/folder_off:")
    return folder


def _draw_catalogue(folder: str | None) -> None:
    if folder:
        folder = str(access.readable_path(folder))
    entries = _available(folder or None)
    for where, title in (
        ("here", "On this machine"),
        ("needs the network", "Not bundled: needs the network"),
    ):
        some = [entry for entry in entries if entry.where == where]
        if some:
            st.markdown(f"**{title}**")
            _draw_place(some, where)


def _draw_place(entries: list[CatalogEntry], where: str) -> None:
    columns = {"name": "name", "kind": "kind", "n": "rows", "dimension": "dimensions"}
    columns |= {"size_bytes": "megabytes", "description": "what"}
    rows = [[getattr(entry, field) for field in columns] for entry in entries]
    table = pd.DataFrame(rows, columns=list(columns.values()))
    table["megabytes"] /= 1e6
    key = f"spaces.catalogue-{where}-{digest_of([entry.name for entry in entries])}"
    formats = {"rows": "localized", "megabytes": "%.0f"}
    look = {name: st.column_config.NumberColumn(format=shown) for name, shown in formats.items()}
    chosen = [entries[row] for row in chosen_rows(table, key, several=True, column_config=look)]
    body = st.container()
    buttons = st.container(horizontal=True, vertical_alignment="bottom")
    with buttons:
        limit = loading.row_limit(f"limit-{where}", 200_000)
    with body:
        one = None
        if len(chosen) == 1:
            one = _describe_entry(chosen[0], limit)
    if one:
        what = one[1]
    elif len(chosen) > 1:
        what = f"{len(chosen)} spaces"
    else:
        what = ""
    size = ""
    if chosen:
        size = f" {sum(entry.size_bytes for entry in chosen) / 1e6:,.0f} MB and load"
    look = {"key": f"spaces.load-{where}", "icon": ":material/download:", "type": "primary"}
    if where == "here":
        verb = f"Load {what}".strip()
    else:
        verb = f"Download{size}"
    if not buttons.button(verb, disabled=not (one or len(chosen) > 1), **look):
        return
    if one:
        loading.load([one[0]])
    else:
        loading.load([replace(entry.spec, limit=_entry_limit(entry, limit)) for entry in chosen])


def _entry_limit(entry: CatalogEntry, limit: int) -> int | None:
    fits = entry.spec.source == "bundled" or (entry.n is not None and entry.n <= limit)
    return entry.spec.limit if fits else limit


def _describe_entry(entry: CatalogEntry, limit: int) -> file_settings.ToLoad | None:
    spec = entry.spec
    limit = _entry_limit(entry, limit)
    if spec.source != "file":
        return replace(spec, limit=limit), size_in_words(entry.n, entry.dimension, limit)
    path = Path(spec.name)
    tables = []
    if not path.is_dir():
        tables = [
            Path(table)
            for table in _tables_in(str(access.readable_path(path).parent))
            if access.may_read(table)
        ]
        tables = [table for table in tables if table != path]
    proposed = None
    if tables:
        proposed = file_settings.tables_of((path, *tables)).get(path)
    return file_settings.describe(path, spec.options, limit, tables, proposed)
