"""Folders: pictures whose sub-folders are their classes, or tables of which each is a split."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice
from pathlib import Path

from relcore import access
from relcore.sources.dataset import Dataset, DatasetSpec, evenly
from relcore.sources.images import SUFFIXES as IMAGE_SUFFIXES
from relcore.sources.images import decode_image, image_file
from relcore.sources.item_tables import SUFFIXES as TABLE_SUFFIXES
from relcore.sources.item_tables import open_table
from relcore.sources.places import dataset_place
from relcore.sources.table_dataset import table_dataset
from relcore.spaces import SpaceError, quote

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
    """The splits that a folder holds: tables, or sub-folders of pictures called "train", "test" and the like."""
    return list(table_splits(folder)) or _image_splits(folder)


def table_splits(folder: Path) -> dict[str, list[Path]]:
    """Split → its table's files, several if Hugging Face wrote it (`train-00000-of-00002.parquet`)."""
    splits: dict[str, list[Path]] = {}
    for path in sorted(folder.iterdir()):
        if path.suffix.lower() in TABLE_SUFFIXES and access.may_read(path) and path.is_file():
            splits.setdefault(_SHARD.sub("", path.stem), []).append(path)
    return splits


def file_name(path: Path) -> str:
    """``"mnist/test"``: the file's name without suffix, with the folder's name if the file's is that of a split."""
    stem = _SHARD.sub("", path.stem)
    folder = path.absolute().parent.name
    return f"{folder}/{stem}" if _SPLIT.match(stem) and folder else stem


def holds_images(folder: Path, look_at: int = 200) -> bool:
    """Whether there are pictures among the first files of a folder, of its classes, or of its splits' classes."""
    if any(_is_image(path) for path in islice(folder.iterdir(), look_at)):
        return True
    if splits := _image_splits(folder):
        return any(holds_images(folder / split, look_at) for split in splits)
    return any(_is_image(path) for child in islice(sub_folders(folder), look_at) for path in islice(child.iterdir(), 5))


def _image_dataset(folder: Path, spec: DatasetSpec) -> Dataset:
    """Mode and size as stored; ids are paths below the folder, labels the sub-folders of the pictures."""
    spec.settings()
    splits = _image_splits(folder)
    root = folder / _chosen(folder, spec.split, splits) if splits else folder
    if spec.split and not splits:
        raise SpaceError(f"{folder}: expected a folder or table {spec.split!r} in it, got none; leave the split empty")
    found = sorted(path for path in root.rglob("*") if _is_image(path))
    if not found:
        raise SpaceError(
            f"{root}: expected tables ({', '.join(TABLE_SUFFIXES)}) or pictures ({', '.join(IMAGE_SUFFIXES)}), got none; "
            "choose the folder that holds them"
        )
    classes = ["" if path.parent == root else path.relative_to(root).parts[0] for path in found]
    rows = evenly(classes, spec.limit)
    paths, labels = [found[row] for row in rows], [classes[row] for row in rows]
    ids = [path.relative_to(folder).as_posix() for path in paths]

    def content() -> Iterator[bytes]:
        return (_bytes(path) for path in paths)

    return Dataset(
        lambda start, stop: [
            decode_image(_bytes(path), f"row {row}, {path}") for row, path in enumerate(paths[start:stop], start)
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
        raise SpaceError(f"{path}: expected an image that can be read, got {error.strerror}; load the folder again") from error


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
