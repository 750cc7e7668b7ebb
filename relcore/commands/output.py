"""Results on stdout, as an aligned table, JSON or CSV; recipes and spaces as files."""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import pandas as pd

    from relcore.figures.export import Exportable
    from relcore.spaces.space import LatentSpace

SPACE_KINDS = (".npz", ".safetensors", ".parquet")


def add_format(parser: argparse.ArgumentParser) -> None:
    """--json or --csv."""
    one = parser.add_mutually_exclusive_group()
    one.add_argument(
        "--json", action="store_true", help="print the result as one JSON object, with all digits"
    )
    one.add_argument("--csv", action="store_true", help="print the table as CSV, with all digits")


def add_recipe(parser: argparse.ArgumentParser) -> None:
    """--recipe, which `figure` reads."""
    parser.add_argument(
        "--recipe",
        type=Path,
        metavar="FILE",
        help="also write the recipe (.json), from which relscope figure draws the same numbers",
    )
    add_full_paths(parser)


def add_full_paths(parser: argparse.ArgumentParser) -> None:
    """--full-paths."""
    parser.add_argument(
        "--full-paths",
        action="store_true",
        help="name data files with their folders in the recipe; else by their names only",
    )


def show(
    options: argparse.Namespace,
    table: pd.DataFrame,
    lines: Iterable[str | Sequence[Sequence[str]]],
    **facts: Any,
) -> None:
    """Print a result: `table` and `facts` as JSON, `table` as CSV, or else `lines`, where a list of rows
    is a table.
    """
    if options.json:
        rows = [{str(name): plain(value) for name, value in row.items()} for row in table.to_dict("records")]
        print(
            json.dumps(
                {name: plain(value) for name, value in facts.items()} | {"rows": rows},
                indent=2,
                ensure_ascii=False,
            )
        )
    elif options.csv:
        print(table.to_csv(index=False, lineterminator="\n"), end="")
    else:
        for line in lines:
            print(line if isinstance(line, str) else aligned(line))


def aligned(rows: Sequence[Sequence[str]], indent: str = "  ") -> str:
    """Rows of cells as a text table; the first row is the head, and columns of numbers are aligned to the
    right.
    """
    columns = list(zip(*rows, strict=True))
    widths = [max(map(len, column)) for column in columns]
    right = [all(_is_number(cell) for cell in column[1:]) for column in columns]
    lines = (
        "  ".join(
            f"{cell:>{width}}" if to_right else f"{cell:<{width}}"
            for cell, width, to_right in zip(row, widths, right, strict=True)
        )
        for row in rows
    )
    return "\n".join(f"{indent}{line}".rstrip() for line in lines)


def _is_number(cell: str) -> bool:
    return set(cell) <= set("0123456789.,−-–±∞… ")


def plain(value: Any) -> Any:
    """A value as JSON can hold it: NumPy numbers as Python numbers, NaN as null."""
    if isinstance(value, Mapping):
        return {str(name): plain(one) for name, one in value.items()}
    if isinstance(value, list | tuple):
        return [plain(one) for one in value]
    if hasattr(value, "item"):
        value = value.item()
    if isinstance(value, float):
        return float(value) if abs(value) < float("inf") else None  # NaN is below nothing
    return value if value is None or isinstance(value, bool | int | str) else str(value)


def write_recipe(options: argparse.Namespace, figure: Exportable) -> None:
    """The figure's recipe into the file of --recipe."""
    options.recipe.write_bytes(figure.bytes("json", full_paths=options.full_paths))


def need_space_file(path: Path | None) -> None:
    """Raise a SpaceError unless a space can be written to a file of this name; checked before anything is
    computed.
    """
    need_suffix(path, SPACE_KINDS)


def need_suffix(path: Path | None, suffixes: Sequence[str]) -> None:
    """Raise a SpaceError unless the file's name has one of these suffixes, and its folder exists; None is
    no file.
    """
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError, quote

    if path is not None:
        expanded(path)
    if path is not None and path.suffix.lower() not in suffixes:
        raise SpaceError(
            f"{path}: expected a name that ends in one of {quote(suffixes)}, got"
            f" {path.suffix or 'no suffix'!r}"
        )
    if path is not None and not path.absolute().parent.is_dir():
        raise SpaceError(
            f"{path}: expected an existing folder, got {str(path.parent)!r}; create it or choose another"
        )


def write_space(space: LatentSpace, path: Path) -> None:
    """A file that `load_space` reads as the same space: .npz, .safetensors or .parquet."""
    need_space_file(path)
    {".npz": _npz, ".safetensors": _safetensors, ".parquet": _parquet}[path.suffix.lower()](space, path)


def _texts(space: LatentSpace) -> dict[str, Any]:
    return {"ids": space.ids} | ({} if space.labels is None else {"labels": space.labels})


def _npz(space: LatentSpace, path: Path) -> None:
    import numpy as np

    counts = {} if space.counts is None else {"counts": space.counts}
    texts = {name: np.array(column.tolist(), dtype=str) for name, column in _texts(space).items()}
    with path.open("wb") as stream:
        np.savez(stream, vectors=space.vectors, **texts, **counts)


def _safetensors(space: LatentSpace, path: Path) -> None:
    import numpy as np
    from safetensors.numpy import save_file

    from relcore.base.errors import SpaceError

    arrays = {"vectors": np.asarray(space.vectors)} | (
        {} if space.counts is None else {"counts": space.counts}
    )
    for name, column in _texts(space).items():
        if any("\n" in text for text in column):
            raise SpaceError(
                f"{path.name}: expected {name} without line breaks, got one with a line break; write .npz or"
                " .parquet"
            )
        arrays[name] = np.frombuffer("\n".join(column).encode(), dtype=np.uint8)
    save_file(arrays, path)


def _parquet(space: LatentSpace, path: Path) -> None:
    import numpy as np
    import pyarrow as pa
    import pyarrow.parquet as parquet

    columns = {
        name.removesuffix("s"): pa.array(column.tolist(), pa.string())
        for name, column in _texts(space).items()
    }
    if space.counts is not None:
        columns["count"] = pa.array(space.counts)
    columns["vector"] = pa.FixedSizeListArray.from_arrays(
        pa.array(np.asarray(space.vectors).ravel()), space.dimension
    )
    parquet.write_table(pa.table(columns), path)
