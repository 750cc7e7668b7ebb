"""Drift between two versions of an embedding model: decide whether the new version can replace the old one.
The measures of `relcore.drift.measures` are compared with thresholds in two situations: either the new
version embeds all rows and queries again, or it embeds only queries, which search the old vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from typing import Any

import numpy as np

from relcore.base.arguments import need_kind
from relcore.base.errors import quote
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import beside, counted, general, percent, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import unit_rows
from relcore.base.settings import setting
from relcore.base.version import __version__
from relcore.catalog.task import Task
from relcore.drift.broken_rows import Broken, broken
from relcore.drift.measures import (
    EVERYTHING_NEW,
    FEWEST_OF_CLASS,
    FEWEST_ROWS,
    JITTER,
    NEW_QUERIES,
    ROWS,
    STEPS,
    Measure,
    decompose,
    measures_of,
    need_rows,
    neighbour_shares,
    other_lengths,
)
from relcore.drift.thresholds import Thresholds
from relcore.drift.verdict import (
    QUANTITIES,
    SITUATIONS,
    TABLES,
    Check,
    DriftVerdict,
    by_severity,
    cases_of,
    counted_broken,
    excess,
    printed,
    small,
)
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.scores.comparison import class_labels
from relcore.spaces.matching import Match, as_spaces, distinct_names, known_rows, match
from relcore.spaces.space import LatentSpace, MatrixLike
from relcore.spaces.split import Split

_FALSE_ALARMS = 0.005  # probability of a false alarm per quantity: for all rows, and for all classes together
QUERIES = 1000
_DRAWS = 2  # number of pairs of noisy versions that give the noise level
_UNRELATED = 0.98  # minimum churn of unrelated versions, as a share of the chance level


@dataclass(frozen=True, eq=False)
class Drift(Reported):
    """The change between two versions of the same rows.

    Attributes
    ----------
    names : (old, new)
    n, k, n_queries : int
        Number of rows that both versions have; number of neighbours per query; number of queries.
    widths : (d_old, d_new)
    only_old, only_new, n_zero : int
        The numbers of rows that were left out: only the old version has them; only the new one has them; they
        are zero in one version.
    shares, shift, scale, spread, turn, rho
        See `measures.Decomposition`. If the widths differ, shift and turn are None.
    chance_rho : float
        The value of `rho` if rows are paired at random.
    churn_uncentred : float
        The share of changed neighbours if rows are not centred first, as in most search indexes.
    reciprocal_rank : float or None
        A new query searches the old vectors, and finds that of the query itself at some rank. The mean of 1 /
        rank over queries, which is 0 beyond rank k + 1.
    measures : tuple of Measure
        The measures over all rows first, then those within each class.
    broken : tuple of Broken
        The rows that are missing, zero, repeated or out of place.
    left_out : int
        The number of classes with fewer than `FEWEST_OF_CLASS` queries, for which only ρ is measured.
    n_rescaled : int
        If little but the lengths of rows changed, the number of rows whose length changed by another factor
        than that of the median row. All rows are then scaled to length 1 before anything is measured, except
        for broken rows. Otherwise 0.
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
    broken: tuple[Broken, ...]
    left_out: int
    n_rescaled: int = 0

    @property
    def chance_churn(self) -> float:
        """The expected share of changed neighbours if rows are paired at random."""
        return 1 - self.k / (self.n - 1)

    @property
    def unrelated(self) -> bool:
        return self.of("everything_new", "churn").value >= _UNRELATED * self.chance_churn

    @takes_kinds
    def of(self, situation: str, quantity: str, group: str = "") -> Measure:
        """Look up one of the `measures`, by its situation, quantity and class ("" for all rows). Raises a
        KeyError if it was not measured."""
        known = {(measure.situation, measure.quantity, measure.group): measure for measure in self.measures}
        return known[situation, quantity, group]

    def report(self) -> Report:
        """The report by the default thresholds."""
        return report(self, self.judged(Thresholds()))

    def __repr__(self) -> str:
        old, new = self.names
        churn = self.of(EVERYTHING_NEW, "churn").value
        return (
            f"<Drift {old!r} → {new!r}: churn {short(churn)} (k = {self.k}, n = {self.n:,}; chance"
            f" {short(self.chance_churn)}), ρ {short(self.rho)} (chance {short(self.chance_rho)})>"
        )

    @takes_kinds
    def judged(self, thresholds: Thresholds) -> DriftVerdict:
        """Compare each measure with its threshold."""
        n_groups = max(1, len({measure.group for measure in self.measures} - {""}))
        checks = [_checked(measure, thresholds, n_groups) for measure in self.measures]
        old, new = self.widths
        impossible = {}
        if old != new:
            impossible[NEW_QUERIES] = (
                f"new queries have {new:,} dimensions and old vectors {old:,}, so they cannot be compared;"
                " embed the rows again, or map the queries"
            )
        return DriftVerdict(tuple(checks), impossible)

    @takes_kinds
    def headline(self, verdict: DriftVerdict, planned: bool = False) -> str:
        """The verdict in one sentence. If `planned`, a change of model is intended, so only broken rows
        count."""
        old, new = map(repr, self.names)
        changed = percent(self.of(EVERYTHING_NEW, "churn").value)
        if verdict.alarms(ROWS):
            return self._broken_in_words(verdict)
        if planned:
            both = f"all rows of {old} are in {new}"
            if self.only_old:
                both = f"{old} and {new} have {self.n:,} rows in common"
            return (
                f"No broken rows: {both}. {changed} of the {self.k} nearest neighbours changed, as"
                " expected of another model; embed rows and queries again, and do not mix the versions."
            )
        if self.unrelated:
            return f"{new} and {old} have no more neighbours in common than rows that are paired at random."
        everything = verdict.alarmed([EVERYTHING_NEW])
        queries = verdict.alarmed([NEW_QUERIES])
        if not everything and not queries:
            if self.n_rescaled:
                return (
                    f"You can release {new} for a search by cosine: no drift beyond the thresholds."
                    f" {self.n_rescaled:,} of {self.n:,} rows are rescaled, which means that they have"
                    f" another length in {new} than in {old}, but nearly the same direction."
                )
            return (
                f"You can release {new}, for queries alone or also for rows: no drift from {old} beyond the"
                " thresholds."
            )
        cannot = f"the new queries do not find the vectors of {old}"
        rest = "although the new queries rank the old vectors as before"
        if verdict.impossible:
            cannot = f"the new queries cannot be compared with the vectors of {old}"
            rest = f"and {cannot}, which have another number of dimensions"
        elif queries:
            rest = f"and the new queries rank the vectors of {old} in another order"
        if not everything:
            return f"Release {new} only after all rows are embedded again; until then, {cannot}."
        return (
            f"Do not release {new}: it cannot replace {old}. {changed} of the {self.k} nearest"
            f" neighbours changed, {rest}."
        )

    def _broken_in_words(self, verdict: DriftVerdict) -> str:
        """The headline if rows or dimensions of the new version are broken."""
        old, new = map(repr, self.names)
        worst = verdict.alarms(ROWS)[0]
        fresh = {one.quantity: one for one in self.broken if one.n}
        first = fresh.pop(worst.measure.quantity, None)
        if first is None:
            return f"Do not release {new}: it has more {excess(worst)}."
        ids = quote(first.ids[:3])
        if first.n > 3:
            ids += ", …"
        rest = ", ".join(counted_broken(one.n, name) for name, one in fresh.items())
        if rest:
            rest = f"; and {rest}"
        return (
            f"Do not release {new}: it has broken rows that were fine in {old}:"
            f" {counted_broken(first.n, first.quantity)} ({ids}){rest}."
        )


