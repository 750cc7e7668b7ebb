"""Trusted rows of a check: their vectors and short axes."""

from __future__ import annotations

import numpy as np

from relcore.base.errors import SpaceError
from relcore.passport.passport import Passport
from relcore.passport.two_parts import ShortAxes
from relcore.spaces.matching import as_space
from relcore.spaces.space import LatentSpace, MatrixLike

# minimum numbers of trusted rows, of the right model and of the other one
TRUSTED_ROWS = 100
OTHER_ROWS = 15


def axes_of(trusted: MatrixLike | Passport, width: int, needed: bool) -> ShortAxes | None:
    """The short axes in a passport's fingerprint; without a fingerprint, those of the trusted rows. If the
    trusted rows have another width than `width` or are too few, raise a SpaceError if `needed`, otherwise
    return None.
    """
    if isinstance(trusted, Passport) and (axes := trusted.fingerprint) and len(axes.axes) == width:
        return axes
    rows = rows_of(trusted, width)
    if rows is not None:
        return ShortAxes.of(rows)
    if not needed:
        return None
    sample = _space_of(trusted)
    raise SpaceError(
        f"trusted: expected {TRUSTED_ROWS} rows or more with {width} numbers, got {len(sample):,} with"
        f" {sample.dimension}; give rows of the model that should have made all"
    )


def rows_of(trusted: MatrixLike | Passport | None, width: int) -> np.ndarray | None:
    """The vectors of the trusted rows; None if these are too few or of another width, as those of a passport
    may be."""
    if trusted is None:
        return None
    sample = _space_of(trusted)
    if sample.dimension != width or len(sample) < TRUSTED_ROWS:
        return None
    return np.asarray(sample.vectors)


def _space_of(trusted: MatrixLike | Passport) -> LatentSpace:
    if isinstance(trusted, Passport):
        return trusted.space
    return as_space(trusted, "trusted")


def other_rows_of(other: MatrixLike | None, width: int, has_trusted: bool) -> np.ndarray | None:
    """The vectors of trusted rows of the other model. If they have another width than `width` or are too few,
    or if no rows of the right model are trusted, raise a SpaceError."""
    if other is None:
        return None
    sample = as_space(other, "other")
    if not has_trusted:
        raise SpaceError("other: expected trusted rows of the right model, too, got none; give trusted")
    if sample.dimension == width and len(sample) >= OTHER_ROWS:
        return np.asarray(sample.vectors)
    raise SpaceError(
        f"other: expected {OTHER_ROWS} rows or more with {width} numbers, got {len(sample):,} with"
        f" {sample.dimension}; give rows of the second model"
    )
