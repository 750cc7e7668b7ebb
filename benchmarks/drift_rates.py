"""``python -m benchmarks.drift_rates [change …]``: how often the drift gate alarms, by what was done to the
new version.

Three spaces: a digit network (ViT), MiniLM on Wikipedia sentences, bundled words. Each draw takes other rows
and rounds both versions apart. Then 1, 3 and 40 rows are broken in each of `BROKEN`. A line for each draw goes to a file as soon as it is there (default
drift_rates.jsonl, which git ignores), and the same command resumes where it was stopped. The table goes to
benchmarks/drift_rates.md.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Callable
from datetime import date
from functools import cache
from pathlib import Path
from zlib import crc32

import numpy as np

from relcore.catalog.catalog import load
from relcore.catalog.examples import EXAMPLES, example_spaces
from relcore.drift.check import DriftCheck, EverythingNew, NewQueries, Thresholds
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, jittered
from relcore.encoders.datasets import load_dataset
from relcore.encoders.transformers import MiniLM
from relcore.encoders.vision import SmallVision
from relcore.encoders.words import load_words
from relcore.runs.progress import silent
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace

ROWS = 900
SPACES = ("digits", "sentences", "words")
DEFAULT, STRICT = Thresholds(), Thresholds(EverythingNew(0.0, 0.0, 0.0, 0.0), NewQueries(0.0, 0.0, 0.0, 0.0))
TABLE = Path(__file__).with_suffix(".md")
Change = Callable[[np.ndarray, np.ndarray | None, np.random.Generator], np.ndarray]


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drift_rates", description=__doc__.splitlines()[0]
    )
    parser.add_argument(
        "changes", nargs="*", metavar="change", help=f"default all: {'; '.join(CHANGES)}".replace("%", "%%")
    )
    parser.add_argument("--file", type=Path, default=Path("drift_rates.jsonl"))
    options = parser.parse_args()
    if unknown := set(options.changes) - {*CHANGES, *BROKEN}:
        parser.error(
            f"expected changes among {'; '.join([*CHANGES, *BROKEN])}, got {'; '.join(sorted(unknown))}"
        )
    lines = options.file.read_text().splitlines() if options.file.is_file() else []
    done = {(one["change"], one["space"], one["draw"]): one for one in map(json.loads, lines)}
    for change in options.changes or [*CHANGES, *BROKEN]:
        for space in SPACES:
            for draw in range(0 if left_out(change, space) else 34 if change in NULLS else 8):
                if (change, space, draw) not in done:
                    found = broken_alarms if change in BROKEN else alarms
                    one = {"change": change, "space": space, "draw": draw, **found(change, space, draw)}
                    done[change, space, draw] = one
                    with options.file.open("a") as file:
                        file.write(json.dumps(one) + "\n")
        of_change = [one for one in done.values() if one["change"] == change]
        print(f"{change}: {(rates if change in CHANGES else broken_rates)(of_change)}", flush=True)
    if not options.changes:
        TABLE.write_text(table(list(done.values())), encoding="utf-8")


@cache
def space_of(name: str) -> tuple[np.ndarray, np.ndarray | None]:
    """Vectors and labels."""
    if name == "words":
        return load_words("word2vec-novels", limit=4000).vectors, None
    space = load(example_spaces(name, Store().finished)[0][-1])
    return space.vectors, space.labels


@cache
def swapped(name: str) -> np.ndarray:
    """The vectors of the same encoder with two of its layers in the wrong order."""
    data = load_dataset(EXAMPLES[name].dataset)
    if name == "sentences":
        rows = MiniLM().prepare(data, silent)
        layers = rows.model.encoder.layer
        layers[2], layers[3] = layers[3], layers[2]
        return rows(data.items(0, len(data)))["layer 6"]
    encoder = SmallVision("vit")
    trained = encoder.train(data, silent)
    first, second = "encoder.layers.layers.0.", "encoder.layers.layers.1."
    names = {
        one: one.replace(first, "?").replace(second, first).replace("?", second) for one in trained.arrays
    }
    arrays = {names[one]: array for one, array in trained.arrays.items()}
    return encoder.restore(type(trained)(arrays, trained.metadata), data)(data.items(0, len(data)))[""]


def alarms(change: str, space: str, draw: int) -> dict[str, list[bool]]:
    """For both situations, by the default thresholds and by thresholds of zero."""
    vectors, labels = space_of(space)
    rng = np.random.default_rng((crc32(change.encode()), SPACES.index(space), draw))
    rows = rng.choice(len(vectors), ROWS, replace=change == "A/A, rows drawn with repetition")
    old, own = vectors[rows], None if labels is None else labels[rows]
    base = swapped(space)[rows] if change == "layers swapped" else old
    new = CHANGES[change](rounded(base, rng), own, rng)
    ids = [str(row) for row in range(ROWS)]
    pair = [
        LatentSpace(one, ids, labels=own, name=name)
        for name, one in (("old", rounded(old, rng)), ("new", new))
    ]
    drift = DriftCheck(random_state=draw).run(pair)
    situations = (EVERYTHING_NEW, NEW_QUERIES)
    judged = {name: drift.judged(one) for name, one in (("default", DEFAULT), ("strict", STRICT))}
    return {name: [verdict.alarmed([one]) for one in situations] for name, verdict in judged.items()}


def broken_alarms(kind: str, space: str, draw: int) -> dict[str, list[bool]]:
    """Whether only broken rows alarm, with 1, 3 and 40 of them; in every second draw the new version is
    rotated, too."""
    vectors, _ = space_of(space)
    found = []
    for n_broken in N_BROKEN:
        rng = np.random.default_rng((crc32(kind.encode()), SPACES.index(space), draw, n_broken))
        base = vectors[rng.choice(len(vectors), ROWS, replace=False)]
        old, new = rounded(base, rng), rounded(base, rng)
        some, ids = rng.choice(ROWS, n_broken, replace=False), np.array([str(row) for row in range(ROWS)])
        new = turned(new, None, rng) if draw % 2 else new
        kept = np.ones(ROWS, bool)
        if BROKEN[kind] is None:
            kept[some] = False
        else:
            new = np.array(new, np.float32)
            new[some] = BROKEN[kind](new, some, rng)
        pair = LatentSpace(old, ids, name="old"), LatentSpace(new[kept], ids[kept], name="new")
        drift = DriftCheck(n_queries=50, random_state=draw).run(pair)
        found.append(drift.judged(DEFAULT).alarmed([]))
    return {"default": found}


def rounded(vectors: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """As a second run of the model would give them."""
    return jittered(vectors, JITTER, rng)


def size_of(vectors: np.ndarray) -> float:
    """The root mean square distance of the rows from their mean."""
    return float(np.sqrt(vectors.var(axis=0, dtype=np.float64).sum()))


def noisy(share: float) -> Change:
    return lambda X, labels, rng: X + share * size_of(X) / np.sqrt(X.shape[1]) * rng.normal(size=X.shape)


def class_moved(share: float) -> Change:
    def moved(X, labels, rng):
        step = rng.normal(size=X.shape[1])
        return X + np.outer(
            labels == rng.choice(np.unique(labels)), share * size_of(X) * step / np.linalg.norm(step)
        )

    return moved


def shuffled(share: float) -> Change:
    def moved(X, labels, rng):
        rows = rng.choice(len(X), round(share * len(X)), replace=False)
        found = X.copy()
        found[rows] = X[np.roll(rows, 1)]
        return found

    return moved


def turned(X, labels, rng):
    return X @ np.linalg.qr(rng.normal(size=(X.shape[1],) * 2))[0]


def int8(X, labels, rng):
    """Each column in 255 steps up to its largest number."""
    step = np.abs(X).max(axis=0) / 127
    return np.round(X / step) * step


def half(X, labels, rng):
    return X.astype(np.float16).astype(np.float32)


def brain_half(X, labels, rng):
    """Rounded to bfloat16: the upper half of a float32."""
    bits = np.ascontiguousarray(X, dtype=np.float32).view(np.uint32)
    return ((bits + np.uint32(0x8000)) & np.uint32(0xFFFF0000)).view(np.float32)


def shifted(X, labels, rng):
    step = rng.normal(size=X.shape[1])
    return X + 0.5 * size_of(X) * step / np.linalg.norm(step)


def unchanged(X, labels, rng):
    return X


CHANGES: dict[str, Change] = {
    "A/A": unchanged,
    "A/A, rows drawn with repetition": unchanged,
    "rotation": turned,
    "rotation, scale and shift": lambda X, labels, rng: shifted(2 * turned(X, labels, rng), labels, rng),
    "shift by .5 of the spread": shifted,
    "scale by 2": lambda X, labels, rng: 2 * X,
    "float16": half,
    "bfloat16": brain_half,
    "int8": int8,
    "noise .02 of the spread": noisy(0.02),
    "noise .05": noisy(0.05),
    "noise .1": noisy(0.1),
    "noise .2": noisy(0.2),
    "noise .3": noisy(0.3),
    "one class moved by .25 of the spread": class_moved(0.25),
    "one class moved by .5": class_moved(0.5),
    "one class moved by 1": class_moved(1.0),
    "2 % of the rows shuffled": shuffled(0.02),
    "5 % of the rows shuffled": shuffled(0.05),
    "layers swapped": unchanged,
}
N_BROKEN = (1, 3, 40)
Breaks = Callable[[np.ndarray, np.ndarray, np.random.Generator], np.ndarray]
# What becomes of some rows (m,) of X (n, d); None: they are missing.
BROKEN: dict[str, Breaks | None] = {
    "missing": None,
    "zero": lambda X, some, rng: 0 * X[some],
    "all equal to another row": lambda X, some, rng: X[(some[:1] + 1) % len(X)],
    "each equal to the next row": lambda X, some, rng: X[(some + 1) % len(X)],
    "nearly equal to another row": lambda X, some, rng: rounded(X[(some + 7) % len(X)], rng),
    "one number in all dimensions": lambda X, some, rng: np.abs(X[some]).mean(axis=1, keepdims=True),
    "second half zero": lambda X, some, rng: X[some] * (np.arange(X.shape[1]) < X.shape[1] // 2),
    "times 1,000": lambda X, some, rng: 1000 * X[some],
    "times 1e-10": lambda X, some, rng: 1e-10 * X[some],
    "negated": lambda X, some, rng: -X[some],
    "noise": lambda X, some, rng: X.std() * rng.normal(size=X[some].shape),
    "the mean row": lambda X, some, rng: rounded(np.tile(X.mean(axis=0), (len(some), 1)), rng),
    "one large number": lambda X, some, rng: X[some] + 100 * X.std() * (np.arange(X.shape[1]) == 3),
    "dimensions in another order": lambda X, some, rng: X[some, ::-1],
    "signs alone": lambda X, some, rng: X.std() * np.sign(X[some]),
}
NULLS = ("A/A", "A/A, rows drawn with repetition", "rotation")


def left_out(change: str, space: str) -> bool:
    """Words have no classes and no layers."""
    return space == "words" and ("class" in change or change == "layers swapped")


def rates(found: list[dict]) -> list[str]:
    """Alarms of draws: everything new and new queries, by the default thresholds, then by zero."""
    columns = [[one[kind][place] for one in found] for kind in ("default", "strict") for place in (0, 1)]
    return [f"{sum(column)} of {len(column)}" for column in columns]


def broken_rates(found: list[dict]) -> list[str]:
    """Alarms of draws with 1, 3 and 40 broken rows."""
    return [f"{sum(one['default'][n] for one in found)} of {len(found)}" for n in range(len(N_BROKEN))]


def table(found: list[dict]) -> str:
    lines = [
        "# How often the drift gate alarms",
        "",
        (
            f"`python -m benchmarks.drift_rates`, {date.today()}. {ROWS} rows of a digit network (ViT, 64 d),"
            " of MiniLM on"
        ),
        (
            "Wikipedia sentences (384 d), and of bundled words (100 d; without classes and layers). Each draw"
            " takes other rows;"
        ),
        (
            "both versions have numeric noise of their own, as large as rounding to float16. Alarms of draws,"
            " over all spaces and"
        ),
        "for each space.",
        "",
        "| change | thresholds | everything is new | new queries, old vectors | by space |",
        "|---|---|---|---|---|",
    ]
    for change in CHANGES:
        of_change = [one for one in found if one["change"] == change]
        for number, kind in enumerate(("default", "zero")):
            places = slice(2 * number, 2 * number + 2)
            by_space = []
            for space in SPACES:
                if of_space := [one for one in of_change if one["space"] == space]:
                    by_space.append(
                        f"{space} {' and '.join(one.split(' ')[0] for one in rates(of_space)[places])}"
                    )
            lines.append(
                f"| {change} | {kind} | {' | '.join(rates(of_change)[places])} | {'; '.join(by_space)} |"
            )
    lines += [
        "",
        "## Broken rows",
        "",
        f"Some of the {ROWS} rows were whole and are broken in the new version, which is rotated, too, in half of the",
        "draws. Alarms of draws, all spaces, by broken rows alone (`--gate planned`).",
        "",
        f"| broken rows | {' | '.join(map(str, N_BROKEN))} |",
        "|---|---|---|---|",
    ]
    for kind in BROKEN:
        of_kind = [one for one in found if one["change"] == kind]
        lines.append(f"| {kind} | {' | '.join(broken_rates(of_kind))} |")
    return "\n".join([*lines, ""])


if __name__ == "__main__":
    main()
