"""Sums: what all scores of a pair need from its rows, block by block, in any order and in any number of
processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from relcore.scores.cka import CkaSums, RowSums, SpaceSums, cosine_score
from relcore.scores.device import Array, NumpyDevice, TorchDevice
from relcore.scores.plan import BlockRows, Form, Plan, Search, placed
from relcore.scores.score import Score, most_decisive, standing_apart

# The rows nearest to some queries, kept up to date from block to block.


class TopRows:
    """The k rows with the largest scores for each of q queries, nearest first; equal scores in one fixed
    order.

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

    def add(self, device: NumpyDevice | TorchDevice, scores: Array, rows: np.ndarray) -> None:
        """The scores (q, m) of further rows, whose numbers are `rows` (m,)."""
        which, columns, values = device.candidates(scores, self.values[:, -1], self.values.shape[1])
        self._enter(which, values, rows[columns])

    def merge(self, other: TopRows) -> None:
        """Those of other rows for the same queries."""
        which = np.repeat(np.arange(len(other.rows)), other.rows.shape[1])
        self._enter(which, other.values.ravel(), other.rows.ravel())

    def without(self, gone: np.ndarray, queries: np.ndarray, n_fewer: int) -> TopRows:
        """For these queries (places) the k − n_fewer nearest rows that are not `gone`, which are at most
        n_fewer.
        """
        fewer = TopRows(len(queries), self.rows.shape[1] - n_fewer, self.seed)
        staying = np.argsort(np.isin(self.rows[queries], gone), axis=1, kind="stable")[
            :, : fewer.rows.shape[1]
        ]
        fewer.rows, fewer.values = (
            np.take_along_axis(array[queries], staying, axis=1) for array in (self.rows, self.values)
        )
        return fewer

    def _enter(self, which: np.ndarray, values: np.ndarray, rows: np.ndarray) -> None:
        """Candidates for the queries `which`, ascending."""
        if not len(which):
            return
        k, changed = self.values.shape[1], which[np.flatnonzero(np.diff(which, prepend=-1))]
        which = np.concatenate([which, np.repeat(changed, k)])
        values = np.concatenate([values, self.values[changed].ravel()])
        rows = np.concatenate([rows, self.rows[changed].ravel()])
        order = np.lexsort((rows if self.seed is None else scrambled(rows, self.seed), -values, which))
        which = which[order]
        first = np.searchsorted(which, changed)  # each query has k candidates or more
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


LONGEST = 11  # rows of either space, for `scores.score`
SEARCH_ROWS = 4096  # the scores of 600 queries with 4,096 rows are 10 MB, which stay in cache


