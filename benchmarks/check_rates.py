"""``python -m benchmarks.check_rates FOLDER``: how often `check` finds two models in one collection, and when
there is one.

FOLDER has arrays of float16, which ``python -m benchmarks.migrate texts FOLDER`` writes: sentence vectors of one model
in `L6.npy` (n, d), the same texts by other models in `NAME.npy` with their rows in `NAME.rows.npy`, and `rows.json`
with the source and the length of each text.
Word vectors are the bundled ones. Each line of `--out` is one draw; `--table` makes check_rates.md of them. Parts:

controls   one model, ten kinds; the thresholds were chosen on the kinds of `CALIBRATED` alone
apart      one model, words whose parts lie apart; no limit was chosen on these draws
detection  two models, by pair, share and size
naming     the model of 100 rows by the fingerprints of two models
trusted    rows of another model ranked by 200 trusted rows of another source
repair     recall@10 before and after the smaller part is mapped
whose      the model of each row, by other model, share and trusted rows (200 of like texts, 200 of others, none)
nothing    one model, the ten kinds of `controls` and ten more, with and without trusted rows
search     nDCG@10 of a mixed collection, by one query, by two, and repaired, on judged collections; needs RELSCOPE_DATA
size       seconds and memory of 20,000 rows with 200 trusted ones, in a process of its own

The last four, alone in `--out`, make whose_rates.md.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable, Iterable, Iterator
from concurrent.futures import ProcessPoolExecutor, as_completed
from functools import cache
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.check import collection
from relcore.check.collection import check
from relcore.check.marks import name_of
from relcore.check.mixed_search import PAIRS, advice, mixed_scores
from relcore.check.origins import OTHER
from relcore.check.repair import map_to_space
from relcore.encoders.words import load_words
from relcore.passport.passport import Passport
from relcore.passport.recipes import MIXED
from relcore.passport.two_parts import SUSPECTED, ShortAxes
from relcore.scores.relevance import ndcg, relevance_matrix
from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

TABLE = Path(__file__).with_name("check_rates.md")
WHOSE_PARTS = ("whose", "nothing", "search", "size")
FRESH = 301_300  # first draw of the parts whose draws chose nothing
SENTENCES = "L6"
WORDS = ("word2vec-novels", "fasttext-novels")
FAMILIES = {
    SENTENCES: 20,
    "para": 12,
    "L5": 4,
    "L3": 4,
    "mean": 8,
    **dict.fromkeys(WORDS, 12),
}  # draws a kind
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
SHARES = (0.5, 0.1, 0.02, 0.01)
# near: layers and prompts of one model
APART = ("rotated", "para", "words")
NEAR = ("L5", "L3", "cls", "query")
OTHERS = ("rotated", "para", *NEAR, "words")


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


# Controls: rows of one model, of ten kinds.


def control(folder: str, kind: str, family: str, draw: int) -> dict[str, Any] | None:
    """One draw; None for a kind that a family has no rows for."""
    rng = np.random.default_rng((draw, KINDS.index(kind), [*FAMILIES].index(family), 42))
    if family in WORDS:
        X = words()[WORDS.index(family)]
        sizes = words()[2]
        sources = _clusters(X, rng)  # topics of words
        bands = np.minimum(np.arange(len(X)) // 5000, 3)  # frequent and rare words
        if kind in ("words among texts", "sources"):
            sources = bands
    else:
        (X, numbers), sources, sizes = inputs(folder)[0][family], *inputs(folder)[1:]
        sources = sources[numbers]
        sizes = sizes[numbers]
    n = int(rng.choice((1000, 2500, 5000, 20_000), p=(0.25, 0.45, 0.2, 0.1)))
    chosen = _chosen(kind, sources, sizes, n, rng)
    if chosen is None or len(chosen) < 500:
        return None
    rows = X[chosen]
    if kind == "near duplicates":
        again = rng.choice(len(rows), len(rows) // 3)
        noise = rng.normal(size=(len(again), rows.shape[1])).astype(np.float32)
        noise *= 0.02 * np.linalg.norm(rows[again], axis=1, keepdims=True) / np.sqrt(rows.shape[1])
        rows = np.r_[rows, rows[again] + noise]
    return {"kind": kind, "family": family, "n": len(rows), **_found(rows, draw)}


def _clusters(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The nearest of eight random rows: topics of words."""
    units = unit_rows(X)
    return (units @ units[rng.choice(len(X), 8, replace=False)].T).argmax(axis=1)


