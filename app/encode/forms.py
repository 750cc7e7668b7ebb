"""The forms of the Encode tab: the dataset with a preview, and every encoder that fits it."""

from __future__ import annotations

import base64
import os
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import streamlit as st

from app import messages, session, sharing
from app.compute import cached
from app.items import cut
from app.jobs import engine
from app.plain_text import plain, plain_html
from app.widgets import setting_widget
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.names import ENCODERS
from relcore.base.settings import UNSET, Setting, settings_of
from relcore.encoders import datasets
from relcore.encoders.dataset import DatasetEntry, DatasetSpec, Kind, dataset_place, hub_folder
from relcore.encoders.encoder import Encoder
from relcore.encoders.images import png_thumbnail
from relcore.files.reading import natural
from relcore.runs.digest import digest_of
from relcore.runs.progress import Expected, expect

PICTURES, SENTENCES = 12, 6
_LONGEST = 220  # characters of a sentence that is shown
_KEEP = {"persist_state": "session"}
_KINDS = {"images": "pictures", "texts": "texts", "graph": "graph"}
_MOST_CLASSES = 12
_ALLOWED = "relscope.network-allowed"  # datasets for which this session may ask the network


@dataclass(frozen=True)
class Preview:
    """A dataset before anything is computed; `items` are (label, PNG or sentence), `sizes` their (width,
    height).
    """

    name: str
    kind: Kind
    digest: str
    n: int
    classes: tuple[str, ...]
    items: tuple[tuple[str, bytes | str], ...]
    sizes: tuple[tuple[int, int], ...] = ()


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[DatasetEntry]:
    return datasets.available_datasets(folder)


def available(folder: str | None) -> list[DatasetEntry]:
    return _available(str(access.allowed(folder)) if folder else None)


def _stamped(spec: DatasetSpec) -> tuple:
    """The dataset, with the times of change of its files. Sessions share the caches, so access is checked
    here.
    """
    path = dataset_place(spec)
    if not path or not path.exists():
        return (spec,)
    inside = [child for child in sorted(path.iterdir())[:200] if child.is_dir()] if path.is_dir() else []
    return spec, *(place.stat().st_mtime_ns for place in (path, *inside))


columns_of = cached(32, "Reading the columns …", key=_stamped)(datasets.columns_of)


@cached(32, "Reading the dataset …", key=_stamped)
def preview(spec: DatasetSpec) -> Preview:
    """A preview of the dataset; the first call reads all of it. Errors as in `load_dataset`."""
    dataset = datasets.load_dataset(spec)
    n, images = len(dataset), dataset.kind == "images"
    labels = [""] * n if dataset.labels is None else dataset.labels.tolist()
    classes = tuple(sorted(set(labels) - {""}, key=lambda label: natural(Path(label))))
    most = min(n, PICTURES if images else SENTENCES) if dataset.kind != "graph" else 0
    rows = np.unique(np.linspace(0, n - 1, most).round().astype(int)).tolist()
    shown = [dataset.item(row) for row in rows]
    sizes = tuple(sorted({image.size for image in shown})) if images else ()
    shown = [png_thumbnail(item, 80) if images else cut(" ".join(item.split()), _LONGEST) for item in shown]
    items = tuple(zip((labels[row] for row in rows), shown, strict=True))
    return Preview(dataset.name, dataset.kind, dataset.digest, n, classes, items, sizes)


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
    try:
        if not folder or access.allowed(folder).is_dir():
            return folder or None
        problem = f"“{folder}” is not a folder on the machine that runs Relscope."
    except SpaceError as error:
        folder, problem = None, str(error)
    messages.warning(problem, icon=":material/folder_off:")
    return folder


def choose_dataset(folder: str | None) -> tuple[DatasetSpec, Preview] | None:
    """The chosen dataset with a preview; None while none is chosen, or it cannot be read."""
    origins = {"From the list": _from_list, "A path": _from_path, "Hugging Face": _from_hub}
    if access.shared():
        origins["Upload"] = _from_upload  # its paths lead to the data folder only
    look = {"default": "From the list", "required": True, "label_visibility": "collapsed"}
    origin = st.segmented_control("Dataset", list(origins), key="encode.way", **look, **_KEEP)
    try:
        spec, here = origins[origin](folder)
        if spec is None or not (here or _may_download(spec)):
            return None
        spec = _with_columns_and_limit(spec)
        return spec, preview(spec)
    except SpaceError as error:
        messages.error(error)
        return None