class Sums:
    """Sums and nearest rows over the blocks that were added.

    Every row of the pair has to be added once, in blocks of both spaces with their row numbers. `merge` takes
    the sums of other rows by the same plan; `to_arrays` and `from_arrays` carry them, a few MB, to another
    process.

    Parameters
    ----------
    plan : Plan
    device : as `device_of` returns it
        Several sums in one thread share its buffers.
    """

    def __init__(self, plan: Plan, device: NumpyDevice | TorchDevice | None = None) -> None:
        self.plan, self.device = plan, device or NumpyDevice()
        put, question = self.device.put, plan.question
        self._frames = [
            {name: placed(self.device, one) for name, one in side.items()} for side in plan.frames
        ]
        self._forms = {name: [placed(self.device, one) for one in both] for name, both in plan.forms.items()}
        self.n, self._sums, self.tops, self._searched, self._crossing = 0, {}, {}, {}, {}
        for name, both in plan.searches.items():
            for side, searches in enumerate(both):
                if searches is not None:
                    common = None if searches.common is None else put(searches.common)
                    self._searched[name, side] = put(searches.queries), common
                    for search in searches.each:
                        seed = searches.seed if search.alone else None
                        k = search.k + search.alone
                        self.tops[f"{name}/{search.name}"] = TopRows(len(plan.roles.queries), k, seed)
        for name in plan.forms:
            if question.sums:
                self.tops |= {f"{name}/longest/{side}": TopRows(1, LONGEST) for side in (0, 1)}
            if question.cosines and plan.same_width(name):
                between = plan.between(name)
                self._crossing[name] = None if between is None else put(between.astype(np.float32))
        self._cosines: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in self._crossing}

    def add(
        self, source: np.ndarray, target: np.ndarray, rows: np.ndarray, labelled: np.ndarray | None = None
    ) -> None:
        """Rows (m, d_source) and (m, d_target) of both spaces, of any real type, their numbers (m,), and
        which of them have a label (m,), where only some do.
        """
        scored = np.flatnonzero(~np.isin(rows, self.plan.roles.left_out))
        if len(scored) < len(rows):
            source, target, rows = source[scored], target[scored], rows[scored]
            labelled = None if labelled is None else labelled[scored]
        if not len(rows):
            return
        self.n += len(rows)
        with self.device.exact():
            blocks = [
                BlockRows(self.device, self._frames[side], X, side) for side, X in enumerate((source, target))
            ]
            if self.plan.question.sums:
                for frame in dict.fromkeys(form.frame for forms in self._forms.values() for form in forms):
                    self._add_products(frame, [block.centred(frame) for block in blocks])
            for name, forms in self._forms.items():
                self._add_form(name, forms, blocks, rows, labelled)

    def _add_form(
        self,
        name: str,
        forms: Sequence[Form],
        blocks: Sequence[BlockRows],
        rows: np.ndarray,
        labelled: np.ndarray | None,
    ) -> None:
        sums = self.plan.question.sums
        if sums:
            for side in (0, 1):
                self._add_lengths(name, side, blocks[side], forms[side], rows)
        paired = name in self._crossing or (sums and self.plan.same_width(name))
        unit = [
            blocks[side].directions(forms[side]) if paired or (name, side) in self._searched else None
            for side in (0, 1)
        ]
        if paired and sums:
            for side in (0, 1):
                self._sum(f"{name}/unit sum/{side}", unit[side].sum(0))
                self._sum(f"{name}/unit gram/{side}", unit[side].T @ unit[side])
        if name in self._crossing:
            crossing = self._crossing[name]
            moved = unit[0] if crossing is None else self.device.product(unit[0], crossing, "crossed")
            cosines = self.device.get(self.device.paired(moved, unit[1]))
            self._cosines[name].append((rows, np.array(cosines)))
        elif paired:
            is_moved = forms[0].basis is not None
            products = unit[0].T @ unit[1] if is_moved else self.device.paired(*unit).sum()
            self._sum(f"{name}/paired", products)
        for side in (0, 1):
            if (name, side) in self._searched:
                self._search(name, side, unit[side], rows, labelled)

    def _add_products(self, frame: str, centred: Sequence[Array]) -> None:
        for side, block in enumerate(centred):
            self._sum(f"{frame}/sum/{side}", block.sum(0))
            self._sum(f"{frame}/gram/{side}", block.T @ block)
        self._sum(f"{frame}/cross", centred[0].T @ centred[1])

    def _add_lengths(self, name: str, side: int, block: BlockRows, form: Form, rows: np.ndarray) -> None:
        """Powers of the squared lengths about the centre, and the coordinates weighted by them."""
        lengths, centred = block.squares(form), block.centred(form.frame)
        self.tops[f"{name}/longest/{side}"].add(self.device, lengths[None], rows)
        double = self.device.double(lengths)
        square = double * double
        self._sum(
            f"{name}/powers/{side}",
            self.device.stacked([double.sum(), square.sum(), (square * double).sum()]),
        )
        self._sum(f"{name}/weighted/{side}", lengths @ centred)
        self._sum(f"{name}/weighted twice/{side}", (lengths * lengths) @ centred)

    def _search(
        self, name: str, side: int, unit: Array, rows: np.ndarray, labelled: np.ndarray | None
    ) -> None:
        queries, common = self._searched[name, side]
        q = len(self.plan.roles.queries)
        for start in range(0, len(rows), SEARCH_ROWS):
            here = slice(start, start + SEARCH_ROWS)
            block = unit[here]
            if common is not None:
                block = self.device.centred(block, common, "apart")
            scores = self.device.product(queries, block.T, "scores")
            if common is not None:
                scores -= self.device.squares(block) / 2
            for place, search in enumerate(self.plan.searches[name][side].each):
                mine, numbers = scores[place * q : (place + 1) * q], rows[here]
                if search.labelled:
                    chosen = np.flatnonzero(labelled[here])
                    mine, numbers = mine[:, chosen], numbers[chosen]
                self.tops[f"{name}/{search.name}"].add(self.device, mine, numbers)

    def _sum(self, name: str, array: Array) -> None:
        if name in self._sums:
            self._sums[name] += array
        else:
            self._sums[name] = self.device.double(array)

    def merge(self, other: Sums) -> None:
        """The sums of other rows."""
        self.n += other.n
        for name, array in other._sums.items():
            self._sum(name, array)
        for name, top in other.tops.items():
            self.tops[name].merge(top)
        for name, parts in other._cosines.items():
            self._cosines[name] += parts

    def joined(self, others: Sequence[Sums]) -> Sums:
        """With the nearest rows of further queries, for which other passes have seen the same rows."""
        for name, top in self.tops.items():
            parts = [one.tops[name] for one in (self, *others) if name in one.tops]
            top.rows, top.values = (
                np.concatenate([getattr(one, what) for one in parts]) for what in ("rows", "values")
            )
        queries = np.concatenate([one.plan.roles.queries for one in (self, *others)])
        self.plan = replace(self.plan, roles=replace(self.plan.roles, queries=queries))
        return self

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as small arrays by name."""
        arrays = {"n": np.array(self.n)}
        arrays |= {f"sum/{name}": self.device.get(array) for name, array in self._sums.items()}
        arrays |= {f"rows/{name}": top.rows for name, top in self.tops.items()}
        return arrays | {f"values/{name}": top.values for name, top in self.tops.items()}

    @classmethod
    def from_arrays(cls, plan: Plan, arrays: Mapping[str, np.ndarray]) -> Sums:
        """Back from `to_arrays`, on the CPU; without the cosines of the rows."""
        sums = cls(plan)
        sums.n = int(arrays["n"])
        sums._sums = {name[4:]: np.array(array) for name, array in arrays.items() if name.startswith("sum/")}
        for name, top in sums.tops.items():
            top.rows, top.values = np.array(arrays[f"rows/{name}"]), np.array(arrays[f"values/{name}"])
        return sums

    def slim(self) -> None:
        """Forget what only the scores of all rows need: a megabyte is left, beside the rows of the spaces."""
        self._sums.clear()
        self.plan = replace(self.plan, searches={}, samples=())

    def narrowed(self, gone: np.ndarray, queries: np.ndarray) -> Sums:
        """As if these rows, at most `Question.spare`, had been left out, for some of the queries."""
        sums, plan = copy(self), self.plan
        places, spare = np.searchsorted(plan.roles.queries, queries), plan.question.spare
        roles = replace(plan.roles, left_out=np.union1d(plan.roles.left_out, gone), queries=queries)
        sums.plan = replace(plan, question=replace(plan.question, spare=0), roles=roles)
        sums.tops = {
            name: top.without(gone, places, spare)
            for name, top in self.tops.items()
            if "/longest/" not in name
        }
        return sums

    def nearest(self, form: str, search: Search) -> np.ndarray | None:
        """The rows, as row numbers (q, k), that a search has found; the query itself among them."""
        rows = self.tops[f"{form}/{search.name}"].rows
        return rows[:, : rows.shape[1] - self.plan.question.spare]

    def total(self, name: str) -> np.ndarray:
        """A sum over the scored rows, float64."""
        return self.device.get(self._sums[name])

    def cosines(self, form: str) -> np.ndarray:
        """Of each row of the pair with its partner, (n,) float32; NaN for a row that is not scored."""
        every = np.full(self.plan.roles.n, np.nan, dtype=np.float32)
        for rows, values in self._cosines[form]:
            every[rows] = values
        return every

    def linear_cka(self, form: str) -> CkaSums:
        """The sums of linear CKA of one representation, about the mean of its rows."""
        n, forms = self.n, self.plan.forms[form]
        offsets = [self.total(f"{one.frame}/sum/{side}") / n for side, one in enumerate(forms)]
        cross = self.total(f"{forms[0].frame}/cross") - n * np.outer(*offsets)
        cross = forms[0].mapped_products(cross, forms[1])
        return CkaSums(n, float(np.vdot(cross, cross)), *(self._space_sums(form, side) for side in (0, 1)))

    def mean_cosine(self, form: str) -> Score:
        """Of one representation."""
        n, between = self.n, self.plan.between(form)
        means = [self.total(f"{form}/unit sum/{side}") / n for side in (0, 1)]
        products = [
            self.total(f"{form}/unit gram/{side}") - n * np.outer(mean, mean)
            for side, mean in enumerate(means)
        ]
        if form in self._crossing:
            paired = float(np.nansum(self.cosines(form), dtype=np.float64))
        else:
            paired = self.total(f"{form}/paired")
            paired = float(paired if between is None else np.vdot(paired, between))
        if between is None:
            return cosine_score(n, paired / n, means[0] @ means[1], float(np.vdot(*products)))
        of_products = np.vdot(products[0] @ between, between @ products[1])
        return cosine_score(n, paired / n, means[0] @ between @ means[1], of_products)

    def decisive_rows(self, form: str) -> np.ndarray:
        """As `scores.score.decisive_rows`, by their row numbers."""
        rows, n = [], self.n
        for side in (0, 1):
            top, longest = self.tops[f"{form}/longest/{side}"], slice(0, most_decisive(n) + 1)
            fourth = float(self.total(f"{form}/powers/{side}")[1])
            squares = top.values[0, longest].astype(np.float64)
            rows.append(standing_apart(top.rows[0, longest], squares, fourth))
        rows = np.unique(np.concatenate(rows))
        return rows if n - len(rows) >= 4 else rows[:0]

    def _space_sums(self, name: str, side: int) -> SpaceSums:
        """Sums about the mean, from those about a centre that is close to it.

        With e = mean − centre and ‖x − e‖² = l + c, c = ‖e‖² − 2 e·x, every sum but Σ l c² is exact; that one
        takes l and c as unrelated, and is of second order in e.
        """
        n, plan, form = self.n, self.plan, self.plan.forms[name][side]
        total, gram = (self.total(f"{form.frame}/{what}/{side}") for what in ("sum", "gram"))
        weighted, twice = (
            form.mapped(self.total(f"{name}/{what}/{side}")) for what in ("weighted", "weighted twice")
        )
        first, second, third = self.total(f"{name}/powers/{side}")
        e, gram = form.mapped(total / n), form.mapped_products(gram)
        ee = e @ e
        change = -n * ee  # Σ c
        squared = 4 * e @ gram @ e - 3 * n * ee**2  # Σ c²
        powers = (
            first + change,
            second + 2 * (ee * first - 2 * e @ weighted) + squared,
            third + 3 * (ee * second - 2 * e @ twice) + 3 * first / n * squared,
        )
        weighted = weighted - e * first + (n * ee * e - 2 * gram @ e) - e * change
        gram = gram - n * np.outer(e, e)
        square = float(np.vdot(gram, gram))
        spread = float(np.sqrt(max(powers[0], 0) / n))
        origin = _origin(plan, form, side)
        if square == 0 or n < 2:
            return SpaceSums(square, None, spread, float(np.linalg.norm(origin + e)))
        centred = plan.block(side, plan.samples[side]).centred(form.frame)
        rows = form.mapped(centred.astype(np.float64)) - e
        sums = RowSums.from_sums(n, powers, rows, np.vecdot(rows, rows), gram, weighted)
        return SpaceSums(square, sums, spread, float(np.linalg.norm(origin + e)))


def _origin(plan: Plan, form: Form, side: int) -> np.ndarray:
    """Where the centre of the coordinates is in the representation."""
    if form.of_centred:
        return np.zeros(1) if form.shift is None else form.shift.astype(np.float64)
    return form.mapped(plan.frames[side][form.frame].centre.astype(np.float64))
