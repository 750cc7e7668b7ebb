"""Spaces as they are named on the command line, and the anchors between them."""

from __future__ import annotations

import argparse
import json
import math
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from itertools import zip_longest
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.base.names import SIMILARITIES, STRATEGIES
from relcore.base.text import visible

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.compare.scene import ComparisonRecipe
    from relcore.runs.entries import Summary
    from relcore.runs.store import Store
    from relcore.sharded.passes import Runner
    from relcore.sharded.space import ShardedSpace
    from relcore.spaces.space import LatentSpace, Match


# Folders of shards on the command line: which places are such folders, and the passes over them with a bar.

SAMPLE = 20_000
HELP = (
    "Folders of shards: a folder, or an address such as s3://…, with two or more .npy, .parquet, .arrow or"
    " .feather files of one width is one space of any size. It is read shard by shard on the workers of the"
    " cluster, and a stopped command resumes by shard."
)


def add_shards(parser: argparse.ArgumentParser) -> None:
    """--shards and --scheduler."""
    from relcore.commands.running import add_scheduler

    parser.description += f" {HELP}"
    parser.add_argument(
        "--shards",
        action="store_true",
        help=(
            "read folders shard by shard also where they fit into memory, such as those of"
            " datasets.save_to_disk"
        ),
    )
    add_scheduler(parser)


def by_shard(options: argparse.Namespace, *places: str) -> bool:
    """Whether these places are to be read shard by shard.

    A folder that can be loaded as one space without this, such as a saved dataset or the shards of one table,
    is read by shard only with --shards.
    """
    from os.path import isdir  # False where a name is too long; Path.is_dir raises an error
    from pathlib import Path

    from relcore.files.places import parse_place
    from relcore.files.series import is_one_space
    from relcore.sharded.shard import is_address
    from relcore.sharded.space import is_sharded

    if options.shards:
        return True
    if any((found := parse_place(place)) is not None and found.where != place for place in places):
        return False
    whole = [not is_address(place) and isdir(place) and is_one_space(Path(place)) for place in places]
    return not any(whole) and all(map(is_sharded, places))


def opened(place: str) -> ShardedSpace:
    """The sharded space at a place; errors as `ShardedSpace.open`."""
    from relcore.sharded.space import ShardedSpace

    return ShardedSpace.open(place)


@contextmanager
def runner(options: argparse.Namespace, n_shards: int) -> Iterator[Runner]:
    """Passes run on the cluster of --scheduler, else in processes of this machine, and a bar shows the
    shards.
    """
    from relcore.commands.running import bar, engine
    from relcore.sharded.passes import Runner

    with engine(options, n_jobs=n_shards) as made, bar(options) as line:
        yield Runner(made.store, made, line.show)


def told(run: Runner) -> list[str]:
    """What the passes took, for the end of a command's output."""
    return ["", *run.told()]


def add_sample(parser: argparse.ArgumentParser) -> None:
    """--shards, and --sample for work that needs its rows at once."""
    text = "this needs all its rows at once, so it takes N of each space, drawn by a hash of their ids"
    add_shards(parser)
    parser.add_argument(
        "--sample", type=from_one, default=SAMPLE, metavar="N", help=f"folders of shards: {text}"
    )


def samples(
    options: argparse.Namespace, places: Sequence[str], also: Sequence[Sequence[str]] = ()
) -> tuple[list[SpaceSpec], list[LatentSpace], list[str]]:
    """Spaces in memory at these places, samples of folders of shards; and sentences about the samples.

    Raises
    ------
    SpaceError
        Folders of shards beside other spaces: a sample of one would hardly have rows of the other.
    """
    from relcore.base.errors import SpaceError
    from relcore.catalog.catalog import SpaceSpec
    from relcore.sharded.sample import sample_shards
    from relcore.tasks.recipe import load_again

    sharded = [by_shard(options, place) for place in places]
    if not any(sharded):
        specs = [space_spec(place) for place in places]
        return specs, [load_again(spec) for spec in specs], []
    if not all(sharded):
        raise SpaceError(
            "expected folders of shards only, or none, got both; write all spaces in shards, or none"
        )
    spaces = [opened(place) for place in places]
    with runner(options, max(len(space.shards) for space in spaces)) as run:
        found = [
            sample_shards(space, options.sample, run, ids)
            for space, ids in zip_longest(spaces, also, fillvalue=())
        ]
    rows = ", ".join(
        f"{len(one):,} of {space.n:,} rows of {space.name}" for one, space in zip(found, spaces, strict=True)
    )
    return [SpaceSpec("file", place) for place in places], found, [f"On a sample: {rows}.", *told(run)]


