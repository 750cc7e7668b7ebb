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

If `--out` has only draws of the last four parts, `--table` makes whose_rates.md instead.
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
from benchmarks.checked.single_rows import (
    FRESH,
    HALVES,
    MODES,
    NEW_KINDS,
    NOTHING_FAMILIES,
    SEARCHED,
    WHOSE,
    WHOSE_PARTS,
    nothing,
    search,
    size,
    whose,
)
from benchmarks.checked.tables import WHOSE_SECTIONS, interval, sections, whose_table
from relcore.base.errors import SpaceError
from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.check import collection
from relcore.check.collection import check
from relcore.check.marks import name_of
from relcore.check.repair import map_to_space
from relcore.passport.passport import Passport
from relcore.passport.recipes import MIXED
from relcore.passport.two_parts import SUSPECTED, ShortAxes
from relcore.spaces.space import LatentSpace

TABLE = Path(__file__).with_name("check_rates.md")
WHOSE_TABLE = TABLE.with_name("whose_rates.md")
FAMILIES = {
    SENTENCES: 20,
    "para": 12,
    "L5": 4,
    "L3": 4,
    "mean": 8,
    **dict.fromkeys(WORDS, 12),
}  # draws a kind
SHARES = (0.5, 0.1, 0.02, 0.01)
# near: layers and prompts of one model
APART = ("rotated", "para", "words")
NEAR = ("L5", "L3", "cls", "query")
OTHERS = ("rotated", "para", *NEAR, "words")


# Controls: rows of one model, of ten kinds.


def control(folder: str, kind: str, family: str, draw: int) -> dict[str, Any] | None:
    """One draw; None for a kind that a family has no rows for."""
    rng = np.random.default_rng((draw, KINDS.index(kind), [*FAMILIES].index(family), 42))
    if family in WORDS:
        X = words()[WORDS.index(family)]
        sizes = words()[2]
        sources = clusters(X, rng)  # topics of words
        bands = np.minimum(np.arange(len(X)) // 5000, 3)  # frequent and rare words
        if kind in ("words among texts", "sources"):
            sources = bands
    else:
        (X, numbers), sources, sizes = inputs(folder)[0][family], *inputs(folder)[1:]
        sources = sources[numbers]
        sizes = sizes[numbers]
    n = int(rng.choice((1000, 2500, 5000, 20_000), p=(0.25, 0.45, 0.2, 0.1)))
    chosen = chosen_rows(kind, sources, sizes, n, rng)
    if chosen is None or len(chosen) < 500:
        return None
    rows = X[chosen]
    if kind == "near duplicates":
        rows = with_near_duplicates(rows, rng)
    return {"kind": kind, "family": family, "n": len(rows), **_found(rows, draw)}


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
    """Rows of one model, a share of which is replaced by rows of another model, and which rows these are.
    With `most`, all available rows of the other model are used."""
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


# Models are named by fingerprints of two models, from three sources. The rows that are named are not in the
# fingerprints.

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
    """A model's rows of one source, split into two halves."""
    found, sources, _ = inputs(folder)
    X, numbers = found[SENTENCES if name == "rotated" else name]
    if name == "rotated":
        X = X @ np.linalg.qr(np.random.default_rng(1).normal(size=(X.shape[1],) * 2))[0].astype(np.float32)
    rows = np.random.default_rng(5).permutation(np.flatnonzero(sources[numbers] == source))
    return X[rows[::2]], X[rows[1::2]]


def naming(folder: str, model: str, source: str, draw: int) -> dict[str, Any] | None:
    """The name that `check` gives to 100 rows of a model."""
    rows = _half(folder, model, source)[1]
    if len(rows) < 100:
        return None
    some = np.random.default_rng(draw).permutation(len(rows))[:100]
    return {"model": model, "source": source, "named": name_of(rows[some], known(folder)) or "none"}


# Repair.


def repair(folder: str, other: str, share: float, method: str, draw: int) -> dict[str, Any] | None:
    """Recall@10 of held-out queries by the majority's model: in the mixed rows before and after the repair,
    and in rows that are all by the majority's model."""
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


# The grids, and the table.


def grid(
    draws: int, parts: list[str], first: int
) -> Iterator[tuple[str, Callable[..., Any], tuple[Any, ...]]]:
    """Name of the part, function, and its arguments after the folder; what is needed most comes first.
    `first` is the first draw of the parts of single rows."""

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
            (*cell, first + draw)
            for draw in some(max(WHOSE.values()))
            for cell in product(WHOSE, SHARES[:3], MODES)
            if draw in some(WHOSE[cell[0]])
        ),
        nothing: (
            (*cell, first + draw)
            for draw in some(5)
            for cell in product((*KINDS, *NEW_KINDS), NOTHING_FAMILIES)
        ),
        search: ((*cell, first + draw) for draw in some(3) for cell in product(SEARCHED, HALVES, SHARES[:2])),
        size: product(("para", "L3"), range(first, first + 2)),
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