@dataclass(frozen=True)
class DriftCheck(Task[Drift], kind="drift", version=4, title="Drift between two versions"):
    """The task that compares an old and a new version of the same rows, given as two spaces whose rows are
    paired by id.

    Examples
    --------
    >>> from relcore import DriftCheck
    >>> DriftCheck(k=5).k
    5
    """

    k: int = setting(10, label="Neighbours k", low=1, help="Number of neighbours of each query.")
    n_queries: int = setting(
        QUERIES,
        option="queries",
        low=FEWEST_ROWS,
        help="Number of queries, drawn by a hash of their ids; their neighbours are searched among all rows.",
    )
    jitter: float = setting(
        JITTER,
        option="noise",
        low=0,
        below=1,
        metavar="SHARE",
        help="Numeric noise between two runs of a model, as a share of a row's length; 1/2048: rounding to"
        " float16.",
    )
    shared: bool = setting(False, help="Rows that the new version lacks are left out without an alarm.")
    random_state: int = setting(0, low=0, help="Random state of queries and noise.")

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n = len(spaces[0])
        (low, high) = sorted(space.dimension for space in spaces)
        return (
            0.2
            + n * low * high * 2e-10
            + 1e-8 * low**2 * high
            + 8 * n * min(n, self.n_queries) * (low + 50) / 2e10
        )

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Drift:
        """Compare the two versions. Raises a SpaceError if they share fewer than 10 rows."""
        spaces = known_rows(spaces)
        pair = match(*spaces)
        state = self.random_state
        need_rows(pair, spaces)
        report(0, 3, "splitting the change")
        old = pair.source.vectors
        new = pair.target.vectors
        k = min(self.k, len(pair) - 2)
        queries = Split.held_out(pair.ids, random_state=state).queries(self.n_queries)
        split = decompose(old, new)
        rescaled = other_lengths(old, new, split, self.jitter)
        if rescaled is not None:
            old = unit_rows(old)
            new = unit_rows(new)
            split = decompose(old, new)
        permuted = new[np.random.default_rng(state).permutation(len(new))]
        chance_rho = decompose(old, permuted).rho
        report(1, 3, "searching the neighbours")
        *shares, rank, uncentred = neighbour_shares(old, new, queries, k, self.jitter, _DRAWS, state)
        report(2, 3, "measuring by class")
        groups = classes(pair)
        measures = measures_of(split, *shares, queries, self.jitter, groups)
        measured = {measure.group for measure in measures if measure.quantity == "churn"}
        whole = {}
        if spaces[0].labels is not None:
            whole = classes(replace(pair, source=spaces[0]))
        of_rows, kinds = broken(*spaces, pair, self.jitter, whole, self.shared)
        n_rescaled = 0
        if rescaled is not None:
            n_rescaled = int(np.count_nonzero(rescaled))
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
            shift=_known(split.shift),
            scale=split.scale,
            spread=split.spread,
            turn=_known(split.turn),
            rho=split.rho,
            chance_rho=chance_rho,
            churn_uncentred=uncentred,
            reciprocal_rank=rank,
            measures=(*measures, *of_rows),
            broken=kinds,
            left_out=len(groups.keys() - measured),
            n_rescaled=n_rescaled,
        )


