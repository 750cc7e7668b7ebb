"""One pass over the rows of two spaces collects what all scores need: sums and nearest rows. It reads blocks
of rows, in any order and in any number of parts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any, NamedTuple, cast

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_sequence, need_whole
from relcore.base.errors import SpaceError, need_one_of, quote
from relcore.base.kinds import takes_kinds
from relcore.base.rows import Rows as RowSource
from relcore.base.rows import row_blocks
from relcore.engine.device import Device, NumpyDevice, on_device
from relcore.engine.engine import Engine
from relcore.engine.nearest import need_k, without_itself
from relcore.engine.threads import in_threads
from relcore.scores.cka import decided_note
from relcore.scores.neighbours import CONVENTIONS, Neighbours, widths_differ
from relcore.scores.plan import Plan, Take
from relcore.scores.roles import NO_ROWS, RowRoles, ScoreRequest, to_full_index, to_kept_index
from relcore.scores.score import Score
from relcore.scores.sums import PairBlock, SeveralSums, Sums
from relcore.spaces.ids import RowNumbers, checked_strings
from relcore.spaces.matching import paired_matrices
from relcore.spaces.space import MatrixLike, ids_of
from relcore.spaces.split import Split

_COPIES = 6  # number of copies of a row in memory: its coordinates and representations
_QUERIES = 2048  # number of queries per pass; more queries take several passes
Done = Callable[[int, int], None]


class RowPair:
    """Two spaces with the same rows, (n, d_source) and (n, d_target), and the passes over them. Ids and
    labels (n,) are given if they are known. Subclasses for other sources of rows override the methods that
    read rows.
    """

    def __init__(
        self,
        source: RowSource,
        target: RowSource,
        ids: np.ndarray | None = None,
        labels: np.ndarray | None = None,
        device: str | None = None,
        done: Done = lambda parts, n_parts: None,
    ) -> None:
        self.spaces = (source, target)
        self.ids = ids
        self.labels = labels
        self.device = device
        self._done = done
        self._passes = (0, 1)
        self.labelled = ""
        self._classes: np.ndarray | None = None
        if labels is not None:
            classes = np.where(labels == "", -1, pd.factorize(labels)[0])
            self._classes = classes
            self.labelled = "some" if (classes < 0).any() else "all"

    def __len__(self) -> int:
        return len(self.spaces[0])

    def names(self, rows: np.ndarray) -> Sequence[str]:
        """The ids of these rows."""
        assert self.ids is not None, "only pairs with ids have notes that name rows"
        return self.ids[rows].tolist()

    @property
    def _known_classes(self) -> np.ndarray:
        assert self._classes is not None, "only pairs with labels are asked for classes"
        return self._classes

    def classes_of(self, rows: np.ndarray) -> np.ndarray:
        """The class number of each of these rows, in the shape of `rows`; −1 for rows without a class."""
        return self._known_classes[rows]

    def class_sizes(self, left_out: np.ndarray) -> np.ndarray:
        """For each class, the number of rows that are not left out. Classes without such rows are omitted."""
        classes = np.delete(self._known_classes, left_out)
        sizes = np.bincount(classes[classes >= 0])
        return sizes[sizes > 0]

    def take(self, side: int, rows: np.ndarray) -> np.ndarray:
        return np.asarray(self.spaces[side][rows], dtype=np.float32)

    @cached_property
    def means(self) -> tuple[np.ndarray, np.ndarray]:
        """The mean row of each space, (d,) float64."""
        source, target = self.spaces
        engine = Engine(self.device)
        return engine.mean(source), engine.mean(target)

    def sums_of(self, parts: Sequence[tuple[ScoreRequest, RowRoles]]) -> list[Sums]:
        """The sums for all requests, from one pass. If there are more than 2,048 queries, each further 2,048
        take another pass."""
        starts = range(0, max(1, *(len(roles.queries) for _, roles in parts)), _QUERIES)
        batches = []
        for number, start in enumerate(starts):
            self._passes = (number, len(starts))
            plans = []
            for request, roles in parts:
                queries = roles.queries[start : start + _QUERIES]
                part_request = replace(request, sums=not start and request.sums)
                plans.append(self.plan(part_request, replace(roles, queries=queries)))
            batches.append(self.one_pass(plans))
        return [first.joined(others) if others else first for first, *others in zip(*batches, strict=True)]

    def plan(self, request: ScoreRequest, roles: RowRoles) -> Plan:
        return Plan.of(request, roles, self.means, self.take)

    def one_pass(self, plans: Sequence[Plan]) -> list[Sums]:
        """The sums of a pass over all rows. If a GPU runs out of memory, the pass is repeated on the CPU,
        with a warning."""
        return on_device(lambda where: self._pass_on(plans, where), self.device)

    def _pass_on(self, plans: Sequence[Plan], where: Device) -> list[Sums]:
        source, target = self.spaces
        widths = source.shape[1] + target.shape[1] + 2 * max(len(plan.roles.anchors) for plan in plans)
        block_rows = where.rows_at_once(where.block_rows, 4 * _COPIES * widths)
        number, n_passes = self._passes

        def done(parts: int, n_parts: int) -> None:
            self._done(number * n_parts + parts, n_passes * n_parts)

        # On a GPU, two threads help only if copies and kernels take longer than their start.
        alone = where.threads is not None and len(source) <= block_rows // 2
        if alone:
            places = [slice(0, len(source))]
        else:
            places = _blocks(len(source), block_rows)
        blocks = [self._block(place) for place in places]
        return in_threads(blocks, lambda: SeveralSums(plans, where.clone_for_thread()), done, where.threads)

    def _block(self, place: slice) -> PairBlock:
        labelled = None
        if self._classes is not None:
            labelled = self._classes[place] >= 0
        return PairBlock(self.spaces, place, labelled=labelled)


def _blocks(n: int, block_rows: int = NumpyDevice.block_rows) -> list[slice]:
    """Blocks of equal size. If there are few, their number is even, so that two threads get equal work."""
    return list(row_blocks(n, -(-n // (2 * -(-n // (2 * block_rows))))))


# Maximum number of rows left out of a cached pass. If one step adds more anchors, another pass is made.
EXTRA_NEIGHBOURS = 8


class _Directions:
    """The scored rows of one space as unit rows (t, w) of a representation. They are computed when they are
    indexed."""

    def __init__(self, plan: Plan, representation: str, side: int, take: Take) -> None:
        self.plan = plan
        self.representation = representation
        self.side = side
        self.take = take

    def __len__(self) -> int:
        return len(self.plan.roles)

    def __getitem__(self, places: np.ndarray | slice) -> np.ndarray:
        places = np.arange(len(self))[places]
        rows = self.take(self.side, to_full_index(places.ravel(), self.plan.roles.left_out))
        directions = self.plan.directions(self.representation, self.side, rows)
        return directions.reshape(*places.shape, directions.shape[1])


class LabelledNeighbours(NamedTuple):
    """The nearest neighbours of m queries among the n labelled rows of the other space. `own` (m,) are the
    classes of the `queries` (m,), as numbers. `lists` are the k + 1 nearest rows of each query and `classes`
    their classes, both with one array (m, k + 1) per direction."""

    n: int
    queries: np.ndarray
    own: np.ndarray
    lists: tuple[np.ndarray, ...]
    classes: tuple[np.ndarray, ...]


@dataclass(eq=False)
class AlignedPair:
    """Two spaces in one representation, with everything that metrics read: rows, neighbour lists and sums.
    Each is computed when a metric first reads it.

    Attributes
    ----------
    rows : RowPair
        All rows of both spaces.
    request : ScoreRequest
        A request for scores in this representation only.
    roles : RowRoles
        Which rows are scored, and which are queries.
    split : Split, optional
        The split into anchors and scored rows, if the ids of all rows are in memory.
    made : function, optional
        A function that returns all rows of both spaces in the representation. Without it, the pair has only
        lists and sums.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import METRICS, AlignedPair, Split
    >>> X = np.random.default_rng(0).normal(size=(60, 5))
    >>> pair = AlignedPair.of(X, 3 * X, Split.held_out([f"row {row}" for row in range(60)]))
    >>> round(METRICS["rsa"].load()().score(pair), 3)
    1.0
    """

    rows: RowPair
    request: ScoreRequest
    roles: RowRoles
    split: Split | None = None
    made: Callable[[], tuple[RowSource, RowSource]] | None = None
    known: dict[Any, Any] = field(default_factory=dict)

    @classmethod
    @takes_kinds
    def of(
        cls,
        source: MatrixLike | RowSource,
        target: MatrixLike | RowSource,
        split: Split,
        labels: Sequence[str] | np.ndarray | None = None,
        *,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = None,
    ) -> AlignedPair:
        """A pair of two spaces, in the representation that they have. `labels` (n,) are "" for rows without a
        label. The test rows of the split are scored. All of them are queries, unless `n_queries` is given.

        Raises
        ------
        SpaceError
            The number of rows differs from that of the split; ids that differ between the spaces, or from
            those of the split; numbers that are not finite.
        """
        need_kind("split", split, Split)
        n = len(split.ids)
        rows = paired_matrices(source, target, ("source", "target"), by_block=True)
        own = ids_of(source)
        if own is None:
            own = ids_of(target)
        if own is None or isinstance(own, RowNumbers):
            own = split.ids
        if not np.array_equal(np.asarray(own, dtype=object), split.ids):
            raise SpaceError(
                f"split: expected the ids of the rows, {quote(own[:3])}, …, got {quote(split.ids[:3])}, …;"
                " draw the split from these ids"
            )
        classes = None
        if labels is not None:
            need_sequence("labels", labels, "labels", n)
            classes = checked_strings(labels, n, "labels", "labels")
        need_whole("k", k)
        return cls.of_arrays(*rows, split, classes, k=k, convention=convention, n_queries=n_queries)

    @classmethod
    def of_arrays(
        cls,
        source: RowSource,
        target: RowSource,
        split: Split,
        labels: np.ndarray | None = None,
        *,
        k: int = 10,
        convention: str = "paper",
        n_queries: int | None = None,
    ) -> AlignedPair:
        """The pair of `of` for row-aligned rows of finite numbers."""
        n = len(split.ids)
        if not len(source) == len(target) == n:
            raise SpaceError(
                f"expected {n:,} rows in both spaces, those of the split, got {len(source):,} and"
                f" {len(target):,}"
            )
        need_one_of("convention", convention, CONVENTIONS)
        rows = RowPair(source, target, split.ids, labels)
        request = ScoreRequest(("absolute",), k=k, convention=convention)
        roles = RowRoles(n, NO_ROWS, split.queries(n_queries), split.untested, rows.labelled)
        return cls(rows, request, roles, split, lambda: (source, target))

    @classmethod
    def passed(
        cls, rows: RowPair, representation: str, seen: Sums, split: Split | None = None, made: Any = None
    ) -> AlignedPair:
        """A pair in one representation, whose sums and nearest rows are those `seen` by a pass."""
        plan = seen.plan
        pair = cls(rows, replace(plan.request, representations=(representation,)), plan.roles, split, made)
        pair.searched = pair.summed = seen
        return pair

    @property
    def representation(self) -> str:
        return self.request.representations[0]

    @property
    def k(self) -> int:
        return self.request.k

    @property
    def convention(self) -> str:
        return self.request.convention

    @property
    def known_split(self) -> Split:
        """The split of a pair whose ids are in memory."""
        assert self.split is not None, "only metrics of pairs in memory read rows and ids"
        return self.split

    @property
    def scored_ids(self) -> np.ndarray:
        """The ids (t,) of the scored rows."""
        return self.known_split.ids[self.known_split.test]

    @property
    def labels(self) -> np.ndarray | None:
        """The class of each scored row, (t,); "" for rows without a class."""
        if self.rows.labels is None:
            return None
        return self.rows.labels[self.known_split.test]

    @cached_property
    def same_width(self) -> bool:
        """Whether rows of one space can be compared with rows of the other space."""
        source, target = self.rows.spaces
        return self.representation != "absolute" or source.shape[1] == target.shape[1]

    @cached_property
    def source(self) -> np.ndarray:
        """The scored rows of the first space, (t, d_source)."""
        return self._scored(0)

    @cached_property
    def target(self) -> np.ndarray:
        return self._scored(1)

    def _scored(self, side: int) -> np.ndarray:
        if self.made is None:
            raise SpaceError(
                f"{self.representation}: expected a metric that reads sums and neighbours, got one that reads"
                " all rows; declare its `reads` as 'rows'"
            )
        rows = self.made()[side]
        if len(self.roles.left_out):
            return rows[self.known_split.test]
        return cast(np.ndarray, rows)  # rows on disk count as an array, as in `matrix`

    @cached_property
    def searched(self) -> Sums:
        """The result of a pass that searches for the neighbours of the queries."""
        t = len(self.roles)
        mutual = self.convention == "mutual"
        need_k(self.k, t, t - mutual)
        if not mutual and not self.same_width:
            raise widths_differ(*(space.shape[1] for space in self.rows.spaces))
        return self.rows.sums_of([(replace(self.request, sums=False), self.roles)])[0]

    @cached_property
    def summed(self) -> Sums:
        """The sums of a pass over all scored rows."""
        request = replace(self.request, cosines=self.same_width)
        return self.rows.sums_of([(request, replace(self.roles, queries=NO_ROWS, labelled=""))])[0]

    @cached_property
    def neighbours(self) -> Neighbours:
        """The neighbour lists of the queries. Row numbers are positions among the scored rows."""
        plan = self.searched.plan
        lists = {}
        left_out = plan.roles.left_out
        queries = to_kept_index(plan.roles.queries, left_out)
        for search in plan.searched(self.representation):
            if not search.labelled:
                rows = to_kept_index(self.searched.nearest(self.representation, search), left_out)
                if search.alone:
                    lists[search.name] = without_itself(queries, rows)
                else:
                    lists[search.name] = rows
        source = _Directions(plan, self.representation, 0, self.rows.take)
        target = _Directions(plan, self.representation, 1, self.rows.take)
        return Neighbours.listed((source, target), queries, lists, self.k, self.convention)

    @cached_property
    def cosines(self) -> np.ndarray:
        """The cosine of each scored row with its partner, (t,). The spaces must have the same width."""
        return self.summed.cosines(self.representation)[self.known_split.test]

    def linear_cka(self) -> Score:
        seen = self.summed
        representation = self.representation
        note = ""
        sums = seen.linear_cka(representation)
        decisive = seen.decisive_rows(representation)
        if len(decisive):
            others = self.rows.sums_of([(replace(self.request, sums=True), self.roles.without(decisive))])[0]
            without = others.linear_cka(representation).value()
            names = lambda: self.rows.names(decisive[:3])  # noqa: E731
            note = decided_note(sums.value(), without, len(decisive), names)
        return sums.score(note)

    def mean_cosine(self) -> Score:
        return self.summed.mean_cosine(self.representation)

    def some_rows(self, places: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        """The scored rows at these positions (m,) in both spaces. They may be rotated, shifted and scaled,
        which does not change linear CKA."""
        plan = self.summed.plan
        numbers = self.known_split.test[places]
        found = []
        for side, representation in enumerate(plan.representations[self.representation]):
            block = plan.block(side, self.rows.take(side, numbers))
            rows = representation.mapped(block.centred(representation.frame))
            found.append(rows.astype(np.float32))
        return found[0], found[1]

    def of_some_rows(self, make: Callable[[np.ndarray, np.ndarray], Any], places: np.ndarray) -> Any:
        """The result of `make` for `some_rows` at these positions. It is cached, and shared with pairs that
        `narrowed` returns."""
        key = make, self.known_split.test[places].tobytes()
        if key not in self.known:
            self.known[key] = make(*self.some_rows(places))
        return self.known[key]

    def labelled_neighbours(self) -> LabelledNeighbours | None:
        """The classes of the labelled queries and of their neighbours. None in four cases: there are no
        labels; the widths differ; all labelled rows have the same class; most rows have at most k / 2 other
        rows of their class, too few for a majority."""
        if not self.rows.labelled or not self.same_width:
            return None
        queries = self.roles.queries
        own = self.rows.classes_of(queries)
        sizes = self.rows.class_sizes(self.roles.left_out)
        labelled = own >= 0
        n = int(sizes.sum())
        if not 1 < len(sizes) < n or not labelled.any():
            return None
        k = min(self.k, n - 1)
        if sizes[sizes - 1 > k / 2].sum() < n / 2:
            return None
        searches = self.searched.plan.searched(self.representation)
        # The search among labelled rows comes after the search among all rows.
        last = {search.base: search for search in searches if search.base != search.queries}
        found = [self.searched.nearest(self.representation, search) for search in last.values()]
        lists = tuple(rows[labelled, : k + 1] for rows in found)
        classes = tuple(map(self.rows.classes_of, lists))
        return LabelledNeighbours(n, queries[labelled], own[labelled], lists, classes)

    def narrowed(self, request: ScoreRequest, split: Split, queries: np.ndarray) -> AlignedPair | None:
        """This pair, reduced to the rows of `split`, which must be some of its rows. `queries` are row
        numbers.

        None if another pass is needed, because the request differs, a query is new, or too many rows are left
        out.
        """
        plan = self.searched.plan
        roles = self.searched.plan.roles
        removed = np.setdiff1d(split.untested, roles.left_out)
        known = replace(
            plan.request, representations=request.representations, sums=request.sums, extra_neighbours=0
        )
        inside = len(split.test) + len(removed) == len(self.known_split.test)
        fits = known == request and len(removed) <= plan.request.extra_neighbours and inside
        if not (fits and np.isin(queries, roles.queries).all()):
            return None
        pair = self.passed(self.rows, self.representation, self.searched.narrowed(removed, queries), split)
        pair.known = self.known
        return pair
