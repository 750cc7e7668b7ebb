"""The datasets that can be encoded. `load_dataset` reads one of them, and `available_datasets` lists them."""

from __future__ import annotations

import bz2
import os
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from importlib.resources import files
from importlib.util import find_spec
from itertools import chain, islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.earlier import refuse_look
from relcore.base.errors import SpaceError, extra, need_one_of, quote
from relcore.encoders.encoder import (
    HUB_NAME,
    Dataset,
    DatasetEntry,
    DatasetOptions,
    DatasetSpec,
    dataset_place,
    decode_image,
    evenly,
    hub_answers,
    hub_folder,
    image_file,
)
from relcore.encoders.encoder import SUFFIXES as IMAGE_SUFFIXES
from relcore.files.columns import names_ids
from relcore.files.formats import checked_ids, checked_labels
from relcore.files.reading import SUFFIXES as TABLE_SUFFIXES
from relcore.files.reading import ItemTable, first_kinds, open_table
from relcore.files.tables import ColumnKind, table_of
from relcore.runs.entries import StoreError, digest_of
from relcore.runs.store import Store

# Handwritten digits: 1,797 scans of 8 × 8 pixels.


def digits_dataset(spec: DatasetSpec) -> Dataset:
    """The digits as grey images (mode "L", 0 to 255) with labels "0" to "9"."""
    from PIL import Image
    from sklearn.datasets import load_digits

    refuse_look(spec.settings(look="plain")["look"])
    digits = load_digits()
    pixels = np.round(digits.images[: spec.limit] * (255 / 16)).astype(np.uint8)
    return Dataset(
        lambda start, stop: [Image.fromarray(scan) for scan in pixels[start:stop]],
        [f"digits/{row}" for row in range(len(pixels))],
        name="digits",
        kind="images",
        labels=digits.target[: spec.limit],
        content=lambda: [pixels.tobytes()],
    )


# Everyday sentences in several languages. They are parallel anchors for text encoders.

LANGUAGES = {"en": "English", "es": "Spanish", "fr": "French", "ja": "Japanese"}
N_SENTENCES = 438
_EVERYDAY = files("relcore") / "data" / "parallel" / "everyday.tsv"


def load_parallel(languages: Sequence[str] = ("en", "es")) -> dict[str, tuple[str, ...]]:
    """A dictionary from each language to its sentences. Sentence i is the same in all languages. Under "id"
    are the ids of the sentences."""
    table = table_of(Path(str(_EVERYDAY)))
    return {language: tuple(table.read(language, 0, N_SENTENCES)) for language in languages}


# Sentences of the English Wikipedia articles that gensim's wheel contains. Their labels are the articles.

_ARTICLES = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
# The default of classification tasks: 16 articles, each with enough sentences.
TASK = DatasetSpec("wikipedia", options=(("articles", 16), ("fewest", 250), ("per_article", 400)))
# This text is part of the store's key, so a change of the recipe must change it.
_RECIPE = "prose, 40 to 400 characters, 1"
_MARKED = tuple("=|!{}<*#:;")  # signs with which headings, tables and lists begin
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
# Remains of templates, which are empty brackets, and marks of bold and italics.
_HOLLOW = re.compile(r"\s*\(\s*[,;]?\s*\)|'{2,}")


