"""What can be encoded: load_dataset reads it, available_datasets lists it."""

from __future__ import annotations

import os
import re
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.access import allowed, expanded, shared
from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import extra
from relcore.encoders import planetoid
from relcore.encoders.dataset import (
    BLOCK,
    HUB_NAME,
    Dataset,
    DatasetEntry,
    DatasetSpec,
    Kind,
    dataset_place,
    evenly,
    hub_folder,
)
from relcore.encoders.digits import digits_dataset
from relcore.encoders.images import SUFFIXES as IMAGE_SUFFIXES
from relcore.encoders.images import decode_image, image_file
from relcore.encoders.network import hub_answers
from relcore.encoders.parallel import LANGUAGES, N_SENTENCES, parallel_dataset
from relcore.encoders.wikipedia import TASK, wikipedia_dataset
from relcore.files.items import SUFFIXES, ItemTable, first_kinds, open_table
from relcore.files.items import SUFFIXES as TABLE_SUFFIXES
from relcore.files.rows import checked_labels
from relcore.files.tables import ColumnKind
from relcore.runs.store import Store

# A table becomes a dataset: which column holds the items, which the labels, and which rows count.

_TEXT_NAMES = ("text", "sentence", "content")
_LABEL_NAMES = ("label", "labels", "class", "category", "target")
_READ_AT_ONCE = 4096


def table_dataset(table: ItemTable, spec: DatasetSpec, name: str, **defaults: Any) -> Dataset:
    """The items of a table; ids are `name/row`, so two columns of one table match each other and nothing
    else.

    Raises
    ------
    SpaceError
        A column that is not there or holds neither images nor text, rows with empty text, no rows.
    """
    settings = spec.settings(empty="error", **defaults)
    if settings["empty"] not in ("error", "drop"):
        raise SpaceError(f"empty: expected 'error' or 'drop', got {settings['empty']!r}")
    n = min(len(table), spec.limit or len(table))
    if not n:
        raise SpaceError(f"{table.name}: expected at least one row, got none; add rows")
    label_column = _chosen_label(table, spec)
    column = _chosen_item(table, spec, label_column)
    rows = np.arange(n)
    if table.columns[column] == "text":
        rows = _filled(table, column, n, drop=settings["empty"] == "drop")
    labels = None if label_column is None else _labels(table, label_column, n)[rows]
    shared = len(set(item_columns(table.columns)) - {label_column, *_label_names(table)} | {column}) > 1
    reader = ItemRows(table, column, rows)
    images = table.columns[column] == "image"
    return Dataset(
        reader.images if images else reader.values,
        [f"{name}/{row}" for row in rows],
        name=f"{name} · {column}" if shared else name,
        kind="images" if images else "texts",
        labels=labels,
        content=reader.content if images else None,
    )


def item_columns(columns: dict[str, ColumnKind]) -> list[str]:
    """What can be encoded: images first, then texts."""
    return [name for kind in ("image", "text") for name, found in columns.items() if found == kind]


def label_columns(columns: dict[str, ColumnKind]) -> list[str]:
    return [name for name, kind in columns.items() if kind in ("number", "text")]


