"""Agents set no option to which a command writes: given a file, an unmarked option leaves it as it was."""

import contextlib

import pytest

from relcore.base.names import COMMANDS
from relcore.cli import main, parser_of
from relcore.commands.parser import written

pytestmark = pytest.mark.usefixtures("own_store")

FOREVER = {"app", "mcp"}  # they serve until they are stopped
CALLS = """
available
encode digits --encoder pixels --limit 40
project first.npz --anchors 7 -o made.npz
compare first.npz second.npz --anchors 7
explain first.npz second.npz
axis first.npz second.npz --from w1 --to w2
audit first.npz second.npz --anchors 30
drift first.npz second.npz
adapt adapter
stitch first.npz second.npz --anchors 12
invert first.npz second.npz --anchors 12
link first.npz second.npz --pairs 40 --hide
universe first.npz second.npz
passport check card.safetensors second.npz
check first.npz
study
migrate first.npz second.npz --no-curve
choose first.npz second.npz
export first.npz second.npz --atlas rows.parquet
figure recipe.json -o made.csv
training .
"""
BEFORE = {
    "adapt": "migrate first.npz second.npz --no-curve --export adapter",
    "passport": "passport make first.npz -o card.safetensors",
    "training": "project first.npz --anchors 7 -o step-1.npz",
    "figure": "compare first.npz second.npz --anchors 9 --recipe recipe.json",
}


def options(name):
    """Flag → action, for options that may be a path and are neither marked as written nor closed to agents."""
    for action in parser_of([name]).called._actions:
        one = getattr(action, "setting", None)
        free = action.option_strings and action.nargs != 0 and not action.choices
        free = free and action.metavar != "VALUE"  # settings of encoders, which a spec keeps
        if free and not (one and (one.number or one.choices)) and action.dest not in ("store", "scheduler"):
            yield action.option_strings[-1], action


@pytest.mark.parametrize("name", [name for name in COMMANDS.own if name not in FOREVER])
def test_an_unmarked_option_is_not_written_to(name, files, run, tmp_path, capsys, one_queue):
    call = next(line.split() for line in CALLS.splitlines() if line.split()[:1] == [name])
    if name in BEFORE:
        run(BEFORE[name])
    assert main(call) in (0, 1), capsys.readouterr().err  # the control: without more options it does its work
    for victim in ("victim.md", "victim.npz"):
        (tmp_path / victim).write_bytes(b"\0 victim")
    before = contents(tmp_path)
    for flag, action in options(name):
        victim = "victim.npz"
        if str(action.metavar).endswith(".md"):
            victim = "victim.md"
        if not written(action):
            with contextlib.suppress(SystemExit):
                main([*call, flag, victim])
            assert contents(tmp_path) == before, flag


def contents(folder):
    found = [one for one in folder.rglob("*") if one.is_file() and folder / "store" not in one.parents]
    return {
        str(one.relative_to(folder)): one.read_bytes() for one in found if not one.name.startswith("made.")
    }
