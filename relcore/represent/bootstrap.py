"""bootstrap_anchors: parallel anchors from a few known pairs, or none. Pairs are row numbers (2, m), sources
first.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.libraries import extra
from relcore.base.numbers import band, short
from relcore.represent.similarity import mean_row, row_blocks, unit_rows
from relcore.spaces.space import LatentSpace, Split, row_keys

BLOCK_BYTES = 64 * 2**20  # one block of similarities; two are never alive at once
Stage = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Matching:
    """Of every source row the best `partner` (n,) by CSLS and its `similarity` (n,) float32, −4 … 4.

    CSLS is 2 cos(x, y) − r(x) − r(y), r the mean cosine to the k nearest rows of the other space. Partners of
    the `mutual` rows (m,) choose them in turn.
    """

    partner: np.ndarray
    similarity: np.ndarray
    mutual: np.ndarray

    @property
    def pairs(self) -> np.ndarray:
        return np.stack([self.mutual, self.partner[self.mutual]])

    @property
    def mean(self) -> float:
        """Mean CSLS of all rows: the objective of self-learning."""
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

    Below `keep` = 1 each cosine takes part with that probability only, which helps self-learning to leave a
    poor start (Artetxe et al. 2018).
    """
    if k < 1:
        raise SpaceError(f"k: expected 1 or more neighbours, got {k}")
    crowding_source, crowding_target = crowding(source, target, k)
    # With two more columns the product itself is half the CSLS.
    source = np.column_stack([source, np.ones(len(source), np.float32), -crowding_source / 2])
    target = np.column_stack([target, -crowding_target / 2, np.ones(len(target), np.float32)])
    partner = np.empty(len(source), dtype=np.int64)
    best = np.empty(len(source), dtype=np.float32)
    best_of_target = np.full(len(target), -np.inf, dtype=np.float32)
    for block, cosines in _products(source, target):
        if keep < 1:
            cosines[rng.random(cosines.shape, dtype=np.float32) >= keep] = -np.inf
        partner[block] = cosines.argmax(axis=1)
        best[block] = np.take_along_axis(cosines, partner[block, None], axis=1)[:, 0]
        np.maximum(best_of_target, cosines.max(axis=0), out=best_of_target)
    # Both sides read the same product, so equality is exact.
    chosen = np.flatnonzero((best == best_of_target[partner]) & np.isfinite(best))
    _, first = np.unique(partner[chosen], return_index=True)  # of equal rows, which tie, the first
    return Matching(partner, 2 * best, np.sort(chosen[first]))


def crowding(source: np.ndarray, target: np.ndarray, k: int = 10) -> tuple[np.ndarray, np.ndarray]:
    """Mean cosine of every row to its k nearest rows of the other space, (n,) and (m,) float32.

    Exact, and faster than a partial sort: maxima of groups bound the k nearest, and few values reach the
    bound.
    """
    k_rows, k_columns = min(k, len(target)), min(k, len(source))
    bound = np.full((k_columns, len(target)), -np.inf, dtype=np.float32)  # largest maxima of each column yet
    row_parts, column_parts = [], []
    for block, cosines in _products(source, target):
        reached = np.partition(_group_maxima(cosines, k_rows), -k_rows, axis=1)[:, -k_rows, None]
        bound = np.sort(np.concatenate([bound, _group_maxima(cosines.T, k_columns).T]), axis=0)[-k_columns:]
        for parts, least in ((row_parts, reached), (column_parts, bound[0])):
            # A flat search and a division take a quarter of the time of np.nonzero.
            rows, columns = np.divmod(np.flatnonzero(cosines >= least), len(target))
            parts.append((rows + block.start if parts is row_parts else columns, cosines[rows, columns]))
    return _top_means(row_parts, len(source), k_rows), _top_means(column_parts, len(target), k_columns)


