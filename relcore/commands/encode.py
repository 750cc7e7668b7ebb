"""encode: a dataset through encoders into the store and into files, as on the Encode tab."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from relcore.catalog.catalog import SpaceSpec
    from relcore.encoders.dataset import Dataset, DatasetSpec
    from relcore.encoders.encoder import Encoder
    from relcore.runs.store import Store


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.options import add_dataset, add_encoders
    from relcore.commands.output import add_format, add_recipe
    from relcore.commands.running import add_scheduler

    parser.description += (
        " Encodings are saved in the store. Other commands take them by name or key; the app lists them under"
        " Spaces, Store."
    )
    add_dataset(parser)
    add_encoders(parser)
    parser.add_argument(
        "-o",
        "--output",
        type=Path,
        metavar="FILE",
        help=(
            "also write the space (.npz, .safetensors or .parquet); several spaces are written to file-1.npz,"
            " file-2.npz, …"
        ),
    )
    add_recipe(parser)
    add_scheduler(parser)
    add_format(parser)
    parser.epilog = (
        "example:\n"
        "  relscope encode digits --encoder mlp,cnn -o digits.npz\n"
        "  relscope encode wikipedia:16 --encoder minilm --layers 2,4,6"
    )


def add_settings(parser: argparse.ArgumentParser, arguments: Sequence[str]) -> None:
    from relcore.commands import options as encoders

    encoders.add_settings(parser, arguments)


def run(options: argparse.Namespace) -> None:
    import pandas as pd

    from relcore.catalog.catalog import load
    from relcore.commands.options import dataset_spec, encoders_of
    from relcore.commands.output import need_space_file, show, write_space
    from relcore.encoders.datasets import load_dataset
    from relcore.runs.store import Store

    need_space_file(options.output)
    store, spec = Store(), dataset_spec(options)
    dataset = load_dataset(spec, store)
    encoders = encoders_of(options, dataset)
    specs = encoded(options, store, spec, dataset, encoders)
    rows = []
    for number, one in enumerate(specs, start=1):
        space = load(one, store)
        row = {"key": one.option("key"), "name": space.name, "n": len(space), "d": space.dimension}
        if options.output:
            path = (
                options.output
                if len(specs) == 1
                else options.output.with_stem(f"{options.output.stem}-{number}")
            )
            write_space(space, path)
            row["file"] = str(path)
        rows.append(row)
    if options.recipe:
        _write_training(options, specs)
    table = pd.DataFrame(rows)
    cells = [[f"{value:,}" if isinstance(value, int) else value for value in row.values()] for row in rows]
    show(options, table, [[list(table.columns), *cells]], dataset=spec.to_json())


def encoded(
    options: argparse.Namespace, store: Store, spec: DatasetSpec, dataset: Dataset, encoders: list[Encoder]
) -> list[SpaceSpec]:
    """The spec of each output of each encoder, all of them in the store."""
    from relcore.catalog.catalog import encoding_specs
    from relcore.catalog.encoding import encode_job, encoding_job_key, stored_encodings
    from relcore.commands.running import engine, follow

    missing = [encoder for encoder in encoders if stored_encodings(store, dataset.digest, encoder) is None]
    if missing:
        with engine(options, len(missing)) as made:
            jobs = [
                made.submit(
                    encoding_job_key(dataset.digest, encoder),
                    encode_job,
                    title=f"{encoder.title} · {dataset.name}",
                    dataset=spec,
                    encoder=encoder,
                )
                for encoder in missing
            ]
            follow(made, jobs, options)
    found = [(encoder, stored_encodings(store, dataset.digest, encoder) or {}) for encoder in encoders]
    return [one for encoder, keys in found for one in encoding_specs(store, spec, encoder, keys)]


def _write_training(options: argparse.Namespace, specs: list[SpaceSpec]) -> None:
    from relcore.base.errors import SpaceError
    from relcore.commands.output import write_recipe
    from relcore.compare.figures import Training, training_of

    curves = {one: training_of(one) for one in specs}
    trained = [one for one, curve in curves.items() if curve]
    if not trained:
        raise SpaceError(
            "--recipe: expected an encoder that is trained in epochs, whose curves the figure shows, got"
            " none; omit --recipe"
        )
    write_recipe(options, Training(tuple(trained)).draw({one.name: curves[one] for one in trained}))
