"""Test whether all vectors of a collection come from one model."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_number, need_sequence, random_generator
from relcore.base.errors import SpaceError
from relcore.base.junit import GateCase
from relcore.base.kinds import takes_kinds
from relcore.base.numbers import percent, short
from relcore.base.report import Report, Reported, Table
from relcore.base.settings import setting
from relcore.catalog.task import Task
from relcore.check.marks import MARKS, marks_of, name_of
from relcore.check.origins import (
    EQUAL,
    FDR,
    OTHER,
    SLOPE,
    TRUSTED,
    TRUSTED_SLOPE,
    UNKNOWN,
    RowOrigins,
    row_origins,
)
from relcore.check.parts import LIKE_TOPICS, compared_parts
from relcore.check.smallest import PLANTED, smallest_found
from relcore.check.trusted import axes_of, other_rows_of, rows_of
from relcore.passport.change import PassportChange
from relcore.passport.passport import FEWEST_ANCHORS, Passport
from relcore.passport.passport import check as anchors_changed
from relcore.passport.recipes import MIXED, UNCHANGED
from relcore.passport.two_parts import FITTED, SUSPECTED
from relcore.runs.progress_line import long_call, show_step
from relcore.runs.store import Store
from relcore.runs.work import Progress, silent
from relcore.spaces.ids import RowNumbers
from relcore.spaces.matching import as_space, shared_ids
from relcore.spaces.space import LatentSpace, MatrixLike, ids_of

_SHOWN = 10  # maximum number of rows in a report
_HEADS = {
    "log_ratio": "log odds of another model",
    "unlike": "size on axes that trusted rows hardly use (trusted rows: 1)",
}
VERDICTS = {
    "two models": "holds vectors of two models",
    "suspicious": "may hold vectors of two models",
    "changed": "has other vectors than the passport",
    "marks": "has parts that were stored differently",
    "nothing found": "shows no sign of a second model",
}
LIMITS = {
    "marks": "Marks show how numbers were stored, not which model made them. Normalising removes marks.",
    "trusted": "The ranking by trusted rows does not reveal a new prompt. Rows of a domain that trusted rows"
    " lack also rank high.",
    "parts": "Parts do not reveal another prompt, pooling or neighbouring layer of the same model.",
}
_GIVE_TRUSTED = " Next step: give 100 or more trusted rows. All rows are then ranked by them."
_MODELS = {TRUSTED: "trusted rows' model", OTHER: "another model", UNKNOWN: "unknown"}
PARTS = {TRUSTED: "larger part", OTHER: "smaller part", UNKNOWN: "unknown"}
_STEPS = ("finding two parts", "finding the model of each row", "measuring which part is too small to find")


@dataclass(frozen=True, eq=False, repr=False)
class Checked(Reported):
    """The results of a check of a collection of n rows.

    Attributes
    ----------
    marks : name of `MARKS` → row numbers (m,) of the rows whose numbers are stored in that way
    slope, slope_high : float, optional
        How far the two most different parts of the rows share their axes, from 1 (one model) to 0 (see
        `relcore.passport.two_parts.Slope`), over `axes` held-out axes, and the upper end of the
        95 % interval. If parts could not be compared, it is None, and `unfit` has the reason.
    log_ratio : (n,) float32
        Log likelihood ratio of the smaller to the larger part. Rows above 0 are probably in the smaller part;
        their number is `count`.
    unlike : (n,) float32
        How much a row differs from the trusted rows: its mean square along their short axes, divided by that
        of the trusted rows. Empty without trusted rows.
    change : PassportChange, optional
        The change of the anchors of a passport, if these are among the rows.
    named : str
        The name of the known model that has the same short axes as the larger part; "" if there is none.
    fitted : int
        Number of rows that were used to find the parts.
    smallest : int, optional
        If no second model was found: the smallest number of rows that would have been found if they were
        turned at random (see `smallest_found`), or 0 if not even a quarter of the rows.
    origins : RowOrigins, optional
        Which of two models made each row. None if parts could not be compared.
    """

    n: int
    width: int
    marks: Mapping[str, np.ndarray]
    slope: float | None
    slope_high: float | None
    axes: int
    fitted: int
    log_ratio: np.ndarray
    unlike: np.ndarray
    unfit: str = ""
    named: str = ""
    asked: bool = False
    change: PassportChange | None = None
    smallest: int | None = None
    origins: RowOrigins | None = None

    @property
    def told(self) -> RowOrigins | None:
        """The `origins`, if they are known."""
        if self.origins is None or self.origins.refused:
            return None
        return self.origins

    @property
    def agreement(self) -> tuple[float, float, float] | None:
        """The slope of the parts on which the `verdict` is based, the upper end of its 95 % interval
        (the slope itself where the model of each row is known), and the limit from which parts count as one
        model's. None if parts could not be compared."""
        if self.told:
            limit = SLOPE
            if self.told.slope >= SLOPE:
                limit = TRUSTED_SLOPE
            return self.told.slope, self.told.slope, limit
        if self.slope is None or self.slope_high is None:
            return None
        return self.slope, self.slope_high, SUSPECTED

    @property
    def count(self) -> int:
        """The estimated number of rows in the smaller part."""
        return int(np.count_nonzero(self.log_ratio > 0))

    @property
    def _printed_high(self) -> float:
        """The upper end of the slope's interval with the digits that `short` prints; ∞ without a slope."""
        if self.slope_high is None:
            return np.inf
        return round(self.slope_high, 3)

    @property
    def verdict(self) -> str:
        """One of `VERDICTS`. The number that the sentence prints is judged, so that the two agree."""
        if self.told:
            return "two models"
        if self._printed_high < SUSPECTED:
            if self._printed_high < MIXED:
                return "two models"
            return "suspicious"
        if self.change is not None and self.change.kind not in UNCHANGED:
            return "changed"
        if self.partial_marks:
            return "marks"
        return "nothing found"

    @property
    def partial_marks(self) -> dict[str, np.ndarray]:
        """The `marks` that only some of the rows have. "repeated" is left out, because it does not suggest a
        second model.
        """
        return {name: rows for name, rows in self.marks.items() if len(rows) < self.n and name != "repeated"}

    @property
    def ranks(self) -> np.ndarray:
        """The score (n,) that ranks the rows; the higher, the likelier is another model. It is `log_ratio` if
        the verdict is that there are or may be two models. Otherwise it is `unlike`, which is empty without
        trusted rows.
        """
        if self.verdict in ("two models", "suspicious"):
            return self.log_ratio
        return self.unlike

    @property
    def suspected_rows(self) -> np.ndarray:
        """Whether each row may be of another model, an array (n,). If two parts were found, these are the
        first `count` rows of the ranking, otherwise its first tenth. Without a ranking, they are the rows
        with `partial_marks`.
        """
        if not len(self.ranks):
            return np.isin(np.arange(self.n), [row for rows in self.partial_marks.values() for row in rows])
        if self.verdict in ("two models", "suspicious"):
            most = self.count
        else:
            most = self.n // 10
        return np.isin(np.arange(self.n), np.argsort(-self.ranks, kind="stable")[:most])

    @property
    def model_names(self) -> Mapping[int, str]:
        """The names of the values of `RowOrigins.model`, as the table and the map have them."""
        if self.told and self.told.by_trusted and not self.told.either:
            return _MODELS
        return PARTS

    @property
    def first_in_words(self) -> str:
        """A phrase that says what the `suspected_rows` have in common."""
        if self.verdict in ("two models", "suspicious"):
            return PARTS[OTHER]
        if len(self.unlike):
            return "the tenth least like the trusted rows"
        return "stored in another way"

    @property
    def headline(self) -> str:
        if self.verdict == "nothing found" and self.unfit and not self.told:
            return "These rows cannot show whether one model made them all."
        text = f"The collection {VERDICTS[self.verdict]}"
        if self.verdict in ("two models", "suspicious"):
            count = self.told.found if self.told else self.count
            text += (
                f"; about {count:,} of {self.n:,} rows ({percent(count / self.n)}) are in the smaller part"
            )
            if self.told and self.told.unknown:
                text += f", {self.told.unknown:,} may be of either model"
            if self.count / self.n > EQUAL and (self.told is None or self.told.either):
                text += ", and the parts are so equal that either may be of the other model"
        return f"{text}."

    @property
    def sentence(self) -> str:
        if self.told:
            return (
                f"{self.headline} The parts share their axes with slope {short(self.told.slope)}, and their"
                f" log ratios are {short(self.told.gap, 1)} deviations apart. {self.told.sentence}"
            )
        if self.slope is None or self.slope_high is None:
            return f"{self.headline} {self.unfit}"
        return (
            f"{self.headline} The axes of its two most unlike parts agree with slope {short(self.slope)}"
            f" (95 %: at most {short(self.slope_high)}; {self.axes} axes, {self.fitted:,} rows). Within a"
            f" model the slope is 1, by chance 0. {self.rule}"
        )

    @property
    def rule(self) -> str:
        """A sentence that says by which limit the upper end of the slope's interval was judged."""
        limits = f"{short(MIXED, 2)} for two models, {short(SUSPECTED, 2)} for a suspicion"
        if self.slope_high is None:
            return ""
        if self._printed_high < MIXED:
            return f"Its upper end is below the limit of {short(MIXED, 2)} for two models."
        if self._printed_high < SUSPECTED:
            return f"Its upper end is between the limits: {limits}."
        return f"Its upper end is not below the limits: {limits}."

    @property
    def limits(self) -> list[str]:
        """Sentences on what this check cannot detect, for each level of evidence that was used."""
        used = {"marks": bool(self.marks), "trusted": bool(len(self.unlike)), "parts": self.slope is not None}
        told = [LIMITS[level] for level, there in used.items() if there]
        if self.smallest:
            told.append(
                f"As a test, copies of {self.smallest:,} of the {self.n:,} rows were turned at random, and"
                " the check found them. It may miss fewer rows. Rows of a second model are harder to find."
            )
        elif self.smallest == 0:
            told.append(
                "As a test, copies of a quarter of the rows were turned at random, and the check did not find"
                " them. So it would miss most second models."
            )
        return told

    @takes_kinds
    def rows(self, ids: Sequence[object]) -> pd.DataFrame:
        """A table of all rows in the order of the ranking, with the evidence for each row."""
        need_sequence("ids", ids, "ids", self.n)
        table = pd.DataFrame({"id": ids})
        for name, values in (("log_ratio", self.log_ratio), ("unlike", self.unlike)):
            if len(values):
                table[name] = values
        if self.told:
            table["model"] = pd.Series(self.told.model).map(self.model_names)
            if len(self.told.p):
                table["p"] = self.told.p
        for name, rows in self.partial_marks.items():
            table[name] = np.isin(np.arange(self.n), rows)
        if len(self.ranks):
            order = np.argsort(-self.ranks, kind="stable")
        else:
            order = np.arange(self.n)
        return table.iloc[order].reset_index(drop=True)

    @takes_kinds
    def report(self, ids: Sequence[str] | None = None, **figures: Any) -> Report:
        if ids is None:
            ids = RowNumbers(self.n)
        marks = [
            {"mark": name, "rows": len(rows), "of": self.n, "what": MARKS[name]}
            for name, rows in self.marks.items()
        ]
        tables = []
        if marks:
            tables = [Table.of("marks", marks)]
        if len(self.ranks):
            first = self.rows(ids).head(_SHOWN)
            cells = [list(map(_cell, first.columns, row)) for row in first.to_numpy()]
            caption = f"The first {len(first)} of {self.n:,} rows, ranked"
            head = [_HEADS.get(name, name) for name in first.columns]
            tables.append(Table("ranking", first, [head, *cells], caption=caption))
        notes = []
        if self.n > FITTED and self.slope is not None:
            notes.append(f"Parts were sought on a sample of {self.fitted:,} rows; all {self.n:,} are ranked.")
        if self.asked and self.named:
            notes.append(f"Known models: the family of {self.named}.")
        elif self.asked:
            notes.append("Known models: none of these.")
        if self.change is not None:
            notes.append(f"Anchors of the passport: {self.change.sentence}")
        names = ("verdict", "slope", "slope_high", "count", "n", "smallest")
        facts = {name: getattr(self, name) for name in names}
        if self.told:
            keys = ("found", "unknown", "by_trusted", "bound", "confirmed", "fdr", "shifted", "gap")
            facts |= {name: getattr(self.told, name) for name in keys} | {"parts_slope": self.told.slope}
        elif self.origins and self.verdict in ("two models", "suspicious"):
            notes.append(self.origins.refused)
        facts |= {"sampled": self.fitted, "known": self.named, "alarm": self.verdict != "nothing found"}
        unseen = [f"Not seen: {one}" for one in self.limits]
        sentence = "\n".join([*unseen, "", self.sentence]).lstrip()
        return Report(sentence, tables, facts, notes, figures, self.cases)

    @property
    def cases(self) -> list[GateCase]:
        """The conditions that decide about an alarm."""
        parts = self.unfit
        if self.told:
            parts = self.sentence
        elif self.slope is not None and self.slope_high is not None:
            parts = (
                f"The axes of the two most unlike parts agree with slope {short(self.slope)}, at most"
                f" {short(self.slope_high)}. {self.rule}"
            )
        anchors = "No rows are anchors of a trusted passport."
        if self.change is not None:
            anchors = f"{self.change.sentence} Accepted: {', '.join(UNCHANGED)}."
        marks = "; ".join(f"{len(rows):,} rows: {MARKS[name]}" for name, rows in self.partial_marks.items())
        return [
            GateCase(
                "collection",
                "one model",
                parts,
                failed=self.verdict in ("two models", "suspicious"),
                skipped="" if self.told else self.unfit,
            ),
            GateCase(
                "collection",
                "anchors",
                anchors,
                failed=self.change is not None and self.change.kind not in UNCHANGED,
                skipped=anchors if self.change is None else "",
            ),
            GateCase(
                "collection",
                "stored alike",
                f"Parts that were stored differently: {marks or 'none'}. Accepted: none.",
                failed=bool(marks),
            ),
        ]