def _products(source: np.ndarray, target: np.ndarray) -> Iterator[tuple[slice, np.ndarray]]:
    """Blocks of rows with their products (b, m), in one reused buffer."""
    size = max(1, min(len(source), BLOCK_BYTES // (4 * len(target))))
    buffer = np.empty((size, len(target)), dtype=np.float32)
    for block in row_blocks(len(source), size):
        yield block, np.matmul(source[block], target.T, out=buffer[: block.stop - block.start])


def _group_maxima(cosines: np.ndarray, k: int) -> np.ndarray:
    size = max(1, min(50, cosines.shape[1] // (4 * k)))
    whole = cosines.shape[1] // size * size
    maxima = cosines[:, :whole].reshape(len(cosines), -1, size).max(axis=2)
    if whole < cosines.shape[1]:
        maxima = np.column_stack([maxima, cosines[:, whole:].max(axis=1)])
    return maxima


def _top_means(parts: list[tuple[np.ndarray, np.ndarray]], n: int, k: int) -> np.ndarray:
    """Mean of the k largest values of each owner, (n,) float32."""
    owners, values = (np.concatenate(column) for column in zip(*parts, strict=True))
    order = np.lexsort((-values, owners))
    places = np.searchsorted(owners[order], np.arange(n))[:, None] + np.arange(k)
    return values[order][places].mean(axis=1, dtype=np.float64).astype(np.float32)


# Self-learning: rotate by a few pairs, match more pairs, and repeat (Artetxe et al. 2017).

MOST_ROWS = 4000  # of the first stage, and without seeds
FIRST_KEEP = 0.1
SEED_WEIGHT = 5.0  # one known pair counts as much as five that were matched
STALLED = 1e-3  # a gain of the mean CSLS below this is none
MOST_ROUNDS, MOST_ROUNDS_UNSEEDED = 15, 60


class SchedulePlace(NamedTuple):
    """The position of self-learning: stage, rounds done in it, share of similarities that take part, best
    mean CSLS.
    """

    stage: int = 0
    done: int = 0
    keep: float = 1.0
    best: float | None = None

    def after(self, mean: float, most_rounds: int) -> SchedulePlace:
        """The place after a round of this mean CSLS; a round without gain doubles the share."""
        stalled = self.best is not None and mean - self.best < STALLED
        keep = min(1.0, 2 * self.keep) if stalled else self.keep
        if (stalled and self.keep >= 1) or self.done + 1 == most_rounds:
            return SchedulePlace(self.stage + 1, 0, keep)
        best = None if stalled else max(mean, mean if self.best is None else self.best)
        return SchedulePlace(self.stage, self.done + 1, keep, best)


def rotation_between(source: np.ndarray, target: np.ndarray, weights: np.ndarray | None = None) -> np.ndarray:
    """Orthogonal Procrustes of paired rows, without shift or scale: (d_source, d_target), zero outside their
    span.
    """
    weighted = source if weights is None else source * weights[:, None]
    left, singular_values, right = np.linalg.svd(weighted.T.astype(np.float64) @ target, full_matrices=False)
    rank = np.count_nonzero(singular_values > 1e-6 * singular_values[0])
    return (left[:, :rank] @ right[:rank]).astype(np.float32)


def first_rotation(
    source: np.ndarray, target: np.ndarray, seeds: np.ndarray, stage: Stage, k: int = 10
) -> tuple[np.ndarray, SchedulePlace]:
    """From the seeds, or without seeds from similarities within each space (Artetxe et al. 2018, § 3.2).

    A row's sorted similarities to its own space do not depend on the axes, so rows with like profiles match.
    """
    if len(seeds[0]):
        return rotation_between(source[seeds[0]], target[seeds[1]]), SchedulePlace()
    X, Y = source[stage[0]], target[stage[1]]
    if max(len(X), len(Y)) > MOST_ROWS:
        raise SpaceError(
            f"no seeds: expected at most {MOST_ROWS:,} rows to begin with, got {max(len(X), len(Y)):,}; give"
            " seeds, or spaces with counts, so that the most frequent rows are known"
        )
    n = min(len(X), len(Y))
    rows, others = match_csls(_profile(X, n), _profile(Y, n), k).pairs
    return rotation_between(X[rows], Y[others]), SchedulePlace(keep=FIRST_KEEP)


def _profile(X: np.ndarray, n: int) -> np.ndarray:
    """Sorted rows of the root of X Xᵀ at n even places, centred and of length 1: (rows, n)."""
    left, singular_values, _ = np.linalg.svd(X, full_matrices=False)
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
    place: SchedulePlace,
) -> Iterator[tuple[SchedulePlace, np.ndarray, Stage, Matching]]:
    """Rounds over each stage, of unit rows (n, d_source) and (m, d_target), until the mean CSLS stops rising.

    Match by CSLS, keep the mutual pairs, add the weighted seeds, rotate again. Yields the next round's place
    and rotation, from which it resumes exactly, the stage that was matched, and its matching.
    """
    most_rounds = MOST_ROUNDS if len(seeds[0]) else MOST_ROUNDS_UNSEEDED
    while place.stage < len(stages):
        stage = stages[place.stage]
        rng = np.random.default_rng((random_state, place.stage, place.done + 1)) if place.keep < 1 else None
        matching = match_csls(
            unit_rows(source[stage[0]] @ rotation), target[stage[1]], k, keep=place.keep, rng=rng
        )
        rows, others = np.hstack([_whole(stage, matching.pairs), seeds])
        weights = np.ones(len(rows), dtype=np.float32)
        weights[len(matching.mutual) :] = SEED_WEIGHT
        rotation = rotation_between(source[rows], target[others], weights)
        place = place.after(matching.mean, most_rounds)
        yield place, rotation, stage, matching


def _whole(stage: Stage, pairs: np.ndarray) -> np.ndarray:
    return np.stack([stage[0][pairs[0]], stage[1][pairs[1]]])


STEPS = 250  # of Table 3, retrieval; stitching: 125
LEARNING_RATE = 0.02  # of Table 3, retrieval; stitching: .05


class LiteralStep(NamedTuple):
    """One step of Adam: the error before it; the unit anchors (k, d_target) after it, seeds first; the
    nearest target rows (k,); and the arrays to resume from.
    """

    loss: float
    vectors: np.ndarray
    nearest: np.ndarray
    state: Mapping[str, np.ndarray]


def optimise_anchors(
    source: np.ndarray,
    target: np.ndarray,
    anchors: np.ndarray,
    seeds: np.ndarray,
    *,
    steps: int = STEPS,
    learning_rate: float = LEARNING_RATE,
    random_state: int = 0,
    device: str = "auto",
    state: Mapping[str, np.ndarray] | None = None,
) -> Iterator[LiteralStep]:
    """Find target anchors for the source rows `anchors` (k,), of which the first have the target rows `seeds`
    (s,).

    Minimises equation 1 over the unit vectors Ã by Adam: the mean squared error between E(y) Ãᵀ and the
    relative row of Π(y), over the unit rows y of `target` (m, d_target). One Sinkhorn iteration per step
    gives every **target** row a row Π(y) of `source` (n, d_source).

    The free anchors begin as random directions b and stay on the unit sphere by a trivialisation (Casado
    2019): Adam moves tangent vectors v from 0, and the anchors are exp_b(v) = cos ‖v‖ b + sin ‖v‖ v / ‖v‖.
    The seeds stay fixed: the paper's text optimises them, too, which finds far fewer anchors.

    To resume give the `state` of the last finished step.
    """
    with extra():
        import torch

    device = ("cuda" if torch.cuda.is_available() else "cpu") if device == "auto" else device
    X, Y = (torch.from_numpy(np.ascontiguousarray(rows)).to(device) for rows in (source, target))
    known = Y[torch.from_numpy(seeds).to(device)]
    drawn = np.random.default_rng(random_state).normal(size=(len(anchors) - len(seeds), target.shape[1]))
    base = torch.from_numpy(unit_rows(drawn)).to(device)
    names = ("tangent", "first", "second", "step")
    begun = (state[name] for name in names) if state else (0 * drawn, 0 * drawn, 0 * drawn, np.array(0))
    tangent, first, second, step = (
        torch.tensor(np.array(array), dtype=torch.float32, device=device) for array in begun
    )
    optimiser = torch.optim.Adam([tangent.requires_grad_()], lr=learning_rate)
    if state:
        optimiser.state[tangent] = {"step": step.cpu(), "exp_avg": first, "exp_avg_sq": second}
    relative = X @ X[torch.from_numpy(anchors).to(device)].T
    for _ in range(int(step), steps):
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
        nearest[: len(seeds)] = torch.from_numpy(seeds).to(device)  # of equal rows the seed, not its twin
        moments = optimiser.state[tangent]
        saved = tangent, moments["exp_avg"], moments["exp_avg_sq"], moments["step"]
        copies = (tensor.detach().cpu().numpy().copy() for tensor in saved)
        after = dict(zip(names, copies, strict=True))
        yield LiteralStep(float(loss.detach()), now.cpu().numpy(), nearest.cpu().numpy(), after)


def on_sphere(base, tangent):
    """Exponential map of the unit sphere at `base` (k, d), torch, of the part of `tangent` across it."""
    import torch

    across = tangent - (tangent * base).sum(dim=1, keepdim=True) * base
    # The root of a sum has no gradient at 0, where all begin; the smallest float under it gives the limit.
    angle = (across.square().sum(dim=1, keepdim=True) + torch.finfo(across.dtype).tiny).sqrt()
    return torch.cos(angle) * base + torch.sinc(angle / torch.pi) * across


def hard_limit_assignment(source, target):
    """Row of `source` (n, k) for each row of `target` (m, k), torch: the largest of a transport plan's
    column.

    One Sinkhorn iteration with ε → 0 (published: 1e-4) on Euclidean distances M has the limit uᵢ = minⱼ Mᵢⱼ,
    vⱼ = minᵢ (Mᵢⱼ − uᵢ): the largest of column j is where Mᵢⱼ − uᵢ is smallest. M is never held.
    """
    import torch

    best = torch.full((len(target),), torch.inf, device=source.device)
    match = torch.zeros(len(target), dtype=torch.int64, device=source.device)
    for block in row_blocks(len(source), max(1, BLOCK_BYTES // (4 * len(target)))):
        excess = torch.cdist(source[block], target)
        excess -= excess.min(dim=1, keepdim=True).values
        least, row = excess.min(dim=0)
        better = least < best
        best, match = torch.where(better, least, best), torch.where(better, row + block.start, match)
    return match


# Do two spaces fit each other? Held-out rows compared with their chance level.

ABOVE_CHANCE = 0.02  # noisy rotations: below it less than a third of the matches is right
STANDARD_ERRORS = 4.0
AGREED = 1 / 3  # share of the anchors that a second fit must give, too
_HELD_OUT = 0.25
_FEWEST = 8  # rows that are no seeds: two for each of the four parts that are held out in turn
_FOLDED_ROWS = 400  # up to this number each row is held out once; of more, a quarter is enough
_DRAWS = 2  # of each of the two kinds of rows without a partner


class HeldOut(NamedTuple):
    """Mean CSLS of n held-out source rows, −4 … 4, with its standard error and that of rows without a partner
    (`null`); the first fit's rotation.
    """

    mean: float
    error: float
    null: tuple[float, ...]
    n: int
    rotation: np.ndarray

    @property
    def fits(self) -> bool:
        """Above every draw of the chance level by .02 and by four standard errors: 1 in 10,000 of noise."""
        return self.mean > max(self.null) + max(ABOVE_CHANCE, STANDARD_ERRORS * self.error)


def fit_held_out(
    X: np.ndarray, Y: np.ndarray, seeds: np.ndarray, ids: Sequence[str], *, k: int = 10, random_state: int = 0
) -> HeldOut:
    """Self-learn on three quarters of the source rows and all target rows, score the other quarter.

    A rotation always fits the rows that it was fitted to, so only held-out rows are informative. The chance
    level uses rows with the same spread: half of the draws permute each principal axis, half mirror axes with
    half of the spread or more. All unit rows; seeds are row numbers (2, s) and never held out.
    """
    rng = np.random.default_rng((random_state, 1))
    similarities, draws, rotations = [], [], []
    for train, test in _folds(np.asarray(ids, dtype=object), seeds[0], random_state):
        known = np.stack([np.searchsorted(train, seeds[0]), seeds[1]])
        stage, fold = (np.arange(len(train)), np.arange(len(Y))), X[train]
        begun, place = first_rotation(fold, Y, known, stage, k)
        settings = {"k": k, "random_state": random_state, "place": place}
        *_, (_, rotation, *_) = self_learn(fold, Y, begun, known, [stage], **settings)
        rotations.append(rotation)
        similarities.append(match_csls(unit_rows(X[test] @ rotation), Y, k).similarity)
        others = _without_partners(fold, X[test], rng)
        draws.append([match_csls(unit_rows(rows @ rotation), Y, k).mean for rows in others])
    every = np.concatenate(similarities)
    error = float(every.std(ddof=1)) / np.sqrt(len(every))
    null = tuple(np.average(draws, axis=0, weights=list(map(len, similarities))).tolist())
    return HeldOut(float(every.mean(dtype=np.float64)), error, null, len(every), rotations[0])


def structureless(X: np.ndarray, rng: np.random.Generator, basis: np.ndarray | None = None) -> np.ndarray:
    """Unit rows (n, d) with the spread of X along its axes, `basis` (d, d), each permuted by itself."""
    basis = _axes(X) if basis is None else basis
    return unit_rows(rng.permuted(X @ basis, axis=0) @ basis.T)


def _folds(ids: np.ndarray, seeds: np.ndarray, random_state: int) -> Iterator[tuple[np.ndarray, np.ndarray]]:
    """Rows to fit on and rows to score: all but the seeds in turn, or a quarter of many rows."""
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
        for _ in range(20):
            signs = rng.choice(np.array([-1, 1], dtype=np.float32), len(spread))
            if spread[signs < 0].sum() >= spread.sum() / 2:
                break
        else:
            signs = -np.ones(len(spread), dtype=np.float32)  # no draw mirrors enough: all axes
        yield (test @ basis * signs) @ basis.T


def _axes(X: np.ndarray) -> np.ndarray:
    """Principal axes of X, completed to (d, d), as columns."""
    return np.linalg.eigh((X.T @ X).astype(np.float64))[1].astype(np.float32)


METHODS = ("self-learning", "paper")
Pairs = tuple[tuple[str, str], ...]


@dataclass(frozen=True)
class Round:
    """One round: source rows that took part; pairs matched, or the paper's anchors; mean CSLS, or the paper's
    mean squared error; share of the hidden anchors that got their true partner, or NaN.
    """

    rows: int
    pairs: int
    objective: float
    found: float


@dataclass(frozen=True, eq=False)
class State:
    """What is needed to resume after a round; arrays and JSON values only."""

    arrays: Mapping[str, np.ndarray]
    numbers: Mapping[str, Any]
    history: tuple[Round, ...]


@dataclass(frozen=True, eq=False)
class BootstrapResult:
    """Parallel anchors and the verdict on them.

    Attributes
    ----------
    anchors : tuple of (source id, target id)
        The seeds first.
    pairs : tuple of (source id, target id)
        All matched rows, one to one, including seeds and anchors.
    held_out : float
        Mean CSLS of rows held out of a second fit, see `fit_held_out`.
    null : tuple of float
        The same score of rows without a partner.
    verdict : "fits", "nothing in common" or "cannot tell"
    reason : str
        The reason for the verdict, with its numbers.
    vectors : array (n_anchors, d_target), optional
        The paper's optimised anchors, unit rows, before they are replaced by the nearest target rows.
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

    @property
    def success(self) -> bool:
        return self.verdict == "fits"


def bootstrap_anchors(
    source: LatentSpace,
    target: LatentSpace,
    *,
    seeds: Sequence[tuple[str, str]] = (),
    n_anchors: int = 300,
    anchors: Sequence[str] | None = None,
    method: str = "self-learning",
    k: int = 10,
    random_state: int = 0,
    truth: Mapping[str, str] | None = None,
    state: State | None = None,
    after: Callable[[State], None] | None = None,
    before_verdict: Callable[[], object] = tuple,
    **settings: Any,
) -> BootstrapResult:
    """Find the partners of source anchors in the target; only the ids of the seeds are read.

    Parameters
    ----------
    seeds : pairs of (source id, target id)
        Known pairs. None: self-learning begins from the similarities within each space (`first_rotation`).
    n_anchors : int
        Seeds included; drawn at random among the matched rows.
    anchors : source ids, optional
        Find the partners of these instead, mutual or not; the seeds still come first.
    method : "self-learning" or "paper"
        "paper" is Algorithm 1 of Cannistraci et al. 2023 without centring, see `optimise_anchors`; `settings`
        go to it: steps, learning_rate, device.
    k : int
        Neighbours of the CSLS.
    truth : source id → target id, optional
        For `Round.found` only.
    state, after
        To resume; `after` is called with the state after each round, `before_verdict` after all.

    Self-learning takes the 4,000 most frequent rows first, where both spaces have counts, then all.

    Raises
    ------
    SpaceError
        Wrong, contradictory or too few seeds, more anchors than rows, an unknown method.

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
    ('fits', 1.0)
    """
    need_one_of("method", method, METHODS)
    task = _Bootstrap(source, target, _checked_seeds(seeds, source, target), truth, k, random_state)
    wanted = task.wanted(anchors, n_anchors, method)
    run = task.self_learning if method == "self-learning" else task.paper
    chosen, history, vectors = run(wanted, state, after or (lambda state: None), **settings)
    before_verdict()
    rows, others = np.hstack([chosen, task.seeds])
    rotation = rotation_between(task.X[rows], task.Y[others])
    matching = match_csls(unit_rows(task.X @ rotation), task.Y, k)
    if method == "self-learning":
        chosen = task.chosen(matching, wanted, n_anchors)
    pairs = np.hstack([chosen, matching.pairs])
    for side in (0, 1):  # one to one: of pairs that share a row the earliest stays
        pairs = pairs[:, np.sort(np.unique(pairs[side], return_index=True)[1])]
    verdict, reason, held_out = task.judge(chosen if method == "paper" else pairs)
    return BootstrapResult(
        anchors=task.ids(chosen),
        n_seeds=len(task.seeds[0]),
        pairs=task.ids(pairs),
        history=history,
        held_out=held_out.mean,
        null=held_out.null,
        verdict=verdict,
        reason=reason,
        vectors=vectors,
    )


class _Bootstrap:
    """Two spaces as centred unit rows; anchors `wanted` are source rows, the seeds first."""

    def __init__(
        self,
        source: LatentSpace,
        target: LatentSpace,
        seeds: np.ndarray,
        truth: Mapping[str, str] | None,
        k: int,
        random_state: int,
    ) -> None:
        self.source, self.target, self.seeds, self.random_state = source, target, seeds, random_state
        self.settings = {"k": k, "random_state": random_state}
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
        """The seeds alone where the others are chosen among the matched rows."""
        seeds = self.seeds[0]
        if anchors is not None:
            rows = self.source.rows(anchors)
            return np.r_[seeds, rows[~np.isin(rows, seeds)]]
        least, most = max(len(seeds), 1), min(len(self.source), len(self.target))
        if not least <= n_anchors <= most:
            raise SpaceError(
                f"n_anchors: expected {least} … {most:,}, from the seeds to the rows, got {n_anchors:,}"
            )
        if method == "self-learning":
            return seeds
        rest, rng = np.setdiff1d(np.arange(len(self.source)), seeds), np.random.default_rng(self.random_state)
        return np.r_[seeds, rng.choice(rest, n_anchors - len(seeds), replace=False)]

    def self_learning(
        self, wanted: np.ndarray, state: State | None, after: Callable[[State], None]
    ) -> tuple[np.ndarray, tuple[Round, ...], None]:
        stages = self.stages(wanted)
        if state is None:
            rotation, place = first_rotation(self.X, self.Y, self.seeds, stages[0], self.settings["k"])
            state = State({"rotation": rotation}, place._asdict(), ())
        history, pairs, begun = state.history, state.arrays.get("pairs"), state.arrays["rotation"]
        settings = self.settings | {"place": SchedulePlace(**state.numbers)}
        rounds = self_learn(self.X, self.Y, begun, self.seeds, stages, **settings)
        for place, rotation, stage, matching in rounds:
            partner = np.full(len(self.source), -2)
            partner[stage[0]] = stage[1][matching.partner]
            share, pairs = self.share_found(wanted, partner[wanted]), _whole(stage, matching.pairs)
            history = (*history, Round(len(stage[0]), len(pairs[0]), matching.mean, share))
            after(State({"rotation": rotation, "pairs": pairs}, place._asdict(), history))
        return pairs, history, None

    def paper(
        self, wanted: np.ndarray, state: State | None, after: Callable[[State], None], **settings: Any
    ) -> tuple[np.ndarray, tuple[Round, ...], np.ndarray | None]:
        X, Y = unit_rows(self.source.vectors), unit_rows(self.target.vectors)
        history, arrays = (state.history, state.arrays) if state else ((), {})
        nearest, vectors = arrays.get("nearest"), arrays.get("vectors")
        settings |= {"random_state": self.random_state, "state": arrays}
        for step in optimise_anchors(X, Y, wanted, self.seeds[1], **settings):
            nearest, vectors = step.nearest, step.vectors
            history = (*history, Round(len(X), len(wanted), step.loss, self.share_found(wanted, nearest)))
            after(State({**step.state, "nearest": nearest, "vectors": vectors}, {}, history))
        return np.stack([wanted, nearest]), history, vectors

    def chosen(self, matching: Matching, wanted: np.ndarray, n_anchors: int) -> np.ndarray:
        """The wanted anchors with their partners, or as many at random among the mutual pairs."""
        n_seeds = len(self.seeds[0])
        if len(wanted) > n_seeds:
            return np.stack([wanted, np.r_[self.seeds[1], matching.partner[wanted[n_seeds:]]]])
        pairs = matching.pairs
        pairs = pairs[:, ~np.isin(pairs[0], self.seeds[0]) & ~np.isin(pairs[1], self.seeds[1])]
        missing = min(n_anchors - n_seeds, len(pairs[0]))
        drawn = np.random.default_rng(self.random_state).choice(len(pairs[0]), missing, replace=False)
        return np.hstack([self.seeds, pairs[:, drawn]])

    def judge(self, pairs: np.ndarray) -> tuple[str, str, HeldOut]:
        """Whether the spaces fit each other and the pairs are reliable: verdict, reason and evidence.

        They fit where held-out rows do (`fit_held_out`) and that second fit gives a third of the pairs or
        more. Else a positive control follows: a space and its noisy copy, of the same size. If even these do
        not fit, the verdict is "cannot tell".
        """
        rows, targets = self.stages(pairs[0])[0]
        if len(rows) > MOST_ROWS:
            keys = row_keys(self.source.ids[rows], "judged", self.random_state)
            keys[np.isin(rows, self.seeds[0])] = -1  # the seeds take part in any case
            rows = np.sort(rows[np.argsort(keys)[:MOST_ROWS]])
        here = np.isin(pairs[0], rows) & np.isin(pairs[1], targets) & ~np.isin(pairs[0], self.seeds[0])
        seeds, pairs = (
            np.stack([np.searchsorted(rows, own), np.searchsorted(targets, other)])
            for own, other in (self.seeds, pairs[:, here])
        )
        X, Y = self.X[rows], self.Y[targets]
        n_seeds, undecided = len(seeds[0]), "It is undecided whether the two spaces fit each other:"
        if (n_free := len(X) - n_seeds) < _FEWEST:
            none = HeldOut(float("nan"), float("nan"), (), 0, np.zeros((X.shape[1], Y.shape[1])))
            reason = f"{undecided} {n_free} rows beside the seeds, {_FEWEST} are needed."
            return "cannot tell", reason, none
        held_out = fit_held_out(X, Y, seeds, self.source.ids[rows], **self.settings)
        scores = (
            f"{held_out.n:,} held-out rows have a mean CSLS of {short(held_out.mean)}, chance level "
            f"{band(min(held_out.null), max(held_out.null))}"
        )
        if held_out.fits:
            partner = match_csls(unit_rows(X @ held_out.rotation), Y, self.settings["k"]).partner
            agreement = float(np.mean(partner[pairs[0]] == pairs[1])) if len(pairs[0]) else 0.0
            if agreement >= AGREED:
                return "fits", f"The two spaces fit each other: {scores}.", held_out
            reason = (
                f"The two spaces fit each other ({scores}), but these anchors are unreliable: a second fit,"
                f" on three quarters of the rows, gives {100 * agreement:.1f} % of them."
            )
            return "cannot tell", reason, held_out
        narrow, space = (X, self.source) if X.shape[1] <= Y.shape[1] else (Y, self.target)
        rng = np.random.default_rng((self.random_state, 2))
        n, known = min(len(X), len(Y)), np.stack([np.arange(n_seeds)] * 2)
        rows = narrow[rng.choice(len(narrow), n, replace=False)]
        # Half as much noise as signal, of the same spread: the cosine of a row and its copy is about .9.
        copy = unit_rows(rows + 0.5 * structureless(rows, rng))
        if fit_held_out(rows, copy, known, np.arange(n).astype(str), **self.settings).fits:
            reason = f"No common structure was found: {scores}, no more than rows without a partner."
            return "nothing in common", reason, held_out
        control = f"{n:,} rows, {narrow.shape[1]:,} dimensions and {n_seeds or 'no'} seeds"
        reason = (
            f"{undecided} {scores}. With {control}, not even a noisy copy of {space.name!r} would be found to"
            " fit it. Give more rows or more seeds."
        )
        return "cannot tell", reason, held_out

    def stages(self, wanted: np.ndarray) -> list[Stage]:
        """Rows with a direction; before them, of many with counts, the most frequent."""
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
    return float(np.mean([truth.get(own) == other for own, other in pairs])) if pairs else float("nan")