def _chosen(
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


def _found(rows: np.ndarray, draw: int, truth: np.ndarray | None = None) -> dict[str, Any]:
    started = time.perf_counter()
    found = check(rows, random_state=draw)
    told = {"slope": found.slope, "high": found.slope_high, "counted": found.count, "unfit": found.unfit}
    told["seconds"] = time.perf_counter() - started
    if truth is not None and not found.unfit:
        auc = _auc(truth, found.log_ratio)
        # halves: either is the smaller
        if truth.mean() == 0.5:
            told["auc"] = max(auc, 1 - auc)
        else:
            told["auc"] = auc
    return told


def _auc(truth: np.ndarray, values: np.ndarray) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, values))


# Words of one model whose parts lie apart. The rule of `graded` parts was chosen on pairs of ten topics of the
# 6,000 most frequent words of both models and on the ends of their longest axis.

APART_DESIGNS = (
    "pairs of topics",
    "three topics",
    "topic and part of another",
    "ends of another axis",
    "nearest words of two words",
    "frequent and rare words",
)


def apart(folder: str, design: str, draw: int) -> dict[str, Any]:
    """One collection of a draw's own list of frequent words, its own number of topics and its own model."""
    from sklearn.cluster import KMeans

    rng = np.random.default_rng((draw, APART_DESIGNS.index(design), 52))
    X = words()[int(rng.integers(2))][: int(rng.integers(3000, 10_000))]
    units = unit_rows(X)
    if "topic" in design:
        topics = KMeans(int(rng.integers(5, 15)), n_init=2, random_state=draw).fit_predict(units)
        names, sizes = np.unique(topics, return_counts=True)
        chosen = rng.permutation(names[sizes >= 150])[: 3 if design == "three topics" else 2]
        parts = [rng.permutation(np.flatnonzero(topics == name)) for name in chosen]
        if design == "topic and part of another":
            parts[1] = parts[1][: max(20, len(parts[0]) // 5)]
    elif design == "ends of another axis":
        centred = units - units.mean(axis=0)
        axis = np.linalg.svd(centred, full_matrices=False)[2][int(rng.integers(1, 5))]
        order = np.argsort(centred @ axis)
        few = int(rng.integers(400, 1000))
        parts = [order[:few], order[-few:]]
    elif design == "nearest words of two words":
        few = int(rng.integers(300, 900))
        near = [np.argsort(-units @ units[row])[:few] for row in rng.choice(len(X), 2, replace=False)]
        parts = [near[0], np.setdiff1d(near[1], near[0])]
    else:
        parts = [np.arange(800), len(X) - 800 + np.arange(800)]
    return {"design": design, **_found(X[np.concatenate(parts)], draw)}


# Two models.


def _mixed(
    folder: str, other: str, share: float, n: int, rng: np.random.Generator, most: bool = False
) -> tuple[np.ndarray, np.ndarray]:
    """Rows of one model, of which a share is of another one, and which are. With `most`, the other model has
    as many rows as there are."""
    few = round(share * n)
    if other == "words":
        first, second, _ = words()
        rows = rng.permutation(len(first))[:n]
        X = first[rows]
        X[:few] = (
            second[rows[:few]] * np.linalg.norm(X, axis=1).mean() / np.linalg.norm(second, axis=1).mean()
        )
        return X, np.arange(n) < few
    found, sources, _ = inputs(folder)
    base = found[SENTENCES][0]
    usual = np.flatnonzero(sources != "swadesh")
    if other == "rotated":
        rows = rng.permutation(usual)[:n]
        X = unit_rows(base[rows])
        X[:few] = X[:few] @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0].astype(np.float32)
        return X, np.arange(len(X)) < few
    Y, numbers = found[other]
    own = rng.permutation(len(numbers))[:few]
    rest = rng.permutation(np.setdiff1d(usual, numbers[own]))[: n - few]
    return np.r_[unit_rows(Y[own]), unit_rows(base[rest])], np.arange(len(own) + len(rest)) < len(own)


def detection(folder: str, other: str, share: float, n: int, draw: int) -> dict[str, Any] | None:
    rng = np.random.default_rng((draw, OTHERS.index(other), round(100 * share), n))
    X, truth = _mixed(folder, other, share, n, rng)
    if len(X) < n or truth.sum() < round(share * n):
        return None
    return {"other": other, "share": share, "n": n, **_found(X, draw, truth)}


def trusted(folder: str, other: str, draw: int) -> dict[str, Any]:
    """AUC of the ranking by 200 trusted rows of a source that the collection does not have."""
    rng = np.random.default_rng((draw, OTHERS.index(other), 7))
    if other == "words":
        first, second, _ = words()
        rows = rng.permutation(len(first))
        X = np.r_[first[rows[:2250]], second[rows[2250:2500]]]
        truth = np.arange(2500) >= 2250
        sample = rows[2500:]
        ranks = ShortAxes.of(first[sample[:200]]).energy(X)
    else:
        found, sources, _ = inputs(folder)
        X, truth = _mixed(folder, other, 0.1, 2500, rng)
        trusted_rows = np.flatnonzero(sources == str(rng.choice(("npl", "trec", "cranfield"))))
        kept = np.flatnonzero(np.isin(sources, ("captions", "wiki")))  # other texts than the trusted ones
        X = np.r_[X[truth], unit_rows(found[SENTENCES][0][rng.permutation(kept)[: np.count_nonzero(~truth)]])]
        truth = np.sort(truth)[::-1]
        ranks = ShortAxes.of(found[SENTENCES][0][rng.permutation(trusted_rows)[:200]]).energy(X)
    return {"other": other, "auc": _auc(truth, ranks)}


# Names by fingerprints of two models, from three sources; the rows that are named are none of theirs.

NAMED = ("captions", "npl", "trec")


@cache
def known(folder: str) -> tuple[Passport, ...]:
    found = []
    for name in (SENTENCES, "para"):
        rows = [_half(folder, name, source)[0] for source in NAMED]
        anchors = LatentSpace(rows[0][:32], list(map(str, range(32))), name=name)
        found.append(Passport.of(anchors).with_fingerprint(rows))
    return tuple(found)


def _half(folder: str, name: str, source: str) -> tuple[np.ndarray, np.ndarray]:
    """Two halves of a model's rows of a source."""
    found, sources, _ = inputs(folder)
    X, numbers = found[SENTENCES if name == "rotated" else name]
    if name == "rotated":
        X = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(X.shape[1],) * 2))[0].astype(np.float32)
    rows = np.random.default_rng(5).permutation(np.flatnonzero(sources[numbers] == source))
    return X[rows[::2]], X[rows[1::2]]


