"""What can be encoded: load_dataset reads it, available_datasets lists it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from itertools import islice
from pathlib import Path

from relcore import access
from relcore.extras import extra
from relcore.sources import planetoid
from relcore.sources.dataset import Dataset, DatasetEntry, DatasetSpec, Kind
from relcore.sources.digits import digits_dataset
from relcore.sources.folders import file_dataset, file_name, folder_dataset, holds_images, splits_of, sub_folders, table_splits
from relcore.sources.hub_datasets import LISTED, downloaded, hub_dataset, hub_table
from relcore.sources.item_tables import ColumnKind, delimited_columns, open_table
from relcore.sources.parallel import LANGUAGES, N_SENTENCES, parallel_dataset
from relcore.sources.places import dataset_place
from relcore.sources.table_dataset import item_columns, label_columns
from relcore.sources.wikipedia import TASK, wikipedia_dataset
from relcore.spaces import SpaceError
from relcore.store import Store

_MOST_ENTRIES = 200
_MOST_NUMBERS = 16  # a table with more number columns holds vectors


@dataclass(frozen=True)
class Columns:
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


def columns_of(spec: DatasetSpec) -> Columns:
    """The columns to choose from; none for what has no columns. Errors as in `load_dataset`."""
    if spec.source == "huggingface":
        return _columns(hub_table(spec).columns)
    if spec.source == "file":
        return _columns(open_table([dataset_place(spec)]).columns)
    if spec.source == "folder" and (folder := dataset_place(spec)).is_dir():
        tables = table_splits(folder)
        return _columns(open_table(tables.get(spec.split) or next(iter(tables.values()))).columns) if tables else Columns()
    return Columns()


def available_datasets(data_folder: str | Path | None = None) -> list[DatasetEntry]:
    """Bundled ones, what lies under the data folder (else RELSCOPE_DATA), two folders deep, and a few that the network has.

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
            yield DatasetEntry(name, "graph", DatasetSpec("planetoid", name), where, n, "citation graph, papers by topic")


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
        yield DatasetEntry(name, "images", DatasetSpec("folder", str(folder), split), "here", None, "folder of pictures")


def _tables(folder: Path, tables: dict[str, list[Path]]) -> Iterator[DatasetEntry]:
    for split, paths in tables.items():
        with suppress(SpaceError):
            columns, n = _peek(paths)
            kind = _kind(columns)
            if kind:
                spec = DatasetSpec("file", str(paths[0])) if len(paths) == 1 else DatasetSpec("folder", str(folder), split)
                description = f"{paths[0].suffix.lower()} file; columns {', '.join(columns)}"
                yield DatasetEntry(file_name(paths[0]), kind, spec, "here", n, description)


def _peek(paths: list[Path]) -> tuple[dict[str, ColumnKind], int | None]:
    """Columns and number of rows, as far as the header tells them."""
    if paths[0].suffix.lower() != ".parquet":
        return delimited_columns(paths[0]), None
    table = open_table(paths)
    return table.columns, len(table)


def _kind(columns: dict[str, ColumnKind]) -> Kind | None:
    kinds = list(columns.values())
    if "image" in kinds:
        return "images"
    return "texts" if "text" in kinds and kinds.count("number") <= _MOST_NUMBERS else None


def _columns(columns: dict[str, ColumnKind]) -> Columns:
    return Columns(tuple(item_columns(columns)), tuple(label_columns(columns)))