def need_loadable(options: argparse.Namespace, sampled: Sequence[str]) -> None:
    """Raise a SpaceError where a recipe is to name what was sampled: a figure could not load it."""
    from relcore.base.errors import SpaceError

    if options.recipe and sampled:
        raise SpaceError(
            "--recipe: expected spaces that a figure can load, got folders of shards; leave --recipe out"
        )


# Numbers on the command line: whole and finite ones as people write them; argparse puts the option's name
# before the error.

_MOST_DIGITS = 18  # within 64 bits
_WHOLE = re.compile(rf"[+-]?[0-9]{{1,{_MOST_DIGITS}}}")


def is_number(option: str, text: str) -> bool:
    """Whether the text of an option that also takes a file or ids is a whole number without a sign.

    Raises
    ------
    SpaceError
        A number of more digits than any row has.
    """
    if not text.isascii() or not text.isdecimal():
        return False
    if len(text) > _MOST_DIGITS:
        from relcore.base.errors import SpaceError

        raise SpaceError(
            f"{option}: expected a number of at most {_MOST_DIGITS} digits, got {len(text):,} digits; choose"
            " fewer"
        )
    return True


def whole(text: str) -> int:
    """A whole number in ASCII digits; Python alone would take "１２" and "1_000"."""
    if not _WHOLE.fullmatch(text.strip()):
        raise argparse.ArgumentTypeError(f"expected a whole number, got {text!r:.60}")
    return int(text)


def from_one(text: str) -> int:
    """A whole number from 1, such as a number of rows."""
    if (number := whole(text)) < 1:
        raise argparse.ArgumentTypeError(f"expected a whole number from 1, got {text!r:.60}")
    return number


def random_state(text: str) -> int:
    """A whole number from 0, which is all that random generators take."""
    if (number := whole(text)) < 0:
        raise argparse.ArgumentTypeError(f"expected a whole number from 0, got {text!r:.60}")
    return number


def finite(text: str) -> float:
    """A number that is neither NaN nor infinite."""
    try:
        number = float(text)
    except ValueError:
        number = math.nan
    if not math.isfinite(number) or "_" in text or not text.isascii():
        raise argparse.ArgumentTypeError(f"expected a finite number, got {text!r:.60}")
    return number


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


def add_anchors(
    parser: argparse.ArgumentParser, space: str, default: str = str(USUAL_ANCHORS), least: str = ""
) -> None:
    """--anchors and how they are chosen; `space` is where."""
    parser.add_argument(
        "--anchors",
        metavar="N|FILE|IDS",
        help=(
            f"number of anchors to choose in {space}, a file of ids (one per line), or ids separated by"
            f" commas{least}; default: {default}"
        ),
    )
    parser.add_argument("--strategy", default="random", help=f"how to choose them: {', '.join(STRATEGIES)}")


def add_random_state(parser: argparse.ArgumentParser, what: str = "the choice of anchors") -> None:
    """--random-state of `what`."""
    parser.add_argument(
        "--random-state", type=random_state, default=0, metavar="N", help=f"random state of {what}"
    )


def add_projection(parser: argparse.ArgumentParser) -> None:
    """The settings of a `ProjectionSpec`."""
    parser.add_argument(
        "--similarity", default="cosine", help=f"similarity of a row to an anchor: {', '.join(SIMILARITIES)}"
    )
    parser.add_argument(
        "--no-center", dest="center", action="store_false", help="do not subtract the mean row first"
    )
    parser.add_argument(
        "--ridge",
        type=finite,
        default=0.3,
        metavar="λ",
        help="ridge of the whitening, above 0; λ = 1 counts as much as one average anchor",
    )
    parser.add_argument(
        "--threshold", type=finite, default=1.5, help="quantised: distance at which the clustering is cut"
    )


def projection_of(options: argparse.Namespace):
    """The `ProjectionSpec` of these options."""
    from relcore.scores.comparison import ProjectionSpec

    return ProjectionSpec(options.similarity, options.center, options.ridge, options.threshold)


