"""Exact nearest neighbours in two spaces, their Jaccard overlap, and the mean reciprocal rank (MRR)."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from relcore.base.arguments import need_whole, random_generator, row_numbers
from relcore.base.environment import resolve
from relcore.base.errors import SpaceError, need_one_of
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import short
from relcore.base.rows import unit_rows
from relcore.engine.nearest import largest_k, nearest, nearest_within, need_k
from relcore.scores.score import (
    CENTRE,
    QUANTILE_DRAWS,
    ChanceLevel,
    Interval,
    Score,
    chance_of,
    difference,
    mean_difference,
    sampling_interval,
)
from relcore.spaces.matching import need_columns_in_one_order, paired_matrices
from relcore.spaces.space import MatrixLike
from relcore.spaces.split import derangement

if TYPE_CHECKING:
    from scipy import sparse

CONVENTIONS = ("paper", "mutual")
CONVENTION_HELP = (
    "Paper: both neighbourhoods are searched among the target's rows, including the row itself (code of"
    " Moschella et al.). Mutual: each space has its own neighbours, without the row itself."
)
PERMUTATIONS = 50
_RANK_DRAWS = 4000
# Number of lists that can be permuted in a tenth of a second.
_DRAWN_LISTS = 60_000
_PERMUTED_ROWS = 20_000  # number of rows whose permutation takes a fifth of a millisecond
_NOTED_ROWS = 300
_QUERY_STREAM = 1  # makes the random draws differ from those of anchors with the same random state
_NEAR = 2.0**-15  # distance; float32 does not reliably order unit rows that are nearer (rounded by 2⁻²⁴)
_MOST_ALIKE = 0.1  # share of the queries; above it, a note is added


@dataclass(frozen=True)
class Neighbours:
    """The neighbour lists of the queries in both spaces, from which Jaccard overlap and MRR are computed.

    Rows are compared by cosine without centring. If the space has an offset, centre the rows first.

    Attributes
    ----------
    first_lists : array (m, k)
        "paper": the target rows nearest to the target vector of each query, including the query. "mutual":
        the source rows nearest to its source vector, without the query.
    second_lists : array (m, k)
        "paper": the target rows nearest to the *source* vector of each query. "mutual": the target rows
        nearest to its target vector, without the query.
    queries : array (m,)
        Row numbers of the queries: all n, or a random sample.
    source, target : arrays (n, d)
        Unit rows, as arrays or as objects that are indexed by row numbers.
    crossing : arrays (m, k), optional
        Known lists of the nearest rows in the other space, which give the rank of the query's own row there.
        "paper" has one array, "mutual" one per direction.
    """

    source: np.ndarray
    target: np.ndarray
    queries: np.ndarray
    first_lists: np.ndarray
    second_lists: np.ndarray
    convention: str
    device: str
    crossing: tuple[np.ndarray, ...] | None = None

    @classmethod
    def listed(
        cls,
        sides: tuple[Any, Any],  # unit rows, or objects that make them when they are indexed
        queries: np.ndarray,
        lists: Mapping[str, np.ndarray],
        k: int,
        convention: str,
    ) -> Neighbours:
        crossing = tuple(lists[name][:, :k] for name in ("forward", "backward") if name in lists)
        if "other" in lists:
            other = lists["other"]
        else:
            other = crossing[0]
        source, target = sides
        return cls(source, target, queries, lists["own"][:, :k], other[:, :k], convention, "cpu", crossing)

    @cached_property
    def overlap(self) -> np.ndarray:
        """The Jaccard index of the two lists of each query, (m,), 0 … 1."""
        return jaccard_rows(self.first_lists, self.second_lists)

    @cached_property
    def repeated(self) -> float:
        """The share of sampled queries that equal their nearest row in both spaces. A share that chance
        explains, as in one dimension, counts as 0."""
        some = self.queries[:_NOTED_ROWS]
        lists = self.first_lists[: len(some), :2]
        every = np.arange(len(some))
        nearest = lists[every, (lists != some[:, None]).argmax(axis=1)]
        equal = nearest != some
        for rows in (self.source, self.target):
            distances = np.linalg.norm(unit_rows(rows[some]) - unit_rows(rows[nearest]), axis=1)
            equal &= distances < _NEAR
        # The other space is the one whose rows are not in `first_lists`.
        if self.convention == "paper":
            other = self.source
        else:
            other = self.target
        units = unit_rows(other[some])
        share = float(equal.mean())
        by_chance = np.mean(units @ units.T > 1 - _NEAR) - 1 / len(some)
        if share > max(_MOST_ALIKE, 1.5 * by_chance):
            return share
        return 0.0

    @cached_property
    def note(self) -> str:
        """A note if many sampled queries are repeated, or have neighbours that are too similar to be ordered;
        otherwise ""."""
        if self.repeated:
            return (
                f"{100 * self.repeated:.0f} % of the queries have a neighbour with the same vector in both"
                " spaces, such as an item that occurs twice. These rows agree in any two spaces, so there"
                " is no chance level. Keep one row of each."
            )
        some = self.queries[:_NOTED_ROWS]
        paper = self.convention == "paper"
        mutual = self.convention == "mutual"
        sides = (self.target if paper else self.source, self.first_lists), (self.target, self.second_lists)
        for rows, lists in sides[: 1 + mutual]:
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
        """For each query, 1 / rank of its own row in the other space, or 0 beyond rank k, (m,). "mutual"
        averages both directions."""
        crossing = self.crossing
        ranks = []
        if crossing is None and self.convention == "paper":
            crossing = (self.second_lists,)
        elif crossing is None:
            if self.source.shape[1] != self.target.shape[1]:
                raise widths_differ(self.source.shape[1], self.target.shape[1])
            crossing = (
                nearest(
                    self.source[self.queries], self.target, self.first_lists.shape[1], device=self.device
                ).rows,
                nearest(
                    self.target[self.queries], self.source, self.first_lists.shape[1], device=self.device
                ).rows,
            )
        for lists in crossing:
            hits = lists == self.queries[:, None]
            ranks.append(np.where(hits.any(axis=1), 1 / (1 + hits.argmax(axis=1)), 0.0))
        return np.mean(ranks, axis=0)

    def jaccard(self) -> Score:
        """The mean overlap, 0 … 1; see the function `jaccard`.

        The chance level comes from permutations of the rows.
        """
        null = None
        rng = np.random.default_rng(0)
        m = len(self.queries)
        if m > 1:
            every = range(number_of_draws(m))
            if self.convention == "paper":  # compare query i with the list of query π(i), where π(i) ≠ i
                moved = (self.second_lists[derangement(m, rng)] for _ in every)
                draws = np.array([jaccard_rows(self.first_lists, lists).mean() for lists in moved])
                # On average, a permutation of n rows keeps one row in its place, but these draws keep none.
                draws += (self.overlap.mean() - draws.mean()) / len(self.target)
            else:
                draws = np.array([jaccard_rows(self.first_lists, self._renamed(rng)).mean() for _ in every])
            null = ChanceLevel.from_draws(draws)
        return self._score("jaccard", self.overlap, null)

    def mrr(self) -> Score:
        """The mean reciprocal rank, 0 … 1; see the function `mrr`.

        Chance level: after a permutation of all n rows, a query's own row has each rank 1 … n with the same
        probability. So the mean is exactly Σ 1/r / n over r = 1 … k. The band comes from thousands of draws
        of these ranks. For "mutual", the mean of both directions,
        the band assumes that a query has the same rank in both.
        """
        null = _chance_of_ranks(len(self.queries), len(self.target), self.first_lists.shape[1])
        first = None
        if self.convention == "paper":
            first = float(np.mean(self.reciprocal_rank == 1))
        return self._score("mrr", self.reciprocal_rank, null, top1=first)

    def _score(
        self, metric: str, values: np.ndarray, null: ChanceLevel | None, top1: float | None = None
    ) -> Score:
        return Score(
            values.mean(dtype=np.float64),
            metric=metric,
            convention=self.convention,
            k=self.first_lists.shape[1],
            n=len(self.target),
            n_queries=len(self.queries),
            interval=sampling_interval(values, len(self.target)),
            null=null,
            note=self.note,
            top1=top1,
        )

    def _renamed(self, rng: np.random.Generator) -> np.ndarray:
        """The `second_lists` after a permutation π of the rows of the second space. Row π(i) gets the number
        of row i, so no new search is needed."""
        order = rng.permutation(len(self.queries))
        (rows, places, query_numbers, non_queries) = self._listed
        renamed = np.empty(len(rows), dtype=np.int64)
        renamed[~non_queries] = self.queries[np.argsort(order)][query_numbers]
        if non_queries.any():
            renamed[non_queries] = self._renamed_others(rows[non_queries], rng)
        return renamed[places[order]]

    def _renamed_others(self, rows: np.ndarray, rng: np.random.Generator) -> np.ndarray:
        """The numbers that distinct rows (r,) which are no queries get, if all such rows are permuted among
        themselves."""
        queries = np.sort(self.queries)
        n_others = len(self.target) - len(queries)
        if n_others <= _PERMUTED_ROWS:
            permuted = np.empty(n_others, dtype=np.int64)
            permuted[rng.permutation(n_others)] = np.arange(n_others)
            places = permuted[rows - np.searchsorted(queries, rows)]
        else:  # permuting many rows takes long, so only listed rows get numbers
            places = rng.choice(n_others, len(rows), replace=False)
        # A place counts only rows that are no queries. Adding the number of queries before it gives its row.
        others_before = queries - np.arange(len(queries))
        return places + np.searchsorted(others_before, places, side="right")

    @cached_property
    def _listed(self) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Four arrays: the distinct rows in `second_lists` (r,); the index of each entry among these (m, k);
        the index among the queries of each distinct row that is a query; and which distinct rows are no
        queries (r,)."""
        rows, places = np.unique(self.second_lists, return_inverse=True)
        non_queries = ~np.isin(rows, self.queries)
        order = np.argsort(self.queries)
        query_numbers = order[np.searchsorted(self.queries[order], rows[~non_queries])]
        return rows, places.reshape(self.second_lists.shape), query_numbers, non_queries