_Chosen = tuple[DatasetSpec | None, bool]  # whether it is on this machine


def _from_list(folder: str | None) -> _Chosen:
    def line(entry: DatasetEntry) -> str:
        many = "" if entry.n is None else f", {entry.n:,}"
        network = "" if entry.where == "here" else " · needs the network"
        return f"{entry.name} · {_KINDS[entry.kind]}{many}{network}"

    entries = sorted(available(folder), key=lambda entry: entry.where != "here")  # stable
    look = {"format_func": line, "label_visibility": "collapsed"}
    entry = st.selectbox("Dataset", entries, key="encode.entry", **look, **_KEEP)
    st.caption(f"{plain(entry.description[0].upper() + entry.description[1:])}.")
    return entry.spec, entry.where == "here"


def _from_path(folder: str | None) -> _Chosen:
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
        return None, True
    place = access.allowed(path)
    if not place.exists():
        raise SpaceError(f"expected a folder or a file, got {path!r:.200}, where there is none")
    if place.is_file():
        return DatasetSpec("file", str(place)), True
    hint = "train, test, … if there are several"
    split = st.text_input("Split", placeholder=hint, key="encode.path-split", **_KEEP)
    saved = (place / "dataset_dict.json").is_file() or (place / "state.json").is_file()
    return DatasetSpec("huggingface" if saved else "folder", str(place), split.strip()), True


def _from_hub(folder: str | None) -> _Chosen:
    boxes = (
        ("Name", "owner/dataset, or a folder", "hub"),
        ("Split", "test", "hub-split"),
        ("Configuration", "if it has several", "hub-config"),
    )
    name, split, config = (
        column.text_input(label, placeholder=hint, key=f"encode.{key}", **_KEEP).strip()
        for column, (label, hint, key) in zip(st.columns([3, 1, 1]), boxes, strict=True)
    )
    if not name:
        st.caption("Datasets that were loaded on this machine before need no network.")
        return None, True
    here = hub_folder(name) is not None or datasets.downloaded(name)
    options = (("config", config),) if config else ()
    return DatasetSpec("huggingface", name, split, options=options), here


def _from_upload(folder: str | None) -> _Chosen:
    kinds = ["parquet", "csv", "tsv"]
    file = st.file_uploader("A table of texts or pictures", type=kinds, key="encode.upload")
    if file is None:
        st.caption("Only this session reads it. It is removed when the session ends.")
        return None, True
    return DatasetSpec("file", str(sharing.keep_upload(file, session.uploads_folder()))), True


def _may_download(spec: DatasetSpec) -> bool:
    allowed = st.session_state.setdefault(_ALLOWED, set())
    if spec not in allowed:
        messages.info(
            f"“{spec.name}” is not on this machine and would be downloaded now. Without a network an error"
            " appears within seconds.",
            icon=":material/cloud_download:",
        )
        look = {"icon": ":material/download:", "key": "encode.download"}
        st.button("Download", on_click=allowed.add, args=(spec,), **look)
    return spec in allowed


def _with_columns_and_limit(spec: DatasetSpec) -> DatasetSpec:
    columns, name = columns_of(spec), digest_of(spec)  # another dataset has choosers of its own
    item_box, label_box, id_box, limit_box = st.columns(4) if columns.items else (*[None] * 3, st.container())
    if columns.items:
        options = {"options": ["", *columns.items], "format_func": lambda column: column or "Automatic"}
        column = item_box.selectbox("Encode the column", key=f"encode.column-{name}", **options, **_KEEP)
        options["options"] = ["", *(label for label in columns.labels if label != column)]
        label = label_box.selectbox("Labels from", key=f"encode.label-{name}", **options, **_KEEP)
        names = ["", *filter(None, columns.labels)]
        options = {"options": names, "format_func": lambda column: column or "Table and row"}
        options |= {"index": names.index(columns.ids), "key": f"encode.ids-{name}"}
        ids = id_box.selectbox("Ids from", help="Rows of two spaces are paired by id.", **options, **_KEEP)
        spec = datasets.with_options(replace(spec, column=column, label_column=label), id_column=ids)
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
    return replace(spec, limit=limit)


