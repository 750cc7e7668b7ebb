"""Spaces as they are named on the command line, and the anchors between them."""

from __future__ import annotations

import argparse
import json
import re
from collections.abc import Iterable
from difflib import get_close_matches
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.commands.numbers import finite, is_number, random_state
from relcore.names import SIMILARITIES, STRATEGIES

if TYPE_CHECKING:
    from relcore.comparing.scene import ComparisonRecipe
    from relcore.sources.catalog import SpaceSpec
    from relcore.spaces import LatentSpace, Match
    from relcore.store import Store, Summary

SPACE_HELP = (
    "a bundled space, a vector file (of a table also FILE#id_column=NAME#ignore=NAME,NAME, of a file with several matrices "
    "FILE#matrix=NAME; see relscope available --help), the folder of a saved dataset, a gensim-data model, the name or key of "
    "an encoding in the store (the first 8 digits are enough), a vector index (as qdrant:FOLDER#COLLECTION), or a "
    ".json file with the spec of a space"
)
USUAL_ANCHORS = 300
_KEY = re.compile(r"[0-9a-f]{8,128}")


def add_pair(parser: argparse.ArgumentParser) -> None:
    """SOURCE and TARGET."""
    parser.add_argument("source", metavar="SOURCE", help=SPACE_HELP)
    parser.add_argument("target", metavar="TARGET", help="the same; rows are paired by id")


def add_anchors(parser: argparse.ArgumentParser, space: str, default: str = str(USUAL_ANCHORS), least: str = "") -> None:
    """--anchors and how they are chosen; `space` is where."""
    parser.add_argument(
        "--anchors",
        metavar="N|FILE|IDS",
        help=f"number of anchors to choose in {space}, a file of ids (one per line), or ids separated by commas{least}; "
        f"default: {default}",
    )
    parser.add_argument("--strategy", default="random", help=f"how to choose them: {', '.join(STRATEGIES)}")


def add_random_state(parser: argparse.ArgumentParser, what: str = "the choice of anchors") -> None:
    """--random-state of `what`."""
    parser.add_argument("--random-state", type=random_state, default=0, metavar="N", help=f"random state of {what}")


def add_projection(parser: argparse.ArgumentParser) -> None:
    """The settings of a `ProjectionSpec`."""
    parser.add_argument("--similarity", default="cosine", help=f"similarity of a row to an anchor: {', '.join(SIMILARITIES)}")
    parser.add_argument("--no-center", dest="center", action="store_false", help="do not subtract the mean row first")
    parser.add_argument(
        "--ridge",
        type=finite,
        default=0.3,
        metavar="λ",
        help="ridge of the whitening, above 0; λ = 1 counts as much as one average anchor",
    )
    parser.add_argument("--threshold", type=finite, default=1.5, help="quantised: distance at which the clustering is cut")


def projection_of(options: argparse.Namespace):
    """The `ProjectionSpec` of these options."""
    from relcore.comparison import ProjectionSpec

    return ProjectionSpec(options.similarity, options.center, options.ridge, options.threshold)


def space_spec(text: str, store: Store | None = None) -> SpaceSpec:
    """The spec of the space that a user names.

    Raises
    ------
    SpaceError
        An unknown name, with similar ones; several encodings of one name; a .json file that is not a space.
    """
    from relcore.sources.catalog import SpaceSpec
    from relcore.sources.gensim_data import MODELS
    from relcore.sources.index_place import parse_place
    from relcore.sources.readers import suffix_of
    from relcore.sources.series import parts_of
    from relcore.sources.words import BUNDLED
    from relcore.spaces import SpaceError, quote
    from relcore.store import Store

    if text in BUNDLED:
        return SpaceSpec("bundled", text)
    if text in MODELS:
        return SpaceSpec("gensim-data", text)
    if (place := parse_place(text)) and place.where != text:
        return SpaceSpec("index", place.where, options=(("kind", place.kind), ("table", place.table)))
    path, options = file_and_options(text)
    if path.suffix.lower() == ".json":
        return SpaceSpec.from_json(read_json(path, "a space's spec"))
    if path.is_file() or suffix_of(path) or (path.is_dir() and parts_of(path)):
        return SpaceSpec("file", str(path), options=options)
    store = store or Store()
    stored = [one for one in store.summaries() if "encoder" in one.metadata]
    by_key = [one for one in stored if one.key.startswith(text)] if _KEY.fullmatch(text) else []
    found = by_key or [one for one in stored if one.metadata.get("name") == text]
    if len(found) == 1:
        return _encoding(found[0])
    if found:
        raise SpaceError(
            f"{text!r}: expected one encoding, got {len(found)} with this name; use a key: {quote(one.key for one in found)}"
        )
    if path.is_dir():
        raise SpaceError(
            f"{text!r}: expected one space, got a folder that may hold several; name one of its files, or open them all with "
            "relscope app FOLDER"
        )
    near = did_you_mean(text, [*BUNDLED, *MODELS, *(one.metadata["name"] for one in stored), *_files_beside(path)])
    raise SpaceError(f"{text!r}: expected {SPACE_HELP}; nothing matches{near}")


def space_specs(text: str) -> list[SpaceSpec]:
    """`space_spec` of what a user names; of a folder with several spaces, as of checkpoints, all of them in natural order."""
    from relcore.sources.catalog import SpaceSpec
    from relcore.sources.gensim_data import MODELS
    from relcore.sources.series import parts_of, series_of
    from relcore.sources.shapes import shape_of
    from relcore.sources.words import BUNDLED

    path, options = file_and_options(text)
    if text in BUNDLED or text in MODELS or not path.is_dir() or parts_of(path):
        return [space_spec(text)]
    return [SpaceSpec("file", str(one), options=options) for one in series_of(path, lambda file: shape_of(file) is not None)]


