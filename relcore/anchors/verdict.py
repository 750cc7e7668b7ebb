"""Decide whether two spaces fit each other, on held-out rows compared with a chance level on the same rows."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from relcore.anchors.csls import match_csls
from relcore.anchors.self_learning import Rows, learned_rotation
from relcore.evaluation import Split, row_keys
from relcore.numbers import band, short
from relcore.similarity import unit_rows

VERDICTS = ("fits", "nothing in common", "cannot tell")
ABOVE_CHANCE = 0.02  # noisy rotations: below it less than a third of the matches is right (our measurement)
STANDARD_ERRORS = 4.0
AGREED = 1 / 3  # share of the anchors that a second fit must give, too
_HELD_OUT = 0.25
_FEWEST = 8  # rows that are no seeds: two for each of the four parts that are held out in turn
_FOLDED_ROWS = 400  # up to this number each row is held out once; of more, a quarter is enough
_DRAWS = 2  # of each of the two kinds of rows without a partner


@dataclass(frozen=True, eq=False)
class HeldOut:
    """The fit of held-out rows.

    Attributes
    ----------
    mean : float
        Mean CSLS of the held-out source rows with their partners, −4 … 4.
    error : float
        Its standard error over the rows.
    null : tuple of float
        The same for rows without a partner, under the same rotations.
    n : int
        Held-out rows.
    rotation : array (d_source, d_target)
        Of the first fit.
    """

    mean: float
    error: float
    null: tuple[float, ...]
    n: int
    rotation: np.ndarray

    @property
    def fits(self) -> bool:
        """Above every draw of the chance level by .02 and by four standard errors: 1 in 10,000 where all is noise."""
        return self.mean > max(self.null) + max(ABOVE_CHANCE, STANDARD_ERRORS * self.error)

    def describe(self) -> str:
        return (
            f"{self.n:,} held-out rows have a mean CSLS of {short(self.mean)}, chance level "
            f"{band(min(self.null), max(self.null))}"
        )


def fit_held_out(
    X: np.ndarray, Y: np.ndarray, seeds: Rows, ids: Sequence[str], *, k: int = 10, random_state: int = 0
) -> HeldOut:
    """Self-learn on three quarters of the source rows (n, d_source) and all target rows (m, d_target), score the other quarter.

    A rotation always fits the rows that it was fitted to, even in unrelated spaces, so only held-out rows are informative.
    In unrelated spaces they score like any rows with the same spread. The chance level uses such rows: half of the draws
    are the held-out rows with each principal axis permuted independently (only the spread remains), half are mirrored
    along axes with half of the spread or more (clusters stay clusters, in other places). All unit rows; seeds are row numbers
    and never held out.
    """
    rng = np.random.default_rng((random_state, 1))
    similarities, draws, rotation = [], [], None
    for train, test in _folds(np.asarray(ids, dtype=object), seeds[0], random_state):
        place = np.full(len(X), -1)
        place[train] = np.arange(len(train))
        turned = learned_rotation(X[train], Y, (place[seeds[0]], seeds[1]), k, random_state)
        rotation = turned if rotation is None else rotation
        similarities.append(match_csls(unit_rows(X[test] @ turned), Y, k).similarity)
        others = _without_partners(X[train], X[test], rng)
        draws.append([match_csls(unit_rows(rows @ turned), Y, k).mean for rows in others])
    every = np.concatenate(similarities)
    error = float(every.std(ddof=1)) / np.sqrt(len(every))
    null = tuple(np.average(draws, axis=0, weights=[len(one) for one in similarities]).tolist())
    return HeldOut(float(every.mean(dtype=np.float64)), error, null, len(every), rotation)


@dataclass(frozen=True, eq=False)
class Judgement:
    """One of `VERDICTS`, the reason, and the evidence."""

    verdict: str
    reason: str
    held_out: HeldOut


def judge(
    X: np.ndarray,
    Y: np.ndarray,
    seeds: Rows,
    pairs: Rows,
    ids: Sequence[str],
    names: tuple[str, str],
    *,
    k: int = 10,
    random_state: int = 0,
) -> Judgement:
    """Whether unit rows (n, d_source) and (m, d_target) fit each other, and whether the `pairs` found are reliable.

    They fit where held-out rows do (`fit_held_out`) and the second fit, of which these are held out, gives a third of the
    pairs or more. Where they do not fit, a positive control follows: a space and its noisy copy, with as many rows, dimensions
    and seeds. If even these are not recognised as fitting, the verdict is "cannot tell".
    """
    settings = {"k": k, "random_state": random_state}
    n_free = len(X) - len(seeds[0])
    if n_free < _FEWEST:
        reason = f"It is undecided whether the two spaces fit each other: {n_free} rows beside the seeds, {_FEWEST} are needed."
        return Judgement("cannot tell", reason, HeldOut(float("nan"), float("nan"), (), 0, np.zeros((X.shape[1], Y.shape[1]))))
    held_out = fit_held_out(X, Y, seeds, ids, **settings)
    told = held_out.describe()
    if held_out.fits:
        partner = match_csls(unit_rows(X @ held_out.rotation), Y, k).partner
        agreement = float(np.mean(partner[pairs[0]] == pairs[1])) if len(pairs[0]) else 0.0
        if agreement >= AGREED:
            return Judgement("fits", f"The two spaces fit each other: {told}.", held_out)
        reason = (
            f"The two spaces fit each other ({told}), but these anchors are unreliable: a second fit, on three quarters of the "
            f"rows, gives {100 * agreement:.1f} % of them."
        )
        return Judgement("cannot tell", reason, held_out)
    narrow, name = min(((X, names[0]), (Y, names[1])), key=lambda one: one[0].shape[1])
    rng = np.random.default_rng((random_state, 2))
    n, n_seeds = min(len(X), len(Y)), len(seeds[0])
    one = narrow[rng.choice(len(narrow), n, replace=False)]
    known = np.arange(n_seeds)
    if fit_held_out(one, noisy_copy(one, rng), (known, known), np.arange(n).astype(str), **settings).fits:
        return Judgement(
            "nothing in common",
            f"No common structure was found: {told}, no more than rows without a partner.",
            held_out,
        )
    reason = (
        f"It is undecided whether the two spaces fit each other: {told}. With {n:,} rows, {narrow.shape[1]:,} dimensions and "
        f"{n_seeds or 'no'} seeds, not even a noisy copy of {name!r} would be found to fit it. Give more rows or more seeds."
    )
    return Judgement("cannot tell", reason, held_out)


def noisy_copy(X: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """Unit rows (n, d) with half as much noise as signal, cosine about .9 with theirs; the noise has the same spread."""
    return unit_rows(X + 0.5 * structureless(X, rng))


def structureless(X: np.ndarray, rng: np.random.Generator, basis: np.ndarray | None = None) -> np.ndarray:
    """Unit rows (n, d) with the spread of X along its principal axes and nothing else: each axis permuted by itself.

    `basis` (d, d) are the axes where they are known.
    """
    basis = _axes(X) if basis is None else basis
    return unit_rows(rng.permuted(X @ basis, axis=0) @ basis.T)


def _folds(ids: np.ndarray, seeds: np.ndarray, random_state: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit on and rows to score: of few rows all but the seeds in turn, of many a quarter once."""
    free = np.setdiff1d(np.arange(len(ids)), seeds)
    if len(free) > _FOLDED_ROWS:
        split = Split.draw(ids, anchors=seeds, test_fraction=_HELD_OUT, random_state=random_state)
        yield split.known, split.test
        return
    for part in np.array_split(free[np.argsort(row_keys(ids[free], "folds", random_state))], 4):
        yield np.setdiff1d(np.arange(len(ids)), part), np.sort(part)


def _without_partners(train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    basis = _axes(train)
    spread = np.square(test @ basis).sum(axis=0)
    for _ in range(_DRAWS):
        yield structureless(test, rng, basis)
        signs = -np.ones(len(spread), dtype=np.float32)
        for _ in range(20):  # all axes are mirrored where no draw mirrors enough
            drawn = rng.choice(np.array([-1, 1], dtype=np.float32), len(spread))
            if spread[drawn < 0].sum() >= spread.sum() / 2:
                signs = drawn
                break
        yield (test @ basis * signs) @ basis.T


def _axes(X: np.ndarray) -> np.ndarray:
    """An orthonormal basis (d, d), as columns: the principal axes of X, and what is across them where rows are few."""
    return np.linalg.eigh((X.T @ X).astype(np.float64))[1].astype(np.float32)