class ItemRows:
    """Rows of one column by their place among those that count."""

    def __init__(self, table: ItemTable, column: str, rows: np.ndarray) -> None:
        self._table, self._column, self._rows = table, column, rows

    def values(self, start: int, stop: int) -> list[Any]:
        rows = self._rows[start:stop]
        if not len(rows):
            return []
        values = self._table.read(self._column, int(rows[0]), int(rows[-1]) + 1)
        return [values[row] for row in rows - rows[0]]

    def texts(self, start: int, stop: int) -> list[str]:
        return ["" if value is None else str(value) for value in self.values(start, stop)]

    def images(self, start: int, stop: int) -> list[Any]:
        values = zip(self._rows[start:stop], self.values(start, stop), strict=True)
        return [
            decode_image(self._bytes(value, row), f"{self._table.name}, row {row}") for row, value in values
        ]

    def content(self) -> Iterator[bytes]:
        for start in range(0, len(self._rows), BLOCK):
            values = zip(
                self._rows[start : start + BLOCK],
                self.values(start, min(start + BLOCK, len(self._rows))),
                strict=True,
            )
            for row, value in values:
                yield self._bytes(value, row) or b""

    def _bytes(self, value: Any, row: int) -> bytes | None:
        """The bytes in a cell, or those of the picture file that it names, beside the table or in full."""
        value = {"path": value} if isinstance(value, str) else value
        if not isinstance(value, dict):
            return value
        path = value.get("path")
        if value.get("bytes") or not path:
            return value.get("bytes")
        try:
            place = allowed((self._table.folder or Path()) / path)
            return image_file(place) if place.exists() else place.read_bytes()
        except (OSError, SpaceError) as error:
            where, got = f"{self._table.name}, row {row}", getattr(error, "strerror", None) or error
            raise SpaceError(
                f"{where}: expected the image {path!r:.200}, got {got}; copy it beside the table"
            ) from error


def _chosen_item(table: ItemTable, spec: DatasetSpec, label_column: str | None) -> str:
    choices = item_columns(table.columns)
    if spec.column:
        if spec.column not in choices:
            held = {"number": "numbers", "other": "something else"}.get(
                table.columns.get(spec.column, ""), ""
            )
            got = f"{spec.column!r}, which holds {held}" if held else repr(spec.column)
            raise SpaceError(
                f"{table.name}: column: expected one with images or text, {_listed(choices)}, got {got}"
            )
        return spec.column
    free = [name for name in choices if name != label_column]
    images = [name for name in free if table.columns[name] == "image"]
    named = [name for name in free if name.lower() in _TEXT_NAMES]
    if not free:
        raise SpaceError(
            f"{table.name}: expected a column of images or text, got only {quote(table.columns)}; add one"
        )
    return (images or named or free)[0]


def _chosen_label(table: ItemTable, spec: DatasetSpec) -> str | None:
    choices = label_columns(table.columns)
    if spec.label_column:
        if spec.label_column not in choices:
            raise SpaceError(
                f"{table.name}: label_column: expected one with text or numbers, {_listed(choices)}, got"
                f" {spec.label_column!r}"
            )
        return spec.label_column
    return next((name for name in _label_names(table) if name != spec.column), None)


def _label_names(table: ItemTable) -> list[str]:
    """Columns that are called labels, the plainest name first."""
    choices = label_columns(table.columns)
    exact = [name for name in choices if name.lower() in _LABEL_NAMES]
    return exact + [name for name in choices if name.lower().endswith(("_label", "_class", "_category"))]


def _listed(names: Sequence[str]) -> str:
    names = list(names)
    return f"of {quote(names)}" if names else "and the table has none"


def _filled(table: ItemTable, column: str, n: int, drop: bool) -> np.ndarray:
    """Numbers of the rows with text; empty ones are an error that names them, unless they are dropped."""
    empty = np.zeros(n, dtype=bool)
    for start in range(0, n, _READ_AT_ONCE):
        texts = table.read(column, start, min(start + _READ_AT_ONCE, n))
        empty[start : start + len(texts)] = [not (text and text.strip()) for text in texts]
    if empty.any() and not drop:
        rows = ", ".join(map(str, np.flatnonzero(empty)[:5]))
        raise SpaceError(
            f"{table.name}: expected text in every row of {column!r}, got {empty.sum()} empty of {n} (rows"
            f" {rows}, counted from 0); fill them, or leave them out with the option empty='drop'"
        )
    return np.flatnonzero(~empty)


def _labels(table: ItemTable, column: str, n: int) -> np.ndarray:
    names = table.class_names.get(column)
    labels = np.empty(n, dtype=object)
    for start in range(0, n, _READ_AT_ONCE):
        values = table.read(column, start, min(start + _READ_AT_ONCE, n))
        labels[start : start + len(values)] = [_label(value, names) for value in values]
    return labels


