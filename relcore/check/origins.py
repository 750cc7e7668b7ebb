"""Which of two models made each row of a collection: two Gaussians, conformal p-values, and a bound."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from relcore.base.numbers import percent, short
from relcore.base.rows import Rows, row_blocks, unit_rows
from relcore.engine.engine import Engine
from relcore.passport.two_parts import FITTED, LEAST, ShortAxes, between, halves
from relcore.spaces.matching import row_hashes

FDR = 0.05  # default rate of false discoveries
_CONFIDENCE = 0.95
_SHARES = (0.01, 0.02, 0.05, 0.1, 0.3, 0.5)  # of the rows: sizes of a part from which a search starts
_NU = 5  # degrees of freedom of Student's t
_NARROW = 128  # dimensions of the first steps of a search
_FIRST_STEPS = 3
_STEPS = 20
_SIDE_STEPS = 2
_SEARCHED = 5000  # maximum number of rows of a search
_REFITS = 3
_SETTLED = 1e-3  # share of the rows that change their part; below it, a search ends
_ASHMAN = 3.5  # D of Ashman et al. (1994) from which the rows of a part count as two groups
_SHIFTED = 0.01  # p-value of the Kolmogorov-Smirnov test below which trusted rows count as other texts
# Limits of the gate. Both halves of the dimensions must find the same rows. Besides, the slope must be below
# .25, and below .28 by dimensions that did not find the parts, and the gap of the log ratios at least 3.5. If
# the gap is 15, the latter slope is not looked at, and with trusted rows the slope may be .34: single words
# and long texts by layer 3 of MiniLM have .30 to .44, and pairs of neighbouring layers .24 to .34.
SLOPE = 0.25
TRUSTED_SLOPE = 0.34
HELD_OUT_SLOPE = 0.28
GAP = 3.5
CLEAR_GAP = 15.0
SAME_ROWS = 0.8
# Without trusted rows, parts whose means have a cosine above the first number must have a gap of the second
# one. Topics of one model point the same way, and the gap between topics of words is at most 10.4.
_SAME_WAY = 0.15
TOPICS_GAP = 11.0
_SAME_SLOPE = 0.1  # slopes below it are equally good
EQUAL = 0.45  # share of the smaller part from which parts count as equal
SHIFTED = (
    "The trusted rows are other texts than the rest of the collection, so there are no p-values and no bound."
)
_LIKE_TOPICS = (
    "The model of single rows is unknown: the two likeliest parts differ as topics of one model can, too."
)
TRUSTED, OTHER, UNKNOWN = 0, 1, -1  # values of `RowOrigins.model`


class RowOrigins(NamedTuple):
    """Which of two models made each of n rows.

    Attributes
    ----------
    model : (n,) int8
        0 for the model of the trusted rows (without these: the larger part), 1 for another one, -1 if
        unknown. Empty if the gate refused, for the reason in `refused`.
    log_ratio : (n,) float32
        Log likelihood ratio of the other model to the trusted one, the smaller one of the ratios by the even
        and by the odd dimensions; above 0: the other model.
    p : (n,) float32
        Conformal p-value: the share of held-out trusted rows that are as likely of the other model as this
        row. Empty without trusted rows, and if these are other texts (`shifted`).
    slope, gap : float
        How far the parts share their axes (1: one model, 0: no axis), and the distance of the medians of
        their log ratios in sums of the median absolute deviations.
    wrong, held_out : int
        Number of held-out trusted rows that count as another model's; number of held-out trusted rows.
    missed, held_out_other : int
        The same for trusted rows of the other model.
    bound : float, optional
        With 95 % confidence, at most this share of the rows of `OTHER` is of the trusted model
        (Clopper-Pearson). None without p-values.
    like_topics : bool
        Whether the gate refused because topics of one model can differ as these parts do.
    confirmed : bool
        Whether Benjamini and Hochberg's procedure at the rate `fdr` confirms rows. If False, there are too
        few held-out trusted rows, and the rows are those above the cut.
    """

    model: np.ndarray
    log_ratio: np.ndarray
    p: np.ndarray
    slope: float
    gap: float
    wrong: int
    held_out: int
    missed: int
    held_out_other: int
    bound: float | None
    fdr: float
    confirmed: bool
    shifted: bool
    refused: str = ""
    like_topics: bool = False

    @property
    def found(self) -> int:
        """Number of rows of the other model."""
        return int(np.count_nonzero(self.model == OTHER))

    @property
    def unknown(self) -> int:
        """Number of rows whose model is unknown."""
        return int(np.count_nonzero(self.model == UNKNOWN))

    @property
    def by_trusted(self) -> bool:
        """Whether trusted rows say which of both models is the right one."""
        return self.held_out > 0

    @property
    def either(self) -> bool:
        """Whether the parts are so equal that either may be of the right model, and no trusted rows of like
        texts tell."""
        return (not self.by_trusted or self.shifted) and self.found > EQUAL * len(self.model)

    @property
    def sentence(self) -> str:
        if self.refused:
            return self.refused
        if self.either:
            return (
                f"Two parts, of {self.found:,} and {len(self.model) - self.found:,} rows; whose is unknown."
            )
        text = f"Row by row: {self.found:,} of another model, {self.unknown:,} unknown."
        if self.shifted:
            return f"{text} {SHIFTED}"
        if not self.by_trusted or self.bound is None:
            return f"{text} Without trusted rows there are no p-values."
        text += (
            f" Of {self.held_out:,} held-out trusted rows {self.wrong:,} count as another model's, so at most"
            f" {percent(self.bound)} of the rows found are of the trusted model (95 % confidence)."
        )
        if self.held_out_other:
            text += (
                f" {self.missed:,} of {self.held_out_other:,} held-out rows of the other model are missed."
            )
        if self.confirmed:
            return f"{text} The rate of false discoveries is {short(self.fdr, 2)} (Benjamini and Hochberg)."
        return f"{text} {self.needed:,} trusted rows are needed to confirm a rate of {short(self.fdr, 2)}."

    @property
    def needed(self) -> int:
        """The number of trusted rows with which Benjamini and Hochberg's procedure can confirm these rows."""
        return 2 * int(np.ceil(len(self.model) / (self.fdr * max(1, self.found))))


