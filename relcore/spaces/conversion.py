"""Convert what public functions accept as rows to a NumPy matrix, and check its numbers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, brief
from relcore.base.rows import out_of_range

_TIMES = {np.datetime64, np.timedelta64}  # NumPy would take them for numbers
_MOST_DENSE = 8 << 30  # number of bytes of a sparse matrix when dense


def plain_array(X: Any, name: str) -> np.ndarray:
    """An array, DataFrame, tensor, sparse matrix, list or column of rows, or gensim's KeyedVectors as a NumPy
    array with two axes.

    Raises
    ------
    SpaceError
        X is no matrix, has masked values, or is a sparse matrix that is too large in dense form.
    """
    X = _rows_within(X)
    _need_no_column_of_rows(X, name)
    _need_no_mask(X, name)
    if hasattr(X, "detach"):
        X = _of_tensor(X, name)
    if hasattr(X, "tocsr"):
        if (needed := 8 * X.shape[0] * X.shape[-1]) > _MOST_DENSE:
            raise SpaceError(
                f"{name}: expected a sparse matrix of at most {_MOST_DENSE >> 30} GB when dense, got"
                f" {needed >> 30:,} GB; lower its width, for instance with sklearn's TruncatedSVD"
            )
        X = X.toarray()
    try:
        array = np.asarray(X)
    except (TypeError, ValueError) as error:  # the lists of numbers have different lengths
        raise SpaceError(
            f"{name}: expected a matrix (n, d), got {error!s:.120}; make the rows equally long"
        ) from error
    if array.ndim != 2:
        if array.ndim:
            got = f"shape {array.shape}"
        else:
            got = f"{brief(X)}"
        raise SpaceError(
            f"{name}: expected a matrix (n, d), an array, DataFrame, tensor, sparse matrix, list of rows or"
            f" LatentSpace, got {got}{_remedy(X, array.ndim)}"
        )
    if 0 in array.shape:
        what = "sample(s)"
        if array.shape[1] == 0:
            what = "feature(s)"
        raise SpaceError(
            f"{name}: expected a matrix (n, d) with rows and columns, got 0 {what} (shape={array.shape})"
            " while a minimum of 1 is required."
        )
    return array


def _rows_within(X: Any) -> Any:
    """The rows of KeyedVectors, and those of a column whose cells are rows, as pandas reads it from a Parquet
    file; everything else as it is."""
    if hasattr(X, "index_to_key"):
        return X.vectors
    if isinstance(X, pd.Series) and _holds_rows(X):
        return X.tolist()
    if type(X).__module__.startswith("pyarrow") and hasattr(X, "to_pandas"):
        return X.to_pandas()
    return X


def _holds_rows(column: pd.Series) -> bool:
    return (
        column.dtype == object and len(column) > 0 and isinstance(column.iloc[0], list | tuple | np.ndarray)
    )


def _need_no_column_of_rows(X: Any, name: str) -> None:
    if not isinstance(X, pd.DataFrame):
        return
    for place, column in enumerate(X.columns):
        if _holds_rows(X.iloc[:, place]):
            raise SpaceError(
                f"{name}: expected a table of numbers, got one with a whole row in each cell of {column!r};"
                f" give this column, with the ids as its index: table.set_index('id')[{column!r}]"
            )


def _remedy(X: Any, n_axes: int) -> str:
    """What to write instead of an argument that is no matrix."""
    if isinstance(X, Mapping) and X:
        return f"; take one of its {len(X):,} spaces or matrices, as spaces[{next(iter(X))!r}]"
    if hasattr(X, "source") and hasattr(X, "target"):
        return "; give one of the two spaces, .source or .target"
    if n_axes:
        return ". Reshape your data: rows.reshape(1, -1) makes a single row a matrix"
    return "; give its rows as an array"


def _need_no_mask(X: Any, name: str) -> None:
    rows: Sequence[Any] = [X]
    if isinstance(X, Sequence) and not isinstance(X, str | bytes):
        rows = X
    masked = (np.ma.is_masked(row) for row in rows if isinstance(row, np.ma.MaskedArray))
    if any(masked):
        raise SpaceError(
            f"{name}: expected a number in each cell, got masked cells; fill them with .filled(value), or"
            " leave these rows out"
        )


def _of_tensor(X: Any, name: str) -> np.ndarray:
    """A tensor of torch as an array. It may be on a GPU, sparse, or of a type that NumPy lacks."""
    try:
        X = X.detach().cpu().to_dense()
        if "float8" in str(X.dtype) or "bfloat16" in str(X.dtype):
            X = X.float()
        return X.numpy()
    except (RuntimeError, TypeError, NotImplementedError) as error:
        raise SpaceError(
            f"{name}: expected a tensor whose numbers can be read, got {error!s:.120}; give X.numpy()"
        ) from error


def checked_numbers(X: np.ndarray, name: str, dtype: type | None, finite: bool) -> np.ndarray:
    """The array as real numbers of this type; without a type, real numbers keep theirs, and others become
    float64. Without `finite`, NaN and infinity are allowed.

    Raises
    ------
    SpaceError
        Complex numbers, dates, texts, or other items that are no numbers; NaN or infinity; numbers that are
        too large or too small.
    """
    if X.dtype.kind == "c":
        raise SpaceError(
            f"{name}: expected real numbers, got {X.dtype}. Complex data not supported; give the .real part"
        )
    if X.dtype.kind in "mM":
        raise SpaceError(
            f"{name}: expected a matrix of numbers, got dates or times ({X.dtype}); leave these columns"
            " out, or make them the index"
        )
    if X.dtype.kind not in "fiu":
        X = _as_float64(X, name)
    reason = out_of_range(X, finite)
    if reason:
        raise SpaceError(f"{name}: {reason}")
    return np.asarray(X, dtype=dtype)


def _as_float64(X: np.ndarray, name: str) -> np.ndarray:
    if X.dtype.kind == "O" and not _TIMES.isdisjoint(map(type, X.ravel())):
        raise SpaceError(
            f"{name}: expected a matrix of numbers, got dates or times; leave these columns out, or make them"
            " the index"
        )
    try:
        return np.asarray(X, dtype=np.float64)
    except (TypeError, ValueError, OverflowError) as error:
        raise SpaceError(
            f"{name}: expected a matrix of numbers, got {X.dtype}: {error}; leave other columns out,"
            " or make them the index"
        ) from error
