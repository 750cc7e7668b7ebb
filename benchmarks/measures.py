"""``python -m benchmarks.measures``: docs/measures.md and its figure, about a minute: what each metric is, and how it
reacts to rotation, scale, noise, outliers, dimension and the number of rows.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import numpy as np

from relcore.base.names import METRICS
from relcore.compare.scoring import AllPairs
from relcore.scores.cka import linear_cka, mean_cosine
from relcore.scores.comparison import AlignedPair
from relcore.scores.neighbours import jaccard, mrr
from relcore.scores.score import RANGES, Score
from relcore.spaces.space import LatentSpace, Split

DOCS = Path(__file__).parents[1] / "docs"
_FUNCTIONS = {
    "jaccard": jaccard,
    "mrr": mrr,
    "cosine": mean_cosine,
    "cka": linear_cka,
    "debiased cka": linear_cka,
}
_N, _D, _K = 120, 8, 10


def score_of(
    name: str, X: np.ndarray, Y: np.ndarray, labels: np.ndarray | None = None, k: int = 5
) -> Score | None:
    """Of whole spaces, all rows: as a pair, or among spaces where the metric scores no pairs."""
    ids = [f"r{row}" for row in range(len(X))]
    if set(METRICS[name].of) & {"pair", "more"}:
        pair = AlignedPair.of(X, Y, Split.held_out(np.array(ids)), labels=labels, k=k)
        return METRICS[name].load()().score(pair)
    anchors = tuple(ids[:12]) if "anchors" in METRICS[name].needs else ()
    spaces = [LatentSpace(Z, ids, name=which) for Z, which in ((X, "first"), (Y, "second"))]
    return AllPairs(name, anchors, k=k).run(spaces).scores[0][1]


# What is done to the second of two spaces that differ by some noise: a title, what the axis shows, and the spaces.


def _pair(n: int = _N, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, _D)) * np.geomspace(1, 0.3, _D) + 0.3
    return X, X + noise * rng.normal(size=X.shape) * X.std(axis=0)


def _turned(share: float) -> tuple[np.ndarray, np.ndarray]:
    """By up to a right angle in four planes at random."""
    X, Y = _pair()
    basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(_D, _D)))
    cosine, sine = np.cos(share * np.pi / 2), np.sin(share * np.pi / 2)
    return X, Y @ basis @ np.kron(np.eye(_D // 2), [[cosine, -sine], [sine, cosine]]) @ basis.T


def _with_outliers(share: float) -> tuple[np.ndarray, np.ndarray]:
    X, Y = _pair()
    rng = np.random.default_rng(2)
    rows = rng.permutation(_N)[: round(share * _N)]
    Y[rows] = 10 * rng.normal(size=(len(rows), _D))
    return X, Y


def _wider(width: int) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(3)
    return tuple(np.hstack([Z, 0.5 * rng.normal(size=(_N, width - _D))]) for Z in _pair())


REACTIONS: dict[str, tuple[str, tuple, Callable]] = {
    "rotation": ("0 to 90°", (0, 0.25, 0.5, 0.75, 1), _turned),
    "scale": ("× ¼ to 4", (0.25, 0.5, 1, 2, 4), lambda factor: (_pair()[0], factor * _pair()[1])),
    "noise": ("0 to 2 × the spread", (0, 0.25, 0.5, 1, 2), lambda noise: _pair(noise=noise)),
    "outliers": ("0 to 10 % of the rows", (0, 0.01, 0.02, 0.05, 0.1), _with_outliers),
    "dimension": ("8 to 96 (n = 120), added ones unrelated", (8, 16, 32, 64, 96), _wider),
    "rows": ("n = 30 to 480", (30, 60, 120, 240, 480), lambda n: _pair(n)),
}


def reactions(name: str) -> Iterator[tuple[str, list[Score | None]]]:
    for reaction, (_, steps, make) in REACTIONS.items():
        scores = []
        for step in steps:
            X, Y = (np.float32(Z) for Z in make(step))
            labels = np.where(X[:, 0] > np.median(X[:, 0]), "a", "b")
            scores.append(score_of(name, X, Y, labels, _K))
        yield reaction, scores


_LEFT, _WIDE, _HIGH, _HEAD, _GAP = 152, 118, 44, 58, 10
_STYLE = (
    "text{font:12px system-ui,sans-serif;fill:#333}.s{font-size:10px;fill:#777}.b{fill:#999;fill-opacity:.35}"
    ".l{fill:none;stroke:#0b62b8;stroke-width:2;stroke-linejoin:round}.f{fill:none;stroke:#bbb;stroke-width:.6}"
    "@media(prefers-color-scheme:dark){text{fill:#ddd}.s{fill:#999}.l{stroke:#6db3f8}.f{stroke:#555}}"
)


def figure() -> str:
    """Small multiples as SVG: a line of metrics, a column for each of `REACTIONS`; the score as a line, the 95 %
    band of its chance level as an area, −0.1 … 1."""

    def x(column: int, place: int) -> float:
        return _LEFT + column * (_WIDE + _GAP) + place * _WIDE / 4

    def y(line: int, value: float) -> float:
        return _HEAD + line * (_HIGH + _GAP) + _HIGH * (1 - min(max(value, -0.1), 1)) / 1.1

    def points(ends: list[tuple[float, float]]) -> str:
        return " ".join(f"{across:.0f},{down:.1f}" for across, down in ends)

    width, height = x(len(REACTIONS), 0), y(len(METRICS), 1)
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" role="img">'
        f"<title>Scores of each metric by what is done to one of two spaces</title><style>{_STYLE}</style>"
    ]
    for column, (reaction, (axis, *_)) in enumerate(REACTIONS.items()):
        first, _, rest = axis.partition(", ")
        parts.append(f'<text x="{x(column, 0):.0f}" y="14">{reaction}</text>')
        for line, told in enumerate(filter(None, (first, rest))):
            parts.append(f'<text class="s" x="{x(column, 0):.0f}" y="{28 + 12 * line}">{told}</text>')
    for line, name in enumerate(METRICS):
        parts.append(f'<text x="0" y="{y(line, 0.4):.1f}">{escape(METRICS[name].title)}</text>')
        for column, (_, scores) in enumerate(reactions(name)):
            box = f'x="{x(column, 0):.0f}" y="{y(line, 1):.1f}" width="{_WIDE}" height="{_HIGH}"'
            parts.append(f'<rect class="f" {box}/>')
            known = [(place, score) for place, score in enumerate(scores) if score is not None]
            banded = [(place, score.null) for place, score in known if score.null]
            if banded:
                lower = [(x(column, place), y(line, null.low)) for place, null in banded]
                upper = [(x(column, place), y(line, null.high)) for place, null in reversed(banded)]
                parts.append(f'<polygon class="b" points="{points(lower + upper)}"/>')
            ends = [(x(column, place), y(line, float(score))) for place, score in known]
            parts.append(f'<polyline class="l" points="{points(ends)}"/>')
    return "\n".join([*parts, "</svg>"]) + "\n"


# The page.


def _told(name: str) -> list[str]:
    """The paragraphs of what the metric's function, or its class, says, without its sections."""
    metric = METRICS[name].load()
    said = inspect.getdoc(getattr(metric, "function", None) or _FUNCTIONS.get(name) or metric)
    body = re.split(r"\n\n(?:Raises|Examples|Parameters)\n---", said)[0]
    return [" ".join(part.split()).replace("|", "\\|") for part in body.split("\n\n")]