def _label(value: Any, names: Sequence[str] | None) -> str:
    """3 and 3.0 are one class; missing values have none."""
    if value is None or value != value:
        return ""
    if isinstance(value, float) and value.is_integer():
        value = int(value)
    if names and isinstance(value, int) and 0 <= value < len(names):
        return names[value]
    return "" if names and value == -1 else str(value)


# Folders: pictures whose sub-folders are their classes, or tables of which each is a split.

_SHARD = re.compile(r"-\d{5}-of-\d{5}$")
_SPLIT = re.compile(r"(train|test|val|valid|validation|dev)(?![a-z])", re.IGNORECASE)


def file_dataset(spec: DatasetSpec) -> Dataset:
    """The table in a .parquet, .csv or .tsv file."""
    path = dataset_place(spec)
    return table_dataset(open_table([path]), spec, file_name(path))


def folder_dataset(spec: DatasetSpec) -> Dataset:
    """The tables or pictures of a folder; `split` names a table, or a sub-folder such as "train"."""
    folder = dataset_place(spec)
    if not folder.is_dir():
        raise SpaceError(f"expected a folder, got {spec.name!r}, where there is none; check the spelling")
    tables = table_splits(folder)
    if tables:
        split = _chosen(folder, spec.split, list(tables))
        return table_dataset(open_table(tables[split]), spec, file_name(tables[split][0]))
    return _image_dataset(folder, spec)


def splits_of(folder: Path) -> list[str]:
    """The splits that a folder holds: tables, or sub-folders of pictures called "train", "test" and the
    like.
    """
    return list(table_splits(folder)) or _image_splits(folder)


def table_splits(folder: Path) -> dict[str, list[Path]]:
    """Split → its table's files, several if Hugging Face wrote it (`train-00000-of-00002.parquet`)."""
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in TABLE_SUFFIXES and access.may_read(path) and path.is_file():
            splits.setdefault(_SHARD.sub("", path.stem), []).append(path)
    return splits


def file_name(path: Path) -> str:
    """``"mnist/test"``: the file's name without suffix, with the folder's name if the file's is that of a
    split.
    """
    stem = _SHARD.sub("", path.stem)
    folder = path.absolute().parent.name
    return f"{folder}/{stem}" if _SPLIT.match(stem) and folder else stem


def holds_images(folder: Path, look_at: int = 200) -> bool:
    """Whether there are pictures among the first files of a folder, of its classes, or of its splits'
    classes.
    """
    if any(_is_image(path) for path in islice(folder.iterdir(), look_at)):
        return True
    if splits := _image_splits(folder):
        return any(holds_images(folder / split, look_at) for split in splits)
    return any(
        _is_image(path)
        for child in islice(sub_folders(folder), look_at)
        for path in islice(child.iterdir(), 5)
    )


def _image_dataset(folder: Path, spec: DatasetSpec) -> Dataset:
    """Mode and size as stored; ids are paths below the folder, labels the sub-folders of the pictures."""
    spec.settings()
    splits = _image_splits(folder)
    root = folder / _chosen(folder, spec.split, splits) if splits else folder
    if spec.split and not splits:
        raise SpaceError(
            f"{folder}: expected a folder or table {spec.split!r} in it, got none; leave the split empty"
        )
    found = sorted(path for path in root.rglob("*") if _is_image(path))
    if not found:
        raise SpaceError(
            f"{root}: expected tables ({', '.join(TABLE_SUFFIXES)}) or pictures"
            f" ({', '.join(IMAGE_SUFFIXES)}), got none; choose the folder that holds them"
        )
    classes = ["" if path.parent == root else path.relative_to(root).parts[0] for path in found]
    rows = evenly(classes, spec.limit)
    paths, labels = [found[row] for row in rows], [classes[row] for row in rows]
    ids = [path.relative_to(folder).as_posix() for path in paths]

    def content() -> Iterator[bytes]:
        return (_bytes(path) for path in paths)

    return Dataset(
        lambda start, stop: [
            decode_image(_bytes(path), f"row {row}, {path}")
            for row, path in enumerate(paths[start:stop], start)
        ],
        ids,
        name=f"{folder.name}/{root.name}" if splits else folder.name,
        kind="images",
        labels=labels if any(labels) else None,
        content=content,
    )


