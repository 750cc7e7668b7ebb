"""How the vectors of a passport's anchors changed."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from relcore.base.errors import quote
from relcore.base.numbers import band, beside, counted, short, signed
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import row_blocks, unit_rows
from relcore.engine.engine import thin_svd

ENOUGH = 32  # number of anchors that is enough for every verdict
CHANGES = {
    "same": "the same vectors",
    "rounded": "the same vectors, rounded",
    "rescaled": "the same directions, other lengths",
    "rotated": "the same shape in other coordinates",
    "cut": "the first dimensions of the same vectors",
    "extended": "the same vectors, followed by further dimensions",
    "mixed": "some anchors kept their vectors, the others have other ones",
    "changed recipe": "the same coordinates, other vectors: another prompt, pooling, layer, revision, noise",
    "related model": "coordinates that agree only in part: a distant layer, or a model of the same origin",
    "other model": "other coordinates and another shape",
}
ADVICE = {
    "same": "There is nothing to do.",
    "rounded": "Usually, there is nothing to do.",
    "rescaled": "Nothing needs to be done if you search by cosine.",
    "rotated": "Old and new vectors must not be mixed. Map one of them: relscope migrate OLD NEW --export.",
    "cut": "Cut the old vectors as well, or store the whole ones: both lengths must not be mixed.",
    "extended": "Keep only the first dimensions of the new vectors: they are the old vectors.",
    "mixed": "Embed the other rows again with the model of the passport.",
    "changed recipe": "Find out what changed, or embed all rows again.",
    "related model": "Old and new vectors must not be mixed. Embed all rows again, or map the new queries:"
    " Migrate, New model.",
    "other model": "Embed all rows again, or map the new queries: Migrate, New model.",
}
# Maximum change, as a share of a row's largest number; batch size and processor change numbers by less.
EXACT = 2e-5
ROUNDED = 0.2  # maximum change, as a share of the spread; int8 causes .02, 4 bits .15, a short prompt .28
COMPUTED = 0.01  # change as a share of the spread, as in 16-bit models; a larger one must lie on a grid
ON_GRID = 2.5  # maximum .99 quantile ÷ median of the changes: 1.98 on a grid, 3.8 for normal noise
# Kept rows move by at most KEPT times the rows' spread; other rows move APART times as far.
KEPT = 0.06
APART = 3.0
SAMPLED = 512  # maximum number of anchors whose similarities with each other are compared
LEAST_KEPT = 0.1  # minimum share of kept anchors; if rows are reordered, a few keep their place by chance
LENGTHS = 0.01  # maximum change, as a share of a row's length; int8 changes it by at most .005
# A rotation with 5 % of noise gives .9991 and .019; a short prompt gives .955 and .16.
SAME_GRAM = 0.985
GRAM_APART = 0.06
EXACT_GRAM = 1e-3  # maximum change of a cosine by a rotation; noise changes cosines by more
# permutations and samples of the anchors; FEW_DRAWS is for Gram matrices
DRAWS = 1999
FEW_DRAWS = 199
LEAST_P = 0.01
# Minimum mean cosine of centred rows for a changed recipe. For MiniLM and 150 bundled anchors, prompts give
# .89 or more, the class token .75, the neighbouring layer .64. paraphrase-MiniLM, a related model, gives .27;
# for MiniLM's layer 3, it gives .38.
SAME_MODEL = 0.5
LEAST_VALUE = 1e-5  # minimum singular value, as a share of the largest; smaller ones are float32 rounding


class Evidence(NamedTuple):
    """A measured similarity, its 95 % interval over the anchors, and its chance level, the largest value
    among random permutations of the anchors.
    """

    value: float
    low: float
    high: float
    chance: float


@dataclass(frozen=True, repr=False)
class PassportChange(Reported):
    """The kind of change between a passport and new vectors of its anchors, with the evidence.

    Attributes
    ----------
    kind : one of `CHANGES`
    n : int
        Number of anchors that were compared.
    widths : old and new
    cosine : Evidence, optional
        Mean cosine of an anchor's old and new vector, −1 … 1; None if the widths differ.
    gram : Evidence
        Pearson correlation of the old and the new cosines between anchors, −1 … 1.
    gram_apart : float
        The largest change of a cosine between two anchors, 0 … 2.
    scale : float
        Median, over the rows, of the ratio of the new length to the old one.
    missing : int
        Number of anchors that the new vectors lack.
    named : str
        The recipe that makes the new vectors; "" if it was not found.
    others : ids
        If the kind is "mixed", the anchors whose vectors are of another model or recipe, or of another
        anchor.
    exchanged : ids
        Those of the `others` that have the old vector of another anchor.
    centred : float, optional
        Mean cosine of an anchor's old and new vector after subtracting the mean of each set, −1 … 1. From
        `SAME_MODEL`, coordinates that agree are those of the same model. None if the widths differ.
    n_similar : int
        Number of anchors whose similarities with each other were compared, at most `SAMPLED`.
    lengths : (float, float), optional
        The lowest and the highest ratio of a row's new length to its old one.
    p : float, optional
        The p-value of a permutation test of common coordinates, on which a "changed recipe", a "related
        model" and another one are distinguished.
    """

    kind: str
    n: int
    widths: tuple[int, int]
    cosine: Evidence | None
    gram: Evidence
    gram_apart: float
    scale: float
    missing: int = 0
    named: str = ""
    others: tuple[str, ...] = ()
    exchanged: tuple[str, ...] = ()
    centred: float | None = None
    n_similar: int = 0
    lengths: tuple[float, float] | None = None
    p: float | None = None

    @property
    def others_in_words(self) -> str:
        """A sentence that estimates from the `others` which share of the whole collection is of another
        model, with a 95 % interval; "" if there are none.
        """
        if not self.others:
            return ""
        from scipy.stats import beta

        n = len(self.others)
        if self.exchanged == self.others:
            what = "have the vector of another anchor, as if rows were swapped"
        else:
            what = "come from another model or recipe"
        ends = (0.025, 0.975)
        low, high = beta.ppf(ends, n + 0.5, self.n - n + 0.5)  # Jeffreys interval
        more = ""
        if n > 5:
            more = ", …"
        return (
            f"{100 * n / self.n:.0f} % of the anchors {what} ({n:,} of {self.n:,};"
            f" 95 %: {100 * low:.0f} … {100 * high:.0f} %): {quote(self.others[:5])}{more}."
        )

    @property
    def sentence(self) -> str:
        made = ""
        if self.named:
            made = f", made by {self.named}"
        text = f"{self.kind[:1].upper()}{self.kind[1:]}: {CHANGES[self.kind]}{made}."
        advice = ADVICE[self.kind]
        if self.others and self.exchanged == self.others:
            advice = "Give these vectors to the right ids again."
        return " ".join(filter(None, (text, self.others_in_words, advice)))

    def report(self, **facts: Any) -> Report:
        table = Table("checks", pd.DataFrame([self._row()]), self._cells(), caption=self._caption())
        cautions = [self.caution] if self.caution else []
        return Report(self.sentence, [table], facts | {"others": self.others}, cautions)

    def _row(self) -> dict[str, Any]:
        """The evidence as the row of a table for programs."""
        row = {"change": self.kind, "n": self.n, "missing": self.missing, "recipe": self.named}
        for name, evidence in (("cosine", self.cosine), ("gram", self.gram)):
            values = dict.fromkeys(Evidence._fields)
            if evidence:
                values = evidence._asdict()
            row[name] = values.pop("value")
            row |= {f"{name} {part}": value for part, value in values.items()}
        return row | {"centred cosine": self.centred, "gram apart": self.gram_apart, "scale": self.scale}

    def _cells(self) -> list[list[str]]:
        """The evidence as the cells of a table for readers."""
        correlated = "cosines between anchors (correlation)"
        apart = "largest change between two anchors"
        gram = short(self.gram.value)
        gram_apart = short(self.gram_apart)
        if self.kind in ("rotated", "other model"):
            correlated = f"cosines between anchors (correlation; same shape: from {short(SAME_GRAM)})"
            apart += f" (same shape: at most {short(GRAM_APART)})"
            gram = beside(self.gram.value, SAME_GRAM)[0]
            gram_apart = beside(self.gram_apart, GRAM_APART)[0]
        length = "length, new ÷ old"
        lengths = ""
        if self.lengths:
            length += " (median; lowest … highest)"
            low, high = self.lengths
            lengths = f"{beside(low, 1 - LENGTHS)[0]} … {beside(high, 1 + LENGTHS)[0]}"
        cells = [["evidence", "value", "95 %", "chance"]]
        if self.cosine:
            interval = band(self.cosine.low, self.cosine.high)
            chance = signed(self.cosine.chance)
            cells.append(["cosine of old and new", short(self.cosine.value), interval, chance])
        cells.append([correlated, gram, band(self.gram.low, self.gram.high), signed(self.gram.chance)])
        cells.append([apart, gram_apart, "", ""])
        cells.append([length, short(self.scale), lengths, ""])
        if self.centred is not None:
            limit = "cosine after centring"
            centred = short(self.centred)
            if self.kind in ("changed recipe", "related model"):
                limit += f" (same model: from {short(SAME_MODEL, 2)})"
                centred = beside(self.centred, SAME_MODEL)[0]
            cells.insert(-2, [limit, centred, "", ""])
        if self.p is not None and self.kind in ("changed recipe", "related model", "other model"):
            name = f"p that coordinates agree by chance (same coordinates: at most {short(LEAST_P)})"
            cells.insert(-2, [name, beside(self.p, LEAST_P)[0], "", ""])
        return cells

    def _caption(self) -> str:
        caption = f"{counted(self.n, 'anchor')}; chance: the highest value of randomly paired anchors"
        if self.cosine is None:
            caption += f"; the width was {self.widths[0]:,} and is {self.widths[1]:,}"
        elif self.widths[0] != self.widths[1]:
            caption += f"; cosine on the first {min(self.widths):,} of {max(self.widths):,} dimensions"
        if self.n_similar and self.n_similar < self.n:
            caption += "; chance, intervals and all that compares two anchors: a sample of"
            caption += f" {self.n_similar:,} of them"
        return f"{caption}."

    @property
    def caution(self) -> str:
        lacks = ""
        if self.missing:
            lacks = f"{counted(self.missing, 'anchor')} of the passport were not found; "
        few = ""
        if self.n < ENOUGH:
            few = f"with fewer than {ENOUGH} anchors a much changed recipe may look like another model; "
        if lacks or few:
            return f"Compared on {counted(self.n, 'anchor')}: {lacks}{few}"[:-2] + "."
        return ""


def change_between(
    ids: Sequence[str], X: np.ndarray, Y: np.ndarray, missing: int = 0, random_state: int = 0
) -> PassportChange:
    """The kind of change from the vectors X (n, d) of these anchors to their vectors Y (n, e), with the
    evidence. `missing` anchors of the passport have no new vectors."""
    rng = np.random.default_rng((random_state, 8))
    widths = (X.shape[1], Y.shape[1])
    n_anchors = len(X)
    lengths = np.linalg.norm(Y, axis=1) / np.linalg.norm(X, axis=1)
    shared = common_dimensions(X, Y)
    kind, others = _of_coordinates(*shared)
    kind = _of_widths(kind, X, Y)
    exchanged = others & _exchanged(*shared)
    # Each row was compared with its new vector. The similarities of all pairs of rows would take minutes for
    # 4,000 anchors.
    if n_anchors > SAMPLED:
        sample = np.sort(rng.choice(n_anchors, SAMPLED, replace=False))
        X = X[sample]
        Y = Y[sample]
        shared = (shared[0][sample], shared[1][sample])
    n = len(X)
    old_cosines = _cosines(X)
    new_cosines = _cosines(Y)
    gram_apart = float(np.abs(old_cosines - new_cosines).max())
    orders = rng.permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)
    samples = rng.integers(n, size=(DRAWS, n))
    gram = _gram_evidence(old_cosines, new_cosines, orders[:FEW_DRAWS], samples[:FEW_DRAWS])
    cosine = None
    centred = None
    p = None
    if kind or widths[0] == widths[1]:
        cosine = _cosine_evidence(*shared, orders, samples)
        centred = _centred_cosine(*shared)
        if not kind:
            p = _chance_of_coordinates(*shared, orders)
    if not kind:
        kind = _kind_of_other_vectors(gram.value, gram_apart, p, centred)
    return PassportChange(
        kind,
        n_anchors,
        widths,
        cosine,
        gram,
        gram_apart,
        float(np.median(lengths)),
        missing,
        others=tuple(ids[row] for row in np.flatnonzero(others).tolist()),
        exchanged=tuple(ids[row] for row in np.flatnonzero(exchanged).tolist()),
        centred=centred,
        n_similar=n,
        lengths=(float(lengths.min()), float(lengths.max())),
        p=p,
    )


def _centred_cosine(X: np.ndarray, Y: np.ndarray) -> float:
    """The mean cosine of paired rows after subtracting the mean of each set."""
    return float(np.vecdot(unit_rows(X, X.mean(axis=0)), unit_rows(Y, Y.mean(axis=0))).mean())


def _kind_of_other_vectors(gram: float, gram_apart: float, p: float | None, centred: float | None) -> str:
    """The kind of change if no anchor, or hardly any, kept its vector. The arguments are those of
    `PassportChange`."""
    agree = p is not None and p <= LEAST_P
    alike = gram >= SAME_GRAM and gram_apart <= GRAM_APART
    if alike and not (agree and gram_apart > EXACT_GRAM):
        return "rotated"
    if not agree:
        return "other model"
    if centred is not None and centred < SAME_MODEL:
        return "related model"
    return "changed recipe"


def _of_widths(kind: str, X: np.ndarray, Y: np.ndarray) -> str:
    """The kind of change of rows that kept their coordinates (`kind` by `_of_coordinates`), if the number of
    dimensions changed, too. Zeros at the end of all rows are not counted, except where both have the same
    other dimensions."""
    if kind in ("", "mixed"):
        return kind
    used = _used_width(X), _used_width(Y)
    if used[0] == used[1]:
        used = X.shape[1], Y.shape[1]
    if used[1] < used[0]:
        return "cut"
    if used[1] > used[0]:
        return "extended"
    return kind


def _used_width(X: np.ndarray) -> int:
    """The number of dimensions up to the last one that is not zero in all rows."""
    return int(np.flatnonzero(X.any(axis=0))[-1]) + 1


def _exchanged(X: np.ndarray, Y: np.ndarray) -> np.ndarray:
    """Whether each row of Y (n, d) has the direction of another row of X than its own, a mask (n,)."""
    near = np.empty(len(X), bool)
    units = unit_rows(X)
    for block in row_blocks(len(X), 1024):
        similarities = unit_rows(Y[block]) @ units.T
        own = np.arange(len(similarities)), np.arange(len(X))[block]
        similarities[own] = -1
        near[block] = similarities.max(axis=1) > 1 - KEPT**2
    return near


def common_dimensions(X: np.ndarray, Y: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Cut the arrays X (n, d) and Y (n, e) to the smaller number of dimensions. Dimensions at the end that
    are zero in all rows of an array are removed first.
    """
    width = min(_used_width(X), _used_width(Y))
    return X[:, :width], Y[:, :width]


