"""The model of each row: how often it is right, alarms where one model made all rows, search of a mixed
collection, and the time of a check; each function is one draw."""

from __future__ import annotations

import time
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.checked.collections import (
    CALIBRATED,
    KINDS,
    SENTENCES,
    WORDS,
    chosen_rows,
    clusters,
    inputs,
    with_near_duplicates,
    words,
)
from relcore.base.rows import unit_rows
from relcore.check.collection import check
from relcore.check.mixed_search import PAIRS, mixed_scores
from relcore.check.origins import OTHER
from relcore.check.repair import map_to_space
from relcore.scores.relevance import ndcg, relevance_matrix

WHOSE_PARTS = ("whose", "nothing", "search", "size")
FRESH = 301_300  # first draw of the parts for which no limit was chosen on a draw
MODES = ("same", "shifted", "none")  # trusted rows: of the collection's texts, of other texts, none
NUMBER = 1500
TRUSTED = 200
# kind → other models, and their draws of a cell
WHOSE_KINDS = {
    "another model": {"para": 4, "e5": 4, "lsa": 4, "words": 6, "means": 6},
    "another layer": {"L3": 10, "L5": 10},
    "rotated": {"rotated": 6, "rotated words": 14},
}
WHOSE = {other: most for others in WHOSE_KINDS.values() for other, most in others.items()}
DOMAINS = ("captions", "wiki", "npl", "trec")
PARTS_OF_MEANS = "mean", "fmean"


def whose(folder: str, other: str, share: float, mode: str, draw: int) -> dict[str, Any]:
    """A check of a collection of two models with trusted rows: how many rows of the other model are found,
    and how many of those found are of the trusted model."""
    rng = np.random.default_rng((draw, [*WHOSE].index(other), round(100 * share), 61))
    X, truth, own = _collection(folder, other, share, mode, rng)
    started = time.perf_counter()
    found = check(X, trusted=own, random_state=draw)
    record = {"other": other, "share": share, "mode": mode, "n": len(X), "verdict": found.verdict}
    record |= {"seconds": time.perf_counter() - started, "answered": found.told is not None}
    if found.origins:
        record |= {"slope": found.origins.slope, "gap": found.origins.gap}
    told = found.told
    if told is None:
        return record
    called = told.model == OTHER
    agreement = float(np.mean((told.log_ratio > 0) == truth))
    record |= {"shifted": told.shifted, "either": told.either, "confirmed": told.confirmed}
    record |= {"agreement": max(agreement, 1 - agreement), "swapped": agreement < 0.5}
    false = 0.0
    if called.any():
        false = float(np.mean(~truth[called]))
    return record | {
        "false": false,
        "power": float(called[truth].mean()),
        "unknown": told.unknown / len(X),
        "bound": told.bound,
        "wrong": told.wrong,
    }


def _collection(
    folder: str, other: str, share: float, mode: str, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray, np.ndarray | None]:
    """Rows, of which a share is from another model; which rows these are; and trusted rows. Texts come from
    two sources. Trusted rows of other texts come from a third source, and those of other words are the
    nearest ones of a word."""
    few = round(share * NUMBER)
    if other in ("words", "rotated words"):
        first, second, _ = words()
        if other == "rotated words":
            second = first
        order = rng.permutation(len(first))
        rest = order[NUMBER + TRUSTED :]
        units = unit_rows(first)
        topic = rest[np.argsort(-units[rest] @ units[rest[0]])[:TRUSTED]]
        numbers = order[:few], order[few:NUMBER], order[NUMBER : NUMBER + TRUSTED], topic
    else:
        found, sources, _ = inputs(folder)
        if other == "means":
            (first, of_first), (second, of_second) = (found[one] for one in PARTS_OF_MEANS)
        else:
            first, of_first = found[SENTENCES]
            second, of_second = found.get(other, found[SENTENCES])
        domains = DOMAINS
        if other == "e5":
            domains = tuple(name for name in DOMAINS if np.isin(name, sources[of_second]))
        domains = rng.permutation(domains)
        like = np.isin(sources, domains[:2])
        texts = rng.permutation(np.intersect1d(of_second, np.flatnonzero(like)))[:few]
        rest = rng.permutation(np.setdiff1d(np.intersect1d(of_first, np.flatnonzero(like)), texts))
        shifted = rng.permutation(np.intersect1d(of_first, np.flatnonzero(sources == domains[2])))
        own = NUMBER - few
        numbers = texts, rest[:own], rest[own : own + TRUSTED], shifted[:TRUSTED]
        places = np.searchsorted(of_second, numbers[0])
        numbers = places, *(np.searchsorted(of_first, one) for one in numbers[1:])
    first = unit_rows(first)
    foreign = unit_rows(second[numbers[0]])
    if "rotated" in other:
        foreign = foreign @ np.linalg.qr(rng.normal(size=(foreign.shape[1],) * 2))[0].astype(np.float32)
    trusted_rows = {"same": first[numbers[2]], "shifted": first[numbers[3]], "none": None}
    X = np.r_[foreign, first[numbers[1]]]
    order = rng.permutation(len(X))
    return X[order], order < len(foreign), trusted_rows[mode]


