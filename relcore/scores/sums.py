"""Sums and nearest rows that a pass collects, block by block, and merges."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, field, replace

import numpy as np

from relcore.base.rows import Rows as RowSource
from relcore.base.rows import row_blocks
from relcore.engine.device import Array, Device, NumpyDevice
from relcore.engine.nearest import on_grid
from relcore.engine.top_rows import TopRows, TopTensors, top_rows
from relcore.scores.blocks import BlockRows, Representation, to_device
from relcore.scores.cka import CkaSums, RowSums, SpaceSums, cosine_score, decisive_of_longest
from relcore.scores.plan import Plan
from relcore.scores.roles import Search
from relcore.scores.score import Score

# The sums and nearest rows that a pass collects.

LONGEST = 11  # number of the longest rows of each space, which may decide a score


@dataclass(frozen=True, eq=False)
class PairBlock:
    """Some rows of both spaces, of any real type.

    Attributes
    ----------
    spaces : two sources of rows
    place : slice
        Where the rows lie in both sources. By default, the sources have only these rows.
    numbers : array (m,), optional
        The row numbers. By default, they are those of `place`.
    labelled : array (m,), optional
        Which rows have a label. It is needed only if some rows have none.
    """

    spaces: tuple[RowSource, RowSource]
    place: slice = field(default_factory=lambda: slice(None))
    numbers: np.ndarray | None = None
    labelled: np.ndarray | None = None

    @property
    def rows(self) -> np.ndarray:
        if self.numbers is None:
            return np.arange(self.place.start, self.place.stop)
        return self.numbers


class Sums:
    """The sums and the nearest rows over all blocks that were added so far. It is an `Accumulator`.

    Every row of the pair must be added once. `merge` adds the sums over other rows that were collected with
    the same plan. `to_arrays` and `from_arrays` move sums (a few MB) to another process. If a thread has
    several sums, they share the buffers of a device.
    """

    def __init__(self, plan: Plan, device: Device | None = None) -> None:
        self.plan = plan
        self.device = device or NumpyDevice()
        put = self.device.put
        request = plan.request
        self._frames = [
            {name: to_device(self.device, frame) for name, frame in side.items()} for side in plan.frames
        ]
        self._representations = {
            name: [to_device(self.device, representation) for representation in both]
            for name, both in plan.representations.items()
        }
        used = [representation for both in plan.representations.values() for representation in both]
        self._frames_in_use = list(dict.fromkeys(representation.frame for representation in used))
        self.n = 0
        self._sums: dict[str, Array] = {}
        self.tops: dict[str, TopRows | TopTensors] = {}
        self._searched: dict[tuple[str, int], tuple[Array, Array]] = {}
        self._crossing: dict[str, Array] = {}
        for name, searches_of_sides in plan.searches.items():
            for side, searches in enumerate(searches_of_sides):
                if searches is not None:
                    if searches.common is None:
                        common = None
                    else:
                        common = put(searches.common)
                    self._searched[name, side] = put(searches.queries), common
                    for search in searches.each:
                        seed = searches.seed if search.alone else None
                        n_queries = len(plan.roles.queries)
                        top = top_rows(self.device, n_queries, search.k + search.alone, seed)
                        self.tops[f"{name}/{search.name}"] = top
        for name in plan.representations:
            if request.sums:
                self.tops |= {f"{name}/longest/{side}": top_rows(self.device, 1, LONGEST) for side in (0, 1)}
            if request.cosines and plan.same_width(name):
                between = plan.between(name)
                if between is None:
                    self._crossing[name] = None
                else:
                    self._crossing[name] = put(between.astype(np.float32))
        self._cosines: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in self._crossing}

    def add(self, block: PairBlock) -> None:
        rows = block.rows
        labelled = block.labelled
        scored = np.flatnonzero(~np.isin(rows, self.plan.roles.left_out))
        kept = None
        if len(scored) < len(rows):
            kept = scored
            rows = rows[scored]
            if labelled is not None:
                labelled = labelled[scored]
        if not len(rows):
            return
        self.n += len(rows)
        with self.device.exact():
            blocks = [
                BlockRows(self.device, self._frames[side], side, X, block.place, kept)
                for side, X in enumerate(block.spaces)
            ]
            if self.plan.request.sums:
                for frame in self._frames_in_use:
                    centred = [block.centred(frame) for block in blocks]
                    for side, X in enumerate(centred):
                        self._sum(f"{frame}/sum/{side}", X.sum(0))
                        self._sum(f"{frame}/gram/{side}", X.T @ X)
                    self._sum(f"{frame}/cross", centred[0].T @ centred[1])
            for name, representations in self._representations.items():
                self._add_representation(name, representations, blocks, rows, labelled)

    def _add_representation(
        self,
        name: str,
        representations: Sequence[Representation],
        blocks: Sequence[BlockRows],
        rows: np.ndarray,
        labelled: np.ndarray | None,
    ) -> None:
        """Add a block of rows in one representation: the sums of both spaces, the cosines of
        pairs, and the rows nearest to the queries."""
        sums = self.plan.request.sums
        if sums:
            for side in (0, 1):
                self._add_lengths(name, side, blocks[side], representations[side], rows)
        paired = name in self._crossing or (sums and self.plan.same_width(name))
        unit: list[Array] = [None, None]
        for side in (0, 1):
            if paired or (name, side) in self._searched:
                unit[side] = blocks[side].directions(representations[side])
        if paired and sums:
            for side, X in enumerate(unit):
                self._sum(f"{name}/unit sum/{side}", X.sum(0))
                self._sum(f"{name}/unit gram/{side}", X.T @ X)
        if name in self._crossing:
            crossing = self._crossing[name]
            if crossing is None:
                moved = unit[0]
            else:
                moved = self.device.product(unit[0], crossing, "crossed")
            self._cosines[name].append((rows, self.device.row_products(moved, unit[1])))
        elif paired:
            is_moved = representations[0].basis is not None
            if is_moved:
                products = unit[0].T @ unit[1]
            else:
                products = self.device.row_products(*unit).sum()
            self._sum(f"{name}/paired", products)
        for side in (0, 1):
            if (name, side) in self._searched:
                self._search(name, side, unit[side], rows, labelled)

    def _add_lengths(
        self, name: str, side: int, block: BlockRows, representation: Representation, rows: np.ndarray
    ) -> None:
        """Add powers of the squared lengths of the centred rows, and sums of coordinates weighted by these
        powers."""
        lengths = block.squares(representation)
        centred = block.centred(representation.frame)
        self.tops[f"{name}/longest/{side}"].add(lengths[None], rows)
        double = power = self.device.double(lengths)
        for exponent in (1, 2, 3):
            self._sum(f"{name}/power {exponent}/{side}", power.sum())
            power = power * double
        # Scale lengths to about 1, because fourth powers of large numbers exceed the range of float32.
        lengths = lengths * np.float32(1 / representation.size)
        self._sum(f"{name}/weighted/{side}", lengths @ centred)
        self._sum(f"{name}/weighted twice/{side}", (lengths * lengths) @ centred)

    def _search(
        self, name: str, side: int, unit: Array, rows: np.ndarray, labelled: np.ndarray | None
    ) -> None:
        """Compare all queries with these rows of one space, and keep the nearest ones of each search."""
        queries, common = self._searched[name, side]
        searches = self.plan.searches[name][side]
        assert searches is not None, "each searched side has searches"
        q = len(self.plan.roles.queries)
        size = self.device.rows_at_once(self.device.search_rows, 8 * len(queries))
        for part in row_blocks(len(rows), size):
            if common is None:
                block = unit[part]
            else:
                block = self.device.centred(unit[part], common, "apart")
            scores = self.device.product(queries, block.T, "scores")
            if common is not None:
                scores -= self.device.row_products(block, block) / 2
            if searches.tied:
                scores = on_grid(scores)
            numbers = self.device.put(rows[part])
            for place, search in enumerate(searches.each):
                mine = scores[place * q : (place + 1) * q]
                of_mine = numbers
                if search.labelled:
                    assert labelled is not None, "only rows of which some have labels are searched so"
                    chosen = self.device.put(np.flatnonzero(labelled[part]))
                    mine = mine[:, chosen]
                    of_mine = numbers[chosen]
                self.tops[f"{name}/{search.name}"].add(mine, of_mine)

    def _sum(self, name: str, array: Array) -> None:
        if name in self._sums:
            self._sums[name] += array
        else:
            self._sums[name] = self.device.double(array)

    def merge(self, other: Sums) -> None:
        self.n += other.n
        for name, array in other._sums.items():
            self._sum(name, array)
        for name, top in other.tops.items():
            self.tops[name].merge(top)  # type: ignore[arg-type]  # both lie on one kind of device
        for name, parts in other._cosines.items():
            self._cosines[name] += parts

    def result(self) -> Sums:
        """Copy the sums from the device to NumPy arrays, and return self."""
        get = self.device.get
        self._sums = {name: get(array) for name, array in self._sums.items()}
        self.tops = {name: top.fetched() for name, top in self.tops.items()}
        self._cosines = {
            name: [(rows, np.array(get(values))) for rows, values in parts]
            for name, parts in self._cosines.items()
        }
        self.device, self._searched, self._crossing = NumpyDevice(), {}, dict.fromkeys(self._crossing)
        return self

    def joined(self, others: Sequence[Sums]) -> Sums:
        """Add the nearest rows of further queries from other passes over the same rows, and return self."""
        every = (self, *others)
        for name, top in self.tops.items():
            parts = [sums.tops[name] for sums in every if name in sums.tops]
            top.rows = np.concatenate([part.rows for part in parts])
            top.values = np.concatenate([part.values for part in parts])
        queries = np.concatenate([sums.plan.roles.queries for sums in every])
        self.plan = replace(self.plan, roles=replace(self.plan.roles, queries=queries))
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        self.result()
        arrays = {"n": np.array(self.n)}
        arrays |= {f"sum/{name}": array for name, array in self._sums.items()}
        arrays |= {f"rows/{name}": top.rows for name, top in self.tops.items()}
        return arrays | {f"values/{name}": top.values for name, top in self.tops.items()}

    @classmethod
    def from_arrays(cls, plan: Plan, arrays: Mapping[str, np.ndarray]) -> Sums:
        """Read the sums from the result of `to_arrays`, which has no cosines of the rows."""
        sums = cls(plan)
        sums.n = int(arrays["n"])
        sums._sums = {name[4:]: np.array(array) for name, array in arrays.items() if name.startswith("sum/")}
        for name, top in sums.tops.items():
            top.rows, top.values = np.array(arrays[f"rows/{name}"]), np.array(arrays[f"values/{name}"])
        return sums

    def slim(self) -> None:
        """Keep only the nearest rows, about a megabyte, and drop the sums."""
        self._sums.clear()
        none = np.empty((0, 0))
        self.plan = replace(self.plan, searches={}, samples=(none, none))

    def narrowed(self, removed: np.ndarray, queries: np.ndarray) -> Sums:
        """A copy with the nearest rows of these queries only, from which the rows `removed` (at most
        `extra_neighbours`) are left out."""
        sums = copy(self)
        plan = self.plan
        places = np.searchsorted(plan.roles.queries, queries)
        extra_neighbours = plan.request.extra_neighbours
        roles = replace(plan.roles, left_out=np.union1d(plan.roles.left_out, removed), queries=queries)
        sums.plan = replace(plan, request=replace(plan.request, extra_neighbours=0), roles=roles)
        lists = {name: top for name, top in self.tops.items() if "/longest/" not in name}
        sums.tops = {
            name: top.fetched().without(removed, places, extra_neighbours) for name, top in lists.items()
        }
        return sums

    def nearest(self, representation: str, search: Search) -> np.ndarray:
        """The row numbers (q, k) of the nearest rows of a search, including the query."""
        rows = self.tops[f"{representation}/{search.name}"].rows
        return rows[:, : rows.shape[1] - self.plan.request.extra_neighbours]

    def cosines(self, representation: str) -> np.ndarray:
        """The cosine of each row with its partner, (n,) float32; NaN for rows that are not scored."""
        every = np.full(self.plan.roles.n, np.nan, dtype=np.float32)
        for rows, values in self._cosines[representation]:
            every[rows] = values
        return every

    def linear_cka(self, representation: str) -> CkaSums:
        """The sums that linear CKA needs in a representation, over rows minus their mean."""
        n = self.n
        (source, target) = self.plan.representations[representation]
        offsets = [self._sums[f"{source.frame}/sum/{side}"] / n for side in (0, 1)]
        cross = self._sums[f"{source.frame}/cross"] - n * np.outer(*offsets)
        cross = source.mapped_products(cross, target)
        sides = self._space_sums(representation, 0), self._space_sums(representation, 1)
        return CkaSums(n, float(np.vdot(cross, cross)), *sides)

    def mean_cosine(self, representation: str) -> Score:
        between = self.plan.between(representation)
        if representation in self._crossing:
            paired = float(np.nansum(self.cosines(representation), dtype=np.float64))
        elif between is None:
            paired = float(self._sums[f"{representation}/paired"])
        else:
            paired = float(np.vdot(self._sums[f"{representation}/paired"], between))
        sums = [self._sums[f"{representation}/unit sum/{side}"] for side in (0, 1)]
        grams = [self._sums[f"{representation}/unit gram/{side}"] for side in (0, 1)]
        return cosine_score(self.n, paired, sums, grams, between)

    def decisive_rows(self, representation: str) -> np.ndarray:
        """The row numbers that `scores.cka.decisive_rows` selects."""
        decisive = []
        n = self.n
        for side in (0, 1):
            top = self.tops[f"{representation}/longest/{side}"]
            fourth = float(self._sums[f"{representation}/power 2/{side}"])
            decisive.append(decisive_of_longest(n, top.rows[0], top.values[0].astype(np.float64), fourth))
        rows = np.unique(np.concatenate(decisive))
        return rows if n - len(rows) >= 4 else rows[:0]

    def _space_sums(self, name: str, side: int) -> SpaceSums:
        """The sums over rows minus their mean, computed from those over rows x minus a centre close to the
        mean.

        Let e = mean − centre, l = ‖x‖² and c = ‖e‖² − 2 e·x, so that ‖x − e‖² = l + c. Then every sum except
        Σ l c² is exact. For this sum, l and c are assumed to be uncorrelated, which causes an error of second
        order in e.
        """
        n = self.n
        representation = self.plan.representations[name][side]
        frame = self.plan.frames[side][representation.frame]
        total = self._sums[f"{representation.frame}/sum/{side}"]
        gram = self._sums[f"{representation.frame}/gram/{side}"]
        weighted = representation.size * representation.mapped(self._sums[f"{name}/weighted/{side}"])
        twice = representation.size**2 * representation.mapped(self._sums[f"{name}/weighted twice/{side}"])
        first = float(self._sums[f"{name}/power 1/{side}"])
        second = float(self._sums[f"{name}/power 2/{side}"])
        third = float(self._sums[f"{name}/power 3/{side}"])
        e = representation.mapped(total / n)
        gram = representation.mapped_products(gram, representation)
        ee = e @ e
        change = -n * ee  # the sum of c = ‖e‖² − 2 e·x over the rows
        squared = 4 * e @ gram @ e - 3 * n * ee**2  # the sum of c² over the rows
        powers = (
            first + change,
            second + 2 * (ee * first - 2 * e @ weighted) + squared,
            third + 3 * (ee * second - 2 * e @ twice) + 3 * first / n * squared,
        )
        weighted = weighted - e * first + (n * ee * e - 2 * gram @ e) - e * change
        gram = gram - n * np.outer(e, e)
        differ = powers[0] > 0  # if all rows are equal, rounding can make this sum of squares negative
        square = differ * float(np.vdot(gram, gram))
        spread = float(np.sqrt(max(powers[0], 0) / n))
        mean = representation.row_of_centre(frame) + e
        sums = None
        if square > 0 and n > 1:
            rows = self.plan.block(side, self.plan.samples[side]).centred(representation.frame)
            rows = representation.mapped(rows.astype(np.float64)) - e
            sums = RowSums.from_sums(n, powers, rows, np.vecdot(rows, rows), gram, weighted)
        return SpaceSums(square, sums, spread, float(np.linalg.norm(mean)))


class SeveralSums:
    """The `Sums` of several plans, to which the same blocks are added. It is an `Accumulator`."""

    def __init__(self, plans: Sequence[Plan], device: Device | None = None) -> None:
        device = device or NumpyDevice()
        self.each = [Sums(plan, device) for plan in plans]

    def add(self, block: PairBlock) -> None:
        for sums in self.each:
            sums.add(block)

    def merge(self, other: SeveralSums) -> None:
        for sums, more in zip(self.each, other.each, strict=True):
            sums.merge(more)

    def result(self) -> list[Sums]:
        return [sums.result() for sums in self.each]

    def to_arrays(self) -> dict[str, np.ndarray]:
        numbered = enumerate(sums.to_arrays() for sums in self.each)
        return {f"{number}/{name}": array for number, arrays in numbered for name, array in arrays.items()}

    @classmethod
    def from_arrays(cls, plans: Sequence[Plan], arrays: Mapping[str, np.ndarray]) -> SeveralSums:
        several = cls(())
        for number, plan in enumerate(plans):
            start = f"{number}/"
            own = {
                name.removeprefix(start): array for name, array in arrays.items() if name.startswith(start)
            }
            several.each.append(Sums.from_arrays(plan, own))
        return several
