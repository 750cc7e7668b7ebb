"""`load_space`, which loads the space that a user names in a script as the commands do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import fields, replace
from pathlib import Path
from typing import Any, Literal

from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.catalog.catalog import KEPT, UNSCORED, SpaceSpec, listed, load
from relcore.catalog.naming import space_spec
from relcore.files.reading import MAP_FROM, ReadOptions, read_space
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace


@takes_kinds
def load_space(
    path: str | Path,
    *,
    name: str | None = None,
    limit: int | None = None,
    ids: Sequence[str] | Literal["rows"] | None = None,
    metadata: str | Path | None = None,
    id_column: str | None = None,
    label_column: str | None = None,
    count_column: str | None = None,
    text_column: str | None = None,
    picture_column: str | None = None,
    ignore: Sequence[str] = (),
    encoding: str = "",
    matrix: str | None = None,
    invalid: Literal["error", "drop"] = "error",
    duplicates: Literal["error", "first"] = "error",
    max_bytes: int | None = None,
    map_from: int = MAP_FROM,
    parts: Literal["all"] | None = None,
    store: Store | None = None,
) -> LatentSpace:
    """Load a space by the name that the commands take: a file, a vector store or a bundled space.

    The vectors of a large .npy, .safetensors or .arrow file of floats stay on disk, those of a large .parquet
    file are decoded once, into the store. Without ids in the file, they are "0", "1", … With
    RELSCOPE_CONFINED=1 (the app and the commands), files are parsed in a confined process.

    Parameters
    ----------
    path : str or Path
        A file, or a folder of shards or of `datasets.save_to_disk`. A text can also be what a command takes:
        ``FILE#OPTION=VALUE``, such as ``two.npz#matrix=NAME``, ``lancedb:FOLDER#TABLE``, the name of a
        bundled space or of an encoding in the store, or a .json file with the spec of a space. Except `name`,
        `limit` and `store`, the arguments below are only for files.
    name, limit : str, int, optional
        The name of the space (by default the file's, without its suffix), and the number of rows to read.
    ids : sequence of str or "rows", optional
        Ids that replace those of the file; "rows" means row numbers, with the file's ids as payload.
    metadata : str or Path, optional
        A .csv, .tsv or .parquet file with ids, labels and counts. If both files have ids, they are joined by
        id; if not, by order, and the space's `note` says so.
    id_column, label_column, count_column : str, optional
        Columns of the table or of `metadata`. By default they are chosen by name or kind.
    text_column, picture_column, ignore : str, optional; sequence of str
        The app shows text and picture columns and does not load them. `ignore` leaves columns out.
    encoding : str
        Encoding of a .csv or .tsv file, or of `metadata`; by default UTF-8 or the likely one, see `note`.
    matrix : str, optional
        The array or tensor to read, if the file has several.
    invalid, duplicates : "error", or "drop" and "first"
        What to do with rows that are not finite and with repeated ids. A warning counts dropped rows.
    max_bytes : int, optional
        Memory limit for vectors (as float32) and ids; by default 8 GiB, but at most 60 % of free memory.
    map_from, store, parts : int; Store, optional; "all", optional
        Vectors of files of at least `map_from` bytes stay on disk. `store` keeps their lengths, digests and
        decoded vectors; by default it is the environment's store. With `parts` "all", the vector files of a
        folder are one space. Otherwise, names such as "train-00000-of-00004.parquet" tell this.

    Raises
    ------
    SpaceError
        Nothing has this name. An argument is given that the name already tells, or that only files take.
        The file cannot be read as a space.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from relcore import load_space
    >>> path = mkdtemp() + "/words.npz"
    >>> np.savez(path, vectors=np.eye(3), others=np.eye(2), ids=["king", "queen", "river"])
    >>> load_space(path, limit=2).ids.tolist()
    ['king', 'queen']
    >>> load_space("word2vec-novels", limit=100)
    LatentSpace('word2vec-novels', n=100, d=100, digest=991d09cd)
    """
    columns = (id_column, label_column, count_column, text_column, picture_column, ignore, encoding)
    options = ReadOptions(ids, metadata, *columns, matrix, invalid, duplicates, max_bytes, map_from, parts)
    return _load(path, name, limit, options, store)


def _load(
    path: str | Path, name: str | None, limit: int | None, options: ReadOptions, store: Store | None
) -> LatentSpace:
    if not isinstance(path, str):
        return read_space(path, options, name=name, limit=limit, store=store)
    spec = space_spec(path)
    chosen = _given(options)
    named: dict[str, Any] = dict(spec.options)
    if spec.source == "file" and spec.limit is None and named.keys().isdisjoint((KEPT, UNSCORED)):
        if twice := named.keys() & chosen:
            raise SpaceError(
                f"{path!r:.80}: expected {quote(sorted(twice))} once, got it in the name and as an argument;"
                " leave one out"
            )
        if "ignore" in named:
            named["ignore"] = listed(spec, "ignore")
        return read_space(spec.name, replace(options, **named), name=name, limit=limit, store=store)
    return _of_spec(spec, path, name, limit, chosen, store)


def _given(options: ReadOptions) -> set[str]:
    """The names of the options that differ from their defaults."""
    chosen = set()
    for field in fields(ReadOptions):
        value = getattr(options, field.name)
        # Arrays and Series of ids are never equal to a default, and cannot be compared with it.
        if type(value) is not type(field.default) or value != field.default:
            chosen.add(field.name)
    return chosen


def _of_spec(
    spec: SpaceSpec,
    path: str,
    name: str | None,
    limit: int | None,
    chosen: set[str],
    store: Store | None,
) -> LatentSpace:
    """Load a space that is not simply a file."""
    if chosen:
        raise SpaceError(
            f"{path!r:.80}: expected {quote(sorted(chosen))} only for a vector file, got a space from"
            f" {spec.source!r}; leave it out"
        )
    if limit is not None and spec.limit is not None:
        limit = min(limit, spec.limit)
    if limit is not None:
        spec = replace(spec, limit=limit)
    space = load(spec, store)
    if name is None:
        return space
    renamed = space.with_columns(name=name)
    renamed.note = space.note
    return renamed
