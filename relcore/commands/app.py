"""app: start Streamlit's server with the app, which opens the spaces that are named."""

from __future__ import annotations

import argparse
import json
import os
import sys
from dataclasses import dataclass, replace
from importlib.util import find_spec
from pathlib import Path

from relcore.base import access, records, stopping
from relcore.base.errors import missing_library
from relcore.base.settings import setting
from relcore.base.text import visible
from relcore.catalog.catalog import SpaceSpec, is_address, load
from relcore.catalog.naming import SPACE_HELP, space_specs
from relcore.catalog.row_tables import with_their_tables
from relcore.commands.running import Bar, command
from relcore.runs.store import Context, Store
from relcore.stores.index import parse_place


@dataclass
class AppOptions:
    spaces: tuple[str, ...] = setting(metavar="SPACE", nargs="*", help=SPACE_HELP)
    port: int | None = setting(
        None, low=0, high=65535, help="Where the app listens; default 8501, or the next free port."
    )
    share: bool = setting(
        False,
        help="Let other machines use the app, too. It then reads only $RELSCOPE_DATA, the files named here"
        " and uploads (the same as RELSCOPE_SHARE=1).",
    )
    no_token: bool = setting(
        False,
        help="Let everybody in who reaches the port, other accounts of this machine, too. By default a"
        " browser must show a token once: that of the printed link, which is new at each start, or"
        " $RELSCOPE_TOKEN.",
    )
    no_browser: bool = setting(False, help="Do not open a browser; the terminal shows the link.")
    shards: bool = setting(
        False, help="Open each folder as one space of shards, also where it has fewer rows."
    )
    sample: int = setting(
        200_000,
        low=1,
        help="Rows of a folder of shards, drawn by a hash of their ids: of two folders with the same ids the"
        " same rows.",
    )


@command(
    (AppOptions,),
    "The first two become source and target. A table without vectors and with as many rows as the file"
    " before it gives that file its ids, labels and texts. A folder of vector files, as of checkpoints,"
    " opens all of them. A folder of shards with more than a million rows, or at an address such as"
    " s3://…, opens as a sample of its rows. Stop the app with Ctrl-C.",
    ("first.npy second.parquet", "first.npy metadata.csv second.parquet"),
)
def run_app(options: argparse.Namespace) -> None:
    if find_spec("streamlit") is None:
        raise missing_library("streamlit")
    shared = options.share or access.is_shared()
    os.environ.pop(access.ENVIRONMENT, None)  # whoever runs the command opens these files to everybody
    specs = [records.to_json(spec) for spec in specs_of_names(options.spaces, options)]
    settings = [f"--server.port={options.port}"] if options.port else []
    settings += ["--server.headless=true"] if options.no_browser else []
    environment = {**os.environ, access.OPENED: json.dumps(specs)}
    if shared:
        settings += ["--server.address=0.0.0.0", "--server.allowedHosts=*"]
        environment[access.ENVIRONMENT] = "1"
        data = os.environ.get(access.DATA)
        reads = f"the files named in this command{f' and the folder {data}' if data else ''}"
        who = "can reach this port" if options.no_token else "has the link below"
        print(
            f"This app is shared: everybody who {who} can use it, and its computing time. It reads only"
            f" uploads and {reads}.",
            flush=True,
        )
    if options.no_token:
        environment[access.NO_TOKEN] = "1"
    package = Path(__file__).parents[1]  # from a wheel, which contains the app; else from the checkout
    root = package / "_app" if (package / "_app").is_dir() else package.parent
    place = root / "app"
    start = [str(place / "server" / "launch.py"), "run", str(place / "serve.py")]
    command = [sys.executable, "-P", *start, *settings]
    stopping.block_signals()
    os.execve(sys.executable, command, environment)


def specs_of_names(names: list[str], options: argparse.Namespace | None = None) -> list[SpaceSpec]:
    """The spec of each name, with full paths; all are loaded once, so that errors appear here.

    With `options`, folders that are too large are replaced by samples.
    """
    specs = []
    for name in names:
        specs += (options and _sample(options, name)) or space_specs(name)
    specs = with_their_tables(specs)
    for spec in specs:
        load(spec, again=True)
    return [_with_full_paths(spec) for spec in specs]


def _sample(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """The sample of a folder of shards, drawn with a progress bar if the store lacks it; [] for another
    space."""
    from relcore.sharded.operations import sample_job, sample_spec, too_large
    from relcore.sharded.space import ShardedSpace

    index, asked = parse_place(name), options.shards or is_address(name)
    folder = is_address(name) or os.path.isdir(access.expand_home(name))
    if not folder or (index is not None and index.where != name):
        return []
    if not asked and find_spec("fsspec") is None:  # a folder of checkpoints needs none
        return []
    space = ShardedSpace.open(name) if asked else too_large(name)
    if space is None:
        return []
    spec, store = sample_spec(space, options.sample), Store()
    if not store.has(key := spec.option("key")):
        with Bar(options) as bar, Context(key, store, bar.event).sending() as context:
            sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows, drawn by a hash of their ids"
    print(f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}", file=sys.stderr)
    return [spec]


def _with_full_paths(spec: SpaceSpec) -> SpaceSpec:
    """The spec of a file or an index that leads to the same place from any folder."""
    if spec.source not in ("file", "index"):
        return spec
    options = dict(spec.options)
    if "metadata" in options:
        options["metadata"] = str(Path(options["metadata"]).resolve())
    return replace(spec, name=str(Path(spec.name).resolve()), options=tuple(options.items()))
