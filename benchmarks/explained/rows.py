"""Random rows of four kinds of items, and changes of their vectors."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache

import numpy as np

from relcore import load_space
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.explain.explanation import Explain
from relcore.explain.items import RowItems
from relcore.explain.result import Explanation
from relcore.spaces.space import LatentSpace

ROWS = 1500
KINDS = ("words", "texts", "pictures", "columns")
WORDS = ("word2vec-novels", "fasttext-novels")
FREQUENT = 8000  # number of the most frequent words of which some are drawn


@dataclass(frozen=True, eq=False)
class Drawn:
    """A random part of real rows: vectors (n, d), ids, and what is known of them."""

    vectors: np.ndarray
    ids: list[str]
    items: RowItems
    labels: np.ndarray | None = None
    counts: np.ndarray | None = None

    def space(self, vectors: np.ndarray, name: str) -> LatentSpace:
        return LatentSpace(vectors, self.ids, name=name, labels=self.labels, counts=self.counts)

    def explained(self, first: np.ndarray, second: np.ndarray, state: int = 0) -> Explanation:
        spaces = [self.space(first, "first"), self.space(second, "second")]
        return Explain(random_state=state).explained(spaces, self.items)


@cache
def sentences() -> tuple[list[str], np.ndarray]:
    data = load_dataset(DatasetSpec("wikipedia", options=(("articles", 16),)))
    return data.items(0, len(data)), np.array(data.labels)


@cache
def sentence_vectors(state: int = 0, passes: int = 5) -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts = TfidfVectorizer(sublinear_tf=True, min_df=2).fit_transform(sentences()[0])
    return np.float32(TruncatedSVD(100, n_iter=passes, random_state=state).fit_transform(counts))


@cache
def digits() -> tuple[list, np.ndarray, np.ndarray]:
    from PIL import Image
    from sklearn.datasets import load_digits

    data = load_digits()
    pictures = [Image.fromarray(np.uint8(255 - 15 * one)) for one in data.images]
    return pictures, np.float32(data.data), data.target.astype(str)


@cache
def network(state: int) -> np.ndarray:
    """The hidden layer of a network that was trained on the digits from this random state."""
    from sklearn.neural_network import MLPClassifier

    _, pixels, labels = digits()
    model = MLPClassifier((64,), max_iter=25, random_state=state, learning_rate_init=0.005)
    model.fit(pixels / 16, labels)
    return np.float32(np.maximum(pixels / 16 @ model.coefs_[0] + model.intercepts_[0], 0))


def drawn(kind: str, rng: np.random.Generator, n: int = ROWS) -> Drawn:
    """Random rows of one kind of items."""
    makers = {"words": words, "texts": texts, "pictures": pictures, "columns": columns}
    return makers[kind](rng, n)


def words(rng: np.random.Generator, n: int) -> Drawn:
    space = load_space(str(rng.choice(WORDS)))
    rows = np.sort(rng.choice(FREQUENT, n, replace=False))
    return Drawn(space.vectors[rows], space.ids[rows].tolist(), RowItems(), counts=space.counts[rows])


def columns(rng: np.random.Generator, n: int) -> Drawn:
    """Rows of a table that was made from the words: their frequency, length and first letter."""
    space = load_space(str(rng.choice(WORDS)))
    rows = np.sort(rng.choice(FREQUENT, n, replace=False))
    vectors = space.vectors[rows]
    ids = [f"row/{row}" for row in rows]
    table = {
        "frequency": space.counts[rows].tolist(),
        "length": [len(word) for word in space.ids[rows]],
        "group": [word[0] for word in space.ids[rows]],
    }
    items = RowItems()
    items.add(LatentSpace(vectors, ids), columns=table)
    return Drawn(vectors, ids, items)


def texts(rng: np.random.Generator, n: int) -> Drawn:
    listed, labels = sentences()
    rows = np.sort(rng.choice(len(listed), n, replace=False))
    vectors = sentence_vectors()[rows]
    rows = rows[np.linalg.norm(vectors, axis=1) > 0]
    ids = [f"text/{row}" for row in rows]
    vectors = sentence_vectors()[rows]
    items = RowItems()
    items.add(LatentSpace(vectors, ids), texts=[listed[row] for row in rows])
    return Drawn(vectors, ids, items, labels=labels[rows])


def pictures(rng: np.random.Generator, n: int) -> Drawn:
    images, _, labels = digits()
    rows = np.sort(rng.choice(len(labels), min(n, len(labels)), replace=False))
    ids = [f"picture/{row}" for row in rows]
    vectors = network(int(rng.integers(5)))[rows]
    items = RowItems()
    items.picture_tables.append(dataset_of(ids, [images[row] for row in rows]))
    return Drawn(vectors, ids, items, labels=labels[rows])


def dataset_of(ids: list[str], images: list) -> Dataset:
    return Dataset(lambda start, stop: images[start:stop], ids, name="digits", kind="images")


def noisy(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    spread = (X - X.mean(axis=0)).std()
    return X + np.float32(level * spread) * rng.standard_normal(X.shape, dtype=np.float32)


def rotated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    return (X - X.mean(axis=0)) @ turn.astype(np.float32)
