"""Link two spaces without known pairs, by matching their clusters. All methods of linking use the rotations
and matchings that are defined here. CSLS is the similarity that `Matching` defines.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import NamedTuple

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import mean_row, unit_rows
from relcore.engine.both_ways import best_both_ways, crowding, mean_of_nearest
from relcore.engine.engine import Engine

# more RESTARTS find no better anchors
CLUSTERS = 20
CLUSTERINGS = 30
RESTARTS = 4
CLUSTERED_ROWS = 5000  # maximum number of rows in a clustering; of more, each clustering draws a sample
_BEST = 0.1  # share of the matched pairs of clusterings that are kept, those with the best `assign` values
_TRIMMED = 10  # number of rounds; each keeps the half of the matched clusterings that fits one rotation best
NEAREST = 50
# numbers of rows of the source and of the target in a round
ROWS = 1000
TARGETS = 4000


def rotation_between(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """The rotation (d_source, d_target) by orthogonal Procrustes that maps source rows to their paired target
    rows, without shift or scale. It maps directions outside the span of the rows to zero."""
    if weights is None:
        weighted = source
    else:
        weighted = source * weights[:, None]
    left, singular_values, right = Engine().svd(Engine().product(weighted.T, target))
    rank = np.count_nonzero(singular_values > 1e-6 * singular_values[0])
    return (left[:, :rank] @ right[:rank]).astype(np.float32)


def orthogonal(mapping: np.ndarray) -> np.ndarray:
    """The rotation (d, e) nearest to a mapping (d, e)."""
    return Engine().rotation(mapping)[0].astype(np.float32)


def assign(
    A: np.ndarray, others: np.ndarray, rng: np.random.Generator, restarts: int = RESTARTS
) -> tuple[np.ndarray, np.ndarray]:
    """Solve the quadratic assignment problem approximately: for each matrix B in `others` (m, c, c), find the
    order p of its rows and columns that makes it most similar to the symmetric matrix A (c, c). Returns the
    best orders p (m, c) and their sums Σ A[i, j] B[p[i], p[j]] (m,).

    Random orders are improved by the best swap of two places until no swap helps. For many matrices at once,
    this takes a hundredth of the time of SciPy's 2opt.
    """
    diagonal = np.arange(len(A))
    B = np.repeat(others, restarts, axis=0)
    order = np.stack([rng.permutation(len(A)) for _ in B])
    spread = A[diagonal, diagonal][:, None] + A[diagonal, diagonal] - 2 * A
    values = np.empty(len(B))
    moving = np.arange(len(B))
    while len(moving):
        permuted = B[moving[:, None, None], order[moving][:, :, None], order[moving][:, None, :]]
        products = A @ permuted
        own = products[:, diagonal, diagonal]
        of_b = permuted[:, diagonal, diagonal]
        values[moving] = own.sum(axis=1)
        gain = 2 * (products + products.transpose(0, 2, 1) - own[:, :, None] - own[:, None, :])
        gain += spread * (of_b[:, :, None] + of_b[:, None, :] - 2 * permuted)
        gain = gain.reshape(len(moving), -1)
        best = gain.argmax(axis=1)
        better = gain[np.arange(len(moving)), best] > 1e-9
        moving = moving[better]
        (i, j) = np.divmod(best[better], len(A))
        order[moving, i], order[moving, j] = order[moving, j], order[moving, i]
    chosen = values.reshape(-1, restarts).argmax(axis=1) + restarts * np.arange(len(others))
    return order[chosen], values[chosen]


def cluster_anchors(X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    """Find anchors that are approximately parallel: the matched centroids of clusters, as unit rows (a, d)
    and (a, e).

    The method follows mini-vec2vec (Dar 2025): cluster both spaces many times, and match the centroids of two
    clusterings by their similarities. The paper matches each clustering with a single clustering of the other
    space. Here it is matched with all of them, because `assign` is fast. The best matches are kept, and among
    these the half that fits a common rotation best.
    """
    centroids = [[_centroids(rows, rng) for _ in range(CLUSTERINGS)] for rows in (X, Y)]
    kernels = [np.stack([_kernel(one) for one in clusterings]) for clusterings in centroids]
    matches = [
        (order, value, i, j)
        for i, first in enumerate(kernels[0])
        for j, (order, value) in enumerate(zip(*assign(first, kernels[1], rng), strict=True))
    ]
    matches.sort(key=lambda match: -match[1])
    matches = matches[: round(_BEST * len(matches))]
    sources = unit_rows(np.concatenate([centroids[0][i] for *_, i, _ in matches]))
    targets = unit_rows(np.concatenate([centroids[1][j][order] for order, *_, j in matches]))
    kept = np.full(len(sources), True)
    for _ in range(_TRIMMED):
        rotation = rotation_between(sources[kept], targets[kept])
        fit = np.vecdot(unit_rows(sources @ rotation), targets).reshape(len(matches), -1).mean(axis=1)
        kept = np.repeat(fit >= np.median(fit), sources.shape[0] // len(matches))
    return sources[kept], targets[kept]


def _centroids(rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    from sklearn.cluster import KMeans

    if len(rows) > CLUSTERED_ROWS:
        rows = rows[rng.choice(len(rows), CLUSTERED_ROWS, replace=False)]
    settings = {"init": "random", "n_init": 1, "max_iter": 20, "random_state": int(rng.integers(2**31))}
    return KMeans(min(CLUSTERS, len(rows)), **settings).fit(rows).cluster_centers_


def _kernel(centroids: np.ndarray) -> np.ndarray:
    centred = (centroids - centroids.mean(axis=0)).astype(np.float64)
    products = centred @ centred.T
    return products / max(np.linalg.norm(products), np.finfo(np.float64).tiny)


def first_rotation_without_pairs(X: np.ndarray, Y: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    """The rotation (d, e) that best maps each row of X to the mean of its nearest rows of Y. These are the
    rows whose similarities to the `cluster_anchors` are most like its own.

    To compute similarities, long axes are first shortened (`_flattening`). Sentences vary mostly along a few
    axes; without this step, more clusters would be matched wrongly.
    """
    flat_X = unit_rows(X @ _flattening(X))
    flat_Y = unit_rows(Y @ _flattening(Y))
    (anchors_X, anchors_Y) = cluster_anchors(flat_X, flat_Y, rng)
    first = flat_X @ anchors_X.T
    second = flat_Y @ anchors_Y.T
    first = unit_rows(first, mean_row(first))
    second = unit_rows(second, mean_row(second))
    return rotation_between(X, _near(first, second, Y))


def _near(queries: np.ndarray, keys: np.ndarray, values: np.ndarray) -> np.ndarray:
    """For each query (n, d), the mean of the values (m, e) whose keys (m, d) are nearest to the query, scaled
    to length 1: an array (n, e).
    """
    return mean_of_nearest(queries, keys, values, min(NEAREST, max(1, len(keys) // 20)))


def damped_rounds(
    X: np.ndarray, Y: np.ndarray, mapping: np.ndarray, rng: np.random.Generator
) -> Iterator[np.ndarray]:
    """Refine a mapping (d, e), and yield the mapping after each round, without end. A round maps random rows,
    finds their nearest rows of Y, and fits a rotation to the means of these. The next mapping is the mean of
    the last mapping and this rotation, so directions on which rounds disagree shrink.
    """
    while True:
        rows = X[rng.choice(len(X), min(ROWS, len(X)), replace=False)]
        targets = Y[rng.choice(len(Y), min(TARGETS, len(Y)), replace=False)]
        mapping = (mapping + rotation_between(rows, _near(unit_rows(rows @ mapping), targets, targets))) / 2
        yield mapping


FEWEST_CLUSTERED_ROWS = 1000  # minimum number of rows of each space, so that each half has 500
ENOUGH = 4000  # number of rows with which most pairs of similar models can be linked, see docs/link.md
STARTS = 4
FIRST_ROUNDS = 20
HALF_ROUNDS = 200
LAST_ROUNDS = 30
# Number of rounds between two checks of the agreement; minimum gain with which the search continues.
_LOOKED_AT = 10
_STALLED = 0.005
LINK_ROUNDS = 2 * STARTS * FIRST_ROUNDS + HALF_ROUNDS + LAST_ROUNDS + 1
_PROMISING = 0.15
_CHANCE_DRAWS = 10_000
_LEVEL = 0.999
SAME = 0.75
_JUDGED_ROWS = 1000


class ClusterFit(NamedTuple):
    """A `mapping` (d, e) between spaces that was found without known pairs, and the evidence that it is
    right.

    Two fits use disjoint halves of the rows that are not `held_out` (h, d). `agreement` is the mean cosine,
    −1 … 1, between a held-out row mapped by the first fit and the same row mapped by the second; NaN until
    both exist. If both fits find the right axes but random signs, `agreement` is above `chance` in one of
    1,000 cases. `same` is the share of the held-out rows, 0 … 1, for which these two mapped rows are nearest
    to each other. `half` is the mapping of the first fit.

    `same` is needed because fits with random signs exceed `chance` if the signs of the few long axes agree.
    On words and sentences, at most one in four of such fits also has a `same` of .75 or more. For unrelated
    or wrongly matched spaces, `same` was at most .12. Spaces that share 20 clusters but nothing within the
    clusters are wrongly linked; their `same` was .83 ("outline" in benchmarks/link_rates.py).
    """

    mapping: np.ndarray
    agreement: float
    chance: float
    half: np.ndarray
    held_out: np.ndarray
    same: float = 0.0

    @property
    def agrees(self) -> bool:
        return self.agreement > self.chance and self.same >= SAME


def link_clusters(X: np.ndarray, Y: np.ndarray, random_state: int = 0) -> Iterator[ClusterFit]:
    """Link the rows X (n, d) and Y (m, e) by clusters, and yield the fit after each round. Two fits on halves
    of the rows are tried from up to four starts, until both agree. The last rounds then fit all rows.

    Not every row needs a partner in the other space.
    """
    rng = np.random.default_rng((random_state, 5))
    held_out, *halves_x = _split(X, rng)
    halves = list(zip(halves_x, _split(Y, rng)[1:], strict=True))
    # The chance level of the agreement: right axes with random signs.
    spread = Engine().eigh(X.T @ X)[0] / len(X)
    chance = float(np.quantile(rng.choice((-1.0, 1.0), (_CHANCE_DRAWS, len(spread))) @ spread, _LEVEL))
    agreement = float("nan")
    rounds_left = HALF_ROUNDS
    fits: list[list[np.ndarray]] = [[], []]
    for _ in range(STARTS):
        for half, own in zip(halves, fits, strict=True):
            rounds = damped_rounds(*half, first_rotation_without_pairs(*half, rng), rng)
            for mapping in islice(rounds, FIRST_ROUNDS):
                yield ClusterFit(mapping, agreement, chance, mapping, held_out)
            own.append(mapping)
        cosines = np.array([[_agreement(held_out, one, other) for other in fits[1]] for one in fits[0]])
        agreement = float(cosines.max())
        places = divmod(int(cosines.argmax()), len(fits[1]))
        both = [own[place] for own, place in zip(fits, places, strict=True)]
        while agreement > _PROMISING and rounds_left > 0:
            for _ in range(_LOOKED_AT):
                both = [next(damped_rounds(*half, fit, rng)) for half, fit in zip(halves, both, strict=True)]
                yield ClusterFit(both[0], agreement, chance, both[0], held_out)
            rounds_left -= _LOOKED_AT
            before = agreement
            agreement = _agreement(held_out, *both)
            if agreement - before < _STALLED:
                break
        for own, place, fit in zip(fits, places, both, strict=True):
            own[place] = fit
        same = _share_in_place(held_out, *both)
        linked = ClusterFit(orthogonal(both[0] + both[1]), agreement, chance, both[0], held_out, same)
        if linked.agrees:
            break
    for mapping in islice(damped_rounds(X, Y, linked.mapping, rng), LAST_ROUNDS * linked.agrees):
        linked = linked._replace(mapping=mapping)
        yield linked
    yield linked._replace(mapping=orthogonal(linked.mapping))


def _split(rows: np.ndarray, rng: np.random.Generator) -> list[np.ndarray]:
    """Held-out rows (at most a tenth of the rows), and two halves of the other rows."""
    order = rng.permutation(len(rows))
    n_held_out = min(_JUDGED_ROWS, len(rows) // 10)
    return [rows[part] for part in (order[:n_held_out], order[n_held_out::2], order[n_held_out + 1 :: 2])]


def _share_in_place(rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    nearest = (unit_rows(rows @ first) @ unit_rows(rows @ second).T).argmax(axis=1)
    return float(np.mean(nearest == np.arange(len(rows))))


def _agreement(rows: np.ndarray, first: np.ndarray, second: np.ndarray) -> float:
    return float(np.vecdot(unit_rows(rows @ first), unit_rows(rows @ second)).mean(dtype=np.float64))


PAIRED = 10
PAIRED_NEAREST = 5
PAIRED_CROWDING = 10
PAIRED_WEIGHT = 10.0
FOLDS = 3
PAIRED_ROUNDS = 40
FOLD_ROUNDS = 20
_MANY = 100
_FLATTER = 0.2  # exponent of the covariance, negated; .15 to .25 are equally good, .5 fails
_RIDGE = 0.1  # λ of the whitening


def map_from_pairs(X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, random_state: int = 0) -> np.ndarray:
    """A linear mapping (d, e), fitted on at least 10 known pairs (2, p) and on the unpaired rows of X and Y.

    First the long axes of the source are shortened, which improves the result with any number of pairs. Then
    two maps are fitted. The first uses only the pairs: it encodes rows as whitened relative representations
    (similarities to the paired rows, decorrelated), and decodes these in the target. The second uses unpaired
    rows as well. It matches rows by whitened relative representations, and fits a rotation of each row onto
    the mean of its five best matches by CSLS. This is repeated in damped rounds, where a known pair counts
    ten times.

    Cross-validation on the pairs chooses one of the two maps or their sum, by the mean reciprocal rank of
    partners among all rows. With fewer than 100 pairs, the second map is chosen unless another one is better
    by more than a standard error.
    """
    rng = np.random.default_rng((random_state, 6))
    fewer = np.arange(pairs.shape[1]) % FOLDS
    flatter = _flattening(X)
    X = unit_rows(X @ flatter)
    ranks: list[list[float]] = [[], [], []]
    rest = Y[np.setdiff1d(np.arange(len(Y)), pairs[1])]
    for fold in rng.permutation(FOLDS):
        held_out = pairs[:, fewer == fold]
        candidates = _candidates(X, Y, pairs[:, fewer != fold], rng, FOLD_ROUNDS)
        for place, mapping in enumerate(candidates):
            mapped = unit_rows(X[held_out[0]] @ mapping)
            own = np.vecdot(mapped, Y[held_out[1]])
            ranks[place] += (1 / (1 + np.count_nonzero(mapped @ rest.T > own[:, None], axis=1))).tolist()
    lead = np.array(ranks) - ranks[-1]  # gain over the second map, which is the last one
    error = np.zeros(len(lead))  # with many pairs, the highest mean decides
    if pairs.shape[1] < _MANY:
        error = lead.std(axis=1) / np.sqrt(pairs.shape[1])
    return flatter @ _candidates(X, Y, pairs, rng, PAIRED_ROUNDS)[int((lead.mean(axis=1) - error).argmax())]


def _flattening(X: np.ndarray) -> np.ndarray:
    """The covariance of X (n, d) to the power −.2, which shortens long axes: a matrix (d, d)."""
    spread, axes = Engine().eigh(X.T @ X)
    spread = np.maximum(spread, 0) + 1e-3 * spread[-1]
    return (axes * spread**-_FLATTER @ axes.T).astype(np.float32)


def _candidates(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray, rng: np.random.Generator, rounds: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The three mappings of `map_from_pairs`: the first map, the sum, and the second map."""
    first = X[pairs[0]]
    second = Y[pairs[1]]
    # The whitened projection Aᵀ (A Aᵀ + λ)^(−1/2) (d, k) of unit anchors A (k, d).
    bases = [Engine().shrunk(one, _RIDGE, -0.5)[0].T.astype(np.float32) for one in (first, second)]
    alone = bases[0] @ bases[1].T
    rows = X[np.setdiff1d(np.arange(len(X)), pairs[0])]
    targets = Y[np.setdiff1d(np.arange(len(Y)), pairs[1])]
    if min(len(rows), len(targets)) == 0:
        return alone, alone, alone
    weights = np.r_[np.ones(min(ROWS, len(rows))), np.full(len(first), PAIRED_WEIGHT)].astype(np.float32)
    mapping = None
    for _ in range(rounds):
        own = rows[rng.choice(len(rows), min(ROWS, len(rows)), replace=False)]
        other = targets[rng.choice(len(targets), min(TARGETS, len(targets)), replace=False)]
        if mapping is None:
            queries = unit_rows(own @ bases[0])
            keys = unit_rows(other @ bases[1])
        else:
            queries = unit_rows(own @ mapping)
            keys = other
        few = min(len(own), len(other))
        near = mean_of_nearest(queries, keys, other, min(PAIRED_NEAREST, few), min(PAIRED_CROWDING, few))
        turned = rotation_between(np.concatenate([own, first]), np.concatenate([near, second]), weights)
        if mapping is None:
            mapping = turned
        else:
            mapping = (mapping + turned) / 2
    assert mapping is not None, "at least one round is made"
    return alone, alone / np.linalg.norm(alone) + mapping / np.linalg.norm(mapping), mapping


