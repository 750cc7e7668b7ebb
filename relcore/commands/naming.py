"""Spaces as they are named on the command line, and the anchors between them."""

from __future__ import annotations

import argparse
import json
import os
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.base.access import data_folder, expanded
from relcore.base.errors import SpaceError, quote
from relcore.base.names import STRATEGIES
from relcore.base.portable import finder, with_paths
from relcore.base.records import read_file
from relcore.base.text import read_lines
from relcore.catalog.catalog import SpaceSpec, stored_encoding_spec
from relcore.commands.options import is_number, option
from relcore.encoders.words import BUNDLED, MODELS
from relcore.files.formats import suffix_of
from relcore.files.places import parse_place
from relcore.files.reading import FILE_OPTIONS, shape_of
from relcore.files.series import parts_of, series_of
from relcore.represent.anchors import select_anchors
from relcore.runs.store import Store
from relcore.spaces.space import LatentSpace, Match, match
from relcore.tasks.recipe import load_again

if TYPE_CHECKING:
    from relcore.scores.comparison import ProjectionSpec
    from relcore.tasks.pair_recipe import ComparisonRecipe

SPACE_HELP = (
    "a bundled space, a vector file (of a table also FILE#id_column=NAME#ignore=NAME,NAME, of a file with"
    " several matrices FILE#matrix=NAME; see relscope available --help), the folder of a saved dataset, a"
    " gensim-data model, the name or key of an encoding in the store (the first 8 digits are enough), a"
    " vector index (as qdrant:FOLDER#COLLECTION), or a .json file with the spec of a space"
)
USUAL_ANCHORS = 300
_KEY = re.compile(r"[0-9a-f]{8,128}")


def add_pair(parser: argparse.ArgumentParser) -> None:
    """SOURCE and TARGET."""
    parser.add_argument("source", metavar="SOURCE", help=SPACE_HELP)
    parser.add_argument("target", metavar="TARGET", help="the same; rows are paired by id")


def add_anchors(parser: argparse.ArgumentParser, space: str, default: str = str(USUAL_ANCHORS)) -> None:
    """--anchors and how they are chosen; `space` is where."""
    text = f"Number of anchors to choose in {space}, a file of ids (one per line), or ids separated by commas"
    option(parser, "anchors", metavar="N|FILE|IDS", help=f"{text}; default: {default}")
    option(parser, "strategy", str, "random", choices=STRATEGIES, help="How to choose the anchors.")


def add_random_state(parser: argparse.ArgumentParser, what: str = "the choice of anchors") -> None:
    """--random-state of `what`."""
    option(parser, "random_state", int, 0, low=0, help=f"Random state of {what}.")


def space_spec(text: str) -> SpaceSpec:
    """The spec of the space that a user names.

    Raises
    ------
    SpaceError
        An unknown name, with similar ones; several encodings of one name; a .json file that is not a space.
    """
    if os.path.isfile(text) and suffix_of(Path(text)):
        return SpaceSpec("file", text)
    if text in BUNDLED or text in MODELS:
        return SpaceSpec("bundled" if text in BUNDLED else "gensim-data", text)
    if (place := parse_place(text)) and place.where != text:
        return SpaceSpec("index", place.where, options=(("kind", place.kind), ("table", place.table)))
    path, options = _file_and_options(text)
    if path.suffix.lower() == ".json":
        return SpaceSpec.from_json(read_json(path, "a space's spec"))
    if path.is_file() or suffix_of(path) or (path.is_dir() and parts_of(path)):
        return SpaceSpec("file", str(path), options=options)
    stored = [entry for entry in Store().summaries() if "encoder" in entry.metadata]
    chosen = [entry for entry in stored if _KEY.fullmatch(text) and entry.key.startswith(text)]
    chosen = chosen or [entry for entry in stored if entry.metadata.get("name") == text]
    if len(chosen) > 1:
        keys = quote(entry.key for entry in chosen)
        raise SpaceError(
            f"{text!r}: expected one encoding, got {len(chosen)} with this name; use a key: {keys}"
        )
    if chosen:
        if (spec := stored_encoding_spec(chosen[0])) is None:
            expected = "expected an encoding of a dataset that can be loaded, got one made by a script"
            raise SpaceError(f"{chosen[0].metadata['name']!r}: {expected}")
        return spec
    if path.is_dir():
        raise SpaceError(
            f"{text!r}: expected one space, got a folder that may hold several; name one of its files, or"
            " open them all with relscope app FOLDER"
        )
    beside = path.parent.iterdir() if path.parent.is_dir() else ()
    files = [str(path.parent / file.name) for file in beside if file.is_file()]
    near = did_you_mean(text, [*BUNDLED, *MODELS, *(entry.metadata["name"] for entry in stored), *files])
    raise SpaceError(f"{text!r}: expected {SPACE_HELP}; nothing matches{near}")