def space_spec(text: str, store: Store | None = None) -> SpaceSpec:
    """The spec of the space that a user names.

    Raises
    ------
    SpaceError
        An unknown name, with similar ones; several encodings of one name; a .json file that is not a space.
    """
    from relcore.base.errors import SpaceError, quote
    from relcore.catalog.catalog import SpaceSpec
    from relcore.encoders.words import BUNDLED, MODELS
    from relcore.files.places import parse_place
    from relcore.files.readers import suffix_of
    from relcore.files.series import parts_of
    from relcore.runs.store import Store

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
            f"{text!r}: expected one encoding, got {len(found)} with this name; use a key:"
            f" {quote(one.key for one in found)}"
        )
    if path.is_dir():
        raise SpaceError(
            f"{text!r}: expected one space, got a folder that may hold several; name one of its files, or"
            " open them all with relscope app FOLDER"
        )
    near = did_you_mean(
        text, [*BUNDLED, *MODELS, *(one.metadata["name"] for one in stored), *_files_beside(path)]
    )
    raise SpaceError(f"{text!r}: expected {SPACE_HELP}; nothing matches{near}")


def space_specs(text: str) -> list[SpaceSpec]:
    """`space_spec` of what a user names; of a folder with several spaces, as of checkpoints, all of them
    in natural order.
    """
    from relcore.catalog.catalog import SpaceSpec
    from relcore.encoders.words import BUNDLED, MODELS
    from relcore.files.reading import shape_of
    from relcore.files.series import parts_of, series_of

    path, options = file_and_options(text)
    if text in BUNDLED or text in MODELS or not path.is_dir() or parts_of(path):
        return [space_spec(text)]
    return [
        SpaceSpec("file", str(one), options=options)
        for one in series_of(path, lambda file: shape_of(file) is not None)
    ]


def file_and_options(text: str) -> tuple[Path, tuple[tuple[str, str], ...]]:
    """The path in ``FILE#OPTION=VALUE#OPTION=VALUE``, and the options of its spec; names to ignore are
    separated by commas.

    Raises
    ------
    SpaceError
        An unknown option.
    """
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError, quote
    from relcore.files.reading import FILE_OPTIONS

    name, *options = text.split("#")
    path = expanded(text)
    if not options or path.exists() or not any("=" in option for option in options):
        return path, ()
    found = {option: value for option, _, value in (one.partition("=") for one in options)}
    if unknown := found.keys() - set(FILE_OPTIONS):
        raise SpaceError(
            f"{text!r:.80}: expected some of {quote(FILE_OPTIONS)} after '#', got {quote(sorted(unknown))}"
        )
    if "ignore" in found:
        found["ignore"] = json.dumps(found["ignore"].split(","), ensure_ascii=False)
    return expanded(name), tuple(found.items())