@lru_cache(maxsize=64)
def _chance_of_ranks(n_queries: int, n: int, k: int) -> ChanceLevel:
    """The chance level of the MRR of these numbers of queries, rows and neighbours."""
    rng = np.random.default_rng(0)
    reciprocal = np.append(1 / np.arange(1, k + 1), 0.0)
    chances = np.append(np.full(k, 1 / n), 1 - k / n)
    draws = rng.multinomial(n_queries, chances / chances.sum(), _RANK_DRAWS) @ reciprocal / n_queries
    return ChanceLevel.from_draws(draws, mean=float(reciprocal.sum() / n))


def number_of_draws(n_queries: int) -> int:
    """How often neighbour lists are permuted for a chance level: more often if there are few queries, because
    this then costs little."""
    return max(PERMUTATIONS, min(QUANTILE_DRAWS, _DRAWN_LISTS // n_queries))


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
    """The neighbour lists of row-aligned spaces (n, d_source) and (n, d_target), from which several scores
    can be computed.

    By default, all rows are queries. With `n_queries`, this many rows are drawn at random. With `queries`,
    these row numbers are used.

    Raises
    ------
    SpaceError
        Row counts that differ; k above n (for "mutual", above n − 1); an unknown convention; for "paper",
        widths that differ.
    """
    need_one_of("convention", convention, CONVENTIONS)
    if len(source) != len(target):
        raise SpaceError(
            f"expected row-aligned spaces, got {len(source)} and {len(target)} rows; pair them with match()"
        )
    n = len(target)
    need_k(k, n, largest_k(n, convention))
    if convention == "paper" and source.shape[1] != target.shape[1]:
        raise widths_differ(source.shape[1], target.shape[1])
    if n_queries is not None:
        need_whole("n_queries", n_queries)
    if queries is None:
        queries = np.arange(n)
        if n_queries is not None and n_queries < n:
            rng = np.random.default_rng((_QUERY_STREAM, random_state))
            queries = np.sort(rng.choice(n, n_queries, replace=False))
    return _search((unit_rows(source), unit_rows(target)), queries, k, convention, device)


def _search(
    sides: tuple[np.ndarray, np.ndarray], queries: np.ndarray, k: int, convention: str, device: str
) -> Neighbours:
    if convention == "mutual":
        first = nearest_within(sides[0], queries, k, device)
        second = nearest_within(sides[1], queries, k, device)
    else:
        every = np.array_equal(queries, np.arange(len(sides[1])))
        some = slice(None) if every else queries  # a slice avoids a copy of all rows
        first = nearest(sides[1][some], sides[1], k, device=device).rows
        second = nearest(sides[0][some], sides[1], k, device=device).rows
    return Neighbours(sides[0], sides[1], queries, first, second, convention, device)


@takes_kinds
def jaccard(
    source: MatrixLike,
    target: MatrixLike,
    k: int = 10,
    convention: Literal["mutual", "paper"] = "paper",
    *,
    n_queries: int | None = None,
    queries: np.ndarray | None = None,
    random_state: int = 0,
    device: str = "auto",
) -> Score:
    """The mean Jaccard overlap of the neighbourhoods (k rows) in two row-aligned spaces (n, d), 0 … 1.

    "paper" (Moschella et al. 2023, Table 1; their code) is the default, also of the app and the commands. It
    needs common axes, such as those of relative rows. Both neighbourhoods are searched among the rows of the
    *target*: one with the target vector of the row, the other with its source vector. They include the row
    itself. A note warns if neighbours agree within the spaces but not across them.

    "mutual" (mutual kNN): the neighbours of a row are searched within each space, without the row itself. A
    rotation changes nothing, and the widths may differ.

    The keywords are those of `find_neighbours`.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import jaccard
    >>> X = np.random.default_rng(0).normal(size=(200, 5))
    >>> score = jaccard(X, 3 * X)
    >>> float(score), score.k, score.n
    (1.0, 10, 200)
    >>> float(jaccard(X, X[:, ::-1], convention="mutual"))  # other axes, the same neighbours
    1.0
    >>> jaccard(X, np.random.default_rng(1).permutation(X)) < 0.1
    True
    """
    if convention == "paper":
        need_columns_in_one_order(source, target)
    neighbours = _neighbours_of_pair(source, target, k, convention, n_queries, queries, random_state, device)
    if convention == "mutual":
        return neighbours.jaccard()
    return _with_note(neighbours.jaccard(), neighbours)


@takes_kinds
def mrr(
    source: MatrixLike,
    target: MatrixLike,
    k: int = 10,
    convention: Literal["mutual", "paper"] = "paper",
    *,
    n_queries: int | None = None,
    queries: np.ndarray | None = None,
    random_state: int = 0,
    device: str = "auto",
) -> Score:
    """The mean reciprocal rank of each row among the target rows nearest to its source vector, 0 … 1. Both
    conventions need spaces with common axes, such as relative rows or translated rows.

    A row beyond rank k counts as 0. "paper" searches from source to target; "mutual" is the mean of both
    directions. The score is meaningless for spaces without common axes, such as two absolute spaces; compare
    these with `jaccard`. A note warns if neighbours agree within the spaces but not across them. The keywords
    are those of `find_neighbours`.

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
    need_columns_in_one_order(source, target)
    neighbours = _neighbours_of_pair(source, target, k, convention, n_queries, queries, random_state, device)
    return _with_note(neighbours.mrr(), neighbours)


def _neighbours_of_pair(
    source: MatrixLike,
    target: MatrixLike,
    k: int,
    convention: str,
    n_queries: int | None,
    queries: np.ndarray | None,
    random_state: int,
    device: str,
) -> Neighbours:
    sides = paired_matrices(source, target, ("source", "target"), by_block=True)
    random_generator(random_state)
    resolve(device)
    if queries is not None:
        queries = row_numbers("queries", queries, len(sides[0]))
        if not len(queries):
            raise SpaceError("queries: expected one row number or more, got none; leave it out for all rows")
    return find_neighbours(
        *sides, k, convention, n_queries=n_queries, queries=queries, random_state=random_state, device=device
    )


def _with_note(score: Score, neighbours: Neighbours) -> Score:
    """Add a note to the score of a search across spaces if the overlap of neighbours within the spaces is
    more than twice as far above chance. With common axes, noise would lower the overlap within the spaces at
    least as much, so the axes must differ."""
    some = neighbours.queries[:: -(-len(neighbours.queries) // _NOTED_ROWS)]
    sides = (neighbours.source, neighbours.target)
    k = neighbours.first_lists.shape[1]
    device = neighbours.device
    if len(some) < 2 or k >= len(neighbours.target):
        return score
    across = _search(sides, some, k, "paper", device).jaccard()
    if (beyond := across - chance_of(across).mean) >= 0.5:
        return score
    within = _search(sides, some, k, "mutual", device).jaccard()
    chance = chance_of(within)
    if within - chance.mean > 2 * max(beyond, chance.high - chance.mean):
        score.note = (
            f"Neighbours agree much more within the spaces (overlap {short(within)}) than across them"
            f" ({short(across)}): the spaces seem to have different axes or centres, and this score needs"
            f" common ones. Compare relative rows, or use jaccard with convention='mutual'. {score.note}"
        ).rstrip()
    return score


def widths_differ(source: int, target: int) -> SpaceError:
    return SpaceError(
        f"expected spaces of one width, got {source} and {target}; vectors of one cannot be"
        " queries in the other: make both relative to the same anchors, or use jaccard with"
        " convention='mutual'"
    )


def jaccard_rows(first: np.ndarray, second: np.ndarray) -> np.ndarray:
    """The Jaccard index (m,), 0 … 1, of two neighbour lists (m, k) of the same rows."""
    # After sorting both lists together, equal elements are adjacent.
    together = np.sort(np.concatenate([first, second], axis=1).astype(np.int32), axis=1)
    shared = np.count_nonzero(together[:, 1:] == together[:, :-1], axis=1)
    return shared / (together.shape[1] - shared)


# The error of a mean overlap has a part that comes from the searched rows, because all queries search the
# same rows.

_MANY = 20  # number of rows per query; with more, nearly all of the error comes from the queries


def queries_decide(n: int, n_queries: int) -> bool:
    """Whether the error of a mean overlap among n rows comes almost only from the choice of queries. Then
    `overlap_difference` needs no second search."""
    return n_queries < 2 or n > _MANY * n_queries


def overlap_difference(before: Neighbours, now: Neighbours) -> Interval:
    """The change of the mean overlap from `before` to `now`, with its 95 % interval. Both have the same m
    queries and the same n rows.

    Queries share the searched rows, so their overlaps are dependent. The variance has three parts. The first
    is the variance for independent queries, which dominates with more than 20 rows per query. The second is
    the covariance between the overlap of a row and the effect of this row on other queries. The third is the
    variance of these effects, without products of a query with itself, which belong to the first part. Of 200
    intervals for two sets of anchors, 186 to 197 contain the true difference with 300 rows, all of them
    queries, in both conventions; with 120 rows, 192 ("paper") and 177 ("mutual") contain it.
    """
    (m, k) = before.first_lists.shape
    n = len(before.target)
    if largest_k(n, before.convention) <= k or queries_decide(n, m):
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


def effects_of_rows(neighbours: Neighbours) -> sparse.csr_array:
    """For each query and each other row, how much the query's overlap would change if this row were missing,
    (m, n).

    If a neighbour list loses a row, the next nearest row takes its place. So a single search for k + 1
    neighbours is enough for all n rows. Both lists have k rows; if they share i rows, the overlap is i / (2k
    − i).
    """
    from scipy import sparse

    m, k = neighbours.first_lists.shape
    lines = np.repeat(np.arange(m), k)
    sides = neighbours.source, neighbours.target
    longer = _search(
        sides, neighbours.queries, k + 1, neighbours.convention, neighbours.device
    )  # nearest first
    own = longer.first_lists[:, :k]
    other = longer.second_lists[:, :k]
    next_own = longer.first_lists[:, k:]
    next_other = longer.second_lists[:, k:]
    twins = own[:, :, None] == other[:, None, :]
    own_shared = twins.any(axis=2)
    other_shared = twins.any(axis=1)
    shared = own_shared.sum(axis=1, keepdims=True)
    gains_own = (next_own == other).any(axis=1)
    gains_other = (next_other == own).any(axis=1)
    gains_own = gains_own[:, None]
    gains_other = gains_other[:, None]
    gains_both = next_own == next_other

    def change(now: np.ndarray) -> np.ndarray:
        return now / (2 * k - now) - shared / (2 * k - shared)

    of_both = change(shared - 1 + gains_own + gains_other + gains_both)
    moved = sparse.csr_array((m, len(neighbours.target)))
    for lists, in_both, gains, once in (
        (own, own_shared, gains_own, True),
        (other, other_shared, gains_other, False),
    ):
        effects = np.where(in_both, of_both * once, change(shared + gains))
        effects[lists == neighbours.queries[:, None]] = 0
        moved = moved + sparse.csr_array((effects.ravel(), (lines, lists.ravel())), shape=moved.shape)
    return moved