def file_and_options(text: str) -> tuple[Path, tuple[tuple[str, str], ...]]:
    """The path in ``FILE#OPTION=VALUE#OPTION=VALUE``, and the options of its spec; names to ignore are separated by commas.

    Raises
    ------
    SpaceError
        An unknown option.
    """
    from relcore.access import expanded
    from relcore.sources.files import FILE_OPTIONS
    from relcore.spaces import SpaceError, quote

    name, *options = text.split("#")
    path = expanded(text)
    if not options or path.exists() or not any("=" in option for option in options):
        return path, ()
    found = {option: value for option, _, value in (one.partition("=") for one in options)}
    if unknown := found.keys() - set(FILE_OPTIONS):
        raise SpaceError(f"{text!r:.80}: expected some of {quote(FILE_OPTIONS)} after '#', got {quote(sorted(unknown))}")
    if "ignore" in found:
        found["ignore"] = json.dumps(found["ignore"].split(","), ensure_ascii=False)
    return expanded(name), tuple(found.items())


def _encoding(summary: Summary) -> SpaceSpec:
    from relcore.sources.catalog import stored_encoding_spec
    from relcore.spaces import SpaceError

    spec = stored_encoding_spec(summary)
    if spec is None:
        raise SpaceError(
            f"{summary.metadata['name']!r}: expected an encoding of a dataset that can be loaded, got one made by a script"
        )
    return spec


def _files_beside(path: Path) -> list[str]:
    folder = path.parent
    return [str(folder / one.name) for one in folder.iterdir() if one.is_file()] if folder.is_dir() else []


def did_you_mean(text: str, known: Iterable[str]) -> str:
    """``"; did you mean 'a' or 'b'?"``, or "" if no known name is similar."""
    near = get_close_matches(text, list(dict.fromkeys(known)), n=2, cutoff=0.6)
    return f"; did you mean {' or '.join(map(repr, near))}?" if near else ""


def read_json(path: Path, what: str) -> dict[str, Any]:
    """The object in a .json file, with the paths of the files that it names: beside it, here, or under RELSCOPE_DATA.

    Raises
    ------
    SpaceError
        No such file, no JSON, no object, a file that is named and not found.
    """
    from relcore.plain_json import read_file
    from relcore.portable import finder, with_paths
    from relcore.spaces import SpaceError

    found = read_file(path, what)
    if not isinstance(found, dict):
        raise SpaceError(f"{path}: expected {what} as a JSON object, got {type(found).__name__}")
    return with_paths(found, finder([path.parent, Path()], data_folders()))


def data_folders() -> list[Path]:
    """The folder of RELSCOPE_DATA, if it is set."""
    from relcore.access import data_folder

    folder = data_folder()
    return [folder] if folder else []


def pair_of(options: argparse.Namespace) -> tuple[tuple[SpaceSpec, SpaceSpec], Match]:
    """SOURCE and TARGET, and their rows paired by id."""
    from relcore.recipe import load_again
    from relcore.spaces import match

    specs = space_spec(options.source), space_spec(options.target)
    return specs, match(*(load_again(spec) for spec in specs))


def anchors_of(options: argparse.Namespace, space: LatentSpace) -> tuple[str, ...]:
    """The anchors of --anchors: a number chosen by strategy in this space, or ids; default 300, at most half of the rows."""
    from relcore.anchors.selection import select_anchors

    wanted = min(USUAL_ANCHORS, len(space) // 2) if options.anchors is None else number_or_ids(options.anchors)
    if not isinstance(wanted, int):
        return wanted
    return tuple(select_anchors(space, wanted, options.strategy, random_state=options.random_state)) if wanted else ()


def anchors_by_shard(options: argparse.Namespace, n: int) -> int | tuple[str, ...]:
    """The anchors of --anchors for a space of n rows that is read shard by shard: a number to draw, or ids.

    Raises
    ------
    SpaceError
        Another strategy than "random", which needs all rows at once.
    """
    from relcore.spaces import SpaceError

    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random', which shards are read for, got {options.strategy!r}; choose anchors in a sample "
            "of the rows, and name their ids with --anchors"
        )
    return min(USUAL_ANCHORS, n // 2) if options.anchors is None else number_or_ids(options.anchors)


def number_or_ids(text: str) -> int | tuple[str, ...]:
    """``"300"`` as a number; else the distinct ids in a file, one per line, or separated by commas."""
    from relcore.access import expanded
    from relcore.spaces import SpaceError
    from relcore.text_lines import read_lines

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
    found = tuple(dict.fromkeys(one.strip() for one in ids if one.strip()))
    if not found:
        raise SpaceError(f"--anchors: expected at least one id, got none in {text!r:.200}; name ids of the space")
    return found


def comparison_recipe(
    specs: tuple[SpaceSpec, SpaceSpec], pair: Match, anchors: tuple[str, ...], projection=None
) -> ComparisonRecipe:
    """What a figure of this pair needs to be drawn again."""
    from relcore.comparing.scene import ComparisonRecipe
    from relcore.comparison import ProjectionSpec
    from relcore.reduction import ReductionSpec
    from relcore.views import ViewSpec

    view, digests = ViewSpec((), everything=True), (pair.source.digest, pair.target.digest)
    looks = {"view": view, "reduction": ReductionSpec(fit="first")}
    named = {"source_digest": digests[0], "target_digest": digests[1]}
    return ComparisonRecipe(*specs, anchors, projection or ProjectionSpec(), **looks, **named)