def _bytes(path: Path) -> bytes:
    try:
        return image_file(path)
    except OSError as error:
        raise SpaceError(
            f"{path}: expected an image that can be read, got {error.strerror}; load the folder again"
        ) from error


def _image_splits(folder: Path) -> list[str]:
    children = [child.name for child in sub_folders(folder)]
    return children if children and all(_SPLIT.fullmatch(name) for name in children) else []


def sub_folders(folder: Path) -> Iterator[Path]:
    return (
        child
        for child in sorted(folder.iterdir())
        if not child.name.startswith(".") and access.may_read(child) and child.is_dir()
    )


def _is_image(path: Path) -> bool:
    return path.suffix.lower() in IMAGE_SUFFIXES and access.may_read(path) and path.is_file()


def _chosen(folder: Path, split: str, splits: list[str]) -> str:
    if split in splits:
        return split
    if not split and len(splits) == 1:
        return splits[0]
    raise SpaceError(f"{folder}: split: expected one of {quote(splits)}, got {split!r}")


# Hugging Face datasets by name or folder, read by the library `datasets` itself; without network it says so
# at once.

LISTED = (
    ("ylecun/mnist", "images", "test", 10_000, "handwritten digits, 28 × 28, 10 classes"),
    ("zalando-datasets/fashion_mnist", "images", "test", 10_000, "clothes, 28 × 28, 10 classes"),
    ("uoft-cs/cifar10", "images", "test", 10_000, "photographs, 32 × 32, 10 classes"),
    ("fancyzhx/ag_news", "texts", "test", 7_600, "news, 4 classes"),
    ("fancyzhx/dbpedia_14", "texts", "test", 70_000, "encyclopedia entries, 14 classes"),
    ("stanfordnlp/imdb", "texts", "test", 25_000, "film reviews, 2 classes"),
)


def hub_dataset(spec: DatasetSpec) -> Dataset:
    """One split of a dataset of the hub, of a folder in a layout that `datasets` knows, or of one saved by
    it.

    Raises
    ------
    SpaceError
        A name that is neither on disk nor, within about two seconds, to be asked for; whatever the library
        refuses.
    """
    table = hub_table(spec)
    return table_dataset(table, spec, table.name, config=None)


def hub_table(spec: DatasetSpec) -> HubTable:
    """The table behind `hub_dataset`."""
    import datasets

    settings = spec.settings(config=None, empty=None)
    folder = hub_folder(spec.name)
    if folder is not None:
        return HubTable(*_loaded(str(folder), settings["config"], spec.split), folder.name)
    if not HUB_NAME.fullmatch(spec.name):
        raise SpaceError(
            f"expected a folder or the hub's name of a dataset ('owner/name'), got {spec.name!r}, where there"
            " is nothing; check the spelling, or choose the source 'file' for a single file"
        )
    if shared() and not downloaded(spec.name) and spec.name not in (names := [name for name, *_ in LISTED]):
        raise SpaceError(
            f"{spec.name!r:.80}: this app is shared, so it downloads only the datasets of its list,"
            f" {quote(names)}; ask whoever runs it to download this one"
        )
    short = spec.name.rsplit("/", 1)[-1]
    if not datasets.config.HF_HUB_OFFLINE and hub_answers():
        return HubTable(*_loaded(spec.name, settings["config"], spec.split), short)
    if not downloaded(spec.name):
        raise SpaceError(
            f"{spec.name}: expected it on this machine, or the network to download it, got neither; where"
            f" there is one run datasets.load_dataset({spec.name!r}).save_to_disk(folder), copy the folder"
            " here, and give its path"
        )
    with _offline():
        return HubTable(*_loaded(spec.name, settings["config"], spec.split), short)


