"""Passports: texts that are published with their vectors by a model, so that others can check whether they
use the same model, and map other vectors to it. The texts are called anchors.

A passport is a safetensors file that every command can also read as a space (docs/passport.md): `vectors` (n,
d), `gram` (n, n), `ids`, and a card that names the model. With 32 anchors, the check distinguishes rounding,
a rotation, another prompt and another model.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import combinations
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
import pandas as pd
from numpy.typing import ArrayLike

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.numbers import band, counted, short, signed
from relcore.base.records import checked_tensors, damaged_file, file_bytes, read_file
from relcore.base.report import Report, Reported, Table
from relcore.base.rows import Rows, row_blocks, unit_rows
from relcore.base.settings import setting
from relcore.base.writing import write
from relcore.engine.engine import Engine, thin_svd
from relcore.runs.store import silent
from relcore.spaces.space import LatentSpace, RowNumbers, as_space, ids_of, row_hashes, shared_ids

if TYPE_CHECKING:
    from PIL.Image import Image

    from relcore.encoders.sentences import OnnxText
    from relcore.encoders.transformers import PretrainedText

# Test whether a collection holds vectors of two models. The test compares the short axes of the two parts
# that differ most.
#
# Topics, languages and duplicates move the long axes of a space. The axes that a model hardly uses are the
# same for all its texts. So the rows are split by the two Gaussians that fit them best, and the variances
# of both parts are compared along the axes of one part. Within a model, the log variances rise together
# (slope 1). If the two parts have different coordinates, they do not (slope 0). The split uses every other
# dimension, and the comparison uses the remaining ones, because an axis that was used to choose rows is no
# evidence about them.
#
# The rows are shuffled once. Each sample of a part, and the first half of a part, consists of its first
# rows in this order. So equal parts have equal slopes, however they were found.

# limits of `Slope.high`, as measured in benchmarks/check_rates.md
MIXED = 0.25
SUSPECTED = 0.3
LEAST = 20  # minimum number of rows of a part, for reliable variances
FITTED = 20_000  # maximum number of rows of a fit
# maximum number of rows for the choice of starts, and for a Gaussian
_STARTED = 5000
_FROM = 4000
_LONG = 30  # number of the longest axes, by which rows are grouped
# numbers of halvings, of starts kept per kind, of steps per start
_GROUPINGS = 3
_KEPT = 3
_STEPS = 12
_SHARES = (0.005, 0.01, 0.02, 0.05, 0.1, 0.25)  # shares of the rows that a start puts into one part
_SETTLED = 1e-3  # share of the rows that change their part; below it, a search ends
_SHORTEST = 0.01  # minimum variance of an axis, as a share of the median variance; unused dimensions have 0
_SHRUNK = 0.02  # minimum mean square along an axis of few rows, as a share of the mean over all axes
# of each part, the share of the rows that lie nearest to the other part, and that lie farthest from it; the
# difference of their slopes from which parts pass into each other, as a number and in standard errors
_ENDS = 0.35
_GRADED = 0.05
_GRADED_ERRORS = 0.8
_MANY = 10  # number of rows per dimension from which mean squares need no minimum


class Slope(NamedTuple):
    """The similarity of the axes along which two sets of rows vary: about 1 if both are of one model, 0 if
    they share no coordinates (see `shared_axes`). `high` is the upper end of the 95 % interval; `axes` is the
    number of axes.
    """

    value: float
    high: float
    axes: int


class TwoParts(NamedTuple):
    """The division of a collection into the two parts whose axes differ most.

    Attributes
    ----------
    slope : Slope
    log_ratio : (n,) float32
        Log likelihood ratio of the smaller to the larger part; rows above 0 count as the smaller part.
    fitted : int
        Number of rows that were used to find the parts.
    uneven : bool
        Whether the variances of the larger part along its short axes differ. If they are equal, the axes are
        arbitrary (any rotation of them is as good), so they identify no model.
    graded : bool
        Whether the parts pass into each other (see `_pass_into_each_other`), as topics of one model do.
    """

    slope: Slope
    log_ratio: np.ndarray
    fitted: int
    uneven: bool = True
    graded: bool = False


class ShortAxes(NamedTuple):
    """The short axes (d, c) of a model, along which its vectors hardly vary, and the mean squares (c,) of its
    rows along them. They are the eigenvectors with the smallest eigenvalues of the second moment of unit
    rows, and are nearly the same for all texts.
    """

    axes: np.ndarray
    squares: np.ndarray

    @classmethod
    def of(cls, *samples: np.ndarray, most: int | None = None) -> ShortAxes:
        """The short axes of samples of rows (n, d): half of all axes, but at most `most`. The samples, such
        as texts of several domains, have equal weights.
        """
        moments = [units.T @ units / len(units) for units in map(unit_rows, map(np.asarray, samples))]
        values, axes = Engine().eigh(np.mean(moments, axis=0))
        count = min(most or len(values), len(values) // 2)
        floor = 1e-9
        if sum(map(len, samples)) < _MANY * len(values):
            floor = _SHRUNK * values.mean()
        return cls(axes[:, :count].astype(np.float32), np.maximum(values[:count], floor).astype(np.float32))

    def energy(self, X: Rows) -> np.ndarray:
        """The mean square of each unit row (n, d) along the axes, divided by that of the sample, an array
        (n,) float32."""
        return np.square(Engine().map_rows(X, self.axes / np.sqrt(self.squares), unit=True)).mean(axis=1)

    def distance(self, X: Rows) -> float:
        """The distance of rows (n, d) from the model: the mean, over the axes, of log(mean square ÷ mean
        square of the model). It is 0 for the model's own rows."""
        squares = np.square(Engine().map_rows(X, self.axes, unit=True)).mean(axis=0, dtype=np.float64)
        return float(np.log(np.maximum(squares, 1e-12) / self.squares).mean())