NEW_KINDS = (
    "topics",
    "frequency or length",
    "runs of the source",
    "one long run",
    "near one row",
    "half rounded",
    "half not normalised",
    "mean-centred",
    "passages among sentences",
    "first half of the dimensions",
)
NOTHING_FAMILIES = (SENTENCES, "para", "e5", "L5", "L3", "mean", *WORDS, "fmean")
NOTHING_MODES = ("none", "same", "none", "shifted")  # by draw


def nothing(folder: str, kind: str, family: str, draw: int) -> dict[str, Any] | None:
    """A collection of one model, checked with or without trusted rows; None for a kind that a family has no
    rows for."""
    rng = np.random.default_rng((draw, (*KINDS, *NEW_KINDS).index(kind), NOTHING_FAMILIES.index(family), 62))
    if family in WORDS:
        X = words()[WORDS.index(family)]
        sizes = words()[2]
        sources = np.minimum(np.arange(len(X)) // 5000, 3)
        if kind in CALIBRATED[:3]:
            sources = clusters(X, rng)
    else:
        (X, numbers), sources, sizes = inputs(folder)[0][family], *inputs(folder)[1:]
        sources = sources[numbers]
        sizes = sizes[numbers]
    n = int(rng.integers(max(600, 2 * X.shape[1]) + TRUSTED + 40, 2000))
    if kind in KINDS:
        chosen = chosen_rows(kind, sources, sizes, n, rng)
    else:
        chosen = _newly_chosen(kind, X, sizes, n, rng)
    if chosen is None or len(chosen) < 500:
        return None
    mode = NOTHING_MODES[draw % len(NOTHING_MODES)]
    rest = np.setdiff1d(np.arange(len(X)), chosen)
    if mode == "shifted":
        rest = rest[~np.isin(sources[rest], sources[chosen[: len(chosen) // 4]])]
    own = None
    if mode == "same":
        chosen = rng.permutation(chosen)
        own = X[chosen[:TRUSTED]]
        chosen = chosen[TRUSTED:]
    elif mode == "shifted":
        if len(rest) < TRUSTED:
            return None
        own = X[rng.permutation(rest)[:TRUSTED]]
    rows, own = _changed_rows(kind, X[chosen], own, rng)
    found = check(rows, trusted=own, random_state=draw)
    record = {"kind": kind, "family": family, "mode": mode, "n": len(rows), "verdict": found.verdict}
    record |= {"unfit": found.unfit, "high": found.slope_high, "answered": found.told is not None}
    if found.origins:
        record |= {"slope": found.origins.slope, "gap": found.origins.gap}
    return record


def _newly_chosen(
    kind: str, X: np.ndarray, sizes: np.ndarray, n: int, rng: np.random.Generator
) -> np.ndarray:
    """Rows of one of `NEW_KINDS`, about n of them."""
    if kind == "topics":
        from sklearn.cluster import KMeans

        some = np.sort(rng.permutation(len(X))[:8000])
        topics = KMeans(8, n_init=1, random_state=int(rng.integers(1000))).fit_predict(unit_rows(X[some]))
        parts = rng.permutation(8)[:3]
        few = n // len(parts)
        return np.concatenate([rng.permutation(some[topics == part])[:few] for part in parts])
    if kind == "frequency or length":  # words are in the order of their frequency
        order = np.argsort(sizes, kind="stable")
        if len(np.unique(sizes)) < 50:
            order = np.arange(len(X))
        third = np.array_split(order, 3)
        return np.r_[rng.permutation(third[0])[: n // 2], rng.permutation(third[2])[: n // 2]]
    if kind == "runs of the source":  # such as articles
        starts = rng.permutation(len(X) // 200)[: n // 200]
        return (starts[:, None] * 200 + np.arange(200)).ravel()
    if kind == "one long run":
        return int(rng.integers(len(X) - n)) + np.arange(n)
    if kind == "near one row":
        units = unit_rows(X)
        return np.argsort(-units @ units[int(rng.integers(len(X)))])[:n]
    return rng.permutation(len(X))[:n]


def _changed_rows(
    kind: str, rows: np.ndarray, own: np.ndarray | None, rng: np.random.Generator
) -> tuple[np.ndarray, np.ndarray | None]:
    """The rows and trusted rows, both with the change of their kind."""
    half = rng.random(len(rows)) < 0.5
    rows = rows.copy()
    if kind == "half rounded":
        rows[half] = np.round(rows[half], 2)
    elif kind == "half not normalised":
        rows = unit_rows(rows)
        rows[half] *= rng.lognormal(0, 0.5, (np.count_nonzero(half), 1)).astype(np.float32)
    elif kind == "mean-centred":
        mean = rows.mean(axis=0)
        rows -= mean
        if own is not None:
            own = own - mean
    elif kind == "passages among sentences":  # means of a row and its two neighbours
        units = unit_rows(rows)
        rows[half] = (units + np.roll(units, 1, axis=0) + np.roll(units, 2, axis=0))[half] / 3
    elif kind == "first half of the dimensions":
        width = rows.shape[1] // 2
        rows = rows[:, :width]
        if own is not None:
            own = own[:, :width]
    elif kind == "near duplicates":
        rows = with_near_duplicates(rows, rng)
    return rows, own


# Search.

SEARCHED = ("titles", "scipy", "python", "articles", "cranfield", "npl", "trec")
TUNED = ("articles", "cranfield", "npl", "trec")  # collections that chose when two queries are advised
HALVES = ("para", "L5", "L3", "lsa")
WRONG = 0.02  # share of labels that are exchanged
AS_GOOD = 0.75  # of the right model's nDCG@10


@cache
def judged_vectors(folder: str, name: str) -> tuple[dict[str, tuple[np.ndarray, np.ndarray]], Any]:
    """Model → unit vectors of the documents and of the queries of a judged collection; relevance (q, n)."""
    from benchmarks import migrate

    made = migrate.COLLECTIONS[name]()
    path = Path(folder) / f"judged.{name}.npz"
    if not path.exists():
        migrate.encode_judged(path, made)
    count = len(made.documents)
    with np.load(path) as file:
        found = {one: unit_rows(file[one].astype(np.float32)) for one in file.files}
    queries = np.repeat(np.arange(len(made.relevant)), [len(rows) for rows in made.relevant])
    rows = np.concatenate([np.array(rows) for rows in made.relevant])
    shape = len(made.queries), count
    relevance = relevance_matrix(queries, rows, np.ones(len(rows)), *shape)
    return {one: (X[:count], X[count:]) for one, X in found.items()}, relevance


def search(folder: str, name: str, other: str, share: float, draw: int) -> dict[str, Any]:
    """nDCG@10 in a collection of MiniLM's rows, of which a share is from another model: for MiniLM's queries,
    for queries by both models, and after a repair with 300 pairs."""
    vectors, relevance = judged_vectors(folder, name)
    rng = np.random.default_rng((draw, SEARCHED.index(name), HALVES.index(other), round(100 * share), 63))
    (own, asked), (foreign, asked_other) = vectors[SENTENCES], vectors[other]
    few = round(share * len(own))
    is_other = rng.permutation(len(own)) < few
    X = np.where(is_other[:, None], foreign, own)
    taken = is_other.copy()
    exchanged = rng.permutation(len(own))[: round(WRONG * len(own))]
    taken[exchanged] = ~taken[exchanged]

    def quality(scores: np.ndarray) -> float:
        return float(np.nanmean(ndcg(np.argsort(-scores, axis=1, kind="stable")[:, :10], relevance)))

    record = {"name": name, "other": other, "share": share, "pure": quality(asked @ own.T)}
    record |= {"alone": quality(asked_other @ foreign.T), "plain": quality(asked @ X.T)}
    record |= {"both": quality(mixed_scores(asked, asked_other, X, is_other, draw))}
    record |= {"both_wrong": quality(mixed_scores(asked, asked_other, X, taken, draw))}
    for told, part in (("repaired", is_other), ("repaired_wrong", taken)):
        rows = np.flatnonzero(part)
        if len(rows) <= PAIRS:
            continue
        again = rng.permutation(len(rows))[:PAIRS]
        rest = np.flatnonzero(~part)
        pairs = np.stack([again, len(rest) + np.arange(PAIRS)])
        mended = X.copy()
        mended[rows] = unit_rows(map_to_space(X[rows], np.r_[X[rest], own[rows[again]]], pairs, draw))
        mended[rows[again]] = own[rows[again]]
        record[told] = quality(asked @ mended.T)
    return record


def size(folder: str, other: str, draw: int) -> dict[str, Any]:
    """Seconds and peak memory of 20,000 rows, a tenth of which is of another model."""
    import resource

    rng = np.random.default_rng((draw, 64))
    first, second = (np.load(Path(folder) / f"{name}.npy", mmap_mode="r") for name in (SENTENCES, other))
    rows = rng.permutation(min(len(first), len(second)))[: 20_000 + TRUSTED]
    X = np.r_[second[rows[:2000]], first[rows[2000:20_000]]].astype(np.float32)
    own = first[rows[20_000:]].astype(np.float32)
    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    started = time.perf_counter()
    busy = time.process_time()
    found = check(X, trusted=own, random_state=draw)
    seconds = time.perf_counter() - started
    busy = time.process_time() - busy
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1e6
    told = {"other": other, "seconds": seconds, "busy": busy, "before": before, "peak": peak}
    return told | {"answered": found.told is not None}
