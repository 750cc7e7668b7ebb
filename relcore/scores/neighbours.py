"""Nearest rows, exactly, and what they say of two spaces: Jaccard overlap, and mean reciprocal rank (MRR)."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, TypedDict, Unpack
from zlib import crc32

import numpy as np

from relcore.base.errors import SpaceError, need_one_of
from relcore.base.numbers import short
from relcore.represent.similarity import ROWS_PER_BLOCK, row_blocks, unit_rows
from relcore.scores.device import Array, Device, device_of, gpu_name, in_threads, on_device
from relcore.scores.score import (
    CENTRE,
    QUANTILE_DRAWS,
    ChanceLevel,
    Difference,
    Score,
    difference,
    mean_difference,
    sampling_interval,
)
from relcore.spaces.space import MatrixLike, matrix, need_paired

if TYPE_CHECKING:
    from scipy import sparse

_SAMPLED_ROWS = 64
SEEDING_ROWS = 64  # enough to tell one space from another
# faiss's own defaults send up to some hundred queries past BLAS, which takes nine times as long, and form
# products of 16 MB, which leave the cache. They are put back: other searches of the process, those of UMAP,
# would come to other last digits.
_FAISS = {"distance_compute_blas_threshold": 20, "distance_compute_blas_query_bs": 1024}
_USUAL: dict[str, int] = {}
_FEW_PRODUCTS = 2**22  # found before a GPU has the rows
_ALIKE = 2.0**-8  # mean squared distance of unit rows from their mean


def nearest(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """Rows of `base` (n, d) with the largest inner product to each query (m, d), nearest first: (m, k) int64;
    exact.
    """
    return nearest_with_products(queries, base, k, device)[1]


def nearest_with_products(
    queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto"
) -> tuple[np.ndarray, np.ndarray]:
    """The inner products (m, k) float32, largest first, and the rows of `nearest` (m, k) int64: by faiss on
    the CPU, by torch on a GPU; in blocks of queries, so that memory stays at block × n.
    """
    if k > len(base):
        raise SpaceError(
            f"k: expected at most {len(base)}, the rows there are, got {k}; choose fewer neighbours"
        )
    queries, base = np.ascontiguousarray(queries), np.ascontiguousarray(base)
    if device == "auto":
        device = "cuda" if len(queries) * len(base) > _FEW_PRODUCTS and gpu_name() else "cpu"
    if device != "cpu":
        import torch

        transposed = torch.from_numpy(base).to(device).T
        products, rows = np.empty((len(queries), k), np.float32), np.empty((len(queries), k), np.int64)
        for block in row_blocks(len(queries)):
            similarity = torch.from_numpy(queries[block]).to(device) @ transposed
            best = torch.topk(similarity, k, dim=1)
            products[block], rows[block] = best.values.cpu().numpy(), best.indices.cpu().numpy()
        return products, rows
    import faiss

    try:
        for name, value in _FAISS.items():  # the usual ones first: another thread may be searching with ours
            _USUAL.setdefault(name, getattr(faiss.cvar, name))
            setattr(faiss.cvar, name, value)
        # Not an index: it would copy the base, which for a few queries takes as long as the search.
        return faiss.knn(queries, base, k, metric=faiss.METRIC_INNER_PRODUCT)
    finally:
        for name, value in _USUAL.items():
            setattr(faiss.cvar, name, value)


def nearest_directions(queries: np.ndarray, base: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """`nearest` for rows of length 1, also where they all point in nearly one direction, as those of a space
    far from zero do.

    Their products then differ in the last digits of float32 only. The distances of their differences from a
    common row, which are exact, order them in the same way: |x − y|² = |x|² − 2 (x·y − |y|² / 2).
    """
    common = common_direction(base[:: max(1, len(base) // _SAMPLED_ROWS)])
    if common is not None:
        queries, base = apart(queries, common, queries=True), apart(base, common)
    return with_random_tie_order(queries, lambda some: nearest_with_products(some, base, k, device)[1])


def common_direction(sample: np.ndarray) -> np.ndarray | None:
    """The mean (d,) of some unit rows (m, d) if all point in nearly one direction, else None."""
    common = sample.mean(axis=0, dtype=np.float64).astype(np.float32)
    return None if 1 - common @ common > _ALIKE else common


def apart(rows: np.ndarray, common: np.ndarray | None, queries: bool = False) -> np.ndarray:
    """Rows of length 1 as `nearest` takes them where they have a common direction, (m, d + 1); else the
    rows themselves.
    """
    if common is None:
        return rows
    rows = rows - common
    return np.column_stack(
        [rows, np.ones(len(rows), dtype=np.float32) if queries else -np.vecdot(rows, rows) / 2]
    )


def with_random_tie_order(queries: np.ndarray, nearest: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
    """`nearest` of the queries (m, d), which it gets in an order that depends on them.

    Of equally near rows rounding decides, and it depends on the place of the query. With the same places two
    searches would agree by that, and so would unrelated spaces.
    """
    order = np.random.default_rng(order_seed(queries)).permutation(len(queries))
    return nearest(queries[order])[np.argsort(order)]


def order_seed(unit: np.ndarray) -> int:
    """What seeds the order of equally near rows: the first unit rows (m, d) of a space, so that two spaces
    have two orders.
    """
    return crc32(unit[:SEEDING_ROWS].tobytes())


class TopRows:
    """The k rows with the largest scores for each of q queries, nearest first, kept up to date from block to
    block; equal scores in one fixed order.

    Parameters
    ----------
    n_queries, k : int
    seed : int, optional
        Orders rows with equal scores at random; without it the lower row number comes first. Two spaces with
        many equal rows would otherwise agree because of the order of their rows.

    Attributes
    ----------
    values : array (q, k) float32, −∞ where fewer rows have been seen
    rows : array (q, k) int64, −1 there
    """

    def __init__(self, n_queries: int, k: int, seed: int | None = None) -> None:
        self.seed = seed
        self.values = np.full((n_queries, k), -np.inf, dtype=np.float32)
        self.rows = np.full((n_queries, k), -1, dtype=np.int64)

    def add(self, device: Device, scores: Array, rows: np.ndarray) -> None:
        """The scores (q, m) of further rows, whose numbers are `rows` (m,)."""
        which, columns, values = device.candidates(scores, self.values[:, -1], self.values.shape[1])
        self._enter(which, values, rows[columns])

    def merge(self, other: TopRows) -> None:
        which = np.repeat(np.arange(len(other.rows)), other.rows.shape[1])
        self._enter(which, other.values.ravel(), other.rows.ravel())

    def without(self, removed: np.ndarray, queries: np.ndarray, n_fewer: int) -> TopRows:
        """For these queries (places) the k − n_fewer nearest rows that are not `removed`, which are at most
        n_fewer.
        """
        fewer = TopRows(len(queries), self.rows.shape[1] - n_fewer, self.seed)
        staying = np.argsort(np.isin(self.rows[queries], removed), axis=1, kind="stable")
        staying = staying[:, : fewer.rows.shape[1]]
        fewer.rows = np.take_along_axis(self.rows[queries], staying, axis=1)
        fewer.values = np.take_along_axis(self.values[queries], staying, axis=1)
        return fewer

    def _enter(self, which: np.ndarray, values: np.ndarray, rows: np.ndarray) -> None:
        if not len(which):
            return
        k, changed = self.values.shape[1], which[np.flatnonzero(np.diff(which, prepend=-1))]
        which = np.concatenate([which, np.repeat(changed, k)])
        values = np.concatenate([values, self.values[changed].ravel()])
        rows = np.concatenate([rows, self.rows[changed].ravel()])
        order = np.lexsort((rows if self.seed is None else scrambled(rows, self.seed), -values, which))
        first = np.searchsorted(which[order], changed)  # each query has k candidates or more
        best = order[first[:, None] + np.arange(k)]
        self.values[changed], self.rows[changed] = values[best], rows[best]


def scrambled(rows: np.ndarray, seed: int) -> np.ndarray:
    """A number for each row number that looks random and differs from seed to seed (SplitMix64: Steele et
    al. 2014).
    """
    with np.errstate(over="ignore"):
        mixed = rows.astype(np.uint64) + np.uint64(0x9E3779B97F4A7C15) * np.uint64(seed + 1)
        mixed = (mixed ^ (mixed >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        mixed = (mixed ^ (mixed >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        return mixed ^ (mixed >> np.uint64(31))


# The nearest rows within one space.


def neighbours_within(unit: np.ndarray, queries: np.ndarray, k: int, device: str = "auto") -> np.ndarray:
    """The k nearest of these rows (m,) among all of one space of unit rows (n, d), the row itself left out:
    (m, k).

    Of equally near rows a search takes the first. Two spaces with many such rows would then agree because of
    their order, so each is searched in its own order.
    """
    need_k(k, len(unit), len(unit) - 1)
    order = np.random.default_rng(order_seed(unit)).permutation(len(unit))
    places = np.argsort(order)
    rows = nearest_directions(unit[queries], unit[order], k + 1, device)
    return order[without_itself(places[queries], rows)]


_PRODUCTS = 2**21  # of queries with the rows of a block: 8 MB


def own_neighbours(
    X: np.ndarray, mean: np.ndarray | None, queries: np.ndarray, k: int, device: str = "auto"
) -> np.ndarray:
    """`neighbours_within` by the directions of X − mean, block by block: no copy of X (n, d) is made,
    whatever its size.

    Raises
    ------
    SpaceError
        k above n − 1.
    """
    n, queries = len(X), np.asarray(queries)
    need_k(k, n, n - 1)
    if len(queries) > ROWS_PER_BLOCK:  # the products of more queries with a block would not stay in cache
        parts = [queries[part] for part in row_blocks(len(queries))]
        return np.concatenate([own_neighbours(X, mean, part, k, device) for part in parts])
    common = common_direction(unit_rows(X[:: max(1, n // _SAMPLED_ROWS)], mean))
    seed = order_seed(unit_rows(X[:SEEDING_ROWS], mean))
    blocks = list(row_blocks(n, min(ROWS_PER_BLOCK, max(512, _PRODUCTS // len(queries)))))

    def search(name: str) -> TopRows:
        where = device_of(name)
        wanted = where.put(apart(unit_rows(X[queries], mean), common, queries=True))

        def add(top: TopRows, block: slice) -> None:
            rows = apart(unit_rows(X[block], mean), common)
            with where.exact():
                top.add(where, wanted @ where.put(rows).T, np.arange(block.start, block.stop))

        return in_threads(blocks, lambda: TopRows(len(queries), k + 1, seed), add)

    return without_itself(queries, on_device(device, search).rows)


def without_itself(queries: np.ndarray, lists: np.ndarray, values: np.ndarray | None = None) -> np.ndarray:
    """(m, k + 1) neighbour lists without the query itself, or without the last entry if a duplicate displaced
    it: (m, k).

    Or of `values` (m, k + 1), such as the classes of these neighbours, those that belong to the rest.
    """
    itself = lists == queries[:, None]
    itself[~itself.any(axis=1), -1] = True
    return (lists if values is None else values)[~itself].reshape(len(lists), -1)


# The neighbours of both spaces of a pair.

CONVENTIONS = ("paper", "mutual")
CONVENTION_HELP = (
    "Paper: both neighbourhoods are searched among the target's rows, including the row itself (code of"
    " Moschella et al.). Mutual: each space has its own neighbours, without the row itself."
)
PERMUTATIONS = 50
_RANK_DRAWS = 4000
# overlaps of permuted lists that cost a tenth of a second: with few queries more permutations
_DRAWN_LISTS = 60_000
_PERMUTED_ROWS = 20_000  # permuting as many takes a fifth of a millisecond
_NOTED_ROWS = 300
_QUERY_STREAM = 1  # apart from the generators of anchors, which have the same random states
_NEAR = 2.0**-15  # distance of unit rows that float32, which rounds them by 2⁻²⁴, does not order reliably
_MOST_ALIKE = 0.1  # of the queries


@dataclass(frozen=True)
class Neighbours:
    """The neighbour lists for both scores, so that one search serves both.

    Rows are compared by cosine, as they are: centre them first if the space has an offset.

    Attributes
    ----------
    own : array (m, k)
        "paper": target rows near the target vector of each query, itself among them. "mutual": source rows
        near its source vector, itself left out.
    other : array (m, k)
        "paper": target rows near the *source* vector of each query. "mutual": target rows near its target
        vector, itself left out.
    queries : array (m,)
        Row numbers of the queries: all n, or a random sample.
    source, target : arrays (n, d)
        Rows of length 1, or what gives some of them by their numbers.
    crossing : arrays (m, k), optional
        Lists in which each query's own row is searched, where they are known: one for "paper", one per
        direction for "mutual".
    """

    source: np.ndarray
    target: np.ndarray
    queries: np.ndarray
    own: np.ndarray
    other: np.ndarray
    convention: str
    device: str
    crossing: tuple[np.ndarray, ...] | None = None

    @classmethod
    def listed(
        cls,
        sides: Sequence[np.ndarray],
        queries: np.ndarray,
        lists: Mapping[str, np.ndarray],
        k: int,
        convention: str,
    ) -> Neighbours:
        crossing = tuple(lists[name][:, :k] for name in ("forward", "backward") if name in lists)
        other = lists["other"] if "other" in lists else crossing[0]
        return cls(*sides, queries, lists["own"][:, :k], other[:, :k], convention, "cpu", crossing)

    @cached_property
    def overlap(self) -> np.ndarray:
        """Jaccard index |own ∩ other| / |own ∪ other| of each query, (m,), 0 … 1."""
        return jaccard_rows(self.own, self.other)

    @cached_property
    def repeated(self) -> float:
        """Share of some queries whose nearest row equals them in both spaces; 0 where that is chance, as in
        one dimension.
        """
        some = self.queries[:_NOTED_ROWS]
        lists, every = self.own[: len(some), :2], np.arange(len(some))
        nearest = lists[every, (lists != some[:, None]).argmax(axis=1)]
        equal = nearest != some
        for rows in (self.source, self.target):
            apart = np.linalg.norm(unit_rows(rows[some]) - unit_rows(rows[nearest]), axis=1)
            equal &= apart < _NEAR
        other = self.source if self.convention == "paper" else self.target  # which `own` does not decide
        units, share = unit_rows(other[some]), float(equal.mean())
        by_chance = np.mean(units @ units.T > 1 - _NEAR) - 1 / len(some)
        return share if share > max(_MOST_ALIKE, 1.5 * by_chance) else 0.0

    @cached_property
    def note(self) -> str:
        """Says that the neighbours in either space are too alike to be ordered; by some of the queries."""
        if self.repeated:
            return (
                f"{100 * self.repeated:.0f} % of the queries have a neighbour that equals them in both"
                " spaces, as an item does that occurs twice. Such rows agree in any two spaces, so no chance"
                " level holds. Keep one row of each."
            )
        some = self.queries[:_NOTED_ROWS]
        sides = [(self.target if self.convention == "paper" else self.source, self.own)]
        if self.convention == "mutual":
            sides.append((self.target, self.other))
        for rows, lists in sides:
            last = rows[lists[: len(some), -1]]
            share = float(np.mean(np.linalg.norm(unit_rows(rows[some]) - unit_rows(last), axis=1) < _NEAR))
            if share > _MOST_ALIKE:
                return (
                    f"Float32 hardly distinguishes the nearest neighbours of {100 * share:.0f} % of the"
                    f" queries: rows coincide, or differ little compared with what they share. Rounding"
                    f" orders them. {CENTRE}"
                )
        return ""

    @cached_property
    def reciprocal_rank(self) -> np.ndarray:
        """1 / rank of each query's own row, 0 beyond k; for "mutual" the mean of both directions; (m,)."""
        crossing, ranks = self.crossing, []
        if crossing is None and self.convention == "paper":
            crossing = (self.other,)
        elif crossing is None:
            if self.source.shape[1] != self.target.shape[1]:
                raise _widths_differ(self.source, self.target)
            crossing = (
                nearest_directions(self.source[self.queries], self.target, self.own.shape[1], self.device),
                nearest_directions(self.target[self.queries], self.source, self.own.shape[1], self.device),
            )
        for lists in crossing:
            hits = lists == self.queries[:, None]
            ranks.append(np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0.0))
        return np.mean(ranks, axis=0)

    def jaccard(self, n_permutations: int = PERMUTATIONS, random_state: int = 0) -> Score:
        """Mean overlap, 0 … 1; see the function `jaccard`.

        Chance level: mean and band over `n_permutations` permutations of the rows.
        """
        null, rng, m = None, np.random.default_rng(random_state), len(self.queries)
        if n_permutations > 1 and m > 1:
            draws = np.empty(number_of_draws(m, n_permutations))
            for draw in range(len(draws)):
                if self.convention == "paper":  # query i gets the list of query π(i), never its own
                    other = self.other[without_fixed_points(m, rng)]
                else:
                    other = self._renamed(rng)
                draws[draw] = jaccard_rows(self.own, other).mean()
            if self.convention == "paper":  # of all n rows one in n stays where it is, of those drawn none
                draws += (self.overlap.mean() - draws.mean()) / len(self.target)
            null = ChanceLevel.from_draws(draws)
        return self._score("jaccard", self.overlap, null)

    def mrr(self, n_permutations: int = PERMUTATIONS, random_state: int = 0) -> Score:
        """Mean reciprocal rank, 0 … 1; see the function `mrr`.

        Chance level: permuted among all n rows, the own row of a query has any rank 1 … n with equal
        probability. The mean is Σ 1/r / n over r = 1 … k, exactly; the band is that of thousands of draws of
        these ranks. For "mutual", where both directions may hit together, it is as wide as if they always
        did.
        """
        (m, k), n, null = self.own.shape, len(self.target), None
        reciprocal = np.append(1 / np.arange(1, k + 1), 0.0)
        if n_permutations > 1:
            chances = np.append(np.full(k, 1 / n), 1 - k / n)
            rng = np.random.default_rng(random_state)
            draws = rng.multinomial(m, chances / chances.sum(), _RANK_DRAWS) @ reciprocal / m
            null = ChanceLevel.from_draws(draws, mean=float(reciprocal.sum() / n))
        first = float(np.mean(self.reciprocal_rank == 1)) if self.convention == "paper" else None
        return self._score("mrr", self.reciprocal_rank, null, top1=first)

    def _score(
        self, metric: str, values: np.ndarray, null: ChanceLevel | None, **more: float | None
    ) -> Score:
        return Score(
            values.mean(dtype=np.float64),
            metric=metric,
            convention=self.convention,
            k=self.own.shape[1],
            n=len(self.target),
            n_queries=len(self.queries),
            interval=sampling_interval(values, len(self.target)),
            null=null,
            note=self.note,
            **more,
        )

    def _renamed(self, rng: np.random.Generator) -> np.ndarray:
        """The lists `other` once the rows of one space are renamed by a permutation π, so that row π(i) bears
        the name of row i; no new search is needed.
        """
        order, (rows, places, asked, non_queries) = rng.permutation(len(self.queries)), self._listed
        renamed = np.empty(len(rows), dtype=np.int64)
        renamed[~non_queries] = self.queries[np.argsort(order)][asked]
        if non_queries.any():  # other rows that are no queries: each bears the name of another one
            n_others, queries = len(self.target) - len(order), np.sort(self.queries)
            if n_others <= _PERMUTED_ROWS:
                drawn = np.empty(n_others, dtype=np.int64)
                drawn[rng.permutation(n_others)] = np.arange(n_others)
                drawn = drawn[rows[non_queries] - np.searchsorted(queries, rows[non_queries])]
            else:  # permuting many rows takes long, so only the names of those that are listed are drawn
                drawn = rng.choice(n_others, np.count_nonzero(non_queries), replace=False)
            renamed[non_queries] = drawn + np.searchsorted(
                queries - np.arange(len(order)), drawn, side="right"
            )
        return renamed[places[order]]

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """The rows in `other` (r,), the place of each entry among them (m, k), which query each is that is
        one, and which of them are none (r,)."""
        rows, places = np.unique(self.other, return_inverse=True)
        non_queries, order = ~np.isin(rows, self.queries), np.argsort(self.queries)
        asked = order[np.searchsorted(self.queries[order], rows[~non_queries])]
        return rows, places.reshape(self.other.shape), asked, non_queries