def _checked(measure: Measure, thresholds: Thresholds, n_groups: int) -> Check:
    """The check of one measure. It alarms if the lower end of the change above the noise exceeds the
    threshold. The rate of false alarms is divided among the classes."""
    from scipy.special import stdtrit

    name = measure.quantity
    rate = _FALSE_ALARMS
    if measure.group:
        name = f"class_{measure.quantity}"
        rate = _FALSE_ALARMS / n_groups
    error = float(stdtrit(max(1, measure.n - 1), 1 - rate)) * measure.error
    sure = float(measure.value - measure.noise - error)
    threshold = float(getattr(getattr(thresholds, measure.situation), name))
    return Check(measure, sure, threshold, sure > threshold)


def _known(value: float) -> float | None:
    """A number, or None for NaN."""
    if np.isnan(value):
        return None
    return float(value)


def classes(pair: Match) -> dict[str, np.ndarray]:
    labels = class_labels(pair)
    if labels is None:
        names = []
    else:
        names = sorted(set(labels) - {""})
    if len(names) < 2:
        return {}
    groups = {name: np.flatnonzero(labels == name) for name in names}
    return {name: rows for name, rows in groups.items() if len(rows) >= FEWEST_OF_CLASS}


def shares_in_words(drift: Drift) -> dict[str, float]:
    if np.isnan(drift.shares).any():
        return {}
    return dict(zip(STEPS, map(float, drift.shares), strict=True))


_LENIENT = 0.5  # if rows paired at random have a lower ρ, a rotation explains much of ρ by chance


