"""universe: several spaces in one, a space added to it, and rows mapped by it."""

from __future__ import annotations

import argparse
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.base.names import FIGURES
from relcore.base.report import Report
from relcore.base.settings import setting
from relcore.base.writing import replacing
from relcore.catalog.catalog import load
from relcore.catalog.naming import SPACE_HELP, space_spec, space_specs
from relcore.commands.running import (
    ByRow,
    Results,
    Scheduler,
    command,
    loaded_spaces,
    result_of,
    values_of,
    written,
)
from relcore.files.saving import need_suffix, write_space
from relcore.spaces.space import LatentSpace
from relcore.universe.universe import SUFFIX, Universe, UniverseSpec

VERBS = ("add", "map")


@dataclass
class UniverseOptions:
    spaces: tuple[str, ...] = setting(
        metavar="SPACE",
        nargs="+",
        help=f"two or more; each is {SPACE_HELP}. Or a verb: add FILE SPACE, map FILE SPACE",
    )
    name: str = setting(None, metavar="NAME", help="Of map: the universe's name of SPACE, if it has another.")
    to: str = setting(
        None, metavar="NAME", help="Of map: translate into this space; without it, into the common one."
    )


@command(
    (UniverseOptions, UniverseSpec, ByRow, Results, Scheduler),
    "Without a verb: fits one orthogonal map for each space, scores held-out rows of every pair, and"
    " writes maps and scores as a file. “add FILE SPACE” adds a space to such a file by one map, without"
    " the other spaces; “map FILE SPACE” maps the rows of a space. Rows are paired by id. A folder of"
    " several spaces, such as checkpoints, counts as all of them.",
    (
        "a.npy b.npy c.npy -o words.universe",
        "add words.universe d.npy",
        "map words.universe d.npy --to a -o d-as-a.npy",
    ),
    output=f"The file to write: of a universe {SUFFIX}, of “map” .npy, .npz, .safetensors or .parquet; “add”"
    " replaces FILE by default.",
)
def run_universe(options: argparse.Namespace) -> Report:
    verb, *rest = options.spaces
    if verb in VERBS:
        if len(rest) != 2:
            raise SpaceError(
                f"{verb}: expected a universe's file and a space, got {quote(rest) or 'neither'}"
            )
        given = options, Path(rest[0]), load(space_spec(rest[1]), again=True)
        return (_add if verb == "add" else _map)(*given)
    need_suffix(options.output, [SUFFIX])
    specs = [spec for text in options.spaces for spec in space_specs(text)]
    specs, spaces = loaded_spaces(options, specs)
    task = UniverseSpec(**values_of(options, UniverseSpec))
    universe = result_of(task, specs, spaces, options)
    if options.output:
        universe.save(options.output)
    digests = tuple(space.digest for space in spaces)
    recipe, kind = {"spaces": tuple(specs), "digests": digests, "universe": task}, FIGURES["universe"]
    return universe.report(universe=lambda: kind.load()(**recipe).draw(universe))


def _add(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    options.output = options.output or path
    need_suffix(options.output, [SUFFIX])
    universe = Universe.load(path).add(space)
    universe.save(options.output)
    return universe.report()


def _map(options: argparse.Namespace, path: Path, space: LatentSpace) -> Report:
    need_suffix(options.output, [".npy", ".npz", ".safetensors", ".parquet"])
    if options.output is None:
        raise SpaceError("map: expected a file for the mapped rows, got none; name it with -o")
    universe, source = Universe.load(path), options.name or space.name
    rows = universe.translate(space.vectors, source, options.to) if options.to else None
    rows = universe.map(space.vectors, source) if rows is None else rows
    if options.output.suffix.lower() == ".npy":
        with replacing(options.output) as stream:
            np.save(stream, rows)
    else:
        write_space(LatentSpace(rows, space.ids, name=space.name, labels=space.labels), options.output)
    line = f"{len(rows):,} rows × {rows.shape[1]:,}, {options.to or 'common space'}"
    return written(line, n=len(rows), dimension=rows.shape[1], space=options.to)