def number_of_draws(n_queries: int, n_permutations: int = PERMUTATIONS) -> int:
    """How often lists of neighbours are permuted: with few queries more often, as it costs next to
    nothing.
    """
    return max(n_permutations, min(QUANTILE_DRAWS, _DRAWN_LISTS // n_queries))


def without_fixed_points(n: int, rng: np.random.Generator) -> np.ndarray:
    """A random permutation of n > 1 without fixed points: one cycle through all, in random order."""
    cycle, order = rng.permutation(n), np.empty(n, dtype=np.int64)
    order[cycle[1:]], order[cycle[0]] = cycle[:-1], cycle[-1]
    return order


def find_neighbours(
    source: np.ndarray,
    target: np.ndarray,
    k: int = 10,
    convention: str = "paper",
    *,
    n_queries: int | None = None,
    queries: np.ndarray | None = None,
    random_state: int = 0,
    device: str = "auto",
) -> Neighbours:
    """Neighbour lists of row-aligned spaces (n, d_source) and (n, d_target): two searches serve any number of
    scores.

    The queries are all rows, `n_queries` of them at random, or the row numbers `queries`.

    Raises
    ------
    SpaceError
        Row counts that differ, k above n (above n − 1 for "mutual"), an unknown convention, different widths
        if one space is searched with the other's vectors ("paper").
    """
    need_one_of("convention", convention, CONVENTIONS)
    if len(source) != len(target):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(source)} and {len(target)} rows; pair them with match()"
        )
    n = len(target)
    need_k(k, n, n - (convention == "mutual"))
    if convention == "paper" and source.shape[1] != target.shape[1]:
        raise _widths_differ(source, target)
    if n_queries is not None and n_queries < 1:
        raise SpaceError(f"n_queries: expected 1 or more queries, got {n_queries}")
    if queries is None:
        queries = np.arange(n)
        if n_queries is not None and n_queries < n:
            rng = np.random.default_rng((_QUERY_STREAM, random_state))
            queries = np.sort(rng.choice(n, n_queries, replace=False))
    source, target = unit_rows(source), unit_rows(target)
    if convention == "paper":
        some = slice(None) if np.array_equal(queries, np.arange(n)) else queries  # no copy of all rows
        own = nearest_directions(target[some], target, k, device)
        other = nearest_directions(source[some], target, k, device)
    else:
        own = neighbours_within(source, queries, k, device)
        other = neighbours_within(target, queries, k, device)
    return Neighbours(source, target, queries, own, other, convention, device)