@long_call
def check(
    space: MatrixLike,
    trusted: MatrixLike | Passport | None = None,
    known: Sequence[Passport] = (),
    *,
    other: MatrixLike | None = None,
    fdr: float = FDR,
    random_state: int = 0,
) -> Checked:
    """Test whether a single model made the rows (n, d), and rank rows that may be of another model.

    There are three levels of evidence. First, marks show how the numbers of a row were stored. Second, 100 or
    more `trusted` rows of the right model give its short axes, the directions along which its vectors hardly
    vary; these are the same for all texts. Third, two parts of the rows are compared by their short axes,
    which needs no trusted rows. If `trusted` is a passport, the rows that are its anchors are also compared
    with it one by one. If passports of `known` models have fingerprints, the model of the larger part is
    named. The report says what each level cannot detect.

    If the rows are of two models, `Checked.origins` says for each row which one made it. With 100 or more
    trusted rows it has p-values, and `fdr` is the accepted rate of false discoveries. `other` may hold 15 or
    more rows of the other model.

    Raises
    ------
    SpaceError
        Fewer than two rows; trusted rows of another width; too few trusted rows; a rate outside (0, 1).

    Source: our measurement, docs/check.md.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import check
    >>> rng = np.random.default_rng(0)
    >>> rotation = np.linalg.qr(rng.normal(size=(64, 64)))[0]
    >>> X = rng.normal(size=(2000, 64)) * np.geomspace(1, 0.05, 64) @ rotation
    >>> check(X).verdict
    'nothing found'
    >>> X[:500] = X[:500, ::-1]
    >>> found = check(X)
    >>> found.verdict, bool(abs(found.count - 500) < 50)
    ('two models', True)
    """
    random_generator(random_state)
    need_number("fdr", fdr, above=0, high=1)
    need_sequence("known", known, "passports")
    for one in known:
        need_kind("known", one, Passport)
    space = as_space(space)
    if len(space) < 2:
        raise SpaceError(f"check: expected two rows or more, got {len(space)}; load the whole collection")
    return _checked(space, trusted, known, other, fdr, random_state, show_step)


