"""Choose the items to encode: from the list, a path or the hub; and preview some of them."""

from __future__ import annotations

import base64
import os
import re
from dataclasses import dataclass, replace

import numpy as np
import streamlit as st

from app import messages, session, sharing
from app.items import cut
from app.plain_text import plain, plain_html, plain_name
from app.sharing import keep_upload
from relcore.base import access
from relcore.base.access import allowed
from relcore.base.errors import SpaceError
from relcore.encoders import datasets
from relcore.encoders.dataset import DatasetEntry, DatasetSpec, Kind, dataset_place, hub_folder
from relcore.encoders.datasets import ColumnNames, downloaded
from relcore.encoders.images import png_thumbnail
from relcore.runs.digest import digest_of

# The caches of raw datasets: the list of them, their columns, and a preview of some items.

PICTURES, SENTENCES = 12, 6
_LONGEST = 220  # characters of a sentence that is shown


@dataclass(frozen=True)
class Preview:
    """What the page shows of a dataset before anything is computed.

    `items` are (label, PNG or sentence), taken evenly over the whole; `sizes` the different (width, height)
    among them; `facts` what else there is to say of a graph.
    """

    name: str
    kind: Kind
    digest: str
    n: int
    classes: tuple[str, ...]
    items: tuple[tuple[str, bytes | str], ...]
    sizes: tuple[tuple[int, int], ...] = ()
    facts: tuple[tuple[str, int], ...] = ()

    @property
    def pixels(self) -> int:
        """Of the largest picture that was looked at."""
        return max((width * height for width, height in self.sizes), default=64)


def available(folder: str | None) -> list[DatasetEntry]:
    """The list of datasets, at most half a minute old."""
    return _available(str(allowed(folder)) if folder else None)


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[DatasetEntry]:
    return datasets.available_datasets(folder)


def columns_of(spec: DatasetSpec) -> ColumnNames:
    """The columns to choose from. Errors as in `columns_of`."""
    return _columns(spec, _stamp(spec))


@st.cache_data(max_entries=32, show_spinner="Reading the columns …")
def _columns(spec: DatasetSpec, stamp: tuple[int, ...]) -> ColumnNames:
    return datasets.columns_of(spec)


def preview(spec: DatasetSpec) -> Preview:
    """A preview of the dataset. The first call reads all of it, for the digest. Errors as in
    `load_dataset`.
    """
    return _preview(spec, _stamp(spec))


