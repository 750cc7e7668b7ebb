"""No command writes to a file that it reads. For every command, each option that writes is given the file of each
argument that reads: the command refuses it before any work begins."""

import os
from functools import cache

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.names import COMMANDS
from relcore.base.settings import Setting
from relcore.commands.outputs import need_unread
from relcore.commands.parser import parser_of, written

NO_FILES = {"help", "store", "device", "scheduler"}


@cache
def parser(name):
    return parser_of([name])


def arguments(name):
    """The arguments of a command that take a text or a path: those that write, and the others."""
    actions = parser(name).called._actions
    free = [one for one in actions if one.nargs != 0 and not one.choices and one.dest not in NO_FILES]
    settings = {one.dest: getattr(one, "setting", Setting()) for one in free}
    texts = [one for one in free if not (settings[one.dest].number or settings[one.dest].choices)]
    texts = [one for one in texts if one.metavar != "VALUE"]  # settings of encoders
    return [one for one in texts if written(one)], [one for one in texts if not written(one)]


EVERY = [(name, goal) for name in COMMANDS.own for goal in arguments(name)[0]]


def line_with(name, given):
    """A command line with these values by argument. Other positional arguments name files of their own."""
    flags = []
    places = []
    for action in parser(name).called._actions:
        dest = action.dest
        if action.option_strings:
            if dest in given or action.required:
                flags += [action.option_strings[0], given.get(dest, "other.npz")]
        elif action.choices:
            places.append(next(iter(action.choices)))
        else:
            places.append(given.get(dest, f"{dest}.npz"))
            if action.nargs == "+":
                places.append("more.npz")
    return [name, *places, *flags]


def need_unread_of(line):
    need_unread(parser(line[0]).called, parser(line[0]).parse_args(line))


def spelled(path):
    """Other spellings of the path: absolute, through the folder above, a symbolic link and a hard link."""
    path.with_name("link").unlink(missing_ok=True)
    path.with_name("link").symlink_to(path)
    path.with_name("hard").unlink(missing_ok=True)
    os.link(path, path.with_name("hard"))
    return [path.name, str(path), f"../{path.parent.name}/{path.name}", "link", "hard"]


@pytest.fixture(autouse=True)
def victim(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_STORE", str(tmp_path / "store"))
    monkeypatch.chdir(tmp_path)
    (tmp_path / "victim.parquet").write_bytes(b"the only copy")
    return tmp_path / "victim.parquet"


def test_the_list_has_every_option_that_writes():
    flags = {(name, (*goal.option_strings, goal.dest)[0]) for name, goal in EVERY}
    assert len({name for name, _ in flags}) == len(COMMANDS.own) - 2  # app and mcp write nothing
    assert {("check", "--repair"), ("check", "--plan"), ("adapt", "target"), ("export", "--atlas")} <= flags


@pytest.mark.parametrize(("name", "goal"), EVERY, ids=[f"{name}-{goal.dest}" for name, goal in EVERY])
def test_what_is_read_is_not_written(name, goal, victim):
    need_unread_of(line_with(name, {goal.dest: "new.parquet"}))  # the control
    others = [one for one in arguments(name)[1] if one.dest != goal.dest]
    assert others or name in ("available", "study")
    for source in others:
        for number, text in enumerate(spelled(victim)):
            named = [
                str(victim),
                victim.name,
                f"{victim.name}#matrix=a",
                f"any={victim.name}",
                "x," + victim.name,
            ][number]
            line = line_with(name, {goal.dest: text, source.dest: named})
            with pytest.raises(SpaceError, match="expected a file that this command does not read, got"):
                need_unread_of(line)


@pytest.mark.parametrize("name", [name for name in COMMANDS.own if len(arguments(name)[0]) > 1])
def test_two_outputs_are_not_one_file(name, victim):
    goals, _ = arguments(name)
    for first in goals:
        for second in goals:
            if first is not second:
                for one, other in (("new.json", "../{}/new.json"), (victim.name, "link")):
                    spelled(victim)
                    values = {first.dest: one, second.dest: other.format(victim.parent.name)}
                    with pytest.raises(SpaceError, match="expected another file than"):
                        need_unread_of(line_with(name, values))
            need_unread_of(line_with(name, {first.dest: "/dev/null", second.dest: "/dev/null"}))


@pytest.mark.parametrize(
    "line",
    [
        "check first.npz --again again.npz --repair again.npz",
        "project first.npz -o first.npz",
        "export first.npz --atlas ./first.npz",
        "link first.npz second.npz -o second.npz",
        "encode table.parquet --encoder tfidf-svd -o table.parquet",
        "passport make first.npz -o first.npz",
        "compare spec.json second.npz --recipe first.npz",
        "project matrix.npy -o out.npz --save-anchors matrix.ids.txt",
        "compare first.npz second.npz --recipe r.json -o r.json",
        "migrate first.npz second.npz --export .",
        "universe folder -o folder/first.npz",
        "encode many-1.parquet --encoder tfidf-svd,minilm -o many.parquet",
        "adapt none lancedb:base#news lancedb:./base#news --add",
    ],
)
def test_files_stay_as_they_are(line, files, refuse, tmp_path):
    for name in ("table.parquet", "many-1.parquet", "again.npz", "matrix.npy", "matrix.ids.txt"):
        (tmp_path / name).write_bytes(b"the only copy")
    for name in ("folder", "base"):
        (tmp_path / name).mkdir()
    (tmp_path / "folder/first.npz").write_bytes(b"the only copy")
    (tmp_path / "spec.json").write_text('{"source": "file", "name": "first.npz"}')
    before = {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()}
    told = refuse(line)
    assert "expected a file that this command does not read" in told or "expected another file than" in told
    assert {path: path.read_bytes() for path in tmp_path.rglob("*") if path.is_file()} == before


def test_a_figure_is_not_written_over_its_data(files, run, refuse, tmp_path):
    rng = np.random.default_rng(0)
    for name in ("a.csv", "b.csv"):
        rows = [",".join([f"r{row}", *map(str, rng.normal(size=5))]) for row in range(40)]
        (tmp_path / name).write_text("\n".join(["id,a,b,c,d,e", *rows]) + "\n")
    run("compare a.csv b.csv --anchors 9 --recipe recipe.json")
    before = (tmp_path / "a.csv").read_bytes()
    run("figure recipe.json -o again.svg")
    assert "which RECIPE reads" in refuse("figure recipe.json -o a.csv")
    assert "which the recipe reads" in refuse("figure again.svg --data . -o a.csv")
    assert (tmp_path / "a.csv").read_bytes() == before
    run(
        "figure recipe.json --data . -o again.svg"
    )  # a file in the folder that is searched, which is not read


def test_ids_beside_another_file_are_kept(tmp_path, refuse):
    np.save(tmp_path / "rows.npy", np.eye(3, dtype=np.float32))
    (tmp_path / "old.ids.txt").write_text("a\nb\nc\n")
    assert "old.ids.txt: expected a new place" in refuse("adapt none rows.npy old.npy")
    assert (tmp_path / "old.ids.txt").read_text() == "a\nb\nc\n"
