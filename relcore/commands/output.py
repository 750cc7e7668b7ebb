"""Results on stdout, as an aligned table, JSON or CSV; recipes and spaces as files; a bar on stderr."""

from __future__ import annotations

import argparse
import json
import shutil
import sys
import time
from collections import ChainMap
from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from relcore.base.access import expanded
from relcore.base.errors import SpaceError, quote
from relcore.base.names import FIGURES
from relcore.base.report import Report, Table, aligned, json_lines
from relcore.base.text import visible
from relcore.base.writing import replacing, write
from relcore.files.arrays import packed_texts
from relcore.spaces.space import LatentSpace

if TYPE_CHECKING:
    import pandas as pd

Lines = list[str | Sequence[Sequence[str]]]  # a list of rows is a table, the first row its head
SPACE_KINDS = (".npz", ".safetensors", ".parquet")
_WIDTH = 20  # of a bar
_ERASE = "\r\x1b[2K"  # the line
_EVERY = 30.0  # seconds between lines where there is no terminal


def finish(options: argparse.Namespace, report: Report) -> int:
    """Write the recipe, print the report, and return the exit code: 1 after an alarm."""
    figures = [*report.figures.values()]
    if getattr(options, "recipe", None) and figures:
        write(options.recipe, figures[0]().bytes("json", full_paths=options.full_paths))
    written = getattr(options, "output", None)
    rows = next((table.rows for table in report.tables if table.rows is not None), None)
    if options.format == "json":
        record = report.record(**({"output": str(written)} if written else {}))
        text = json.dumps(record, indent=2, ensure_ascii=False)
    elif options.format in ("csv", "jsonl") and rows is not None:
        lined = options.format == "jsonl"
        text = json_lines(rows) if lined else rows.to_csv(index=False, lineterminator="\n")
    elif options.format == "markdown":
        text = report.markdown()
    else:
        text = "\n".join(filter(None, [report.text(), str(written or "")]))
    with suppress(BrokenPipeError):  # a reader such as `head` has read enough; the exit code stays
        print(text.removesuffix("\n"))
    return int(bool(report.facts.get("alarm")))


def show(
    options: argparse.Namespace, table: pd.DataFrame, lines: Lines, rows: str = "rows", **facts: Any
) -> None:
    """Print a result whose lines a command writes itself."""
    text = "\n".join(line if isinstance(line, str) else aligned(line) for line in lines)
    finish(options, Report(text, (Table(rows, table),), facts))


def write_recipe(options: argparse.Namespace, figure: str, result: Any, **settings: Any) -> None:
    """The recipe of a figure of `result` into the file of --recipe, where it is given."""
    if options.recipe:
        drawn = FIGURES[figure].load()(**settings).draw(result)
        write(options.recipe, drawn.bytes("json", full_paths=options.full_paths))


def need_suffix(path: Path | str | None, suffixes: Sequence[str] = SPACE_KINDS) -> None:
    """Raise a SpaceError unless the file's name has one of these suffixes, and its folder exists; None is
    no file. Checked before anything is computed.
    """
    if path is None:
        return
    if isinstance(path, str):
        raise SpaceError(f"{path!r:.200}: expected a path, got an address, where only shards are written")
    expanded(path)
    if path.suffix.lower() not in suffixes:
        got = path.suffix or "no suffix"
        raise SpaceError(f"{path}: expected a name that ends in one of {quote(suffixes)}, got {got!r}")
    if not path.absolute().parent.is_dir():
        raise SpaceError(
            f"{path}: expected an existing folder, got {str(path.parent)!r}; create it or choose another"
        )


def write_space(space: LatentSpace, path: Path) -> None:
    """A file that `load_space` reads as the same space: .npz, .safetensors or .parquet."""
    need_suffix(path)
    texts = {"ids": space.ids.tolist()} | ({} if space.labels is None else {"labels": space.labels.tolist()})
    arrays = {"vectors": np.asarray(space.vectors)}
    arrays |= {} if space.counts is None else {"counts": space.counts}
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
        import pyarrow.parquet as parquet

        columns = {name.removesuffix("s"): pa.array(column, pa.string()) for name, column in texts.items()}
        columns |= {"count": pa.array(space.counts)} if "counts" in arrays else {}
        flat = pa.array(arrays["vectors"].ravel())
        columns["vector"] = pa.FixedSizeListArray.from_arrays(flat, space.dimension)
        with replacing(path) as stream:
            parquet.write_table(pa.table(columns), stream)


@dataclass
class Bar(AbstractContextManager):
    """A progress bar on stderr, erased at the end; a line every half minute where stderr is no terminal, as
    in the log of a job; nothing with --quiet.
    """

    options: argparse.Namespace
    drawn: bool = False
    _next: float = field(default_factory=lambda: time.monotonic() + _EVERY)

    def show(self, done: float, total: float, text: str = "", *_) -> None:
        """Draw how much is done, and a text."""
        if self.options.quiet:
            return
        share = min(1.0, done / total) if total else 0.0
        if not sys.stderr.isatty():
            if (now := time.monotonic()) >= self._next:
                self._next = now + _EVERY
                print(f"relscope: {share:4.0%}  {visible(text)}", file=sys.stderr, flush=True)
            return
        line = f"[{'=' * round(_WIDTH * share):<{_WIDTH}}] {share:4.0%}  {visible(text)}"
        self.drawn, line = True, line[: shutil.get_terminal_size().columns - 1]
        print(f"{_ERASE}{line}", end="", file=sys.stderr, flush=True)

    def event(self, event: Mapping[str, Any]) -> None:
        """`show` what a job reports."""
        self.show(event["done"], event["total"], event["message"])

    def __exit__(self, *_) -> None:
        if self.drawn:
            print(_ERASE, end="", file=sys.stderr, flush=True)