class SearchSettings(TypedDict, total=False):
    """Settings of `find_neighbours` beside k and the convention."""

    n_queries: int | None
    queries: np.ndarray | None
    random_state: int
    device: str


def jaccard(
    source: MatrixLike,
    target: MatrixLike,
    k: int = 10,
    convention: str = "mutual",
    **settings: Unpack[SearchSettings],
) -> Score:
    """Mean Jaccard overlap of the k-neighbourhoods of row-aligned spaces (n, d), 0 … 1, each searched by
    itself unless `convention` is "paper", which needs common axes.

    "mutual": each space has its own neighbours, itself excluded (mutual kNN); a rotation changes nothing, and
    the widths may differ. "paper" (Moschella et al. 2023, Table 1; their code), the default of the app and
    the commands, is for relative rows: both neighbourhoods are searched among the *target's* rows, once with
    the row's target vector and once with its source vector, including the row itself; a note says where the
    spaces agree within themselves only. `settings` go to `find_neighbours`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import jaccard
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> score = jaccard(X, 3 * X[:, ::-1])  # other axes, the same neighbours
    >>> float(score), score.k, score.n
    (1.0, 10, 200)
    >>> jaccard(X, np.random.default_rng(1).permutation(X)) < 0.1
    True
    """
    found = _found(source, target, k, convention, settings)
    return found.jaccard() if convention == "mutual" else _noted(found.jaccard(), found)