def downloaded(name: str) -> bool:
    """Whether the hub's dataset has been loaded on this machine before; needs neither the network nor the
    library.
    """
    home = Path(
        os.environ.get("HF_HOME") or Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface"
    )
    cache = expanded(os.environ.get("HF_DATASETS_CACHE") or home / "datasets")
    return (cache / name.replace("/", "___")).is_dir()


class HubTable:
    """A split as an `ItemTable`; the library maps its rows into memory from its own cache."""

    folder = None

    def __init__(self, rows: Any, split: str, short: str) -> None:
        from datasets import ClassLabel, Image

        self.name = f"{short}/{split}" if split else short
        self.columns = {column: _kind_of_hub_datasets(feature) for column, feature in rows.features.items()}
        self.class_names: dict[str, Sequence[str]] = {
            column: feature.names
            for column, feature in rows.features.items()
            if isinstance(feature, ClassLabel)
        }
        rows = rows.with_format(None)
        for column, feature in rows.features.items():
            if isinstance(feature, Image):
                rows = rows.cast_column(column, Image(decode=False))
        self._n = len(rows)
        self._columns = {column: rows.select_columns([column]) for column in self.columns}

    def __len__(self) -> int:
        return self._n

    def read(self, column: str, start: int, stop: int) -> list[Any]:
        return list(self._columns[column][start:stop][column]) if start < stop else []


def _loaded(name: str, config: str | None, split: str) -> tuple[Any, str]:
    """The rows and the split that they are."""
    import datasets

    saved = Path(name, "dataset_dict.json").is_file() or Path(name, "state.json").is_file()
    try:
        if saved:
            found = datasets.load_from_disk(name)
        elif split:
            return datasets.load_dataset(name, config, split=split), split
        else:
            names = datasets.get_dataset_split_names(name, config)
            found = (
                datasets.load_dataset(name, config, split=names[0])
                if len(names) == 1
                else dict.fromkeys(names)
            )
            if len(names) == 1:
                return found, names[0]
    except Exception as error:  # the library, the hub's client, Arrow, the disk: each has its own
        reason = (str(error) or type(error).__name__).strip().split("\n")[0]
        raise SpaceError(
            f"{name}: expected a dataset that datasets.load_dataset can load, got {reason[:300]}"
        ) from error
    if not isinstance(found, dict):
        return found, ""
    if not split and len(found) == 1:
        split = next(iter(found))
    if split not in found:
        raise SpaceError(f"{name}: split: expected one of {quote(found)}, got {split!r}")
    return found[split], split


def _kind_of_hub_datasets(feature: Any) -> ColumnKind:
    from datasets import ClassLabel, Image, Value

    if isinstance(feature, Image):
        return "image"
    if isinstance(feature, ClassLabel):
        return "number"
    if isinstance(feature, Value):
        if feature.dtype in ("string", "large_string"):
            return "text"
        return "number" if feature.dtype.startswith(("int", "uint", "float", "bool")) else "other"
    return "other"


@contextmanager
def _offline() -> Iterator[None]:
    """What is in the cache is loaded without asking the hub first, which would be tried again and again."""
    from datasets import config
    from huggingface_hub import constants

    before = config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE
    config.HF_HUB_OFFLINE = constants.HF_HUB_OFFLINE = True
    try:
        yield
    finally:
        config.HF_HUB_OFFLINE, constants.HF_HUB_OFFLINE = before


_MOST_ENTRIES = 200
_MOST_NUMBERS = 16  # a table with more number columns holds vectors


@dataclass(frozen=True)
class ColumnNames:
    """Names of what a dataset's table offers: what can be encoded, and what can label it."""

    items: tuple[str, ...] = ()
    labels: tuple[str, ...] = ()


