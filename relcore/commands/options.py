"""The options that several commands share, each as a dataclass."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from relcore.base.names import STRATEGIES
from relcore.base.settings import setting
from relcore.catalog.naming import SPACE_HELP
from relcore.represent.strategies import USUAL_ANCHORS

SHARDS_HELP = (
    " Folders of shards: a folder, or an address such as s3://…, with two or more .npy, .parquet, .arrow or"
    " .feather files of one width is one space of any size. It is read shard by shard on the workers of the"
    " cluster. A stopped command resumes at the next shard."
)
PRINTED = {"json": "JSON", "jsonl": "a line of JSON for each row", "csv": "CSV"}
# Suffix of -o → format, for commands that write only their report.
REPORT_FILES = {".csv": "csv", ".json": "json", ".jsonl": "jsonl", ".md": "markdown", ".txt": "table"}


@dataclass
class Pair:
    source: str = setting(metavar="SOURCE", help=SPACE_HELP)
    target: str = setting(metavar="TARGET", help="the other space, named likewise; rows are paired by id")


@dataclass
class ByRow:
    pair_by_row: bool = setting(
        False,
        help="Pair rows by order, not by id: row i of both is the same item. Both need equally many rows.",
    )


@dataclass
class ByLinks:
    links: Path = setting(
        None,
        metavar="FILE",
        help="Pair rows by this file of links: the output of link -o, or a table with two columns of ids. Of"
        " the links by link -o, only those of the kinds “seed” and “confirmed” are scored.",
    )


@dataclass
class Anchors:
    anchors: str = setting(
        None,
        metavar="N|FILE|IDS",
        help="Number of anchors to choose, ids separated by commas, a file of ids (one per line), or the"
        f" output of audit -o (suspects are not scored). Default: {USUAL_ANCHORS}, or a fifth of the rows",
    )
    strategy: str = setting("random", choices=STRATEGIES, help="How to choose the anchors.")


@dataclass
class DrawnAnchors(Anchors):
    random_state: int = setting(0, low=0, help="Random state of the choice of anchors.")


@dataclass
class Scheduler:
    scheduler: str = setting(
        None,
        metavar="tcp://HOST:PORT",
        help="Run on this Dask cluster, whose workers share the store's folder (default: $RELSCOPE_SCHEDULER,"
        " or processes of this machine).",
    )


@dataclass
class Shards(Scheduler):
    shards: bool = setting(
        False,
        help="Read folders by shard even if they fit into memory, such as those of datasets.save_to_disk.",
    )


@dataclass
class Sample(Shards):
    sample: int = setting(
        20_000,
        low=1,
        help="Number of rows to draw from a folder of shards, by a hash of their ids.",
    )


@dataclass
class FullPaths:
    full_paths: bool = setting(
        False, help="Write full paths of data files into the recipe. By default, only the files' names."
    )


@dataclass
class Printed:
    format: str = setting(
        "table", choices=("table", "json", "jsonl", "csv", "markdown"), help="What is printed."
    )


@dataclass
class JUnit:
    junit: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write a JUnit report (.xml) for a CI server, with each condition and its limit as a test"
        " case.",
    )


@dataclass
class Results(FullPaths, Printed):
    recipe: Path = setting(
        None,
        metavar="FILE",
        written=True,
        help="Also write the recipe (.json), from which relscope figure draws the same numbers.",
    )