def _chance_of_coordinates(X: np.ndarray, Y: np.ndarray, orders: np.ndarray) -> float:
    """The p-value of common coordinates of X and Y (n, d), by a permutation test of the mean inner product of
    paired rows. Rows are whitened first. Otherwise the test would depend on the few
    directions that hold most of a layer's variance, and these differ between layers.
    """
    sides = []
    for rows in (X, Y):
        units = unit_rows(rows).astype(np.float64)
        left, values, right = thin_svd(units - units.mean(axis=0))
        left[:, values <= LEAST_VALUE * values[0]] = 0  # axes of rounding errors
        sides.append(left @ right)
    between = sides[0] @ sides[1].T
    chance = between[np.arange(len(X)), orders].mean(axis=1)
    return float((1 + np.count_nonzero(chance >= between.diagonal().mean())) / (1 + len(orders)))


def _cosines(X: np.ndarray) -> np.ndarray:
    """The cosines (n, n) of all pairs of rows."""
    units = unit_rows(X).astype(np.float64)
    return units @ units.T


def _evidence(value: float, samples: ArrayLike, chance: ArrayLike) -> Evidence:
    low, high = np.quantile(np.asarray(samples), (0.025, 0.975))
    return Evidence(value, float(low), float(high), float(np.max(chance)))


