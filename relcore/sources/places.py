"""Places: where the data of a spec lie on this machine, once it is known that whoever asks may read them."""

from __future__ import annotations

import re
from pathlib import Path

from relcore import access
from relcore.sources.dataset import DatasetSpec

HUB_NAME = re.compile(r"[\w.-]+(/[\w.-]+)?")


def dataset_place(spec: DatasetSpec) -> Path | None:
    """The file or folder that holds a dataset; None for one that has no path.

    Raises
    ------
    SpaceError
        A path that is not open to whoever asks; see `access.allowed`.
    """
    if spec.source in ("file", "folder"):
        return access.allowed(spec.name)
    if spec.source == "huggingface":
        return hub_folder(spec.name)
    folder = dict(spec.options).get("folder") if spec.source == "planetoid" else None
    return access.allowed(folder) if folder else None


def hub_folder(name: str) -> Path | None:
    """The folder of a dataset or model that goes by a folder or a hub's name; None where there is no such folder.

    In a shared app only an absolute path is a folder, and never one of uploads: its files (README.md, tokenizer_config.json)
    can name others on this machine, which the libraries then read.

    Raises
    ------
    SpaceError
        A path that is not open to whoever asks.
    """
    if access.shared():
        if HUB_NAME.fullmatch(name):
            return None
        folder = access.allowed(name, uploads=False)
        return folder if folder.is_dir() else None
    folder = access.expanded(name)
    return access.allowed(folder) if name and folder.is_dir() else None
