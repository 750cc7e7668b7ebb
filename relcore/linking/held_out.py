"""Fits that are tested on held-out rows, and the precision of ranked links."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from relcore.base.numbers import band, beside, percent_beside
from relcore.base.rows import unit_rows
from relcore.engine.both_ways import best_without
from relcore.engine.engine import Engine
from relcore.linking.clusters import Matching, match_csls, rotation_between
from relcore.linking.self_learning import first_rotation, self_learn
from relcore.spaces.split import Split, row_keys

# The verdict whether two spaces are linked compares a score of held-out rows with its chance level.

ABOVE_CHANCE = 0.02  # minimum gain; with less, under a third of the matches of noisy rotations were right
STANDARD_ERRORS = 4.0
FOUND_AGAIN = 0.7
_HELD_OUT = 0.25
_FOLDED_ROWS = 400  # up to this number of rows, each is held out once; of more rows, a quarter is
_MANY_SEEDS = 12  # with this many seeds, a fifth of the seeds is also held out
_DRAWS = 2  # number of draws of each of the two kinds of rows without a partner


class HeldOut(NamedTuple):
    """Evidence from n held-out source rows on whether two spaces can be linked: their mean CSLS, −4 … 4, with
    its standard error and draws of its chance level (`null`). `again` is the share of their links, 0 … 1,
    that a fit without these rows finds again; NaN without links.
    """

    mean: float
    error: float
    null: tuple[float, ...]
    n: int
    again: float

    @property
    def above(self) -> bool:
        """Whether the mean exceeds every draw of the chance level by .02 and by four standard errors. This is
        true for one in 10,000 pairs of unrelated spaces.
        """
        return self.mean > self.least

    @property
    def least(self) -> float:
        """The value that the mean must exceed."""
        return max(self.null) + max(ABOVE_CHANCE, STANDARD_ERRORS * self.error)

    @property
    def in_words(self) -> str:
        """Both measures, each beside the limit that it needs."""
        again, needed = percent_beside(self.again, FOUND_AGAIN)
        mean, least = beside(self.mean, self.least)
        if np.isnan(self.again):
            links = f"none of {self.n:,} held-out rows has a link that a second fit could find again"
            links += f" (needed: {needed} found again)"
        else:
            links = f"a second fit finds the same link for {again} of {self.n:,} held-out rows"
            links += f" (needed: {needed})"
        both_agree = self.above == (self.again >= FOUND_AGAIN)
        word = "and" if both_agree else "but"
        return (
            f"{links}, {word} their mean CSLS is {mean} (needed: above {least};"
            f" chance level {band(min(self.null), max(self.null))})"
        )

    @property
    def linked(self) -> bool:
        """Whether the mean is above the chance level, and most links are found again."""
        return self.above and self.again >= FOUND_AGAIN


def fit_held_out(
    X: np.ndarray,
    Y: np.ndarray,
    seeds: np.ndarray,
    ids: Sequence[str] | np.ndarray,
    links: np.ndarray,
    *,
    k: int = 10,
    random_state: int = 0,
) -> HeldOut:
    """Score source rows that are held out from self-learning, to test whether its links are right. Each fit
    uses three quarters of the unit rows X and all unit rows Y, and scores the other quarter. `links` (2, l)
    are the links of a fit on all rows, and `seeds` (2, s) known pairs.

    A rotation always fits the rows that it was fitted on, so only held-out rows are informative. The chance
    level uses rows with the same variances but without partners. In half of its draws, the coordinates along
    each principal axis are permuted. In the other half, axes that hold half of the variance or more are
    mirrored.

    Spaces that agree only roughly, such as in their clusters, also score above chance. But then a fit on
    other rows gives other links. This is detected by `again`, the share of the links of held-out rows that a
    fit without these rows finds. With 12 seeds or more, a fifth of the seeds is held out as well, and `again`
    is the mean of the share of these links and the share of these seeds. On words and sentences, it is .98 or
    more for right links and .6 or less for wrong links. Without seeds, some fits fail by chance, so the best
    of four parts counts.
    """
    rng = np.random.default_rng((random_state, 1))
    similarities = []
    draws = []
    again = []
    for train, test in _folds(np.asarray(ids, dtype=object), seeds[0], random_state):
        used = np.isin(seeds[0], train)
        known = np.stack([np.searchsorted(train, seeds[0, used]), seeds[1, used]])
        stage = (np.arange(len(train)), np.arange(len(Y)))
        fold = X[train]
        begun, keep = first_rotation(fold, Y, known, stage, k)
        *_, (rotation, *_) = self_learn(
            fold, Y, begun, known, [stage], k=k, random_state=random_state, keep=keep
        )
        matching = match_csls(unit_rows(X[test] @ rotation), Y, k)
        similarities.append(matching.similarity)
        partner = np.full(len(X), -1)
        partner[test] = matching.partner
        right = [(partner[rows] == others)[partner[rows] >= 0] for rows, others in (links, seeds)]
        again.append(np.mean([part.mean() for part in right if len(part)] or np.nan))
        others = without_partners(fold, X[test], rng)
        draws.append([match_csls(unit_rows(rows @ rotation), Y, k).mean for rows in others])
    every = np.concatenate(similarities)
    error = float(every.std(ddof=1)) / np.sqrt(len(every))
    null = tuple(np.average(draws, axis=0, weights=list(map(len, similarities))).tolist())
    most_again = float(np.fmax.reduce(again))
    return HeldOut(float(every.mean(dtype=np.float64)), error, null, len(every), most_again)


def chance_of_agreement(X: np.ndarray, Y: np.ndarray, random_state: int = 0) -> float:
    """The p-value, 0.001 … 1, of Mantel's test that similarities within X (n, d) agree with those within Y
    (n, e): the share of permutations of the rows of Y that agree at least as well.
    """
    rng = np.random.default_rng((random_state, 4))
    upper = np.triu_indices(len(X), 1)
    orders = [np.arange(len(X)), *(rng.permutation(len(X)) for _ in range(999))]
    agreement = np.array([(X @ X.T)[upper] @ (Y[order] @ Y[order].T)[upper] for order in orders])
    return float(np.mean(agreement >= agreement[0]))


def _folds(ids: np.ndarray, seeds: np.ndarray, random_state: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Yield pairs of arrays: rows to fit on, and rows to hold out. With at most 400 rows, each row that is
    not a seed is held out once, in one of four pairs. With more rows, a quarter is held out, in a single
    pair.
    """
    free = np.setdiff1d(np.arange(len(ids)), seeds)
    if len(free) > _FOLDED_ROWS:
        parts = [Split.draw(ids, anchors=seeds, test_fraction=_HELD_OUT, random_state=random_state).test]
    else:
        parts = np.array_split(free[np.argsort(row_keys(ids[free], "folds", random_state))], 4)
    for number, test in enumerate(parts):
        if len(seeds) >= _MANY_SEEDS:
            test = np.r_[test, seeds[number::5]]
        yield np.setdiff1d(np.arange(len(ids)), test), np.sort(test)