def space_specs(text: str) -> list[SpaceSpec]:
    """`space_spec` of what a user names; of a folder with several spaces, as of checkpoints, all of them
    in natural order.
    """
    path, options = _file_and_options(text)
    if text in BUNDLED or text in MODELS or not path.is_dir() or parts_of(path):
        return [space_spec(text)]
    files = series_of(path, lambda file: shape_of(file) is not None)
    return [SpaceSpec("file", str(file), options=options) for file in files]


def _file_and_options(text: str) -> tuple[Path, tuple[tuple[str, str], ...]]:
    """The path in ``FILE#OPTION=VALUE#OPTION=VALUE``, and the options of its spec; names to ignore are
    separated by commas.

    Raises
    ------
    SpaceError
        An unknown option.
    """
    name, *given = text.split("#")
    path = expanded(text)
    if not given or path.exists() or not any("=" in option for option in given):
        return path, ()
    options = {option: value for option, _, value in (text.partition("=") for text in given)}
    if unknown := options.keys() - set(FILE_OPTIONS):
        raise SpaceError(
            f"{text!r:.80}: expected some of {quote(FILE_OPTIONS)} after '#', got {quote(sorted(unknown))}"
        )
    if "ignore" in options:
        options["ignore"] = json.dumps(options["ignore"].split(","), ensure_ascii=False)
    return expanded(name), tuple(options.items())


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or "" if no known name is similar."""
    near = get_close_matches(text, list(dict.fromkeys(known)), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a .json file, with the paths of the files that it names: beside it, here, or under
    RELSCOPE_DATA.

    Raises
    ------
    SpaceError
        No such file, no JSON, no object, a file that is named and not found.
    """
    record = read_file(path, what)
    if not isinstance(record, dict):
        raise SpaceError(f"{path}: expected {what} as a JSON object, got {type(record).__name__}")
    return with_paths(record, finder([path.parent, Path()], data_folders()))


def data_folders() -> list[Path]:
    """The folder of RELSCOPE_DATA, if it is set."""
    folder = data_folder()
    return [folder] if folder else []


def pair_of(options: argparse.Namespace) -> tuple[tuple[SpaceSpec, SpaceSpec], Match]:
    """SOURCE and TARGET, and their rows paired by id."""
    specs = space_spec(options.source), space_spec(options.target)
    return specs, match(load_again(specs[0]), load_again(specs[1]))


def anchors_of(options: argparse.Namespace, space: LatentSpace) -> tuple[str, ...]:
    """The anchors of --anchors: a number chosen by strategy in this space, or ids; default 300, at most
    half of the rows.
    """
    wanted = number_or_ids(options.anchors, min(USUAL_ANCHORS, len(space) // 2))
    if not isinstance(wanted, int):
        return wanted
    if not wanted:
        return ()
    return tuple(select_anchors(space, wanted, options.strategy, random_state=options.random_state))


def number_or_ids(text: str | None, usual: int = USUAL_ANCHORS) -> int | tuple[str, ...]:
    """``"300"`` as a number; else the distinct ids in a file, one per line, or separated by commas."""
    if text is None:
        return usual
    if is_number("--anchors", text):
        return int(text)
    try:
        path = expanded(text)
    except SpaceError:
        if "," not in text:
            raise
        path = Path()  # many ids make a longer text than a path can be
    if path.is_file():
        ids = read_lines(path, "one id per line")
    elif path.suffix.lower() in (".txt", ".csv"):
        got = f"{text!r:.200}, a file that does not exist; check the spelling"
        raise SpaceError(f"--anchors: expected a number, a file of ids or ids, got {got}")
    else:
        ids = text.split(",")
    distinct = tuple(dict.fromkeys(identifier.strip() for identifier in ids if identifier.strip()))
    if not distinct:
        raise SpaceError(
            f"--anchors: expected at least one id, got none in {text!r:.200}; name ids of the space"
        )
    return distinct


def comparison_recipe(
    specs: tuple[SpaceSpec, SpaceSpec], pair: Match, anchors: tuple[str, ...], **projection: ProjectionSpec
) -> ComparisonRecipe:
    """What a figure of this pair needs to be drawn again."""
    from relcore.maps.reduction import ReductionSpec
    from relcore.maps.views import ViewSpec
    from relcore.tasks.pair_recipe import ComparisonRecipe

    digests = {"source_digest": pair.source.digest, "target_digest": pair.target.digest}
    looks = {"view": ViewSpec((), everything=True), "reduction": ReductionSpec(fit="first")}
    return ComparisonRecipe(*specs, anchors, **projection, **looks, **digests)
