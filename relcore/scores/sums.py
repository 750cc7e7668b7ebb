"""BlockSums: what all scores of a pair need from its rows, block by block, in any order and in any number
of processes.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from relcore.scores.cka import CkaSums, CosineSums, RowSums, SpaceSums, decided_note
from relcore.scores.device import Array, NumpyDevice, TorchDevice, device_of
from relcore.scores.neighbours import Neighbours, without_itself
from relcore.scores.plan import BlockPlan, BlockRows, Form, ScoredRows, Searches, Take
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
        found = TopRows(len(queries), self.rows.shape[1] - n_fewer, self.seed)
        staying = np.argsort(np.isin(self.rows[queries], gone), axis=1, kind="stable")[
            :, : found.rows.shape[1]
        ]
        found.rows, found.values = (
            np.take_along_axis(one[queries], staying, axis=1) for one in (self.rows, self.values)
        )
        return found

    def to_arrays(self) -> dict[str, np.ndarray]:
        return {"values": self.values, "rows": self.rows}

    def take(self, arrays: Mapping[str, np.ndarray]) -> None:
        """Back from `to_arrays`."""
        self.values, self.rows = arrays["values"].astype(np.float32), arrays["rows"].astype(np.int64)

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


class BlockSums:
    """Sums and nearest rows over the blocks that were added.

    Parameters
    ----------
    plan : BlockPlan
    device : {"cpu", "cuda", "torch", "auto"}
        See `device_of`.

    Notes
    -----
    Every row of the pair has to be added once, in blocks (m, d) of both spaces with the numbers (m,) of their
    rows. `merge` takes the sums of other rows by the same plan; `to_arrays` and `from_arrays` carry them, a
    few MB, to another process.
    """

    def __init__(self, plan: BlockPlan, device: str = "cpu") -> None:
        self.plan, self.device = plan, device_of(device)
        self._frames = tuple(
            {name: frame.on(self.device) for name, frame in one.items()} for one in plan.frames
        )
        self._forms = {
            name: tuple(form.on(self.device) for form in pair) for name, pair in plan.forms.items()
        }
        self._stacked = {
            (name, side): tuple(
                self.device.put(array) for array in (one.stacked, one.common) if array is not None
            )
            for name, pair in plan.searches.items()
            for side, one in enumerate(pair)
            if one
        }
        self._sums: dict[str, Array] = {}
        self.n = dict.fromkeys(plan.question.kinds, 0)
        self.tops = {
            f"{name}/{side}/{search.name}": TopRows(len(search.queries), search.k, search.seed)
            for name, pair in plan.searches.items()
            for side, one in enumerate(pair)
            for search in (one.each if one else ())
        }
        if plan.question.sums:
            self.tops |= {
                f"{name}/{side}/longest": TopRows(1, LONGEST) for name in plan.forms for side in (0, 1)
            }
        self._crossing = {
            name: self._between(name)
            for name in plan.forms
            if plan.question.cosines and plan.same_width(name)
        }
        self._cosines: dict[str, list[tuple[np.ndarray, np.ndarray]]] = {name: [] for name in self._crossing}

    def add(self, source: np.ndarray, target: np.ndarray, rows: np.ndarray) -> None:
        """Rows (m, d_source) and (m, d_target) of both spaces, of any real type, and their numbers (m,)."""
        with self.device.exact():
            self._add_block(source, target, rows)

    def _add_block(self, source: np.ndarray, target: np.ndarray, rows: np.ndarray) -> None:
        numbers = self.plan.rows
        for kind in self.plan.question.kinds:
            taken = numbers.left_out if kind == "all" else np.concatenate([numbers.left_out, numbers.anchors])
            chosen = ~np.isin(rows, taken)
            if chosen.all():
                self._add(kind, (source, target), rows)
            elif (which := np.flatnonzero(chosen)).size:
                self._add(kind, (source[which], target[which]), rows[which])

    def merge(self, other: BlockSums) -> None:
        """The sums of other rows."""
        for part, n in other.n.items():
            self.n[part] += n
        for name, array in other._sums.items():
            self._sum(name, array)
        for name, top in other.tops.items():
            self.tops[name].merge(top)
        for name, parts in other._cosines.items():
            self._cosines[name] += parts

    def to_arrays(self) -> dict[str, np.ndarray]:
        """Everything as small arrays by name."""
        found = {f"n/{part}": np.array(n) for part, n in self.n.items()}
        found |= {f"sum/{name}": self.device.get(array) for name, array in self._sums.items()}
        found |= {f"cosines/{name}": self.cosines(name) for name in self._cosines}
        return found | {
            f"top/{name}/{key}": array
            for name, top in self.tops.items()
            for key, array in top.to_arrays().items()
        }

    @classmethod
    def from_arrays(cls, plan: BlockPlan, arrays: Mapping[str, np.ndarray]) -> BlockSums:
        """Back from `to_arrays`, on the CPU."""
        found = cls(plan)
        found.n = {part: int(arrays[f"n/{part}"]) for part in found.n}
        found._sums = {
            name.removeprefix("sum/"): np.array(array)
            for name, array in arrays.items()
            if name.startswith("sum/")
        }
        for name, top in found.tops.items():
            top.take({key: arrays[f"top/{name}/{key}"] for key in ("values", "rows")})
        for name, parts in found._cosines.items():
            parts.append((np.arange(plan.rows.n), arrays[f"cosines/{name}"]))
        return found

    def of_form(self, form: str) -> BlockSums:
        """The nearest rows and the cosines of one representation, without the sums."""
        found, found_plan = copy(self), copy(self.plan)
        found_plan.question = replace(self.plan.question, forms=(form,), sums=False)
        found_plan.forms, found_plan.gathered, found_plan.searches = {form: self.plan.forms[form]}, {}, {}
        found.plan, found._sums, found._stacked = found_plan, {}, {}
        found.tops = {
            name: self.tops[name]
            for name in self.tops
            if name.startswith(f"{form}/") and "longest" not in name
        }
        found._cosines = {
            name: [(np.arange(self.plan.rows.n), self.cosines(name))]
            for name in self._cosines
            if name == form
        }
        return found

    def narrowed(self, kind: str, gone: np.ndarray, queries: np.ndarray) -> BlockSums:
        """Of `of_form`: as if these rows, at most `Question.spare`, had been left out, for some of the
        queries.
        """
        found, found.plan = copy(self), copy(self.plan)
        found.plan.question = replace(self.plan.question, spare=0)
        found.plan.rows = replace(self.plan.rows, left_out=gone, queries={kind: queries})
        which = np.searchsorted(self.plan.rows.queries[kind], queries)
        found.tops = {
            name: top.without(gone, which, self.plan.question.spare) for name, top in self.tops.items()
        }
        return found

    def total(self, form: str, name: str) -> np.ndarray:
        """A sum over the rows that the scores of a representation use, float64."""
        return self.device.get(self._sums[f"{self.plan.question.kind(form)}/{name}"])

    def cosines(self, form: str) -> np.ndarray:
        """Of each row of the pair with its partner, (n,) float32; NaN for a row that is not scored, or not
        seen.
        """
        found = np.full(self.plan.rows.n, np.nan, dtype=np.float32)
        for rows, values in self._cosines[form]:
            found[rows] = values
        return found

    def paired(self, form: str) -> float:
        """The sum of the cosines of the scored rows with their partners, for spaces of one width."""
        if form in self._crossing:
            return float(np.nansum(self.cosines(form), dtype=np.float64))
        paired, between = self.total(form, f"{form}/paired"), self.plan.between(form)
        return float(paired if between is None else np.vdot(paired, between))

    def _between(self, name: str) -> Array | None:
        between = self.plan.between(name)
        return None if between is None else self.device.put(between.astype(np.float32))

    def _sum(self, name: str, array: Array) -> None:
        if name in self._sums:
            self._sums[name] += array
        else:
            self._sums[name] = self.device.double(array)

    def _add(self, kind: str, blocks: tuple[np.ndarray, np.ndarray], rows: np.ndarray) -> None:
        """Rows for all representations of one `Question.kind`. Those of the other take none of it, so that no
        score depends, to the last digit, on what else is scored."""
        sides = tuple(
            BlockRows(self.device, self._frames[side], block, side) for side, block in enumerate(blocks)
        )
        names = [name for name in self.plan.forms if self.plan.question.kind(name) == kind]
        self.n[kind] += len(rows)
        if self.plan.question.sums:
            frames = dict.fromkeys(form.frame for name in names for form in self._forms[name])
            for frame in frames:
                self._add_products(f"{kind}/{frame}", [side.centred(frame) for side in sides])
        for name in names:
            forms = self._forms[name]
            if self.plan.question.sums:
                for number, (side, form) in enumerate(zip(sides, forms, strict=True)):
                    self._add_lengths(
                        f"{kind}/{name}/{number}", side, form, self.tops[f"{name}/{number}/longest"], rows
                    )
            wanted = [self.plan.searches[name][number] for number in (0, 1)]
            if name in self._crossing or (self.plan.question.sums and self.plan.same_width(name)):
                unit = [side.directions(form) for side, form in zip(sides, forms, strict=True)]
                if self.plan.question.sums:
                    self._add_directions(f"{kind}/{name}", unit)
                if name in self._crossing:
                    self._keep_cosines(name, unit, rows)
                else:
                    self._add_paired(f"{kind}/{name}", unit, is_moved=forms[0].basis is not None)
            else:
                unit = [
                    side.directions(form) if one else None
                    for side, form, one in zip(sides, forms, wanted, strict=True)
                ]
            for number, one in enumerate(wanted):
                if one:
                    self._search(name, number, one, unit[number], rows)

    def _add_products(self, name: str, centred: Sequence[Array]) -> None:
        for side, block in enumerate(centred):
            self._sum(f"{name}/sum/{side}", block.sum(0))
            self._sum(f"{name}/gram/{side}", block.T @ block)
        self._sum(f"{name}/cross", centred[0].T @ centred[1])

    def _add_lengths(
        self, name: str, side: BlockRows, form: Form, longest: TopRows, rows: np.ndarray
    ) -> None:
        """Powers of the squared lengths about the centre, and the coordinates weighted by them."""
        lengths, centred = side.squares(form), side.centred(form.frame)
        longest.add(self.device, lengths[None], rows)
        double = self.device.double(lengths)
        square = double * double
        self._sum(
            f"{name}/powers", self.device.stacked([double.sum(), square.sum(), (square * double).sum()])
        )
        self._sum(f"{name}/weighted", lengths @ centred)
        self._sum(f"{name}/weighted twice", (lengths * lengths) @ centred)

    def _add_directions(self, name: str, unit: Sequence[Array]) -> None:
        for side, block in enumerate(unit):
            self._sum(f"{name}/unit sum/{side}", block.sum(0))
            self._sum(f"{name}/unit gram/{side}", block.T @ block)

    def _add_paired(self, name: str, unit: Sequence[Array], *, is_moved: bool) -> None:
        self._sum(f"{name}/paired", unit[0].T @ unit[1] if is_moved else self.device.paired(*unit).sum())

    def _keep_cosines(self, name: str, unit: Sequence[Array], rows: np.ndarray) -> None:
        crossing = self._crossing[name]
        moved = unit[0] if crossing is None else self.device.product(unit[0], crossing, "crossed")
        self._cosines[name].append((rows, np.array(self.device.get(self.device.paired(moved, unit[1])))))

    def _search(self, name: str, side: int, searches: Searches, unit: Array, rows: np.ndarray) -> None:
        stacked, *common = self._stacked[name, side]
        labelled = self.plan.rows.labelled
        for start in range(0, len(rows), SEARCH_ROWS):
            block, numbers = unit[start : start + SEARCH_ROWS], rows[start : start + SEARCH_ROWS]
            if common:
                block = self.device.centred(block, common[0], "apart")
            scores = self.device.product(stacked, block.T, "scores")
            if common:
                scores -= self.device.squares(block) / 2
            first = 0
            for search in searches.each:
                mine = scores[first : first + len(search.queries)]
                first += len(search.queries)
                known = numbers
                if search.labelled:
                    chosen = np.flatnonzero(labelled[numbers])
                    mine, known = mine[:, chosen], numbers[chosen]
                self.tops[f"{name}/{side}/{search.name}"].add(self.device, mine, known)


def joined(parts: Sequence[BlockSums]) -> BlockSums:
    """The sums of the first part with the nearest rows of the queries of all; each has seen all rows."""
    first, queries = copy(parts[0]), [part.plan.rows.queries for part in parts]
    first.plan = copy(first.plan)
    together = {kind: np.concatenate([one[kind] for one in queries]) for kind in queries[0]}
    first.plan.rows = replace(first.plan.rows, queries=together)
    first.tops = dict(first.tops)
    for name in first.tops:
        found = [part.tops[name] for part in parts if name in part.tops]
        arrays = [top.to_arrays() for top in found]
        first.tops[name] = copy(found[0])
        first.tops[name].take({key: np.concatenate([one[key] for one in arrays]) for key in arrays[0]})
    return first


# The scores' sums and neighbour lists from what a pass has gathered.


@dataclass(frozen=True, eq=False)
class FormSums:
    """Scores of one representation from sums; `without` are those of a second pass that left the `decisive`
    rows out.

    It is what `AlignedPair.sums` holds for the metrics.
    """

    form: str
    seen: BlockSums
    decisive: np.ndarray
    without: FormSums | None = None

    def linear_cka(self, ids: np.ndarray) -> Score:
        """As `scores.cka.linear_cka`; `ids` of the rows that are scored name the decisive ones."""
        found, note = cka_sums(self.seen, self.form), ""
        if self.without:
            scored = self.seen.plan.rows.scored(self.seen.plan.question.kind(self.form))
            other = cka_sums(self.without.seen, self.form)
            note = decided_note(found.value, other.value, scored.places(self.decisive), ids)
        return found.score(note)

    def mean_cosine(self) -> Score:
        """As `scores.cka.mean_cosine`."""
        seen, name = self.seen, self.form
        n = seen.plan.rows.n_scored(seen.plan.question.kind(name))
        means = [seen.total(name, f"{name}/unit sum/{side}") / n for side in (0, 1)]
        products = [
            seen.total(name, f"{name}/unit gram/{side}") - n * np.outer(mean, mean)
            for side, mean in enumerate(means)
        ]
        paired, between = seen.paired(name), seen.plan.between(name)
        if between is None:
            return CosineSums(n, paired / n, means[0] @ means[1], float(np.vdot(*products))).score()
        of_products = np.vdot(products[0] @ between, between @ products[1])
        return CosineSums(n, paired / n, means[0] @ between @ means[1], of_products).score()


def cka_sums(seen: BlockSums, name: str) -> CkaSums:
    """The sums of linear CKA of one representation, about the mean of its rows."""
    plan = seen.plan
    n = plan.rows.n_scored(plan.question.kind(name))
    forms = plan.forms[name]
    offsets = [seen.total(name, f"{form.frame}/sum/{side}") / n for side, form in enumerate(forms)]
    cross = seen.total(name, f"{forms[0].frame}/cross") - n * np.outer(*offsets)
    cross = forms[0].mapped_products(cross, forms[1])
    return CkaSums(n, float(np.vdot(cross, cross)), *(_space_sums(seen, name, side) for side in (0, 1)))


def decisive_rows(seen: BlockSums, name: str) -> np.ndarray:
    """As `scores.score.decisive_rows`, by their row numbers."""
    found, n = [], seen.plan.rows.n_scored(seen.plan.question.kind(name))
    for side in (0, 1):
        top = seen.tops[f"{name}/{side}/longest"]
        longest = slice(0, most_decisive(n) + 1)
        fourth = seen.total(name, f"{name}/{side}/powers")[1]
        found.append(
            standing_apart(top.rows[0, longest], top.values[0, longest].astype(np.float64), float(fourth))
        )
    rows = np.unique(np.concatenate(found))
    return rows if n - len(rows) >= 4 else rows[:0]


def _space_sums(seen: BlockSums, name: str, side: int) -> SpaceSums:
    """Sums about the mean, from those about a centre that is close to it: with e = mean − centre and ‖x − e‖²
    = l + c, c = ‖e‖² − 2 e·x, every sum but Σ l c² is exact; that one takes l and c as unrelated, and is of
    second order in e.
    """
    plan, form = seen.plan, seen.plan.forms[name][side]
    kind = plan.question.kind(name)
    n = plan.rows.n_scored(kind)
    total, gram = (seen.total(name, f"{form.frame}/{what}/{side}") for what in ("sum", "gram"))
    weighted, twice = (
        form.mapped(seen.total(name, f"{name}/{side}/{what}")) for what in ("weighted", "weighted twice")
    )
    first, second, third = seen.total(name, f"{name}/{side}/powers")
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
    centred = plan.block(side, plan.gathered[f"sample {kind}"][side]).centred(form.frame)
    rows = form.mapped(centred.astype(np.float64)) - e
    sums = RowSums.from_sums(n, powers, rows, np.vecdot(rows, rows), gram, weighted)
    return SpaceSums(square, sums, spread, float(np.linalg.norm(origin + e)))


def _origin(plan: BlockPlan, form: Form, side: int) -> np.ndarray:
    """Where the centre of the coordinates is in the representation."""
    if form.of_centred:
        return np.zeros(1) if form.shift is None else form.shift.astype(np.float64)
    return form.mapped(plan.frames[side][form.frame].centre.astype(np.float64))


@dataclass(frozen=True, eq=False)
class PassedNeighbours(Neighbours):
    """Neighbour lists from a pass: rows that a note wants are taken again, a few hundred."""

    form: str = ""
    plan: BlockPlan | None = None
    take: Take | None = None
    lists: tuple[np.ndarray, ...] = ()
    scored: ScoredRows | None = None

    @property
    def n(self) -> int:
        return len(self.scored)

    @cached_property
    def retrievals(self) -> tuple[np.ndarray, ...]:
        return tuple(found[:, : self.k] for found in self.lists)

    def vectors(self, side: str, rows: np.ndarray) -> np.ndarray:
        number = ("source", "target").index(side)
        return self.plan.directions(self.form, number, self.take(number, self.scored.at(rows)))


def neighbours_of(seen: BlockSums, name: str, take: Take) -> PassedNeighbours:
    """The neighbour lists of one representation; row numbers count the rows that are scored, as elsewhere."""
    plan = seen.plan
    question, kind = plan.question, plan.question.kind(name)
    scored = plan.rows.scored(kind)
    queries = scored.places(plan.rows.queries[kind])

    def lists(side: int, title: str) -> np.ndarray | None:
        top = seen.tops.get(f"{name}/{side}/{title}")
        return None if top is None else scored.places(top.rows[:, : top.rows.shape[1] - question.spare])

    forward, backward = lists(1, "forward"), lists(0, "backward")
    if question.convention == "paper":
        own, other = lists(1, "own"), forward[:, : question.k]
    else:
        own, other = (
            without_itself(queries, lists(side, title)) for side, title in ((0, "own"), (1, "other"))
        )
    crossing = tuple(found for found in (forward, backward) if found is not None)
    return PassedNeighbours(
        None, None, queries, own, other, question.convention, "cpu", name, plan, take, crossing, scored
    )


def labelled_lists(seen: BlockSums, name: str, labelled: np.ndarray, k: int) -> tuple[np.ndarray, ...]:
    """The k labelled rows nearest to each labelled query in the other space, (m, k) of the count of labelled
    rows `labelled` (row numbers), one array per direction."""
    plan = seen.plan
    queries = np.isin(plan.rows.queries[plan.question.kind(name)], labelled)
    found = []
    for side, title in ((1, "forward"), (0, "backward"))[: 1 + (plan.question.convention == "mutual")]:
        top = seen.tops.get(f"{name}/{side}/{title} labelled") or seen.tops[f"{name}/{side}/{title}"]
        found.append(np.searchsorted(labelled, top.rows[queries, :k]))
    return tuple(found)