def _checked(
    space: LatentSpace,
    trusted: MatrixLike | Passport | None,
    known: Sequence[Passport],
    other: MatrixLike | None,
    fdr: float,
    random_state: int,
    report: Progress,
) -> Checked:
    """`check` of a space, without the checks of its arguments."""
    X = space.vectors
    n, width = X.shape
    change = None
    if isinstance(trusted, Passport):
        change = _changed_anchors(trusted, space, random_state)
    unlike = np.empty(0, np.float32)
    if trusted is not None and (axes := axes_of(trusted, width, needed=change is None)):
        unlike = axes.energy(X)
    marks = marks_of(X)
    report(0, len(_STEPS), _STEPS[0])
    compared = compared_parts(X, marks, unlike, random_state)
    own = rows_of(trusted, width)
    second = other_rows_of(other, width, own is not None)
    origins = None
    if compared.slope is not None:
        report(1, len(_STEPS), _STEPS[1])
        origins = row_origins(X, compared.log_ratio, own, second, fdr, random_state)
        compared = compared.judged(origins)
    slope = compared.slope
    log_ratio = compared.log_ratio
    if origins and not origins.refused:
        log_ratio = origins.log_ratio
    smallest = None
    if slope is not None and slope.high >= SUSPECTED and log_ratio is compared.log_ratio:
        report(2, len(_STEPS), _STEPS[2])
        smallest = smallest_found(X, random_state)
    unfit = compared.unfit
    if unfit == LIKE_TOPICS and not len(unlike):
        unfit += _GIVE_TRUSTED
    slope_value = None
    slope_high = None
    n_axes = 0
    if slope:
        slope_value = slope.value
        slope_high = slope.high
        n_axes = slope.axes
    larger = X[:FITTED]
    if len(log_ratio):
        larger = X[np.flatnonzero(log_ratio <= 0)[:FITTED]]
    return Checked(
        n,
        width,
        marks,
        slope_value,
        slope_high,
        n_axes,
        compared.fitted,
        log_ratio,
        unlike,
        unfit,
        name_of(larger, known),
        bool(known),
        change,
        smallest,
        origins,
    )