def wikipedia_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The sentences of the articles, in their order.

    The option `articles` is the number of articles to keep. By default these are the longest articles, whose
    topics are similar (countries, states). With the option `fewest`, they are the first articles that have at
    least `fewest` sentences; their topics differ more.
    """
    settings = spec.settings(articles=None, per_article=None, fewest=None)
    for option, value in settings.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SpaceError(f"{option}: expected a whole number, at least 1, got {value!r}")
    articles = sentences_by_article(store)
    fewest = settings["fewest"]
    titles = [title for title, sentences in articles.items() if len(sentences) >= (fewest or 1)]
    if not titles:
        longest = max(map(len, articles.values()))
        raise SpaceError(
            f"fewest: expected at most the {longest} sentences of the longest article, got {fewest}"
        )
    if fewest is None:
        titles.sort(key=lambda title: len(articles[title]), reverse=True)
    chosen = set(titles[: settings["articles"]])
    rows = [
        (f"{title}/{number}", title, sentence)
        for title in articles
        if title in chosen
        for number, sentence in enumerate(articles[title][: settings["per_article"]])
    ]
    rows = [rows[row] for row in evenly([title for _, title, _ in rows], spec.limit)]
    ids, labels, sentences = zip(*rows, strict=True)
    return Dataset(
        lambda start, stop: list(sentences[start:stop]), ids, name="wikipedia", kind="texts", labels=labels
    )


def sentences_by_article(store: Store | None = None) -> dict[str, list[str]]:
    """The sentences of each article, by its title. Parsing takes seconds, so they are kept in the store."""
    package = find_spec("gensim")  # importing gensim would take seconds
    path = Path((package and package.origin) or "").parent / _ARTICLES
    if not package or not path.is_file():
        raise SpaceError(
            "wikipedia: expected the articles inside the package gensim, got none; run: pip install"
            ' "relscope[text]"'
        )
    key = digest_of("wikipedia sentences", _RECIPE, path.stat().st_size)
    with suppress(StoreError):
        store = store or Store()
        if entry := store.get(key):
            sentences = iter(entry.arrays["text"].tobytes().decode().split("\n"))
            sizes = zip(entry.metadata["titles"], entry.arrays["counts"].tolist(), strict=True)
            return {title: list(islice(sentences, n)) for title, n in sizes}
    articles = _sentences_by_article(path)
    arrays = {
        "text": np.frombuffer("\n".join(chain(*articles.values())).encode(), np.uint8),
        "counts": np.array(list(map(len, articles.values()))),
    }
    with suppress(StoreError):
        if store is not None:
            store.put(key, arrays, {"title": "Wikipedia's sentences", "titles": list(articles)})
    return articles


def _sentences_by_article(path: Path) -> dict[str, list[str]]:
    """The sentences of each article's paragraphs. Headings, lists and tables are left out."""
    from gensim.corpora.wikicorpus import extract_pages, filter_wiki

    articles = {}
    with bz2.open(path) as stream:
        for title, text, _ in extract_pages(stream, ("0",)):
            if not text or text.lstrip().lower().startswith("#redirect"):
                continue
            paragraphs = (line.strip() for line in filter_wiki(text).split("\n"))
            prose = (
                " ".join(_HOLLOW.sub("", line).split()) for line in paragraphs if line[:1] not in _MARKED
            )
            sentences = [part for line in prose for part in _END.split(line) if 40 <= len(part) <= 400]
            if sentences:
                articles[title] = sentences
    return articles