def _encoding(summary: Summary) -> SpaceSpec:
    from relcore.base.errors import SpaceError
    from relcore.catalog.catalog import stored_encoding_spec

    spec = stored_encoding_spec(summary)
    if spec is None:
        raise SpaceError(
            f"{summary.metadata['name']!r}: expected an encoding of a dataset that can be loaded, got one"
            " made by a script"
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
    """The object in a .json file, with the paths of the files that it names: beside it, here, or under
    RELSCOPE_DATA.

    Raises
    ------
    SpaceError
        No such file, no JSON, no object, a file that is named and not found.
    """
    from relcore.base.errors import SpaceError
    from relcore.base.portable import finder, with_paths
    from relcore.base.records import read_file

    found = read_file(path, what)
    if not isinstance(found, dict):
        raise SpaceError(f"{path}: expected {what} as a JSON object, got {type(found).__name__}")
    return with_paths(found, finder([path.parent, Path()], data_folders()))


def data_folders() -> list[Path]:
    """The folder of RELSCOPE_DATA, if it is set."""
    from relcore.base.access import data_folder

    folder = data_folder()
    return [folder] if folder else []


def pair_of(options: argparse.Namespace) -> tuple[tuple[SpaceSpec, SpaceSpec], Match]:
    """SOURCE and TARGET, and their rows paired by id."""
    from relcore.spaces.space import match
    from relcore.tasks.recipe import load_again

    specs = space_spec(options.source), space_spec(options.target)
    return specs, match(*(load_again(spec) for spec in specs))


def anchors_of(options: argparse.Namespace, space: LatentSpace) -> tuple[str, ...]:
    """The anchors of --anchors: a number chosen by strategy in this space, or ids; default 300, at most
    half of the rows.
    """
    from relcore.represent.anchors import select_anchors

    wanted = (
        min(USUAL_ANCHORS, len(space) // 2) if options.anchors is None else number_or_ids(options.anchors)
    )
    if not isinstance(wanted, int):
        return wanted
    return (
        tuple(select_anchors(space, wanted, options.strategy, random_state=options.random_state))
        if wanted
        else ()
    )


def anchors_by_shard(options: argparse.Namespace, n: int) -> int | tuple[str, ...]:
    """The anchors of --anchors for a space of n rows that is read shard by shard: a number to draw, or ids.

    Raises
    ------
    SpaceError
        Another strategy than "random", which needs all rows at once.
    """
    from relcore.base.errors import SpaceError

    if options.strategy != "random":
        raise SpaceError(
            f"--strategy: expected 'random', which shards are read for, got {options.strategy!r}; choose"
            " anchors in a sample of the rows, and name their ids with --anchors"
        )
    return min(USUAL_ANCHORS, n // 2) if options.anchors is None else number_or_ids(options.anchors)


def number_or_ids(text: str) -> int | tuple[str, ...]:
    """``"300"`` as a number; else the distinct ids in a file, one per line, or separated by commas."""
    from relcore.base.access import expanded
    from relcore.base.errors import SpaceError
    from relcore.base.text import read_lines

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
        raise SpaceError(
            f"--anchors: expected at least one id, got none in {text!r:.200}; name ids of the space"
        )
    return found


def comparison_recipe(
    specs: tuple[SpaceSpec, SpaceSpec], pair: Match, anchors: tuple[str, ...], projection=None
) -> ComparisonRecipe:
    """What a figure of this pair needs to be drawn again."""
    from relcore.compare.scene import ComparisonRecipe
    from relcore.maps.reduction import ReductionSpec
    from relcore.maps.views import ViewSpec
    from relcore.scores.comparison import ProjectionSpec

    view, digests = ViewSpec((), everything=True), (pair.source.digest, pair.target.digest)
    looks = {"view": view, "reduction": ReductionSpec(fit="first")}
    named = {"source_digest": digests[0], "target_digest": digests[1]}
    return ComparisonRecipe(*specs, anchors, projection or ProjectionSpec(), **looks, **named)


# Folders of shards that the app opens as a sample of their rows.


def add_samples(parser: argparse.ArgumentParser) -> None:
    """--shards and --sample."""
    parser.add_argument(
        "--shards",
        action="store_true",
        help="open each folder as one space of shards, also where it has fewer rows",
    )
    parser.add_argument(
        "--sample",
        type=from_one,
        default=200_000,
        metavar="N",
        help=(
            "rows of a folder of shards, drawn by a hash of their ids: of two folders with the same ids the"
            " same rows (default: %(default)s)"
        ),
    )


def sampled(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """The sample of the folder of shards of this name, drawn with a bar where the store has none; [] for
    another space.

    Raises
    ------
    SpaceError
        A shard that cannot be read; a sample of a folder whose shards change meanwhile.
    """
    from importlib.util import find_spec
    from os.path import isdir

    from relcore.base.access import expanded
    from relcore.commands.running import bar
    from relcore.files.places import parse_place
    from relcore.runs.progress import Context
    from relcore.runs.store import Store
    from relcore.sharded.sample import sample_job, sample_spec, too_large
    from relcore.sharded.shard import is_address
    from relcore.sharded.space import ShardedSpace

    place = parse_place(name)
    if (place is not None and place.where != name) or not (is_address(name) or isdir(expanded(name))):
        return []
    if (
        not (options.shards or is_address(name)) and find_spec("fsspec") is None
    ):  # a folder of checkpoints needs none
        return []
    space = ShardedSpace.open(name) if options.shards or is_address(name) else too_large(name)
    if space is None:
        return []
    spec, store = sample_spec(space, options.sample), Store()
    key = spec.option("key")
    if not store.has(key):
        with bar(options) as line:
            show = lambda event: line.show(event["done"], event["total"], event["message"])  # noqa: E731
            with Context(key, store, show).sending() as context:
                sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows"
    print(
        f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}, drawn by a hash of their ids",
        file=sys.stderr,
    )
    return [spec]