@st.cache_data(max_entries=32, show_spinner="Reading the dataset …")
def _preview(spec: DatasetSpec, stamp: tuple[int, ...]) -> Preview:
    dataset = datasets.load_dataset(spec)
    labels = [""] * len(dataset) if dataset.labels is None else dataset.labels.tolist()
    classes = tuple(sorted(set(labels) - {""}, key=_natural))
    most = PICTURES if dataset.kind == "images" else SENTENCES
    rows = np.unique(np.linspace(0, len(dataset) - 1, min(most, len(dataset))).round().astype(int)).tolist()
    common = dataset.name, dataset.kind, dataset.digest, len(dataset), classes
    if dataset.kind == "graph":
        graph = dataset.graph()
        facts = (("edges", graph.num_edges // 2), ("features of a node", graph.num_node_features))
        return Preview(*common, (), facts=facts)
    shown = [(labels[row], dataset.item(row)) for row in rows]
    if dataset.kind == "texts":
        return Preview(
            *common, tuple((label, cut(" ".join(text.split()), _LONGEST)) for label, text in shown)
        )
    sizes = tuple(sorted({image.size for _, image in shown}))
    return Preview(*common, tuple((label, png_thumbnail(image, 80)) for label, image in shown), sizes)


def _natural(label: str) -> tuple:
    """Sorts "2" before "10"."""
    return tuple(
        (0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part
    )


def _stamp(spec: DatasetSpec) -> tuple[int, ...]:
    """The times of change of a file, or of a folder and its sub-folders: after a change the data are read
    again.

    Sessions share the caches, so a path that is not open to this one is refused here.
    """
    path = dataset_place(spec)
    if not path or not path.exists():
        return ()
    inside = [child for child in sorted(path.iterdir())[:200] if child.is_dir()] if path.is_dir() else []
    return tuple(one.stat().st_mtime_ns for one in (path, *inside))


_KEEP = {"persist_state": "session"}
_WAYS = ("From the list", "A path", "Hugging Face")
_UPLOAD = "Upload"  # in a shared app, whose paths lead to its data folder only
_KINDS = {"images": "pictures", "texts": "texts", "graph": "graph"}
_MOST_CLASSES = 12
_ALLOWED = "relscope.network-allowed"  # datasets for which this session may ask the network


def data_folder() -> str | None:
    """The folder whose files appear in the lists of datasets and spaces; None for that of RELSCOPE_DATA."""
    usual = "A folder inside the data folder" if access.shared() else os.environ.get(access.DATA)
    folder = st.text_input(
        "Data folder",
        value=None,
        placeholder=usual or "A folder on the machine that runs Relscope; RELSCOPE_DATA sets the default",
        help=sharing.help_with_paths(
            "Datasets and spaces in it appear in the lists of “Encode” and “Load more”."
        ),
        key="spaces.folder",
        width=640,
        **_KEEP,
    )
    if access.shared():
        st.caption(sharing.paths())
    if not folder:
        return None
    try:
        place = access.allowed(folder)
    except SpaceError as error:
        messages.warning(error, icon=":material/folder_off:")
        return None
    if not place.is_dir():
        messages.warning(
            f"“{folder}” is not a folder on the machine that runs Relscope.", icon=":material/folder_off:"
        )
    return folder


def choose_dataset(folder: str | None) -> tuple[DatasetSpec, Preview] | None:
    """The chosen dataset with a preview; None while none is chosen, or if it cannot be read, which the
    page reports.
    """
    ways = (*_WAYS, _UPLOAD) if access.shared() else _WAYS
    way = st.segmented_control(
        "Dataset",
        ways,
        default=_WAYS[0],
        key="encode.way",
        required=True,
        label_visibility="collapsed",
        **_KEEP,
    )
    chosen = {
        "From the list": _from_list,
        "A path": _from_path,
        "Hugging Face": _from_hub,
        _UPLOAD: _from_upload,
    }[way](folder)
    if chosen is None:
        return None
    spec, needs_network = chosen
    if needs_network and not _allowed(spec):
        return None
    try:
        spec = _with_columns_and_limit(spec)
        return spec, preview(spec)
    except SpaceError as error:
        messages.error(error)
        return None


def _from_list(folder: str | None) -> tuple[DatasetSpec, bool]:
    entries = available(folder)
    entries = sorted(entries, key=lambda entry: entry.where != "here")  # stable: what is here first
    entry = st.selectbox(
        "Dataset", entries, format_func=_entry_line, key="encode.entry", label_visibility="collapsed", **_KEEP
    )
    st.caption(f"{plain(entry.description[0].upper() + entry.description[1:])}.")
    return entry.spec, entry.where != "here"


def _entry_line(entry: DatasetEntry) -> str:
    many = "" if entry.n is None else f", {entry.n:,}"
    return (
        f"{entry.name} · {_KINDS[entry.kind]}{many}{'' if entry.where == 'here' else ' · needs the network'}"
    )


def _from_path(folder: str | None) -> tuple[DatasetSpec, bool] | None:
    path = st.text_input(
        "Folder or file",
        placeholder="photographs, or sentences.csv" if access.shared() else "~/photographs, or sentences.csv",
        key="encode.path",
        help=sharing.help_with_paths(
            "A folder of pictures whose sub-folders are the classes; a parquet, csv or tsv file; or a folder"
            " of such files."
        ),
        **_KEEP,
    )
    if not path:
        st.caption("The path is on the machine that runs Relscope. Nothing is copied or changed.")
        return None
    try:
        place = access.allowed(path)
    except SpaceError as error:
        messages.error(error)
        return None
    if not place.exists():
        messages.error(
            f"“{path}”: expected a folder or a file on the machine that runs Relscope, found none; check the"
            " spelling",
            icon=":material/error:",
        )
        return None
    if place.is_file():
        return DatasetSpec("file", str(place)), False
    split = st.text_input(
        "Split", placeholder="train, test, … if there are several", key="encode.path-split", **_KEEP
    )
    saved = (place / "dataset_dict.json").is_file() or (place / "state.json").is_file()
    return DatasetSpec("huggingface" if saved else "folder", str(place), split.strip()), False


def _from_hub(folder: str | None) -> tuple[DatasetSpec, bool] | None:
    name_box, split_box, config_box = st.columns([3, 1, 1])
    name = name_box.text_input(
        "Name", placeholder="owner/dataset, or a folder", key="encode.hub", **_KEEP
    ).strip()
    split = split_box.text_input("Split", placeholder="test", key="encode.hub-split", **_KEEP).strip()
    config = config_box.text_input(
        "Configuration", placeholder="if it has several", key="encode.hub-config", **_KEEP
    ).strip()
    if not name:
        st.caption("Datasets that were loaded on this machine before need no network.")
        return None
    options = (("config", config),) if config else ()
    try:
        here = hub_folder(name) is not None or downloaded(name)
    except SpaceError as error:
        messages.error(error)
        return None
    return DatasetSpec("huggingface", name, split, options=options), not here


def _from_upload(folder: str | None) -> tuple[DatasetSpec, bool] | None:
    file = st.file_uploader(
        "A table of texts or pictures", type=["parquet", "csv", "tsv"], key="encode.upload"
    )
    if file is None:
        st.caption("Only this session reads it. It is removed when the session ends.")
        return None
    return DatasetSpec("file", str(keep_upload(file, session.uploads_folder()))), False


def _allowed(spec: DatasetSpec) -> bool:
    allowed = st.session_state.setdefault(_ALLOWED, set())
    if spec in allowed:
        return True
    messages.info(
        f"“{spec.name}” is not on this machine and would be downloaded now. Without a network an error"
        " appears within seconds.",
        icon=":material/cloud_download:",
    )
    st.button(
        "Download", icon=":material/download:", key="encode.download", on_click=allowed.add, args=(spec,)
    )
    return False


def _with_columns_and_limit(spec: DatasetSpec) -> DatasetSpec:
    columns = columns_of(spec)
    name = digest_of(spec)  # another dataset has choosers of its own
    item_box, label_box, limit_box = st.columns(3) if columns.items else (None, None, st.container())
    if columns.items:
        options = {"options": ["", *columns.items], "format_func": lambda column: column or "Automatic"}
        column = item_box.selectbox("Encode the column", key=f"encode.column-{name}", **options, **_KEEP)
        options["options"] = ["", *(label for label in columns.labels if label != column)]
        label = label_box.selectbox("Labels from", key=f"encode.label-{name}", **options, **_KEEP)
        spec = replace(spec, column=column, label_column=label)
        if column and column not in columns.items:
            raise SpaceError(f"column: expected one of {', '.join(columns.items)}, got {column!r}")
    limit = limit_box.number_input(
        "Maximum number of items",
        min_value=1,
        value=None,
        step=100,
        placeholder="all",
        key=f"encode.limit-{name}",
        help="Takes the first items, or equally many of each class if the items are sorted by class.",
        **_KEEP,
    )
    return replace(spec, limit=None if limit is None else int(limit))


def show_preview(preview: Preview) -> None:
    """The number of items, some of them, and their classes."""
    n_classes = len(preview.classes)
    counted = f"{n_classes:,} classes" if n_classes > 1 else "one class" if n_classes else "no labels"
    noun = {"images": "pictures", "texts": "texts", "graph": "nodes"}[preview.kind]
    facts = [f"**{preview.n:,}** {noun}", counted]
    if preview.sizes:
        width, height = preview.sizes[0]
        facts.append(f"{width} × {height} pixels" if len(preview.sizes) == 1 else "of several sizes")
    facts += [f"{value:,} {plain_name(name)}" for name, value in preview.facts]
    st.markdown(" · ".join(facts))
    if preview.kind == "images":
        figures = "".join(_figure(label, png) for label, png in preview.items)
        st.html(f'<div class="relscope-pictures">{figures}</div>')
    elif preview.kind == "texts":
        lines = "".join(
            f"<li><b>{plain_html(label)}</b> {plain_html(text)}</li>" for label, text in preview.items
        )
        st.html(f'<ol class="relscope-sentences">{lines}</ol>')
    if n_classes > 1:
        named = ", ".join(plain(name, 40) for name in preview.classes[:_MOST_CLASSES])
        st.caption(
            "Classes:"
            f" {named}{f' and {n_classes - _MOST_CLASSES:,} more' if n_classes > _MOST_CLASSES else ''}."
        )


def _figure(label: str, png: bytes) -> str:
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    alt = plain_html(f"picture of class {label}" if label else "picture")
    return f'<figure><img src="{source}" alt="{alt}"><figcaption>{plain_html(label)}</figcaption></figure>'