class _Student(NamedTuple):
    """Student's t distribution in d dimensions, by mean and covariance."""

    mean: np.ndarray
    whitening: np.ndarray
    log_scale: float

    @classmethod
    def of(cls, X: np.ndarray) -> _Student:
        """The distribution of rows X (n, d). The covariance is shrunk as by Chen et al. (2010), OAS."""
        from sklearn.covariance import OAS  # imported here, because it would delay the first page

        mean = X.mean(axis=0, dtype=np.float64).astype(np.float32)
        shrunk = OAS(store_precision=False, assume_centered=True).fit(X - mean)
        covariance = shrunk.covariance_.astype(np.float64)
        covariance[np.diag_indices(len(mean))] += 1e-4 * np.trace(covariance) / len(mean) + 1e-9
        root = np.linalg.cholesky(covariance)
        return cls(mean, np.linalg.inv(root).T.astype(np.float32), float(np.log(root.diagonal()).sum()))

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """The log likelihood (n,) of the rows X (n, d), up to a constant that depends only on d."""
        white = Engine().map_rows(X, self.whitening, mean=self.mean)
        squares = np.vecdot(white, white)
        return -(_NU + X.shape[1]) / 2 * np.log1p(squares / _NU) - np.float32(self.log_scale)


class _Fit(NamedTuple):
    """Both distributions, the cut between them, and what the gate looks at: slope, gap, and the cosine of the
    means of both parts."""

    first: _Student
    second: _Student
    cut: float
    slope: float
    gap: float
    cosine: float

    @property
    def like_topics(self) -> bool:
        """Whether topics of one model can differ as these parts do: they point the same way, and are not
        farther apart than topics are."""
        return self.cosine > _SAME_WAY and self.gap < TOPICS_GAP

    def ratio(self, X: np.ndarray) -> np.ndarray:
        return self.second.log_likelihood(X) - self.first.log_likelihood(X) - np.float32(self.cut)

    def sides(self, X: np.ndarray, trusted: bool) -> _Sides | None:
        """The distributions of the rows X (n, d) of this fit by each half of the dimensions; None if the rows
        are not of two models."""
        limit = SLOPE
        if trusted:
            limit = TRUSTED_SLOPE
        if self.slope >= limit or self.gap < GAP:
            return None
        found = _sides(X, self.ratio(X) > 0)
        if found is None or found.same < SAME_ROWS:
            return None
        if self.gap < CLEAR_GAP and (self.slope >= SLOPE or found.slope >= HELD_OUT_SLOPE):
            return None
        return found


