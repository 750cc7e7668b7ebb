"""BlockSums: what all scores of a pair need from its rows, block by block, in any order and in any number of processes."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from copy import copy
from dataclasses import replace

import numpy as np

from relcore.block_scores.device import Array, device_of
from relcore.block_scores.forms import BlockRows, Form
from relcore.block_scores.plan import BlockPlan, Searches
from relcore.block_scores.top_rows import TopRows

LONGEST = 11  # rows of either space, for `metrics.cautions`
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
    Every row of the pair has to be added once, in blocks (m, d) of both spaces with the numbers (m,) of their rows. `merge`
    takes the sums of other rows by the same plan; `to_arrays` and `from_arrays` carry them, a few MB, to another process.
    """

    def __init__(self, plan: BlockPlan, device: str = "cpu") -> None:
        self.plan, self.device = plan, device_of(device)
        self._frames = tuple({name: frame.on(self.device) for name, frame in one.items()} for one in plan.frames)
        self._forms = {name: tuple(form.on(self.device) for form in pair) for name, pair in plan.forms.items()}
        self._stacked = {
            (name, side): tuple(self.device.put(array) for array in (one.stacked, one.common) if array is not None)
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
            self.tops |= {f"{name}/{side}/longest": TopRows(1, LONGEST) for name in plan.forms for side in (0, 1)}
        self._crossing = {name: self._between(name) for name in plan.forms if plan.question.cosines and plan.same_width(name)}
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
        return found | {f"top/{name}/{key}": array for name, top in self.tops.items() for key, array in top.to_arrays().items()}

    @classmethod
    def from_arrays(cls, plan: BlockPlan, arrays: Mapping[str, np.ndarray]) -> BlockSums:
        """Back from `to_arrays`, on the CPU."""
        found = cls(plan)
        found.n = {part: int(arrays[f"n/{part}"]) for part in found.n}
        found._sums = {name.removeprefix("sum/"): np.array(array) for name, array in arrays.items() if name.startswith("sum/")}
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
        found.tops = {name: self.tops[name] for name in self.tops if name.startswith(f"{form}/") and "longest" not in name}
        found._cosines = {name: [(np.arange(self.plan.rows.n), self.cosines(name))] for name in self._cosines if name == form}
        return found

    def narrowed(self, kind: str, gone: np.ndarray, queries: np.ndarray) -> BlockSums:
        """Of `of_form`: as if these rows, at most `Question.spare`, had been left out, for some of the queries."""
        found, found.plan = copy(self), copy(self.plan)
        found.plan.question = replace(self.plan.question, spare=0)
        found.plan.rows = replace(self.plan.rows, left_out=gone, queries={kind: queries})
        which = np.searchsorted(self.plan.rows.queries[kind], queries)
        found.tops = {name: top.without(gone, which, self.plan.question.spare) for name, top in self.tops.items()}
        return found

    def total(self, form: str, name: str) -> np.ndarray:
        """A sum over the rows that the scores of a representation use, float64."""
        return self.device.get(self._sums[f"{self.plan.question.kind(form)}/{name}"])

    def cosines(self, form: str) -> np.ndarray:
        """Of each row of the pair with its partner, (n,) float32; NaN for a row that is not scored, or not seen."""
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
        """Rows for all representations of one `Question.kind`. Those of the other take none of it, so that no score depends, to
        the last digit, on what else is scored."""
        sides = tuple(BlockRows(self.device, self._frames[side], block, side) for side, block in enumerate(blocks))
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
                    self._add_lengths(f"{kind}/{name}/{number}", side, form, self.tops[f"{name}/{number}/longest"], rows)
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
                unit = [side.directions(form) if one else None for side, form, one in zip(sides, forms, wanted, strict=True)]
            for number, one in enumerate(wanted):
                if one:
                    self._search(name, number, one, unit[number], rows)

    def _add_products(self, name: str, centred: Sequence[Array]) -> None:
        for side, block in enumerate(centred):
            self._sum(f"{name}/sum/{side}", block.sum(0))
            self._sum(f"{name}/gram/{side}", block.T @ block)
        self._sum(f"{name}/cross", centred[0].T @ centred[1])

    def _add_lengths(self, name: str, side: BlockRows, form: Form, longest: TopRows, rows: np.ndarray) -> None:
        """Powers of the squared lengths about the centre, and the coordinates weighted by them."""
        lengths, centred = side.squares(form), side.centred(form.frame)
        longest.add(self.device, lengths[None], rows)
        double = self.device.double(lengths)
        square = double * double
        self._sum(f"{name}/powers", self.device.stacked([double.sum(), square.sum(), (square * double).sum()]))
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