@long_call
def drift(old: MatrixLike, new: MatrixLike, spec: DriftCheck = DriftCheck()) -> Drift:
    """Compare two versions of the same rows, and measure what changed.

    Raises
    ------
    SpaceError
        Versions that share too few rows; rows that `relcore.spaces.space.matrix` refuses.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import Thresholds, drift
    >>> X = np.random.default_rng(0).normal(size=(300, 8))
    >>> rotation, _ = np.linalg.qr(np.random.default_rng(1).normal(size=(8, 8)))
    >>> change = drift(X, X @ rotation)  # old vectors need new queries, but all neighbours are the same
    >>> print(change.headline(change.judged(Thresholds())).partition(";")[0])
    Release 'new' only after all rows are embedded again
    """
    need_kind("spec", spec, DriftCheck)
    return spec.run(as_spaces((old, new), ("old", "new")), report=show_step)


def describe(drift: Drift, verdict: DriftVerdict, situation: str) -> str:
    title = SITUATIONS[situation].title
    alarms = verdict.alarms(situation)
    if reason := verdict.impossible.get(situation):
        return f"{title}: alarm. {reason[0].upper()}{reason[1:]}."
    if alarms:
        more = ""
        if len(alarms) > 1:
            more = f", and {len(alarms) - 1:,} more"
        return f"{title}: alarm, {excess(alarms[0])}{more}."
    if situation == EVERYTHING_NEW:
        quantities = ("churn", "rho")
    else:
        quantities = ("lost", "churn")
    numbers = ", ".join(
        f"{QUANTITIES[measure.quantity].title} {small(measure.value)} (noise level {small(measure.noise)})"
        for measure in (drift.of(situation, quantity) for quantity in quantities)
    )
    return f"{title}: no alarm, {numbers}."


def cautions(drift: Drift, verdict: DriftVerdict, planned: bool = False) -> list[str]:
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
            f" rows paired at random (changed shape {short(drift.chance_rho)}). Judge by the neighbours, or"
            " compare more rows.",
        ),
        (
            drift.n_rescaled,
            f"{drift.n_rescaled:,} of {drift.n:,} rows changed their length, by other factors than the median"
            " row. This explains most of the change, so all rows are compared at length 1, as a search by"
            " cosine does. In a search by inner product or by Euclidean distance, their neighbours may"
            " differ.",
        ),
        (
            drift.churn_uncentred - centred.noise > threshold >= centred.value - centred.noise,
            "Rows are centred before neighbours are searched. In an index that does not centre,"
            f" {percent(drift.churn_uncentred)} of the neighbours changed, so the shift matters even if all"
            " rows are embedded again.",
        ),
        (
            drift.only_old or drift.only_new,
            f"Left out: rows only in the old version ({drift.only_old:,}) or the new ({drift.only_new:,}).",
        ),
        (drift.n_zero, f"Left out: {counted(drift.n_zero, 'row')} zero in either version."),
        *(
            (
                one.n_before,
                f"Broken in the old version already: {counted_broken(one.n_before, one.quantity)}"
                f" ({quote(one.before[:5])}{', …' if one.n_before > 5 else ''}).",
            )
            for one in drift.broken
        ),
        (
            not planned and not verdict.alarms(ROWS) and verdict.alarmed([EVERYTHING_NEW]),
            "If the new version is meant to be another model, choose that this is planned. Then only broken"
            " rows raise an alarm.",
        ),
        (drift.left_out, f"Classes with too few queries to judge their neighbours: {drift.left_out:,}."),
    )
    return [sentence for applies, sentence in sentences if applies]


def circumstances(drift: Drift) -> str:
    if drift.n_queries == drift.n:
        queries = "all of them"
    else:
        queries = f"{drift.n_queries:,} of them"
    return (
        f"{drift.n:,} rows, {queries} as queries, k = {drift.k}. Chance level: changed neighbours"
        f" {short(drift.chance_churn)}, changed shape {short(drift.chance_rho)}. Noise level: two runs of the"
        " old version that differ by numeric noise; of broken rows, the share that was broken before."
    )