def run(folder: str, out: Path, draws: int, workers: int, parts: list[str], first: int) -> None:
    os.environ["OMP_NUM_THREADS"] = os.environ["OPENBLAS_NUM_THREADS"] = "1"
    lines = ()
    if out.exists():
        lines = map(json.loads, out.read_text(encoding="utf-8").splitlines())
    there = {(one["part"], *one.get("arguments", ())) for one in lines}
    cells = [cell for cell in grid(draws, parts, first) if (cell[0], *cell[2]) not in there]
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


def table(path: Path, add: bool = False) -> list[str]:
    """The lines of a table. In that of single rows, sections without draws stay as they are; with `add`, the
    models of rows are pooled with those that stand there."""
    rows = pd.DataFrame(map(json.loads, path.read_text(encoding="utf-8").splitlines()))
    rows = rows[rows.get("error", pd.Series(index=rows.index, dtype=object)).isna()]
    part = {name: some.dropna(axis=1, how="all") for name, some in rows.groupby("part")}
    stay: dict[str, list[str]] = {}
    if set(part) <= set(WHOSE_PARTS):
        stay = sections(WHOSE_TABLE)
        lines = [
            "# How often `check` is right about single rows",
            "",
            f"`python -m benchmarks.check_rates FOLDER --parts {','.join(WHOSE_PARTS)}`; draws that chose no limit.",
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
            rows = cells(part[name])
            if add and name == "whose":
                rows = whose_table(part[name], stay[title])
            lines += ["", f"## {title}", "", f"| {' | '.join(columns)} |", "|---" * len(columns) + "|"]
            lines += [f"| {' | '.join(row)} |" for row in rows]
        elif title in stay:
            lines += ["", *stay[title]]
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
    **WHOSE_SECTIONS,
}


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.check_rates", description=__doc__)
    parser.add_argument("folder", help="the arrays")
    parser.add_argument("--draws", type=int, default=20)
    parser.add_argument("--workers", type=int, default=max(1, (os.cpu_count() or 2) - 1))
    parser.add_argument("--parts", default="controls,apart,repair,detection,trusted,naming")
    parser.add_argument("--out", type=Path, default=Path("check_rates.jsonl"))
    parser.add_argument("--table", action="store_true", help="only make the table of the lines of --out")
    parser.add_argument("--first", type=int, default=FRESH, help="first draw of the parts of single rows")
    parser.add_argument(
        "--add", action="store_true", help="pool the draws of `whose` with those that its table has"
    )
    options = parser.parse_args()
    parts = options.parts.split(",")
    if not options.table:
        run(options.folder, options.out, options.draws, options.workers, parts, options.first)
    lines = table(options.out, options.add)
    path = TABLE
    if "single rows" in lines[0]:
        path = WHOSE_TABLE
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
