"""app: Streamlit's server on the app, which opens on the spaces that are named."""

from __future__ import annotations

import argparse
import json
import os
import sys
from importlib.util import find_spec
from pathlib import Path

OPENED = "RELSCOPE_OPEN"  # the environment variable by which a new session knows the spaces, as JSON


def add_arguments(parser: argparse.ArgumentParser) -> None:
    from relcore.commands.naming import SPACE_HELP

    parser.description += " The first two become source and target, if they share ids. Stop the app with Ctrl-C."
    parser.add_argument("spaces", metavar="SPACE", nargs="*", help=SPACE_HELP)
    parser.add_argument("--port", type=int, metavar="N", help="where the app listens; default 8501, or the next free port")
    parser.add_argument("--no-browser", action="store_true", help="do not open a browser; the terminal shows the address")
    parser.epilog = "example:\n  relscope app first.npy second.parquet"


def run(options: argparse.Namespace) -> None:
    from relcore import record
    from relcore.extras import missing_library

    if find_spec("streamlit") is None:
        raise missing_library("streamlit")
    specs = [record.to_json(one) for one in opened(options.spaces)]
    settings = [f"--server.port={options.port}"] if options.port else []
    settings += ["--server.headless=true"] if options.no_browser else []
    command = [sys.executable, "-P", "-m", "streamlit", "run", str(main_script()), *settings]
    os.execve(sys.executable, command, {**os.environ, OPENED: json.dumps(specs)})


def opened(names: list[str]) -> list:
    """The `SpaceSpec` of each name, with the full path of files; all are loaded once, so that errors appear here.

    Raises
    ------
    SpaceError
        A space that cannot be loaded.
    """
    from dataclasses import replace

    from relcore.commands.naming import space_spec
    from relcore.recipe import load_again

    specs = []
    for name in names:
        spec = space_spec(name)
        load_again(spec)
        specs.append(replace(spec, name=str(Path(spec.name).resolve())) if spec.source == "file" else spec)
    return specs


def main_script() -> Path:
    """The app's entry point: of an installed wheel, inside the package; else that of the checkout."""
    package = Path(__file__).parents[1]
    bundled = package / "_app"
    return (bundled if bundled.is_dir() else package.parent) / "app" / "main.py"
