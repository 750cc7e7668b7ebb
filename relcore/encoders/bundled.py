"""Datasets by name: digits, Wikipedia articles and everyday sentences, which are bundled, and citation
graphs.
"""

from __future__ import annotations

import bz2
import copy
import os
import pickle
import re
from collections import defaultdict
from collections.abc import Sequence
from contextlib import suppress
from functools import partial
from importlib.resources import files
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, need_distinct, need_one_of, quote
from relcore.base.text import visible
from relcore.base.writing import new_folder
from relcore.encoders.dataset import Dataset, DatasetSpec, answers, evenly
from relcore.files import confined
from relcore.runs.digest import StoreError, digest_of
from relcore.runs.store import Store

# Handwritten digits: 1,797 scans of 8 × 8 pixels.

LOOKS = {
    "plain": "as scanned",
    "inverted": "black on white",
    "shifted": "one pixel to the right and down",
    "noisy": "Gaussian noise of deviation 48 on every pixel",
    "thick": "strokes one pixel wider",
}


def digits_dataset(spec: DatasetSpec) -> Dataset:
    """A dataset of grey images (mode "L", 0 to 255) with labels "0" to "9"; every look has the same ids."""
    from PIL import Image
    from sklearn.datasets import load_digits

    look, digits = spec.settings(look="plain")["look"], load_digits()
    need_one_of("look", look, LOOKS)
    pixels = np.round(digits.images[: spec.limit] * (255 / 16)).astype(np.uint8)
    right = np.pad(pixels, ((0, 0), (1, 0), (1, 0)))[:, :, :-1]
    if look == "inverted":
        pixels = 255 - pixels
    elif look == "shifted":
        pixels = right[:, :-1]
    elif look == "thick":
        pixels = np.maximum(pixels, right[:, 1:])
    elif look == "noisy":  # the noise depends on the row, not on the limit
        noise = [np.random.default_rng(row).normal(0, 48.0, (8, 8)) for row in range(len(pixels))]
        pixels = np.clip(np.round(pixels + np.stack(noise)), 0, 255).astype(np.uint8)
    return Dataset(
        lambda start, stop: [Image.fromarray(scan) for scan in pixels[start:stop]],
        [f"digits/{row}" for row in range(len(pixels))],
        name="digits" if look == "plain" else f"digits, {look}",
        kind="images",
        labels=digits.target[: spec.limit],
        content=lambda: [pixels.tobytes()],
    )


# Everyday sentences in several languages: parallel anchors for text encoders.

LANGUAGES = {"en": "English", "es": "Spanish", "fr": "French", "ja": "Japanese"}
N_SENTENCES = 438
_EVERYDAY = files("relcore") / "data" / "parallel" / "everyday.tsv"


def load_parallel(languages: Sequence[str] = ("en", "es")) -> dict[str, tuple[str, ...]]:
    """Language → sentences in random order; row i is the same sentence in every language. "id" counts as a
    language."""
    need_distinct("languages", tuple(languages), ("id", *LANGUAGES))
    from relcore.files.tables import table_of

    table = table_of(Path(str(_EVERYDAY)))
    return {language: tuple(table.read(language, 0, N_SENTENCES)) for language in languages}


def parallel_dataset(spec: DatasetSpec) -> Dataset:
    """The sentences of one language; all languages have the same ids, so that spaces match."""
    spec.settings()
    need_one_of("language", spec.name, LANGUAGES)
    ids, sentences = (column[: spec.limit] for column in load_parallel(("id", spec.name)).values())
    return Dataset(
        lambda start, stop: list(sentences[start:stop]), ids, name=f"everyday/{spec.name}", kind="texts"
    )


# Sentences of the English Wikipedia articles inside gensim's wheel; labels are the articles.

_ARTICLES = "test/test_data/enwiki-latest-pages-articles1.xml-p000000010p000030302-shortened.bz2"
# For classifiers: different articles, each with enough sentences.
TASK = DatasetSpec("wikipedia", options=(("articles", 16), ("fewest", 250), ("per_article", 400)))
_RECIPE = "prose, 40 to 400 characters, 1"  # part of the store's key
_MARKED = tuple("=|!{}<*#:;")  # headings, tables and lists begin with these
_END = re.compile(r"(?<=[.!?])\s+(?=[A-Z])")
_HOLLOW = re.compile(r"\s*\(\s*[,;]?\s*\)|'{2,}")  # empty brackets of templates; bold, italics