class _Gaussian(NamedTuple):
    mean: np.ndarray
    whitening: np.ndarray
    log_scale: float

    @classmethod
    def of(cls, X: np.ndarray) -> _Gaussian:
        """The Gaussian of the first 4,000 rows of X (n, d). Its covariance is shrunk towards a multiple of
        the identity.
        """
        X = X[:_FROM]
        (n, d) = X.shape
        (mean, covariance) = _covariance(X)
        shrinking = max(0.02, d / (d + 2 * n))
        covariance = (1 - shrinking) * covariance
        covariance[np.diag_indices(d)] += shrinking * np.trace(covariance) / d / (1 - shrinking) + 1e-9
        root = np.linalg.cholesky(covariance)
        return cls(mean, np.linalg.inv(root).T.astype(np.float32), float(np.log(root.diagonal()).sum()))

    def log_likelihood(self, X: np.ndarray) -> np.ndarray:
        """The log likelihood (n,) of the rows X (n, d), up to a constant that depends only on d."""
        white = Engine().map_rows(X, self.whitening, mean=self.mean.astype(np.float32))
        return -0.5 * np.vecdot(white, white) - np.float32(self.log_scale)


def _log_odds(X: np.ndarray, second: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
    """Fit a Gaussian to each of two parts of X; `second` (n,) is True for rows of the second part. Returns a
    function that gives, for new rows (m, d), the log odds (m,) of the second part.
    """
    share = second.mean()
    models = _Gaussian.of(X[second]), _Gaussian.of(X[~second])
    odds = np.float32(np.log(share / (1 - share)))
    return lambda rows: models[0].log_likelihood(rows) - models[1].log_likelihood(rows) + odds


def _covariance(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    moments = Engine().moments(X)
    return moments.means[0], moments.products / max(1, moments.n - 1)


def halves(X: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The even and the odd dimensions of unit rows (n, d). Parts that are found in one half of the dimensions
    can be tested in the other half.
    """
    units = unit_rows(np.asarray(X))
    return np.ascontiguousarray(units[:, ::2]), np.ascontiguousarray(units[:, 1::2])


def shared_axes(A: np.ndarray, B: np.ndarray) -> Slope:
    """Test whether the rows A (n, d) and B (m, d) vary along the same axes. For each principal axis of A, the
    log variances of A and of B along it are one point; the result is the slope of a linear regression. It is
    about 1 for the same axes and 0 for unrelated ones. The axes come from one half of A, the variances of A
    from the other.
    """
    half = len(A) // 2
    _, axes = Engine().eigh(_covariance(A[:half])[1])
    variances = [Engine().map_rows(rows, axes).var(axis=0, dtype=np.float64) for rows in (A[half:], B)]
    a, b = (np.log(np.maximum(one, max(_SHORTEST * np.median(one), 1e-12))) for one in variances)
    x = a - a.mean()
    y = b - b.mean()
    k = len(a)
    slope = float(x @ y / max(x @ x, 1e-12))
    error = float(np.sqrt(np.square(y - slope * x).sum() / max(1, k - 2) / max(x @ x, 1e-12)))
    return Slope(slope, slope + 1.96 * error, k)


def between(X: np.ndarray, second: np.ndarray) -> Slope:
    """The slope `shared_axes` between two parts of the rows X (n, d), by the axes of the larger part. If the
    smaller part has enough rows, the slope by its axes is computed as well, and the higher slope is returned.
    `second` (n,) is True for rows of the second part.
    """
    A = X[~second]
    B = X[second]
    A, B = (A, B) if len(A) >= len(B) else (B, A)
    slope = shared_axes(A, B)
    if len(B) >= 2 * X.shape[1]:
        return max(slope, shared_axes(B, A))
    return slope


def parts_of(X: Rows, random_state: int = 0, unlike: np.ndarray | None = None) -> TwoParts:
    """Divide rows (n, d), n ≥ 2 × `LEAST`, into the two parts whose axes differ most. If `unlike` (n,), the
    difference of each row from a trusted sample, is given, the rows that differ most are tried as a part,
    too.
    """
    n = len(X)
    some = np.random.default_rng((random_state, 40)).permutation(n)[:FITTED]
    rows = np.asarray(X[some])
    # Equal rows have no variance along any axis, and neither have rows with the same number in all
    # dimensions.
    distinct = ~(row_hashes(rows).duplicated().to_numpy() | (rows == rows[:, :1]).all(axis=1))
    some = some[distinct]
    even, odd = halves(rows[distinct])
    starts = [*_starts(even), *([_highest(unlike[some])] if unlike is not None else [])]
    kept = [
        start for kind in starts for start in sorted(kind, key=lambda one: between(odd, one).high)[:_KEPT]
    ]
    if not kept:
        return TwoParts(Slope(1.0, 1.0, odd.shape[1]), np.full(n, -np.inf, np.float32), len(some))
    best, second = _least_shared_parts(even, odd, kept)
    # Repeat with odd and even dimensions exchanged; the higher slope counts.
    other, again = _least_shared_parts(odd, even, [second])
    best = max(best, other, key=lambda one: one.high)
    models = _log_odds(even, second), _log_odds(odd, again)
    ratio = np.empty(n, np.float32)
    for block in row_blocks(n):
        sides = halves(X[block])
        ratio[block] = sum(model(side) for model, side in zip(models, sides, strict=True))
    if 2 * np.count_nonzero(second) > len(second):
        larger = odd[second]
    else:
        larger = odd[~second]
    if not (np.mean(ratio > 0) <= 0.5):
        ratio = -ratio
    graded = best.high < SUSPECTED and _pass_into_each_other([(even, odd, second), (odd, even, again)])
    return TwoParts(best, ratio, len(some), _are_uneven(larger), graded)


def _pass_into_each_other(sides: Sequence[tuple[np.ndarray, np.ndarray, np.ndarray]]) -> bool:
    """Whether two parts share more axes where they meet than where they are farthest apart. Topics of one
    model do, also those of frequent words, whose parts as wholes share hardly any axis. Parts of two models
    do not.

    Each side has dimensions that order the rows from one part to the other, dimensions that are compared, and
    a mask of the second part. It is False where a part has too few rows to tell.
    """
    changes = []
    for ordering, compared, second in sides:
        parts = [np.flatnonzero(second), np.flatnonzero(~second)]
        first_end, second_end = (ordering[rows].mean(axis=0) for rows in parts)
        place = ordering @ (first_end - second_end)
        counts = [round(_ENDS * len(rows)) for rows in parts]
        if min(counts) < compared.shape[1]:
            return False
        near = []
        far = []
        for rows, count, sign in zip(parts, counts, (1, -1), strict=True):
            order = rows[np.argsort(sign * place[rows], kind="stable")]
            # in the order of the rows, since halves of a sample must be alike
            near.append(compared[np.sort(order[:count])])
            far.append(compared[np.sort(order[-count:])])
        for one, other in ((0, 1), (1, 0)):
            slopes = [shared_axes(ends[one], ends[other]) for ends in (near, far)]
            variance = sum(((slope.high - slope.value) / 1.96) ** 2 for slope in slopes)
            changes.append((slopes[0].value - slopes[1].value, variance))
    change, variance = np.mean(changes, axis=0)
    return bool(change > max(_GRADED, _GRADED_ERRORS * np.sqrt(variance)))


def _are_uneven(X: np.ndarray) -> bool:
    """Whether the variances along the short axes differ: a χ² test at the 1 % level. The axes come from one
    half of the rows, the variances from the other half.
    """
    from scipy.special import chdtri  # imported here, because SciPy would delay the first page

    first, rest = np.array_split(X, 2)
    axes = Engine().eigh(_covariance(first)[1])[1][:, : X.shape[1] // 2]
    squares = np.square(Engine().map_rows(rest - rest.mean(axis=0), axes), dtype=np.float64)
    means = np.maximum(squares.mean(axis=0), 1e-12)
    logs = np.log(means)
    errors = squares.var(axis=0) / means**2 / len(rest)
    return bool(np.square(logs - logs.mean()).sum() > chdtri(len(logs), 0.01) * errors.mean())


def _starts(X: np.ndarray) -> tuple[list[np.ndarray], list[np.ndarray]]:
    """Two lists of masks (n,) of a part, from which a search for parts starts. In the first list, a part has
    the rows that are likelier in one of two `_groups` than in the other. In the second list, it has the rows
    with the largest squares along the short axes.
    """
    n = len(X)
    some = X[:_STARTED]
    models = [_Gaussian.of(some[rows]) for rows in _groups(some, np.arange(len(some)), _GROUPINGS)]
    likely = [model.log_likelihood(X) for model in models]
    parts = (second > first for first, second in combinations(likely, 2))
    mean, covariance = _covariance(some)
    values, axes = Engine().eigh(covariance)
    short = slice(0, 3 * X.shape[1] // 4)
    weights = axes[:, short] / np.sqrt(np.maximum(values[short], _SHORTEST * np.median(values)))
    places = Engine().map_rows(X, weights, mean=mean.astype(np.float32))
    fit = [part for part in parts if LEAST <= np.count_nonzero(part) <= n - LEAST]
    return fit, _highest(np.vecdot(places, places))


def _highest(values: np.ndarray) -> list[np.ndarray]:
    ranks = np.argsort(np.argsort(-values))
    return [ranks < size for share in _SHARES if (size := round(share * len(values))) >= LEAST]


def _groups(X: np.ndarray, rows: np.ndarray, levels: int) -> list[np.ndarray]:
    """Groups of rows, made by repeated 2-means on the longest axes of each group."""
    if not levels or len(rows) < 6 * LEAST:
        return [rows]
    part = X[rows]
    mean, covariance = _covariance(part)
    places = Engine().map_rows(part, Engine().eigh(covariance)[1][:, -_LONG:], mean=mean.astype(np.float32))
    side = places[:, -1] > np.median(places[:, -1])
    for _ in range(15):
        if not 3 * LEAST <= np.count_nonzero(side) <= len(rows) - 3 * LEAST:
            return [rows]
        first = places[side].mean(axis=0)
        second = places[~side].mean(axis=0)
        now = places @ (first - second) > (first @ first - second @ second) / 2
        if np.array_equal(now, side):
            break
        side = now
    return [*_groups(X, rows[side], levels - 1), *_groups(X, rows[~side], levels - 1)]


def _least_shared_parts(
    X: np.ndarray, other: np.ndarray, starts: list[np.ndarray]
) -> tuple[Slope, np.ndarray]:
    """Search from these starts for the two parts of the rows with the lowest slope. Returns the slope and a
    mask (n,) of the second part. In each step, every row moves to the part in which it is likelier, by the
    dimensions X; the slope is measured on the `other` dimensions. A search ends when few rows move.
    """
    found = []
    for start in starts:
        part = start
        lowest = np.inf
        for _ in range(_STEPS):
            found.append((slope := between(other, part), part))
            lowest = min(lowest, slope.high)
            if slope.high > lowest + 0.05:  # further steps only raise the slope
                break
            now = _log_odds(X, part)(X) > 0
            changed = np.count_nonzero(now != part)
            if not LEAST <= np.count_nonzero(now) <= len(X) - LEAST or changed <= _SETTLED * len(X):
                break
            part = now
    # The step with the lowest slope counts, because in later steps a small part also takes rows that are rare
    # in both models.
    return min(found, key=lambda one: one[0].high)


# Layout 2 contains a fingerprint, layout 1 does not.
KEY = "relscope.passport"
SUFFIX = ".safetensors"
LAYOUT = 2
# number of axes of a fingerprint; minimum number of domains
FINGERPRINT = 48
DOMAINS = 3
# numbers of anchors: minimum, enough for every verdict, maximum
FEWEST = 8
ENOUGH = 32
MOST = 4096
ANCHORS = Path(__file__).parents[1] / "data" / "anchors" / "anchors.txt"


@dataclass(frozen=True)
class PassportCard:
    """The owner's description of the model that made the vectors; fields are "" if unknown."""

    model: str = setting("", metavar="NAME", help="The model that makes the vectors.")
    revision: str = setting("", metavar="NAME", help="The model's revision, or its date at a provider.")
    prompt: str = setting("", metavar="TEXT", verbatim=True, help="The text that is put before each text.")
    pooling: str = setting("", metavar="NAME", help="How the vectors of a text's tokens become one row.")
    normalisation: str = setting("", metavar="NAME", help="How the rows are normalised afterwards.")


@dataclass(frozen=True)
class _Header:
    layout: int
    card: PassportCard
    dtype: str
    anchors_digest: str
    vectors_digest: str
    checksum: str = ""


@dataclass(frozen=True, eq=False)
class Passport:
    """The ids of n anchors (usually the texts themselves), their `vectors` (n, d) float32, and the owner's
    description of the model.

    The `fingerprint`, if there is one, has the 48 axes along which the model's vectors vary least, measured
    on texts of at least three domains. `relcore.check` uses it to name the model of a collection.

    Examples
    --------
    >>> import numpy as np
    >>> from relcore import LatentSpace, Passport
    >>> X = np.random.default_rng(0).normal(size=(40, 8)).astype(np.float32)
    >>> passport = Passport.of(LatentSpace(X, [f"text {row}" for row in range(40)]))
    >>> passport.check(X).kind
    'same'
    """

    ids: tuple[str, ...]
    vectors: np.ndarray
    card: PassportCard = PassportCard()
    fingerprint: ShortAxes | None = None

    def __post_init__(self) -> None:
        n = len(self.vectors)
        if not FEWEST <= n <= MOST:
            raise SpaceError(
                f"a passport: expected {FEWEST} to {MOST:,} anchors, got {n:,}; choose another number"
            )
        if any("\n" in text or "\r" in text for text in self.ids):
            raise SpaceError("a passport: expected anchors without line breaks, got one with some; mend it")

    @classmethod
    def of(cls, space: LatentSpace, card: PassportCard | None = None) -> Passport:
        """A passport of all rows of a space. Raises a SpaceError for too few or too many rows, and for
        zero vectors."""
        space = as_space(space)
        if (zero := np.flatnonzero(space.norms == 0)).size:
            raise SpaceError(
                f"a passport: expected anchors that the model knows, got zero vectors of"
                f" {quote(space.ids[zero[:3]])}; leave them out"
            )
        vectors = np.ascontiguousarray(space.vectors, np.float32)
        return cls(tuple(space.ids), vectors, card or PassportCard(space.name))

    @cached_property
    def gram(self) -> np.ndarray:
        """The cosines between the anchors, (n, n) float32; no rotation or scale changes them."""
        units = unit_rows(self.vectors).astype(np.float64)
        return (units @ units.T).astype(np.float32)

    @property
    def space(self) -> LatentSpace:
        return LatentSpace(self.vectors, self.ids, name=self.card.model or "passport")

    def with_fingerprint(self, domains: Sequence[np.ndarray]) -> Passport:
        """This passport with a fingerprint of the model. `domains` has rows (n, d) for each of at least three
        domains.
        """
        if len(domains) < DOMAINS or {rows.shape[1] for rows in domains} != {self.vectors.shape[1]}:
            got = ", ".join(f"{len(rows):,} × {rows.shape[1]}" for rows in domains) or "none"
            raise SpaceError(
                f"fingerprint: expected vectors of {DOMAINS} domains or more, as wide as the anchors, got"
                f" {got}; embed other texts with the same model, too"
            )
        return replace(self, fingerprint=ShortAxes.of(*domains, most=FINGERPRINT))

    def to_bytes(self) -> bytes:
        anchors = "\n".join(self.ids).encode()
        vectors = np.ascontiguousarray(self.vectors, "<f4")
        tensors = {"vectors": vectors, "gram": self.gram, "ids": np.frombuffer(anchors, np.uint8)}
        digests = hashlib.sha256(anchors).hexdigest(), hashlib.sha256(vectors).hexdigest()
        if self.fingerprint is not None:
            tensors |= {name: np.ascontiguousarray(part) for name, part in self.fingerprint._asdict().items()}
        # earlier versions read only layout 1
        layout = 1
        if self.fingerprint is not None:
            layout = LAYOUT
        exact = held_by(vectors).items()
        dtype = next((name for name, rows in exact if rows.all()), "float32")
        return file_bytes(tensors, KEY, _Header(layout, self.card, dtype, *digests))

    def check(self, new: LatentSpace | np.ndarray, random_state: int = 0) -> Change:
        return check(self, new, random_state)

    def save(self, path: str | Path) -> None:
        path = Path(path)
        if path.suffix.lower() != SUFFIX:
            raise SpaceError(f"{path.name}: expected a file that ends in {SUFFIX}, got another; rename it")
        write(path, self.to_bytes())

    @classmethod
    def load(cls, path: str | Path) -> Passport:
        """Read a passport. Raises a SpaceError for a file that is no passport, is damaged, or has a later
        layout."""
        path = expand_home(path)
        header, tensors = checked_tensors(path, KEY, _Header, LAYOUT, "a passport")
        kinds = {name: (tensor.dtype.kind, tensor.ndim) for name, tensor in tensors.items()}
        plain = {"vectors": ("f", 2), "gram": ("f", 2), "ids": ("u", 1)}
        if kinds not in (plain, plain | {"axes": ("f", 2), "squares": ("f", 1)}):
            raise damaged_file(path.name, "the tensors vectors, gram and ids", quote(sorted(kinds)) or "none")
        vectors = tensors["vectors"]
        anchors = tensors["ids"].tobytes()
        digests = hashlib.sha256(anchors).hexdigest(), hashlib.sha256(vectors).hexdigest()
        if digests != (header.anchors_digest, header.vectors_digest):
            raise damaged_file(path.name, "anchors and vectors that match its digests", "others")
        try:
            ids = tuple(anchors.decode().split("\n"))
        except UnicodeDecodeError:
            raise damaged_file(path.name, "anchors in UTF-8", "other bytes") from None
        n, d = vectors.shape
        if len(ids) != n or tensors["gram"].shape != (n, n) or not d:
            raise damaged_file(path.name, f"{n:,} anchors and a Gram matrix of them", f"{len(ids):,} ids")
        passport = cls.of(LatentSpace(vectors, ids, name=path.name), header.card)
        if "axes" not in tensors:
            return passport
        fingerprint = ShortAxes(tensors["axes"], tensors["squares"])
        sound = fingerprint.axes.shape == (d, len(fingerprint.squares)) and len(fingerprint.squares) > 0
        if not sound or not (np.isfinite(fingerprint.axes).all() and (fingerprint.squares > 0).all()):
            raise damaged_file(path.name, f"a fingerprint of axes with {d:,} numbers", "another one")
        return replace(passport, fingerprint=fingerprint)


def picture_anchors(images: Iterable[Image]) -> list[str]:
    """Ids for pictures that are used as anchors: ``sha256:``, then a digest of the width and height (32 bits
    each, little-endian) and the pixels as 8-bit RGB, row by row. So a picture has the same id in any lossless
    format.
    """
    anchors = []
    for image in images:
        rgb = image.convert("RGB")
        content = np.array(rgb.size, "<u4").tobytes() + rgb.tobytes()
        anchors.append(f"sha256:{hashlib.sha256(content).hexdigest()}")
    return anchors


def held_by(X: np.ndarray) -> dict[str, np.ndarray]:
    """For each of the formats float16 and bfloat16, which rows of the float32 array X (n, d) it represents
    exactly: masks (n,) by format.
    """
    with np.errstate(over="ignore"):
        half = (X.astype(np.float16).astype(np.float32) == X).all(axis=1)
    return {"float16": half, "bfloat16": ~(np.ascontiguousarray(X).view(np.uint32) & 0xFFFF).any(axis=1)}


# The check of a passport: how new vectors of its anchors differ from its own vectors.

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
UNCHANGED = ("same", "rounded", "rescaled")  # changes that hardly affect search by cosine
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


@dataclass(frozen=True)
class Change(Reported):
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
        return (
            f"{100 * n / self.n:.0f} % of the anchors {what} ({n:,} of {self.n:,};"
            f" 95 %: {100 * low:.0f} … {100 * high:.0f} %): {quote(self.others[:5])}{', …' * (n > 5)}."
        )

    @property
    def sentence(self) -> str:
        made = ""
        if self.named:
            made = f", made by {self.named}"
        told = f"{self.kind[:1].upper()}{self.kind[1:]}: {CHANGES[self.kind]}{made}."
        advice = ADVICE[self.kind]
        if self.others and self.exchanged == self.others:
            advice = "Give these vectors to the right ids again."
        return " ".join(filter(None, (told, self.others_in_words, advice)))

    def report(self, **facts: Any) -> Report:
        row = {"change": self.kind, "n": self.n, "missing": self.missing, "recipe": self.named}
        for name, one in (("cosine", self.cosine), ("gram", self.gram)):
            if one:
                values = one._asdict()
            else:
                values = dict.fromkeys(Evidence._fields)
            row |= {name if part == "value" else f"{name} {part}": value for part, value in values.items()}
        row |= {"centred cosine": self.centred, "gram apart": self.gram_apart, "scale": self.scale}
        named = {"cosine of old and new": self.cosine, "cosines between anchors (correlation)": self.gram}
        shown = [
            ["evidence", "value", "95 %", "chance"],
            *(
                [name, short(one.value), band(one.low, one.high), signed(one.chance)]
                for name, one in named.items()
                if one
            ),
            ["largest change between two anchors", short(self.gram_apart), "", ""],
            ["length, new ÷ old", short(self.scale), "", ""],
        ]
        if self.centred is not None:
            limit = f"cosine after centring (same model: from {short(SAME_MODEL, 2)})"
            shown.insert(-2, [limit, short(self.centred), "", ""])
        caption = f"{counted(self.n, 'anchor')}; chance: the highest value of randomly paired anchors"
        if self.cosine is None:
            caption += f"; the width was {self.widths[0]:,} and is {self.widths[1]:,}"
        elif self.widths[0] != self.widths[1]:
            caption += f"; cosine on the first {min(self.widths):,} of {max(self.widths):,} dimensions"
        if self.n_similar and self.n_similar < self.n:
            caption += "; chance, intervals and all that compares two anchors: a sample of"
            caption += f" {self.n_similar:,} of them"
        table = Table("checks", pd.DataFrame([row]), shown, caption=f"{caption}.")
        return Report(
            self.sentence, [table], facts | {"others": self.others}, [self.caution] * bool(self.caution)
        )

    @property
    def caution(self) -> str:
        lacks = f"{counted(self.missing, 'anchor')} of the passport were not found; " * bool(self.missing)
        few = f"with fewer than {ENOUGH} anchors a much changed recipe may look like another model; " * (
            self.n < ENOUGH
        )
        if lacks or few:
            return f"Compared on {counted(self.n, 'anchor')}: {lacks}{few}"[:-2] + "."
        return ""


def check(passport: Passport, new: LatentSpace | np.ndarray, random_state: int = 0) -> Change:
    """Compare new vectors of a passport's anchors with the vectors in the passport, and name the kind of
    change. `new` is an array (n, e) in the passport's order, or a space with the ids of the anchors.

    Raises
    ------
    SpaceError
        A space with fewer than `FEWEST` of the anchors; an array whose number of rows is not the number of
        anchors.
    """
    ids, X, Y = paired_anchors(passport, new)
    rng = np.random.default_rng((random_state, 8))
    widths = (X.shape[1], Y.shape[1])
    n_anchors = len(X)
    lengths = np.linalg.norm(Y, axis=1) / np.linalg.norm(X, axis=1)
    shared = common_dimensions(X, Y)
    (kind, others) = _of_coordinates(*shared)
    kind = _of_widths(kind, X, Y)
    exchanged = others & _exchanged(*shared)
    # All rows are compared one by one. Similarities of all pairs would take minutes for 4,000 anchors.
    if n_anchors > SAMPLED:
        sample = np.sort(rng.choice(n_anchors, SAMPLED, replace=False))
        (X, Y) = (X[sample], Y[sample])
        shared = (shared[0][sample], shared[1][sample])
    n = len(X)
    old, now = (units @ units.T for units in (unit_rows(rows).astype(np.float64) for rows in (X, Y)))
    apart = np.triu_indices(n, 1)
    orders = rng.permuted(np.tile(np.arange(n), (DRAWS, 1)), axis=1)
    samples = rng.integers(n, size=(DRAWS, n))
    of_gram = correlation(old[apart], now[apart])
    by_chance = [correlation(old[apart], now[np.ix_(one, one)][apart]) for one in orders[:FEW_DRAWS]]
    gram = _evidence(of_gram, [_of_sample(old, now, one) for one in samples[:FEW_DRAWS]], by_chance)
    cosine = None
    if kind or widths[0] == widths[1]:
        X, Y = shared
        between = unit_rows(X).astype(np.float64) @ unit_rows(Y).astype(np.float64).T
        own = between.diagonal()
        chance = between[np.arange(n), orders].mean(axis=1)
        cosine = _evidence(float(own.mean()), own[samples].mean(axis=1), chance)
    most = float(np.abs(old - now).max())
    agree = not kind and cosine is not None and _agrees(X, Y, orders)
    alike = gram.value >= SAME_GRAM and most <= GRAM_APART
    if not kind and alike and not (agree and most > EXACT_GRAM):
        kind = "rotated"
    centred = None
    if cosine is not None:
        centred = float(np.vecdot(*(unit_rows(rows, rows.mean(axis=0)) for rows in (X, Y))).mean())
    if not kind and not agree:
        kind = "other model"
    elif not kind and centred is not None and centred < SAME_MODEL:
        kind = "related model"
    kind = kind or "changed recipe"
    scale = float(np.median(lengths))
    return Change(
        kind,
        n_anchors,
        widths,
        cosine,
        gram,
        most,
        scale,
        len(passport.ids) - n_anchors,
        others=tuple(ids[row] for row in np.flatnonzero(others)),
        exchanged=tuple(ids[row] for row in np.flatnonzero(exchanged)),
        centred=centred,
        n_similar=n,
    )


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


def _agrees(X: np.ndarray, Y: np.ndarray, orders: np.ndarray) -> bool:
    """Whether X and Y (n, d) have common coordinates, by a permutation test of the mean inner product of
    paired rows, at the level `LEAST_P`. Rows are whitened first. Otherwise the test would depend on the few
    directions that hold most of a layer's variance, and these differ between layers.
    """
    sides = []
    for units in (unit_rows(rows).astype(np.float64) for rows in (X, Y)):
        left, values, right = thin_svd(units - units.mean(axis=0))
        sides.append((left * (values > LEAST_VALUE * values[0])) @ right)
    between = sides[0] @ sides[1].T
    chance = between[np.arange(len(X)), orders].mean(axis=1)
    return bool((1 + np.count_nonzero(chance >= between.diagonal().mean())) / (1 + len(orders)) <= LEAST_P)


def _evidence(value: float, samples: ArrayLike, chance: ArrayLike) -> Evidence:
    low, high = np.quantile(samples, (0.025, 0.975))
    return Evidence(value, float(low), float(high), float(np.max(chance)))


def _of_sample(old: np.ndarray, now: np.ndarray, rows: np.ndarray) -> float:
    """The correlation of the old and the new cosines (n, n) between the rows of a bootstrap sample. Pairs of
    a row with itself are left out.
    """
    first, second = (rows[side] for side in np.triu_indices(len(rows), 1))
    places = first[first != second], second[first != second]
    return correlation(old[places], now[places])


def correlation(x: np.ndarray, y: np.ndarray) -> float:
    """The Pearson correlation of two arrays (m,), −1 … 1; 0 if one of them is constant."""
    x = x - x.mean()
    y = y - y.mean()
    lengths = float(np.linalg.norm(x) * np.linalg.norm(y))
    if lengths:
        return float(x @ y) / lengths
    return 0.0


def paired_anchors(
    passport: Passport, new: LatentSpace | np.ndarray
) -> tuple[tuple[str, ...], np.ndarray, np.ndarray]:
    """The ids of the m anchors that `new` has, their vectors in the passport (m, d), and their vectors in
    `new` (m, e). Raises the same errors as `check`."""
    new = as_space(new)
    by_order = isinstance(ids_of(new), RowNumbers)
    if by_order and len(new) == len(passport.ids):
        new = LatentSpace(new.vectors, passport.ids, name=new.name)
    shared = shared_ids((passport.space, new))
    if len(shared) < FEWEST:
        if by_order:
            got = f"{len(new):,} rows without ids"
        else:
            got = f"{len(shared)} of their ids"
        raise SpaceError(
            f"{new.name!r}: expected all {len(passport.ids):,} anchors in the passport's order, or at least"
            f" {FEWEST} of them by id, got {got}; embed the anchors again, or name their ids"
        )
    X, Y = (np.asarray(space.vectors[space.rows(shared)]) for space in (passport.space, new))
    if not np.linalg.norm(Y, axis=1).all():
        raise SpaceError(f"{new.name!r}: expected vectors of the anchors, got zero vectors; embed them again")
    return tuple(shared), X, Y


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
    return "same" if (np.abs(Y - X).max(axis=1) <= EXACT * np.abs(X).max(axis=1)).all() else "rounded", none


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


# The recipe of vectors: if their model is available, try the likely prompts, poolings and layers.

PROMPTS = (
    "",
    "query: ",
    "passage: ",
    "search_query: ",
    "search_document: ",
    "Represent this sentence for searching relevant passages: ",
)
POOLINGS = ("mean", "cls")
NAMED = 0.999  # minimum mean cosine between vectors and those that their recipe gives


def encode_texts(
    encoder: PretrainedText | OnnxText, texts: Sequence[str], *prompts: str
) -> dict[str, np.ndarray]:
    """Encode texts by several recipes: with each prompt, which is put before each text, and by each layer of
    the encoder. Returns vectors (n, d) by the name of the recipe (“prompt, pooling, output”).
    """
    from relcore.encoders.encoder import Dataset

    items = list(texts)
    numbers = list(map(str, range(len(items))))
    dataset = Dataset(lambda start, stop: items[start:stop], numbers, name="anchors", kind="texts")
    encode = encoder.prepare(dataset, silent)
    return {
        ", ".join(filter(None, [f"the prompt {prompt!r}", f"pooling {encoder.pooling}", output])): rows
        for prompt in prompts
        for output, rows in encode([f"{prompt}{text}" for text in items]).items()
    }


def model_at_hand(name: str, last: bool = False) -> PretrainedText | OnnxText:
    """Load the text encoder that outputs all layers of a model, or only its `last` one. The name is "minilm",
    the path of a transformers folder, "onnx" for the bundled graph, which has one output, or "onnx:FOLDER".
    """
    from relcore.encoders.sentences import OnnxText
    from relcore.encoders.transformers import PretrainedText, minilm_folder, model_folder

    kind, _, graph = name.partition(":")
    if kind in ("onnx", "onnx-text"):
        if graph:
            return OnnxText(graph)
        return OnnxText()
    if name == "minilm":
        folder = minilm_folder()
    else:
        folder = model_folder(name)
    n_layers = read_file(Path(folder) / "config.json", "a model").get("num_hidden_layers", 0)
    if n_layers:
        layers = range(n_layers + 1)
    else:
        layers = (-1,)
    return PretrainedText(str(folder), tuple(layers[-1:] if last else layers))


def name_recipe(
    encoder: PretrainedText | OnnxText,
    texts: Sequence[str],
    new: np.ndarray,
    prompts: Sequence[str] = PROMPTS,
) -> str:
    """The recipe (prompt, pooling and layer) with which this model encodes the texts as the vectors `new` (n,
    e); "" if there is none."""
    return fitting(recipes_of(encoder, texts, prompts), new)


def recipes_of(
    encoder: PretrainedText | OnnxText, texts: Sequence[str], prompts: Sequence[str] = PROMPTS
) -> dict[str, np.ndarray]:
    """The result of `encode_texts` with both poolings."""
    tried: dict[str, np.ndarray] = {}
    for pooling in POOLINGS:
        variant = replace(encoder, pooling=pooling)
        if hasattr(variant, "layers") and pooling != "mean":
            # Layer 0 needs the mean, because its class token is the same for every text.
            variant = replace(variant, layers=tuple(filter(None, variant.layers)))
        tried |= encode_texts(variant, texts, *prompts)
    return tried


def fitting(tried: Mapping[str, np.ndarray], new: np.ndarray) -> str:
    """The name of the recipe in `tried` whose vectors (n, d) have the highest mean cosine with `new`; "" if
    this is below .999.
    """
    units = unit_rows(new)
    near = {
        told: float(np.vecdot(unit_rows(rows), units).mean())
        for told, rows in tried.items()
        if rows.shape[1] == new.shape[1]
    }
    best = max(near, key=near.__getitem__, default="")
    if near.get(best, 0) >= NAMED:
        return best
    return ""
