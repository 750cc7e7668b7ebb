"""invert by shard: the rows of one sharded space translated into the other, and scored against its rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np

from relcore.base.errors import SpaceError
from relcore.invert.recovery import InversionSpec, choose_numbers
from relcore.represent.similarity import row_blocks, unit_rows
from relcore.runs.digest import digest_of
from relcore.runs.entries import Entry
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.cka import CosineSums
from relcore.scores.score import Score
from relcore.sharded.passes import Arrays, Runner, Shards, ShardWork
from relcore.sharded.project import InversionMap, gathered, put_map, row_map, write_mapped
from relcore.sharded.shard import aligned
from relcore.sharded.space import (
    ShardedPair,
    ShardedSpace,
    chosen_anchors,
    global_rows,
    lengths_above_zero,
    wanted_ids,
)
from relcore.sharded.survey import Survey, mean_from_sums

_ROWS = 16384


@dataclass(frozen=True)
class ShardedInversion:
    """What was recovered.

    Attributes
    ----------
    score : Score
        Mean cosine of recovered and true directions from the target's mean, over all rows that are not
        anchors, with the chance level when these rows are permuted.
    spec : InversionSpec
        With the numbers that were used.
    anchors : array (k,)
    goal : str
        The folder of the translated rows; "" where none was asked for.
    """

    score: Score
    spec: InversionSpec
    anchors: np.ndarray
    goal: str


@dataclass(frozen=True)
class Recovered(ShardWork):
    """Sums over the rows beside the anchors: of unit rows, recovered a and true b, their Gram matrices,
    and of a·b.
    """

    kind: ClassVar[str] = "invert"

    map: str
    facts: str

    def of_shard(
        self, shards: Shards, store: Store, report: Report = silent
    ) -> tuple[Arrays, dict[str, Any]]:
        known, function = store.get(self.facts).arrays, row_map(store, self.map)
        width = shards[1].width
        sums: Arrays = {"paired": np.zeros(1), "n": np.zeros(1)}
        sums |= {
            f"{what}_{side}": np.zeros(shape)
            for side in "ab"
            for what, shape in (("sum", width), ("gram", (width, width)))
        }
        for blocks in aligned(shards):
            for part in row_blocks(len(blocks[0].vectors), _ROWS):
                X, true = (block.vectors[part] for block in blocks)
                rows = global_rows(shards[0], blocks[0], np.arange(part.start, part.stop))
                kept = lengths_above_zero((X, true)) & ~np.isin(rows, known["anchors"])
                if kept.any():  # a map refuses a block without rows
                    _add(sums, function(X[kept]), true[kept], known["mean"])
                report(blocks[0].first + part.stop, shards[0].n, shards[0].name)
        return sums, {}

    def merged(self, first: Entry, second: Entry, store: Store) -> tuple[Arrays, dict[str, Any]]:
        return {name: one + second.arrays[name] for name, one in first.arrays.items()}, {}


def _add(sums: Arrays, found: np.ndarray, true: np.ndarray, mean: np.ndarray) -> None:
    """Add recovered and true rows (m, d), as directions from the mean (d,), to the sums."""
    units = {"a": unit_rows(found, mean), "b": unit_rows(true, mean)}
    sums["n"] += len(true)
    sums["paired"] += np.vecdot(units["a"], units["b"]).sum(dtype=np.float64)
    for side, one in units.items():
        sums[f"sum_{side}"] += one.sum(axis=0, dtype=np.float64)
        sums[f"gram_{side}"] += one.T @ one


def invert_shards(
    source: ShardedSpace,
    target: ShardedSpace,
    anchors: int | Sequence[str],
    runner: Runner,
    spec: InversionSpec | None = None,
    *,
    goal: str = "",
    form: str = "",
    random_state: int = 0,
) -> ShardedInversion:
    """Translate the source through the relative space of these anchors, score all other rows, and write all
    to a folder.

    The map needs the anchors and the means of both spaces, so it is the same as that of `invert_pair`; this
    scores every row that is no anchor, where `invert_pair` takes a sample above 20,000.

    Raises
    ------
    SpaceError
        Shards that do not pair, NaN, anchors that a space lacks or that the method cannot use, a folder that
        is taken.
    """
    spec = spec or InversionSpec()
    if spec.route != "forward":
        raise SpaceError(f"route: expected 'forward' by shard, got {spec.route!r}; exchange the two folders")
    pair = ShardedPair(source, target)
    survey = runner.run(Survey(wanted=wanted_ids(source, anchors)), pair.parts, "survey")
    chosen = chosen_anchors(source, survey, anchors, random_state)
    if len(chosen) >= survey.facts["n"]:
        raise SpaceError(
            f"anchors: expected fewer than the {survey.facts['n']:,} rows, got {len(chosen):,}; choose fewer"
        )
    of_anchors = gathered(runner, pair.parts, chosen)
    n, squares = survey.facts["n"], survey.arrays["squares"]
    means = tuple(mean_from_sums(survey.arrays[f"sum_{side}"], float(squares[side]), n) for side in (0, 1))
    choice = choose_numbers(*of_anchors, means, spec) if spec.tuned else None
    spec = replace(spec, tuned=False, **(choice.numbers() if choice else {}))
    key = put_map(runner.store, InversionMap(tuple(of_anchors), means, spec))
    row_map(runner.store, key)  # which refuses anchors that the method cannot use
    known = {"anchors": np.sort(chosen), "mean": means[1]}
    facts = digest_of("facts of an inversion", known)
    runner.store.put(facts, known)
    sums = runner.run(Recovered(key, facts), pair.parts, "invert").arrays
    if goal:
        write_mapped(source, key, goal, form, runner, "write")
    return ShardedInversion(_score(sums), spec, chosen, goal)


def _score(sums: Arrays) -> Score:
    n = int(sums["n"][0])
    means = [sums[f"sum_{side}"] / n for side in "ab"]
    products = [
        sums[f"gram_{side}"] - n * np.outer(mean, mean) for side, mean in zip("ab", means, strict=True)
    ]
    return CosineSums(
        n, float(sums["paired"][0]) / n, float(means[0] @ means[1]), float(np.vdot(*products))
    ).score()
