"""The tools of `relscope mcp` are the commands: their options, their numbers to the digit, their one-line errors;
and they read what is open to them."""

import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from relcore.agents import command as mcp
from relcore.base import access
from relcore.base.errors import SpaceError
from relcore.base.names import TOOLS
from relcore.cli import main

pytestmark = pytest.mark.usefixtures("own_store")

TWO = {"source": "first.npz", "target": "second.npz"}
VERSIONS = {"old": "first.npz", "new": "second.npz"}
ASKED = {
    "available": ({"data": "."}, "available --data ."),
    "compare": (
        TWO | {"anchors": "30", "k": 7, "metrics": ["mrr", "cka"]},
        "compare first.npz second.npz --anchors 30 -k 7 --metrics mrr,cka",
    ),
    "explain": (TWO | {"k": 7}, "explain first.npz second.npz -k 7"),
    "migrate": (VERSIONS | {"curve": False}, "migrate first.npz second.npz --no-curve"),
    "choose": ({"places": ["first.npz", "second.npz"]}, "choose first.npz second.npz"),
    "drift": (VERSIONS, "drift first.npz second.npz"),
    "passport": ({"files": ["card.safetensors", "second.npz"]}, "passport check card.safetensors second.npz"),
    "check": (
        {"space": "first.npz", "trusted": "second.npz", "fdr": 0.1},
        "check first.npz --trusted second.npz --fdr 0.1",
    ),
    "link": (TWO | {"pairs": "40", "hide": True}, "link first.npz second.npz --pairs 40 --hide"),
    "axis": (TWO | {"from": "w1", "to": "w2"}, "axis first.npz second.npz --from w1 --to w2"),
}


def test_no_tool_offers_to_write_a_file():
    offered = {name: set(mcp.schema_of(name)["properties"]) for name in TOOLS.own}
    writes = {"output", "recipe", "export", "plan", "repair", "store", "scheduler", "format"}
    assert not writes & set.union(*offered.values())
    assert "verb" not in offered["passport"]


@pytest.mark.parametrize(
    ("name", "given", "told"),
    [
        ("compar", {}, "did you mean 'compare'"),
        ("compare", {"anchrs": "3"}, "got 'anchrs'; did you mean 'anchors'"),
        ("compare", {"output": "x.npz"}, "got 'output'"),
        ("compare", {"pair_by_row": "yes"}, "pair_by_row: expected true or false"),
        ("compare", {"source": "--recipe=x.json"}, "write ./--recipe"),
        ("compare", {"k": {"of": 3}}, "k: expected a text or a number"),
    ],
)
def test_a_call_that_cannot_be_is_refused(name, given, told):
    with pytest.raises(SpaceError, match=told):
        mcp.command_of(name, given)


def test_a_long_list_is_cut_and_keeps_digits():
    text = json.dumps({"chance": 0.1 + 0.2, "rows": [{"score": 1 / 3}] * 130, "notes": []}, indent=2)
    record = mcp.short_record(text)
    assert record["left_out"] == {"rows": 30}
    assert (record["chance"], record["rows"][99]["score"], len(record["rows"])) == (0.1 + 0.2, 1 / 3, 100)


@pytest.fixture
def session(tmp_path, monkeypatch):
    """Call tools by the official client. The server is a process, and runs each call in a process of its own."""
    anyio = pytest.importorskip("anyio")
    pytest.importorskip("mcp", reason='the extra is not installed: pip install "relscope[mcp]"')
    from mcp import ClientSession, StdioServerParameters
    from mcp.client.stdio import stdio_client

    def talk(*calls, places=(str(tmp_path),)):
        async def talked():
            command = ["-m", "relcore", "mcp", *places]
            environment = dict(os.environ, PYTHONPATH=str(Path(mcp.__file__).parents[2]))
            parameters = StdioServerParameters(command=sys.executable, args=command, env=environment)
            async with stdio_client(parameters) as streams, ClientSession(*streams) as client:
                await client.initialize()
                tools = (await client.list_tools()).tools
                return tools, [await client.call_tool(name, given) for name, given in calls]

        with ThreadPoolExecutor(1) as thread:  # Playwright keeps a loop in this one
            return thread.submit(anyio.run, talked).result()

    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    return talk


def told(answer):
    return answer.content[0].text


def same(answer, arguments, capsys):
    assert not answer.is_error, answer.content
    assert main([*arguments.split(), "--json", "--quiet"]) in (0, 1)
    record = mcp.short_record(capsys.readouterr().out)
    return answer.structured_content == json.loads(told(answer)) == record


