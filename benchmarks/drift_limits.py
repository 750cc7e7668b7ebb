"""``python -m benchmarks.drift_limits``: the smallest size of each defect that the drift gate finds.

Each defect has a list of sizes. A size counts as found if the gate alarms in all draws of this size and of
all larger ones. The limits of `relcore.drift.broken_rows` were chosen on the three spaces of
`benchmarks.drift_rates`; the six `HELD_OUT` were drawn when they were fixed. Each draw takes other rows, and
both versions have numeric noise of their own, as large as rounding to float16. Changes that must not alarm
come first. The table goes to benchmarks/drift_limits.md. It needs RELSCOPE_DATA (multi30k, trec) and MiniLM;
about 10 minutes of one core.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import date
from functools import cache
from pathlib import Path

import numpy as np
import pandas as pd

from benchmarks import drift_rates
from relcore.base.access import data_folder
from relcore.base.rows import unit_rows
from relcore.drift.check import DriftCheck
from relcore.drift.measures import EVERYTHING_NEW, JITTER, NEW_QUERIES, with_jitter
from relcore.drift.thresholds import Thresholds
from relcore.drift.verdict import DriftVerdict
from relcore.passport.recipes import encode_texts, model_at_hand
from relcore.spaces.space import LatentSpace

TABLE = Path(__file__).with_suffix(".md")
GATES = {"planned": (), "everything-new": (EVERYTHING_NEW,), "new-queries": (NEW_QUERIES,)}
ALL = "all"
NONE = "none"
Change = Callable[[np.ndarray, float, np.random.Generator], np.ndarray]


def captions() -> np.ndarray:
    texts = pd.read_parquet(data_folder() / "multi30k" / "train.parquet").en.drop_duplicates()
    some = texts.sample(1500, random_state=2).tolist()
    [rows] = encode_texts(model_at_hand("minilm", last=True), some, "").values()
    return rows


def questions() -> np.ndarray:
    from sklearn.decomposition import TruncatedSVD
    from sklearn.feature_extraction.text import TfidfVectorizer

    texts = pd.read_parquet(data_folder() / "trec" / "train.parquet").text.drop_duplicates()
    counts = TfidfVectorizer(min_df=2).fit_transform(texts)
    return TruncatedSVD(100, random_state=0).fit_transform(counts)


def pixels() -> np.ndarray:
    from sklearn.datasets import load_digits

    return load_digits().data


def tumours() -> np.ndarray:
    from sklearn.datasets import load_breast_cancer
    from sklearn.preprocessing import StandardScaler

    return StandardScaler().fit_transform(load_breast_cancer().data)


def heavy_tailed() -> np.ndarray:
    """Rows whose lengths differ by a factor of 50, about a long mean row."""
    rng = np.random.default_rng(11)
    rows = rng.normal(size=(2000, 256)) * np.geomspace(1, 0.05, 256) + 0.5 * rng.normal(size=256)
    return rows * np.exp(rng.normal(size=(2000, 1)))


def few_rows() -> np.ndarray:
    """120 rows of 6 groups in 16 dimensions."""
    rng = np.random.default_rng(12)
    return 2 * rng.normal(size=(6, 16))[np.arange(120) % 6] + rng.normal(size=(120, 16))


HELD_OUT: Mapping[str, Callable[[], np.ndarray]] = {
    "MiniLM on captions, 384 d": captions,
    "LSA of TREC questions, 100 d": questions,
    "pixels of digits, 64 d": pixels,
    "measurements of tumours, 30 d": tumours,
    "Gaussian, lengths of a heavy tail, 256 d": heavy_tailed,
    "120 rows of 6 groups, 16 d": few_rows,
}


@cache
def space_of(name: str) -> np.ndarray:
    if name in HELD_OUT:
        rows = HELD_OUT[name]()
    else:
        rows = drift_rates.space_of(name)[0]
    rows = np.asarray(rows, np.float32)
    return rows[np.linalg.norm(rows, axis=1) > 0]


def one_row_longer(X: np.ndarray, factor: float, rng: np.random.Generator) -> np.ndarray:
    rows = X.copy()
    rows[rng.integers(len(X))] *= factor
    return rows


def noise(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    return drift_rates.noisy(share)(X, None, rng)


def noise_on_three(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    rows = X.copy()
    some = rng.choice(len(X), 3, replace=False)
    rows[some] = noise(X, share, rng)[some]
    return rows


def shifted(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    step = rng.normal(size=X.shape[1])
    return X + share * drift_rates.size_of(X) * step / np.linalg.norm(step)


def swapped(X: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """A share of the dimensions in another order, at least two of them."""
    some = rng.choice(X.shape[1], max(2, round(share * X.shape[1])), replace=False)
    rows = X.copy()
    rows[:, some] = X[:, np.roll(some, 1)]
    return rows


def bits(X: np.ndarray, n_bits: float, rng: np.random.Generator) -> np.ndarray:
    """Each dimension in steps up to its largest number."""
    step = np.maximum(np.abs(X).max(axis=0), 1e-30) / (2 ** (n_bits - 1) - 1)
    return np.round(X / step) * step


def shuffled(X: np.ndarray, n: float, rng: np.random.Generator) -> np.ndarray:
    some = rng.choice(len(X), int(n), replace=False)
    rows = X.copy()
    rows[some] = X[np.roll(some, 1)]
    return rows


def turned(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    return drift_rates.turned(X, None, rng)


@dataclass(frozen=True)
class Defect:
    """A change of growing size, the gate that must find it, and the size at which it must be found: `ALL`, if
    each size must be; `NONE`, if none may be; or a number."""

    title: str
    gate: str
    change: Change
    sizes: Sequence[float]
    target: float | str = ""


HARMLESS = tuple(
    Defect(title, gate, change, (1,), NONE)
    for title, gates, change in (
        ("numeric noise alone", ("new-queries", "everything-new"), lambda X, size, rng: X),
        ("rounded to float16", ("new-queries", "everything-new"), lambda X, size, rng: X.astype(np.float16)),
        ("rows normalised", ("new-queries", "everything-new"), lambda X, size, rng: unit_rows(X)),
        (
            "each length times a random factor",
            ("new-queries", "everything-new"),
            lambda X, size, rng: X * np.exp(0.3 * rng.normal(size=(len(X), 1))),
        ),
        (
            "rows normalised, and rotated",
            ("everything-new",),
            lambda X, size, rng: turned(unit_rows(X), rng),
        ),
        ("rotated and doubled", ("everything-new",), lambda X, size, rng: 2 * turned(X, rng)),
        ("shifted by .5 of the spread", ("everything-new",), lambda X, size, rng: shifted(X, 0.5, rng)),
        ("two dimensions exchanged", ("everything-new",), lambda X, size, rng: swapped(X, 0, rng)),
        ("all rows times 2", ("new-queries",), lambda X, size, rng: 2 * X),
    )
    for gate in gates
)
SHARES = (0.02, 0.05, 0.1, 0.2, 0.3, 0.5, 1.0)
DEFECTS = (
    Defect("one row's length times", "planned", one_row_longer, (1.1, 1.25, 1.4, 1.6, 2, 4), 2),
    Defect("noise on three rows, of the spread", "planned", noise_on_three, (0.05, *SHARES[2:-1]), 0.3),
    Defect("rows exchanged", "planned", shuffled, (2, 3, 10), ALL),
    Defect("noise on all rows, of the spread", "everything-new", noise, SHARES),
    Defect("noise on all rows, of the spread", "new-queries", noise, SHARES),
    Defect("a shift of all rows, of the spread", "new-queries", shifted, SHARES),
    Defect("dimensions exchanged, of all", "new-queries", swapped, (0.0, *SHARES)),
    Defect("bits left of each number", "everything-new", bits, (8, 7, 6, 5, 4, 3, 2)),
    Defect("bits left of each number", "new-queries", bits, (8, 7, 6, 5, 4, 3, 2)),
)


def verdict_of(defect: Defect, size: float, space: str, draw: int, state: int) -> DriftVerdict:
    vectors = space_of(space)
    number = [(one.title, one.gate) for one in (*HARMLESS, *DEFECTS)].index((defect.title, defect.gate))
    rng = np.random.default_rng((state, number, round(1000 * size), draw, len(vectors)))
    n = min(drift_rates.ROWS, len(vectors))
    base = vectors[rng.choice(len(vectors), n, replace=False)]
    ids = [str(row) for row in range(n)]
    new = np.asarray(defect.change(with_jitter(base, JITTER, rng), size, rng), np.float32)
    pair = LatentSpace(with_jitter(base, JITTER, rng), ids, name="old"), LatentSpace(new, ids, name="new")
    return DriftCheck(random_state=draw).run(pair).judged(Thresholds())


def alarms(defect: Defect, spaces: Sequence[str], draws: int, state: int) -> dict[float, list[bool]]:
    """For each size, whether the gate alarms in each draw of each space."""
    return {
        size: [
            verdict_of(defect, size, space, draw, state).alarmed(GATES[defect.gate])
            for space in spaces
            for draw in range(draws)
        ]
        for size in defect.sizes
    }


def smallest(found: Mapping[float, list[bool]]) -> float | None:
    """The first size from which on all draws alarm."""
    best = None
    for size in reversed(found):
        if not all(found[size]):
            break
        best = size
    return best


def row_of(defect: Defect, by_set: Mapping[str, Mapping[float, list[bool]]]) -> str:
    """A line of the table: what was found at each size on the held-out spaces, and the smallest sizes."""
    cells = []
    for found in by_set.values():
        rates = "; ".join(
            f"{size:g}: {sum(draws)} of {len(draws)}" if len(found) > 1 else f"{sum(draws)} of {len(draws)}"
            for size, draws in found.items()
        )
        best = smallest(found)
        least = "none"
        if best is not None:
            least = f"{best:g}"
        cells += [least, rates]
    target = defect.target
    if not isinstance(target, str):
        target = f"{target:g}"
    return f"| {defect.title} | {defect.gate} | {target or '–'} | {' | '.join(cells)} |"


def main() -> None:
    parser = argparse.ArgumentParser(
        prog="python -m benchmarks.drift_limits", description=__doc__.splitlines()[0]
    )
    parser.add_argument("--draws", type=int, default=3, help="draws of each held-out space")
    parser.add_argument("--state", type=int, default=0, help="another one draws other rows")
    parser.add_argument("--file", type=Path, default=TABLE)
    parser.add_argument("--only", default="", help="only changes whose title has this text")
    options = parser.parse_args()
    sets = {
        "tuned": (drift_rates.SPACES, 2 * options.draws),
        "held out": (tuple(HELD_OUT), options.draws),
    }
    n_tuned, n_held = (len(spaces) * draws for spaces, draws in sets.values())
    lines = [
        "# The smallest defects that the drift gate finds",
        "",
        f"`python -m benchmarks.drift_limits --draws {options.draws} --state {options.state}`, {date.today()}."
        f" Up to {drift_rates.ROWS} rows. Alarms of draws",
        f"by the default thresholds. The limits of broken rows were tuned on {', '.join(drift_rates.SPACES)}"
        f" ({n_tuned} draws of each size), and not on",
        f"the others ({n_held} draws): {'; '.join(HELD_OUT)}.",
        "“From” is the smallest size from which on every draw alarms.",
        "",
        "| change | gate | target | tuned: from | tuned: alarms | held out: from | held out: alarms |",
        "|---|---|---|---|---|---|---|",
    ]
    for defect in (one for one in (*HARMLESS, *DEFECTS) if options.only in one.title):
        by_set = {
            name: alarms(defect, spaces, draws, options.state) for name, (spaces, draws) in sets.items()
        }
        lines.append(row_of(defect, by_set))
        print(lines[-1], flush=True)
    options.file.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