def naming(folder: str, model: str, source: str, draw: int) -> dict[str, Any] | None:
    """What 100 rows of a model are called."""
    rows = _half(folder, model, source)[1]
    if len(rows) < 100:
        return None
    some = np.random.default_rng(draw).permutation(len(rows))[:100]
    return {"model": model, "source": source, "named": name_of(rows[some], known(folder)) or "none"}


# Repair.


def repair(folder: str, other: str, share: float, method: str, draw: int) -> dict[str, Any] | None:
    """Recall@10 of held-out queries by the majority's model in the mixed rows, before and after, and in rows
    that the majority's model made alone."""
    rng = np.random.default_rng((draw, OTHERS.index(other), round(100 * share), 9))
    if other == "words":
        base, Y, _ = words()
        rows = rng.permutation(len(base))[:9000]
    else:
        found, _, _ = inputs(folder)
        Y, numbers = found[other]
        base = found[SENTENCES][0][numbers]
        rows = rng.permutation(len(numbers))[:9000]
    pure, foreign, queries = (
        unit_rows(side) for side in (base[rows[1000:]], Y[rows[1000:]], base[rows[:1000]])
    )
    few = round(share * len(pure))
    if method == "none":
        known = 0
    else:
        known = int(method.split()[0])
    before = np.r_[foreign[:few], pure[few:]]
    majority = np.r_[pure[few:], pure[:known]]
    pairs = None
    if known:
        pairs = np.stack([np.arange(known), len(pure) - few + np.arange(known)])
    record = {"other": other, "share": share, "method": method, "n": len(pure)}
    wanted = np.argpartition(-(queries @ pure.T), 10, axis=1)[:, :10]
    record |= {"before": _recall(queries, before, wanted), "refused": False}
    try:
        after = unit_rows(map_to_space(foreign[:few], majority, pairs, draw))
    except SpaceError as error:
        return record | {"refused": True, "after": record["before"], "why": str(error)}
    after[:known] = pure[:known]
    return record | {"after": _recall(queries, np.r_[after, pure[few:]], wanted)}


