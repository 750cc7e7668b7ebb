"""Test whether all vectors of a collection come from one model, draw the result, and repair a collection with
two."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.arguments import need_kind, need_sequence, random_generator
from relcore.base.errors import SpaceError
from relcore.base.junit import GateCase
from relcore.base.numbers import counted, percent, short
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import Rows, lengths, mean_row, row_blocks, unit_rows
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.task import Recipe, Task
from relcore.engine.engine import nearest
from relcore.figures.charts import Line, Lines
from relcore.figures.export import Exportable, chart_exportable
from relcore.linking.bootstrap import PAIRED
from relcore.linking.clusters import FEWEST as LINKABLE
from relcore.linking.clusters import link_clusters, map_from_pairs
from relcore.maps.reduction import ReductionSpec, principal_map
from relcore.passport.passport import (
    FEWEST,
    FITTED,
    LEAST,
    MIXED,
    SUSPECTED,
    UNCHANGED,
    Change,
    Passport,
    ShortAxes,
    common_dimensions,
    correlation,
    encode_texts,
    held_by,
    model_at_hand,
    name_recipe,
    paired_anchors,
    parts_of,
)
from relcore.passport.passport import check as anchors_changed
from relcore.runs.store import Progress, Store, silent
from relcore.spaces.space import LatentSpace, MatrixLike, RowNumbers, as_space, ids_of, row_hashes, shared_ids
from relcore.spaces.split import derangement

# minimum number of rows for two parts; for a trusted sample
FEWEST_ROWS = 500
TRUSTED_ROWS = 100
# limits of three checks in `_unfit`
_DENSE = 0.5
_ORDERED = 0.8
_PER_DIMENSION = 2
_UNIT = 1e-6
_ON_GRID = 0.02
_MOST_STEPS = 256
_PADDED = 8  # minimum number of final zeros; in int8 rows, fewer may be chance
_EQUAL = 0.45  # share of the smaller part from which parts count as equal
# `_are_means` looks at this number of rows, and the zeros at the end of their mantissas. float16 leaves 13
# of 23 bits, a mean of two about 11, of four 8. For each row of float16, there must be this many such rows.
_MEANS_SOUGHT = 5000
_MANTISSA = np.uint32(0x7FFFFF)
_FEWEST_ZEROS = 6
_HALF_ZEROS = 13
_AS_MANY = 0.1
_SHOWN = 10  # maximum number of rows in a report
_HEADS = {
    "log_ratio": "log odds of another model",
    "unlike": "size on axes that trusted rows hardly use (trusted rows: 1)",
}

MARKS = {
    "float16": "numbers that float16 holds exactly",
    "bfloat16": "numbers that bfloat16 holds exactly",
    "grid": "whole multiples of a step, as after int8",
    "unit length": "length 1 to one millionth",
    "padded": "zeros in the last dimensions",
    "constant": "one number in all dimensions",
    "repeated": "the same vector as an earlier row",
}
VERDICTS = {
    "two models": "holds vectors of two models",
    "suspicious": "may hold vectors of two models",
    "changed": "has other vectors than the passport",
    "marks": "has parts that were stored differently",
    "nothing found": "shows no sign of a second model",
}
LIMITS = {
    "marks": "Marks show how numbers were stored, not who made them. Normalising rows again removes them.",
    "trusted": "The ranking by trusted rows does not reveal a new prompt. Rows of a domain that trusted rows"
    " lack also rank high, so the ranking has no cut-off.",
    "parts": "Parts do not reveal another prompt, pooling or neighbouring layer of the same model.",
}

_ALIKE = (
    "Parts were not compared: these rows vary equally along their short axes, or are too few to tell. So a"
    " second model could not be found."
)


_GRADED = (
    "Parts were compared but cannot be judged: where they meet they share more axes than where they are"
    " farthest apart, as topics of one model do, above all of single words. Give rows of the right model as"
    " trusted ones to rank the others by."
)
_PLANTED = 5000  # maximum number of rows among which rows of a made-up second model are hidden


@dataclass(frozen=True, eq=False)
class Checked(Reported):
    """The results of a check of a collection of n rows.

    Attributes
    ----------
    marks : name of `MARKS` → row numbers (m,) of the rows whose numbers are stored in that way
    slope, slope_high : float, optional
        How far the two most different parts of the rows share their axes, from 1 (one model) to 0 (see
        `relcore.passport.passport.Slope`), over `axes` held-out axes, and the upper end of the 95 % interval.
        If parts could not be compared, it is None, and `unfit` has the reason.
    log_ratio : (n,) float32
        Log likelihood ratio of the smaller to the larger part. Rows above 0 are probably in the smaller part;
        their number is `count`.
    unlike : (n,) float32
        How much a row differs from the trusted rows: its mean square along their short axes, divided by that
        of the trusted rows. Empty without trusted rows.
    change : Change, optional
        The change of the anchors of a passport, if these are among the rows.
    named : str
        The name of the known model that has the same short axes as the larger part; "" if there is none.
    fitted : int
        Number of rows that were used to find the parts.
    smallest : int, optional
        If no second model was found: the smallest number of rows that would have been found if they were
        turned at random (see `smallest_found`), or 0 if not even a quarter of the rows.
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
    change: Change | None = None
    smallest: int | None = None

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
    def first_in_words(self) -> str:
        """A phrase that says what the `suspected_rows` have in common."""
        if self.verdict in ("two models", "suspicious"):
            return "likelier of another model"
        if len(self.unlike):
            return "the tenth least like the trusted rows"
        return "stored in another way"

    @property
    def headline(self) -> str:
        told = f"The collection {VERDICTS[self.verdict]}"
        if self.verdict in ("two models", "suspicious"):
            share = percent(self.count / self.n)
            told += f"; about {self.count:,} of {self.n:,} rows ({share}) are in the smaller part"
            if self.count / self.n > _EQUAL:
                told += ", and the parts are so equal that either may be of the other model"
        return f"{told}."

    @property
    def sentence(self) -> str:
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
        used = {"marks": True, "trusted": bool(len(self.unlike)), "parts": self.slope is not None}
        told = [LIMITS[level] for level, there in used.items() if there]
        if self.smallest:
            told.append(
                f"In this collection, {self.smallest:,} of {self.n:,} rows were found when they were turned"
                " at random; fewer may stay hidden, and rows of a second model are harder to find."
            )
        elif self.smallest == 0:
            told.append(
                "In this collection, not even a quarter of the rows was found when these were turned at"
                " random, so most second models would be missed."
            )
        return told

    def rows(self, ids: Sequence[str]) -> pd.DataFrame:
        """A table of all rows in the order of the ranking, with the evidence for each row."""
        table = pd.DataFrame({"id": ids})
        for name, values in (("log_ratio", self.log_ratio), ("unlike", self.unlike)):
            if len(values):
                table[name] = values
        for name, rows in self.partial_marks.items():
            table[name] = np.isin(np.arange(self.n), rows)
        if len(self.ranks):
            order = np.argsort(-self.ranks, kind="stable")
        else:
            order = np.arange(self.n)
        return table.iloc[order].reset_index(drop=True)

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
            cells = [
                [short(one, 1) if isinstance(one, float) else f"{one}" for one in row]
                for row in first.to_numpy()
            ]
            caption = f"The first {len(first)} of {self.n:,} rows, ranked"
            head = [_HEADS.get(name, name) for name in first.columns]
            tables.append(Table("ranking", first, [head, *cells], caption=caption))
        notes = []
        if self.n > FITTED and self.slope is not None:
            notes.append(f"Parts were sought on a sample of {self.fitted:,} rows; all {self.n:,} are ranked.")
        if self.asked:
            notes.append(f"Known models: {f'the family of {self.named}' if self.named else 'none of these'}.")
        if self.change is not None:
            notes.append(f"Anchors of the passport: {self.change.sentence}")
        told = ("verdict", "slope", "slope_high", "count", "n", "smallest")
        facts = {name: getattr(self, name) for name in told}
        facts |= {"sampled": self.fitted, "known": self.named, "alarm": self.verdict != "nothing found"}
        sentence = "\n".join([*(f"Not seen: {one}" for one in self.limits), "", self.sentence])
        return Report(sentence, tables, facts, notes, figures, self.cases)

    @property
    def cases(self) -> list[GateCase]:
        """The conditions that decide about an alarm."""
        parts = self.unfit
        if self.slope is not None and self.slope_high is not None:
            parts = (
                f"The axes of the two most unlike parts agree with slope {short(self.slope)}, at most"
                f" {short(self.slope_high)}. An alarm: at most below {short(SUSPECTED)}."
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
                skipped=self.unfit,
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


def check(
    space: MatrixLike,
    trusted: MatrixLike | Passport | None = None,
    known: Sequence[Passport] = (),
    *,
    random_state: int = 0,
) -> Checked:
    """Test whether a single model made the rows (n, d), and rank rows that may be of another model.

    There are three levels of evidence. First, marks show how the numbers of a row were stored. Second, 100 or
    more `trusted` rows of the right model give its short axes, the directions along which its vectors hardly
    vary; these are the same for all texts. Third, two parts of the rows are compared by their short axes,
    which needs no trusted rows. If `trusted` is a passport, the rows that are its anchors are also compared
    with it one by one. If passports of `known` models have fingerprints, the model of the larger part is
    named. The report says what each level cannot detect.

    Raises
    ------
    SpaceError
        Fewer than two rows; trusted rows of another width; too few trusted rows.

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
    need_sequence("known", known, "passports")
    for one in known:
        need_kind("known", one, Passport)
    space = as_space(space)
    X = space.vectors
    (n, width) = space.vectors.shape
    if n < 2:
        raise SpaceError(f"check: expected two rows or more, got {n}; load the whole collection")
    change = None
    unlike = np.empty(0, np.float32)
    if isinstance(trusted, Passport):
        by_order = isinstance(ids_of(space), RowNumbers) and n == len(trusted.ids)
        if by_order or len(shared_ids((trusted.space, space))) >= FEWEST:
            change = anchors_changed(trusted, space, random_state)
    if trusted is not None and (axes := _axes_of(trusted, width, needed=change is None)):
        unlike = axes.energy(X)
    marks = marks_of(X)
    unfit = _unfit(X, n - sum(len(marks.get(name, ())) for name in ("repeated", "constant")))
    slope = None
    ratio = np.empty(0, np.float32)
    fitted = min(n, FITTED)
    if not unfit:
        parts = parts_of(X, random_state, unlike if len(unlike) else None)
        slope = parts.slope
        ratio = parts.log_ratio
        fitted = parts.fitted
        if not parts.uneven:
            unfit = _ALIKE
        elif parts.graded:
            unfit = _GRADED
        if unfit:
            slope = None
            ratio = np.empty(0, np.float32)
    smallest = None
    if slope is not None and slope.high >= SUSPECTED:
        smallest = smallest_found(X, random_state)
    if len(ratio):
        larger = X[np.flatnonzero(ratio <= 0)[:FITTED]]
    else:
        larger = X[:FITTED]
    return Checked(
        n,
        width,
        marks,
        slope and slope.value,
        slope and slope.high,
        slope.axes if slope else 0,
        fitted,
        ratio,
        unlike,
        unfit,
        name_of(larger, known),
        bool(known),
        change,
        smallest,
    )


def smallest_found(X: Rows, random_state: int = 0) -> int:
    """The smallest number of these rows (n, d) that would be found as a second model if they were turned at
    random: 20, 40, 80 and so on are turned, until they are found. Returns 0 if a quarter is not found. Of
    more than 5,000 rows, a sample is tried, and the number is that of the same share of all rows.
    """
    rng = np.random.default_rng((random_state, 41))
    rows = np.asarray(X[np.sort(rng.permutation(len(X))[:_PLANTED])])
    turn = np.linalg.qr(rng.normal(size=(rows.shape[1],) * 2))[0].astype(np.float32)
    order = rng.permutation(len(rows))
    few = LEAST
    while few <= len(rows) // 4:
        planted = rows.astype(np.float32)
        planted[order[:few]] = planted[order[:few]] @ turn
        parts = parts_of(planted, random_state)
        if parts.slope.high < MIXED and parts.uneven and not parts.graded:
            return round(few * len(X) / len(rows))
        few *= 2
    return 0


def _axes_of(trusted: MatrixLike | Passport, width: int, needed: bool) -> ShortAxes | None:
    """The short axes in a passport's fingerprint; without a fingerprint, those of the trusted rows. If the
    trusted rows have another width than `width` or are too few, raise a SpaceError if `needed`, otherwise
    return None.
    """
    if isinstance(trusted, Passport) and (axes := trusted.fingerprint) and len(axes.axes) == width:
        return axes
    if isinstance(trusted, Passport):
        sample = trusted.space
    else:
        sample = as_space(trusted, "trusted")
    if sample.dimension == width and len(sample) >= TRUSTED_ROWS:
        return ShortAxes.of(np.asarray(sample.vectors))
    if not needed:
        return None
    raise SpaceError(
        f"trusted: expected {TRUSTED_ROWS} rows or more with {width} numbers, got {len(sample):,} with"
        f" {sample.dimension}; give rows of the model that should have made all"
    )


def _unfit(X: Rows, distinct: int) -> str:
    """The reason why two parts of these rows cannot be compared; "" if they can."""
    (n, d) = X.shape
    least = max(FEWEST_ROWS, _PER_DIMENSION * X.shape[1])
    if distinct < least:
        return (
            f"Parts were not compared: {least:,} distinct rows of this width are needed, and there are"
            f" {distinct:,}."
        )
    some = np.asarray(X[:: max(1, n // FITTED)])
    if np.count_nonzero(some) < _DENSE * some.size:
        return "Parts were not compared: most numbers are 0, and sparse spaces are out of scope."
    spread = pd.Series(some.var(axis=0, dtype=np.float64))
    if -spread.corr(pd.Series(np.arange(d)), method="spearman") > _ORDERED:
        return (
            "Parts were not compared: the columns are ordered by their variance, as those of LSA or a PCA,"
            " and in such spaces topics have axes of their own."
        )
    return ""


def marks_of(X: Rows) -> dict[str, np.ndarray]:
    """Find rows of X (n, d) whose numbers are stored in a certain way, such as rounded. Returns their row
    numbers by the names in `MARKS`; marks without rows are left out."""
    found: dict[str, list[np.ndarray]] = {name: [] for name in MARKS}
    used = []
    for block in row_blocks(len(X)):
        rows = np.asarray(X[block], np.float32)
        half, brain = held_by(rows).values()
        constant = (rows == rows[:, :1]).all(axis=1)
        grid = _on_steps(rows)
        length = np.sqrt(np.square(rows, dtype=np.float64).sum(axis=1))
        used.append(rows.shape[1] - (rows[:, ::-1] != 0).argmax(axis=1))
        here = {"constant": constant, "grid": grid & ~constant, "unit length": np.abs(length - 1) <= _UNIT}
        here |= {"float16": half & ~brain & ~grid & ~constant, "bfloat16": brain & ~grid & ~constant}
        for name, rows_of in here.items():
            found[name].append(block.start + np.flatnonzero(rows_of))
    if found["float16"] and _are_means(X, np.concatenate(found["float16"])):
        found["float16"] = [np.empty(0, np.int64)]
    widths = np.concatenate(used)
    found["padded"] = [np.flatnonzero(widths <= widths.max() - max(_PADDED, X.shape[1] // 32))]
    found["repeated"] = [np.flatnonzero(row_hashes(X).duplicated())]
    return {name: rows for name, parts in found.items() if len(rows := np.concatenate(parts))}


def _are_means(X: Rows, half: np.ndarray) -> bool:
    """Whether the rows with the numbers `half`, which float16 holds exactly, are probably means of one vector
    where other rows are means of several, such as words that are stored as float16.

    A mean of two or four float16 numbers needs a few bits more than float16 has, but fewer than float32. Rows
    that were stored in another way have such numbers only by chance.
    """
    others = np.setdiff1d(np.arange(len(X)), half)
    some = others[:: max(1, len(others) // _MEANS_SOUGHT)]
    if not len(half) or not len(some):
        return False
    bits = np.ascontiguousarray(X[some], np.float32).view(np.uint32) & _MANTISSA
    # The lowest bit that is set: 1 << number of zeros at the end.
    zeros = np.median(bits & (~bits + np.uint32(1)), axis=1)
    short_rows = (zeros >= 1 << _FEWEST_ZEROS) & (zeros < 1 << _HALF_ZEROS)
    return np.mean(short_rows) * len(others) >= _AS_MANY * len(half)


def _on_steps(rows: np.ndarray) -> np.ndarray:
    """Whether the numbers of each row are all whole multiples of some step, as after quantisation. Two steps
    per row are tried: the smallest difference between two numbers, unless more than 256 such steps would fit,
    and 1/127 of the largest number.
    """
    sizes = np.sort(np.abs(rows), axis=1)
    largest = np.maximum(sizes[:, -1:], np.finfo(np.float32).tiny)
    steps = np.diff(sizes, axis=1)
    steps[steps < largest / (2 * _MOST_STEPS)] = np.inf
    on_grid = np.zeros(len(rows), bool)
    for step in (steps.min(axis=1, keepdims=True, initial=np.inf), largest / 127):
        multiples = rows / np.where(np.isfinite(step), step, 1)
        on_grid |= np.isfinite(step[:, 0]) & (np.abs(multiples - np.round(multiples)) < _ON_GRID).all(axis=1)
    return on_grid


FAR = 2.5
MARGIN = 0.7


def name_of(X: Rows, known: Sequence[Passport]) -> str:
    """The name of the known model whose fingerprint fits the rows (n, d); "" if there is none.

    The `ShortAxes.distance` must be below 2.5, and at least .7 below the distance of every other model.
    """
    far = {}
    for passport in known:
        if passport.fingerprint is None:
            raise SpaceError(
                f"known: expected a passport with a fingerprint, got {passport.card.model!r:.80} without;"
                " make it again with --fingerprint"
            )
        if len(passport.fingerprint.axes) == X.shape[1]:
            far[passport.card.model] = passport.fingerprint.distance(X)
    if not far:
        return ""
    best, *others = sorted(far, key=far.__getitem__)
    if far[best] < FAR and all(far[other] - far[best] >= MARGIN for other in others):
        return best
    return ""


@dataclass(frozen=True)
class CheckRows(Task[Checked], kind="check", version=3, title="Check for a second model"):
    """The task that checks the first space (see `check`). A second space, if given, holds trusted rows."""

    random_state: int = 0

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        n, d = spaces[0].vectors.shape
        searched = min(n, FITTED) + 2 * min(n, _PLANTED)
        return 0.5 + 15 * searched / FITTED * (d / 384) ** 2 + 6e-8 * n * d

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Checked:
        return check(*spaces[:2], random_state=self.random_state)


# Figures of both checks, those of a passport and of a collection, and two tasks of the page.

MINILM = "minilm"


@dataclass(frozen=True, eq=False)
class Embedded:
    vectors: np.ndarray


@dataclass(frozen=True)
class EmbedAnchors(Task[Embedded], kind="passport-texts", title="Embed the anchors"):
    """The task that embeds texts, the ids of the first space, with the bundled model MiniLM."""

    prompt: str = ""
    pooling: str = "mean"

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 5 + 0.02 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Embedded:
        encoder = replace(model_at_hand(MINILM, last=True), pooling=self.pooling)
        [rows] = encode_texts(encoder, list(spaces[0].ids), self.prompt).values()
        return Embedded(rows)


@dataclass(frozen=True)
class Tried:
    recipe: str


@dataclass(frozen=True)
class NameRecipe(Task[Tried], kind="passport-recipe", title="Try recipes of MiniLM"):
    """The task that finds the prompt, pooling and layer by which the bundled model MiniLM made the rows of a
    space. The texts are the ids of the space.
    """

    def seconds(self, spaces: Sequence[LatentSpace]) -> float:
        return 8 + 0.25 * len(spaces[0])

    def run(
        self, spaces: Sequence[LatentSpace], store: Store | None = None, report: Progress = silent
    ) -> Tried:
        return Tried(name_recipe(model_at_hand(MINILM), list(spaces[0].ids), spaces[0].vectors))


@dataclass(frozen=True, kw_only=True)
class PassportChart(Recipe, figure="passport"):
    """A figure that compares the anchors of a passport with new vectors of them. `passport` is a space, such
    as the file of a passport; if `anchors` are given, only its rows with these ids are compared. `new` is a
    space with the same ids; if it is None, MiniLM embeds the texts.
    """

    passport: SpaceSpec
    new: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    anchors: tuple[str, ...] = ()
    embed: EmbedAnchors = EmbedAnchors()

    def draw(self, result: tuple[Passport, LatentSpace] | None = None) -> Exportable:
        return chart_exportable(chart_of(*(result or self._load())), self.to_json(), "relscope-passport")

    def _load(self) -> tuple[Passport, LatentSpace]:
        old, *others = self.loaded()
        passport = Passport.of(old.take(old.rows(self.anchors)) if self.anchors else old)
        if others:
            return passport, others[0]
        return passport, LatentSpace(self.embed.run([passport.space]).vectors, passport.ids, name="MiniLM")


def chart_of(passport: Passport, new: LatentSpace) -> Lines:
    """A chart with two values for each anchor: the cosine of its old and its new vector, and the correlation
    of its old and new cosines with the other anchors. Further points show these values for randomly matched
    anchors. If the widths differ, the first value is the largest change of a cosine with another anchor.
    """
    ids, X, Y = paired_anchors(passport, new)
    change = passport.check(new)
    if change.cosine is not None:
        X, Y = common_dimensions(X, Y)
    n = len(ids)
    other = derangement(len(ids), np.random.default_rng(0))
    U = unit_rows(X).astype(np.float64)
    V = unit_rows(Y).astype(np.float64)
    old = U @ U.T
    now = V @ V.T
    lines = []
    for name, rows in (("the same anchor", np.arange(n)), ("another anchor: chance", other)):
        moved = now[np.ix_(rows, rows)]
        if X.shape[1] == Y.shape[1]:
            x = np.vecdot(U, V[rows])
        else:
            x = np.abs(old - moved).max(axis=1)
        y = [correlation(np.delete(old[row], row), np.delete(moved[row], row)) for row in range(n)]
        labels = [
            f"{item:.80}" if rows[row] == row else f"{item:.40} / {ids[rows[row]]:.40}"
            for row, item in enumerate(ids)
        ]
        lines.append(Line(name, x, y, labels=labels))
    titles = "cosine of the old and the new vector", "correlation of old and new cosines to the other anchors"
    if change.cosine is None:
        titles = "largest change of a cosine with another anchor", titles[1]
    return Lines(
        tuple(lines),
        *titles,
        kind="points",
        note=f"{change.kind.capitalize()}, {n:,} anchors",
        alt=f"Scatter plot of {n:,} anchors. {change.sentence}",
    )


_DRAWN = 3000  # maximum number of rows of a map


@dataclass(frozen=True, kw_only=True)
class CheckChart(Recipe, figure="check"):
    """A figure of a check of one space: a map of its rows on their two longest axes, with suspected rows in
    another colour. `trusted` has rows of the right model.
    """

    space: SpaceSpec
    trusted: SpaceSpec | None = None
    digests: tuple[str, ...] = ()
    check: CheckRows = CheckRows()

    def draw(self, result: tuple[LatentSpace, Checked] | None = None) -> Exportable:
        if result is None:
            spaces = self.loaded()
            result = spaces[0], self.check.run(spaces)
        return chart_exportable(map_of(*result), self.to_json(), "relscope-check")


def map_of(space: LatentSpace, checked: Checked) -> Lines:
    """A map of at most 3,000 random rows, scaled to length 1, with the `suspected_rows` in another colour."""
    drawn = np.sort(np.random.default_rng(0).permutation(len(space))[:_DRAWN])
    places, _ = principal_map(unit_rows(np.asarray(space.vectors[drawn])), ReductionSpec())
    first = checked.suspected_rows
    groups = {"the other rows": ~first[drawn], checked.first_in_words: first[drawn]}
    ids = space.ids[drawn]
    lines = tuple(
        Line(name, *places[some].T, labels=[f"{one:.80}" for one in ids[some]])
        for name, some in groups.items()
        if some.any()
    )
    note = f"{len(drawn):,} of {len(space):,} rows"
    alt = f"Scatter plot of {len(drawn):,} rows on their two longest axes. {checked.sentence}"
    return Lines(lines, "longest axis", "second axis", kind="points", note=note, alt=alt)


# Repair maps the rows of one model into the space of the other.


def map_to_space(
    X: np.ndarray, Y: np.ndarray, pairs: np.ndarray | None = None, random_state: int = 0
) -> np.ndarray:
    """Map the rows X (m, d) into the space of the rows Y (n, e). Returns an array (m, e) float32. The map is
    fitted on 10 or more pairs (2, p) of row numbers and on the unpaired rows. Without pairs, the map is found
    by `link_clusters`.

    Raises
    ------
    SpaceError
        Fewer than 10 pairs. Without pairs: fewer than 1,000 rows in X or in Y; rows that cannot be linked.
    """
    means = mean_row(X), mean_row(Y)
    first = unit_rows(X, means[0])
    second = unit_rows(Y, means[1])
    again = "embed the smaller part again with the model of the larger part, or give pairs"
    if pairs is not None:
        if pairs.shape[1] < PAIRED:
            raise SpaceError(f"repair: expected {PAIRED} pairs or more, got {pairs.shape[1]}; {again}")
        mapping = map_from_pairs(first, second, pairs, random_state)
    else:
        if min(len(X), len(Y)) < LINKABLE:
            got = f"{min(len(X), len(Y)):,}"
            raise SpaceError(
                f"repair without pairs: expected {LINKABLE:,} rows of each model, got {got}; {again}"
            )
        *_, fit = link_clusters(first, second, random_state)
        if not fit.agrees:
            raise SpaceError(
                f"repair without pairs: expected fits on two halves that agree, got a cosine of"
                f" {fit.agreement:.2f} and {fit.same:.2f} of the rows in the same place; {again}"
            )
        mapping = fit.mapping
    size = float(lengths(Y, means[1]).mean(dtype=np.float64))
    return (unit_rows(first @ mapping) * size + means[1]).astype(np.float32)


def repair(
    space: LatentSpace, checked: Checked, again: LatentSpace | None = None, random_state: int = 0
) -> tuple[LatentSpace, str]:
    """Repair a collection with vectors of two models by mapping its smaller part into the space of the larger
    part. Returns the new space, and a sentence on the quality of the map.

    `again` has rows of the smaller part, embedded again by the model of the larger part. To measure the
    quality, a third of these is held out from the fit; their new vectors search all rows before and after the
    repair.

    Raises
    ------
    SpaceError
        A collection with a single part; ids of `again` that are not in the smaller part; errors of
        `map_to_space`.
    """
    X = np.array(space.vectors)
    small = checked.suspected_rows
    if checked.verdict not in ("two models", "suspicious"):
        raise SpaceError("repair: expected two parts, got one; without them there is nothing to map")
    rows = np.flatnonzero(small)
    rest = np.flatnonzero(~small)
    if again is None:
        X[rows] = map_to_space(X[rows], X[rest], None, random_state)
        told = f"Mapped {counted(len(rows), 'row')} without a pair. Embed some again to test the map."
    else:
        shared = [one for one in again.ids if one in space.index and small[space.index.get_loc(one)]]
        own = space.rows(shared)
        other = np.asarray(again.vectors[again.rows(shared)])
        places = np.searchsorted(rows, own)
        tested = np.arange(len(own)) % 3 == 0

        def fit(some: np.ndarray) -> np.ndarray:
            pairs = np.stack([places[some], len(rest) + np.arange(len(some))])
            return map_to_space(X[rows], np.r_[X[rest], other[some]], pairs, random_state)

        queries = unit_rows(other[tested])
        hits = []
        for side in (X[rows], fit(np.flatnonzero(~tested))):  # before and after the repair
            lists = nearest(queries, unit_rows(np.r_[side, X[rest]]), 10, unit=False).rows
            hits.append(percent(float((lists == places[tested][:, None]).any(axis=1).mean())))
        X[rows] = fit(np.arange(len(own)))
        X[own] = other
        told = (
            f"Mapped {counted(len(rows), 'row')} by {len(own):,} pairs. Of {np.count_nonzero(tested):,}"
            f" held-out pairs {hits[0]} had their row among the 10 nearest of {len(X):,} before, and"
            f" {hits[1]} after (chance {percent(10 / len(X))})."
        )
    columns = {name: getattr(space, name) for name in ("name", "labels", "payload", "counts")}
    return LatentSpace(X, space.ids, **columns), told