def _gram_evidence(old: np.ndarray, now: np.ndarray, orders: np.ndarray, samples: np.ndarray) -> Evidence:
    """The correlation of the old and the new cosines (n, n) between anchors. `orders` are random orders of
    the anchors, for the chance level; `samples` are bootstrap samples, for the interval."""
    apart = np.triu_indices(len(old), 1)
    by_chance = [correlation(old[apart], now[np.ix_(one, one)][apart]) for one in orders]
    by_sample = [_of_sample(old, now, one) for one in samples]
    return _evidence(correlation(old[apart], now[apart]), by_sample, by_chance)


def _cosine_evidence(X: np.ndarray, Y: np.ndarray, orders: np.ndarray, samples: np.ndarray) -> Evidence:
    """The mean cosine of an anchor's old and new vector; `orders` and `samples` as in `_gram_evidence`."""
    between = unit_rows(X).astype(np.float64) @ unit_rows(Y).astype(np.float64).T
    own = between.diagonal()
    by_chance = between[np.arange(len(X)), orders].mean(axis=1)
    return _evidence(float(own.mean()), own[samples].mean(axis=1), by_chance)


def _of_sample(old: np.ndarray, now: np.ndarray, rows: np.ndarray) -> float:
    """The correlation of the old and the new cosines (n, n) between the rows of a bootstrap sample. Pairs of
    a row with itself are left out.
    """
    (i, j) = np.triu_indices(len(rows), 1)
    first = rows[i]
    second = rows[j]
    differ = first != second
    places = (first[differ], second[differ])
    return correlation(old[places], now[places])


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """The Pearson correlation of two arrays (m,), −1 … 1; 0 if one of them is constant."""
    x = x - x.mean()
    y = y - y.mean()
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    if lengths:
        return float(x @ y) / lengths
    return 0.0


