"""The command `mcp`, which offers commands as tools to AI agents (Model Context Protocol). Each call of a
tool runs a command in a new process.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import TYPE_CHECKING, Any

from relcore.base import access
from relcore.base.errors import SpaceError, did_you_mean, missing_library, quote
from relcore.base.names import COMMANDS, TOOLS
from relcore.base.settings import Setting, setting
from relcore.base.text import visible
from relcore.base.version import __version__
from relcore.catalog.catalog import is_address
from relcore.commands.command import command
from relcore.commands.parser import written
from relcore.stores.index import parse_place

if TYPE_CHECKING:
    import mcp_types as types

_OURS = {
    "device",
    "full_paths",
    "quiet",
    "scheduler",
    "send_to",
    "store",
}  # options that only the server sets
_CHILD = """
import sys
from relcore.agents.command import confine, need_open
from relcore.cli import main

confine()
sys.exit(main(sys.argv[1:], check=need_open))
"""
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
    serves=True,
)
def run_mcp(options: argparse.Namespace) -> None:
    if find_spec("mcp") is None:
        raise missing_library("mcp")
    import anyio
    from mcp.server.lowlevel import Server
    from mcp.server.stdio import stdio_server

    environment = _environment(options.places)
    folders = _readable_folders(environment)

    async def list_tools(*_: Any) -> types.ListToolsResult:
        return _tools()

    async def call_tool(_: Any, call: types.CallToolRequestParams) -> types.CallToolResult:
        return await _call(call, environment, folders)

    async def serve() -> None:
        readable = ", ".join(map(visible, folders)) or "none"
        server = Server(
            "relscope",
            version=__version__,
            instructions=f"Files are read below: {readable}.",
            on_list_tools=list_tools,
            on_call_tool=call_tool,
        )
        async with stdio_server() as streams:
            await server.run(*streams, server.create_initialization_options())

    anyio.run(serve)


def _readable_folders(environment: Mapping[str, str]) -> list[str]:
    """The data folder, and the places that the server was started with."""
    folders = [place["name"] for place in json.loads(environment[access.OPENED])]
    data = environment.get(access.DATA)
    if data:
        folders.insert(0, data)
    return folders


def _tools() -> types.ListToolsResult:
    import mcp_types as types

    hints = types.ToolAnnotations(read_only_hint=True, open_world_hint=False)
    tools = [
        types.Tool(
            name=name,
            description=_description(name),
            input_schema=schema_of(name),
            annotations=hints,
        )
        for name in _names()
    ]
    return types.ListToolsResult(tools=tools)


def _description(name: str) -> str:
    """The description of a command, and which part of it the tool is, if its first word is fixed."""
    about = _parser(name).description or ""
    fixed = _fixed(name)
    words = [
        fixed[one.dest] for one in _parser(name)._actions if not one.option_strings and one.dest in fixed
    ]
    if words:
        return f"This tool is relscope {' '.join([name, *filter(None, words)])}. {about}"
    return about


async def _call(
    call: types.CallToolRequestParams, environment: Mapping[str, str], folders: Sequence[str]
) -> types.CallToolResult:
    """Run a tool as a command in a new process."""
    import anyio

    try:
        arguments = command_of(call.name, call.arguments or {})
    except SpaceError as error:
        return _answer(2, "", f"{error}")
    process = await anyio.run_process(
        [sys.executable, "-P", "-c", _CHILD, *arguments, "--quiet"],
        check=False,
        env=environment,
        # The command runs in the first readable folder, where relative paths start.
        cwd=next(filter(os.path.isdir, folders), None),
    )
    return _answer(process.returncode, process.stdout.decode(), process.stderr.decode())


def _answer(code: int, out: str, err: str) -> types.CallToolResult:
    """Turn the exit code and the output of a command into an answer to an agent. Exit code 1 means an alarm,
    which is a valid answer like 0. All other codes are errors."""
    import mcp_types as types

    messages = [line.removeprefix("relscope: ") for line in err.strip().splitlines()]
    failed = code not in (0, 1) or not out
    if failed:
        record = None
        texts = messages[-1:]
    else:
        record = short_record(out)
        texts = [json.dumps(record, indent=2, ensure_ascii=False), *messages]
    content = [types.TextContent(text=text) for text in texts]
    return types.CallToolResult(content=content, structured_content=record, is_error=failed)


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


def confine() -> None:
    """From here on, commands of this process may read only the paths that the server opened to agents."""
    access.set_asker(lambda: access.AccessContext(limits=_LIMITS))


def need_open(options: argparse.Namespace) -> None:
    """Raise a SpaceError unless the caller may read every path in these options. Loading a space checks its
    path again, but paths of judgements, pairs and thresholds are checked only here. Defaults, such as the
    address of a provider that is not used, name no path of the caller.
    """
    usual = {action.dest: action.default for action in _parser(options.arguments[0])._actions}
    for name, value in vars(options).items():
        if name in usual and value == usual[name]:
            continue
        if isinstance(value, list | tuple):
            values = value
        else:
            values = [value]
        for one in values:
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
    if (
        place.is_absolute()
        or ".." in place.parts
        or any(os.path.lexists(one) for one in (place, *place.parents[:-1]))
    ):
        access.readable_path(place)


def _names() -> list[str]:
    """The names of the tools whose code can be loaded."""
    return [name for name in TOOLS.working() if name in COMMANDS]


def _fixed(name: str) -> Mapping[str, str | None]:
    return TOOLS[name].load().fixed


@cache
def _parser(name: str) -> argparse.ArgumentParser:
    from relcore.commands.parser import parser_of

    return parser_of([name]).called


def _arguments(name: str) -> Iterator[argparse.Action]:
    """The arguments of a command that an agent may set: all except the names of files to write, and options
    that the server sets."""
    for action in _parser(name)._actions:
        hidden = action.help in (None, argparse.SUPPRESS) or isinstance(action, argparse._HelpAction)
        if not (hidden or written(action) or action.dest in {*_OURS, "format", *_fixed(name)}):
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
    """The JSON Schema of one argument."""
    setting = getattr(action, "setting", None) or Setting()
    if action.nargs == 0:
        return {"type": "boolean"}
    if action.nargs in ("+", "*") or setting.is_tuple:
        return {"type": "array", "items": {"type": "integer" if setting.number else "string"}}
    if setting.number:
        bounds = {"minimum": setting.low, "maximum": setting.high}
        known = {name: value for name, value in bounds.items() if value is not None}
        return {"type": "integer" if setting.number is int else "number", **known}
    text: dict[str, Any] = {"type": "string"}
    if choices := action.choices or setting.choices:
        text["enum"] = list(choices)
    return text


def command_of(name: str, arguments: Mapping[str, Any]) -> list[str]:
    """Turn the arguments that an agent gives to a tool into a command line.

    Raises
    ------
    SpaceError
        The tool or an argument is unknown, a value has another type, or a name looks like an option.
    """
    if name not in TOOLS:
        raise SpaceError(f"expected one of {', '.join(TOOLS)}, got {name!r:.80}{did_you_mean(name, TOOLS)}")
    known = {action.dest: action for action in _arguments(name)}
    if unknown := [one for one in arguments if one not in known]:
        near = did_you_mean(unknown[0], known)
        raise SpaceError(f"{name}: expected arguments among {', '.join(known)}, got {quote(unknown)}{near}")
    options = ["--json"]
    places = []
    fixed = _fixed(name)
    for action in _parser(name)._actions:
        if action.dest in fixed:
            value = fixed[action.dest]
        else:
            value = arguments.get(action.dest)
        if value is None or (action.dest not in fixed and action is not known[action.dest]):
            continue
        words = _words_of(action, value)
        if action.option_strings:
            options += words
        else:
            places += words
    return [name, *options, *places]


def _words_of(action: argparse.Action, value: Any) -> list[str]:
    """The words of a command line that give this value to an argument."""
    if isinstance(value, list):
        values = [_text(action, one) for one in value]
    else:
        values = [_text(action, value)]
    if action.nargs == 0:
        if not isinstance(value, bool):
            raise SpaceError(f"{action.dest}: expected true or false, got {value!r:.80}")
        flags = action.option_strings
        if not value:
            flags = [flag for flag in flags if flag.startswith("--no-")]
        return list(flags[:1])
    if action.option_strings:
        return [f"{action.option_strings[0]}={','.join(values)}"]
    return values


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
    if left_out:
        record["left_out"] = left_out
    return record