def _range(name: str) -> str:
    if name == "debiased cka":
        return "−1 … 1"
    low, high = RANGES.get(
        {"mutual knn": "jaccard", "relative cosine": "cosine"}.get(name, name), (None, None)
    )
    return "about 0 … 1" if low is None else f"{low:g} … {high:g}".replace("-", "−")


def page() -> str:
    lines = [
        "# Measures",
        "",
        "<!-- python -m benchmarks.measures writes this page from the program -->",
        "How alike are two spaces? Each metric below answers it in its own sense. A score comes with its number of rows and its chance level: what it is when the",
        "rows of one space are permuted. *Explore* shows some of them, and has the others under *More measures*; the command line takes their names:",
        "",
        "```",
        "relscope compare word2vec-novels fasttext-novels --metrics svcca,rsa,cknna",
        "relscope compare word2vec-novels fasttext-novels --metrics all  # minutes",
        "```",
        "",
        "Each is a function of two matrices, tables or tensors whose rows are paired:",
        "",
        "```python",
        "import numpy as np",
        "",
        "from relcore.scores.canonical import svcca",
        "",
        "first = np.random.default_rng(0).normal(size=(500, 20))",
        "score = svcca(first, first[:, ::-1] + 0.1)",
        "print(score.describe())  # svcca 1.000 (n = 500; chance .157 … .181)",
        "```",
        "",
        "## How they react",
        "",
        "![Scores of each metric by what is done to one of two spaces](measures.svg)",
        "",
        "Two spaces differ by some noise; the second one is turned, scaled, made noisier, gets outliers, unrelated axes, or more rows. The line is the score, the grey",
        "area the band of its chance level. A score is worth reading where it is clear of that area: with few rows or many axes some are high for any data. IMD and",
        "RTD-Lite hardly move, as most clouds of rows have like graphs of neighbours: read their decimals.",
        "",
        "## Which one tells networks apart",
        "",
        "The study `measures` runs the tests of ReSi (Klabunde et al. 2025) on a citation graph: does a measure find how far the outputs of networks differ, how they",
        "were trained, which of their layers are near each other? [ReSi on Cora](../benchmarks/resi.md) has the scores with intervals, raw and calibrated by the chance levels;",
        "Research › *Studies* draws them.",
        "",
        "## What each is",
        "",
        "A score is unchanged by what the last column names, done to one of the spaces; a test does it to all of them.",
        "",
        "| name | title | range | where | unchanged by |",
        "|---|---|---|---|---|",
    ]
    places = {"pair": "Explore", "spaces": "All pairs", "more": "More measures"}
    for name, entry in METRICS.items():
        where = ", ".join(places[kind] for kind in entry.of)
        unchanged = ", ".join(entry.load().unchanged_by) or "nothing"
        lines.append(f"| `{name}` | {entry.title} | {_range(name)} | {where} | {unchanged} |")
    lines += [
        "",
        "## Formulas, sources, chance levels, costs",
        "",
        "Costs are products per row; d, r and s are widths, n the rows, k the neighbours. Where a measure needs a matrix of rows by rows, or more, it takes a sample",
        "of the rows, drawn by a hash of their ids, and its score says how many.",
        "",
        "| name | what it is |",
        "|---|---|",
    ]
    lines += [f"| `{name}` | {'<br>'.join(_told(name))} |" for name in METRICS]
    return "\n".join(lines) + "\n"


if __name__ == "__main__":
    (DOCS / "measures.md").write_text(page(), encoding="utf-8")
    (DOCS / "measures.svg").write_text(figure(), encoding="utf-8")
