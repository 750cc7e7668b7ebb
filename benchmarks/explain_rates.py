"""``python -m benchmarks.explain_rates [DRAWS] [STATE]``: how often an explanation of two spaces finds what was planted,
and how often it finds what is not there, with the target beside each figure.

Rows are random parts of the bundled words, of sentences and digits, each encoded here. A draw is a random part, a
random level and a random choice of features; STATE changes all of them. It prints a table, and the false reasons to
stderr; 200 draws take about an hour of one core.
"""

from __future__ import annotations

import argparse
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cache, partial

import numpy as np

from relcore import load_space
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.explain.explanation import Explain
from relcore.explain.items import RowItems
from relcore.explain.result import Explanation
from relcore.spaces.space import LatentSpace

ROWS = 1500
LEVELS = (0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 1.0, 1.2)  # noise, as a share of the spread
WORDS = ("word2vec-novels", "fasttext-novels")
KINDS = ("words", "texts", "pictures", "columns")


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


def drawn(kind: str, rng: np.random.Generator) -> Drawn:
    """Random rows of one kind of items."""
    items = RowItems()
    if kind in ("words", "columns"):
        space = load_space(str(rng.choice(WORDS)))
        rows = np.sort(rng.choice(8000, ROWS, replace=False))
        vectors = space.vectors[rows]
        if kind == "words":
            return Drawn(vectors, space.ids[rows].tolist(), items, counts=space.counts[rows])
        ids = [f"row/{row}" for row in rows]
        numbered = LatentSpace(vectors, ids)
        lengths = [len(word) for word in space.ids[rows]]
        columns = {"frequency": space.counts[rows].tolist(), "length": lengths}
        columns["group"] = [word[0] for word in space.ids[rows]]
        items.add(numbered, columns=columns)
        return Drawn(vectors, ids, items)
    if kind == "texts":
        texts, labels = sentences()
        rows = np.sort(rng.choice(len(texts), ROWS, replace=False))
        vectors = sentence_vectors()[rows]
        inside = np.linalg.norm(vectors, axis=1) > 0
        rows = rows[inside]
        ids = [f"text/{row}" for row in rows]
        items.add(LatentSpace(vectors[inside], ids), texts=[texts[row] for row in rows])
        return Drawn(vectors[inside], ids, items, labels=labels[rows])
    pictures, _, labels = digits()
    rows = np.sort(rng.choice(len(labels), ROWS, replace=False))
    ids = [f"picture/{row}" for row in rows]
    vectors = network(int(rng.integers(5)))[rows]
    items.picture_tables.append(_pictures(ids, [pictures[row] for row in rows]))
    return Drawn(vectors, ids, items, labels=labels[rows])


def _pictures(ids: list[str], pictures: list):
    from relcore.encoders.dataset import Dataset

    return Dataset(lambda start, stop: pictures[start:stop], ids, name="digits", kind="images")


def noisy(X: np.ndarray, level: float, rng: np.random.Generator) -> np.ndarray:
    spread = (X - X.mean(axis=0)).std()
    return X + np.float32(level * spread) * rng.standard_normal(X.shape, dtype=np.float32)