ASSIGNED_BYTES = 64 * 2**20  # maximum number of bytes of a block of similarities
Stage = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Matching:
    """The best match of every source row by CSLS, a cosine that is corrected for rows with many near
    neighbours. `partner` (n,) is the target row with the largest CSLS, and `similarity` (n,) this CSLS, −4 …
    4.

    CSLS is 2 cos(x, y) − r(x) − r(y), where r is the mean cosine of a row to the k nearest rows of the other
    space. `mutual` are the source rows that are in turn the best match of their partner. `crowding` has r of
    the source rows and r of the target rows. `best` has the largest CSLS of every target row.
    """

    partner: np.ndarray
    similarity: np.ndarray
    mutual: np.ndarray
    crowding: tuple[np.ndarray, np.ndarray]
    best: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        return np.stack([self.mutual, self.partner[self.mutual]])

    @property
    def mean(self) -> float:
        return float(self.similarity.mean(dtype=np.float64))


def match_csls(
    source: np.ndarray,
    target: np.ndarray,
    k: int = 10,
    *,
    keep: float = 1.0,
    rng: np.random.Generator | None = None,
) -> Matching:
    """Match unit rows (n, d) with unit rows (m, d) by CSLS (Conneau et al. 2018, eq. 3), in blocks.

    If `keep` is below 1, each cosine is kept with this probability. This helps self-learning to escape a poor
    start (Artetxe et al. 2018).
    """
    if k < 1:
        raise SpaceError(f"k: expected 1 or more neighbours, got {k}")
    crowded = crowding(source, target, k)
    crowding_source, crowding_target = crowded
    # With two more columns, each product is half the CSLS.
    source = np.column_stack([source, np.ones(len(source), np.float32), -crowding_source / 2])
    target = np.column_stack([target, -crowding_target / 2, np.ones(len(target), np.float32)])
    left_out = None
    if keep < 1:

        def left_out(shape: tuple[int, ...]) -> np.ndarray:
            assert rng is not None, "cosines are left out at random"
            return rng.random(shape, dtype=np.float32) >= keep

    partner, best, best_of_target = best_both_ways(source, target, left_out)
    # Both directions read the same products, so equal pairs have exactly equal values.
    chosen = np.flatnonzero((best == best_of_target[partner]) & np.isfinite(best))
    # Keep the first of equal rows, which have equal values.
    _, first = np.unique(partner[chosen], return_index=True)
    return Matching(partner, 2 * best, np.sort(chosen[first]), crowded, 2 * best_of_target)
