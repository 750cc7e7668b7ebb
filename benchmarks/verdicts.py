"""``python -m benchmarks.verdicts [part …]``: the verdicts of Bootstrap on noise and on the bundled words.

40 draws of unrelated Gaussian spaces of each size and 20 draws of seeds for the words. A line for each draw
goes to a file as soon as it is there (default verdicts.jsonl, which git ignores), and the same command
resumes where it was stopped.
"""

from __future__ import annotations

import argparse
import json
import time
from collections import Counter
from pathlib import Path

import numpy as np

from relcore.encoders.words import load_words
from relcore.represent.bootstrap import BootstrapResult, bootstrap_anchors
from relcore.spaces.space import LatentSpace

SIZES = ((107, 50), (200, 50), (438, 384), (700, 200))  # rows, dimensions
WORDS = (4000, 20_000)
PARTS = {f"noise {n} × {d}, {seeds} seeds": (n, d, seeds) for seeds in (15, 0) for n, d in SIZES}
PARTS |= {f"words {n}, {seeds} seeds": (n, None, seeds) for n in WORDS for seeds in (15,)}
PARTS |= {"words 4000, 0 seeds": (4000, None, 0)}


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.verdicts", description=__doc__.splitlines()[0]
    )
    parser.add_argument("parts", nargs="*", metavar="part", help=f"default all: {'; '.join(PARTS)}")
    parser.add_argument("--file", type=Path, default=Path("verdicts.jsonl"))
    options = parser.parse_args()
    if unknown := set(options.parts) - set(PARTS):
        parser.error(f"expected parts among {'; '.join(PARTS)}, got {'; '.join(sorted(unknown))}")
    lines = options.file.read_text().splitlines() if options.file.is_file() else []
    done = {(one["part"], one["draw"]): one for one in map(json.loads, lines)}
    for part in options.parts or PARTS:
        n, d, n_seeds = PARTS[part]
        for draw in range(20 if d is None else 40):
            if (part, draw) in done:
                continue
            began = time.perf_counter()
            found = of_words(n, n_seeds, draw) if d is None else of_noise(n, d, n_seeds, draw)
            done[part, draw] = {
                "part": part,
                "draw": draw,
                "verdict": found.verdict,
                "held out": found.held_out,
            }
            done[part, draw] |= {"chance": found.null, "seconds": round(time.perf_counter() - began, 1)}
            with options.file.open("a") as file:
                file.write(json.dumps(done[part, draw]) + "\n")
        of_part = [one for (name, _), one in done.items() if name == part]
        counts = Counter(one["verdict"] for one in of_part)
        print(
            f"{part}: {dict(counts)} of {len(of_part)},"
            f" {np.median([one['seconds'] for one in of_part]):.1f} s",
            flush=True,
        )


def of_noise(n: int, d: int, n_seeds: int, draw: int) -> BootstrapResult:
    """Two unrelated spaces; their seeds are pairs at random."""
    rng = np.random.default_rng((n, d, draw))
    source, target = (
        LatentSpace(rng.normal(size=(n, d)), [f"{side}{row}" for row in range(n)]) for side in "st"
    )
    seeds = [(f"s{row}", f"t{row}") for row in range(n_seeds)]
    return bootstrap_anchors(source, target, seeds=seeds, n_anchors=n // 3, random_state=draw)


def of_words(n: int, n_seeds: int, draw: int) -> BootstrapResult:
    """The bundled Word2Vec and FastText, the target's rows shuffled, the seeds drawn at random."""
    source, target = (load_words(name, limit=n) for name in ("word2vec-novels", "fasttext-novels"))
    rng = np.random.default_rng(draw)
    seeds = [(one, one) for one in rng.permutation(source.ids)[:n_seeds]]
    return bootstrap_anchors(
        source, target.take(rng.permutation(n)), seeds=seeds, n_anchors=300, random_state=draw
    )


if __name__ == "__main__":
    main()
