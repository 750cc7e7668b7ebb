"""The error of an inversion by the number of anchors, and its figure."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.numbers import counted, short
from relcore.base.rows import unit_rows
from relcore.catalog.comparison_recipe import ComparisonRecipe, load_pair
from relcore.catalog.task import Recipe
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.invert.inversion import InversionSpec, PairedRows

SIZES = (5, 10, 20, 50, 100, 200, 500, 1000)
_DRAWS = 3
_MOST_SCORED = 1000
_NEAR = 1.3  # a size is left out if its ratio to the number of anchors is smaller


@dataclass(frozen=True, eq=False)
class AnchorCurve:
    """Mean errors of inversions through fewer and through more anchors, on the same held-out rows.

    Attributes
    ----------
    title : str
        The method.
    sizes : tuple of int
        Numbers of anchors, ascending.
    means, lows, highs : tuples of float
        Mean error for each number, 1 − cosine, 0 … 2; and the lowest and the highest of the draws.
    n_anchors : int
        Number of anchors that were chosen. Fewer are random parts of these; more have random rows in
        addition, which are not scored.
    n : int
        Number of held-out rows.
    chance : float
        Mean error of permuted rows, with all chosen anchors.
    """

    title: str
    sizes: tuple[int, ...]
    means: tuple[float, ...]
    lows: tuple[float, ...]
    highs: tuple[float, ...]
    n_anchors: int
    n: int
    chance: float

    def describe(self) -> str:
        """A sentence with the mean error now, and with the largest number of anchors if these are more."""
        now = self.means[self.sizes.index(self.n_anchors)]
        more = ""
        if self.sizes[-1] > self.n_anchors:
            more = f"; {self.sizes[-1]:,} reach {short(self.means[-1])}"
        return f"Mean error {short(now)} with {counted(self.n_anchors, 'anchor')}{more}."


def curve_by_anchors(paired: PairedRows, spec: InversionSpec) -> AnchorCurve:
    """The errors of inversions through 5, 10, 20, … 1,000 anchors with the same settings. If `spec` is tuned,
    these are chosen once, on all chosen anchors. Sets of anchors that cannot be inverted are left out.

    Raises
    ------
    SpaceError
        The chosen anchors themselves cannot be inverted.
    """
    rng = np.random.default_rng(spec.random_state)
    spec, _ = paired.with_numbers(spec)
    anchors = np.flatnonzero(~paired.scored)
    others = rng.permutation(np.flatnonzero(paired.scored))
    n = min(_MOST_SCORED, (len(others) + 1) // 2)
    scored = others[:n]
    spare = others[n:]
    k = len(anchors)
    through_all = _errors(paired, spec, anchors, scored)
    shuffled = np.roll(scored, 1)  # random order, so each row meets another random one
    chance = _errors(paired, spec, anchors, scored, shuffled)
    sizes = {size for size in SIZES if size <= k + len(spare) and max(size / k, k / size) >= _NEAR}
    found: dict[int, tuple[float, ...]] = {k: (float(through_all.mean()),)}
    for size in sizes:
        means = []
        for chosen in _draws(anchors, spare, size, rng):
            with suppress(SpaceError):
                means.append(float(_errors(paired, spec, chosen, scored).mean()))
        if means:
            found[size] = tuple(means)
    drawn = sorted(found)
    return AnchorCurve(
        title=spec.title,
        sizes=tuple(drawn),
        means=tuple(float(np.mean(found[size])) for size in drawn),
        lows=tuple(min(found[size]) for size in drawn),
        highs=tuple(max(found[size]) for size in drawn),
        n_anchors=k,
        n=n,
        chance=float(chance.mean()),
    )


def _draws(
    anchors: np.ndarray, spare: np.ndarray, size: int, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Random parts of the anchors or, if they are too few, the anchors and random spare rows."""
    for _ in range(_DRAWS):
        if size < len(anchors):
            yield rng.choice(anchors, size, replace=False)
        else:
            yield np.concatenate([anchors, rng.choice(spare, size - len(anchors), replace=False)])


def _errors(
    paired: PairedRows,
    spec: InversionSpec,
    anchors: np.ndarray,
    scored: np.ndarray,
    compared: np.ndarray | None = None,
) -> np.ndarray:
    """1 − cosine of each scored row, recovered through these anchors, and its true row or, if they are given,
    the rows `compared`."""
    inverse = spec.inverse()
    inverse.fit(
        paired.X[anchors], paired.true[anchors], source_mean=paired.means[0], target_mean=paired.means[1]
    )
    units = unit_rows(inverse.transform(paired.X[scored]), paired.means[1])
    rows = scored if compared is None else compared
    return 1 - np.vecdot(units, paired.units[rows])


@dataclass(frozen=True)
class ErrorByAnchors(Recipe, ComparisonRecipe, figure="inversion-anchors"):
    """A figure of the mean error of an inversion by its number of anchors, with the chance level."""

    inversion: InversionSpec = InversionSpec()

    def draw(self, result: AnchorCurve | None = None) -> Exportable:
        if result is None:
            paired = PairedRows(load_pair(self), self.anchors, self.inversion.route)
            result = curve_by_anchors(paired, self.inversion)
        chart = Lines(
            (Line(result.title, result.sizes, result.means, result.lows, result.highs),),
            "anchors",
            "mean error, 1 − cosine",
            log_x=True,
            baselines=(("chance", result.chance),),
            marks=(("anchors now", float(result.n_anchors)),),
            y_range=(0.0, 1.1 * max(result.chance, *result.highs)),
        )
        return chart_exportable(chart, self.to_json(), "relscope-inversion-anchors")