@extra()
def load_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The dataset that the spec names. Raises a SpaceError if its files cannot be read or its options are
    invalid. Datasets that are slow to parse are kept in `store`, by default `Store()`."""
    if spec.source == "digits":
        return digits_dataset(spec)
    if spec.source == "wikipedia":
        return wikipedia_dataset(spec, store)
    if spec.source == "parallel":
        spec.settings()  # raises an error, because datasets of this source have no options
        need_one_of("language", spec.name, LANGUAGES)
        ids, sentences = (column[: spec.limit] for column in load_parallel(("id", spec.name)).values())
        return Dataset(
            lambda start, stop: list(sentences[start:stop]), ids, name=f"everyday/{spec.name}", kind="texts"
        )
    if spec.source == "huggingface":
        table = hub_table(spec)
        return _table_dataset(table, spec, table.name, config=None)
    path = dataset_place(spec)
    if spec.source == "folder":
        if not path.is_dir():
            raise SpaceError(f"expected a folder, got {spec.name!r}, where there is none; check the spelling")
        tables = _table_splits(path)
        if not tables:
            return _image_dataset(path, spec)
        paths = tables[_chosen(path, spec.split, list(tables))]
    else:
        paths = [path]
    encoding = dict(spec.options).get("encoding", "")
    return _table_dataset(open_table(paths, encoding), spec, _table_name(paths[0]), encoding="")


_TEXT_NAMES = ("text", "sentence", "content")
_LABEL_NAMES = ("label", "labels", "class", "category", "target")
_BLOCK = 256
_GAP = 16  # if the numbers of two wanted rows differ by at most this, one call reads both
_READ_AT_ONCE = 4096


def _table_dataset(table: ItemTable, spec: DatasetSpec, name: str, **defaults: Any) -> Dataset:
    """The items in one column of a table. The ids are those of the option `id_column`. By default they are
    `name/row`, so that two columns of one table have equal ids."""
    settings = spec.settings(empty="error", id_column="", **defaults)
    empty = settings["empty"]
    id_column = settings["id_column"]
    need_one_of("empty", empty, ("error", "drop"))
    n = min(len(table), spec.limit or len(table))
    items = item_columns(table.columns)
    named = _named_labels(table)
    label = next((column for column in named if column != spec.column), None)
    label = _chosen_column(table, "label_column", spec.label_column, label_columns(table.columns), label)
    free = [column for column in items if column != label]
    free.sort(key=lambda column: (table.columns[column] != "image", column.lower() not in _TEXT_NAMES))
    column = _chosen_column(table, "column", spec.column, items, free[0] if free else None)
    if column is None:
        raise SpaceError(
            f"{table.name}: expected a column of images or text, got only {quote(table.columns)}; add one"
        )
    _chosen_column(table, "id_column", id_column, label_columns(table.columns), None)
    images = table.columns[column] == "image"
    if images:
        rows = np.arange(n)
    else:
        rows = _filled_rows(table, column, n, drop=empty == "drop")

    ids = None
    if id_column:
        ids = table_ids(table, id_column, n)
    reader = ItemRows(table, column, rows)
    several = len(set(items) - {label, *named} | {column}) > 1
    return Dataset(
        reader.images if images else reader.texts,
        [ids[row] if ids else f"{name}/{row}" for row in rows],
        name=f"{name} · {column}" if several else name,
        kind="images" if images else "texts",
        labels=None if label is None else _labels(table, label, n)[rows],
        content=reader.content if images else None,
    )


class ItemRows:
    """Reads the items of a dataset from one column of a table. Item i is in row `rows[i]` of the table."""

    def __init__(self, table: ItemTable, column: str, rows: np.ndarray) -> None:
        self._table = table
        self._column = column
        self._rows = rows

    def _cells(self, start: int, stop: int) -> list[tuple[str, Any]]:
        """The cells of these rows. Before each cell stands the name of its place, for error messages."""
        cells = {}
        rows = self._rows[start:stop]
        # Read only nearby rows together, because the rows between them are read too, and pictures are large.
        parts = np.split(np.sort(rows), np.flatnonzero(np.diff(np.sort(rows)) > _GAP) + 1)
        for some in parts if len(rows) else ():
            read = self._table.read(self._column, int(some[0]), int(some[-1]) + 1)
            cells.update(enumerate(read, int(some[0])))
        return [(f"{self._table.name}, row {row}", cells[row]) for row in rows]

    def texts(self, start: int, stop: int) -> list[str]:
        return ["" if value is None else str(value) for _, value in self._cells(start, stop)]

    def images(self, start: int, stop: int) -> list[Any]:
        return [decode_image(self._bytes(value, where), where) for where, value in self._cells(start, stop)]

    def content(self) -> Iterator[bytes]:
        for start in range(0, len(self._rows), _BLOCK):
            for where, value in self._cells(start, start + _BLOCK):
                yield self._bytes(value, where) or b""

    def _bytes(self, value: Any, where: str) -> bytes | None:
        """The bytes of a picture: the cell has them, or the path of the picture's file relative to the
        table."""
        if isinstance(value, str):
            value = {"path": value}
        if not isinstance(value, dict):
            return value
        path = value.get("path")
        if value.get("bytes") or not path:
            return value.get("bytes")
        try:
            place = access.readable_path((self._table.folder or Path()) / path)
            if place.exists():
                return image_file(place)
            return place.read_bytes()
        except (OSError, SpaceError) as error:
            got = getattr(error, "strerror", None) or error
            raise SpaceError(
                f"{where}: expected the image {path!r:.200}, got {got}; copy it beside the table"
            ) from error


def item_columns(columns: dict[str, ColumnKind]) -> list[str]:
    """The names of the columns that can be encoded: first images, then texts."""
    return [name for kind in ("image", "text") for name in columns if columns[name] == kind]


def label_columns(columns: dict[str, ColumnKind]) -> list[str]:
    return [name for name, kind in columns.items() if kind in ("number", "text")]


def _named_labels(table: ItemTable) -> list[str]:
    choices = label_columns(table.columns)
    exact = [name for name in choices if name.lower() in _LABEL_NAMES]
    return exact + [name for name in choices if name.lower().endswith(("_label", "_class", "_category"))]


def _chosen_column(
    table: ItemTable, setting: str, column: str, choices: list[str], usual: str | None
) -> str | None:
    if column and column not in choices:
        known = "none, because no column of the table fits"
        if choices:
            known = f"one of {quote(choices)}"
        raise SpaceError(f"{table.name}: {setting}: expected {known}, got {column!r}")
    return column or usual


def _cells(table: ItemTable, column: str, n: int) -> Iterator[Any]:
    for start in range(0, n, _READ_AT_ONCE):
        yield from table.read(column, start, min(start + _READ_AT_ONCE, n))


def table_ids(table: ItemTable, column: str, n: int) -> list[str]:
    """The first n ids of a column. Raises a SpaceError if one is empty, invalid or repeated."""
    ids = checked_ids(list(_cells(table, column, n)), f"{table.name}, column {column!r}")
    if len(set(ids)) < n:
        twice = Counter(ids).most_common(1)[0][0]
        raise SpaceError(
            f"{table.name}: id_column: expected distinct ids in {column!r}, got {twice!r:.80} more than once;"
            " choose another column, or none, so that rows are numbered"
        )
    return ids


def _id_column(table: ItemTable) -> str:
    """The first column that has distinct values and a name that is typical of ids; "" if there is none."""
    named = [name for name in label_columns(table.columns) if names_ids(name)]
    for column in sorted(named, key=lambda name: name.strip().lower() not in ("id", "ids")):
        with suppress(SpaceError):
            table_ids(table, column, len(table))
            return column
    return ""


def _filled_rows(table: ItemTable, column: str, n: int, drop: bool) -> np.ndarray:
    """The numbers of the rows that have a text. Unless `drop`, raises a SpaceError if one has none."""
    empty = np.array([not (text and text.strip()) for text in _cells(table, column, n)], dtype=bool)
    if empty.any() and not drop:
        rows = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise SpaceError(
            f"{table.name}: expected text in every row of {column!r}, got {empty.sum()} empty of {n} (rows"
            f" {rows}, counted from 0); fill these rows, or leave them out with the option empty='drop'"
        )
    return np.flatnonzero(~empty)


def _labels(table: ItemTable, column: str, n: int) -> np.ndarray:
    """The labels in a column, as texts. The cells 3 and 3.0 give the same class. A row with a missing value
    has no class."""
    names = dict(enumerate(table.class_names.get(column) or ()))
    if names:
        names |= {None: "", -1: ""}
    else:
        names |= {None: ""}
    labels = np.full(n, "", dtype=object)
    for row, value in enumerate(_cells(table, column, n)):
        if value == value:  # false for NaN
            if isinstance(value, float) and value.is_integer():
                value = int(value)
            labels[row] = names.get(value, str(value))
    return labels


# Folders. A folder of pictures has a sub-folder for each class. In a folder of tables, each table is a split.

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT = re.compile(r"(train|test|val|valid|validation|dev)(?![a-z])", re.IGNORECASE)


def _is_file(path: Path, suffixes: Sequence[str]) -> bool:
    return path.suffix.lower() in suffixes and access.may_read(path) and path.is_file()


def _table_splits(folder: Path) -> dict[str, list[Path]]:
    """A dictionary from the name of each split to the files of its table. A table in shards has several files
    (`train-00000-of-00002.parquet`)."""
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if _is_file(path, TABLE_SUFFIXES):
            splits.setdefault(_SHARD.sub("", path.stem), []).append(path)
    return splits


def _table_name(path: Path) -> str:
    """The name of a table: the file's name without suffix. If that is the name of a split, the folder's name
    is put before it: ``"mnist/test"``."""
    stem = _SHARD.sub("", path.stem)
    folder = path.absolute().parent.name
    if _SPLIT.match(stem) and folder:
        return f"{folder}/{stem}"
    return stem


def _sub_folders(folder: Path) -> list[Path]:
    children = (child for child in sorted(folder.iterdir()) if not child.name.startswith("."))
    return [child for child in children if access.may_read(child) and child.is_dir()]


def splits_of(folder: Path) -> list[str]:
    """The splits from which a user can choose. The list is empty if the folder has none, or if
    `datasets.save_to_disk` wrote it."""
    return list(_table_splits(folder)) or _image_splits(folder)


def _image_splits(folder: Path) -> list[str]:
    children = [child.name for child in _sub_folders(folder)]
    if all(_SPLIT.fullmatch(name) for name in children):
        return children
    return []


def _image_dataset(folder: Path, spec: DatasetSpec) -> Dataset:
    """The pictures in a folder. Their ids are paths below the folder, and their labels are the names of
    sub-folders."""
    spec.settings()
    splits = _image_splits(folder)
    root = folder
    if splits or spec.split:
        root = folder / _chosen(folder, spec.split, splits)
    images = sorted(path for path in root.rglob("*") if _is_file(path, IMAGE_SUFFIXES))
    if not images:
        raise SpaceError(
            f"{root}: expected tables ({', '.join(TABLE_SUFFIXES)}) or pictures"
            f" ({', '.join(IMAGE_SUFFIXES)}), got none; choose the folder that holds them"
        )
    classes = ["" if path.parent == root else path.relative_to(root).parts[0] for path in images]
    rows = evenly(classes, spec.limit)
    paths = [images[row] for row in rows]
    labels = [classes[row] for row in rows]

    def read(start: int, stop: int) -> list[Any]:
        numbered = enumerate(paths[start:stop], start)
        return [decode_image(_file_bytes(path), f"row {row}, {path}") for row, path in numbered]

    return Dataset(
        read,
        [path.relative_to(folder).as_posix() for path in paths],
        name=f"{folder.name}/{root.name}" if splits else folder.name,
        kind="images",
        labels=labels if any(labels) else None,
        content=lambda: map(_file_bytes, paths),
    )


def _file_bytes(path: Path) -> bytes:
    try:
        return image_file(path)
    except OSError as error:
        raise SpaceError(
            f"{path}: expected an image that can be read, got {error.strerror}; load the folder again"
        ) from error


def _chosen(place: Path | str, split: str, splits: Sequence[str]) -> str:
    if not split and len(splits) == 1:
        return next(iter(splits))
    if split not in splits:
        raise SpaceError(f"{place}: split: expected one of {quote(splits) or 'none'}, got {split!r}")
    return split


def hub_table(spec: DatasetSpec) -> HubTable:
    """One split of a dataset, on the hub or in a folder that the library `datasets` can load.

    Raises a SpaceError if the download fails or the library refuses the data.
    """
    import datasets
    from huggingface_hub import constants

    config = spec.settings(config=None, empty=None, id_column=None)["config"]
    folder = hub_folder(spec.name)
    here = is_downloaded(spec.name)
    if folder is not None:
        return _loaded(str(folder), config, spec.split, folder.name)
    if not HUB_NAME.fullmatch(spec.name):
        raise SpaceError(
            f"expected a folder or the hub's name of a dataset ('owner/name'), got {spec.name!r}, where there"
            " is nothing; check the spelling, or choose the source 'file' for a single file"
        )
    if access.is_shared() and not here:
        raise SpaceError(
            f"{spec.name!r:.80}: this app is shared, so it downloads no datasets; ask whoever runs it to"
            " download this one"
        )
    short = spec.name.rsplit("/", 1)[-1]
    if not datasets.config.HF_HUB_OFFLINE and hub_answers():
        return _loaded(spec.name, config, spec.split, short)
    if not here:
        raise SpaceError(
            f"{spec.name}: expected it on this machine, or the network to download it, got neither; on a"
            f" machine with a network run datasets.load_dataset({spec.name!r}).save_to_disk(folder), copy the"
            " folder here, and give its path"
        )
    from unittest.mock import patch  # imports asyncio

    # Without a request to the hub, datasets are loaded from the cache.
    with (
        patch.object(datasets.config, "HF_HUB_OFFLINE", True),
        patch.object(constants, "HF_HUB_OFFLINE", True),
    ):
        return _loaded(spec.name, config, spec.split, short)


def is_downloaded(name: str) -> bool:
    """Whether this dataset of the hub was loaded on this machine before."""
    home = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    cache = access.expand_home(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    return (cache / name.replace("/", "___")).is_dir()


class HubTable:
    """One split of a dataset that the library `datasets` has loaded, with the interface of an `ItemTable`."""

    folder = None

    def __init__(self, rows: Any, name: str) -> None:
        from datasets import ClassLabel, Image

        self.name = name
        features = rows.features
        self.columns = {column: _hub_kind(feature) for column, feature in features.items()}
        self.class_names = {
            name: part.names for name, part in features.items() if isinstance(part, ClassLabel)
        }
        rows = rows.with_format(None)
        for column in (column for column, kind in self.columns.items() if kind == "image"):
            rows = rows.cast_column(column, Image(decode=False))
        self._n = len(rows)
        self._columns = {column: rows.select_columns([column]) for column in self.columns}

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        if start < stop:
            return list(self._columns[column][start:stop][column])
        return []


def _hub_kind(feature: Any) -> ColumnKind:
    from datasets import ClassLabel, Image

    kind = getattr(feature, "dtype", "")
    if isinstance(feature, Image):
        return "image"
    if kind in ("string", "large_string"):
        return "text"
    number = isinstance(feature, ClassLabel) or kind.startswith(("int", "uint", "float", "bool"))
    return "number" if number else "other"


def _loaded(name: str, config: str | None, split: str, short: str) -> HubTable:
    import datasets

    try:
        if any(Path(name, file).is_file() for file in ("dataset_dict.json", "state.json")):
            splits = datasets.load_from_disk(name)
        else:
            if split:
                names = [split]
            else:
                names = datasets.get_dataset_split_names(name, config)
            splits = dict.fromkeys(names)
            if len(names) == 1:
                splits[names[0]] = datasets.load_dataset(name, config, split=names[0])
    except Exception as error:  # the library, the hub's client, Arrow and the disk raise many kinds of errors
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        raise SpaceError(
            f"{name}: expected a dataset that datasets.load_dataset can load, got {reason[:300]}"
        ) from error
    if not isinstance(splits, dict):
        return HubTable(splits, short)
    split = _chosen(name, split, splits)
    return HubTable(splits[split], f"{short}/{split}")


_MOST_ENTRIES = 200
_MOST_NUMBERS = 16  # number of columns of numbers in a table of items; with more, it holds vectors
_LOOK_AT = 200  # maximum number of files and sub-folders that are looked at


@dataclass(frozen=True)
class ColumnNames:
    """The columns of a table. `items` and `labels` are those that a user can choose as items and as labels.
    `ids`, `item` and `label` are the most likely ones, "" if there is none. `encoding` is the text
    encoding."""

    items: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()
    ids: str = ""
    item: str = ""
    label: str = ""
    encoding: str = ""


def with_options(spec: DatasetSpec, **options: str) -> DatasetSpec:
    """The spec with these options added. Options without a value are left out."""
    options = dict(spec.options) | {name: value for name, value in options.items() if value}
    return replace(spec, options=DatasetOptions(sorted(options.items())))


def columns_of(spec: DatasetSpec) -> ColumnNames:
    """The columns from which a user can choose."""
    table = None
    ids = ""
    found = ("", "", "")
    if spec.source == "huggingface":
        table = hub_table(spec)
    elif spec.source == "file":
        table = open_table([dataset_place(spec)], dict(spec.options).get("encoding", ""))
    elif spec.source == "folder" and (folder := dataset_place(spec)).is_dir():
        tables = _table_splits(folder)
        paths = tables.get(spec.split) or next(iter(tables.values()), None)
        table = open_table(paths) if paths else None
    if isinstance(table, ItemTable):
        ids = _id_column(table)
        roles = table.roles()
        named = [roles.place(role) for role in ("pictures", "text", "labels")]
        pictures, text, label = ("" if at is None else list(table.columns)[at] for at in named)
        item = next((name for name in (pictures, text) if name in item_columns(table.columns)), "")
        found = (item, label, table.encoding)
    columns = {} if table is None else table.columns
    return ColumnNames(tuple(item_columns(columns)), tuple(label_columns(columns)), ids, *found)


def available_datasets(data_folder: str | Path | None = None) -> list[DatasetEntry]:
    """The bundled datasets, then those in the data folder (by default RELSCOPE_DATA), up to two folders deep.

    Only names and headers of files are read. At most 200 datasets of the data folder are listed.
    """
    if data_folder:
        folder = access.readable_path(data_folder)
    else:
        folder = access.data_folder()
    entries = []
    if folder and folder.is_dir():
        entries = list(islice(_under(folder), _MOST_ENTRIES))
    return [*_bundled(), *entries]


def _bundled() -> Iterator[DatasetEntry]:
    articles = "sentences of {} Wikipedia articles, which are the labels"
    languages = f"the same sentences in {len(LANGUAGES)} languages, for parallel anchors"
    digits = "scikit-learn's handwritten digits, 8 × 8, 10 classes"
    yield DatasetEntry("digits", "images", DatasetSpec("digits"), 1797, digits)
    yield DatasetEntry("wikipedia, 16 articles", "texts", TASK, 5482, articles.format(16))
    yield DatasetEntry("wikipedia", "texts", DatasetSpec("wikipedia"), 18214, articles.format(103))
    for code, language in LANGUAGES.items():
        spec = DatasetSpec("parallel", code)
        yield DatasetEntry(f"everyday sentences, {language}", "texts", spec, N_SENTENCES, languages)


def _under(folder: Path, depth: int = 2) -> Iterator[DatasetEntry]:
    with suppress(OSError):
        tables = _table_splits(folder)
        if depth < 2 and not tables and holds_images(folder):
            for split in _image_splits(folder) or [""]:
                spec = DatasetSpec("folder", str(folder), split)
                if split:
                    name = f"{folder.name}/{split}"
                else:
                    name = folder.name
                yield DatasetEntry(name, "images", spec, None, "folder of pictures")
            return  # the sub-folders are classes
        for split, paths in tables.items():
            with suppress(SpaceError):
                yield from _table_entry(folder, split, paths)
        for child in _sub_folders(folder) if depth else ():
            yield from _under(child, depth - 1)


def holds_images(folder: Path) -> bool:
    """Whether there are pictures among the first files of a folder, or of its sub-folders for classes and
    splits."""
    if any(_is_file(path, IMAGE_SUFFIXES) for path in islice(folder.iterdir(), _LOOK_AT)):
        return True
    if splits := _image_splits(folder):
        return any(holds_images(folder / split) for split in splits)
    paths = (path for child in _sub_folders(folder)[:_LOOK_AT] for path in islice(child.iterdir(), 5))
    return any(_is_file(path, IMAGE_SUFFIXES) for path in paths)


def _table_entry(folder: Path, split: str, paths: list[Path]) -> Iterator[DatasetEntry]:
    """Yield the entry of a table in the list of datasets, if its header shows that it has images or texts."""
    first = paths[0]
    suffix = paths[0].suffix.lower()
    table = None
    if suffix == ".parquet":
        table = open_table(paths)
    if table is None:
        columns = first_kinds(first)
    else:
        columns = table.columns
    kinds = list(columns.values())
    kind = "texts"
    if "image" in kinds:
        kind = "images"
    if kind == "images" or ("text" in kinds and kinds.count("number") <= _MOST_NUMBERS):
        spec = DatasetSpec("file", str(first))
        if len(paths) > 1:
            spec = DatasetSpec("folder", str(folder), split)
        description = f"{suffix} file; columns {', '.join(columns)}"
        yield DatasetEntry(_table_name(first), kind, spec, None if table is None else len(table), description)


# Lists of pairs, for example sentences with their translations, or ids of two spaces.

_MOST_PAIRS = 100_000


@dataclass(frozen=True)
class PairList:
    """Columns of equal length, by name. Row i of every column describes the same item."""

    name: str
    columns: dict[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def pairs(self, first: str, second: str) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns[first], self.columns[second], strict=True))


def read_pair_list(path: Path) -> PairList:
    """Read the text columns of a .csv or .tsv file. If it has fewer than two, all columns are read.

    Raises
    ------
    SpaceError
        The file is not a table, has fewer than two columns or rows, or has empty cells.
    """
    path = Path(path)
    table = open_table([path])
    names = [name for name, kind in table.columns.items() if kind == "text"]
    if len(names) <= 1:
        names = label_columns(table.columns)
    if len(names) < 2:
        signs = "commas"
        if path.suffix.lower() == ".tsv":
            signs = "tabs"
        raise SpaceError(
            f"{path.name}: expected two columns, one per language, got {quote(table.columns) or 'none'}; name"
            f" them in the first line and separate cells by {signs}"
        )
    n = len(table)
    if not 2 <= n <= _MOST_PAIRS:
        raise SpaceError(
            f"{path.name}: expected 2 to {_MOST_PAIRS:,} pairs below the line of column names, got {n:,};"
            " add or remove lines"
        )
    columns = {}
    for name in names:
        cells = checked_labels(table.read(name, 0, n), f"{path.name}, column {name!r}")
        columns[name] = tuple(" ".join(cell.split()) for cell in cells)
        if empty := [row for row, cell in enumerate(columns[name]) if not cell]:
            raise SpaceError(
                f"{path.name}: expected text in every cell of {name!r}, got {len(empty)} empty, the first in"
                f" row {empty[0]}; fill these cells, or delete their rows"
            )
    return PairList(path.stem, columns)