class _Sides(NamedTuple):
    """Both distributions by each half of the dimensions, and two numbers: the slope of the parts on the
    dimensions that did not find them, and the overlap (intersection ÷ union) of the part that half of the
    dimensions finds with the part of the whole fit. Of each number, the less favourable half counts.

    Of one model's rows, those that are large on some axes make parts whose slope is low on these axes alone.
    A part that also has rows of the other model is not found again by half of the dimensions.
    """

    models: tuple[tuple[_Student, _Student], ...]
    slope: float
    same: float

    def ratios(self, X: np.ndarray) -> np.ndarray:
        """The log ratios (n, 2) of unit rows (n, d) by both halves of the dimensions."""
        sides = zip(halves(X), self.models, strict=True)
        logs = [second.log_likelihood(side) - first.log_likelihood(side) for side, (first, second) in sides]
        return np.stack(logs, axis=1)


def _sides(X: np.ndarray, part: np.ndarray) -> _Sides | None:
    """A part of the rows X (n, d), fitted again by each half of the dimensions; None if it vanishes."""
    models = []
    slopes = []
    same = []
    both = halves(X)
    for fitted, compared in (both, both[::-1]):
        now = part
        for _ in range(_SIDE_STEPS):
            if not LEAST <= np.count_nonzero(now) <= len(now) - LEAST:
                return None
            pair = _Student.of(fitted[~now]), _Student.of(fitted[now])
            now = pair[1].log_likelihood(fitted) > pair[0].log_likelihood(fitted)
        if not LEAST <= np.count_nonzero(now) <= len(now) - LEAST:
            return None
        models.append(pair)
        slopes.append(between(compared, now).value)
        same.append(np.count_nonzero(now & part) / np.count_nonzero(now | part))
    return _Sides(tuple(models), max(slopes), min(same))


class _Pool(NamedTuple):
    """Unit rows (m, d) of a fit in random order, two rankings of them (may be empty), and masks (m,) of the
    rows whose model is fixed."""

    rows: np.ndarray
    rankings: tuple[np.ndarray, ...]
    own: np.ndarray
    other: np.ndarray

    def first(self, most: int) -> _Pool:
        rankings = tuple(one[:most] for one in self.rankings)
        return _Pool(self.rows[:most], rankings, self.own[:most], self.other[:most])

    def with_fixed(self, part: np.ndarray) -> np.ndarray:
        """The part (m,), with the fixed rows on their side."""
        return (part & ~self.own) | self.other


def row_origins(
    X: Rows,
    ranks: np.ndarray,
    trusted: np.ndarray | None = None,
    other: np.ndarray | None = None,
    fdr: float = FDR,
    random_state: int = 0,
) -> RowOrigins:
    """Tell which of two models made each row (n, d). `ranks` (n,), if not empty, is a first ranking: the
    higher, the likelier is another model. `trusted` (m, d) has rows of the right model, `other` (k, d) rows
    of the other one.

    Two distributions are fitted by assigning rows and estimating parameters in turn, from several starts.
    Half of the trusted rows are fixed. The other half takes part like rows of the collection, so that the
    p-values are conformal (Vovk et al. 2005).

    Source: our measurement, docs/check.md.
    """
    rng = np.random.default_rng((random_state, 43))
    own_fixed, own_free = _halves(trusted, X.shape[1], rng)
    other_fixed, other_free = _halves(other, X.shape[1], rng)
    pool = _pool(X, ranks, np.concatenate([own_free, other_free]), own_fixed, other_fixed, rng)
    reference = pool.rows
    if trusted is not None:
        reference = np.asarray(trusted)
    axes = ShortAxes.of(reference)
    pool = pool._replace(rankings=(*pool.rankings, axes.energy(pool.rows)))
    fits = _fits(pool)
    fits.sort(key=lambda one: (max(one.slope, _SAME_SLOPE), -one.gap))
    for fit in fits:
        sides = fit.sides(pool.rows, trusted is not None)
        if sides is not None:
            break
    else:
        return _refusal(fits, trusted is not None, fdr)
    if trusted is None and fit.like_topics:
        return _no_answer(fit.slope, fit.gap, fdr, _LIKE_TOPICS)._replace(like_topics=True)
    ratios = np.empty((len(X), 2), np.float32)
    for block in row_blocks(len(X)):
        ratios[block] = sides.ratios(unit_rows(np.asarray(X[block])))
    own_ratios = sides.ratios(own_free).min(axis=1)
    shifted = False
    if trusted is not None:
        shifted = _are_other_texts(sides, pool.rows, own_free)
    return _answer(fit, ratios, own_ratios, sides.ratios(other_free).min(axis=1), shifted, fdr)


