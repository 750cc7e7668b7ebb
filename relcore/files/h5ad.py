"""AnnData files, .h5ad: a matrix of obsm, X or a layer as vectors, and columns of obs as ids and labels.

`h5ad_process` reads them in a process of its own: libhdf5 can crash on a damaged file, and this process
serves others, too.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from importlib.util import find_spec
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.libraries import missing_library
from relcore.base.text import visible
from relcore.files.columns import NO_CHOICES, Choices
from relcore.files.rows import Rows, check_size, rows_to_read

_PROCESS = Path(__file__).with_name("h5ad_process.py")
_AGAIN = "write it again with AnnData.write_h5ad"
_LONGEST_LINE = 1 << 30
_USUAL = "obsm/X_pca"
# No threads, no lock files, and no filters from shared libraries.
_ENVIRONMENT = {"OPENBLAS_NUM_THREADS": "1", "OMP_NUM_THREADS": "1", "HDF5_PLUGIN_PRELOAD": "::"}


def read_h5ad(
    path: Path,
    *,
    limit: int | None = None,
    max_bytes: int,
    matrix: str | None = None,
    choices: Choices = NO_CHOICES,
) -> Rows:
    """One matrix of an AnnData file, dense or sparse; ids are the names in obs, unless a column of obs is
    chosen.

    Parameters
    ----------
    matrix : str, optional
        "X", "obsm/X_umap", "layers/counts", or the name alone. Default: obsm's X_pca, else the only matrix of
        obsm, else X.
    choices : Choices
        Columns of obs for ids, labels and counts; labels are else those of "label" or "cell_type".
    """
    name, shape = _chosen(path, _described(path), matrix)
    n = rows_to_read(path, shape[0], limit)
    check_size(path, n, shape[1], max_bytes)
    columns = {"ids": choices.id_column, "labels": choices.label_column, "counts": choices.count_column}
    request = {"matrix": name, "limit": limit, "columns": columns, "max_bytes": max_bytes}
    with _asked(path, request) as (answers, go):
        found = _answer(path, answers)
        if [found["n"], found["d"]] != list(shape):
            raise SpaceError(
                f"{path.name}: expected a file that stays as it is while it is read, got another; read it"
                " again"
            )
        go()
        vectors = np.empty((n, shape[1]), dtype="<f4")
        _fill(path, answers, vectors)
        texts = {role: _answer(path, answers) for role in found["columns"]}
    vectors = vectors.astype(np.float32, copy=False)
    vectors.flags.writeable = False
    return Rows(vectors, **texts)


def h5ad_matrices(path: Path) -> dict[str, tuple[int, int]]:
    """Name → (n, d) of each matrix in an AnnData file, without reading them."""
    return {name: tuple(shape) for name, shape in _described(path)["matrices"].items()}


def h5ad_shape(path: Path) -> tuple[int, int] | None:
    """(n, d) of the matrix that is read where none is chosen; None where one has to be."""
    try:
        return tuple(_chosen(path, _described(path), None)[1])
    except SpaceError:
        return None


def usual_matrix(matrices: Mapping[str, Any]) -> str | None:
    """The matrix of an AnnData file that is read where none is chosen; None where one has to be."""
    of_obsm = [name for name in matrices if name.startswith("obsm/")]
    usual = [_USUAL] if _USUAL in matrices else of_obsm or [name for name in matrices if name == "X"]
    return usual[0] if len(usual) == 1 else None


def _chosen(path: Path, described: dict[str, Any], matrix: str | None) -> tuple[str, list[int]]:
    matrices = described["matrices"]
    usual = usual_matrix(matrices)
    wanted = [
        name
        for name in matrices
        if (name == usual if matrix is None else matrix in (name, name.partition("/")[2]))
    ]
    if len(wanted) == 1:
        return wanted[0], matrices[wanted[0]]
    expected = "one matrix" if matrix is None else f"one matrix {matrix!r:.80}"
    raise SpaceError(
        f"{path.name}: expected {expected}, got {quote(list(matrices)[:8]) or 'no matrix'}; choose one with"
        " the option matrix, as FILE#matrix=X_pca"
    )


def _described(path: Path) -> dict[str, Any]:
    with _asked(path, {}) as (answers, _):
        return _answer(path, answers)


@contextmanager
def _asked(path: Path, request: dict[str, Any]) -> Iterator[tuple[BinaryIO, Any]]:
    """The answers of a process that reads the file, and what lets it continue after the first; it ends
    with the block.
    """
    if find_spec("h5py") is None:
        raise missing_library("h5py")
    command = [sys.executable, "-P", str(_PROCESS), str(path.absolute()), json.dumps(request)]
    pipes = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "stderr": subprocess.DEVNULL}
    with subprocess.Popen(command, env=os.environ | _ENVIRONMENT, **pipes) as process:

        def go() -> None:
            process.stdin.write(b"go\n")
            process.stdin.flush()

        try:
            yield process.stdout, go
        finally:
            process.kill()


def _answer(path: Path, answers: BinaryIO) -> Any:
    """The next line of the process as JSON; a SpaceError where it tells one, or has ended."""
    line = answers.readline(_LONGEST_LINE)
    if not line.endswith(b"\n"):
        raise _failed(path)
    found = json.loads(line)
    if isinstance(found, dict) and "error" in found:
        raise SpaceError(f"{path.name}: {visible(found['error'], 300)}; {_AGAIN}")
    return found


def _fill(path: Path, answers: BinaryIO, vectors: np.ndarray) -> None:
    """Read the rows that the process writes, block by block."""
    done = 0
    while done < len(vectors):
        block = vectors[done : done + _answer(path, answers)["rows"]]
        view = memoryview(block).cast("B")
        while len(view) and (n_bytes := answers.readinto(view)):
            view = view[n_bytes:]
        if len(view):
            raise _failed(path)
        done += len(block)


def _failed(path: Path) -> SpaceError:
    return SpaceError(f"{path.name}: expected an AnnData file, got one on which its library fails; {_AGAIN}")