def rotated(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    turn, _ = np.linalg.qr(rng.normal(size=(X.shape[1], X.shape[1])))
    return (X - X.mean(axis=0)) @ turn.astype(np.float32)


# Controls: two spaces that differ in nothing that a feature could explain.


def control_rotated(kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    return one.explained(one.vectors, rotated(one.vectors, rng))


def control_noise(kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    level = LEVELS[rng.integers(len(LEVELS))]
    return one.explained(noisy(one.vectors, level, rng), noisy(rotated(one.vectors, rng), level, rng))


def control_state(kind: str, rng: np.random.Generator) -> Explanation:
    """The same training from two random states."""
    if kind == "columns":
        kind = "pictures"
    if kind == "words":
        kind = "texts"
    one = drawn(kind, rng)
    first, second = rng.choice(200, 2, replace=False)
    rows = [int(name.partition("/")[2]) for name in one.ids]
    if kind == "pictures":
        return one.explained(network(int(first))[rows], network(int(second))[rows])
    return one.explained(sentence_vectors(int(first), 1)[rows], sentence_vectors(int(second), 1)[rows])


def control_features(kind: str, rng: np.random.Generator) -> Explanation:
    """Two different models, and columns of random classes and numbers."""
    rows = np.sort(rng.choice(8000, ROWS, replace=False))
    vectors = [load_space(name).vectors[rows] for name in WORDS]
    ids = [f"row/{row}" for row in rows]
    items = RowItems()
    columns = {"number": rng.normal(size=ROWS).tolist()}
    for classes in (2, 5, 20):
        columns[f"{classes} classes"] = [f"c{one}" for one in rng.integers(classes, size=ROWS)]
    items.add(LatentSpace(vectors[0], ids), columns=columns)
    found = Drawn(vectors[0], ids, items).explained(*vectors)
    return _without_spaces(found)


def control_shuffled(kind: str, rng: np.random.Generator) -> Explanation:
    """Two different models, whose words were shuffled alike in both."""
    rows = np.sort(rng.choice(8000, ROWS, replace=False))
    spaces = [load_space(name) for name in WORDS]
    ids = rng.permutation(spaces[0].ids[rows]).tolist()
    counts = rng.permutation(spaces[0].counts[rows])
    one = Drawn(spaces[0].vectors[rows], ids, RowItems(), counts=counts)
    return _without_spaces(one.explained(one.vectors, spaces[1].vectors[rows]))


def _without_spaces(found: Explanation) -> Explanation:
    """Only the reasons about items: the two models differ by their clusters and lengths indeed."""
    from dataclasses import replace

    kept = tuple(one for one in found.reasons if not one.family.startswith(("norm in", "hubness", "cluster")))
    return replace(found, reasons=kept)


# One model is coarser.


def coarse(how: str, kind: str, rng: np.random.Generator) -> Explanation:
    one = drawn(kind, rng)
    X = one.vectors
    if how == "noise":
        worse = noisy(X, rng.uniform(0.4, 1.2), rng)
    elif how == "rounded":
        turned = rotated(X, rng)
        steps = np.abs(turned).max(axis=1, keepdims=True) * np.float32(rng.uniform(0.3, 1.2))
        worse = np.rint(turned / steps) * steps + 1e-6 * turned
    elif how == "fewer dimensions":
        worse = rotated(X, rng)[:, : max(3, int(X.shape[1] * rng.uniform(0.1, 0.4)))]
    else:
        axes = np.linalg.svd(X - X.mean(axis=0), full_matrices=False)[2]
        worse = X @ axes[: max(3, int(X.shape[1] * rng.uniform(0.1, 0.4)))].T
    sides = [X, rotated(worse, rng)]
    if rng.random() < 0.5:
        sides.reverse()
    return one.explained(*sides)


# A feature is planted.


@dataclass(frozen=True)
class Planted:
    """Whether the planted feature was named first, and its effect."""

    first: bool
    effect: float


def planted(kind: str, rng: np.random.Generator) -> Planted | None:
    """Gather or disperse the rows of a feature in one of two equally noisy copies, until the effect is the smallest one
    that the explanation of the unchanged copies states. None if no such effect can be made."""
    from relcore.explain.explanation import _families
    from relcore.explain.families import Features
    from relcore.explain.reasons import smallest_effect
    from relcore.explain.responses import of_neighbours
    from relcore.explain.search import ReasonSearch
    from relcore.spaces.matching import match

    one = drawn(kind, rng)
    level = rng.uniform(0.1, 0.5)
    A = noisy(one.vectors, level, rng)
    B = noisy(one.vectors, level, rng)
    pair = match(one.space(A, "first"), one.space(B, "second"))
    of_rows, families = _families(one.ids, one.items, labels=one.labels, counts=one.counts)
    features = Features(families, len(pair))
    sizes = np.asarray(features.members.sum(axis=0)).ravel()
    fit = np.flatnonzero((sizes >= 0.02 * ROWS) & (sizes <= 0.1 * ROWS))
    number = int(rng.choice(fit))
    rows = features.members[:, number].nonzero()[0]
    share = len(rows) / ROWS
    plain = ReasonSearch(pair, families, of_rows, 10, 0, len(pair))
    response = of_neighbours(plain.queries, plain.lists, plain.features, plain.regions)
    wanted = smallest_effect(response.of_part(~plain.suggesting), share, len(plain.features))
    B = B - B.mean(axis=0)
    axis = rng.normal(size=B.shape[1]).astype(np.float32)
    axis *= np.linalg.norm(B, axis=1).mean() / np.linalg.norm(axis)
    low, high = 0.0, 3.0
    for _ in range(9):
        middle = (low + high) / 2
        moved = B.copy()
        moved[rows] += np.float32(middle) * axis
        changed = match(pair.source, one.space(moved, "second"))
        search = ReasonSearch(changed, families, of_rows, 10, 0, len(pair))
        near = [lists[np.isin(search.queries, rows)] for lists in search.lists]
        inside = np.zeros(len(pair), dtype=bool)
        inside[rows] = True
        effect = float(inside[near[1]].mean() - inside[near[0]].mean())
        if effect < wanted:
            low = middle
        else:
            high = middle
    if effect < 0.9 * wanted:
        return None
    found = search.result()
    first = False
    for one in found.reasons[:1]:
        listed = [one.rows, *(part.rows for part in one.parts)]
        first = any(len(np.intersect1d(some, rows)) >= 0.5 * len(np.union1d(some, rows)) for some in listed)
    if not first:
        titles = [one.title for one in found.reasons]
        print("missed:", features.listed[number].title, round(wanted, 3), titles, file=sys.stderr)
    return Planted(first, wanted)


CONTROLS: dict[str, Callable] = {
    "rotated copy": control_rotated,
    "equal noise, ten levels": control_noise,
    "another random state of the training": control_state,
    "random features": control_features,
    "shuffled ids": control_shuffled,
}
COARSE = ("noise", "rounded", "fewer dimensions", "principal axes")


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.explain_rates",
        description=__doc__,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("draws", nargs="?", type=int, default=200, help="draws of each case")
    parser.add_argument("state", nargs="?", type=int, default=1, help="random state of all draws")
    parser.add_argument("--planted", action="store_true", help="only the planted features")
    options = parser.parse_args()
    print("| case | share | of draws | target | seconds a draw |\n|---|--:|--:|--:|--:|")
    if not options.planted:
        _controls(options)
    for kind in KINDS:
        hits = []
        for number in range(options.draws):
            found = planted(kind, np.random.default_rng([options.state, 77, number]))
            if found is not None:
                hits.append(found.first)
        _row(f"planted in {kind}, named first", hits, "≥ .95")


def _controls(options: argparse.Namespace) -> None:
    for name, control in CONTROLS.items():
        found = list(_draws(control, options))
        _row(name, [bool(one.reasons) for one in found], "≤ .05")
    for how in COARSE:
        found = list(_draws(partial(coarse, how), options))
        _row(f"{how} in one model, said", [one.coarser is not None for one in found], "")
        _row(f"{how} in one model, other reasons", [bool(one.reasons) for one in found], "≤ .05")


def _draws(control: Callable, options: argparse.Namespace) -> Iterator[Explanation]:
    for number in range(options.draws):
        kind = KINDS[number % len(KINDS)]
        found = control(kind, np.random.default_rng([options.state, number]))
        for one in found.reasons:
            print("false:", kind, one.title, round(one.difference, 3), one.n, file=sys.stderr)
        yield found


_STARTED = [time.perf_counter()]


def _row(name: str, hits: list[bool], target: str) -> None:
    now = time.perf_counter()
    each = (now - _STARTED[0]) / max(len(hits), 1)
    _STARTED[0] = now
    share = float(np.mean(hits or [np.nan]))
    print(f"| {name} | {share:.3f} | {len(hits)} | {target} | {each:.1f} |", flush=True)


if __name__ == "__main__":
    main()