def _halves(rows: np.ndarray | None, width: int, rng: np.random.Generator) -> list[np.ndarray]:
    """Two random halves of rows (m, width), scaled to length 1; both empty without rows."""
    if rows is None:
        return [np.empty((0, width), np.float32)] * 2
    units = unit_rows(np.asarray(rows))
    return np.array_split(units[rng.permutation(len(units))], 2)


def _pool(
    X: Rows,
    ranks: np.ndarray,
    free: np.ndarray,
    own: np.ndarray,
    other: np.ndarray,
    rng: np.random.Generator,
) -> _Pool:
    """The distinct rows of a sample of X and the trusted rows `free`, at most `FITTED`, and all rows of the
    fixed `own` and `other`. Only rows of X have ranks; those of others are −∞."""
    drawn = rng.permutation(len(X) + len(free))[:FITTED]
    is_of_X = drawn < len(X)
    sample = np.empty((len(drawn), X.shape[1]), np.float32)
    sample[is_of_X] = unit_rows(np.asarray(X[drawn[is_of_X]]))
    sample[~is_of_X] = free[drawn[~is_of_X] - len(X)]
    distinct = ~row_hashes(sample).duplicated().to_numpy()
    n_distinct = np.count_nonzero(distinct)
    rows = np.concatenate([sample[distinct], own, other])
    order = rng.permutation(len(rows))
    is_other = order >= n_distinct + len(own)
    is_own = (order >= n_distinct) & ~is_other
    rankings: tuple[np.ndarray, ...] = ()
    if len(ranks):
        sample_ranks = np.full(len(drawn), -np.inf, ranks.dtype)
        sample_ranks[is_of_X] = ranks[drawn[is_of_X]]
        ranking = np.full(len(rows), -np.inf, ranks.dtype)
        ranking[:n_distinct] = sample_ranks[distinct]
        rankings = (ranking[order],)
    return _Pool(rows[order], rankings, is_own, is_other)


