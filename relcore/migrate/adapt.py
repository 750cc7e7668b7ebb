"""Map the rows of a store of vectors by an adapter."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Sequence
from itertools import chain, compress

import numpy as np
import pandas as pd

from relcore.base.errors import SpaceError, quote
from relcore.files.formats import checked_ids
from relcore.migrate.adapters import Adapter
from relcore.runs.entries import digest_of
from relcore.runs.work import Progress, silent
from relcore.stores.index import (
    BLOCK,
    StoredRows,
    StorePlace,
    Target,
    VectorIndex,
    need_target,
    open_index,
    write_index,
)

SIDES = ("queries", "corpus")


def adapt(
    adapter: Adapter | None,
    source: StorePlace,
    goal: StorePlace,
    *,
    side: str = "queries",
    add: bool = False,
    report: Progress = silent,
    block: int = BLOCK,
) -> Target:
    """Map all rows of a vector database or a file, and write them to another one with their ids and payload.

    Rows are mapped in blocks, so memory holds only one block, and eight bytes for each id. A file or a table
    gets its name only when it is complete.

    Parameters
    ----------
    adapter : Adapter, optional
        With None, rows are copied unchanged.
    add : bool
        Whether rows may be added to an existing collection or table. There they replace the rows with the
        same ids, so a job that was killed can be run again. The place records the digest of the adapter.

    Raises
    ------
    SpaceError
        Rows of another width; numbers that are not finite; ids that occur twice; a goal that already exists,
        or whose rows another adapter mapped; errors of `open_index`.
    """
    if source == goal:
        expected = "a target other than the source, got the same; choose another"
        raise SpaceError(f"{goal.text}: expected {expected}")
    with open_index(source) as index:
        mapped: Callable[[np.ndarray], np.ndarray] = np.asarray
        width = index.width
        if adapter is not None:
            need_width(adapter, side, index.width, index.name)
            if side == "queries":
                mapped = adapter.transform
            else:
                mapped = adapter.corpus
            width = mapped(np.ones((1, index.width), np.float32)).shape[1]
        digest = adapter_digest(adapter) if adapter else index.adapter
        target = Target(index.n, width, add, digest)
        need_target(goal, target)

        def blocks() -> Iterator[StoredRows]:
            done = 0
            hashes = []
            for rows in index.blocks(block):
                finite = np.isfinite(rows.vectors).all(axis=1)
                if not finite.all():
                    raise SpaceError(
                        f"{index.name}, row {done + np.argmin(finite) + 1:,}: expected finite"
                        " float32 numbers, got others; mend or remove the row"
                    )
                place = index.name
                if done:
                    place = f"{index.name}, after row {done:,}"
                ids = checked_ids(rows.ids, place)
                hashes.append(_hash_ids(ids))
                done += len(ids)
                report(done, index.n, f"mapping {index.name}")
                yield StoredRows(ids, mapped(rows.vectors), rows.payload)
            # Check before the generator ends: if this raises an error, no file has the name of the goal yet.
            _need_distinct_ids(index, np.concatenate(hashes))

        write_index(goal, blocks(), target)
    return target


def adapter_digest(adapter: Adapter) -> str:
    """A digest of the numbers in an adapter's steps. Adapters with equal digests map into one space."""
    return digest_of("adapter", adapter.query_steps_, adapter.corpus_steps_)


def _hash_ids(ids: Sequence[str]) -> np.ndarray:
    return pd.util.hash_array(np.array(ids, dtype=object), categorize=False)


def _need_distinct_ids(index: VectorIndex, hashes: np.ndarray) -> None:
    """Raise a SpaceError that names the first repeated id, if there is one. Rows are read again only if two
    of the `hashes` of their ids are equal."""
    hashes.sort()
    alike = hashes[1:][hashes[1:] == hashes[:-1]]
    if not len(alike):
        return
    ids = (rows.ids for rows in index.blocks())
    times = Counter(chain.from_iterable(compress(some, np.isin(_hash_ids(some), alike)) for some in ids))
    if twice := [item for item, n in times.items() if n > 1]:
        raise SpaceError(
            f"{index.name}: ids must be distinct, {len(twice):,} occur more than once, first"
            f" {quote(twice[:3])}; make them distinct first"
        )


def need_width(adapter: Adapter, side: str, width: int, name: str) -> None:
    """Raise a SpaceError unless the adapter maps rows of this width. `side` tells the model of the rows:
    "queries" for the new model, "corpus" for the old one."""
    is_query = side == "queries"
    if is_query:
        model = "new"
        expected = adapter.n_features_in_
    else:
        model = "old"
        expected = adapter.n_features_old_
    if width != expected:
        or_corpus = ""
        if is_query:
            or_corpus = ", or use --corpus for those of the old model"
        raise SpaceError(
            f"{name}: expected rows of the {model} model, of width {expected}, got {width}; name its vectors"
            + or_corpus
        )
