"""Names of datasets on the command line."""

from __future__ import annotations

import argparse
import re
from dataclasses import replace
from typing import TYPE_CHECKING

from relcore.commands.numbers import whole

if TYPE_CHECKING:
    from relcore.sources.dataset import DatasetSpec

DATASET_HELP = (
    "digits, wikipedia, wikipedia:16 (sentences of 16 articles), parallel:en (everyday sentences in English), a table "
    "(.parquet, .csv, .tsv), a folder of pictures or tables, a Hugging Face dataset (owner/name), a dataset that the app "
    "lists, or a .json file with the spec of a dataset"
)
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


def add_dataset(parser: argparse.ArgumentParser) -> None:
    """DATASET, and which part of it."""
    parser.add_argument("dataset", metavar="DATASET", help=DATASET_HELP)
    parser.add_argument(
        "--limit", type=whole, metavar="N", help="use at most N items: the first ones, or equally many of each class"
    )
    parser.add_argument("--split", default="", help="the split to use, such as train or test, if there are several")
    parser.add_argument(
        "--config", default="", metavar="NAME", help="the configuration of a Hugging Face dataset, if it has several"
    )
    parser.add_argument(
        "--column", default="", metavar="NAME", help="the column of a table to encode; default: found automatically"
    )
    parser.add_argument(
        "--label-column", default="", metavar="NAME", help="the column of its labels; default: found automatically"
    )


def dataset_spec(options: argparse.Namespace) -> DatasetSpec:
    """The spec of the dataset that a user names.

    Raises
    ------
    SpaceError
        An unknown name, with similar ones.
    """
    spec = _named(options.dataset, options.config)
    given = {"split": options.split, "column": options.column, "label_column": options.label_column, "limit": options.limit}
    return replace(spec, **{name: value for name, value in given.items() if value not in ("", None)})


def _named(text: str, config: str) -> DatasetSpec:
    from relcore.access import expanded
    from relcore.commands.naming import did_you_mean, read_json
    from relcore.sources.dataset import DatasetSpec
    from relcore.sources.datasets import available_datasets
    from relcore.sources.hub_datasets import downloaded
    from relcore.sources.wikipedia import TASK
    from relcore.spaces import SpaceError

    listed = {entry.name: entry.spec for entry in available_datasets()}
    head, _, tail = text.partition(":")
    path = expanded(text)
    if text in listed and not path.exists():
        return listed[text]
    if head == "wikipedia" and tail.isdecimal():
        return DatasetSpec("wikipedia", options=tuple((dict(TASK.options) | {"articles": int(tail)}).items()))
    if head == "parallel":
        return DatasetSpec("parallel", tail)
    if path.suffix.lower() == ".json":
        return DatasetSpec.from_json(read_json(path, "a dataset's spec"))
    options = (("config", config),) if config else ()
    if path.is_file():
        return DatasetSpec("file", str(path))
    if path.is_dir():
        saved = (path / "dataset_dict.json").is_file() or (path / "state.json").is_file()
        return DatasetSpec("huggingface" if saved else "folder", str(path), options=options if saved else ())
    if _HUB_NAME.fullmatch(text) or downloaded(text):
        return DatasetSpec("huggingface", text, options=options)
    raise SpaceError(f"{text!r}: expected {DATASET_HELP}; nothing matches{did_you_mean(text, listed)}")
