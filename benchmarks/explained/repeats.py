"""Pairs of real models, and whether their reasons hold on rows that neither suggested nor tested them."""

from __future__ import annotations

import io
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache, cached_property, partial
from itertools import combinations
from typing import get_args

import numpy as np

from benchmarks.explained.rows import WORDS, sentences
from relcore import load_space
from relcore.base.access import data_folder
from relcore.encoders.dataset import Dataset
from relcore.encoders.sentences import PooledWords, TfidfSvd
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import SmallVision
from relcore.encoders.vision_networks import Architecture
from relcore.engine.nearest import nearest_within
from relcore.explain.explanation import Explain, _families
from relcore.explain.items import RowItems
from relcore.explain.responses import of_neighbours
from relcore.explain.search import ReasonSearch
from relcore.runs.work import silent
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

K = 10
_TEXTS = 3000  # number of sentences, and of captions
_WORDS = 6000  # number of words of a draw
_HALF = 10_000  # half of the bundled words
_AT_ONCE = 500  # number of pictures that are encoded at once
_AGAIN = 0.5  # share of the size that must remain


@dataclass(frozen=True)
class Repeat:
    """The difference that a reason states, and the difference on other rows."""

    title: str
    difference: float
    again: float

    @property
    def same_sign(self) -> bool:
        return self.difference * self.again > 0

    @property
    def holds(self) -> bool:
        return self.same_sign and abs(self.again) >= _AGAIN * abs(self.difference)


@dataclass(frozen=True, eq=False)
class _SomeQueries(ReasonSearch):
    """The search for reasons by some of the rows, among all."""

    some: np.ndarray

    @cached_property
    def queries(self) -> np.ndarray:
        return self.some


Made = tuple[LatentSpace, LatentSpace, RowItems]


def repeats_of(make: Callable[[np.random.Generator], Made | None], rng: np.random.Generator) -> list[Repeat]:
    """Find reasons on two thirds of the rows, and measure each on the last third. Neighbours are sought among
    all rows. Returns [] if this machine lacks the data of the pair."""
    made = make(rng)
    if made is None:
        return []
    first, second, items = made
    pair = match(first, second)
    n = len(pair)
    of_rows, families = _families(
        pair.ids.tolist(), items, labels=pair.source.labels, counts=pair.source.counts
    )
    drawn = rng.permutation(n)
    some = np.sort(drawn[n // 3 :])
    others = np.sort(drawn[: n // 3])
    search = _SomeQueries(pair, families, of_rows, K, int(rng.integers(1000)), n, some)
    found = search.result()
    near = [nearest_within(units, others, K) for units in search.units]
    regions = np.zeros(len(others), dtype=int)
    response = of_neighbours(others, (near[0], near[1]), search.features, regions)
    numbers = {(one.title, one.family): number for number, one in enumerate(search.features.listed)}
    repeats = []
    for reason in found.reasons:
        number = numbers[reason.title, reason.family]
        sums = response.rows_of(number, response.whole())
        again = float(sums.sum() / response.members_of(number).sum())
        repeats.append(Repeat(reason.title, reason.difference, again))
    return repeats


def _words(rng: np.random.Generator) -> Made:
    first, second = _taken(rng, _WORDS)
    return first, second, RowItems()


def _taken(rng: np.random.Generator, n: int) -> tuple[LatentSpace, LatentSpace]:
    first, second = map(load_space, WORDS)
    rows = np.sort(rng.choice(len(first), n, replace=False))
    return first.take(rows), second.take(rows)


@cache
def _texts(source: str) -> tuple[list[str], np.ndarray | None]:
    if source == "sentences":
        texts, labels = sentences()
        rows = np.sort(np.random.default_rng(0).permutation(len(texts))[:_TEXTS])
        return [texts[row] for row in rows], labels[rows]
    folder = data_folder()
    if folder is None or not (folder / "multi30k").is_dir():
        return [], None
    import pandas as pd

    captions = pd.read_parquet(folder / "multi30k" / "train.parquet").en.drop_duplicates()
    return captions.tolist()[:_TEXTS], None


@cache
def _encoded(source: str, name: str) -> np.ndarray:
    texts, _ = _texts(source)
    encoders = {
        "MiniLM": MiniLM(),
        "LSA": TfidfSvd(100),
        "pooled words": PooledWords(WORDS[0]),
    }
    ids = [f"text/{row}" for row in range(len(texts))]
    data = Dataset(lambda start, stop: texts[start:stop], ids, name=source, kind="texts")
    (rows,) = encoders[name].prepare(data, silent)(texts).values()
    return np.float32(rows)


def _texts_by(source: str, names: tuple[str, str], rng: np.random.Generator) -> Made | None:
    texts, labels = _texts(source)
    if not texts:
        return None
    vectors = [_encoded(source, name) for name in names]
    known = np.all([np.linalg.norm(X, axis=1) > 0 for X in vectors], axis=0)
    rows = np.flatnonzero(known)
    ids = [f"text/{row}" for row in rows]
    if labels is not None:
        labels = labels[rows]
    first, second = (
        LatentSpace(X[rows], ids, name=name, labels=labels) for X, name in zip(vectors, names, strict=True)
    )
    items = RowItems()
    items.add(first, texts=[texts[row] for row in rows])
    return first, second, items


@cache
def _digits() -> Dataset | None:
    """The 10,000 test digits of MNIST."""
    folder = data_folder()
    if folder is None or not (folder / "mnist").is_dir():
        return None
    import pandas as pd
    from PIL import Image

    frame = pd.read_parquet(folder / "mnist" / "test.parquet")
    files = [one["bytes"] for one in frame.image]
    pictures = [Image.open(io.BytesIO(file)) for file in files]
    return Dataset(
        lambda start, stop: pictures[start:stop],
        [f"picture/{row}" for row in range(len(pictures))],
        name="mnist",
        kind="images",
        labels=frame.label.astype(str).tolist(),
        content=lambda: files,
    )


@cache
def _by_network(data: Dataset, name: Architecture) -> LatentSpace:
    encode = SmallVision(name).prepare(data, silent)
    parts = []
    for start in range(0, len(data), _AT_ONCE):
        parts += encode(data.items(start, min(start + _AT_ONCE, len(data)))).values()
    return LatentSpace(np.float32(np.concatenate(parts)), data.ids, name=name, labels=data.labels)


def _digits_by(names: tuple[Architecture, Architecture], rng: np.random.Generator) -> Made | None:
    data = _digits()
    if data is None:
        return None
    items = RowItems()
    items.picture_tables.append(data)
    first, second = names
    return _by_network(data, first), _by_network(data, second), items


_OF_TEXTS = (("MiniLM", "LSA"), ("MiniLM", "pooled words"), ("LSA", "pooled words"))
PAIRS: dict[str, Callable[[np.random.Generator], Made | None]] = {
    "words, Word2Vec and FastText": _words,
    **{
        f"{source}, {first} and {second}": partial(_texts_by, source, (first, second))
        for source in ("sentences", "captions")
        for first, second in _OF_TEXTS
    },
    **{
        f"digits, {first} and {second}": partial(_digits_by, (first, second))
        for first, second in combinations(get_args(Architecture), 2)
    },
}


def families_of_half(rng: np.random.Generator) -> list[str]:
    """The families of the reasons, in their order, that half of the words gives for Word2Vec and FastText."""
    found = Explain().explained(_taken(rng, _HALF), RowItems())
    return [one.family for one in found.reasons]
