"""app: Streamlit's server on the app, which opens on the spaces that are named."""

from __future__ import annotations

import argparse
import json
import os
import socket
import sys
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from relcore.base import access, records
from relcore.base.access import unconfined
from relcore.base.errors import SpaceError
from relcore.base.libraries import missing_library
from relcore.catalog.catalog import SpaceSpec
from relcore.catalog.row_tables import joined
from relcore.commands.naming import SPACE_HELP, space_specs
from relcore.commands.options import option
from relcore.commands.shards import sampled_in_app
from relcore.spaces.selections import LINES
from relcore.tasks.recipe import load_again

SHARED = (
    "This app is shared, and has no login: everybody who can reach this port can use it, and its computing"
    " time. It reads only uploads, {data}. Others reach it at http://{host}:{port}"
)


def add_arguments(parser: argparse.ArgumentParser) -> None:
    parser.description += (
        " The first two become source and target. A table without vectors and with as many rows as the file"
        " before it gives that file its ids, labels and texts. A folder of vector files, as of checkpoints,"
        " opens all of them. A folder of shards with more than a million rows, or at an address such as"
        " s3://…, opens as a sample of its rows. Stop the app with Ctrl-C."
    )
    parser.add_argument("spaces", metavar="SPACE", nargs="*", help=SPACE_HELP)
    option(
        parser,
        "port",
        int | None,
        low=0,
        high=65535,
        help="Where the app listens; default 8501, or the next free port.",
    )
    option(
        parser,
        "share",
        bool,
        False,
        help=(
            "Let other machines use the app, too; there is no login, and the app then reads only"
            " $RELSCOPE_DATA, the files named here and uploads (the same as RELSCOPE_SHARE=1)."
        ),
    )
    option(parser, "no_browser", bool, False, help="Do not open a browser; the terminal shows the address.")
    option(
        parser,
        "print_selection",
        bool,
        False,
        help=(
            "Print each new selection as one line of JSON: ids, row numbers, names and digests of the spaces;"
            " a selection of more than 10,000 rows is written to a file that the line names. Everything else"
            " is then printed on stderr."
        ),
    )
    option(
        parser,
        "shards",
        bool,
        False,
        help="Open each folder as one space of shards, also where it has fewer rows.",
    )
    option(
        parser,
        "sample",
        int,
        200_000,
        low=1,
        help=(
            "Rows of a folder of shards, drawn by a hash of their ids: of two folders with the same ids the"
            " same rows."
        ),
    )
    parser.epilog = (
        "example:\n"
        "  relscope app first.npy second.parquet\n"
        "  relscope app first.npy metadata.csv second.parquet\n"
        "  relscope app first.npy second.npy --print-selection | python my_script.py"
    )


def run(options: argparse.Namespace) -> None:
    if find_spec("streamlit") is None:
        raise missing_library("streamlit")
    shared = options.share or access.shared()
    if options.print_selection and shared:
        raise SpaceError(
            "--print-selection: expected an app for one user, got --share or RELSCOPE_SHARE; what visitors"
            " select is theirs; share without --print-selection, and let them save session files"
        )
    with unconfined():  # whoever types the command opens these files to all who use the app
        specs = [records.to_json(spec) for spec in opened(options.spaces, options)]
    settings = [f"--server.port={options.port}"] if options.port else []
    settings += ["--server.headless=true"] if options.no_browser else []
    environment = {**os.environ, access.OPENED: json.dumps(specs)}
    if shared:
        settings += ["--server.address=0.0.0.0", "--server.allowedHosts=*"]
        environment[access.ENVIRONMENT] = "1"
        print(what_sharing_means(options.port), flush=True)
    if options.print_selection:
        environment[LINES] = str(lines_stream())
    script = str(main_script().with_name("serve.py"))
    command = [sys.executable, "-P", "-m", "streamlit", "run", script, *settings]
    os.execve(sys.executable, command, environment)


def lines_stream() -> int:
    """A descriptor of stdout for the lines of selections; what else the server prints goes to stderr from
    now on.
    """
    sys.stdout.flush()
    stream = os.dup(1)
    os.set_inheritable(stream, True)
    os.dup2(2, 1)
    return stream


def what_sharing_means(port: int | None) -> str:
    """Who can use a shared app, what it reads, and its address."""
    data = os.environ.get("RELSCOPE_DATA")
    reads = (
        f"the files named in this command and the folder {data}"
        if data
        else "and the files named in this command"
    )
    return SHARED.format(data=reads, host=own_address(), port=port or "8501, or the port that is named below")


def own_address() -> str:
    """This machine's address in its network; its name where it has none."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("10.255.255.255", 9))  # asks the routing table, and sends nothing
            return probe.getsockname()[0]
        except OSError:
            return socket.gethostname()


def opened(names: list[str], options: argparse.Namespace | None = None) -> list[SpaceSpec]:
    """The spec of each name, with the full path of files; all are loaded once, so that errors appear here.

    A table without vectors is the metadata of the file before it, see `relcore.catalog.row_tables.joined`.
    With `options`, folders that are too large are samples, see `sampled_in_app`.

    Raises
    ------
    SpaceError
        A space that cannot be loaded.
    """
    named = [(options and sampled_in_app(options, name)) or space_specs(name) for name in names]
    specs = joined([spec for several in named for spec in several])
    for spec in specs:
        load_again(spec)
    return [_with_full_paths(spec) for spec in specs]


def _with_full_paths(spec: SpaceSpec) -> SpaceSpec:
    """The spec of a file or an index that leads to the same place from any folder."""
    if spec.source not in ("file", "index"):
        return spec
    options = dict(spec.options)
    if "metadata" in options:
        options["metadata"] = str(Path(options["metadata"]).resolve())
    return replace(spec, name=str(Path(spec.name).resolve()), options=tuple(options.items()))


def main_script() -> Path:
    """The app's entry point: of an installed wheel, inside the package; else that of the checkout."""
    package = Path(__file__).parents[1]
    bundled = package / "_app"
    return (bundled if bundled.is_dir() else package.parent) / "app" / "main.py"