def _of_coordinates(X: np.ndarray, Y: np.ndarray) -> tuple[str, np.ndarray]:
    """The kind of change from X to Y (n, d), judged row by row, and a mask (n,) of the rows that are of
    another model. If all rows keep their directions, the kind is "same", "rounded" or "rescaled". If only
    some do, it is "mixed". Otherwise it is "", and the mask is False everywhere.
    """
    none = np.zeros(len(X), bool)
    sizes = [np.linalg.norm(rows, axis=1) for rows in (X, Y)]
    if not all(size.all() for size in sizes):
        return "", none
    X = X.astype(np.float64)
    lengths = (sizes[1] / sizes[0])[:, None]
    change = Y / lengths - X
    moved = np.linalg.norm(change, axis=1) / np.sqrt(np.square(X - X.mean(axis=0)).sum(axis=1).mean())
    others = moved > KEPT
    enough = np.count_nonzero(~others) >= max(2, LEAST_KEPT * len(X))
    if others.any() and enough and moved[others].min() >= APART * KEPT:
        few = 2 * np.count_nonzero(others) <= len(X)
        # If most rows have the vectors of others, the rows are in another order.
        if few or _exchanged(X, Y)[others].mean() < 0.5:
            return "mixed", others
    size = float(np.sqrt(np.square(moved).mean()))
    if size > ROUNDED or (size > COMPUTED and not _on_grid(X, change)):
        return "", none
    if np.abs(lengths - 1).max() > max(LENGTHS, size / 3):
        return "rescaled", none
    if (np.abs(Y - X).max(axis=1) <= EXACT * np.abs(X).max(axis=1)).all():
        return "same", none
    return "rounded", none


def _on_grid(X: np.ndarray, change: np.ndarray) -> bool:
    """Whether the changes of the numbers X (n, d) look like rounding, that is, are uniform between − and +
    half of a step. Four kinds of steps are tried: the spacing of floating-point numbers, and a constant step
    for each row, for each dimension, or for all of X.
    """
    squares = np.square(change)
    least = np.finfo(float).tiny
    steps = [
        2.0 ** np.frexp(X)[1],
        *(np.sqrt(squares.mean(axis=axis, keepdims=True)) for axis in (0, 1, None)),
    ]
    for step in steps:
        shares = np.abs(change) / np.maximum(step, least)
        if change.any():
            middle, high = np.quantile(shares[change != 0], (0.5, 0.99))
        else:
            middle = 1
            high = 0
        if high <= ON_GRID * middle:
            return True
    return False
