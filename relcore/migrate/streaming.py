"""Any number of rows through an adapter, from one store of vectors to another, in blocks; a killed run
resumes.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError
from relcore.files.places import Place
from relcore.migrate.adapters import Adapter
from relcore.runs.digest import digest_of
from relcore.runs.progress import Report, silent
from relcore.runs.store import Store
from relcore.stores.index import (
    BLOCK,
    StagedRows,
    StoredRows,
    Target,
    VectorIndex,
    need_target,
    open_index,
    write_index,
)

SIDES = ("queries", "corpus")


def adapt(
    adapter: Adapter | None,
    source: Place,
    goal: Place,
    *,
    side: str = "queries",
    add: bool = False,
    report: Report = silent,
    block: int = BLOCK,
) -> Target:
    """Map all rows of a store and write them to another one, with their ids and payload.

    Memory holds one block. Mapped blocks are kept in a folder beside the goal, `staging_folder`, until all
    are there; then the goal is written, a file under its name only when it is whole. After a kill the same
    call continues behind the last block. So the disk needs room for the result twice.

    Parameters
    ----------
    adapter : Adapter, optional
        None copies the rows as they are.
    side : "queries" or "corpus"
        Rows of the new model, or of the old one.
    add : bool
        Whether rows may be added to a collection or table that is there.

    Raises
    ------
    SpaceError
        Rows of another width than the adapter's, NaN or infinite values; a goal that is taken; as
        `open_index`.
    """
    if source == goal:
        raise SpaceError(
            f"{goal.text}: expected a target other than the source, got the same; choose another"
        )
    with open_index(source) as index:
        mapped, width = _map(adapter, side, index)
        staged = StagedRows(staging_folder(goal), _key(adapter, side, source, goal, index))
        target = Target(index.n, width, add, resumed=staged.writing)
        if staged.writing and goal.is_file and goal.path.exists():  # killed after the last step but one
            staged.remove()
            return target
        need_target(goal, target)
        for one in index.blocks(block, staged.done) if staged.done < index.n else ():
            staged.append(StoredRows(one.ids, mapped(one.vectors), one.payload))
            report(staged.done, index.n, f"mapping {index.name}")
    staged.begin_writing()
    write_index(goal, staged.blocks(), target, report)
    staged.remove()
    return target


def staging_folder(goal: Place) -> Path:
    """Where blocks wait: beside the goal, or in the store where the goal is an address."""
    if goal.address:
        return Store().root / "adapting" / digest_of(goal.text)
    path = goal.path
    return path.with_name(f"{path.name}{f'-{Path(goal.table).name}' * bool(goal.table)}.adapting")


def _map(
    adapter: Adapter | None, side: str, index: VectorIndex
) -> tuple[Callable[[np.ndarray], np.ndarray], int]:
    """The function from rows to mapped rows, and the width of these."""
    if adapter is None:
        return lambda rows: rows, index.width
    need_width(adapter, side, index.width, index.name)
    found = adapter.transform if side == "queries" else adapter.corpus
    return found, found(np.ones((1, index.width), np.float32)).shape[1]


def need_width(adapter: Adapter, side: str, width: int, name: str) -> None:
    """Raise a SpaceError where an adapter takes no rows of this width: "queries" of the new model,
    "corpus" of the old.
    """
    expected = adapter.n_features_in_ if side == "queries" else adapter.n_features_old_
    if width != expected:
        model = "new" if side == "queries" else "old"
        raise SpaceError(
            f"{name}: expected rows of the {model} model, of width {expected}, got {width}; name its vectors"
            + ", or use --corpus for those of the old model" * (side == "queries")
        )


def _key(adapter: Adapter | None, side: str, source: Place, goal: Place, index: VectorIndex) -> str:
    """Of the whole work: what is mapped, by what, and where it goes. A file that was written again counts
    as another.
    """
    steps = () if adapter is None else adapter.query_steps_ if side == "queries" else adapter.corpus_steps_
    written = [] if source.address else [_written(path) for path in _files(source.path)]
    return digest_of([*steps], side, source.text, goal.text, index.n, index.width, written)


def _files(path: Path) -> list[Path]:
    return (
        [path]
        if path.is_file()
        else sorted(one for one in path.rglob("*") if one.is_file() and one.name != ".lock")
    )


def _written(path: Path) -> tuple[str, int, int]:
    found = path.stat()
    return path.name, found.st_size, found.st_mtime_ns