@extra()
def load_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The dataset that the spec names.

    Parameters
    ----------
    store : Store, optional
        Keeps what is slow to parse; default the environment's.

    Raises
    ------
    SpaceError
        Whatever is wrong with the files or the choices, with where it is and how to mend it.
    """
    match spec.source:
        case "digits":
            return digits_dataset(spec)
        case "wikipedia":
            return wikipedia_dataset(spec, store)
        case "parallel":
            spec.settings()
            return parallel_dataset(spec.name, spec.limit)
        case "file":
            return file_dataset(spec)
        case "folder":
            return folder_dataset(spec)
        case "huggingface":
            return hub_dataset(spec)
        case "planetoid":
            return planetoid.planetoid_dataset(spec, store)


def columns_of(spec: DatasetSpec) -> ColumnNames:
    """The columns to choose from; none for what has no columns. Errors as in `load_dataset`."""
    if spec.source == "huggingface":
        return _columns(hub_table(spec).columns)
    if spec.source == "file":
        return _columns(open_table([dataset_place(spec)]).columns)
    if spec.source == "folder" and (folder := dataset_place(spec)).is_dir():
        tables = table_splits(folder)
        return (
            _columns(open_table(tables.get(spec.split) or next(iter(tables.values()))).columns)
            if tables
            else ColumnNames()
        )
    return ColumnNames()


def available_datasets(data_folder: str | Path | None = None) -> list[DatasetEntry]:
    """Bundled ones, what lies under the data folder (else RELSCOPE_DATA), two folders deep, and a few that
    the network has.

    Never asks the network; of files only names and headers are read, and at most 200 are listed.
    """
    folder = access.allowed(data_folder) if data_folder else access.data_folder()
    found = list(islice(_under(folder), _MOST_ENTRIES)) if folder and folder.is_dir() else []
    graphs = {entry.name for entry in found if entry.kind == "graph"}
    return [*_bundled(), *found, *_graphs_elsewhere(graphs), *_hub()]


def _bundled() -> Iterator[DatasetEntry]:
    description = "scikit-learn's handwritten digits, 8 × 8, 10 classes"
    yield DatasetEntry("digits", "images", DatasetSpec("digits"), "here", 1797, description)
    description = "sentences of {} Wikipedia articles, which are the labels"
    yield DatasetEntry("wikipedia, 16 articles", "texts", TASK, "here", 5482, description.format(16))
    yield DatasetEntry("wikipedia", "texts", DatasetSpec("wikipedia"), "here", 18214, description.format(103))
    description = f"the same sentences in {len(LANGUAGES)} languages, for parallel anchors"
    for code, language in LANGUAGES.items():
        name = f"everyday sentences, {language}"
        yield DatasetEntry(name, "texts", DatasetSpec("parallel", code), "here", N_SENTENCES, description)


def _graphs_elsewhere(found: set[str]) -> Iterator[DatasetEntry]:
    for name, n in planetoid.GRAPHS.items():
        if name not in found:
            where = "here" if planetoid.raw_folder(name) else "needs the network"
            yield DatasetEntry(
                name, "graph", DatasetSpec("planetoid", name), where, n, "citation graph, papers by topic"
            )


def _hub() -> Iterator[DatasetEntry]:
    for name, kind, split, n, description in LISTED:
        where = "here" if downloaded(name) else "needs the network"
        yield DatasetEntry(name, kind, DatasetSpec("huggingface", name, split), where, n, description)


def _under(folder: Path, depth: int = 2) -> Iterator[DatasetEntry]:
    with suppress(OSError):
        tables = table_splits(folder)
        if depth < 2 and not tables and holds_images(folder):
            yield from _pictures(folder)  # its sub-folders are classes
            return
        yield from _tables(folder, tables)
        for name, n in planetoid.GRAPHS.items():
            if planetoid.raw_folder(name, folder):
                spec = DatasetSpec("planetoid", name, options=(("folder", str(folder)),))
                yield DatasetEntry(name, "graph", spec, "here", n, "citation graph, papers by topic")
        for child in sub_folders(folder) if depth else ():
            yield from _under(child, depth - 1)


def _pictures(folder: Path) -> Iterator[DatasetEntry]:
    for split in splits_of(folder) or [""]:
        name = f"{folder.name}/{split}" if split else folder.name
        yield DatasetEntry(
            name, "images", DatasetSpec("folder", str(folder), split), "here", None, "folder of pictures"
        )


def _tables(folder: Path, tables: dict[str, list[Path]]) -> Iterator[DatasetEntry]:
    for split, paths in tables.items():
        with suppress(SpaceError):
            columns, n = _peek(paths)
            kind = _kind(columns)
            if kind:
                spec = (
                    DatasetSpec("file", str(paths[0]))
                    if len(paths) == 1
                    else DatasetSpec("folder", str(folder), split)
                )
                description = f"{paths[0].suffix.lower()} file; columns {', '.join(columns)}"
                yield DatasetEntry(file_name(paths[0]), kind, spec, "here", n, description)


def _peek(paths: list[Path]) -> tuple[dict[str, ColumnKind], int | None]:
    """Columns and number of rows, as far as the header tells them."""
    if paths[0].suffix.lower() != ".parquet":
        return first_kinds(paths[0]), None
    table = open_table(paths)
    return table.columns, len(table)


def _kind(columns: dict[str, ColumnKind]) -> Kind | None:
    kinds = list(columns.values())
    if "image" in kinds:
        return "images"
    return "texts" if "text" in kinds and kinds.count("number") <= _MOST_NUMBERS else None


def _columns(columns: dict[str, ColumnKind]) -> ColumnNames:
    return ColumnNames(tuple(item_columns(columns)), tuple(label_columns(columns)))


# Lists of pairs: sentences and their translations, or ids of two spaces, from a .csv or .tsv of two columns
# or more.

MOST_PAIRS = 100_000


@dataclass(frozen=True)
class PairList:
    """Columns of equal length; row i means the same in every column.

    Attributes
    ----------
    name : str
    columns : name → its cells
    """

    name: str
    columns: dict[str, tuple[str, ...]]

    def __len__(self) -> int:
        return len(next(iter(self.columns.values())))

    def pairs(self, first: str, second: str) -> tuple[tuple[str, str], ...]:
        return tuple(zip(self.columns[first], self.columns[second], strict=True))


def read_pair_list(path: Path) -> PairList:
    """The text columns of a table; if there are fewer than two, all of its columns.

    Raises
    ------
    SpaceError
        No table, fewer than two columns or rows, empty cells, with the first one's row.
    """
    path = Path(path)
    if path.suffix.lower() not in SUFFIXES:
        raise SpaceError(
            f"{path.name}: expected a list of pairs in a .csv, .tsv or .parquet file, got"
            f" {path.suffix or 'no suffix'!r}; save the two columns as .tsv"
        )
    table = open_table([path])
    texts = [name for name in item_columns(table.columns) if table.columns[name] == "text"]
    names = (
        texts
        if len(texts) > 1
        else [name for name, kind in table.columns.items() if kind in ("text", "number")]
    )
    if len(names) < 2:
        raise SpaceError(
            f"{path.name}: expected two columns, one per language, got {quote(table.columns) or 'none'}; name"
            " them in the first line and separate cells by"
            f" {'tabs' if path.suffix.lower() == '.tsv' else 'commas'}"
        )
    n = len(table)
    if n < 2:
        raise SpaceError(
            f"{path.name}: expected two pairs or more beneath the line of names, got {n}; add pairs"
        )
    if n > MOST_PAIRS:
        raise SpaceError(
            f"{path.name}: expected at most {MOST_PAIRS:,} pairs, got {n:,}; keep the first ones"
        )
    columns = {
        name: tuple(
            " ".join(cell.split())
            for cell in checked_labels(table.read(name, 0, n), f"{path.name}, column {name!r}")
        )
        for name in names
    }
    for name, cells in columns.items():
        empty = [row for row, cell in enumerate(cells) if not cell]
        if empty:
            raise SpaceError(
                f"{path.name}: expected text in every cell of {name!r}, got {len(empty)} empty, first row"
                f" {empty[0]}; fill it, or leave the line out"
            )
    return PairList(path.stem, columns)
