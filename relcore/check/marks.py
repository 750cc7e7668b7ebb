"""Marks that number formats leave in vectors."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.rows import Rows, row_blocks
from relcore.passport.passport import Passport, held_by
from relcore.spaces.matching import row_hashes

_UNIT = 1e-6
_ON_GRID = 0.02
_MOST_STEPS = 256
_PADDED = 8  # minimum number of final zeros; in int8 rows, fewer may be chance
# `_are_means` looks at this number of rows, and the zeros at the end of their mantissas. float16 leaves 13
# of 23 bits, a mean of two about 11, of four 8. For each row of float16, there must be this many such rows.
_MEANS_SOUGHT = 5000
_MANTISSA = np.uint32(0x7FFFFF)
_FEWEST_ZEROS = 6
_HALF_ZEROS = 13
_AS_MANY = 0.1
MARKS = {
    "float16": "numbers that float16 holds exactly",
    "bfloat16": "numbers that bfloat16 holds exactly",
    "grid": "whole multiples of a step, as after int8",
    "unit length": "length 1 to one millionth",
    "padded": "zeros in the last dimensions",
    "constant": "one number in all dimensions",
    "repeated": "the same vector as an earlier row",
}


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
    rows_of_marks = {name: np.concatenate(parts) for name, parts in found.items()}
    return {name: rows for name, rows in rows_of_marks.items() if len(rows)}


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