def show_preview(preview: Preview) -> None:
    classes = preview.classes
    counted = f"{len(classes):,} classes" if len(classes) > 1 else "one class" if classes else "no labels"
    facts = [f"**{preview.n:,}** {'nodes' if preview.kind == 'graph' else _KINDS[preview.kind]}", counted]
    if preview.sizes:
        width, height = preview.sizes[0]
        facts.append(f"{width} × {height} pixels" if len(preview.sizes) == 1 else "of several sizes")
    st.markdown(" · ".join(facts))
    items = [(plain_html(label), item) for label, item in preview.items]
    if preview.kind == "images":
        figures = (
            f'<figure><img src="data:image/png;base64,{base64.b64encode(png).decode()}" alt="picture'
            f'{" of class " * bool(label)}{label}"><figcaption>{label}</figcaption></figure>'
            for label, png in items
        )
        st.html(f'<div class="relscope-pictures">{"".join(figures)}</div>')
    elif items:
        lines = "".join(f"<li><b>{label}</b> {plain_html(text)}</li>" for label, text in items)
        st.html(f'<ol class="relscope-sentences">{lines}</ol>')
    if len(classes) > 1:
        named, more = (
            ", ".join(plain(name, 40) for name in classes[:_MOST_CLASSES]),
            len(classes) - _MOST_CLASSES,
        )
        st.caption(f"Classes: {named}{f' and {more:,} more' if more > 0 else ''}.")


def choose_encoders(preview: Preview) -> list[Encoder]:
    """The encoders that the forms describe, each once; a form with an error gives none."""
    classes = {name: entry.load() for name, entry in ENCODERS.items()}
    classes = {name: kind for name, kind in classes.items() if kind.kind == preview.kind and kind.offered()}
    shown = list(classes)
    if len(classes) > 1:
        look = {"selection_mode": "multi", "default": shown[:1], "label_visibility": "collapsed"}
        look |= {"format_func": lambda name: ENCODERS[name].title, "key": f"encode.forms-{preview.kind}"}
        shown = st.pills("Encoders", shown, **look, **_KEEP)
    encoders: list[Encoder] = []
    for name in shown:
        with st.container(border=True):
            st.markdown(f"**{ENCODERS[name].title}**")
            if reason := classes[name].unfit(preview):
                messages.warning(reason, icon=":material/label_off:")
                continue
            try:
                encoders += _form(name, classes[name], preview)
            except SpaceError as error:
                messages.error(error)
    return list(dict.fromkeys(encoders))


def _form(name: str, kind: type[Encoder], preview: Preview) -> list[Encoder]:
    """One encoder for each choice of the setting that takes several; none while a needed one is empty."""
    settings = list(settings_of(kind).values())
    more = any(setting.more for setting in settings)
    places = {False: st.container(horizontal=True, vertical_alignment="bottom")}
    places[True] = st.popover("More settings", icon=":material/tune:") if more else None
    values = {}
    for setting in settings:
        with places[setting.more]:
            values[setting.name] = _value(setting, name, preview)
    for setting in settings:
        if setting.note and (note := setting.note(values[setting.name])):
            st.caption(plain(note))
    needed = [values[setting.name] for setting in settings if setting.default is UNSET or setting.is_tuple]
    if "" in needed or () in needed:
        return []
    several = next((setting.name for setting in settings if setting.several), None)
    return [kind(**values | {several: choice}) for choice in values[several]] if several else [kind(**values)]


def _value(setting: Setting, encoder: str, preview: Preview) -> object:
    start = setting.start(preview)
    # another dataset, another default
    key = f"encode.{encoder}.{setting.name}{f'-{start}' * callable(setting.usual)}"
    own = {"width": 150} if setting.number else {"width": 480} if setting.several or setting.is_tuple else {}
    own |= {"format": "%g"} if setting.number is float else {}
    if setting.kind is str and not setting.choices:
        own["help"] = sharing.help_with_paths(setting.help) or None
    return setting_widget(setting, key, start, **own)


def expected(encoder: Encoder, preview: Preview) -> Expected | None:
    """The encoder's measured time, at the pace of the last such encodings here; None if unknown."""
    pixels = max((width * height for width, height in preview.sizes), default=64)
    known = encoder.seconds(preview.n, pixels)
    kind = f"encode/{type(encoder).__name__}/{getattr(encoder, 'architecture', '')}".rstrip("/")
    return None if known is None else expect(engine().store, kind, known)
