"""Forms that choose what to encode: a dataset with a preview, and encoders that fit the dataset."""

from __future__ import annotations

import base64
from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import streamlit as st

from app import messages, sharing, sources
from app.compute import cached
from app.items import cut
from app.jobs import cost_in_words, queue
from app.plain_text import plain, plain_html
from app.widgets import setting_widget
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.names import ENCODERS
from relcore.base.numbers import counted
from relcore.base.settings import UNSET, Setting, settings_of
from relcore.catalog.encodings import stored_encodings
from relcore.encoders import datasets
from relcore.encoders.dataset import SAMPLE, DatasetEntry, DatasetSpec, Kind, dataset_place, hub_folder
from relcore.encoders.encoder import Encoder
from relcore.encoders.pictures import png_thumbnail
from relcore.encoders.sending import sending_to, size_of
from relcore.files.parts import natural
from relcore.runs.entries import digest_of

PICTURES = 12
SENTENCES = 6
_LONGEST = 220  # maximum number of characters of a sentence in the preview
_KEEP = {"persist_state": "session"}
_KINDS = {"images": "pictures", "texts": "texts"}
_MOST_CLASSES = 12
# Minimum number of items for reliable scores; maximum number of items whose texts are searched for
# repetitions.
_FEW = 100
_MOST_COMPARED = 100_000
_ALLOWED = "relscope.network-allowed"  # datasets that this session may download


@dataclass(frozen=True)
class Preview:
    """A dataset as the page shows it before it is encoded. Each of the `items` is a label with a PNG or a
    sentence. `sizes` are the (width, height) of pictures. `n_again` is the number of texts that repeat an
    earlier one, `n_bytes` the size of all texts in UTF-8."""

    name: str
    kind: Kind
    digest: str
    n: int
    classes: tuple[str, ...]
    items: tuple[tuple[str, bytes | str], ...]
    sizes: tuple[tuple[int, int], ...] = ()
    n_again: int = 0
    n_bytes: int = 0

    @property
    def remarks(self) -> str:
        """Sentences with reasons why the scores of these items will be uncertain. Returns "" if there are
        none."""
        what = _KINDS[self.kind]
        reasons = []
        if self.n < _FEW:
            reasons.append(f"{self.n:,} {what} are few: scores are uncertain below {_FEW}.")
        if self.n_again:
            again = counted(self.n_again, "of them repeats", "of them repeat")
            reasons.append(f"{again} an earlier one, so no model can tell them apart.")
        return " ".join(reasons)


@st.cache_data(ttl=30, max_entries=8, show_spinner=False)
def _available(folder: str | None) -> list[DatasetEntry]:
    return datasets.available_datasets(folder)


def available(folder: str | None) -> list[DatasetEntry]:
    if folder:
        folder = str(access.readable_path(folder))
    return _available(folder or None)


def _with_file_times(spec: DatasetSpec) -> tuple:
    """The spec, and the modification times of the dataset's files. Access is checked here, because sessions
    share the caches."""
    path = dataset_place(spec)
    if not path or not path.exists():
        return (spec,)
    inside = []
    if path.is_dir():
        inside = [child for child in sorted(path.iterdir())[:200] if child.is_dir()]
    return spec, *(place.stat().st_mtime_ns for place in (path, *inside))


columns_of = cached(32, "Reading the columns …", key=_with_file_times)(datasets.columns_of)


@cached(32, "Reading the dataset …", key=_with_file_times)
def preview(spec: DatasetSpec) -> Preview:
    """A preview of the dataset. The first call reads the whole dataset."""
    dataset = datasets.load_dataset(spec)
    n = len(dataset)
    images = dataset.kind == "images"
    if dataset.labels is None:
        labels = [""] * n
    else:
        labels = dataset.labels.tolist()
    classes = tuple(sorted(set(labels) - {""}, key=lambda label: natural(Path(label))))
    most = min(n, PICTURES if images else SENTENCES)
    rows = np.unique(np.linspace(0, n - 1, most).round().astype(int)).tolist()
    sample = [dataset.item(row) for row in rows]
    sizes = ()
    if images:
        sizes = tuple(sorted({image.size for image in sample}))
        shown = [png_thumbnail(image, 80) for image in sample]
    else:
        shown = [cut(" ".join(text.split()), _LONGEST) for text in sample]
    items = tuple(zip((labels[row] for row in rows), shown, strict=True))
    texts = []
    if dataset.kind == "texts" and n <= _MOST_COMPARED:
        texts = dataset.items(0, n)
    again = len(texts) - len(set(texts))
    n_bytes = 0
    if not images:
        _, n_bytes = size_of(dataset)
    return Preview(dataset.name, dataset.kind, dataset.digest, n, classes, items, sizes, again, n_bytes)


