"""Write a space to a file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.kinds import takes_kinds
from relcore.base.writing import replacing
from relcore.files.columns import OPTIONS
from relcore.files.numpy_files import packed_texts
from relcore.spaces.matching import as_space
from relcore.spaces.space import MatrixLike

FILE_OPTIONS = (
    *OPTIONS.values(),
    *("ignore", "encoding", "matrix", "metadata", "ids", "invalid", "duplicates", "parts"),
)
SPACE_KINDS = (".npz", ".safetensors", ".parquet")


def need_suffix(path: Path | str | None, suffixes: Sequence[str] = SPACE_KINDS) -> None:
    """Raise a SpaceError, unless the file name has one of these suffixes and its folder exists. None is
    accepted."""
    if path is None:
        return
    if isinstance(path, str):
        raise SpaceError(f"{path!r:.200}: expected a path, got an address, which only shards can have")
    access.expand_home(path)
    if path.suffix.lower() not in suffixes:
        got = path.suffix or "no suffix"
        raise SpaceError(f"{path}: expected a name that ends in one of {quote(suffixes)}, got {got!r}")
    if not path.absolute().parent.is_dir():
        raise SpaceError(
            f"{path}: expected an existing folder, got {str(path.parent)!r}; create it or choose another"
        )


@takes_kinds
def save_space(space: MatrixLike, path: str | Path) -> None:
    """Write a space to a file, from which `load_space` reads the same vectors, ids, labels and counts.

    Parameters
    ----------
    space : LatentSpace or matrix (n, d)
        Rows without ids get the ids "0", "1", … The payload is not written.
    path : str or Path
        A name that ends in .npz, .safetensors or .parquet. A file of this name is replaced.

    Raises
    ------
    SpaceError
        The name has another ending, or its folder does not exist. An id or a label has a line break, which
        a .safetensors file cannot hold.

    Examples
    --------
    >>> from tempfile import mkdtemp
    >>> import numpy as np
    >>> from relcore import LatentSpace, load_space, save_space
    >>> path = mkdtemp() + "/words.npz"
    >>> save_space(LatentSpace(np.eye(3), ["king", "queen", "river"]), path)
    >>> load_space(path).ids.tolist()
    ['king', 'queen', 'river']
    """
    path = access.expand_home(path)
    need_suffix(path)
    space = as_space(space)
    texts = {"ids": space.ids.tolist()}
    if space.labels is not None:
        texts["labels"] = space.labels.tolist()
    arrays = {"vectors": np.asarray(space.vectors)}
    if space.counts is not None:
        arrays |= {"counts": space.counts}
    if path.suffix.lower() == ".npz":
        with replacing(path) as stream:
            columns = (packed_texts(name, column) for name, column in texts.items())
            np.savez(stream, **arrays, **ChainMap(*columns))
    elif path.suffix.lower() == ".safetensors":
        from safetensors import SafetensorError
        from safetensors.numpy import save_file

        for name, column in texts.items():
            if any("\n" in text or "\r" in text for text in column):
                raise SpaceError(
                    f"{path.name}: expected {name} without line breaks, got one with some; write .npz or"
                    " .parquet"
                )
            arrays[name] = np.frombuffer("\n".join(column).encode(), np.uint8)
        with replacing(path) as stream:
            try:
                save_file(arrays, stream.name)
            except SafetensorError as error:
                raise OSError(str(error)) from error
    else:
        import pyarrow as pa

        columns = {name.removesuffix("s"): pa.array(column, pa.string()) for name, column in texts.items()}
        if "counts" in arrays:
            columns |= {"count": pa.array(space.counts)}
        flat = pa.array(arrays["vectors"].ravel())
        columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, space.dimension)
        table = pa.table(columns)
        with replacing(path) as stream:
            write_parquet(stream, table.schema, [table])


# No dictionary encoding and no compression, because they hardly shrink vectors.
OF_VECTORS = {"use_dictionary": False, "compression": "none"}


def write_parquet(stream: IO[bytes], schema: Any, tables: Iterable[Any], **settings: Any) -> None:
    import pyarrow.parquet as parquet

    with parquet.ParquetWriter(stream, schema, **settings) as writer:
        for table in tables:
            writer.write_table(table)