def _recall(queries: np.ndarray, rows: np.ndarray, wanted: np.ndarray) -> float:
    near = np.argpartition(-(queries @ rows.T), 10, axis=1)[:, :10]
    return float(np.mean([np.isin(one, own).mean() for one, own in zip(near, wanted, strict=True)]))


# Which model made each row.

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
    """A collection of two models, checked with trusted rows of a kind: rows of the other model that are
    found, and rows of the trusted model among these."""
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
    """Rows of which a share is of another model, which these are, and trusted rows. Texts are of two sources;
    trusted rows of other texts are of a third one. Other words are the nearest ones of a word."""
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
NOTHING_FAMILIES = (SENTENCES, "para", "e5", "L5", "L3", "mean", *WORDS)
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
            sources = _clusters(X, rng)
    else:
        (X, numbers), sources, sizes = inputs(folder)[0][family], *inputs(folder)[1:]
        sources = sources[numbers]
        sizes = sizes[numbers]
    n = int(rng.integers(max(600, 2 * X.shape[1]) + TRUSTED + 40, 2000))
    if kind in KINDS:
        chosen = _chosen(kind, sources, sizes, n, rng)
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
    """The rows and trusted rows, both changed as their kind says."""
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
        again = rng.choice(len(rows), len(rows) // 3)
        noise = rng.normal(size=(len(again), rows.shape[1])).astype(np.float32)
        noise *= 0.02 * np.linalg.norm(rows[again], axis=1, keepdims=True) / np.sqrt(rows.shape[1])
        rows = np.r_[rows, rows[again] + noise]
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
    """nDCG@10 of MiniLM's queries in a collection of which a share is of another model: by these queries, by
    queries of both models, and repaired by 300 pairs."""
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


# The grids, and the table.


def grid(draws: int, parts: list[str]) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Name of the part, function, and its arguments after the folder; what is needed most comes first."""

    def some(most: int) -> range:
        return range(max(1, round(most * draws / 20)))

    kinds = ((kind, family, most) for kind in KINDS for family, most in FAMILIES.items())
    sizes = ((2500, APART), (800, APART), (2500, NEAR), (20_000, APART))
    sources = (*NAMED, "cranfield", "german", "words")
    cells: dict[Callable[..., Any], Iterable[tuple[Any, ...]]] = {
        control: ((kind, family, draw) for kind, family, most in kinds for draw in some(most)),
        repair: product(("words", "para"), (0.5, 0.1), ("none", "30 pairs", "300 pairs"), some(5)),
        apart: (
            (design, draw)
            for design in APART_DESIGNS
            for draw in some(90 if design == APART_DESIGNS[0] else 20)
        ),
        detection: (cell for n, others in sizes for cell in product(others, SHARES, [n], range(draws))),
        trusted: product(OTHERS, range(draws)),
        naming: product((SENTENCES, *OTHERS[:-1]), sources, range(draws)),
        whose: (
            (*cell, FRESH + draw)
            for draw in some(max(WHOSE.values()))
            for cell in product(WHOSE, SHARES[:3], MODES)
            if draw in some(WHOSE[cell[0]])
        ),
        nothing: (
            (*cell, FRESH + draw)
            for draw in some(5)
            for cell in product((*KINDS, *NEW_KINDS), NOTHING_FAMILIES)
        ),
        search: ((*cell, FRESH + draw) for draw in some(3) for cell in product(SEARCHED, HALVES, SHARES[:2])),
        size: product(("para", "L3"), range(FRESH, FRESH + 2)),
    }
    for function, arguments in cells.items():
        if function is control:
            name = "controls"
        else:
            name = function.__name__
        yield from ((name, function, cell) for cell in arguments if name in parts)


def _done(part: str, function: Callable[..., Any], folder: str, arguments: tuple[Any, ...]) -> dict[str, Any]:
    # made-up rows that would be found are no part of these figures, and take most of the time
    collection.smallest_found = lambda *_: None
    try:
        found = function(folder, *arguments)
    except Exception as error:  # one draw must not end the run
        return {"part": part, "arguments": list(arguments), "error": f"{type(error).__name__}: {error}"}
    return {"part": part, "arguments": list(arguments), **(found or {})}


def run(folder: str, out: Path, draws: int, workers: int, parts: list[str]) -> None:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lines = ()
    if out.exists():
        lines = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    there = {(one["part"], *one.get("arguments", ())) for one in lines}
    cells = [cell for cell in grid(draws, parts) if (cell[0], *cell[2]) not in there]
    started = time.perf_counter()
    import multiprocessing

    context = multiprocessing.get_context("spawn")
    with out.open("a", encoding="utf-8") as stream, ProcessPoolExecutor(workers, mp_context=context) as pool:
        waiting = [
            pool.submit(_done, part, function, folder, arguments) for part, function, arguments in cells
        ]
        for done, one in enumerate(as_completed(waiting), start=1):
            stream.write(json.dumps(one.result(), default=lambda value: value.item()) + "\n")
            stream.flush()
            if done % 50 == 0 or done == len(cells):
                print(f"{done} of {len(cells)}, {time.perf_counter() - started:.0f} s", flush=True)


def interval(found: pd.Series) -> str:
    """Count of draws with a 95 % interval (Jeffreys)."""
    from scipy.stats import beta

    k = int(found.sum())
    n = len(found)
    low = 0.0
    if k:
        low = beta.ppf(0.025, k + 0.5, n - k + 0.5)
    high = 1.0
    if k < n:
        high = beta.ppf(0.975, k + 0.5, n - k + 0.5)
    return f"{k} of {n} ({short(low)} to {short(high)})"


def table(path: Path) -> list[str]:
    rows = pd.DataFrame(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    rows = rows[rows.get("error", pd.Series(index=rows.index, dtype=object)).isna()]
    part = {name: some.dropna(axis=1, how="all") for name, some in rows.groupby("part")}
    if set(part) <= set(WHOSE_PARTS):
        lines = [
            "# How often `check` is right about single rows",
            "",
            f"`python -m benchmarks.check_rates FOLDER --parts {','.join(WHOSE_PARTS)}`; draws that chose no limit. Those of one model were checked before the gate also asked whether both halves of the dimensions find the same rows, which refuses more.",
        ]
    else:
        lines = [
            "# How often `check` is right",
            "",
            f"`python -m benchmarks.check_rates`; the upper end of the slope's interval is compared. Two models: slope below {MIXED}; suspicious: below {SUSPECTED}.",
            "Parts are not compared where rows are too few, or the short axes of the larger part are alike.",
        ]
    for name, (title, columns, cells) in _SECTIONS.items():
        if name in part:
            lines += ["", f"## {title}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
            lines += [f"| {' | '.join(row)} |" for row in cells(part[name])]
    return lines


def _controls(some: pd.DataFrame) -> Iterator[list[str]]:
    some = some.dropna(subset=["kind"])
    contextual = ~some.family.isin([*WORDS, "mean"])
    held = ~some.kind.isin(CALIBRATED)
    kinds = {kind: some.kind == kind for kind in KINDS} | {"all": held | True, "all held out": held}
    for kind, chosen in kinds.items():
        calibrated = ""
        if kind in KINDS:
            calibrated = "no"
        if kind in CALIBRATED:
            calibrated = "yes"
        cells = [kind, calibrated]
        lows = []
        for family in (contextual, ~contextual):
            one = some[chosen & family]
            compared = one.high[one.unfit.eq("")]
            alarms = interval(compared < MIXED), interval((compared >= MIXED) & (compared < SUSPECTED))
            if len(one):
                cells += [*alarms, f"{len(one) - len(compared)}"]
            else:
                cells += [""] * 3
            lows.append(short(float(compared.min())))
        yield [*cells, " / ".join(lows)]


def _apart(some: pd.DataFrame) -> Iterator[list[str]]:
    for design, one in some.groupby("design", sort=False):
        judged = one.unfit.str.contains("cannot be judged")
        found = interval(one.high < MIXED), interval(one.high < SUSPECTED)  # False without a slope
        yield [str(design), *found, f"{int(judged.sum())}", "1 of 90"]


def _detection(some: pd.DataFrame) -> Iterator[list[str]]:
    some = some.dropna(subset=["other"]).sort_values(["n", "share"], ascending=False, kind="stable")
    some = some.sort_values("other", key=lambda others: others.map(OTHERS.index), kind="stable")
    for (other, n, share), one in some.groupby(["other", "n", "share"], sort=False):
        found = [interval(one.high < limit) for limit in (MIXED, SUSPECTED)]
        compared = one.unfit.eq("")
        cells = [other, f"{int(n):,}", f"{share:g}", *found, f"{int((~compared).sum())}"]
        counted = float((one.counted[compared] / (share * n)).median())
        yield [*cells, short(float(one.auc.mean())), short(counted, 2)]


def _trusted(some: pd.DataFrame) -> Iterator[list[str]]:
    for other, one in some.groupby("other", sort=False):
        yield [other, f"{short(float(one.auc.mean()))} ({short(float(one.auc.min()))}) of {len(one)}"]


def _naming(some: pd.DataFrame) -> Iterator[list[str]]:
    for model, one in some.dropna(subset=["model"]).groupby("model", sort=False):
        named = ", ".join(f"{name} {count}" for name, count in one.named.value_counts().items())
        yield [model, ", ".join(one.source.unique()), named]


def _repair(some: pd.DataFrame) -> Iterator[list[str]]:
    for (other, share, method), one in some.groupby(["other", "share", "method"], sort=False):
        recalls = [short(float(one[when].mean())) for when in ("before", "after")]
        yield [other, f"{share:g}", method, *recalls, f"{int(one.refused.sum())} of {len(one)}"]


def _means(part: pd.DataFrame, *columns: str) -> list[str]:
    return [short(float(part[column].astype(float).mean())) for column in columns]


def _whose(some: pd.DataFrame) -> Iterator[list[str]]:
    """A row for each cell, and one for each kind of trusted rows over all other models."""
    some = some.copy()
    some["true_bound"] = some["false"] <= some.bound
    kinds = {other: kind for kind, others in WHOSE_KINDS.items() for other in others}
    some["kind"] = some.other.map(kinds)
    cells = list(some.groupby(["mode", "kind", "share"]))
    cells += list(some.groupby(["mode", "other", "share"], sort=False))
    for (mode, other, share), one in cells:
        told = one[one.answered]
        either = told.either.astype(bool)
        named = told[~either]
        rates = [*_means(named, "false"), short(float(named["false"].max())), *_means(named, "power")]
        bound = named[named.bound.notna()]
        true = f"{int(bound.true_bound.sum())} of {len(bound)}"
        counts = f"{len(told)} of {len(one)}", f"{int(either.sum())}", f"{int(named.swapped.sum())}"
        yield [mode, other, f"{share:g}", *counts, *rates, true, *_means(told, "shifted", "unknown")]


def _nothing(some: pd.DataFrame) -> Iterator[list[str]]:
    some = some.dropna(subset=["kind"])
    some = some[some.unfit.eq("")]
    alarms = some.verdict.isin(["two models", "suspicious"])
    for kind in (*KINDS, *NEW_KINDS, "all"):
        cells = [kind]
        for mode in dict.fromkeys(NOTHING_MODES):
            chosen = some["mode"] == mode
            if kind != "all":
                chosen &= some.kind == kind
            cells.append(interval(alarms[chosen]))
        yield cells


def _search(some: pd.DataFrame) -> Iterator[list[str]]:
    """Means over the draws of a cell. `advised` is the gain of what is advised over one query."""
    some = some.copy()
    for column in ("both", "both_wrong", "repaired", "repaired_wrong"):
        some[column] -= some.plain
    for (name, other, share), one in some.groupby(["name", "other", "share"], sort=False):
        ratio = float((one.alone / one.pure).mean())
        two_queries = advice(share, as_good=ratio >= AS_GOOD) == "both models"
        chose = "no"
        if name in TUNED:
            chose = "yes"
        gains = [f"{one[column].mean():+.3f}".replace("+nan", "–") for column in _GAINS]
        cells = [name, chose, other, f"{share:g}", short(ratio, 2), *_means(one, "pure", "plain"), *gains]
        advised = "one query"
        if two_queries:
            advised = "two queries"
        yield [*cells, advised]


_GAINS = ("both", "both_wrong", "repaired", "repaired_wrong")


def _size(some: pd.DataFrame) -> Iterator[list[str]]:
    for other, one in some.groupby("other"):
        yield [
            str(other),
            *(short(float(one[name].max()), 2) for name in ("seconds", "busy", "before", "peak")),
        ]


_UNSURE = "suspicious", "not compared"
_SECTIONS = {
    "controls": (
        "One model",
        (
            "kind",
            "thresholds chosen on it",
            "contextual: alarms",
            *_UNSURE,
            "word vectors: alarms",
            *_UNSURE,
            "lowest",
        ),
        _controls,
    ),
    "apart": (
        "Words of one model whose parts lie apart",
        ("design", "alarms", "or suspicious", "cannot be judged", "target: at most"),
        _apart,
    ),
    "detection": (
        "Two models",
        ("other model", "rows", "share", "found", "or suspicious", "not compared", "AUC", "counted ÷ true"),
        _detection,
    ),
    "trusted": (
        "200 trusted rows of another source",
        ("other model", "AUC, mean (lowest) of draws"),
        _trusted,
    ),
    "naming": ("Names", ("rows of", "sources", "named"), _naming),
    "repair": (
        "Repair",
        ("rows", "share", "by", "recall@10 before", "after", "refused"),
        _repair,
    ),
    "whose": (
        "Which model made each row",
        (
            "trusted rows",
            "other model",
            "share",
            "answered",
            "whose is unknown",
            "swapped",
            "false discoveries, mean",
            "highest",
            "power",
            "bound true",
            "other texts",
            "rows unknown",
        ),
        _whose,
    ),
    "nothing": (
        "One model: alarms, by trusted rows",
        ("kind", *dict.fromkeys(NOTHING_MODES)),
        _nothing,
    ),
    "search": (
        "nDCG@10 of a mixed collection; gains over one query",
        (
            "collection",
            "chose the rule",
            "other model",
            "share",
            "its nDCG@10 ÷ MiniLM's",
            "not mixed",
            "one query",
            "two queries",
            "two, 2 % of labels wrong",
            "repaired by 300 pairs",
            "repaired, 2 % wrong",
            "advised without pairs",
        ),
        _search,
    ),
    "size": (
        "20,000 rows, 200 trusted",
        ("other model", "seconds, most of two", "of CPU", "GB before", "GB at most"),
        _size,
    ),
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_rates", description=__doc__)
    parser.add_argument("folder", help="the arrays")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--parts", default="controls,apart,repair,detection,trusted,naming")
    parser.add_argument("--out", type=Path, default=Path("check_rates.jsonl"))
    parser.add_argument("--table", action="store_true", help="only make the table of the lines of --out")
    options = parser.parse_args()
    if not options.table:
        run(options.folder, options.out, options.draws, options.workers, options.parts.split(","))
    lines = table(options.out)
    path = TABLE
    if "single rows" in lines[0]:
        path = TABLE.with_name("whose_rates.md")
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