def without_partners(train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    # In half of the draws, the coordinates along each principal axis of `train` are permuted independently.
    basis = Engine().eigh(train.T @ train)[1].astype(np.float32)
    spread = np.square(test @ basis).sum(axis=0)
    for _ in range(_DRAWS):
        yield unit_rows(rng.permuted(test @ basis, axis=0) @ basis.T)
        signs = rng.choice(np.array([-1, 1], dtype=np.float32), len(spread))
        if signs @ spread > 0:  # no draw is nearer to the rows than to their opposites
            signs = -signs
        yield (test @ basis * signs) @ basis.T


_PARTS = 10
CERTAIN = 0.9
_FEWEST_CERTAIN = 20


def rank_links(
    X: np.ndarray, Y: np.ndarray, found: Matching, seeds: np.ndarray, *, k: int = 10, random_state: int = 0
) -> tuple[np.ndarray, np.ndarray]:
    """Links between unit rows X (n, d) and Y (m, e): mutual nearest rows by CSLS that are not seeds. Returns
    their row numbers (2, l), best first, and an array (l,) with the estimated precision, 0 … 1, of the links
    from the best one down to each link.

    A rotation overfits the links that it was fitted on. So each tenth of the rows is rotated by a map that is
    fitted on the links of the other rows, weighted by the square of their CSLS in `found`.

    A row gets a wrong link if it has no partner, or if another row is nearer than the partner. To estimate
    the CSLS of wrong links, the partner is removed from links that are almost certainly right
    (`_without_partner`). At first, these certain links are those with a higher CSLS than half of the seeds;
    without seeds, the best quarter. Then, in each of five rounds, the best links, down to a precision of .9,
    become the certain ones. If there are fewer than 20 certain links, the precision is 0.
    """
    rng = np.random.default_rng((random_state, 3))
    pairs = np.hstack([found.pairs, seeds])
    part = rng.integers(_PARTS, size=len(X))
    weights = np.square(np.clip(found.similarity[pairs[0]], 1e-3, None))
    rotated = _rotated_by_others(X, Y, pairs, weights, part)
    matching = match_csls(rotated, Y, k)
    links = matching.pairs[:, np.argsort(-matching.similarity[matching.mutual], kind="stable")]
    similarity = matching.similarity[links[0]]
    crowding_of_source, crowding_of_target = matching.crowding
    alone = (
        _without_partner(rotated, Y, links, crowding_of_target, matching.best, k),
        _without_partner(Y, rotated, links[::-1], crowding_of_source, matching.similarity, k),
    )
    certain = _certain_at_first(links, similarity, seeds)
    precision = _precision(similarity, alone, (len(X), len(Y)), certain)
    free = ~np.isin(links[0], seeds[0]) & ~np.isin(links[1], seeds[1])
    return links[:, free], precision[free]


def _rotated_by_others(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, weights: np.ndarray, part: np.ndarray
) -> np.ndarray:
    """The rows X (n, d) rotated to Y, as unit rows. The rows of each part are rotated by a map that is fitted
    on the pairs (2, p) of the other rows. `part` (n,) is the part of each row."""
    rotated = np.empty((len(X), Y.shape[1]), dtype=np.float32)
    for number in range(_PARTS):
        others = part[pairs[0]] != number
        rotation = rotation_between(X[pairs[0, others]], Y[pairs[1, others]], weights[others])
        rotated[part == number] = unit_rows(X[part == number] @ rotation)
    return rotated


def _certain_at_first(links: np.ndarray, similarity: np.ndarray, seeds: np.ndarray) -> np.ndarray:
    """Which links (2, l), best first, are taken as certain at first, (l,): those with a higher CSLS than half
    of the seeds; without seeds, the best quarter. A seed that is no link counts as −inf."""
    if not len(seeds[0]):
        return np.arange(len(similarity)) < len(similarity) // 4
    is_seed = (links[0][:, None] == seeds[0]) & (links[1][:, None] == seeds[1])
    of_seeds = np.where(is_seed, similarity[:, None], -np.inf).max(axis=0, initial=-np.inf)
    least = np.median(of_seeds)
    return (similarity > least) & np.isfinite(least)


def _without_partner(
    source: np.ndarray, target: np.ndarray, links: np.ndarray, crowded: np.ndarray, best: np.ndarray, k: int
) -> np.ndarray:
    """The CSLS (l,) of the wrong link that each linked source row gets when its partner is removed. It is
    −inf if the row gets no link, because the target row that it would choose has a better link. `best`
    (n_target,) is the largest CSLS of each target row; `crowded` is its mean cosine to the k nearest source
    rows.
    """
    other, csls = best_without(source[links[0]], target, links[1], crowded, k)
    return np.where(csls >= best[other], csls, -np.inf)


def _precision(
    similarity: np.ndarray, alone: Sequence[np.ndarray], sizes: Sequence[int], certain: np.ndarray
) -> np.ndarray:
    """The estimated precision (l,) of the links from the first one down to each link; see `rank_links`. Links
    are in order of their CSLS (`similarity`), largest first. `alone` are the two results of
    `_without_partner`, for source rows and for target rows; `sizes` are the numbers of rows.

    Let N be the CSLS of a row's best wrong link. Let T be the CSLS of its right link, or −inf if it has no
    partner. The link of the row has a CSLS of at most v with the probability P(T ≤ v) P(N ≤ v). So the
    expected number of rows, of n, with a wrong link above t is n ∫ P(T ≤ v) dP(N ≤ v), integrated from t. P(T
    ≤ v) is estimated by the share of rows whose link has at most v, divided by P(N ≤ v). The result is the
    mean of the estimates from the source rows and from the target rows. Half a row is added to each count, so
    that no estimate is exactly 1.
    """
    for _ in range(5):
        if certain.sum() < _FEWEST_CERTAIN:
            return np.zeros(len(similarity))
        expected = np.zeros(len(similarity))
        for n, values in zip(sizes, alone, strict=True):
            null = np.sort(values[certain])
            below = 1 - (np.searchsorted(-similarity, -null, side="left") - 0.5) / n
            missing = np.minimum(1, below * len(null) / np.arange(1, len(null) + 1))
            wrong = (np.r_[np.cumsum(missing[::-1])[::-1], 0] + missing[-1] / 2) * n / len(null)
            expected += wrong[np.searchsorted(null, similarity, side="left")] / 2
        precision = np.clip(1 - expected / np.arange(1, len(similarity) + 1), 0, 1)
        precision = np.maximum.accumulate(precision[::-1])[::-1]
        certain = precision >= CERTAIN
    return precision
