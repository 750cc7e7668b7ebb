"""``python -m assets.measures.page``: docs/measures.md and its figure, about a minute: what each metric is, and how it
reacts to rotation, scale, noise, outliers, dimension and the number of rows.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from html import escape
from pathlib import Path

import numpy as np

from relcore.base.names import METRICS
from relcore.compare.all_pairs import AllPairs
from relcore.scores.cka import linear_cka, mean_cosine
from relcore.scores.comparison import AlignedPair
from relcore.scores.neighbours import jaccard, mrr
from relcore.scores.score import RANGES, Score
from relcore.spaces.space import LatentSpace
from relcore.spaces.split import Split

DOCS = Path(__file__).parents[2] / "docs"
_FUNCTIONS = {
    "jaccard": jaccard,
    "mrr": mrr,
    "cosine": mean_cosine,
    "cka": linear_cka,
    "debiased cka": linear_cka,
}
_N = 120
_D = 8
_K = 10


def score_of(
    name: str, X: np.ndarray, Y: np.ndarray, labels: np.ndarray | None = None, k: int = 5
) -> Score | None:
    """The score of whole spaces, on all rows: as a pair, or among several spaces if the metric scores no
    pairs."""
    ids = [f"r{row}" for row in range(len(X))]
    if set(METRICS[name].of) & {"pair", "more"}:
        pair = AlignedPair.of(X, Y, Split.held_out(np.array(ids)), labels=labels, k=k)
        return METRICS[name].load()().score(pair)
    anchors = ()
    if "anchors" in METRICS[name].needs:
        anchors = tuple(ids[:12])
    spaces = [LatentSpace(Z, ids, name=which) for Z, which in ((X, "first"), (Y, "second"))]
    return AllPairs(name, anchors, k=k).run(spaces).scores[0][1]


# A change of the second of two spaces that differ by some noise: title, title of the axis, and the changed
# spaces.


def _pair(n: int = _N, noise: float = 0.3) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(0)
    X = rng.normal(size=(n, _D)) * np.geomspace(1, 0.3, _D) + 0.3
    return X, X + noise * rng.normal(size=X.shape) * X.std(axis=0)


def _turned(share: float) -> tuple[np.ndarray, np.ndarray]:
    """Rotations by up to a right angle in four random planes."""
    X, Y = _pair()
    basis, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(_D, _D)))
    cosine = np.cos(share * np.pi / 2)
    sine = np.sin(share * np.pi / 2)
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


_LEFT = 152
_WIDE = 118
_HIGH = 44
_HEAD = 58
_GAP = 10
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

    width = x(len(REACTIONS), 0)
    height = y(len(METRICS), 1)
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


# The table of the page.


def _summary(name: str) -> str:
    """The first paragraph of the docstring of the metric's function, or of its class."""
    metric = METRICS[name].load()
    said = inspect.getdoc(getattr(metric, "function", None) or _FUNCTIONS.get(name) or metric)
    return " ".join(said.split("\n\n")[0].split()).replace("|", "\\|")


def _range(name: str) -> str:
    if name == "debiased cka":
        return "−1 … 1"
    low, high = RANGES.get(
        {"mutual knn": "jaccard", "relative cosine": "cosine"}.get(name, name), (None, None)
    )
    if low is None:
        return "about 0 … 1"
    return f"{low:g} … {high:g}".replace("-", "−")


def page(text: str) -> str:
    """The text of docs/measures.md with the rows of its table as the program has them."""
    places = {"pair": "Explore", "spaces": "All pairs", "more": "More measures"}
    rows = []
    for name, entry in METRICS.items():
        where = ", ".join(places[kind] for kind in entry.of)
        unchanged = ", ".join(entry.load().unchanged_by) or "nothing"
        rows.append(f"| `{name}` | {_summary(name)} | {_range(name)} | {where} | {unchanged} |\n")
    head, line, _ = text.partition("|---|---|---|---|---|\n")
    return head + line + "".join(rows)


if __name__ == "__main__":
    path = DOCS / "measures.md"
    path.write_text(page(path.read_text(encoding="utf-8")), encoding="utf-8")
    (DOCS / "measures.svg").write_text(figure(), encoding="utf-8")
