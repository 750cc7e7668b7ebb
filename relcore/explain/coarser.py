"""Whether one space is a noisier or coarser copy of the other.

Noise weakens every group of rows, and by unequal amounts, so each feature would seem to be a reason. So one
space is made coarser, by each of several methods. It is made so coarse that it shares as many neighbours with
its original as the two spaces share with each other. Or so coarse that its features are gathered as much as
in the other space. If the coarse copy predicts the effects in most families of features, coarseness is the
reason, and a feature must explain more.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from relcore.base.rows import centred, mean_row, unit_rows
from relcore.engine.nearest import nearest_within
from relcore.explain.families import Features
from relcore.explain.reasons import effects
from relcore.explain.responses import common_shares, of_neighbours
from relcore.represent.noise import BY_LENGTH, EQUAL, ROUNDED, noise_sizes

FEWER = "fewer dimensions"
PRINCIPAL = "principal axes"
KINDS = (EQUAL, BY_LENGTH, ROUNDED, FEWER, PRINCIPAL)
_NOISE = (EQUAL, BY_LENGTH)  # kinds that both spaces may have, in unequal amounts
_LEVELS = (0.03, 6.0)
_STEPS = 7
COARSE_ROWS = 6000  # number of rows among which the levels are sought
_QUERIES = 750
_SLIGHT = 0.004  # mean effect in a family below which it tells nothing
_EXPLAINED = 0.5  # share of the effects that must be explained in half of the families
_NEARLY = 0.15  # kinds that explain less than the best one by more than this are no explanation
_MOST_KINDS = 3
_COMMON = 1.4  # most common neighbours, as a multiple of those that coarsening would leave
_SAMPLED = 4000  # number of rows of which principal axes are computed
_ORDER = 1e-6  # keeps an order of rows that are rounded to equal ones


@dataclass(frozen=True)
class Coarser:
    """How one space is coarser than the other.

    Attributes
    ----------
    side : 0 or 1
        Which space is the coarser one.
    kind : str
        The kind of coarsening that explains most, one of `KINDS`.
    level : float
        Its size: noise as a share of the spread, or the share of dimensions that are left.
    explained : float
        The share of the effects that it explains, the median over families of features.
    """

    side: int
    kind: str
    level: float
    explained: float


class Coarsening:
    """One kind of coarsening of the rows (n, d) of a space, at any level. Noise and axes are drawn once, so
    that levels differ in nothing else."""

    def __init__(self, X: np.ndarray, kind: str, random_state: int) -> None:
        rng = np.random.default_rng(random_state)
        d = X.shape[1]
        self._rows = centred(X, mean_row(X))
        self._kind = kind
        if kind == FEWER:
            self._axes = np.linalg.qr(rng.normal(size=(d, d)))[0].astype(np.float32)
        elif kind == PRINCIPAL:
            some = self._rows[:: max(1, len(X) // _SAMPLED)]
            self._axes = np.linalg.eigh(some.T @ some)[1][:, ::-1].astype(np.float32)
        else:
            self._sizes = noise_sizes(self._rows, kind)
        if kind in _NOISE:
            self._noise = rng.standard_normal(X.shape, dtype=np.float32) * self._sizes

    def rows(self, level: float) -> np.ndarray:
        """The coarser rows, as unit rows. The level is the size of noise and steps as in `noise_sizes`, or
        decides how many dimensions are left, see `n_dimensions`."""
        X = self._rows
        made: np.ndarray
        if self._kind in (FEWER, PRINCIPAL):
            made = X @ self._axes[:, : n_dimensions(X.shape[1], level)]
        elif self._kind == ROUNDED:
            steps = np.float32(level) * self._sizes
            made = np.rint(X / steps) * steps + np.float32(_ORDER) * X
        else:
            made = X + np.float32(level) * self._noise
        return unit_rows(centred(made, mean_row(made)))


def n_dimensions(d: int, level: float) -> int:
    """The number of dimensions that are left at this level."""
    return max(1, round(d / (1 + level**2)))


@dataclass(frozen=True, eq=False)
class Fitted:
    """A kind of coarsening of one space at the level that fits."""

    side: int  # the space that is the coarser one; the other one was made coarser
    kind: str
    level: float
    explained: float


@dataclass(frozen=True, eq=False)
class CoarserSearch:
    """The search for a coarser space, among some of the rows.

    Attributes
    ----------
    vectors : two arrays (n, d)
    features : Features
        Of the n rows.
    k : int
    """

    vectors: tuple[np.ndarray, np.ndarray]
    features: Features
    k: int
    random_state: int

    @cached_property
    def queries(self) -> np.ndarray:
        n = len(self.vectors[0])
        return np.arange(0, n, max(1, n // _QUERIES))

    @cached_property
    def lists(self) -> tuple[np.ndarray, ...]:
        units = (unit_rows(centred(X, mean_row(X))) for X in self.vectors)
        return tuple(nearest_within(rows, self.queries, self.k) for rows in units)

    @cached_property
    def families(self) -> list[np.ndarray]:
        """The weights (f,) of the features in each family, which are their numbers of rows."""
        n = np.asarray(self.features.of_rows(self.queries).sum(axis=0)).ravel()
        names = np.array([feature.family for feature in self.features.listed], dtype=object)
        families = []
        for name in dict.fromkeys(names):
            of_family = np.where(names == name, n, 0)
            families.append(of_family / max(of_family.sum(), 1))
        return families

    def effects_from(self, side: int, near: np.ndarray) -> np.ndarray:
        """The effects (f,) if `near` replaces the lists of the other space; positive if the first space
        gathers more. What rows by chance explain is taken off."""
        lists = (self.lists[0], near)
        if side == 1:
            lists = (near, self.lists[1])
        response = of_neighbours(self.queries, lists, self.features, np.zeros(len(self.queries), dtype=int))
        means, errors, _ = effects(response, response.whole())
        return np.sign(means) * np.maximum(np.abs(means) - errors, 0)

    @cached_property
    def observed(self) -> np.ndarray:
        return self.effects_from(0, self.lists[1])

    def copies(self) -> Iterator[Fitted]:
        """Each space as a coarser copy of the other, at the level that leaves as many neighbours in common as
        the two spaces have."""
        common = overlap(*self.lists)
        for side in (0, 1):
            for kind in KINDS:
                coarsening = Coarsening(self.vectors[1 - side], kind, self.random_state)

                def too_fine(level: float, side: int = side, coarsening: Coarsening = coarsening) -> bool:
                    return overlap(self.lists[1 - side], self.near(coarsening, level)) > common

                level = _boundary(too_fine)
                yield Fitted(side, kind, level, self.explained(side, self.near(coarsening, level)))

    def noisier(self) -> Iterator[Fitted]:
        """Both spaces with noise, of unequal size: noise is added to the cleaner one, until the features are
        gathered as much as in the other one. Two spaces with more neighbours in common than it leaves are no
        such copies."""
        weights = np.sum(self.families, axis=0)
        side = int(weights @ self.observed > 0)
        common = overlap(*self.lists)
        for kind in _NOISE:
            coarsening = Coarsening(self.vectors[1 - side], kind, self.random_state)

            def too_clean(level: float, coarsening: Coarsening = coarsening) -> bool:
                total = float(weights @ self.effects_from(side, self.near(coarsening, level)))
                if side == 1:
                    return total > 0
                return total < 0

            level = _boundary(too_clean)
            near = self.near(coarsening, level)
            if common > _COMMON * overlap(self.lists[1 - side], near):
                return
            yield Fitted(side, kind, level, self.explained(side, near))

    def near(self, coarsening: Coarsening, level: float) -> np.ndarray:
        return nearest_within(coarsening.rows(level), self.queries, self.k)

    def explained(self, side: int, near: np.ndarray) -> float:
        """The share of the observed effects that is explained if the other space, made coarser, has these
        lists: the median over the families that tell something. It is −1 for a family in which coarsening
        makes effects larger."""
        rest = np.abs(self.effects_from(side, near))
        predicted = np.abs(self.effects_from(1 - side, near))
        shares = []
        for weights in self.families:
            total = weights @ np.abs(self.observed)
            if max(total, weights @ predicted) > _SLIGHT:
                shares.append(max(-1.0, 1 - (weights @ rest) / max(total, 1e-9)))
        if len(shares) < 2:
            return -1.0
        return float(np.median(shares))


def _boundary(below: Callable[[float], bool]) -> float:
    """The level up to which a condition holds, by bisection."""
    low, high = _LEVELS
    for _ in range(_STEPS):
        middle = float(np.sqrt(low * high))
        if below(middle):
            low = middle
        else:
            high = middle
    return float(np.sqrt(low * high))


def coarser_space(search: CoarserSearch) -> tuple[Coarser, list[Fitted]] | None:
    """Which space is coarser, and the kinds of coarsening that explain it nearly as well as the best one;
    None if neither is."""
    fits = list(search.copies())
    if max(one.explained for one in fits) < _EXPLAINED:
        fits += search.noisier()
    fits.sort(key=lambda one: -one.explained)
    best = fits[0]
    if best.explained < _EXPLAINED:
        return None
    level = best.level
    if best.kind in (FEWER, PRINCIPAL):
        d = search.vectors[1 - best.side].shape[1]
        level = n_dimensions(d, level) / d
    near = [one for one in fits if one.side == best.side and one.explained > best.explained - _NEARLY]
    return Coarser(best.side, best.kind, level, best.explained), near[:_MOST_KINDS]


def overlap(first: np.ndarray, second: np.ndarray) -> float:
    """The share of common neighbours of two lists (m, k)."""
    return float(common_shares(first, second).mean())
