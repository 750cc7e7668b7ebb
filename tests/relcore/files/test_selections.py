"""A selection as the app's session file and its printed lines hold it, and what a script makes of it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore import LatentSpace, load_space, read_selection, read_selections
from relcore.base.errors import SpaceError
from relcore.files.selections import SelectedRows, Selection, from_session_file, to_line

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "assets" / "examples" / "lasso_in_a_script.py"
SPACE = LatentSpace(np.eye(4), ["a", "b", "ç\n", "d"], name="first")
BOTH = (SelectedRows("first", SPACE.digest, (2, 0)), SelectedRows("second", "34cd", (0, None)))
CHOSEN = Selection(("ç\n", "a"), BOTH, "12ab", "2026-11-22T13:05:09+00:00")


def session_file(**panes):
    spaces = [
        {"source": "file", "name": "first.npy", "digest": SPACE.digest},
        {"source": "file", "name": "b.npy"},
    ]
    body = {"spaces": spaces, "source": 1, "target": 0, "k": 10}
    return {"relscope": "0.1.0", "session": body} | ({"panes": panes} if panes else {})


def written(path, value):
    path.write_text(value if isinstance(value, str) else json.dumps(value), encoding="utf-8")
    return path


def test_a_line_is_one_line_of_ascii_and_comes_back():
    line = to_line(CHOSEN)
    assert line.isascii()
    assert "\n" not in line
    assert list(read_selections([line + "\n", "\n", line])) == [CHOSEN, CHOSEN]
    assert json.loads(line)["n"] == 2


def test_a_line_of_many_rows_names_the_file_that_holds_them(tmp_path):
    file = written(tmp_path / "1.json", to_line(CHOSEN))
    line = to_line(CHOSEN, file)
    assert "ids" not in json.loads(line)
    assert "rows" not in json.loads(line)["spaces"][0]
    assert list(read_selections([line])) == [CHOSEN] == [read_selection(file)]
    file.unlink()
    with pytest.raises(SpaceError, match="where there is none"):
        list(read_selections([line]))


def test_a_session_file_gives_ids_and_the_digests_of_source_and_target(tmp_path):
    file = written(tmp_path / "session.json", session_file(selection=["a", "ç\n"]))
    found = read_selection(str(file))
    assert found == Selection(("a", "ç\n"), (SelectedRows("b.npy"), SelectedRows("first.npy", SPACE.digest)))
    assert found.rows_in(SPACE).tolist() == [0, 2]
    assert from_session_file(file.read_bytes()) == ("a", "ç\n")
    earlier = written(tmp_path / "earlier.json", session_file())
    assert read_selection(earlier).ids == ()
    left_out = written(tmp_path / "large.json", session_file(selection=None))
    with pytest.raises(SpaceError, match="too large for it; run `relscope app --print-selection`"):
        read_selection(left_out)
    assert from_session_file(left_out.read_bytes()) is None


def test_rows_of_a_space_with_other_content_are_refused():
    other = LatentSpace(2 * np.eye(4), SPACE.ids, name="first")
    assert CHOSEN.rows_in(SPACE).tolist() == [2, 0]
    with pytest.raises(
        SpaceError, match=f"expected one of the spaces 'first' .*got 'first' .{other.digest[:8]}"
    ):
        CHOSEN.rows_in(other)
    with pytest.raises(SpaceError, match="got 1 unknown: 'z'"):
        Selection(("z",)).rows_in(SPACE)


LINE = json.loads(to_line(CHOSEN))


@pytest.mark.parametrize(
    "wrong",
    [
        "{",
        "[" * 100_000,
        '"\\ud800"',
        "\x80\x04cos\nsystem\n.",
        LINE | {"ids": "ab"},
        LINE | {"ids": ["a"]},
        LINE | {"n": 10**30},
        LINE | {"spaces": [{"name": "a", "rows": [1.5, 0]}]},
        {name: value for name, value in LINE.items() if name != "ids"},
        session_file(selection="ab"),
        session_file() | {"session": session_file()["session"] | {"source": 2}},
    ],
    ids=lambda wrong: str(wrong)[:60],
)
def test_anything_else_is_refused_with_what_was_expected(tmp_path, wrong):
    file = written(tmp_path / "x.json", wrong)
    with pytest.raises(
        SpaceError,
        match=r"x.json'.*: expected a session file of the app, or a line of `relscope app --print-",
    ):
        read_selection(file)
    text = file.read_text(encoding="utf-8")
    if text and "session" not in wrong:
        with pytest.raises(SpaceError, match="line 2: expected"):
            list(read_selections(["", text]))


def test_the_script_of_the_readme_scores_each_lasso(tmp_path):
    vectors = np.array([[1, 0], [2, 0], [0, 3], [-1, 0]], dtype=np.float32)
    np.save(tmp_path / "first.npy", vectors)
    space = load_space(tmp_path / "first.npy")
    chosen = [tuple(space.ids[rows]) for rows in ([0, 1], [0, 2], [0, 3], [])]
    lines = [to_line(Selection(ids, (SelectedRows("first", space.digest),))) for ids in chosen]
    ran = subprocess.run(
        [sys.executable, SCRIPT, "first.npy"],
        cwd=tmp_path,
        input="\n".join(lines),
        capture_output=True,
        text=True,
        check=True,
    )
    assert [line.split()[-1] for line in ran.stdout.splitlines()] == ["1.000", "0.500", "0.000", "0.000"]
    assert f"python {SCRIPT.relative_to(ROOT)} first.npy" in (ROOT / "docs" / "scripts.md").read_text(
        encoding="utf-8"
    )
