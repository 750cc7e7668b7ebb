"""The caches of raw datasets: the list of them, their columns, and a preview of some items."""

from __future__ import annotations

import re
from dataclasses import dataclass

import numpy as np
import streamlit as st

from relcore.access import allowed
from relcore.sources import datasets
from relcore.sources.dataset import DatasetEntry, DatasetSpec, Kind
from relcore.sources.datasets import Columns
from relcore.sources.images import png_thumbnail
from relcore.sources.places import dataset_place

PICTURES, SENTENCES = 12, 6
_LONGEST = 220  # characters of a sentence that is shown


@dataclass(frozen=True)
class Preview:
    """What the page shows of a dataset before anything is computed.

    `items` are (label, PNG or sentence), taken evenly over the whole; `sizes` the different (width, height) among them;
    `facts` what else there is to say of a graph.
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


def columns(spec: DatasetSpec) -> Columns:
    """The columns to choose from. Errors as in `columns_of`."""
    return _columns(spec, _stamp(spec))


@st.cache_data(max_entries=32, show_spinner="Reading the columns …")
def _columns(spec: DatasetSpec, stamp: tuple[int, ...]) -> Columns:
    return datasets.columns_of(spec)


def preview(spec: DatasetSpec) -> Preview:
    """A preview of the dataset. The first call reads all of it, for the digest. Errors as in `load_dataset`."""
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
        return Preview(*common, tuple((label, _beginning(text)) for label, text in shown))
    sizes = tuple(sorted({image.size for _, image in shown}))
    return Preview(*common, tuple((label, png_thumbnail(image, 80)) for label, image in shown), sizes)


def _beginning(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= _LONGEST else text[:_LONGEST].rsplit(" ", 1)[0] + " …"


def _natural(label: str) -> tuple:
    """Sorts "2" before "10"."""
    return tuple((0, int(part), "") if part.isdecimal() else (1, 0, part) for part in re.split(r"(\d+)", label) if part)


def _stamp(spec: DatasetSpec) -> tuple[int, ...]:
    """The times of change of a file, or of a folder and its sub-folders: after a change the data are read again.

    Sessions share the caches, so a path that is not open to this one is refused here.
    """
    path = dataset_place(spec)
    if not path or not path.exists():
        return ()
    inside = [child for child in sorted(path.iterdir())[:200] if child.is_dir()] if path.is_dir() else []
    return tuple(one.stat().st_mtime_ns for one in (path, *inside))