def _cell(column: str, value: Any) -> str:
    if not isinstance(value, float):
        return str(value)
    if column == "p":
        return short(value)
    return short(value, 1)


def _changed_anchors(passport: Passport, space: LatentSpace, random_state: int) -> PassportChange | None:
    """How the passport's anchors among the rows differ from its own vectors; None if the rows are not paired
    with its anchors by order, and have too few of its ids."""
    by_order = isinstance(ids_of(space), RowNumbers) and len(space) == len(passport.ids)
    if by_order or len(shared_ids((passport.space, space))) >= FEWEST_ANCHORS:
        return anchors_changed(passport, space, random_state)
    return None


@dataclass(frozen=True)
class CheckRows(Task[Checked], kind="check", version=8, title="Check for a second model"):
    """The task that checks the first space (see `check`). A second space, if given, holds trusted rows, and a
    third one trusted rows of the other model."""

    fdr: float = setting(
        FDR,
        above=0,
        high=1,
        help="Accepted share of wrong ones among the rows that the check assigns to another model.",
    )
    random_state: int = setting(0, low=0)

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, d = spaces[0].vectors.shape
        searched = min(n, FITTED) + 2 * min(n, PLANTED)
        return 0.5 + searched * (2.2e-4 + 3.1e-9 * d**2) + 6e-8 * n * d

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Checked:
        trusted = spaces[1] if len(spaces) > 1 else None
        other = spaces[2] if len(spaces) > 2 else None
        return _checked(spaces[0], trusted, (), other, self.fdr, self.random_state, report)
