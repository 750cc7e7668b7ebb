"""The commands that list spaces and what a file holds, and that encode a dataset, as in Data."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path

import pandas as pd

from relcore.base.access import expand_home, regular_file
from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.report import Report, Table
from relcore.base.settings import Setting, setting, settings_of
from relcore.catalog.catalog import (
    SpaceSpec,
    available,
    encode_job,
    encoding_job_key,
    encoding_specs,
    ignored_columns,
    load,
    stored_encodings,
)
from relcore.catalog.naming import DATASET_HELP, dataset_named, encoder_named, space_specs
from relcore.commands.running import Printed, Scheduler, command, flag, follow, help_text, queue, values_of
from relcore.encoders.datasets import columns_of, load_dataset, with_options
from relcore.encoders.encoder import Dataset, DatasetSpec, Encoder
from relcore.files.columns import Choices, overview, size_in_words
from relcore.files.reading import column_roles, parts_of, shape_of
from relcore.files.saving import SPACE_KINDS, write_space
from relcore.files.tables import TABLES
from relcore.runs.store import Store

_WHERE = {"here": "On this machine", "needs the network": "Needs the network"}


@dataclass
class AvailableOptions:
    file: str = setting(
        metavar="FILE",
        nargs="?",
        help="a vector file or a folder of them: show rows and dimensions; of a table, what each of its"
        " columns is read as",
    )
    data: Path = setting(
        None,
        metavar="FOLDER",
        help="Also list the vector files in this folder (default: $RELSCOPE_DATA).",
    )


@command(
    (AvailableOptions, Printed),
    "Nothing is downloaded. With a table: what each of its columns is read as. Columns are chosen after"
    " the table's name, here and wherever a space is named: FILE#OPTION=VALUE#OPTION=VALUE, where the"
    " options are id_column, label_column, count_column, ignore with names separated by commas, and"
    " matrix for a file with several.",
    ("--data ~/vectors", "words.csv", "words.csv#id_column=word#ignore=year,note"),
)
def run_available(options: argparse.Namespace) -> Report:
    if options.data and not options.data.is_dir():
        raise SpaceError(f"--data: expected a folder, got {str(options.data)!r}")
    if options.file is not None:
        return file_report(options)
    entries = available(options.data)
    tables = []
    for where, title in _WHERE.items():
        rows = [("space", "rows", "dimensions", "MB", "")]
        for entry in entries:
            if entry.where == where:
                sizes = ("" if size is None else f"{size:,}" for size in (entry.n, entry.dimension))
                rows.append((entry.name, *sizes, f"{entry.size_bytes / 1e6:,.1f}", entry.description))
        tables += [Table(shown=rows, title=title)] if len(rows) > 1 else []
    table = {
        name: [getattr(entry, name) for entry in entries]
        for name in ("name", "n", "dimension", "size_bytes", "where", "description")
    }
    return Report("", [Table("spaces", pd.DataFrame(table, dtype=object)), *tables])


def file_report(options: argparse.Namespace) -> Report:
    """A report on the content of a file or a folder."""
    text = options.file
    specs = space_specs(text)
    if any(spec.source != "file" for spec in specs):
        raise SpaceError(
            f"{text!r:.80}: expected a vector file or a folder of them, got another space; name a file"
        )
    path = Path(specs[0].name)
    table = parts_of(path)[0] if path.is_dir() else path
    if len(specs) == 1 and table.suffix.lower() in TABLES:
        chosen = {name: value for name, value in specs[0].options if name.endswith("_column")}
        roles = column_roles(regular_file(table), Choices(**chosen, ignore=ignored_columns(specs[0])))
        rows = list(overview(roles))
        columns = pd.DataFrame(rows, columns=["column", "read_as", "why"])
        shown = Table("columns", columns, [("column", "read as", "why"), *rows])
        try:
            roles.check(table.name)
        except SpaceError:  # the table shows which column is unclear
            if options.format == "table":
                print(shown.text())
            raise
        facts = {"n": roles.n, "dimension": roles.dimension}
        return Report(size_in_words(roles.n, roles.dimension), [shown], facts)
    shapes = [(spec.name, *(shape_of(Path(spec.name)) or (None, None))) for spec in specs]
    rows = [("space", "rows", "dimensions")]
    for name, *shape in shapes:
        rows.append((name, *("unknown" if size is None else f"{size:,}" for size in shape)))
    columns = pd.DataFrame(shapes, columns=["name", "n", "dimension"], dtype=object)
    return Report("", [Table("spaces", columns, rows)])


def _add_settings(parser: argparse.ArgumentParser) -> None:
    group = parser.add_argument_group("settings of encoders")
    for dest, owners in _settings().items():
        text = "; ".join(f"{name}: {help_text(one)}" for name, one in owners.items())
        with suppress(argparse.ArgumentError):  # for example --json of a plugin
            group.add_argument(flag(dest), dest=dest, metavar="VALUE", help=text)


_NAMED = (f"{name} ({entry.help})" if entry.help else name for name, entry in ENCODERS.items())


@dataclass
class EncodeOptions:
    dataset: str = setting(metavar="DATASET", help=DATASET_HELP)
    encoder: str = setting(
        metavar="NAMES",
        nargs="append",
        help=f"encoders, separated by commas or given several times: {', '.join(_NAMED)}; or a .json file"
        " with an encoder",
    )
    config: str = setting("", help="The configuration of a Hugging Face dataset, if it has several.")
    id_column: str = setting(
        None,
        help='The column of its ids. Default: a column named as ids, such as id. "": ids of table and row,'
        " such as docs/0.",
    )


@command(
    (EncodeOptions, DatasetSpec, Printed, Scheduler),
    "Encodings are saved in the store. Other commands take them by name or key; the app lists them under"
    " Spaces, Store.",
    ("digits --encoder mlp,cnn -o digits.npz", "wikipedia:16 --encoder minilm --layers 2,4,6"),
    suffixes={"output": SPACE_KINDS},
    output="Also write the space (.npz, .safetensors or .parquet); of several file-1.npz, file-2.npz, …",
    more=_add_settings,
)
def run_encode(options: argparse.Namespace) -> Report:
    store, spec = Store(), dataset_spec(options)
    dataset = load_dataset(spec, store)
    specs, rows = encoded(options, store, spec, dataset, encoders_of(options, dataset)), []
    for number, encoding in enumerate(specs, start=1):
        space = load(encoding, store)
        row = {"key": encoding.option("key"), "name": space.name, "n": len(space), "d": space.dimension}
        if goal := options.output:
            goal = goal if len(specs) == 1 else goal.with_stem(f"{goal.stem}-{number}")
            write_space(space, goal)
            row["file"] = str(goal)
        rows.append(row)
    options.output = None  # each row of the report names its file
    return Report("", [Table.of("rows", rows)], {"dataset": spec.to_json()})


def encoded(
    options: argparse.Namespace, store: Store, spec: DatasetSpec, dataset: Dataset, encoders: list[Encoder]
) -> list[SpaceSpec]:
    missing = [encoder for encoder in encoders if stored_encodings(store, dataset.digest, encoder) is None]
    if missing:
        local = spec.source in ("file", "folder", "huggingface") and expand_home(spec.name).exists()
        # workers of a cluster may have another working folder
        placed = replace(spec, name=str(expand_home(spec.name).absolute())) if local else spec
        with queue(options, len(missing)) as cluster:
            jobs = []
            for encoder in missing:
                key, title = encoding_job_key(dataset.digest, encoder), f"{encoder.title} · {dataset.name}"
                jobs.append(cluster.submit(key, encode_job, title=title, dataset=placed, encoder=encoder))
            follow(cluster, jobs, options)
    specs = []
    for encoder in encoders:
        keys = stored_encodings(store, dataset.digest, encoder) or {}
        specs += encoding_specs(store, spec, encoder, keys)
    return specs


def encoders_of(options: argparse.Namespace, dataset: Dataset) -> list[Encoder]:
    """The encoders that --encoder names, each once."""
    names = [name.strip() for text in options.encoder for name in text.split(",") if name.strip()]
    if not names:
        raise SpaceError("--encoder: expected the name of an encoder, got none")
    given = {name: value for name in _settings() if (value := getattr(options, name, None)) is not None}
    taken: set[str] = set()
    encoders = [encoder_named(name, given, dataset, taken) for name in names]
    if unused := [flag(name) for name in given if name not in taken]:
        raise SpaceError(
            f"expected options of {quote(names)}, got {quote(unused)}; remove them, or add the encoder that"
            " they belong to"
        )
    return list(dict.fromkeys(encoders))


def _settings() -> dict[str, dict[str, Setting]]:
    """Option → each encoder that has it, with the setting. A plugin's option with a name of ours can only be
    set in .json files.
    """
    options: dict[str, dict[str, Setting]] = {}
    kinds = (EncodeOptions, DatasetSpec, Printed, Scheduler)
    taken = {one.option for kind in kinds for one in settings_of(kind).values() if one.help}
    taken |= {"command", "dataset", "device", "encoder", "output", "quiet", "run", "store"}
    for name, encoder in ENCODERS.loaded():
        mine = settings_of(encoder).values()
        for one in (one for one in mine if not (ENCODERS[name].plugin and one.option in taken)):
            options.setdefault(one.option, {})[name] = one
    return options


def dataset_spec(options: argparse.Namespace) -> DatasetSpec:
    given = values_of(options, DatasetSpec)
    spec = dataset_named(options.dataset, (("config", options.config),) if options.config else ())
    spec = replace(spec, **{name: value for name, value in given.items() if value not in ("", None)})
    column, stored = options.id_column, options.dataset.lower().endswith(".json")
    if column is None and not stored and spec.source in ("file", "folder"):
        column = columns_of(spec).ids
    return with_options(spec, id_column=column or "")