def wikipedia_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The sentences of the articles, in their order.

    The option `articles` keeps this number of articles: the longest, which are similar (countries, states),
    or with `fewest` the first of at least that many sentences, which differ more.
    """
    settings = spec.settings(articles=None, per_article=None, fewest=None)
    for option, value in settings.items():
        if value is not None and (not isinstance(value, int) or value < 1):
            raise SpaceError(f"{option}: expected a whole number, at least 1, got {value!r}")
    articles, fewest = sentences_by_article(store), settings["fewest"]
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
    """Title → sentences; parsed once (seconds), then read from the store."""
    package = find_spec("gensim")  # not imported, which takes seconds
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
            sentences = entry.arrays["text"].tobytes().decode().split("\n")
            parts = np.split(np.array(sentences, dtype=object), np.cumsum(entry.arrays["counts"])[:-1])
            return {title: list(part) for title, part in zip(entry.metadata["titles"], parts, strict=True)}
    articles = _parsed(path)
    text = "\n".join(sentence for sentences in articles.values() for sentence in sentences)
    arrays = {"text": np.frombuffer(text.encode(), np.uint8)}
    arrays["counts"] = np.array([len(sentences) for sentences in articles.values()])
    with suppress(StoreError):
        if store is not None:
            store.put(key, arrays, {"title": "Wikipedia's sentences", "titles": list(articles)})
    return articles


def _parsed(path: Path) -> dict[str, list[str]]:
    """The sentences of paragraphs; headings, lists and tables are left out."""
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


# Citation graphs in the raw files of Planetoid, pickles of 2016.

GRAPHS = {"Cora": 2708, "CiteSeer": 3327, "PubMed": 19717}
PARTS = ("x", "tx", "allx", "y", "ty", "ally", "graph", "test.index")


class State:
    """A harmless stand-in for a pickled object: it keeps the state and runs no code."""

    def __setstate__(self, state: Any) -> None:
        self.state = state


_LISTED = {
    "numpy.dtype": np.dtype,
    "numpy.ndarray": np.ndarray,
    **dict.fromkeys(
        ("numpy.core.multiarray._reconstruct", "numpy._core.multiarray._reconstruct"),
        np.empty(0).__reduce__()[0],
    ),
    **dict.fromkeys(("scipy.sparse.csr.csr_matrix", "scipy.sparse._csr.csr_matrix"), State),
    "collections.defaultdict": defaultdict,
    **dict.fromkeys(("__builtin__.list", "builtins.list"), list),
}


def planetoid_dataset(spec: DatasetSpec, store: Store | None = None) -> Dataset:
    """The nodes of a citation graph, with class numbers as labels; `graph()` has `x`, `edge_index`, `y`,
    masks.

    Raw files are read from the option `folder`, else RELSCOPE_DATA, else the store's folder for downloads.
    """
    folder = spec.settings(folder=None)["folder"]
    names = {name.lower(): name for name in GRAPHS}
    if spec.name.lower() not in names:
        raise SpaceError(f"planetoid: expected one of {quote(GRAPHS)}, got {spec.name!r}")
    if spec.limit is not None:
        raise SpaceError(f"{spec.name}: a graph is encoded whole; expected no limit, got {spec.limit}")
    name = names[spec.name.lower()]
    data = _read(name, raw_folder(name, folder) or _fetch(name, store or Store(), folder))
    nodes = len(data.y)
    return Dataset(
        lambda start, stop: list(range(start, stop)),
        [f"{name}/{row}" for row in range(nodes)],
        name=name,
        kind="graph",
        labels=[str(label) for label in data.y.tolist()],
        content=lambda: (
            memoryview(data[part].contiguous().numpy()).cast("B") for part in ("x", "edge_index")
        ),
        graph=partial(copy.copy, data),
    )


def raw_folder(name: str, folder: str | Path | None = None) -> Path | None:
    """The folder `<folder>/<name>/raw` if it has all raw files of the graph, or None."""
    data = access.data_folder()
    roots = [access.allowed(folder)] if folder else [data / "planetoid", data] if data else []
    for place in (root / part / "raw" for root in roots for part in (name, name.lower())):
        if all(access.may_read(place / file) and (place / file).is_file() for file in _files(name)):
            return place
    return None


def _files(name: str) -> list[str]:
    return [f"ind.{name.lower()}.{part}" for part in PARTS]


def _fetch(name: str, store: Store, folder: str | None) -> Path:
    downloads = store.root / "planetoid"
    if here := raw_folder(name, downloads):
        return here
    from torch_geometric.datasets import Planetoid
    from torch_geometric.io import fs

    raw = downloads / name / "raw"
    addresses = [f"{Planetoid.url}/{file}" for file in _files(name)]
    if not answers(addresses[0]):
        looked = folder or os.environ.get("RELSCOPE_DATA") or "no folder (RELSCOPE_DATA is not set)"
        raise SpaceError(
            f"{name}: expected {_files(name)[0]} and its like in {name}/raw under {looked}, or the network to"
            " download them, got neither; copy them there"
        )
    raw.parent.mkdir(parents=True, exist_ok=True)
    try:
        with new_folder(raw) as made:
            for address in addresses:
                fs.cp(address, str(made))
    except Exception as error:  # fsspec, aiohttp and the disk raise many kinds
        raise SpaceError(
            f"{name}: expected to download it, got {error}; try again, or copy its files to {raw}"
        ) from error
    return raw


def _read(name: str, raw: Path) -> Any:
    import torch
    from torch_geometric.data import Data

    paths = [raw / file for file in _files(name)]
    used = {"others": paths[1:], "libraries": (__name__, "scipy.sparse")}
    arrays = confined.run(read_graph, paths[0], paths=list(map(str, paths[1:])), **used)
    return Data(**{part: torch.from_numpy(array) for part, array in arrays.items()})


def read_graph(_: Path, paths: list[str]) -> dict[str, np.ndarray]:
    """The nodes' features `x` (n, d) float32, classes `y` (n,), `edge_index` (2, m) and the public masks
    (n,), as in PyTorch Geometric's Planetoid."""
    tx, allx, y, ty, ally = map(_matrix, paths[:5])
    edges, test = _unpickled(paths[5]), np.loadtxt(paths[6], np.int64, ndmin=1)
    first, n = len(allx), int(test.max()) + 1
    if not first == len(ally) == test.min() > n - test.min() or len({*test.tolist()}) != len(tx):
        raise ValueError(f"{len(tx):,} nodes to test, of the numbers {test.min():,} to {test.max():,}")

    def joined(known: np.ndarray, tested: np.ndarray) -> np.ndarray:
        whole = np.zeros((n, known.shape[1]), np.float32)  # some nodes have no features
        whole[:first], whole[test] = known, tested
        return whole

    pairs = [(node, other) for node, others in edges.items() for other in others if node != other]
    ends = np.array(pairs, np.int64).reshape(-1, 2)
    if ends.min(initial=0) < 0 or ends.max(initial=0) >= n:
        raise ValueError(f"an edge to a node beyond {n:,}")
    codes, numbers = np.unique(ends @ [1, n]), np.arange(n)
    return {
        "x": joined(allx, tx),
        "edge_index": np.stack([codes % n, codes // n]),
        "y": joined(ally, ty).argmax(1),
        "train_mask": numbers < len(y),
        "val_mask": (numbers >= len(y)) & (numbers < len(y) + 500),
        "test_mask": np.isin(numbers, test),
    }


def _matrix(path: str) -> np.ndarray:
    from scipy.sparse import csr_matrix

    content = _unpickled(path)
    if isinstance(content, State):
        parts = content.state
        content = csr_matrix((parts["data"], parts["indices"], parts["indptr"]), parts["_shape"])
        content.check_format(full_check=True)
        content = content.toarray()
    return content.astype(np.float32)


class _ListedUnpickler(pickle.Unpickler):
    # Names are checked when objects are made, so nothing unchecked can be used.
    def find_class(self, module: str, name: str) -> Any:
        if (item := f"{module}.{name}") not in _LISTED:
            raise pickle.UnpicklingError(f"a pickle that asks for {item}, which this format never needs")
        return _LISTED[item]


def _unpickled(path: str) -> Any:
    try:
        with open(path, "rb") as stream:
            return _ListedUnpickler(stream, encoding="latin1").load()
    except Exception as error:  # an unpickler may raise any exception
        raise SpaceError(
            f"{Path(path).name}: expected one of Planetoid's raw files, got {visible(error, 200)}; copy it"
            " again from a source that you trust. Nothing of it was run"
        ) from error
