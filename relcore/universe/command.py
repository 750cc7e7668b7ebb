"""The command `universe`, which brings several spaces into one by one map each."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

from relcore.base.errors import SpaceError, quote
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP, space_spec, space_specs
from relcore.commands.command import command, values_of
from relcore.commands.inputs import loaded_spaces
from relcore.commands.options import ByRow, Results, Scheduler
from relcore.commands.printing import written
from relcore.files.saving import need_suffix, save_space
from relcore.spaces.space import LatentSpace
from relcore.stores.file_index import NpyIndex
from relcore.stores.index import StoredRows, StorePlace, Target
from relcore.universe.universe import SUFFIX, Universe, UniverseSpec

VERBS = ("add", "map")


@dataclass
class UniverseOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE",
        nargs="+",
        help=f"two or more; each is {SPACE_HELP}. Or a verb: add FILE SPACE, map FILE SPACE",
    )
    name: str = setting(
        None, metavar="NAME", help="For map: the name of SPACE in the universe, if it differs."
    )
    to: str = setting(
        None, metavar="NAME", help="For map: the space to translate into. Default: the common space."
    )


@command(
    (UniverseOptions, UniverseSpec, ByRow, Results, Scheduler),
    "Without a verb: fits one orthogonal map for each space, scores held-out rows of every pair, and"
    " writes maps and scores as a file. “add FILE SPACE” adds a space to such a file by one map, without"
    " the other spaces; “map FILE SPACE” maps the rows of a space. Rows are paired by id. A folder of"
    " several spaces, such as checkpoints, stands for all these spaces.",
    (
        "a.npy b.npy c.npy -o words.universe",
        "add words.universe d.npy",
        "map words.universe d.npy --to a -o d-as-a.npy",
    ),
    output=f"The file to write: for a universe {SUFFIX}, for “map” .npy, .npz, .safetensors or .parquet;"
    " “add” replaces FILE by default.",
)
def run_universe(options: argparse.Namespace) -> Report:
    verb, *rest = options.spaces
    if verb in VERBS:
        if len(rest) != 2:
            raise SpaceError(
                f"{verb}: expected a universe's file and a space, got {quote(rest) or 'neither'}"
            )
        file = Path(rest[0])
        space = load(space_spec(rest[1]), again=True)
        if verb == "add":
            return _add_to_universe(options, file, space)
        return _map_to_universe(options, file, space)
    need_suffix(options.output, [SUFFIX])
    specs = [spec for text in options.spaces for spec in space_specs(text)]
    inputs = loaded_spaces(options, specs)
    task = UniverseSpec(**values_of(options, UniverseSpec))
    universe = inputs.result(task)
    if options.output:
        universe.save(options.output)
    chart = inputs.chart("universe", universe, spaces=tuple(inputs.specs), universe=task)
    return universe.report(**chart)


def _add_to_universe(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    options.output = options.output or path
    need_suffix(options.output, [SUFFIX])
    universe = Universe.load(path).add(space)
    universe.save(options.output)
    return universe.report()


def _map_to_universe(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    need_suffix(options.output, [".npy", ".npz", ".safetensors", ".parquet"])
    if options.output is None:
        raise SpaceError("map: expected a file for the mapped rows, got none; name it with -o")
    universe = Universe.load(path)
    source = options.name or space.name
    rows = None
    if options.to:
        rows = universe.translate(space.vectors, source, options.to)
    if rows is None:
        rows = universe.map(space.vectors, source)
    if options.output.suffix.lower() == ".npy":
        # With the ids beside it, over those of an older file of this name.
        labels = options.output.with_name(f"{options.output.stem}.labels.txt")
        if labels.exists():
            raise SpaceError(
                f"{labels}: expected no labels beside {options.output.name}, got those of an earlier file;"
                " move them, or choose another name"
            )
        block = StoredRows(space.ids.tolist(), rows)
        NpyIndex.write(
            StorePlace("npy", str(options.output)), [block], Target(len(rows), rows.shape[1], replaces=True)
        )
    else:
        save_space(LatentSpace(rows, space.ids, name=space.name, labels=space.labels), options.output)
    line = f"{len(rows):,} rows × {rows.shape[1]:,}, {options.to or 'common space'}"
    return written(line, n=len(rows), dimension=rows.shape[1], space=options.to)
