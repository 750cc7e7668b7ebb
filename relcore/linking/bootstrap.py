"""Find parallel anchors, that is, rows of two spaces that describe the same items, from a few known pairs or
without any.

Arrays of pairs have the shape (2, m): row numbers of the source, then row numbers of the target. Seeds are
known pairs; links are pairs that an algorithm found. CSLS is the similarity that
`relcore.linking.clusters.Matching` defines.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Literal, NamedTuple

import numpy as np

from relcore.base.arguments import need_ids, need_kind, need_number, need_sequence, need_whole
from relcore.base.environment import torch_name
from relcore.base.errors import SpaceError, extra, need_one_of, quote
from relcore.base.names import BOOTSTRAPS
from relcore.base.numbers import band, percent, short
from relcore.base.rows import mean_row, row_blocks, unit_rows
from relcore.engine.device import full_precision
from relcore.engine.engine import Engine, best_without
from relcore.files.links import Pairs
from relcore.linking.clusters import (
    ASSIGNED_BYTES,
    ENOUGH,
    FEWEST,
    PAIRED,
    SAME,
    ClusterFit,
    Matching,
    Stage,
    link_clusters,
    map_from_pairs,
    match_csls,
    rotation_between,
)
from relcore.spaces.space import LatentSpace, MatrixLike, as_space
from relcore.spaces.split import Split, row_keys

# Self-learning (Artetxe et al. 2017): fit a rotation on a few pairs, match more pairs by it, and repeat.

MOST_ROWS = 4000  # number of rows in the first stage, and in a start without seeds
FIRST_KEEP = 0.1
SEED_WEIGHT = 5.0  # weight of a known pair in a fit; matched pairs have weight 1
STALLED = 1e-3  # minimum gain of the mean CSLS that counts
MOST_ROUNDS = 15
MOST_ROUNDS_UNSEEDED = 60


def first_rotation(
    source: np.ndarray, target: np.ndarray, seeds: np.ndarray, stage: Stage, k: int = 10
) -> tuple[np.ndarray, float]:
    """Two values with which `self_learn` starts: the rotation, and the probability `keep`. The rotation is
    fitted on the seeds. Without seeds, it is fitted on rows that are matched by their similarities within
    each space (Artetxe et al. 2018, § 3.2).

    The profile of a row is the sorted list of its similarities to all rows of its space. Profiles do not
    depend on the axes, so they can be compared between spaces. Rows with similar profiles are matched.
    """
    if len(seeds[0]):
        return rotation_between(source[seeds[0]], target[seeds[1]]), 1.0
    X = source[stage[0]]
    Y = target[stage[1]]
    if max(len(X), len(Y)) > MOST_ROWS:
        raise SpaceError(
            f"no seeds: expected at most {MOST_ROWS:,} rows, got {max(len(X), len(Y)):,}; give seeds, or"
            " spaces with counts, so that the most frequent rows come first"
        )
    n = min(len(X), len(Y), _PLACES)
    rows, others = match_csls(_profile(X, n), _profile(Y, n), k).pairs
    return rotation_between(X[rows], Y[others]), FIRST_KEEP


_PLACES = 1000  # maximum number of entries of a profile; more do not help


def _profile(X: np.ndarray, n: int) -> np.ndarray:
    """The profiles of the rows of X, an array (rows, n): each row of the square root of X Xᵀ is sorted,
    reduced to n evenly spaced ranks, centred, and scaled to length 1.
    """
    left, singular_values, _ = Engine().svd(X)
    root = np.sort((left * singular_values) @ left.T, axis=1)
    if root.shape[1] > n:
        root = root[:, np.linspace(0, root.shape[1] - 1, n).round().astype(int)]
    root = unit_rows(root)
    return unit_rows(root, mean_row(root))


def self_learn(
    source: np.ndarray,
    target: np.ndarray,
    rotation: np.ndarray,
    seeds: np.ndarray,
    stages: Sequence[Stage],
    *,
    k: int = 10,
    random_state: int = 0,
    keep: float = 1.0,
) -> Iterator[tuple[np.ndarray, Stage, Matching]]:
    """Repeat two steps on unit rows (n, d_source) and (m, d_target): match rows by the current rotation, and
    fit the next rotation on the matches. Yield the rotation, the stage and the matching of each round.

    A stage is a pair of arrays, the rows of the source and of the target that it uses. A round matches these
    rows by CSLS, keeps the mutual pairs, adds the weighted seeds, and fits the next rotation on all of these
    pairs. To escape poor matches, each similarity is used only with the probability `keep`, which is doubled
    after a round without gain. A stage ends when the mean CSLS stops rising.
    """
    for number, stage in enumerate(stages):
        best = -np.inf
        for done in range(1, 1 + (MOST_ROUNDS if len(seeds[0]) else MOST_ROUNDS_UNSEEDED)):
            rng = None
            if keep < 1:
                rng = np.random.default_rng((random_state, number, done))
            rotated = unit_rows(source[stage[0]] @ rotation)
            matching = match_csls(rotated, target[stage[1]], k, keep=keep, rng=rng)
            rows, others = np.hstack([_whole(stage, matching.pairs), seeds])
            weights = np.ones(len(rows), dtype=np.float32)
            weights[len(matching.mutual) :] = SEED_WEIGHT
            rotation = rotation_between(source[rows], target[others], weights)
            yield rotation, stage, matching
            stalled = matching.mean - best < STALLED
            if stalled and keep >= 1:
                break
            if stalled:
                keep = min(1.0, 2 * keep)
                best = -np.inf
            else:
                best = max(best, matching.mean)


def _whole(stage: Stage, pairs: np.ndarray) -> np.ndarray:
    return np.stack([stage[0][pairs[0]], stage[1][pairs[1]]])


@dataclass(frozen=True, eq=False)
class Step:
    """The state of `optimise_anchors` at one step. The arrays are copied from the GPU only when they are
    read, because copying takes longer than the step.

    Attributes
    ----------
    error : float
        The mean squared error before the step.
    anchors : array (k, d_target)
        The unit anchors after the step.
    nearest : array (k,)
        The index of the target row nearest to each anchor.
    returned : array (k,)
        Whether the assignment Π maps this target row back to the source row of the anchor.
    """

    numbers: tuple[Any, Any, Any, Any]

    error = property(lambda self: float(self.numbers[0]))
    anchors, nearest, returned = (
        property(lambda self, place=place: self.numbers[place].cpu().numpy()) for place in (1, 2, 3)
    )


STEPS = 250  # as in the paper's Table 3 for retrieval; 125 for stitching
LEARNING_RATE = 0.02  # as in the paper's Table 3 for retrieval; .05 for stitching


def optimise_anchors(
    source: np.ndarray,
    target: np.ndarray,
    anchors: np.ndarray,
    seeds: np.ndarray,
    *,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    random_state: int = 0,
) -> Iterator[Step]:
    """Yield the steps of the optimisation of Cannistraci et al. 2023, which finds target anchors for the
    source rows `anchors` (k,). The first s anchors have known partners, the target rows `seeds` (s,).

    Adam minimises equation 1 over the target anchors, unit vectors Ã (k, d_target). The error is the squared
    difference between the similarities of each unit row y of `target` (m, d_target) to the target anchors, y
    Ãᵀ, and the similarities of the row Π(y) to the source anchors. Π(y) is the row of `source` (n, d_source)
    that is assigned to y, by one Sinkhorn iteration per step.

    The anchors without known partners begin as random directions b. A trivialisation (Casado 2019) keeps them
    on the unit sphere: Adam moves tangent vectors v from 0, and the anchors are exp_b(v) = cos ‖v‖ b + sin
    ‖v‖ v / ‖v‖. The seeds stay fixed. (In the paper, they are optimised as well, but then far fewer anchors
    are found.)
    """
    with extra():
        import torch

    device = torch_name()
    X, Y, own, seeded = (
        torch.from_numpy(np.ascontiguousarray(array)).to(device) for array in (source, target, anchors, seeds)
    )
    initial = np.random.default_rng(random_state).normal(size=(len(anchors) - len(seeds), target.shape[1]))
    known = Y[seeded]
    base = torch.from_numpy(unit_rows(initial)).to(device)
    tangent = torch.zeros_like(base).requires_grad_()
    optimiser = torch.optim.Adam([tangent], lr=learning_rate)
    kind = device.partition(":")[0]
    with full_precision(torch, kind):
        relative = X @ X[own].T
    for _ in range(steps):
        with full_precision(torch, kind):
            other = Y @ torch.cat([known, on_sphere(base, tangent)]).T
            with torch.no_grad():
                order = hard_limit_assignment(relative, other)
            loss = torch.nn.functional.mse_loss(other, relative[order])
            optimiser.zero_grad()
            loss.backward()
            optimiser.step()
            with torch.no_grad():
                now = torch.cat([known, on_sphere(base, tangent)])
                nearest = torch.argmax(now @ Y.T, dim=1)
        nearest[: len(seeds)] = seeded  # each seed itself, even if another row equals it
        yield Step((loss.detach(), now, nearest, order[nearest] == own))


def on_sphere(base, tangent):
    """The exponential map of the unit sphere at `base` (k, d), applied to the part of `tangent` (k, d) that
    is orthogonal to `base`. Arrays are torch tensors.
    """
    import torch

    across = tangent - (tangent * base).sum(dim=1, keepdim=True) * base
    # Tangents begin at 0, where the root has no gradient. With the smallest float added, the gradient is its
    # limit.
    angle = (across.square().sum(dim=1, keepdim=True) + torch.finfo(across.dtype).tiny).sqrt()
    return torch.cos(angle) * base + torch.sinc(angle / torch.pi) * across


def hard_limit_assignment(source, target):
    """For each row of `target` (m, k), the index of the row of `source` (n, k) that is assigned to it, a
    torch tensor. This is the row in which the target row's column of the transport plan is largest.

    One Sinkhorn iteration with ε → 0 (in the paper 1e-4) on Euclidean distances M has the limit uᵢ = minⱼ
    Mᵢⱼ, vⱼ = minᵢ (Mᵢⱼ − uᵢ). So column j of the plan is largest where Mᵢⱼ − uᵢ is smallest. M is computed in
    blocks of rows.
    """
    import torch

    best = torch.full((len(target),), torch.inf, device=source.device)
    match = torch.zeros(len(target), dtype=torch.int64, device=source.device)
    for block in row_blocks(len(source), max(1, ASSIGNED_BYTES // (4 * len(target)))):
        excess = torch.cdist(source[block], target)
        excess -= excess.min(dim=1, keepdim=True).values
        least, row = excess.min(dim=0)
        better = least < best
        best = torch.where(better, least, best)
        match = torch.where(better, row + block.start, match)
    return match


# The verdict whether two spaces are linked compares a score of held-out rows with its chance level.

ABOVE_CHANCE = 0.02  # minimum gain; with less, under a third of the matches of noisy rotations were right
STANDARD_ERRORS = 4.0
FOUND_AGAIN = 0.7
_HELD_OUT = 0.25
_FEWEST = 8  # minimum number of rows besides seeds: two for each of four held-out parts
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
        needed = percent(FOUND_AGAIN)
        if self.again == self.again:
            links = f"a second fit finds the same link for {percent(self.again)} of {self.n:,} held-out rows"
            links += f" (needed: {needed})"
        else:
            links = f"none of {self.n:,} held-out rows has a link that a second fit could find again"
            links += f" (needed: {needed} found again)"
        between = "and"
        if self.above != (self.again >= FOUND_AGAIN):
            between = "but"
        return (
            f"{links}, {between} their mean CSLS is {short(self.mean)} (needed: above {short(self.least)};"
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
    ids: Sequence[str],
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
        others = _without_partners(fold, X[test], rng)
        draws.append([match_csls(unit_rows(rows @ rotation), Y, k).mean for rows in others])
    every = np.concatenate(similarities)
    error = float(every.std(ddof=1)) / np.sqrt(len(every))
    null = tuple(np.average(draws, axis=0, weights=list(map(len, similarities))).tolist())
    again = float(np.fmax.reduce(again))
    return HeldOut(float(every.mean(dtype=np.float64)), error, null, len(every), again)


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
    for number, part in enumerate(parts):
        test = np.r_[part, seeds[number::5] if len(seeds) >= _MANY_SEEDS else seeds[:0]]
        yield np.setdiff1d(np.arange(len(ids)), test), np.sort(test)


def _without_partners(train: np.ndarray, test: np.ndarray, rng: np.random.Generator) -> Iterator[np.ndarray]:
    # In half of the draws, the coordinates along each principal axis of `train` are permuted independently.
    basis = Engine().eigh(train.T @ train)[1].astype(np.float32)
    spread = np.square(test @ basis).sum(axis=0)
    for _ in range(_DRAWS):
        yield unit_rows(rng.permuted(test @ basis, axis=0) @ basis.T)
        signs = rng.choice(np.array([-1, 1], dtype=np.float32), len(spread))
        yield (test @ basis * (signs if signs @ spread <= 0 else -signs)) @ basis.T


# Links, ranked by CSLS, with an estimate of how many are right.

PROMISED = 0.95
_PARTS = 10
_CERTAIN = 0.9
_FEWEST_CERTAIN = 20
_FEWEST_UNSEEDED = 0.05  # minimum share of linked rows; for spaces without partners it was at most .04


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
    rotated = np.empty((len(X), Y.shape[1]), dtype=np.float32)
    for number in range(_PARTS):
        others = part[pairs[0]] != number
        rotation = rotation_between(X[pairs[0, others]], Y[pairs[1, others]], weights[others])
        rotated[part == number] = unit_rows(X[part == number] @ rotation)
    matching = match_csls(rotated, Y, k)
    links = matching.pairs[:, np.argsort(-matching.similarity[matching.mutual], kind="stable")]
    similarity = matching.similarity[links[0]]
    (of_source, of_target) = matching.crowding
    alone = (
        _without_partner(rotated, Y, links, of_target, matching.best, k),
        _without_partner(Y, rotated, links[::-1], of_source, matching.similarity, k),
    )
    certain = np.arange(len(similarity)) < len(similarity) // 4
    if len(seeds[0]):
        linked = (links[0][:, None] == seeds[0]) & (links[1][:, None] == seeds[1])
        least = np.median(np.where(linked, similarity[:, None], -np.inf).max(axis=0, initial=-np.inf))
        certain = (similarity > least) & np.isfinite(least)
    precision = _precision(similarity, alone, (len(X), len(Y)), certain)
    free = ~np.isin(links[0], seeds[0]) & ~np.isin(links[1], seeds[1])
    return links[:, free], precision[free]


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
        certain = precision >= _CERTAIN
    return precision


@dataclass(frozen=True)
class Round:
    """The progress of linking after one round. `rows` is the number of source rows, `pairs` the number of
    matched pairs, and `objective` the mean CSLS. (For method "paper", `pairs` is the number of anchors, and
    `objective` the mean squared error.) `found` is the share of anchors, not counting seeds, that have the
    right partner; NaN if the truth is unknown.
    """

    rows: int
    pairs: int
    objective: float
    found: float


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """The result of `bootstrap_anchors`: parallel anchors, links, and a verdict on whether the spaces can be
    linked.

    Attributes
    ----------
    anchors : tuple of (source id, target id)
        The seeds first.
    pairs : tuple of (source id, target id)
        The seeds, then all links, best first.
    precision : array (n_pairs,)
        For each pair, the estimated share of right links among all links from the best one down to this pair,
        see `rank_links`. It is 1 for seeds; for links, it is 0 if the spaces are not linked.
    promised : float
        The requested precision of the `kept` pairs.
    held_out : float
        Mean CSLS of rows that are held out from a second fit, see `fit_held_out`.
    null : tuple of float
        Draws of the chance level of `held_out`, from rows without a partner.
    verdict : "linked", "not found" or "cannot tell"
    reason : str
        The reason for the verdict, with its numbers.
    vectors : array (n_anchors, d_target), optional
        With method "paper", the optimised anchors as unit rows, before they are replaced by the nearest
        target rows.
    rotation : array (d_source, d_target), optional
        The map from centred unit rows of the source to those of the target. If the spaces are not linked, but
        there are at least 10 seeds, it is the result of `map_from_pairs`, which is not orthogonal.
    """

    anchors: Pairs
    n_seeds: int
    pairs: Pairs
    history: tuple[Round, ...]
    held_out: float
    null: tuple[float, ...]
    verdict: str
    reason: str
    vectors: np.ndarray | None = None
    precision: np.ndarray = field(default_factory=lambda: np.empty(0))
    promised: float = PROMISED
    rotation: np.ndarray | None = None

    @property
    def nearby(self) -> np.ndarray:
        """For each pair, the estimated share of right links among links of similar rank, a decreasing array
        (n_pairs,). A group of similar rank is a tenth of the links, but at least 50. Seeds have 1.
        """
        from sklearn.isotonic import isotonic_regression

        precision = self.precision[self.n_seeds :]
        ends = np.linspace(0, n := len(precision), max(1, min(10, n // 50)) + 1).astype(int)
        right = np.r_[0, precision * np.arange(1, n + 1)][ends]
        shares = np.diff(right) / np.maximum(np.diff(ends), 1)
        shares = isotonic_regression(shares, increasing=False, y_min=0, y_max=1)
        return np.r_[np.ones(self.n_seeds), np.repeat(shares, np.diff(ends))]

    @property
    def kept(self) -> Pairs:
        """The seeds, and the links whose precision is at least `promised`."""
        return self.pairs[: np.count_nonzero(self.precision >= self.promised)]


def bootstrap_anchors(
    source: MatrixLike,
    target: MatrixLike,
    *,
    seeds: Sequence[tuple[str, str]] = (),
    n_anchors: int = 300,
    anchors: Sequence[str] | None = None,
    method: Literal["self-learning", "paper"] = "self-learning",
    k: int = 10,
    precision: float = PROMISED,
    random_state: int = 0,
    truth: Mapping[str, str] | None = None,
    after: Callable[[Sequence[Round]], object] = len,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
) -> BootstrapResult:
    """Find the partners of source anchors in the target. Only the seeds are paired by their ids. Rows without
    ids have the ids "0", "1", ….

    Parameters
    ----------
    seeds : pairs of (source id, target id)
        Known pairs. Without seeds, self-learning begins with clusters (`link_clusters`), which also works if
        some rows have no partner. If that fails, it begins with the similarities within each space
        (`first_rotation`), which works only if both spaces have the same rows.
    n_anchors : int
        Number of anchors, seeds included. The others are drawn at random among the kept links.
    anchors : source ids, optional
        Find the partners of these rows, even if a match is not mutual. The seeds are added as the first
        anchors.
    method : "self-learning" or "paper"
        "paper" is Algorithm 1 of Cannistraci et al. 2023 without centring, see `optimise_anchors`.
    steps, learning_rate : int, float
        Settings of "paper".
    k : int
        Number of neighbours in CSLS.
    precision : float
        Keep as many of the best links as have at least this estimated share of right links, 0 … 1.
    truth : source id → target id, optional
        The true pairs, used only for `Round.found`.
    after
        A function that is called after each round, with the list of all rounds so far.

    If both spaces have counts, self-learning first uses the 4,000 most frequent rows, then all rows.

    Raises
    ------
    SpaceError
        Seeds that are unknown, contradictory or too few; more anchors than rows; an unknown method; a space
        whose rows are all equal.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, bootstrap_anchors
    >>> X = np.random.default_rng(0).normal(size=(400, 10))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(10, 10)))
    >>> first = LatentSpace(X, [f"en{row}" for row in range(400)])
    >>> second = LatentSpace(X @ rotation, [f"fr{row}" for row in range(400)])
    >>> seeds = [(f"en{row}", f"fr{row}") for row in range(15)]
    >>> result = bootstrap_anchors(first, second, seeds=seeds, n_anchors=100)
    >>> result.verdict, np.mean([one[2:] == other[2:] for one, other in result.anchors]).item()
    ('linked', 1.0)
    """
    need_one_of("method", method, BOOTSTRAPS)
    for name, number in (("n_anchors", n_anchors), ("k", k), ("steps", steps)):
        need_whole(name, number)
    need_whole("random_state", random_state, 0)
    need_number("learning_rate", learning_rate, above=0)
    need_number("precision", precision, low=0, high=1)
    if anchors is not None:
        anchors = need_ids("anchors", anchors)
    if truth is not None:
        need_kind("truth", truth, Mapping)
    source = as_space(source, "source")
    target = as_space(target, "target")
    for space in (source, target):
        _need_different_rows(space)
    task = _Bootstrap(source, target, _checked_seeds(seeds, source, target), truth, k, random_state)
    wanted = task.wanted(anchors, n_anchors, method)
    learns = method == "self-learning"
    if learns:
        fit = task.self_learning(wanted, after)
    else:
        fit = task.paper(wanted, after, steps, learning_rate)
    partners_of = None
    if learns and anchors is not None:
        partners_of = wanted
    drawn = None
    if learns and anchors is None:
        drawn = n_anchors
    return task.result(*fit, precision, partners_of, drawn)


def _need_different_rows(space: LatentSpace) -> None:
    if np.array_equal(*np.broadcast_arrays(space.vectors, space.vectors[:1])):
        raise SpaceError(
            f"{space.name}: expected rows that differ, got {len(space):,} equal ones, which have"
            " no direction from their mean; check that the file holds the right vectors"
        )


class _Bootstrap:
    """Holds the data of one call of `bootstrap_anchors`, and computes its parts. X and Y are the centred rows
    of both spaces, scaled to length 1."""

    def __init__(
        self,
        source: LatentSpace,
        target: LatentSpace,
        seeds: np.ndarray,
        truth: Mapping[str, str] | None,
        k: int,
        random_state: int,
    ) -> None:
        self.source = source
        self.target = target
        self.seeds = seeds
        self.random_state = random_state
        self.settings = {"k": k, "random_state": random_state}
        self.linked: ClusterFit | None = None
        self.refused: tuple[str, str, HeldOut] | None = None
        self.X, self.Y = (unit_rows(space.vectors, mean_row(space.vectors)) for space in (source, target))
        self.truth = truth and target.index.get_indexer([truth.get(identifier) for identifier in source.ids])

    def ids(self, pairs: np.ndarray) -> Pairs:
        return tuple(zip(self.source.ids[pairs[0]].tolist(), self.target.ids[pairs[1]].tolist(), strict=True))

    def share_found(self, wanted: np.ndarray, partner: np.ndarray) -> float:
        hidden = ~np.isin(wanted, self.seeds[0])
        if self.truth is None or not hidden.any():
            return float("nan")
        return float((self.truth[wanted] == partner)[hidden].mean())

    def wanted(self, anchors: Sequence[str] | None, n_anchors: int, method: str) -> np.ndarray:
        """The indices of the source rows whose partners are to be found, seeds first. If no `anchors` are
        given and the method is self-learning, only the seeds, because the other anchors are later chosen
        among the matched rows.
        """
        seeds = self.seeds[0]
        if anchors is not None:
            rows = self.source.rows(anchors)
            return np.r_[seeds, rows[~np.isin(rows, seeds)]]
        least = max(len(seeds), 1)
        most = min(len(self.source), len(self.target))
        if not least <= n_anchors <= most:
            raise SpaceError(
                f"n_anchors: expected {least} (the seeds) … {most:,} (the rows), got {n_anchors:,}"
            )
        if method == "self-learning":
            return seeds
        rest = np.setdiff1d(np.arange(len(self.source)), seeds)
        rng = np.random.default_rng(self.random_state)
        return np.r_[seeds, rng.choice(rest, n_anchors - len(seeds), replace=False)]

    def self_learning(
        self, wanted: np.ndarray, after: Callable[[Sequence[Round]], object]
    ) -> tuple[np.ndarray, tuple[Round, ...], None]:
        stages = self.stages(wanted)
        history = []
        begun = self.clusters(stages[-1], history, after)
        keep = 1.0
        none = np.empty((2, 0), dtype=np.int64)
        if begun is None and history and not self.refused:
            # If held-out rows are at the chance level, this verdict needs no fit on all rows.
            judged = self.judge(none)
            self.refused = None if judged[2].above else judged
        if self.refused:
            return none, tuple(history), None
        if begun is None:
            begun, keep = first_rotation(self.X, self.Y, self.seeds, stages[0], self.settings["k"])
        rounds = self_learn(self.X, self.Y, begun, self.seeds, stages, **self.settings, keep=keep)
        for _, stage, matching in rounds:
            partner = np.full(len(self.source), -2)
            partner[stage[0]] = stage[1][matching.partner]
            share = self.share_found(wanted, partner[wanted])
            pairs = _whole(stage, matching.pairs)
            history.append(Round(len(stage[0]), len(pairs[0]), matching.mean, share))
            after(history)
        return pairs, tuple(history), None

    def clusters(
        self, stage: Stage, history: list[Round], after: Callable[[Sequence[Round]], object]
    ) -> np.ndarray | None:
        """The rotation that `link_clusters` finds. None if there are seeds, if there are too few rows, or if
        the fits on two halves do not agree. If they do not agree and the spaces are too large for another
        method, the negative verdict is put into `refused`.
        """
        rows, others = stage
        if len(self.seeds[0]) or min(map(len, stage)) < FEWEST:
            return None
        for linked in link_clusters(self.X[rows], self.Y[others], self.random_state):
            history.append(Round(len(rows), 0, linked.agreement, float("nan")))
            after(history)
        known = all(space.counts is not None for space in (self.source, self.target))
        if linked.agrees:
            self.linked = linked
            return linked.mapping
        if max(map(len, stage)) > MOST_ROWS and not known:
            self.refused = self.judge_linked(linked)
        return None

    def paper(
        self,
        wanted: np.ndarray,
        after: Callable[[Sequence[Round]], object],
        steps: int,
        learning_rate: float,
    ) -> tuple[np.ndarray, tuple[Round, ...], np.ndarray]:
        X = unit_rows(self.source.vectors)
        Y = unit_rows(self.target.vectors)
        settings = {"steps": steps, "learning_rate": learning_rate, "random_state": self.random_state}
        history = []
        for step in optimise_anchors(X, Y, wanted, self.seeds[1], **settings):
            if self.truth is None:
                found = float("nan")
            else:
                found = self.share_found(wanted, step.nearest)
            history.append(Round(len(X), len(wanted), step.error, found))
            after(history)
        return np.stack([wanted, step.nearest]), tuple(history), step.anchors

    def result(
        self,
        chosen: np.ndarray,
        history: tuple[Round, ...],
        vectors: np.ndarray | None,
        precision: float,
        partners_of: np.ndarray | None,
        n_anchors: int | None,
    ) -> BootstrapResult:
        """The result of a fit that chose these pairs (2, p). If `partners_of` is given, the anchors are these
        source rows with their partners. Otherwise, if `n_anchors` is given, this number of pairs is drawn
        among the kept links. Otherwise, the anchors are the chosen pairs.
        """
        if self.refused:
            verdict, reason, held_out = self.refused
            return BootstrapResult(
                (), 0, (), history, held_out.mean, held_out.null, verdict, reason, promised=precision
            )
        X = self.X
        Y = self.Y
        seeds = self.seeds
        n_seeds = self.seeds.shape[1]
        rows, others = np.hstack([chosen, seeds])
        rotation = rotation_between(X[rows], Y[others])
        matching = match_csls(unit_rows(X @ rotation), Y, self.settings["k"])
        if partners_of is not None:
            others = matching.partner[partners_of]
            others[:n_seeds] = seeds[1]
            chosen = np.stack([partners_of, others])
        links, right = rank_links(X, Y, matching, seeds, **self.settings)
        if self.linked and np.count_nonzero(right >= _CERTAIN) < _FEWEST_UNSEEDED * min(len(X), len(Y)):
            right = np.zeros_like(right)
        verdict, reason, held_out = self.judge(links[:, right >= _CERTAIN])
        if verdict == "not found" and n_seeds >= PAIRED:
            rotation = map_from_pairs(X, Y, seeds, self.random_state)
        certain = np.r_[np.ones(n_seeds), right * (verdict == "linked")]
        pairs = np.hstack([seeds, links])
        n_kept = np.count_nonzero(certain >= precision)
        if self.linked and not n_kept:
            reason += f" But no set of links is {100 * precision:g} % right: most rows may have no partner."
        elif verdict == "linked" and n_kept == n_seeds:
            verdict = "cannot tell"
            reason = f"{reason} But no set of links is {100 * precision:g} % right."
        if n_anchors is not None:
            drawn = np.random.default_rng(self.random_state).permutation(np.arange(n_seeds, n_kept))
            chosen = np.hstack([seeds, pairs[:, drawn[: max(n_anchors - n_seeds, 0)]]])
        return BootstrapResult(
            self.ids(chosen),
            n_seeds,
            self.ids(pairs),
            history,
            held_out.mean,
            held_out.null,
            verdict,
            reason,
            vectors,
            precision=certain,
            promised=precision,
            rotation=rotation,
        )

    def judge(self, links: np.ndarray) -> tuple[str, str, HeldOut]:
        """The verdict, its reason and its evidence. The spaces are linked if fits without some of the rows
        find the `links` of these rows again (`fit_held_out`).

        "not found" does not prove that the spaces have nothing in common. A proof would need a control: two
        spaces that are as hard to link, but whose true pairs are known.
        """
        if self.linked:
            return self.judge_linked(self.linked)
        rows, targets = self.stages(self.seeds[0])[0]
        if len(rows) > MOST_ROWS:
            keys = row_keys(self.source.ids[rows], "judged", self.random_state)
            keys[np.isin(rows, self.seeds[0])] = -1  # sort seeds first, so that the cut keeps all seeds
            rows = np.sort(rows[np.argsort(keys)[:MOST_ROWS]])
        seeds = np.stack([np.searchsorted(rows, self.seeds[0]), np.searchsorted(targets, self.seeds[1])])
        X = self.X[rows]
        Y = self.Y[targets]
        n_seeds = len(seeds[0])
        if (n_free := len(X) - n_seeds) < _FEWEST:
            none = HeldOut(float("nan"), float("nan"), (), 0, float("nan"))
            reason = (
                f"Too few rows to tell: {_FEWEST} are needed beside the known pairs, but there are {n_free}."
            )
            return "cannot tell", reason, none
        links = links[:, np.isin(links[0], rows) & np.isin(links[1], targets)]
        links = np.stack([np.searchsorted(rows, links[0]), np.searchsorted(targets, links[1])])
        held_out = fit_held_out(X, Y, seeds, self.source.ids[rows], links, **self.settings)
        scores = held_out.in_words
        if held_out.linked:
            return "linked", f"{scores[0].upper()}{scores[1:]}.", held_out
        if not n_seeds:
            return "not found", self._not_found(scores), held_out
        p = chance_of_agreement(X[seeds[0]], Y[seeds[1]], self.random_state)
        advice = "do not clearly agree either{}: check that the pairs are right"
        if p < 0.05:
            advice = "agree{}, so there is common structure, and more known pairs may help"
        advice = advice.format(f" (permutation test, p = {short(p, 3)})")
        reason = f"With {n_seeds} known pairs, {scores}. The similarities among the known pairs {advice}."
        return "not found", reason, held_out

    def judge_linked(self, linked: ClusterFit) -> tuple[str, str, HeldOut]:
        """The verdict, its reason and its evidence. The spaces are linked if fits on disjoint halves of the
        rows agree. The evidence is the mean CSLS of rows that neither half contains.
        """
        k = self.settings["k"]
        rng = np.random.default_rng((self.random_state, 1))
        every, *others = (
            match_csls(unit_rows(rows @ linked.half), self.Y, k).similarity
            for rows in (linked.held_out, *_without_partners(self.X, linked.held_out, rng))
        )
        error = float(every.std(ddof=1)) / np.sqrt(len(every))
        null = tuple(float(each.mean()) for each in others)
        found = HeldOut(float(every.mean()), error, null, len(every), float("nan"))
        scores = (
            f"two independent fits of {found.n:,} held-out rows have a mean cosine of"
            f" {short(linked.agreement)} (needed: above {short(linked.chance)}, the chance level) and put"
            f" {percent(linked.same)} of them in the same place (needed: {percent(SAME)})"
        )
        if linked.agrees:
            return "linked", f"T{scores[1:]}.", found
        return "not found", self._not_found(scores), found

    def _not_found(self, scores: str) -> str:
        more = ""
        if min(len(self.X), len(self.Y)) < ENOUGH:
            more = f", or {ENOUGH:,} rows of each space"
        return f"Without known pairs, {scores}. Give 15–30 pairs{more}."

    def stages(self, wanted: np.ndarray) -> list[Stage]:
        """The stages of self-learning. The last stage uses all rows except those that equal the mean. If
        spaces are large and have counts, such as word frequencies, an earlier stage uses only the most
        frequent rows, the seeds and the `wanted` rows.
        """
        alive = tuple(np.flatnonzero(np.einsum("ij,ij->i", rows, rows) > 0) for rows in (self.X, self.Y))
        spaces = self.source, self.target
        if any(space.counts is None for space in spaces) or max(map(len, alive)) <= MOST_ROWS:
            return [alive]
        also = np.r_[self.seeds[0], wanted][: MOST_ROWS // 4], self.seeds[1][: MOST_ROWS // 4]
        first = []
        for space, rows, more in zip(spaces, alive, also, strict=True):
            frequent = rows[np.argsort(-space.counts[rows], kind="stable")[: MOST_ROWS - len(more)]]
            first.append(np.union1d(frequent, more))
        return [tuple(first), alive]


def _checked_seeds(seeds: Sequence[tuple[str, str]], source: LatentSpace, target: LatentSpace) -> np.ndarray:
    need_sequence("seeds", seeds, "pairs of (source id, target id)")
    for one in seeds:
        if not isinstance(one, Sequence | np.ndarray) or isinstance(one, str) or len(one) != 2:
            raise SpaceError(f"seeds: expected pairs of (source id, target id), got {one!r:.40}")
    seeds = list(dict.fromkeys(map(tuple, seeds)))
    if 0 < len(seeds) < 3:
        raise SpaceError(
            f"seeds: expected none, or three pairs or more, got {len(seeds)}; give more, or start without"
            " seeds"
        )
    rows = []
    for side, space in enumerate((source, target)):
        ids = [pair[side] for pair in seeds]
        twice = next((identifier for identifier in ids if ids.count(identifier) > 1), None)
        if twice is not None:
            partners = quote([pair[1 - side] for pair in seeds if pair[side] == twice])
            raise SpaceError(
                f"seeds: expected one partner an id, got {quote([twice])} with {partners}; keep one of these"
                " pairs"
            )
        try:
            rows.append(space.rows(ids))
        except SpaceError as error:
            raise SpaceError(
                f"seeds: {error}; the first of a pair is an id of the source, the second of the target"
            ) from error
        if zero := [ids[place] for place in np.flatnonzero(space.norms[rows[-1]] == 0)]:
            raise SpaceError(f"seeds: {quote(zero[:3])} are zero vectors in {space.name!r}: choose others")
    return np.stack(rows).astype(np.int64)


def share_found(result: BootstrapResult, truth: Mapping[str, str]) -> float:
    pairs = result.anchors[result.n_seeds :]
    if pairs:
        return float(np.mean([truth.get(own) == other for own, other in pairs]))
    return float("nan")
