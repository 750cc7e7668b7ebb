"""Results on stdout, as an aligned table, JSON or CSV; recipes and spaces as files; a bar on stderr."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from relcore.base.access import expanded
from relcore.base.errors import SpaceError, quote
from relcore.base.text import visible
from relcore.commands.options import option
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    from relcore.figures.export import Exportable

Lines = list[str | Sequence[Sequence[str]]]  # a list of rows is a table, the first row its head
SPACE_KINDS = (".npz", ".safetensors", ".parquet")
FORMATS = ("table", "json", "csv")
_WIDTH = 20  # of a bar
_CLEAR = "\r\x1b[2K"


def add_results(
    parser: argparse.ArgumentParser, output: str = "", formats: Sequence[str] = FORMATS, recipe: bool = True
) -> None:
    """--output where there is something to write, --recipe, and the format of what is printed."""
    if output:
        option(parser, "output", Path, short="o", metavar="FILE", help=output)
    if recipe:
        option(
            parser,
            "recipe",
            Path,
            metavar="FILE",
            help="Also write the recipe (.json), from which relscope figure draws the same numbers.",
        )
        add_full_paths(parser)
    option(parser, "format", str, "table", choices=formats, help="What is printed.")
    for name, text in (("json", "one JSON object, with all digits"), ("csv", "CSV, with all digits")):
        parser.add_argument(
            f"--{name}", dest="format", action="store_const", const=name, help=f"print {text}"
        )


def add_full_paths(parser: argparse.ArgumentParser) -> None:
    """--full-paths."""
    option(
        parser,
        "full_paths",
        bool,
        False,
        help="Name data files with their folders in the recipe; else by their names only.",
    )


def show(
    options: argparse.Namespace, table: pd.DataFrame, lines: Lines, rows: str = "rows", **facts: Any
) -> None:
    """Print a result: `facts`, and `table` under the name `rows`, as JSON; `table` as CSV; or `lines`."""
    if options.format == "json":
        record = plain(facts) | {rows: plain(table.to_dict("records"))}
        print(json.dumps(record, indent=2, ensure_ascii=False))
    elif options.format == "csv":
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


def need_suffix(path: Path | None, suffixes: Sequence[str] = SPACE_KINDS) -> None:
    """Raise a SpaceError unless the file's name has one of these suffixes, and its folder exists; None is
    no file. Checked before anything is computed.
    """
    if path is None:
        return
    expanded(path)
    if path.suffix.lower() not in suffixes:
        raise SpaceError(
            f"{path}: expected a name that ends in one of {quote(suffixes)}, got"
            f" {path.suffix or 'no suffix'!r}"
        )
    if not path.absolute().parent.is_dir():
        raise SpaceError(
            f"{path}: expected an existing folder, got {str(path.parent)!r}; create it or choose another"
        )


def write_space(space: LatentSpace, path: Path) -> None:
    """A file that `load_space` reads as the same space: .npz, .safetensors or .parquet."""
    need_suffix(path)
    texts = {"ids": space.ids.tolist()} | ({} if space.labels is None else {"labels": space.labels.tolist()})
    counts = {} if space.counts is None else {"counts": space.counts}
    vectors = np.asarray(space.vectors)
    if path.suffix.lower() == ".npz":
        with path.open("wb") as stream:
            columns = {name: np.array(column, dtype=str) for name, column in texts.items()}
            np.savez(stream, vectors=vectors, **columns, **counts)
    elif path.suffix.lower() == ".safetensors":
        from safetensors.numpy import save_file

        if broken := [name for name, column in texts.items() if any("\n" in text for text in column)]:
            raise SpaceError(
                f"{path.name}: expected {broken[0]} without line breaks, got one with some; write .npz"
                " or .parquet"
            )
        columns = {
            name: np.frombuffer("\n".join(column).encode(), np.uint8) for name, column in texts.items()
        }
        save_file({"vectors": vectors, **counts, **columns}, path)
    else:
        import pyarrow as pa
        import pyarrow.parquet as parquet

        columns = {name.removesuffix("s"): pa.array(column, pa.string()) for name, column in texts.items()}
        columns |= {name.removesuffix("s"): pa.array(column) for name, column in counts.items()}
        columns["vector"] = pa.FixedSizeListArray.from_arrays(pa.array(vectors.ravel()), space.dimension)
        parquet.write_table(pa.table(columns), path)


def add_scheduler(parser: argparse.ArgumentParser) -> None:
    """--scheduler."""
    text = (
        "Run on this Dask cluster, whose workers share the store's folder (default: $RELSCOPE_SCHEDULER, or"
    )
    option(parser, "scheduler", metavar="tcp://HOST:PORT", help=f"{text} processes of this machine)")


class Bar:
    """A progress bar on stderr, erased at the end; nothing if stderr is not a terminal, or with --quiet."""

    def __init__(self, options: argparse.Namespace) -> None:
        self._shown = not options.quiet and sys.stderr.isatty()

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Draw how much is done, and a text."""
        if self._shown:
            share = min(1.0, done / total) if total else 0.0
            filled = round(_WIDTH * share)
            line = f"[{'=' * filled}{' ' * (_WIDTH - filled)}] {share:4.0%}  {visible(text)}"
            self._write(line[: shutil.get_terminal_size().columns - 1])

    def event(self, event: Mapping[str, Any]) -> None:
        """`show` what a job reports."""
        self.show(event["done"], event["total"], event["message"])

    def _write(self, line: str) -> None:
        sys.stderr.write(_CLEAR + line)
        sys.stderr.flush()

    def __enter__(self) -> Bar:
        return self

    def __exit__(self, *_) -> None:
        if self._shown:
            self._write("")
