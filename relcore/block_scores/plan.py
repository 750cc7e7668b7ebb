"""What a pass over the rows must know before it begins: coordinates, queries and samples, from a few gathered rows."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace

import numpy as np

from relcore.block_scores.coordinates import coordinates_of, forms_of
from relcore.block_scores.device import NumpyDevice
from relcore.block_scores.first_pass import ColumnSums
from relcore.block_scores.forms import BlockRows
from relcore.block_scores.question import Question, RowNumbers
from relcore.metrics.neighbours import order_seed
from relcore.metrics.rv_null import sampled_rows
from relcore.metrics.search import common_direction
from relcore.similarity import clustered_rows

Take = Callable[[int, np.ndarray], np.ndarray]  # side (0 source, 1 target), row numbers (m,) → rows (m, d)
Gathered = Mapping[str, tuple[np.ndarray, np.ndarray]]  # name → rows of both spaces
FrameArrays = Mapping[str, Mapping[str, np.ndarray]]  # frame → attribute → array
_CENTRE_ROWS = 4096
_FEW_CENTRE_ROWS = 1024  # where no sums are taken about the centre


def needed_rows(question: Question, rows: RowNumbers) -> dict[str, np.ndarray]:
    """The numbers of the rows that a plan gathers, by name: some thousand in all, and the queries."""
    found = {"anchors": rows.anchors, "left out": rows.left_out}
    n_centre = _CENTRE_ROWS if question.sums else _FEW_CENTRE_ROWS
    for kind in question.kinds:
        scored = rows.scored(kind)
        found[f"queries {kind}"] = rows.queries[kind]
        found[f"sample {kind}"] = scored.at(sampled_rows(len(scored)))
        found[f"centre {kind}"] = scored.at(np.arange(0, len(scored), max(1, len(scored) // n_centre)))
    if question.projection.similarity == "quantised" and "relative" in question.forms:
        found["clustered"] = clustered_rows(rows.n, len(rows.anchors))
    return found


@dataclass(frozen=True, eq=False)
class Search:
    """One search among the rows of a space: the unit vectors (q, w) that are looked for, in its coordinates, and how."""

    name: str
    queries: np.ndarray
    k: int
    seed: int | None = None
    labelled: bool = False


@dataclass(frozen=True, eq=False)
class Searches:
    """All searches among the rows of one space in one representation, of which one product serves all.

    `common` (w,) is subtracted from rows and queries where all rows point in nearly one direction: their products then differ
    in the last digits alone, and the distances order them.
    """

    each: tuple[Search, ...]
    common: np.ndarray | None = None
    stacked: np.ndarray = field(init=False)

    def __post_init__(self) -> None:
        stacked = np.concatenate([search.queries for search in self.each])
        stacked = stacked if self.common is None else stacked - self.common
        object.__setattr__(self, "stacked", np.ascontiguousarray(stacked, dtype=np.float32))


class BlockPlan:
    """Everything that a pass needs beside the blocks. A few megabytes, whatever n is, apart from n bits for labels.

    Parameters
    ----------
    question : Question
    rows : RowNumbers
    sums : ColumnSums of either space, all rows
    gathered : the rows of both spaces by the names of `needed_rows`
    given : the arrays of the frames of either space by name and attribute, where they were worked out elsewhere

    Attributes
    ----------
    frames : coordinates by name, of either space
    forms : representation → its form in either space
    searches : representation → the searches in either space, None where there are none
    """

    def __init__(
        self,
        question: Question,
        rows: RowNumbers,
        sums: tuple[ColumnSums, ColumnSums],
        gathered: Gathered,
        given: tuple[FrameArrays, FrameArrays] = ({}, {}),
    ) -> None:
        self.question, self.rows, self.sums, self.gathered = question, rows, sums, gathered
        here = NumpyDevice()
        found = coordinates_of(question, rows, sums, gathered)
        frames = tuple(
            {name: replace(frame, **known.get(name, {})) for name, frame in one.items()}
            for one, known in zip(found, given, strict=True)
        )
        forms = forms_of(question, frames, sums, gathered)
        self.frames = tuple({name: frame.on(here) for name, frame in one.items()} for one in frames)
        self.forms = {name: tuple(form.on(here) for form in pair) for name, pair in forms.items()}
        self.searches = {name: self._searches(name) for name in question.forms}

    @classmethod
    def of(cls, question: Question, rows: RowNumbers, sums: tuple[ColumnSums, ColumnSums], take: Take) -> BlockPlan:
        """With the rows that it needs, from wherever they are."""
        numbers = needed_rows(question, rows)
        return cls(question, rows, sums, {name: (take(0, one), take(1, one)) for name, one in numbers.items()})

    def block(self, side: int, X: np.ndarray) -> BlockRows:
        """Some rows of one space in memory."""
        return BlockRows(NumpyDevice(), self.frames[side], X, side)

    def directions(self, name: str, side: int, X: np.ndarray) -> np.ndarray:
        """Rows of one space in the coordinates of a representation, scaled to length 1."""
        return self.block(side, X).directions(self.forms[name][side])

    def same_width(self, name: str) -> bool:
        """Whether rows of both spaces can be compared with each other in a representation."""
        return name != "absolute" or len(self.sums[0].total) == len(self.sums[1].total)

    def between(self, name: str) -> np.ndarray | None:
        """The matrix (w_source, w_target) whose product with a row of the source is read in the target's coordinates."""
        source, target = self.forms[name]
        return None if source.basis is None else source.basis.T @ target.basis

    def _searches(self, name: str) -> tuple[Searches | None, Searches | None]:
        question, kind = self.question, self.question.kind(name)
        paired, mutual = self.same_width(name), question.convention == "mutual"
        if not len(self.rows.queries[kind]) or not (paired or mutual):
            return None, None
        queries = [self.directions(name, side, self.gathered[f"queries {kind}"][side]) for side in (0, 1)]
        some = [self.directions(name, side, self.gathered[f"centre {kind}"][side]) for side in (0, 1)]
        seeds = [order_seed(rows) for rows in some]
        crossing = self.between(name)
        k, labelled = question.k + question.spare, self.rows.labelled
        found: tuple[list[Search], list[Search]] = ([], [])
        if mutual:
            found[0].append(Search("own", queries[0], k + 1, seeds[0]))
            found[1].append(Search("other", queries[1], k + 1, seeds[1]))
        else:
            found[1].append(Search("own", queries[1], k))
        if paired:
            moved = queries[0] if crossing is None else queries[0] @ crossing
            back = queries[1] if crossing is None else queries[1] @ crossing.T
            for side, title, vectors in ((1, "forward", moved), (0, "backward", back))[: 1 + mutual]:
                found[side].append(Search(title, vectors, k + (labelled is not None)))
                if labelled is not None and not labelled.all():
                    found[side].append(Search(f"{title} labelled", vectors, k + 1, labelled=True))
        return tuple(Searches(tuple(one), common_direction(some[side])) if one else None for side, one in enumerate(found))
