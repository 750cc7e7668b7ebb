"""The commands in README, docs and the skill for agents: all parse, and those of the skill run in their order."""

import json
import re
import shlex
from contextlib import suppress
from itertools import takewhile
from pathlib import Path

import numpy as np
import pytest

from relcore.cli import main, parser_of
from relcore.migrate.migration import TITLES
from relcore.passport.passport import CHANGES

ROOT = Path(__file__).parents[3]
SKILL = ROOT / "docs" / "relscope" / "SKILL.md"
DOCUMENTS = [ROOT / "README.md", ROOT / "SECURITY.md", *sorted((ROOT / "docs").glob("**/*.md"))]


def commands(path):
    """The arguments of each command in a block of shell, up to a comment, a pipe or a redirection."""
    blocks = re.findall(r"^```sh\n(.*?)^```", path.read_text(encoding="utf-8"), re.DOTALL | re.MULTILINE)
    lines = (line for block in blocks for line in block.splitlines() if line.startswith("relscope "))
    words = (shlex.split(re.sub(r"\s#.*", "", line))[1:] for line in lines)  # shlex ends a line at store#old
    return [list(takewhile(lambda word: word not in ("|", ">", ">>"), some)) for some in words]


@pytest.mark.parametrize("path", DOCUMENTS, ids=lambda path: path.relative_to(ROOT).as_posix())
def test_every_command_in_a_document_parses(path):
    for arguments in commands(path):
        with suppress(SystemExit):  # of --help and --print-thresholds; what is wrong is a SpaceError
            assert parser_of(arguments).parse_args(arguments).command == arguments[0]


def test_the_commands_of_the_skill_run_and_print_json(one_engine, files, tmp_path, capsys):
    """On 151 rows in three classes: the old space, a rotation of it, and the old one rounded."""
    space = dict(np.load("first.npz"))
    (tmp_path / "first.npz").rename("old.npz")
    (tmp_path / "second.npz").rename("new.npz")
    np.savez("rounded.npz", **space | {"vectors": space["vectors"].astype(np.float16)})
    np.savez("other.npz", **dict(np.load("new.npz")))
    (tmp_path / "known.tsv").write_text("".join(f"w{row}\tw{row}\n" for row in range(30)))
    ran = commands(SKILL)
    assert len(ran) > 7
    for arguments in ran:
        assert main([*arguments, "--quiet"]) == 0, (arguments, capsys.readouterr().err)
        out = capsys.readouterr().out
        assert "--json" not in arguments or json.loads(out)


def test_the_skill_names_every_verdict_and_is_short():
    text = SKILL.read_text(encoding="utf-8")
    assert len(text.splitlines()) <= 80
    for one in (*TITLES, *CHANGES, "fits", "not found", "cannot tell"):
        assert re.search(rf"\b{one}\b", re.sub(r"\s+", " ", text), re.IGNORECASE), one
    assert re.match(r"---\nname: relscope\ndescription: .{20,1024}\n---\n", text)  # what clients read first