def _fits(pool: _Pool) -> list[_Fit]:
    """The fits from all starts that end in two parts."""
    searched = pool.first(_SEARCHED)
    narrow = searched._replace(rows=searched.rows[:, :: -(-pool.rows.shape[1] // _NARROW)])
    parts: list[np.ndarray] = []
    for start in _starts(searched):
        part = _assigned(narrow, searched.with_fixed(start), _FIRST_STEPS)
        if part is not None and not any(np.array_equal(part, one) for one in parts):
            parts.append(part)
    ends: list[np.ndarray] = []
    for part in parts:
        end = _assigned(searched, part, _STEPS)
        if end is not None and not any(_alike(end, one) for one in ends):
            ends.append(end)
    return [fit for end in ends if (fit := _fit(pool, end))]


def _starts(pool: _Pool) -> list[np.ndarray]:
    """Masks of the parts from which a search starts: the highest rows of each ranking, and the rows that are
    likelier of the fixed rows of the other model."""
    found = []
    for ranking in pool.rankings:
        places = np.argsort(np.argsort(-ranking, kind="stable"), kind="stable")
        found += [places < round(share * len(places)) for share in _SHARES]
        if (ranking <= 0).any():  # log ratios
            found.append(ranking > 0)
    if min(np.count_nonzero(pool.own), np.count_nonzero(pool.other)) >= 2:
        models = [_Student.of(pool.rows[one]) for one in (pool.own, pool.other)]
        found.append(models[1].log_likelihood(pool.rows) > models[0].log_likelihood(pool.rows))
    return found


def _alike(first: np.ndarray, second: np.ndarray) -> bool:
    return bool(np.mean(first != second) <= _SETTLED)


def _models(pool: _Pool, part: np.ndarray) -> tuple[_Student, _Student] | None:
    """The distributions of both parts; None if one has too few rows."""
    count = np.count_nonzero(part)
    if not LEAST <= count <= len(part) - LEAST:
        return None
    return _Student.of(pool.rows[~part]), _Student.of(pool.rows[part])


def _assigned(pool: _Pool, part: np.ndarray, steps: int) -> np.ndarray | None:
    """The part after some steps, in each of which a row goes where it is likelier; None if it vanishes."""
    for _ in range(steps):
        models = _models(pool, part)
        if models is None:
            return None
        now = pool.with_fixed(models[1].log_likelihood(pool.rows) > models[0].log_likelihood(pool.rows))
        settled = _alike(now, part)
        part = now
        if settled:
            break
    return part


def _fit(pool: _Pool, part: np.ndarray) -> _Fit | None:
    """Fit both models to a part that was found on the first rows. Then repeat: move the rows below the cut
    back to the first model, and fit again, until no row of the second model is below the cut. This moves rows
    that are rare in both models."""
    models = _models(pool.first(len(part)), part)
    fit = None
    for _ in range(1 + _REFITS):
        if models is None:
            break
        ratio = models[1].log_likelihood(pool.rows) - models[0].log_likelihood(pool.rows)
        cut = _cut(ratio[ratio > 0])
        second = ratio > cut
        if not LEAST <= np.count_nonzero(second) <= len(second) - LEAST:
            break
        cosine = _cosine_of_means(pool.rows, second)
        fit = _Fit(*models, cut, between(pool.rows, second).value, _gap(ratio, second), cosine)
        if cut == 0:
            break
        models = _models(pool, pool.with_fixed(second))
    return fit


def _cut(values: np.ndarray) -> float:
    """The threshold of Otsu (1979) between two groups of positive values (n,); 0 if Ashman's D does not show
    two groups."""
    if len(values) < LEAST:
        return 0.0
    values = np.sort(values).astype(np.float64)
    count = np.arange(1, len(values))
    sums = np.cumsum(values)
    difference = sums[:-1] / count - (sums[-1] - sums[:-1]) / count[::-1]
    last = int(np.argmax(count * count[::-1] * difference**2))
    low = values[: last + 1]
    high = values[last + 1 :]
    spread = np.sqrt(low.var() + high.var())
    if np.sqrt(2) * (high.mean() - low.mean()) <= _ASHMAN * spread:
        return 0.0
    return float((low[-1] + high[0]) / 2)


def _gap(ratio: np.ndarray, second: np.ndarray) -> float:
    """The distance of the medians of two parts, in sums of their median absolute deviations."""
    middles = [float(np.median(ratio[part])) for part in (second, ~second)]
    spreads = [
        float(np.median(np.abs(ratio[part] - middle)))
        for part, middle in zip((second, ~second), middles, strict=True)
    ]
    return (middles[0] - middles[1]) / max(sum(spreads), 1e-12)


def _cosine_of_means(X: np.ndarray, second: np.ndarray) -> float:
    means = [X[part].mean(axis=0, dtype=np.float64) for part in (second, ~second)]
    return float(np.vecdot(*unit_rows(np.stack(means))))


def _refusal(fits: list[_Fit], trusted: bool, fdr: float) -> RowOrigins:
    """No answer, with the reason: the fit whose parts share the fewest axes, and the limits."""
    why = "No two parts of 20 rows or more were found."
    slope = gap = np.nan
    if fits:
        best = min(fits, key=lambda one: one.slope)
        slope = best.slope
        gap = best.gap
        limit = SLOPE
        if trusted:
            limit = TRUSTED_SLOPE
        why = (
            "The model of single rows is unknown: the two likeliest parts share their axes, or are too near"
            f" each other. Their slope is {short(slope)} and their gap {short(gap, 1)}. Needed are a slope"
            f" below {short(SLOPE, 2)} (below {short(HELD_OUT_SLOPE, 2)} by dimensions that did not find the"
            f" parts) and a gap of {short(GAP, 1)}, or a slope below {short(limit, 2)} and a gap of"
            f" {short(CLEAR_GAP, 1)}."
        )
    return _no_answer(slope, gap, fdr, why)


def _no_answer(slope: float, gap: float, fdr: float, why: str) -> RowOrigins:
    none = np.empty(0, np.float32)
    empty = np.empty(0, np.int8)
    return RowOrigins(empty, none, none, slope, gap, 0, 0, 0, 0, None, fdr, False, False, why)


def _are_other_texts(sides: _Sides, X: np.ndarray, own: np.ndarray) -> bool:
    """Whether the held-out trusted rows (m, d) are other texts than the rows X (n, d) of the same model: a
    Kolmogorov-Smirnov test of the log ratios, and one of the log likelihoods by that model."""
    from scipy.stats import ks_2samp  # SciPy would delay the first page

    levels = []
    for rows in (X, own):
        ratio = sides.ratios(rows).min(axis=1)
        kept = rows[ratio <= 0]
        likely = sum(
            first.log_likelihood(side) for side, (first, _) in zip(halves(kept), sides.models, strict=True)
        )
        levels.append((ratio[ratio <= 0], likely))
    tests = [ks_2samp(first, second).pvalue for first, second in zip(*levels, strict=True) if len(second)]
    return len(tests) * min(tests, default=1.0) < _SHIFTED


def _answer(
    fit: _Fit, ratios: np.ndarray, own: np.ndarray, other: np.ndarray, shifted: bool, fdr: float
) -> RowOrigins:
    """The answer for rows with these log ratios (n, 2) by both halves of the dimensions, from the smaller
    ratios of held-out trusted rows of both models."""
    from scipy.stats import false_discovery_control  # SciPy would delay the first page

    ratio = ratios.min(axis=1)
    second = ratio > 0
    wrong = int(np.count_nonzero(own > 0))
    missed = int(np.count_nonzero(other <= 0))
    unknown = ~second & (ratios.max(axis=1) > 0)
    p = np.empty(0, np.float32)
    bound = None
    confirmed = False
    if len(own) and not shifted:
        p = conformal_p(ratio, own)
        level = float(p.min())
        confirmed = 1 / (len(own) + 1) <= fdr * second.mean()
        if confirmed:
            found = false_discovery_control(p) <= fdr
            level = float(p[found].max(initial=0))
            unknown |= second & ~found
            second = second & found
        unknown |= ~second & (p <= level)
        bound = false_share(wrong, len(own), int(np.count_nonzero(second)), len(ratio))
    model = np.where(second, OTHER, TRUSTED).astype(np.int8)
    model[unknown] = UNKNOWN
    counts = (wrong, len(own), missed, len(other))
    return RowOrigins(model, ratio, p, fit.slope, fit.gap, *counts, bound, fdr, confirmed, shifted)


def conformal_p(ratio: np.ndarray, held_out: np.ndarray) -> np.ndarray:
    """The p-value (n,) of each log ratio (n,): one more than the number of held-out trusted rows (m,) that
    have this ratio or more, divided by m + 1."""
    above = len(held_out) - np.searchsorted(np.sort(held_out), ratio, side="left")
    return ((1 + above) / (len(held_out) + 1)).astype(np.float32)


def false_share(wrong: int, held_out: int, found: int, n: int) -> float:
    """The largest share of the rows found that can be of the trusted model, with 95 % confidence, if `wrong`
    of the held-out trusted rows count as another model's (Clopper and Pearson 1934)."""
    from scipy.stats import beta

    if wrong == held_out or not found:
        return 1.0
    rate = float(beta.ppf(_CONFIDENCE, wrong + 1, held_out - wrong))
    return min(1.0, rate / (1 - rate) * (n - found) / found)
