"""The two commands that serve until they are stopped: `app`, and `mcp`, which offers commands as tools to AI
agents (Model Context Protocol). Each call of a tool runs a command in a new process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from relcore.base import access, records, stopping
from relcore.base.errors import SpaceError, did_you_mean, missing_library, quote
from relcore.base.settings import setting
from relcore.base.text import visible
from relcore.base.version import __version__
from relcore.catalog.catalog import SpaceSpec, is_address, load
from relcore.catalog.naming import SPACE_HELP, space_specs
from relcore.catalog.row_tables import with_their_tables
from relcore.commands.parser import written
from relcore.commands.running import Bar, command
from relcore.runs.store import Context, Store
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
        reads = f"the files named in this command{f' and the folder {data}' if data else ''}"
        who = "has the link below"
        if options.no_token:
            who = "can reach this port"
        print(
            f"This app is shared: everybody who {who} can use it, and its computing time. It reads only"
            f" uploads and {reads}.",
            flush=True,
        )
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
    named = ((options and _sample(options, name)) or space_specs(name) for name in names)
    specs = with_their_tables([spec for specs in named for spec in specs])
    for spec in specs:
        load(spec, again=True)
    return [_with_full_paths(spec) for spec in specs]


def _sample(options: argparse.Namespace, name: str) -> list[SpaceSpec]:
    """If `name` is a folder of shards that is too large, a list with the spec of a sample of its rows;
    otherwise []. If the store lacks the sample, it is drawn now, with a progress bar."""
    from relcore.sharded.operations import sample_job, sample_spec, too_large
    from relcore.sharded.space import ShardedSpace

    index = parse_place(name)
    asked = options.shards or is_address(name)
    folder = is_address(name) or os.path.isdir(access.expand_home(name))
    if not folder or (index is not None and index.where != name):
        return []
    if not asked and find_spec("fsspec") is None:  # without fsspec, a folder counts as one of checkpoints
        return []
    if asked:
        space = ShardedSpace.open(name)
    else:
        space = too_large(name)
    if space is None:
        return []
    spec = sample_spec(space, options.sample)
    store = Store()
    if not store.has(key := spec.option("key")):
        with Bar(options) as bar, Context(key, store, bar.event).sending() as context:
            sample_job(context, place=space.place, n_rows=options.sample)
    rows = f"{int(spec.option('rows')):,} of {space.n:,} rows, drawn by a hash of their ids"
    print(f"{visible(name)}: {len(space.shards):,} shards; the app shows {rows}", file=sys.stderr)
    return [spec]


def _with_full_paths(spec: SpaceSpec) -> SpaceSpec:
    if spec.source not in ("file", "index"):
        return spec
    full = [(name, str(Path(text).resolve()) if name == "metadata" else text) for name, text in spec.options]
    return replace(spec, name=str(Path(spec.name).resolve()), options=tuple(full))


# Command that an agent may call → the options that are fixed, so that it answers a question and writes no
# file.
TOOLS: dict[str, dict[str, str]] = {
    "available": {},
    "compare": {},
    "migrate": {},
    "drift": {},
    "passport": {"verb": "check"},
    "check": {},
    "link": {},
}
_OURS = {"device", "full_paths", "quiet", "scheduler", "store"}  # options that only the server sets
_CHILD = "import sys; from relcore.commands.servers import answer; sys.exit(answer(sys.argv[1:]))"
# maximum numbers of rows and of ids in an answer to an agent
_MOST_ITEMS = 100
_MOST_TEXTS = 10
_LIMITS = (
    f"this server reads only the data folder ({access.DATA}) and the places it was started with; start it"
    " with this place, as relscope mcp PLACE"
)


@dataclass
class ServerOptions:
    places: tuple[str, ...] = setting(
        metavar="PLACE",
        nargs="*",
        help="a file, a folder, a vector index or an address that the agent may read, too",
    )


@command(
    (ServerOptions,),
    f"The tools are {', '.join(TOOLS)}: the options of these commands, their numbers as JSON, their"
    " errors in one line. No tool writes a file. They read the bundled spaces, $RELSCOPE_DATA, and the"
    " places that are named here. An agent's client starts this command and talks to it on stdin and"
    " stdout.",
    ("~/vectors lancedb:store#notes",),
)
def run_mcp(options: argparse.Namespace) -> None:
    if find_spec("mcp") is None:
        raise missing_library("mcp")
    import anyio
    import mcp_types as types
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    environment = _environment(options.places)
    folders = [one["name"] for one in json.loads(environment[access.OPENED])]
    readable = [*filter(None, [os.environ.get(access.DATA)]), *folders]

    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)

    async def listed(*_: Any) -> types.ListToolsResult:
        about = {name: {"description": _parser(name).description, "annotations": hints} for name in TOOLS}
        tools = [types.Tool(name=name, input_schema=schema_of(name), **more) for name, more in about.items()]
        return types.ListToolsResult(tools=tools)

    async def called(_: Any, asked: types.CallToolRequestParams) -> types.CallToolResult:
        try:
            command = command_of(asked.name, asked.arguments or {})
        except SpaceError as error:
            return result(2, "", f"{error}")
        ran = await anyio.run_process(
            [sys.executable, "-P", "-c", _CHILD, *command, "--quiet"],
            check=False,
            env=environment,
            # The command runs in the first readable folder, where relative paths start.
            cwd=next(filter(os.path.isdir, readable), None),
        )
        return result(ran.returncode, ran.stdout.decode(), ran.stderr.decode())

    def result(code: int, out: str, err: str) -> types.CallToolResult:
        """Turn the exit code and the output of a command into an answer to an agent. Exit code 1 means an
        alarm, which is a valid answer like 0. All other codes are errors."""
        told = [line.removeprefix("relscope: ") for line in err.strip().splitlines()]
        answered = code in (0, 1) and bool(out)
        record = short_record(out) if answered else None
        if answered:
            texts = [json.dumps(record, indent=2, ensure_ascii=False), *told]
        else:
            texts = told[-1:]
        content = [types.TextContent(text=text) for text in texts]
        return types.CallToolResult(content=content, structured_content=record, is_error=not answered)

    async def serve() -> None:
        about = f"Files are read below: {', '.join(map(visible, readable)) or 'none'}."
        server = Server(
            "relscope", version=__version__, instructions=about, on_list_tools=listed, on_call_tool=called
        )
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

    anyio.run(serve)


def _environment(places: Sequence[str]) -> dict[str, str]:
    """The environment variables for the processes that run commands. They restrict the files that may be read
    to these places (see `relcore.base.access`)."""
    opened = []
    for text in places:
        index = parse_place(text)
        if is_address(text) or (index and not index.is_file):
            opened.append({"source": "sample", "name": text})
        place = index.where if index else text
        if not is_address(place) and not (index and index.address):
            path = access.resolve_links(access.expand_home(place))
            if path is None or not path.exists():
                raise SpaceError(f"{text!r:.200}: expected a file or folder, got a path where there is none")
            opened.append({"source": "folder", "name": str(path)})
    paths = os.pathsep.join(filter(None, [str(Path(__file__).parents[2]), os.environ.get("PYTHONPATH")]))
    return {**os.environ, access.OPENED: json.dumps(opened), access.ENVIRONMENT: "1", "PYTHONPATH": paths}


def answer(arguments: Sequence[str]) -> int:
    """Run a command for an agent, and return its exit code. The command may read only the paths that the
    server opened to agents."""
    from relcore.cli import main

    access.set_asker(lambda: access.AccessContext(limits=_LIMITS))
    return main(arguments, check=need_open)


def need_open(options: argparse.Namespace) -> None:
    """Raise a SpaceError unless the caller may read every path in these options. Loading a space checks its
    path again, but paths of judgements, pairs and thresholds are checked only here.
    """
    for value in vars(options).values():
        for one in value if isinstance(value, list | tuple) else [value]:
            if isinstance(one, Path):
                access.readable_path(one)
            elif isinstance(one, str):
                _need_open_name(one)


def _need_open_name(text: str) -> None:
    index = parse_place(text)
    served = index is not None and index.address
    if (index and not index.is_file) or (is_address(text) and not served):
        access.need_own_machine(text)
    if served or is_address(text):
        return
    place = access.expand_home(index.where if index else text.partition("#")[0])
    # Links are also refused: the answer must not reveal where a link out of the folder leads.
    if place.is_absolute() or ".." in place.parts or any(map(os.path.lexists, [place, *place.parents[:-1]])):
        access.readable_path(place)


@cache
def _parser(name: str) -> argparse.ArgumentParser:
    from relcore.commands.parser import parser_of

    return parser_of([name]).called


def _arguments(name: str) -> Iterator[argparse.Action]:
    """The arguments of a command that an agent may set: all except the names of files to write, and options
    that the server sets."""
    for action in _parser(name)._actions:
        hidden = action.help in (None, argparse.SUPPRESS) or isinstance(action, argparse._HelpAction)
        if not (hidden or written(action) or action.dest in {*_OURS, "format", *TOOLS[name]}):
            yield action


def schema_of(name: str) -> dict[str, Any]:
    """The JSON Schema of the arguments of a tool, which is the command `name`."""
    help_of = _parser(name)._get_formatter()._expand_help
    properties = {one.dest: {**_type(one), "description": help_of(one)} for one in _arguments(name)}
    required = [one.dest for one in _arguments(name) if one.required]
    return {
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": False,
    }


def _type(action: argparse.Action) -> dict[str, Any]:
    setting = getattr(action, "setting", None)
    if action.nargs == 0:
        return {"type": "boolean"}
    if action.nargs in ("+", "*") or (setting and setting.is_tuple):
        return {"type": "array", "items": {"type": "integer" if setting and setting.number else "string"}}
    if setting and setting.number:
        bounds = {"minimum": setting.low, "maximum": setting.high}
        known = {name: value for name, value in bounds.items() if value is not None}
        return {"type": "integer" if setting.number is int else "number", **known}
    choices = action.choices or (setting and setting.choices)
    return {"type": "string", **({"enum": list(choices)} if choices else {})}


def command_of(name: str, given: Mapping[str, Any]) -> list[str]:
    """Turn the arguments that an agent gives to a tool into a command line.

    Raises
    ------
    SpaceError
        The tool or an argument is unknown, a value has another type, or a name looks like an option.
    """
    if name not in TOOLS:
        raise SpaceError(f"expected one of {', '.join(TOOLS)}, got {name!r:.80}{did_you_mean(name, TOOLS)}")
    known = {action.dest: action for action in _arguments(name)}
    if unknown := [one for one in given if one not in known]:
        near = did_you_mean(unknown[0], known)
        raise SpaceError(f"{name}: expected arguments among {', '.join(known)}, got {quote(unknown)}{near}")
    options = ["--json"]
    places = []
    fixed = TOOLS[name]
    for action in _parser(name)._actions:
        if action.dest in fixed:
            value = fixed[action.dest]
        else:
            value = given.get(action.dest)
        if value is None or (action.dest not in fixed and action is not known[action.dest]):
            continue
        values = [_text(action, one) for one in (value if isinstance(value, list) else [value])]
        if action.nargs == 0:
            if not isinstance(value, bool):
                raise SpaceError(f"{action.dest}: expected true or false, got {value!r:.80}")
            no = [flag for flag in action.option_strings if flag.startswith("--no-")]
            if value:
                options += action.option_strings[:1]
            else:
                options += no[:1]
        elif action.option_strings:
            options.append(f"{action.option_strings[0]}={','.join(values)}")
        else:
            places += values
    return [name, *options, *places]


def _text(action: argparse.Action, value: Any) -> str:
    if isinstance(value, dict | list) or "\0" in str(value):
        raise SpaceError(f"{action.dest}: expected a text or a number, got {value!r:.80}")
    if not action.option_strings and str(value).startswith("-"):
        raise SpaceError(
            f"{action.dest}: expected a name that does not begin with -, got {value!r:.80}; write ./{value}"
        )
    return str(value)


def short_record(text: str) -> dict[str, Any]:
    """Shorten the JSON report of a command for an agent. Lists are cut after 100 rows or 10 ids and moved to
    the end, and `left_out` has the number of missing entries of each."""
    record = json.loads(text)
    left_out = {}
    for name, value in list(record.items()):
        texts = isinstance(value, list) and all(isinstance(one, str) for one in value)
        most = _MOST_TEXTS if texts else _MOST_ITEMS
        if isinstance(value, list) and len(value) > most:
            left_out[name] = len(value) - most
            record[name] = record.pop(name)[:most]
    return record | ({"left_out": left_out} if left_out else {})
