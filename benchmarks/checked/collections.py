"""Rows of one model, by kind: from the texts of a folder and from the bundled words."""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path

import numpy as np

from relcore.base.rows import unit_rows
from relcore.encoders.words import load_words
from relcore.spaces.matching import match

SENTENCES = "L6"
WORDS = ("word2vec-novels", "fasttext-novels")
CALIBRATED = ("one topic", "two topics", "small topic", "words among texts")
KINDS = (
    *CALIBRATED,
    "two languages",
    "exact duplicates",
    "near duplicates",
    "lengths",
    "sources",
    "few rows",
)


@cache
def inputs(folder: str) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], np.ndarray, np.ndarray]:
    """Name → vectors and the numbers of their texts; the source of each text, and its length."""
    told = json.loads((Path(folder) / "rows.json").read_text(encoding="utf-8"))
    sources = np.array(told["source"])
    sizes = np.array(told["length"])
    found = {}
    for path in Path(folder).glob("*.npy"):
        if not path.name.endswith(".rows.npy"):
            rows = np.load(path).astype(np.float32)
            numbers = path.with_suffix(".rows.npy")
            found[path.stem] = rows, np.load(numbers) if numbers.exists() else np.arange(len(rows))
    return found, sources, sizes


@cache
def words() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Both bundled spaces on the same 20,000 words, the most frequent first, and the lengths of the words."""
    pair = match(*(load_words(name) for name in WORDS))
    sizes = np.array([len(word) for word in pair.source.ids])
    return np.asarray(pair.source.vectors), np.asarray(pair.target.vectors), sizes


def clusters(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nearest of eight random rows: topics of words."""
    units = unit_rows(X)
    return (units @ units[rng.choice(len(X), 8, replace=False)].T).argmax(axis=1)


def chosen_rows(
    kind: str, sources: np.ndarray, sizes: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray | None:
    """Rows of this kind, about n of them; None if there are not enough."""
    texts = sources.astype(str)
    single = np.isin(texts, ("words", "swadesh"))
    german = texts == "german"
    names, counts = np.unique(texts[~single & ~german], return_counts=True)
    if kind in ("exact duplicates", "near duplicates", "few rows"):
        if kind != "few rows":
            n = min(n, 2500)
        else:
            n = int(rng.integers(500, 900))
    pools = [np.flatnonzero(texts == name) for name in rng.permutation(names[counts >= 500])]
    if not pools:
        return None
    first = pools[0]
    second = pools[-1]
    if kind == "two languages":
        first = np.flatnonzero(np.isin(texts, ("captions", "wiki")))
        second = np.flatnonzero(german)
    elif kind == "words among texts":
        # of the bundled words, rare ones among frequent ones
        if single.any():
            second = np.flatnonzero(single)
        else:
            second = pools[-1]
    if kind in ("two topics", "small topic", "two languages", "words among texts"):
        if min(len(first), len(second)) < 20 or np.array_equal(first, second):
            return None
        if kind == "two topics":
            share = 0.5
        else:
            share = float(rng.choice((0.01, 0.02, 0.05, 0.1, 0.3)))
        n = min(n, int(len(first) / (1 - share)), int(len(second) / share))
        few = max(10, round(share * n))
        return np.r_[rng.permutation(first)[: n - few], rng.permutation(second)[:few]]
    if kind == "one topic":
        return rng.permutation(first)[:n]
    if kind == "lengths":
        order = np.argsort(sizes, kind="stable")
        half = min(n, len(order)) // 2
        return rng.permutation(np.r_[order[:half], order[-half:]])
    if kind == "sources":
        share = rng.dirichlet(np.ones(len(names)))[
            np.unique(texts[~single & ~german], return_inverse=True)[1]
        ]
        rows = np.flatnonzero(~single & ~german)
        return rng.choice(rows, min(n, len(rows) // 2), replace=False, p=share / share.sum())
    rows = rng.permutation(len(texts))[:n]
    if kind == "exact duplicates":
        return np.r_[rows, rng.choice(rows[: max(3, len(rows) // int(rng.integers(3, 200)))], len(rows) // 2)]
    return rows


def with_near_duplicates(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rows (n, d) and a third of them again, with a little noise."""
    again = rng.choice(len(rows), len(rows) // 3)
    noise = rng.normal(size=(len(again), rows.shape[1])).astype(np.float32)
    noise *= 0.02 * np.linalg.norm(rows[again], axis=1, keepdims=True) / np.sqrt(rows.shape[1])
    return np.r_[rows, rows[again] + noise]