def mrr(
    source: MatrixLike,
    target: MatrixLike,
    k: int = 10,
    convention: str = "paper",
    **settings: Unpack[SearchSettings],
) -> Score:
    """Mean reciprocal rank, 0 … 1, of rows as neighbours of their own source vectors: for spaces with common
    axes, such as relative rows or translated ones, in either convention.

    The source vector is a query among the target's rows; the score is 0 beyond rank k. "paper" searches from
    source to target; "mutual" is the mean of both directions. Of spaces with axes of their own, such as two
    absolute ones, it measures nothing: the score's note says so where they agree within themselves only, and
    `jaccard` compares them. `settings` go to `find_neighbours`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import mrr
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> score = mrr(X, 3 * X, k=10)
    >>> float(score), round(score.null.mean, 4)  # by chance Σ 1/r / n over r = 1 … k
    (1.0, 0.0146)
    >>> mrr(X, X[:, ::-1]).note[:63]
    'Neighbours agree much more within the spaces (overlap 1.000) th'
    """
    found = _found(source, target, k, convention, settings)
    return _noted(found.mrr(), found)


def _found(
    source: MatrixLike, target: MatrixLike, k: int, convention: str, settings: SearchSettings
) -> Neighbours:
    need_paired(source, target)
    sides = matrix(source, "source", None, by_block=True), matrix(target, "target", None, by_block=True)
    return find_neighbours(*sides, k, convention, **settings)