def test_a_client_gets_the_numbers_and_errors_of_commands(session, files, tmp_path, capsys):
    (tmp_path / "open").mkdir()
    given, command = ASKED["compare"]
    for name in files:
        (tmp_path / "open" / name).write_bytes((tmp_path / name).read_bytes())
    calls = [("compare", given), ("compare", given | {"source": str(tmp_path / "first.npz")})]
    tools, (answer, refused) = session(*calls, places=(str(tmp_path / "open"),))
    assert [tool.name for tool in tools] == list(TOOLS.own) == list(ASKED)
    assert all(tool.input_schema == mcp.schema_of(tool.name) for tool in tools)
    assert same(answer, command, capsys)
    assert refused.is_error
    assert "is not open to this session: this server reads only" in told(refused)


@pytest.mark.slow
def test_every_tool_has_the_numbers_of_its_command(session, files, run, capsys):
    run("passport make first.npz -o card.safetensors")
    _, answers = session(*((name, given) for name, (given, _) in ASKED.items()))
    for answer, (_, arguments) in zip(answers, ASKED.values(), strict=True):
        assert same(answer, arguments, capsys), arguments


@pytest.fixture
def limited(files, tmp_path, monkeypatch, capsys):
    """A command of an agent that may read a folder, in this process; what it prints on stderr."""
    folder = tmp_path / "open"
    folder.mkdir()
    for name in files:
        (tmp_path / name).rename(folder / name)
    (tmp_path / "secret.npz").write_bytes((folder / "first.npz").read_bytes())
    (tmp_path / "secret.txt").write_text("w1\tw2\n")
    (folder / "link.npz").symlink_to(tmp_path / "secret.npz")
    (folder / "out").symlink_to(tmp_path)
    for name in ("loop.npz", "first.ids.txt"):
        (folder / name).symlink_to(name)
    (folder / "spec.json").write_text(json.dumps({"source": "file", "name": str(tmp_path / "secret.npz")}))
    monkeypatch.delenv("RELSCOPE_DATA", raising=False)
    for name, value in mcp._environment([str(folder)]).items():
        monkeypatch.setenv(name, value)
    monkeypatch.chdir(folder)

    def limited(arguments):
        try:
            mcp.confine()
            code = main(arguments.split(), check=mcp.need_open)
        finally:
            access.set_asker(None)
        return code, capsys.readouterr().err

    return limited


def test_what_is_open_is_read(limited):
    assert limited("compare first.npz word2vec-novels --anchors 9")[0] == 2  # no common ids
    assert limited("compare first.npz second.npz --anchors w1,w2,w3,w4") == (0, "")


@pytest.mark.parametrize(
    "arguments",
    [
        "compare ../secret.npz second.npz",
        "compare link.npz second.npz",
        "compare spec.json second.npz",
        "compare out/secret.npz second.npz",
        "compare out/missing.npz second.npz",
        "compare loop.npz second.npz",
        "compare first.npz second.npz --anchors out/secret.txt",
        "compare first.npz second.npz --anchors out/missing.txt",
        "compare first.npz second.npz --links out/missing.txt",
        "link first.npz second.npz --pairs out/missing.txt",
        "drift first.npz second.npz --thresholds out/missing.toml",
        "migrate first.npz second.npz --answers out/missing.json",
        "migrate first.npz second.npz --queries-old out/secret.npz",
        "migrate first.npz second.npz --qrels out/secret.txt",
        "passport check out/secret.npz second.npz",
        "compare /no/such.npz second.npz",
        "compare /no/such.csv#id_column=id second.npz",
        "compare first.npz second.npz --anchors ../secret.txt",
        "compare lancedb:http://127.0.0.1:1#notes second.npz",
        "compare lancedb:../db#notes second.npz",
        "compare http://127.0.0.1:1/shards second.npz",
        "link first.npz second.npz --pairs ../secret.txt",
        "drift first.npz second.npz --thresholds /etc/passwd",
        "migrate first.npz second.npz --answers ../secret.txt",
        "available --data ..",
        "available ..",
    ],
)
def test_what_lies_elsewhere_is_closed(limited, arguments):
    code, err = limited(arguments)
    assert (code, err.count("\n")) == (2, 1), err
    assert "is not open to this session: this" in err


def test_description_says_which_part_of_a_command_the_tool_is():
    assert mcp._description("passport").startswith("This tool is relscope passport check. ")
    assert mcp._description("drift") == mcp._parser("drift").description


@pytest.mark.parametrize("page", ["docs/scripts.md", "docs/relscope/SKILL.md"])
def test_pages_name_every_tool(page):
    text = (Path(__file__).parents[3] / page).read_text(encoding="utf-8")
    [told] = [part for part in text.split("\n\n") if "`relscope mcp " in part]
    assert [name for name in TOOLS.own if name not in told] == []
