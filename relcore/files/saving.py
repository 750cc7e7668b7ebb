"""Write a space to a file."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import IO, Any

import numpy as np

from relcore.base import access
from relcore.base.errors import SpaceError, quote
from relcore.base.writing import replacing
from relcore.files.columns import OPTIONS
from relcore.files.numpy_files import packed_texts
from relcore.spaces.space import LatentSpace

FILE_OPTIONS = (*OPTIONS.values(), "ignore", "encoding", "matrix", "metadata", "ids", "invalid", "duplicates")
# Write a space to a file from which `load_space` reads the same space.
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


def write_space(space: LatentSpace, path: Path) -> None:
    """Write a space to a .npz, .safetensors or .parquet file. `load_space` reads the same space from it."""
    need_suffix(path)
    texts = {"ids": space.ids.tolist()} | ({} if space.labels is None else {"labels": space.labels.tolist()})
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
