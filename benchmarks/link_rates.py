"""``python -m benchmarks.link_rates [situation …] [--draws N]``: how often two collections without any pair are
linked, and whether the map is right. A line of JSON for each draw.

No row of one side has its partner on the other. `top1` is the share of 1,000 further rows whose partner is the
nearest of the 1,000.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from time import perf_counter

import numpy as np

from relcore.encoders.words import load_words
from relcore.represent.linking import link_clusters
from relcore.represent.similarity import mean_row, unit_rows

Sides = tuple[np.ndarray, np.ndarray, np.ndarray]  # source, target, and further rows, as row numbers
HELD_OUT = 1000


def words(rng: np.random.Generator, n: int) -> Sides:
    order = rng.permutation(20_000)
    return order[:n], order[n : 2 * n], order[2 * n : 2 * n + HELD_OUT]


def shifted(rng: np.random.Generator, n: int) -> Sides:
    """Frequent words on the one side, rare ones on the other; the words between are further rows."""
    order = np.argsort(-load_words("word2vec-novels").counts, kind="stable")
    between = rng.permutation(order[8000:12_000])[:HELD_OUT]
    return rng.permutation(order[:8000])[:n], rng.permutation(order[12_000:])[:n], between


SITUATIONS: dict[str, Callable[[np.random.Generator, int], Sides]] = {"words": words, "shifted": shifted}


def drawn(situation: str, n: int, state: int) -> dict[str, float | str | bool]:
    rng = np.random.default_rng((n, state))
    if situation == "noise":
        spaces = [rng.normal(size=(2 * n + HELD_OUT, 50)) for _ in range(2)]
        source, target, further = np.split(np.arange(2 * n + HELD_OUT), [n, 2 * n])
    else:
        spaces = [load_words(name).vectors for name in ("word2vec-novels", "fasttext-novels")]
        source, target, further = SITUATIONS[situation](rng, n)
    began, sides = perf_counter(), []
    for vectors, rows in zip(spaces, (source, target), strict=True):
        mean = mean_row(vectors[rows])
        sides.append((unit_rows(vectors[rows], mean), unit_rows(vectors[further], mean)))
    *_, fit = link_clusters(sides[0][0], sides[1][0], state)
    seconds = perf_counter() - began
    nearest = (unit_rows(sides[0][1] @ fit.mapping) @ sides[1][1].T).argmax(axis=1)
    return {
        "situation": situation,
        "rows": n,
        "state": state,
        "linked": fit.agrees,
        "agreement": round(fit.agreement, 3),
        "chance": round(fit.chance, 3),
        "top1": float(np.mean(nearest == np.arange(HELD_OUT))),
        "seconds": round(seconds, 1),
    }


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.link_rates", description=__doc__.splitlines()[0]
    )
    names = [*SITUATIONS, "noise"]
    parser.add_argument("situations", nargs="*", metavar="situation", help=f"default all: {', '.join(names)}")
    parser.add_argument("--rows", type=int, default=4000)
    parser.add_argument("--draws", type=int, default=10)
    options = parser.parse_args()
    if unknown := set(options.situations) - set(names):
        parser.error(f"expected {', '.join(names)}, got {', '.join(sorted(unknown))}")
    for situation in options.situations or names:
        for state in range(options.draws):
            print(json.dumps(drawn(situation, options.rows, state)), flush=True)


if __name__ == "__main__":
    main()
