"""DriftCheck: how far two versions of the same rows differ, as a task. Whether that matters is for
`verdict.judge`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import general, short
from relcore.base.settings import setting
from relcore.drift.measures import (
    EVERYTHING_NEW,
    FEWEST,
    JITTER,
    NEW_QUERIES,
    STEPS,
    Measure,
    chance_churn,
    decompose,
    measures_of,
    neighbour_shares,
)
from relcore.drift.verdict import QUANTITIES, SITUATIONS, Check, DriftVerdict, Thresholds, judge
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.scores.comparison import class_labels
from relcore.spaces.space import LatentSpace, Match, distinct_names, match
from relcore.spaces.split import Split
from relcore.tasks.task import Task

QUERIES = 1000
FEWEST_ROWS = 10
_DRAWS = 2  # pairs of versions with noise
_UNRELATED = 0.98  # of the churn by chance


@dataclass(frozen=True, eq=False)
class Drift:
    """What changed between two versions of the same rows.

    Attributes
    ----------
    names : (old, new)
    n, k, n_queries : int
        Rows that both versions have, neighbours of each query, and queries.
    widths : (d_old, d_new)
    only_old, only_new, n_zero : int
        Rows that were left out: of one version only, or zero in either.
    shares : array (4,)
        Of the squared change, in the order of `decomposition.STEPS`; NaN between different widths.
    shift, scale, spread, turn, rho : float
        See `decomposition.Decomposition`; shift and turn are None between different widths.
    chance_rho : float
        The ρ of rows that are paired at random: with few rows of many dimensions, a rotation explains much of
        them.
    churn_uncentred : float
        The churn if rows are not centred first, as most search indexes leave them.
    reciprocal_rank : float or None
        Mean over the new queries of 1 / rank of the own old vector, 0 beyond k + 1.
    measures : tuple of Measure
        Of all rows first, then class by class.
    left_out : int
        Classes with fewer than `FEWEST` queries: only their ρ is measured.
    """

    names: tuple[str, str]
    n: int
    k: int
    n_queries: int
    widths: tuple[int, int]
    only_old: int
    only_new: int
    n_zero: int
    shares: np.ndarray
    shift: float | None
    scale: float
    spread: float
    turn: float | None
    rho: float
    chance_rho: float
    churn_uncentred: float
    reciprocal_rank: float | None
    measures: tuple[Measure, ...]
    left_out: int

    @cached_property
    def chance_churn(self) -> float:
        """The churn of rows that are paired at random."""
        return chance_churn(self.n, self.k)

    @property
    def unrelated(self) -> bool:
        """Whether the neighbours have no more in common than those of rows that are paired at random."""
        return self.of("everything_new", "churn").value >= _UNRELATED * self.chance_churn

    def of(self, situation: str, quantity: str, group: str = "") -> Measure:
        """One measure.

        Raises
        ------
        KeyError
            It was not measured.
        """
        for measure in self.measures:
            if (measure.situation, measure.quantity, measure.group) == (situation, quantity, group):
                return measure
        raise KeyError((situation, quantity, group))

    def judged(self, thresholds: Thresholds) -> DriftVerdict:
        """The verdict by these thresholds."""
        return judge(self.measures, thresholds, self.widths)


# Settings that a check and a series share.
NEIGHBOURS = setting(10, label="Neighbours k", low=1, help="Number of neighbours of each query.")
DRAWN = setting(
    QUERIES,
    option="queries",
    low=FEWEST_ROWS,
    help="Number of queries, drawn by a hash of their ids; their neighbours are searched among all rows.",
)
NOISE = setting(
    JITTER,
    option="noise",
    low=0,
    below=1,
    metavar="SHARE",
    help="Numeric noise of a model that runs twice, as a share of a row's length; 1/2048 rounds to float16.",
)
STATE = setting(0, low=0, help="Random state of queries and noise.")


@dataclass(frozen=True)
class DriftCheck(Task[Drift]):
    """Compare two versions of the same rows, paired by id: old first, then new."""

    kind: ClassVar[str] = "drift"
    result: ClassVar[str] = "relcore.drift.check:Drift"
    title: ClassVar[str] = "Drift between two versions"

    k: int = NEIGHBOURS
    n_queries: int = DRAWN
    jitter: float = NOISE
    shared: bool = setting(
        False, help="Compare the rows that both versions have; else a row that only one has is an error."
    )
    random_state: int = STATE

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        """On two idle cores: the two products of the decomposition in float64, and eight searches."""
        n, (low, high) = len(spaces[0]), sorted(space.dimension for space in spaces)
        return (
            0.2
            + n * low * high * 1.5e-10
            + 1e-8 * low**2 * high
            + 8 * n * min(n, self.n_queries) * (low + 50) / 2e10
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Report = silent
    ) -> Drift:
        """
        Raises
        ------
        SpaceError
            No shared rows, rows that only one version has (unless `shared`), fewer than `FEWEST_ROWS` rows.
        """
        pair = paired(*spaces, shared=self.shared)
        report(0, 3, "splitting the change")
        old, new = pair.source.vectors, pair.target.vectors
        k = min(self.k, len(pair) - 2)
        queries = Split.held_out(pair.ids, random_state=self.random_state).queries(self.n_queries)
        split = decompose(old, new)
        permuted = new[np.random.default_rng(self.random_state).permutation(len(new))]
        chance_rho = decompose(old, permuted).rho
        report(1, 3, "searching the neighbours")
        shares = neighbour_shares(old, new, queries, k, self.jitter, _DRAWS, self.random_state)
        report(2, 3, "measuring by class")
        groups = classes(pair)
        measures = measures_of(split, shares, queries, self.jitter, groups)
        measured = {measure.group for measure in measures if measure.quantity == "churn"}
        return Drift(
            names=tuple(distinct_names((pair.source, pair.target))),
            n=len(pair),
            k=k,
            n_queries=len(queries),
            widths=(old.shape[1], new.shape[1]),
            only_old=pair.n_source_only,
            only_new=pair.n_target_only,
            n_zero=pair.n_zero,
            shares=split.shares,
            shift=None if np.isnan(split.shift) else float(split.shift),
            scale=split.scale,
            spread=split.spread,
            turn=None if np.isnan(split.turn) else float(split.turn),
            rho=split.rho,
            chance_rho=chance_rho,
            churn_uncentred=shares.churn_uncentred,
            reciprocal_rank=shares.reciprocal_rank,
            measures=measures,
            left_out=len(groups.keys() - measured),
        )


def paired(old: LatentSpace, new: LatentSpace, shared: bool = False) -> Match:
    """The rows of both versions, by id.

    Raises
    ------
    SpaceError
        No shared rows, rows that only one version has (unless `shared`), fewer than `FEWEST_ROWS` rows.
    """
    pair = match(old, new)
    if not shared and (pair.n_source_only or pair.n_target_only):
        sides = (("old", pair.n_source_only, old, new), ("new", pair.n_target_only, new, old))
        got = " and ".join(
            f"{n:,} only in the {side} version ({quote(has.index.difference(lacks.index, sort=False)[:3])})"
            for side, n, has, lacks in sides
            if n
        )
        raise SpaceError(
            f"drift: expected the same rows in {old.name!r} and {new.name!r}, got {got}; embed"
            f" the same rows with both, or compare the {len(pair):,} rows that both have with --shared"
        )
    if len(pair) < FEWEST_ROWS:
        raise SpaceError(
            f"drift: expected {FEWEST_ROWS} rows or more that both versions have, got {len(pair)} in"
            f" {old.name!r} and {new.name!r}; compare more"
        )
    return pair


def classes(pair: Match) -> dict[str, np.ndarray]:
    """Row numbers of each class, in alphabetical order; none where most rows have no class, or all have
    the same.
    """
    labels = class_labels(pair)
    names = [] if labels is None else sorted(set(labels) - {""})
    if len(names) < 2:
        return {}
    groups = {name: np.flatnonzero(labels == name) for name in names}
    return {name: rows for name, rows in groups.items() if len(rows) >= FEWEST}


def shares_told(drift: Drift) -> dict[str, float]:
    """Share of the change by step; empty between different widths."""
    return {} if np.isnan(drift.shares).any() else dict(zip(STEPS, map(float, drift.shares), strict=True))


# What a drift means, in sentences: the first thing that the page, the command and the reports show.

_LENIENT = 0.5  # ρ of unrelated rows: below it, a rotation explains them better than not


def headline(drift: Drift, verdict: DriftVerdict) -> str:
    """One sentence: what may be deployed."""
    old, new = (repr(name) for name in drift.names)
    if drift.unrelated:
        return f"{new} and {old} have no more neighbours in common than rows that are paired at random."
    everything, queries = (verdict.alarmed([situation]) for situation in (EVERYTHING_NEW, NEW_QUERIES))
    if not everything and not queries:
        return (
            f"No drift beyond the thresholds: {new} can replace {old}, for queries alone or for everything."
        )
    if not everything:
        return (
            f"{new} can replace {old} once all rows are embedded again; until then its queries miss the"
            f" vectors of {old}."
        )
    rest = (
        f"and its queries rank the vectors of {old} in another order"
        if queries
        else "although its queries still rank the old vectors alike"
    )
    return f"Drift: {new} has other neighbourhoods than {old}, {rest}."


def told(drift: Drift, verdict: DriftVerdict, situation: str) -> str:
    """One sentence on a situation: its numbers without an alarm, else the largest excess."""
    title, alarms = SITUATIONS[situation].title, verdict.alarms(situation)
    if reason := verdict.impossible.get(situation):
        return f"{title}: alarm. {reason[0].upper()}{reason[1:]}."
    if alarms:
        more = f", and {len(alarms) - 1:,} more" if len(alarms) > 1 else ""
        return f"{title}: alarm, {excess(alarms[0])}{more}."
    quantities = ("churn", "rho") if situation == EVERYTHING_NEW else ("lost", "churn")
    numbers = ", ".join(
        f"{QUANTITIES[one.quantity].title} {_low(one.value)} (noise level {_low(one.noise)})"
        for one in (drift.of(situation, quantity) for quantity in quantities)
    )
    return f"{title}: no alarm, {numbers}."


def excess(check: Check) -> str:
    """``"churn .547, threshold .050 above the noise level of .001"``."""
    value, noise = short(check.measure.value), _low(check.measure.noise)
    return f"{check.name} {value}, threshold {short(check.threshold)} above the noise level of {noise}"


def cautions(drift: Drift, verdict: DriftVerdict) -> list[str]:
    """What the numbers do not show by themselves, a sentence each."""
    centred = drift.of(EVERYTHING_NEW, "churn")
    threshold = next(check.threshold for check in verdict.checks if check.measure is centred)
    sentences = (
        (
            drift.unrelated,
            "Check that both files have the same rows under the same ids: rows in another order look like"
            " this.",
        ),
        (
            drift.chance_rho < _LENIENT,
            f"{drift.n:,} rows of {max(drift.widths):,} dimensions are few: a rotation explains much even of"
            f" rows paired at random (ρ {short(drift.chance_rho)}). Judge by the neighbours, or compare more"
            " rows.",
        ),
        (
            drift.churn_uncentred - centred.noise > threshold >= centred.value - centred.noise,
            "Rows are centred before neighbours are searched. An index that does not centre would see a"
            f" churn of {short(drift.churn_uncentred)}: there the shift matters even if everything is new.",
        ),
        (
            drift.only_old or drift.only_new,
            f"Left out: {drift.only_old:,} rows only in the old version, {drift.only_new:,} only in the new"
            " one.",
        ),
        (drift.n_zero, f"Left out: {drift.n_zero:,} rows that are zero in either version."),
        (drift.left_out, f"Classes with too few queries for a churn of their own: {drift.left_out:,}."),
    )
    return [sentence for applies, sentence in sentences if applies]


def circumstances(drift: Drift) -> str:
    """On how many rows, with what chance and noise level."""
    queries = "all of them" if drift.n_queries == drift.n else f"{drift.n_queries:,} of them"
    return (
        f"{drift.n:,} rows, {queries} as queries, k = {drift.k}. Chance level: churn"
        f" {short(drift.chance_churn)}, ρ {short(drift.chance_rho)}. Noise level: two runs of the old version"
        " that differ by numeric noise."
    )


def _low(value: float) -> str:
    """A share that may be far below .001."""
    return short(value) if value >= 0.001 or value == 0 else "< .001" if value < 1e-4 else general(value, 1)