def choose_dataset(kind: sources.Kind) -> tuple[DatasetSpec, Preview] | None:
    """The chosen dataset with a preview. Returns None if no dataset is chosen, or if it cannot be read."""
    paths, name = sources.chosen(kind)
    try:
        found = sources.of_kind(kind, paths)
        if name:
            return read_dataset(*_from_hub(name))
        if not found:
            sources.offer_others(kind, paths)
            return None
        path = found[0]
        if len(found) > 1:
            path = st.selectbox(
                "Which to encode", found, format_func=lambda one: one.name, key="encode.which"
            )
        if path.is_dir():
            return read_dataset(_from_folder(path), here=True)
        encoding = sources.choose_encoding(path)
        if encoding is None:
            return None
        return read_dataset(
            datasets.with_options(DatasetSpec("file", str(path)), encoding=encoding), here=True
        )
    except SpaceError as error:
        messages.error(error)
        return None


def choose_bundled(folder: str | None) -> tuple[DatasetSpec, Preview] | None:
    """A chosen dataset that is bundled or in the data folder, with a preview."""

    def line(entry: DatasetEntry) -> str:
        if entry.n is None:
            many = ""
        else:
            many = f", {entry.n:,}"
        return f"{entry.name} · {_KINDS[entry.kind]}{many}"

    entry = st.selectbox(
        "Dataset",
        available(folder),
        key="encode.entry",
        format_func=line,
        label_visibility="collapsed",
        **_KEEP,
    )
    st.caption(f"{plain(entry.description[0].upper() + entry.description[1:])}.")
    try:
        return read_dataset(entry.spec, here=True)
    except SpaceError as error:
        messages.error(error)
        return None


def read_dataset(spec: DatasetSpec, here: bool) -> tuple[DatasetSpec, Preview] | None:
    """The dataset with its chosen columns, and a preview. Returns None until the user allows a needed
    download."""
    if not (here or _may_download(spec)):
        return None
    spec = _with_columns_and_limit(spec)
    return spec, preview(spec)


