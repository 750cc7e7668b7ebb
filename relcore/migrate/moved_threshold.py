"""The result of moving a similarity threshold to a new model, and its report, its card and its gate."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError
from relcore.base.junit import GateCase
from relcore.base.numbers import counted, percent, short
from relcore.base.report import Report, Reported, Table
from relcore.migrate.cut_offs import QUANTITIES, KindCutOffs, PassCounts, Separability
from relcore.migrate.score_bins import Histogram
from relcore.migrate.similarities import sign_of
from relcore.scores.score import Interval

TITLES = {"precision": "Precision", "recall": "Recall", "hits": "Hits per query"}
_USABLE = {"yes": "one", "no": "none", "undecided": "undecided"}
_NONE = float("nan")
_LIMIT = re.compile(r"(precision|recall)=([01]?\.[0-9]+|[01])")
_PASSES = {"cosine": "cosine ≥", "inner": "inner product ≥", "l2": "L2 distance ≤"}


@dataclass(frozen=True, eq=False)
class NearPairs:
    """The pairs of a query and a row with the nearest new scores, nearest first, at most 10,000.

    Each attribute is an array (j,): the indexes of query and row, the old and the new scores, and whether the
    row is relevant.
    """

    query: np.ndarray
    row: np.ndarray
    old: np.ndarray
    new: np.ndarray
    relevant: np.ndarray


@dataclass(frozen=True, eq=False, repr=False)
class MovedThreshold(Reported):
    """A threshold of an old model, and the cut-off of a new model that replaces it.

    Attributes
    ----------
    score : "cosine", "inner" or "l2"
    keep : "hits", "precision" or "recall"
    threshold, new_threshold : float
        The old threshold, and the new cut-off, in units of the score; NaN if there is none.
    refusal : str
        Why there is no new cut-off; "" if there is one.
    old, new : quantity → Interval
        What other queries get by the old threshold and by the new cut-off: precision and recall, 0 … 1, if
        there are judgements, and the mean number of rows that pass per query ("hits").
    factor : Interval
        How many times as many rows pass as before, for other queries.
    separability : Separability or None
        Whether relevant and other rows can be separated by a cut-off of the new scores; None without
        judgements.
    by_kind : KindCutOffs or None
    error : float
        Share of decisions that differ: 1 − the Jaccard index of the pairs that pass before and after.
    chance, chance_low : float
        Mean and 2.5 % quantile of this share if each query gets the decisions of another query.
    counts : PassCounts
        How many rows pass each of about 128 cut-offs of the new scores; those of L2 distances are negative.
    old_histogram, new_histogram : Histogram
    pairs : NearPairs
    is_judged, is_given : bool
        Whether judgements were given, and whether the new cut-off was.
    n_new : int
        The number of new queries that intervals are for.
    queries : tuple of q ids
    relevance : "judgements", "labels" or "neighbours"

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import move_threshold
    >>> rng = np.random.default_rng(0)
    >>> kinds = rng.integers(8, size=340)
    >>> vectors = 3 * rng.normal(size=(8, 16))[kinds] + rng.normal(size=(340, 16))
    >>> old = vectors[:40], vectors[40:]
    >>> relevant = kinds[:40, None] == kinds[None, 40:]
    >>> found = move_threshold(old, old, 0.8, relevant=relevant, keep="recall")
    >>> found.usable, bool(found.new["recall"].low < found.old["recall"].value)
    ('one', True)
    """

    score: str
    keep: str
    threshold: float
    refusal: str
    old: dict[str, Interval]
    counts: PassCounts
    old_histogram: Histogram
    new_histogram: Histogram
    pairs: NearPairs
    is_judged: bool
    is_given: bool
    n_new: int
    new_threshold: float = _NONE
    new: dict[str, Interval] = field(default_factory=dict)
    factor: Interval = Interval(_NONE, _NONE, _NONE)
    separability: Separability | None = None
    by_kind: KindCutOffs | None = None
    error: float = _NONE
    chance: float = _NONE
    chance_low: float = _NONE
    queries: tuple[str, ...] = ()
    relevance: str = "judgements"

    @property
    def sign(self) -> int:
        return sign_of(self.score)

    @property
    def n_queries(self) -> int:
        return len(self.counts.relevant)

    @property
    def beats_chance(self) -> bool:
        return self.error < self.chance_low

    @property
    def has_cut_off(self) -> bool:
        """Whether a new cut-off replaces the threshold."""
        return not self.refusal and self.beats_chance

    @property
    def usable(self) -> str:
        """Which cut-offs separate relevant from other rows: "one" for all queries; "by kind" if one for each
        kind of query is clearly better and does; "none"; "undecided" if these queries cannot tell; and ""
        without judgements."""
        if self.separability is None:
            return ""
        if self.by_kind and self.by_kind.is_better and self.by_kind.separability.verdict == "yes":
            return "by kind"
        return _USABLE[self.separability.verdict]

    def at(self, cut: float) -> dict[str, Interval]:
        """What other queries get by a cut-off of the new scores: that of the measured cut-offs which is
        nearest."""
        return self.counts.rates(self.counts.nearest(self.sign * cut), self.n_new)

    def number(self, cut: float) -> str:
        """A cut-off as text, with all its decimals."""
        return short(cut, 4).rstrip("0").rstrip(".") or "0"

    def to_set(self) -> str:
        """The condition that replaces the old one: ``"cosine ≥ .362"``; "" if there is none."""
        if not self.has_cut_off:
            return ""
        return f"{_PASSES[self.score]} {self.number(self.new_threshold)}"

    def describe(self) -> str:
        """The new cut-off in a sentence or two."""
        if self.refusal:
            return f"No new cut-off. {self.refusal[:1].upper()}{self.refusal[1:]}."
        if not self.beats_chance:
            return (
                "The new scores decide no better than those of other queries, so no cut-off replaces this"
                " threshold."
            )
        new = self.number(self.new_threshold)
        old = self.number(self.threshold)
        others = f"95 % for {counted(self.n_new, 'other query', 'other queries')}"
        if not self.is_judged:
            return (
                f"A cut-off of about {new} passes as many rows as {old} did:"
                f" {self.new['hits'].value:.1f} per query, {self.old['hits'].value:.1f} before."
                f" For other queries of these rows, expect {self.factor.low:.2f} to {self.factor.high:.2f}"
                f" times as many ({others})."
                f" {percent(self.error)} of the decisions differ. Whether the rows that pass are relevant was"
                " not measured, and the cut-off holds for no other rows."
            )
        kept = "keeps"
        if self.is_given:
            kept = "gives"
        measured = self.new[self.keep]
        rest = ", ".join(
            f"{TITLES[name].lower()} {amount(name, self.new[name].value)} (before"
            f" {amount(name, self.old[name].value)})"
            for name in QUANTITIES
            if name != self.keep
        )
        low = amount(self.keep, measured.low)
        high = amount(self.keep, measured.high)
        return (
            f"The new cut-off {new} {kept} {TITLES[self.keep].lower()} {amount(self.keep, measured.value)}"
            f" ({others}: {low} to {high}); the old one, {old}, had"
            f" {amount(self.keep, self.old[self.keep].value)}. {rest[:1].upper()}{rest[1:]}."
        )

    def verdict(self) -> str:
        """Whether the new model has a usable cut-off, in a sentence or two; "" without judgements."""
        found = self.separability
        if found is None:
            return ""
        best = self.number(self.sign * found.cut)
        range_ = f"{short(found.value)} (95 %: {short(found.low)} to {short(found.high)})"
        if self.usable == "by kind":
            kinds = self.by_kind
            assert kinds is not None
            return (
                "A cut-off for each kind of query is usable: on held-out queries, it changes F1 by"
                f" {kinds.gain.describe()} compared with one cut-off for all."
            )
        if self.usable == "one":
            return (
                "Relevant rows can be separated from others by one cut-off. At"
                f" {best}, precision and recall are equal: both reach {range_}. This is a test of the model."
                " The cut-off to set is above."
            )
        if self.usable == "none":
            return (
                "No cut-off is usable, because relevant and other rows interleave: wherever it is, more than"
                " half of what passes is wrong or more than half of what is relevant is missed. At the best"
                f" one, {best}, precision and recall both reach {range_}."
            )
        return (
            "These queries cannot tell whether a cut-off is usable: at the best one,"
            f" {best}, precision and recall both reach {range_}, and a usable one has .5. Judge more queries."
        )

    def rates(self) -> pd.DataFrame:
        """A table of the quantities: before, now, and the interval for other queries."""
        rows = []
        for name, before in self.old.items():
            now = self.new.get(name, Interval(_NONE, _NONE, _NONE))
            rows.append(
                {"quantity": name, "old": before.value, "new": now.value, "low": now.low, "high": now.high}
            )
        return pd.DataFrame(rows)

    def curve(self) -> pd.DataFrame:
        """A table of the measured cut-offs: hits per query and, with judgements, precision and recall."""
        table = {"cut-off": self.sign * self.counts.cuts, "hits": self.counts.passed.mean(axis=0)}
        if self.is_judged:
            table |= {"precision": self.counts.precision, "recall": self.counts.recall}
        return pd.DataFrame(table)

    def facts(self) -> dict[str, Any]:
        """The numbers of the result by name, for JSON."""
        names = ("score", "keep", "threshold", "new_threshold", "refusal", "error", "chance", "n_queries")
        facts = {name: getattr(self, name) for name in (*names, "n_new", "is_judged", "usable")}
        facts |= {"old": _intervals(self.old), "new": _intervals(self.new)}
        facts["factor"] = vars(self.factor)
        if self.separability:
            facts["separability"] = self.separability._asdict() | {
                "low": self.separability.low,
                "high": self.separability.high,
                "cut": self.sign * self.separability.cut,
            }
        if self.by_kind:
            facts["kinds"] = self.kinds().to_dict("records")
            facts["kinds_gain"] = vars(self.by_kind.gain)
        return facts

    def kinds(self) -> pd.DataFrame:
        """A table of the cut-off of each kind of query; empty if none were tried."""
        if self.by_kind is None:
            return pd.DataFrame(columns=["kind", "queries", "cut-off"])
        cuts = self.sign * self.by_kind.cuts
        return pd.DataFrame({"kind": self.by_kind.kinds, "queries": self.by_kind.queries, "cut-off": cuts})

    def report(self, **figures: Callable[[], Any]) -> Report:
        rates = self.rates()
        head = ["", "old threshold", "new cut-off", "95 % for other queries"]
        rows = [head]
        for row in rates.itertuples():
            numbers = [amount(row.quantity, value) for value in (row.old, row.new, row.low, row.high)]
            rows.append([TITLES[row.quantity], *numbers[:2], " … ".join(numbers[2:])])
        caption = f"{counted(self.n_queries, 'query', 'queries')}; intervals over queries."
        tables = [Table("rates", rates, rows, caption=caption)]
        notes = [self.verdict()]
        if self.usable == "by kind":
            kinds = self.kinds()
            cells = [[row.kind, f"{row.queries:,}", self.number(row._3)] for row in kinds.itertuples()]
            tables.append(Table("kinds", kinds, [["kind", "queries", "cut-off"], *cells]))
        return Report(self.describe(), tables, self.facts(), list(filter(None, notes)), figures)

    def card(self, title: str = "") -> str:
        """A card for the runbook, in Markdown: what to set, what to expect, and when to measure again."""
        lines = [f"# Similarity threshold{f': {title}' if title else ''}", ""]
        if not self.has_cut_off:
            return "\n".join([*lines, self.describe(), "", self.verdict(), ""])
        lines += [
            f"- Set: {self.to_set()} (before: {self.number(self.threshold)}).",
            f"- {self.describe()}",
        ]
        if self.is_judged:
            lines.append(f"- {self.verdict()}")
        if self.usable == "by kind":
            lines += [f"  - {row.kind}: {self.number(row._3)}" for row in self.kinds().itertuples()]
        hits = self.new["hits"]
        lines += [
            f"- Expect {short(hits.low, 1)} to {short(hits.high, 1)} rows per query; look again if"
            f" {self.n_new:,} queries have a mean outside.",
            "- Measure again for other rows, another model, another prompt, or another kind of query.",
            f"- Measured on {counted(self.n_queries, 'query', 'queries')}.",
            "",
        ]
        return "\n".join(lines)

    def cases(self, limits: Sequence[tuple[str, float]], group: str) -> list[GateCase]:
        """The conditions of a gate: the measured precision or recall is at least its limit."""
        cases = []
        for quantity, limit in limits:
            if quantity not in self.new:
                cases.append(GateCase(group, quantity, self.describe(), failed=True))
                continue
            found = self.new[quantity]
            text = (
                f"{quantity} {short(found.value)} at {self.number(self.new_threshold)} (95 % for"
                f" {counted(self.n_new, 'other query', 'other queries')}: {short(found.low)} to"
                f" {short(found.high)}), at least {short(limit)} allowed"
            )
            cases.append(GateCase(group, quantity, text, failed=found.value < limit))
        return cases


def amount(quantity: str, value: float) -> str:
    """A precision, a recall, or a number of hits per query as text."""
    if quantity == "hits":
        return short(value, 1)
    return short(value)


def read_limits(texts: Sequence[str]) -> list[tuple[str, float]]:
    """Read the limits of a gate, such as "precision=.8". Raises a SpaceError for others."""
    limits = []
    for text in texts:
        match = _LIMIT.fullmatch(text)
        if not match or float(match[2]) > 1:
            raise SpaceError(
                "--gate: expected precision or recall and its smallest value, such as precision=.8, got"
                f" {text!r:.40}"
            )
        limits.append((match[1], float(match[2])))
    return limits


def _intervals(rates: dict[str, Interval]) -> dict[str, dict[str, float]]:
    return {name: dict(vars(one)) for name, one in rates.items()}
