"""The command `app`, which opens the app in the browser."""

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
from relcore.base.names import PLUGIN_TABS
from relcore.base.settings import setting
from relcore.base.text import visible
from relcore.catalog.catalog import SpaceSpec, is_address, load
from relcore.catalog.naming import SPACE_HELP, space_specs
from relcore.catalog.row_tables import with_their_tables
from relcore.commands.command import command
from relcore.commands.progress import Bar
from relcore.runs.store import Store
from relcore.runs.work import Context
from relcore.stores.index import parse_place


@dataclass
class AppOptions:
    spaces: tuple[str, ...] = setting(metavar="SPACE", nargs="*", help=SPACE_HELP)
    port: int | None = setting(
        None, low=0, high=65535, help="Port of the app. Default: 8501, or the next free port."
    )
    share: bool = setting(
        False,
        help="Let other machines use the app, too. It then reads only $RELSCOPE_DATA, the files named here"
        " and uploads (the same as RELSCOPE_SHARE=1).",
    )
    send_to: tuple[str, ...] = setting(
        (),
        metavar="HOST",
        nargs="append",
        help="With --share: also let visitors send texts to the provider HOST, such as api.openai.com, with"
        f" the key of this machine (the same as {access.SEND_TO}=HOST,HOST). Without --share, the app asks.",
    )
    plugin_tabs: bool = setting(
        False,
        help="With --share: also show the tabs of plugins, which may read any file of this account (the same"
        f" as {PLUGIN_TABS}=1). Without --share they are always shown.",
    )
    no_token: bool = setting(
        False,
        help="Admit everybody who can reach the port, including other accounts of this machine. By default a"
        " browser must show a token once: $RELSCOPE_TOKEN, or the token in the link that each start prints.",
    )
    no_browser: bool = setting(False, help="Do not open a browser; the terminal shows the link.")
    shards: bool = setting(False, help="Open each folder as one space of shards, even if it has few rows.")
    sample: int = setting(
        200_000,
        low=1,
        help="Number of rows to draw from a folder of shards, by a hash of their ids. Two folders with the"
        " same ids give the same rows.",
    )


@command(
    (AppOptions,),
    "The first two spaces become source and target. A table without vectors and with as many rows as the file"
    " before it gives that file its ids, labels and texts. All vector files in a folder, such as"
    " checkpoints, are opened. A folder of shards with more than a million rows, or at an address such as"
    " s3://…, opens as a sample of its rows. Stop the app with Ctrl-C.",
    ("first.npy second.parquet", "first.npy metadata.csv second.parquet"),
    serves=True,
)
def run_app(options: argparse.Namespace) -> None:
    if find_spec("streamlit") is None:
        raise missing_library("streamlit")
    shared = options.share or access.is_shared()
    os.environ.pop(access.ENVIRONMENT, None)  # this command decides which files everybody may read
    specs = [records.to_json(spec) for spec in specs_of_names(options.spaces, options)]
    settings = []
    if options.port:
        settings = [f"--server.port={options.port}"]
    if options.no_browser:
        settings += ["--server.headless=true"]
    environment = {**os.environ, access.OPENED: json.dumps(specs)}
    if shared:
        settings += ["--server.address=0.0.0.0", "--server.allowedHosts=*"]
        environment[access.ENVIRONMENT] = "1"
        data = os.environ.get(access.DATA)
        reads = "the files named in this command"
        if data:
            reads = f"{reads} and the folder {data}"
        who = "has the link below"
        if options.no_token:
            who = "can reach this port"
        print(
            f"This app is shared: everybody who {who} can use it, and its computing time. It reads only"
            f" uploads and {reads}.",
            flush=True,
        )
    if options.send_to:
        environment[access.SEND_TO] = ",".join(options.send_to)
    if options.plugin_tabs:
        environment[PLUGIN_TABS] = "1"
    if options.no_token:
        environment[access.NO_TOKEN] = "1"
    package = Path(__file__).parents[1]  # a wheel contains the app; in a checkout it is beside relcore
    if (package / "_app").is_dir():
        root = package / "_app"
    else:
        root = package.parent
    place = root / "app"
    start = [str(place / "server" / "launch.py"), "run", str(place / "serve.py")]
    command = [sys.executable, "-P", *start, *settings]
    stopping.block_signals()
    os.execve(sys.executable, command, environment)


def specs_of_names(names: list[str], options: argparse.Namespace | None = None) -> list[SpaceSpec]:
    """The specs of the spaces that a user names, with absolute paths. All spaces are loaded once, so that
    errors appear before the server starts.

    With `options`, a folder of shards that is too large is replaced by a sample.
    """
    specs: list[SpaceSpec] = []
    for name in names:
        sample = []
        if options:
            sample = _sample(options, name)
        specs += sample or space_specs(name)
    specs = with_their_tables(specs)
    for spec in specs:
        load(spec, again=True)
    return [_with_full_paths(spec) for spec in specs]


def _sample(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """If `name` is a folder of shards that is too large, a list with the spec of a sample of its rows;
    otherwise []. If the store lacks the sample, it is drawn now, with a progress bar."""
    from relcore.sharded.space import ShardedSpace
    from relcore.sharded.survey import sample_job, sample_spec, too_large

    index = parse_place(name)
    if index is not None and index.where != name:
        return []
    if not is_address(name) and not os.path.isdir(access.expand_home(name)):
        return []
    space: ShardedSpace | None = None
    if options.shards or is_address(name):
        space = ShardedSpace.open(name)
    elif find_spec("fsspec") is not None:  # without fsspec, a folder counts as one of checkpoints
        space = too_large(name)
    if space is None:
        return []
    spec = sample_spec(space, options.sample)
    key = spec.option("key")
    store = Store()
    if not store.has(key):
        with Bar(options) as bar, Context(key, store, bar.event).sending() as context:
            sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows, drawn by a hash of their ids"
    print(f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}", file=sys.stderr)
    return [spec]


def _with_full_paths(spec: SpaceSpec) -> SpaceSpec:
    if spec.source not in ("file", "index"):
        return spec
    options = []
    for name, text in spec.options:
        if name == "metadata":
            text = str(Path(text).resolve())
        options.append((name, text))
    return replace(spec, name=str(Path(spec.name).resolve()), options=tuple(options))