def _from_folder(path: Path) -> DatasetSpec:
    saved = (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()
    if saved:
        splits = []
    else:
        splits = datasets.splits_of(path)
    split = ""
    if len(splits) > 1:
        split = st.selectbox("Split", splits, key="encode.split", width=240)
    origin = "folder"
    if saved:
        origin = "huggingface"
    return DatasetSpec(origin, str(path), split)


def _from_hub(name: str) -> tuple[DatasetSpec, bool]:
    left, right = st.columns(2)
    split = left.text_input("Split", placeholder="test", key="encode.hub-split", **_KEEP).strip()
    hint = "if it has several"
    config = right.text_input("Configuration", placeholder=hint, key="encode.hub-config", **_KEEP).strip()
    here = hub_folder(name) is not None or datasets.is_downloaded(name)
    options = (("config", config),) if config else ()
    return DatasetSpec("huggingface", name, split, options=options), here


def _may_download(spec: DatasetSpec) -> bool:
    allowed = st.session_state.setdefault(_ALLOWED, set())
    if spec not in allowed:
        messages.info(
            f"“{spec.name}” is not on this machine and would be downloaded now. Without a network an error"
            " appears within seconds.",
            icon=":material/cloud_download:",
        )
        st.button(
            "Download", on_click=allowed.add, args=(spec,), icon=":material/download:", key="encode.download"
        )
    return spec in allowed


def _with_columns_and_limit(spec: DatasetSpec) -> DatasetSpec:
    columns = columns_of(spec)
    name = digest_of(spec)  # gives each dataset its own choosers
    with st.container(horizontal=True, vertical_alignment="bottom"):
        if columns.items:
            spec = _with_columns(spec, columns, name)
        with st.popover("More", icon=":material/tune:"):
            limit = st.number_input(
                "Maximum number of items",
                min_value=1,
                value=None,
                step=100,
                placeholder="all",
                key=f"encode.limit-{name}",
                help="Takes the first items; if they are sorted by class, equally many of each class.",
                **_KEEP,
            )
            share = st.number_input(
                "Sample, % of the items",
                1,
                100,
                100,
                key=f"encode.sample-{name}",
                help="Embed a random sample first, with several models, and compare them in Migrate, Choose."
                " The run over all items embeds only the others.",
                **_KEEP,
            )
    if share < 100:
        spec = datasets.with_options(spec, **{SAMPLE: share / 100})
    return replace(spec, limit=limit)


def _with_columns(spec: DatasetSpec, columns: datasets.ColumnNames, name: str) -> DatasetSpec:
    """Draw choosers of the columns that items, labels and ids come from. `name` is part of their keys."""

    def choose(label: str, options: Sequence[str], usual: str, key: str, none: str, **look: Any) -> str:
        options = ["", *options]
        look |= {
            "format_func": lambda one: one or none,
            "index": options.index(usual) if usual in options else 0,
        }
        return st.selectbox(label, options, key=f"encode.{key}-{name}", width=200, **look, **_KEEP)

    column = choose("Encode the column", columns.items, columns.item, "column", "Automatic")
    others = [one for one in columns.labels if one != column]
    label = choose("Labels from", others, columns.label, "label", "Automatic")
    ids = choose(
        "Ids from",
        [one for one in columns.labels if one],
        columns.ids,
        "ids",
        "Rows of the table",
        help="Rows of two spaces are paired by id.",
    )
    return datasets.with_options(replace(spec, column=column, label_column=label), id_column=ids)


def show_preview(preview: Preview) -> None:
    classes = preview.classes
    if len(classes) > 1:
        counted = f"{len(classes):,} classes"
    elif classes:
        counted = "one class"
    else:
        counted = "no labels"
    facts = [f"**{preview.n:,}** {_KINDS[preview.kind]}", counted]
    if preview.sizes:
        width, height = preview.sizes[0]
        size = "of several sizes"
        if len(preview.sizes) == 1:
            size = f"{width} × {height} pixels"
        facts.append(size)
    st.markdown(" · ".join(facts))
    if preview.remarks:
        messages.warning(preview.remarks)
    items = [(plain_html(label), item) for label, item in preview.items]
    if preview.kind == "images":
        figures = "".join(_picture_html(label, png) for label, png in items)
        st.html(f'<div class="relscope-pictures">{figures}</div>')
    elif items:
        lines = "".join(f"<li><b>{label}</b> {plain_html(text)}</li>" for label, text in items)
        st.html(f'<ol class="relscope-sentences">{lines}</ol>')
    if len(classes) > 1:
        named = ", ".join(plain(name, 40) for name in classes[:_MOST_CLASSES])
        more = len(classes) - _MOST_CLASSES
        others = ""
        if more > 0:
            others = f" and {more:,} more"
        st.caption(f"Classes: {named}{others}.")


def _picture_html(label: str, png: bytes) -> str:
    """An HTML figure of a picture with its class, both already escaped."""
    named = "picture"
    if label:
        named = f"picture of class {label}"
    source = f"data:image/png;base64,{base64.b64encode(png).decode()}"
    return f'<figure><img src="{source}" alt="{named}"><figcaption>{label}</figcaption></figure>'


def choose_encoders(preview: Preview, own: bool = False) -> list[Encoder]:
    """The chosen encoders, each once. An encoder whose form shows an error is left out. By default, the
    fastest encoders are chosen until they give at least two spaces. If the texts are the user's `own`, the
    defaults are the fastest encoder and MiniLM."""
    loaded = ENCODERS.loaded()
    classes = {name: kind for name, kind in loaded if kind.kind == preview.kind and kind.is_offered}
    usual = {name: _usual_encoders(kind, preview) for name, kind in classes.items()}
    times = {name: _sum([expected_seconds(one, preview) for one in usual[name]]) for name in usual}
    titles = {
        name: " · ".join(filter(None, (ENCODERS[name].title, _price(encoders, preview))))
        for name, encoders in usual.items()
    }
    fit = [name for name in classes if times[name] is not None and not classes[name].unfit(preview)]
    quick: list[str] = []
    for name in sorted(fit, key=times.get):
        if sum(len(usual[one]) for one in quick) < 2:
            quick.append(name)
    if own and "minilm" in fit and "minilm" not in quick:
        quick = [*quick[:1], "minilm"]
    shown = list(classes)
    if len(classes) > 1:
        look = {"selection_mode": "multi", "default": quick or shown[:1], "format_func": titles.get}
        own_key = ""
        if own:
            own_key = "-own"
        shown = st.pills("Encoders", shown, key=f"encode.forms-{preview.kind}{own_key}", **look, **_KEEP)
    encoders: list[Encoder] = []
    asked = [name for name in shown if times[name] is None or classes[name].unfit(preview)]
    key = "encode.settings"
    if asked:
        key = "encode.settings-asked"  # one that is drawn already would stay closed
    settings = st.expander("Settings of the encoders", icon=":material/tune:", expanded=bool(asked), key=key)
    for name in shown:
        with settings:
            st.markdown(f"**{ENCODERS[name].title}**")
            if reason := classes[name].unfit(preview):
                messages.warning(reason, icon=":material/label_off:")
                continue
            try:
                encoders += _form(name, classes[name], preview)
            except SpaceError as error:
                messages.error(error)
    return list(dict.fromkeys(encoders))


def _usual_encoders(kind: type[Encoder], preview: Preview) -> list[Encoder]:
    """The encoders of a form with its initial settings. Returns [] if the user must first name a model."""
    settings = settings_of(kind).values()
    starts = {setting.name: setting.start(preview) for setting in settings}
    if UNSET in starts.values():
        return []
    several = next((setting.name for setting in settings if setting.several), None)
    if not several:
        return [kind(**starts)]
    choices = starts.pop(several)
    if not isinstance(choices, tuple):
        choices = (choices,)
    return [kind(**starts, **{several: choice}) for choice in choices]


def _sum(costs: Sequence[float | None]) -> float | None:
    if costs and None not in costs:
        return sum(costs)
    return None


def _price(encoders: Sequence[Encoder], preview: Preview) -> str:
    if not encoders:
        return "name it below"
    seconds = _sum([cost(encoder, preview) for encoder in encoders])
    if seconds is None:
        return ""
    if seconds:
        return cost_in_words(seconds)
    return "encoded before"


def cost(encoder: Encoder, preview: Preview) -> float | None:
    """The expected seconds: 0 if the store has the encoding, None if the time is unknown."""
    try:
        stored = stored_encodings(queue().store, preview.digest, encoder)
    # If the folder of a model cannot be read, the job will report it.
    except (OSError, SpaceError):
        stored = None
    if stored:
        return 0.0
    return expected_seconds(encoder, preview)


def _form(name: str, kind: type[Encoder], preview: Preview) -> list[Encoder]:
    """Draw the form of an encoder. If several values are chosen for one of its settings, return one encoder
    for each value. Return [] while a required setting is empty."""
    settings = list(settings_of(kind).values())
    more = any(setting.more for setting in settings)
    places = {False: st.container(horizontal=True, vertical_alignment="bottom")}
    if more:
        places[True] = st.popover("More settings", icon=":material/tune:")
    else:
        places[True] = None
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
    if several:
        return [kind(**values | {several: choice}) for choice in values[several]]
    return [kind(**values)]


def _value(setting: Setting, encoder: str, preview: Preview) -> object:
    start = setting.start(preview)
    # If the default depends on the dataset, the key contains the dataset, so each dataset begins with its
    # default.
    suffix = ""
    if callable(setting.usual):
        suffix = f"-{start}"
    key = f"encode.{encoder}.{setting.name}{suffix}"
    if setting.number:
        own = {"width": 150}
    elif setting.several or setting.is_tuple:
        own = {"width": 480}
    else:
        own = {}
    if setting.number is float:
        own |= {"format": "%g"}
    if setting.kind is str and not setting.choices:
        own["help"] = sharing.help_with_paths(setting.help) or None
    return setting_widget(setting, key, start, **own)


def show_what_is_sent(encoders: Sequence[Encoder], preview: Preview) -> list[Encoder]:
    """Say what each encoder would send to which host, before the click that allows it. Encoders that may not
    send it are left out, with the reason."""
    allowed = []
    for encoder in encoders:
        try:
            with sending_to(encoder.sends_to):
                note = encoder.need_consent(preview.n, preview.n_bytes)
        except SpaceError as error:
            messages.error(error)
            continue
        allowed.append(encoder)
        if note and cost(encoder, preview) != 0.0:
            messages.warning(note, icon=":material/upload:")
    return allowed


def expected_seconds(encoder: Encoder, preview: Preview) -> float | None:
    """The expected seconds, or None if the time is unknown."""
    pixels = max((width * height for width, height in preview.sizes), default=64)
    return encoder.seconds(preview.n, pixels)