def _noted(score: Score, found: Neighbours) -> Score:
    """The score of rows searched across, with a note where some queries have twice the overlap, beyond
    chance, within the spaces: with common axes, noise lowers that at least as much.
    """
    some = found.queries[:: -(-len(found.queries) // _NOTED_ROWS)]
    sides, k, device = (found.source, found.target), found.own.shape[1], found.device
    if len(some) < 2 or k >= len(found.target):
        return score
    own, other = (nearest_directions(side[some], found.target, k, device) for side in sides[::-1])
    across = Neighbours(*sides, some, own, other, "paper", device).jaccard()
    if (beyond := across - across.null.mean) >= 0.5:
        return score
    own, other = (neighbours_within(side, some, k, device) for side in sides)
    within = Neighbours(*sides, some, own, other, "mutual", device).jaccard()
    if within - within.null.mean > 2 * max(beyond, within.null.high - within.null.mean):
        score.note = (
            f"Neighbours agree much more within the spaces (overlap {short(within)}) than across them"
            f" ({short(across)}): they seem to have axes, or a centre, of their own, and this score needs"
            f" common ones. Compare relative rows, or use jaccard with convention='mutual'. {score.note}"
        ).rstrip()
    return score


def _widths_differ(source: np.ndarray, target: np.ndarray) -> SpaceError:
    return SpaceError(
        f"expected spaces of one width, got {source.shape[1]} and {target.shape[1]}; vectors of one cannot be"
        " queries in the other: make both relative to the same anchors, or use jaccard with"
        " convention='mutual'"
    )


def need_k(k: int, n: int, most: int, of: str = "") -> None:
    """Raise a SpaceError unless k neighbours can be looked up among n rows `of` some spaces, `most` of
    them eligible.
    """
    if not isinstance(k, int | np.integer) or not 1 <= k <= most:
        raise SpaceError(
            f"k: expected 1 … {most} for {n} rows{of}, got {k!r:.40}; choose fewer neighbours or more rows"
        )


def jaccard_rows(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """Jaccard index of two neighbour lists (m, k) of the same rows, (m,), 0 … 1."""
    # Sorted together, an element of both lists stands next to its twin.
    together = np.sort(np.concatenate([first, second], axis=1).astype(np.int32), axis=1)
    shared = np.count_nonzero(together[:, 1:] == together[:, :-1], axis=1)
    return shared / (together.shape[1] - shared)


# How the rows that are searched move the mean overlap of neighbours: what a query's own error does not
# contain.

_MANY = 20  # rows per query, above which the queries decide the error


def queries_decide(n: int, n_queries: int) -> bool:
    """Whether the queries alone decide how sure a mean overlap among n rows is: no second search is then
    needed.
    """
    return n_queries < 2 or n > _MANY * n_queries


def overlap_difference(before: Neighbours, now: Neighbours) -> Difference:
    """Mean overlap now less that before, of the same m queries among the same n rows, with its 95 % interval.

    Queries share the rows that are searched, so their overlaps depend on each other. The variance has three
    parts: that of independent queries, which decides with more than 20 rows per query; the covariance of a
    row's overlap and its effect on other queries; and the variance of its effects, without the products of
    one query with itself, which the first part has. Of 200 intervals for two anchor sets, 186 to 197 contain
    the true difference with 300 rows, all of them queries, in either convention; with 120 rows 192 ("paper")
    and 177 ("mutual").
    """
    (m, k), n = before.own.shape, len(before.target)
    if n - 1 - (before.convention == "mutual") < k or queries_decide(n, m):
        return mean_difference(before.overlap, now.overlap)
    change = now.overlap - before.overlap
    own = change - change.mean()
    effects = effects_of_rows(now) - effects_of_rows(before)
    on_others = np.asarray(effects.sum(axis=0)).ravel() / m
    on_others -= on_others.mean()
    independent = np.vdot(own, own) / (m * (m - 1))
    covariance = -2 * np.vdot(own, on_others[before.queries]) / (m - 1)
    shared = np.vdot(on_others, on_others) - effects.multiply(effects).sum() / m**2
    return difference(change.mean(), np.sqrt(max(independent + covariance + shared, independent)))


def effects_of_rows(found: Neighbours) -> sparse.csr_array:
    """The change of each query's overlap if each of the other rows were missing, (m, n).

    In a list that loses a row, the next nearest takes its place, so one search for k + 1 neighbours serves
    all n rows. Both lists have k rows, so the overlap is i / (2k − i), where they share i.
    """
    from scipy import sparse

    m, k = found.own.shape
    lines = np.repeat(np.arange(m), k)
    sides, longer = (found.source, found.target), k + 1  # the nearest first
    if found.convention == "mutual":
        own, other = (neighbours_within(side, found.queries, longer, found.device) for side in sides)
    else:
        own, other = (
            nearest_directions(side[found.queries], found.target, longer, found.device)
            for side in sides[::-1]
        )
    (own, next_own), (other, next_other) = ((lists[:, :k], lists[:, k:]) for lists in (own, other))
    twins = own[:, :, None] == other[:, None, :]
    own_shared, other_shared = twins.any(axis=2), twins.any(axis=1)
    shared = own_shared.sum(axis=1, keepdims=True)
    gains_own, gains_other = (next_own == other).any(axis=1), (next_other == own).any(axis=1)
    gains_own, gains_other, gains_both = gains_own[:, None], gains_other[:, None], next_own == next_other

    def change(now: np.ndarray) -> np.ndarray:
        return now / (2 * k - now) - shared / (2 * k - shared)

    of_both = change(shared - 1 + gains_own + gains_other + gains_both)
    moved = sparse.csr_array((m, len(found.target)))
    for lists, in_both, gains, once in (
        (own, own_shared, gains_own, True),
        (other, other_shared, gains_other, False),
    ):
        here = np.where(in_both, of_both * once, change(shared + gains))
        here[lists == found.queries[:, None]] = 0
        moved = moved + sparse.csr_array((here.ravel(), (lines, lists.ravel())), shape=moved.shape)
    return moved