_RULE = (
    "An alarm: by how much the value is surely above the noise level (one-sided confidence limit) exceeds the"
    " threshold."
)
_MOST_ROWS = 20  # number of rows of a table for people; classes with an alarm come first
_NOTED = 0.02  # share of shift above which a sentence says that a rotation also shifts
_MEANT = {
    "shift": "of the mean row",
    "scale": "of all axes alike",
    "rotation": "or reflection",
    "remains": "no rotation explains it",
}


# The measured numbers in the JSON report.
_REPORTED = (
    "widths",
    "n",
    "k",
    "n_queries",
    "only_old",
    "only_new",
    "n_zero",
    "shift",
    "scale",
    "spread",
    "turn",
    "rho",
    "chance_rho",
    "chance_churn",
    "churn_uncentred",
    "reciprocal_rank",
    "n_rescaled",
)


def report(
    drift: Drift,
    verdict: DriftVerdict,
    situations: Sequence[str] = tuple(SITUATIONS),
    figures: Mapping[str, Any] | None = None,
) -> Report:
    """A report of the verdict, the kind of change, and all checks. Only alarms in the given `situations`, and
    alarms of broken rows, count. If no situation is given, a change of model is intended, and only broken
    rows raise an alarm.
    """
    shares = shares_in_words(drift)
    notes = cautions(drift, verdict, not situations)
    facts = {
        "relscope": __version__,
        "old": drift.names[0],
        "new": drift.names[1],
        "alarm": verdict.alarmed(situations),
        "decided_by": list(situations),
        "alarms": {name: verdict.alarmed([name]) for name in SITUATIONS},
        "headline": drift.headline(verdict, not situations),
        "broken": [asdict(one) for one in drift.broken],
        "cautions": notes,
        **{name: getattr(drift, name) for name in _REPORTED},
        "shares": shares or None,
    }
    verdicts = []
    for name in SITUATIONS:
        described = describe(drift, verdict, name)
        if name not in situations:
            described += " (does not decide)"
        verdicts.append(described)
    tables = [_table_of_checks(drift, verdict)]
    if any(shares.values()):
        tables.append(_table_of_shares(drift, shares))
    elif not shares:
        notes.append(
            f"The versions have {drift.widths[0]:,} and {drift.widths[1]:,} dimensions, so their rows cannot"
            f" be subtracted. The best rotation between them leaves a changed shape of {short(drift.rho)}."
        )
    cases = cases_of(verdict, situations)
    return Report(facts["headline"], tables, facts, [*verdicts, *notes], figures or {}, cases)


def _table_of_checks(drift: Drift, verdict: DriftVerdict) -> Table:
    """All checks; printed are those of all rows and the alarms, up to `_MOST_ROWS`."""
    rows = [["situation", "quantity", "class", "value", "noise", "surely above", "threshold", ""]]
    checks = by_severity(verdict)
    listed = [check for check in checks if check.alarm or not check.measure.group][:_MOST_ROWS]
    for check in listed:
        measure = check.measure
        rows.append(
            [
                TABLES[measure.situation].title,
                QUANTITIES[measure.quantity].title,
                measure.group or "all rows",
                *printed(check),
                *beside(check.sure, check.threshold),
                "alarm" if check.alarm else "",
            ]
        )
    caption = f"{circumstances(drift)} {_RULE}"
    if len(checks) > len(listed):
        caption += f" {len(checks) - len(listed):,} more checks of classes are in the JSON report."
    return Table("checks", verdict.table(), rows, caption=caption)


def _table_of_shares(drift: Drift, shares: Mapping[str, float]) -> Table:
    """The shares of the squared change that shift, scale, rotation and the rest explain."""
    rows = [["of the squared change", "share", ""]]
    rows += [[step, short(share), _MEANT[step]] for step, share in shares.items()]
    caption = (
        f"The mean moved by {general(drift.shift)} of the spread, and the scale changed by"
        f" × {general(drift.scale)}. The changed shape, which remains, is {general(drift.rho)}."
    )
    if min(shares["shift"], shares["rotation"]) > _NOTED:
        caption += " A rotation about zero also turns the mean row, which counts as shift."
    return Table(shown=rows, caption=caption)
