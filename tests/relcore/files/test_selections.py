"""A selection as the app's session file holds it, and what a script makes of it."""

import json
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

from relcore import LatentSpace, load_space, read_selection
from relcore.base.errors import SpaceError
from relcore.files.selections import SelectedRows, Selection, from_session_file

ROOT = Path(__file__).parents[3]
SCRIPT = ROOT / "assets" / "examples" / "lasso_in_a_script.py"
SPACE = LatentSpace(np.eye(4), ["a", "b", "ç\n", "d"], name="first")
BOTH = (SelectedRows("first", SPACE.digest), SelectedRows("second", "34cd"))
CHOSEN = Selection(("ç\n", "a"), BOTH)


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


def test_session_file_gives_ids_and_digests_of_source_and_target(tmp_path):
    file = written(tmp_path / "session.json", session_file(selection=["a", "ç\n"]))
    found = read_selection(str(file))
    assert found == Selection(("a", "ç\n"), (SelectedRows("b.npy"), SelectedRows("first.npy", SPACE.digest)))
    assert found.rows_in(SPACE).tolist() == [0, 2]
    assert from_session_file(file.read_bytes()) == ("a", "ç\n")
    earlier = written(tmp_path / "earlier.json", session_file())
    assert read_selection(earlier).ids == ()
    left_out = written(tmp_path / "large.json", session_file(selection=None))
    with pytest.raises(SpaceError, match="too large; download the table"):
        read_selection(left_out)
    assert from_session_file(left_out.read_bytes()) is None


def test_rows_of_space_with_other_content_are_refused():
    other = LatentSpace(2 * np.eye(4), SPACE.ids, name="first")
    assert CHOSEN.rows_in(SPACE).tolist() == [2, 0]
    with pytest.raises(SpaceError, match=f"one of the spaces 'first' .*got 'first' .{other.digest[:8]}"):
        CHOSEN.rows_in(other)
    with pytest.raises(SpaceError, match="got 1 unknown: 'z'"):
        Selection(("z",)).rows_in(SPACE)


@pytest.mark.parametrize("wrong", ["{", session_file(selection="ab")], ids=["damaged", "a text"])
def test_anything_else_is_refused_with_what_was_expected(tmp_path, wrong):
    file = written(tmp_path / "x.json", wrong)
    with pytest.raises(SpaceError, match=r"x.json'.*: expected a session file of the app"):
        read_selection(file)


def test_script_of_docs_scores_a_selection(tmp_path):
    vectors = np.array([[1, 0], [2, 0], [0, 3], [-1, 0]], dtype=np.float32)
    np.save(tmp_path / "first.npy", vectors)
    space = load_space(tmp_path / "first.npy")
    (tmp_path / "chosen.csv").write_text("\n".join(["id", *space.ids[[0, 2]], ""]))
    command = [sys.executable, SCRIPT, "first.npy", "chosen.csv"]
    ran = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True, check=True)
    assert ran.stdout.split()[-1] == "0.500"
    told = f"python {SCRIPT.relative_to(ROOT)} first.npy"
    assert told in (ROOT / "docs" / "scripts.md").read_text(encoding="utf-8")
