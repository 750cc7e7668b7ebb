"""The command `encode`, which encodes pictures or texts as spaces."""

from __future__ import annotations

import argparse
from contextlib import suppress
from dataclasses import dataclass, replace

from relcore.base.access import expand_home
from relcore.base.errors import SpaceError, quote
from relcore.base.names import ENCODERS
from relcore.base.report import Report, Table
from relcore.base.settings import Setting, setting, settings_of
from relcore.catalog.catalog import SpaceSpec, encoding_specs, load
from relcore.catalog.encodings import encode_job, encoding_job_key, stored_encodings
from relcore.catalog.naming import DATASET_HELP, SEND_TO_HELP, dataset_named, encoder_named
from relcore.commands.command import command, flag, help_text, values_of
from relcore.commands.options import Printed, Scheduler
from relcore.commands.progress import follow, queue, say
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import columns_of, load_dataset, with_options
from relcore.encoders.encoder import Encoder
from relcore.encoders.sending import sending_to, size_of
from relcore.files.saving import SPACE_KINDS, save_space
from relcore.runs.store import Store


def add_encoder_settings(parser: argparse.ArgumentParser) -> None:
    """Add an option for each setting of the encoders."""
    group = parser.add_argument_group("settings of encoders")
    for dest, owners in encoder_settings().items():
        text = "; ".join(f"{name}: {help_text(one)}" for name, one in owners.items())
        with suppress(argparse.ArgumentError):  # a plugin may have an option --json of its own
            group.add_argument(flag(dest), dest=dest, metavar="VALUE", help=text)


_NAMED = (f"{name} ({entry.help})" if entry.help else name for name, entry in ENCODERS.items())
ENCODER_HELP = (
    f"encoders, separated by commas or given several times: {', '.join(_NAMED)}; or a .json file with an"
    " encoder"
)


@dataclass
class EncodeOptions:
    dataset: str = setting(metavar="DATASET", help=DATASET_HELP)
    encoder: str = setting(
        metavar="NAMES",
        nargs="append",
        help=ENCODER_HELP,
    )
    config: str = setting("", help="The configuration of a Hugging Face dataset, if it has several.")
    id_column: str = setting(
        None,
        help='The column of ids. Default: a column whose name means ids, such as id. "" makes ids from'
        " table and row, such as docs/0.",
    )
    send_to: tuple[str, ...] = setting((), metavar="HOST", nargs="append", help=SEND_TO_HELP)


@command(
    (EncodeOptions, DatasetSpec, Printed, Scheduler),
    "Encodings are saved in the store. Other commands take them by name or key; the app lists them under"
    " Spaces, Store.",
    ("digits --encoder mlp,cnn -o digits.npz", "wikipedia:16 --encoder minilm --layers 2,4,6"),
    suffixes={"output": SPACE_KINDS},
    output="Also write the space (.npz, .safetensors or .parquet). Several spaces become file-1.npz, …",
    numbered=True,
    more=add_encoder_settings,
)
def run_encode(options: argparse.Namespace) -> Report:
    store = Store()
    spec = dataset_spec(options)
    dataset = load_dataset(spec, store)
    specs = encoded(options, store, spec, dataset, encoders_of(options, dataset))
    rows = []
    for number, encoding in enumerate(specs, start=1):
        space = load(encoding, store)
        row = {"key": encoding.option("key"), "name": space.name, "n": len(space), "d": space.dimension}
        if goal := options.output:
            if len(specs) != 1:
                goal = goal.with_stem(f"{goal.stem}-{number}")
            save_space(space, goal)
            row["file"] = str(goal)
        rows.append(row)
    options.output = None  # the spaces are in files already, whose names the report lists
    return Report("", [Table.of("rows", rows)], {"dataset": spec.to_json()})


def encoded(
    options: argparse.Namespace, store: Store, spec: DatasetSpec, dataset: Dataset, encoders: list[Encoder]
) -> list[SpaceSpec]:
    missing = [encoder for encoder in encoders if stored_encodings(store, dataset.digest, encoder) is None]
    if missing:
        local = spec.source in ("file", "folder", "huggingface") and expand_home(spec.name).exists()
        # Make paths absolute: the workers of a cluster may have another working directory.
        placed = spec
        if local:
            placed = replace(spec, name=str(expand_home(spec.name).absolute()))
        with sending_to(options.send_to):
            for encoder in missing:
                if encoder.sends_to:
                    note = encoder.need_consent(*size_of(dataset))
                    say(options, note)
        with queue(options, len(missing)) as cluster:
            jobs = [
                cluster.submit(
                    encoding_job_key(dataset.digest, encoder),
                    encode_job,
                    title=f"{encoder.title} · {dataset.name}",
                    dataset=placed,
                    encoder=encoder,
                    send_to=tuple(options.send_to),
                )
                for encoder in missing
            ]
            follow(cluster, jobs, options)
    keys = {encoder: stored_encodings(store, dataset.digest, encoder) or {} for encoder in encoders}
    return [one for encoder in encoders for one in encoding_specs(store, spec, encoder, keys[encoder])]


def encoders_of(options: argparse.Namespace, dataset: Dataset) -> list[Encoder]:
    """The encoders that --encoder names, without repetition."""
    names = [name for part in ",".join(options.encoder).split(",") if (name := part.strip())]
    if not names:
        raise SpaceError("--encoder: expected the name of an encoder, got none")
    settings = {
        name: value for name in encoder_settings() if (value := getattr(options, name, None)) is not None
    }
    taken: set[str] = set()
    encoders = [encoder_named(name, settings, dataset, taken) for name in names]
    if unused := [flag(name) for name in settings if name not in taken]:
        raise SpaceError(
            f"expected options of {quote(names)}, got {quote(unused)}; remove them, or add the encoder that"
            " they belong to"
        )
    return list(dict.fromkeys(encoders))


def encoder_settings() -> dict[str, dict[str, Setting]]:
    """For each option of the command, the names of the encoders that have it, each with its `Setting`. An
    option of a plugin's encoder is left out if its name is taken; it can still be set in a .json file.
    """
    options: dict[str, dict[str, Setting]] = {}
    kinds = (EncodeOptions, DatasetSpec, Printed, Scheduler)
    taken = {one.option for kind in kinds for one in settings_of(kind).values() if one.help}
    taken |= {"command", "dataset", "device", "encoder", "output", "quiet", "run", "store"}
    for name, encoder in ENCODERS.loaded():
        for one in settings_of(encoder).values():
            if ENCODERS[name].plugin and one.option in taken:
                continue
            options.setdefault(one.option, {})[name] = one
    return options


def dataset_spec(options: argparse.Namespace) -> DatasetSpec:
    values = values_of(options, DatasetSpec)
    settings: tuple[tuple[str, str], ...] = ()
    if options.config:
        settings = (("config", options.config),)
    spec = dataset_named(options.dataset, settings)
    spec = replace(spec, **{name: value for name, value in values.items() if value not in ("", None)})
    column = options.id_column
    stored = options.dataset.lower().endswith(".json")
    if column is None and not stored and spec.source in ("file", "folder"):
        column = columns_of(spec).ids
    return with_options(spec, id_column=column or "")
