"""What is read from JSON is refused with one short SpaceError; `tests/hostile` puts wrong values everywhere."""

import json
from pathlib import Path

import pytest

from app.workspace import MOST_ANCHORS, from_session_file
from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES
from relcore.base.records import parse, read_file
from tests.hostile.recipes import NEWER

EARLIER = Path(__file__).parent / "data" / "earlier" / "v0.1.0"
LONGEST_MESSAGE = 700


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "the number NaN, which JSON does not have"),
        ('{"a": 1e400}', "the file: a: expected a number that is finite, got inf"),
        ('{"a": 1, "b": 2, "a": 3}', "the name 'a' twice"),
        ('["\\ud800"]', "half a surrogate pair"),
        ("[" * 41 + "]" * 41, "at most 40 levels"),
        (b"\xff\xfe\x00", "invalid JSON"),
    ],
)
def test_what_no_setting_can_be_is_refused_when_it_is_parsed(text, message):
    with pytest.raises(SpaceError, match=message) as refused:
        parse(text, "the file")
    assert len(str(refused.value)) < LONGEST_MESSAGE


def test_a_file_of_settings_has_a_largest_size_and_is_a_file(tmp_path):
    large = tmp_path / "large.json"
    with large.open("wb") as stream:
        stream.truncate(2**31)
    with pytest.raises(SpaceError, match="expected a recipe of at most 32 MB, got 2,048 MB"):
        read_file(large, "a recipe")
    with pytest.raises(SpaceError, match="expected a file, got the folder"):
        read_file(tmp_path, "a recipe")


SESSION = json.loads((EARLIER / "session.json").read_text(encoding="utf-8"))


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"source": 3}, "source: expected the number of one of the 3 spaces, counted from 0, got 3"),
        (
            {"anchors": [str(row) for row in range(10**5)]},
            f"anchors: expected at most {MOST_ANCHORS:,} in the app, got 100,000",
        ),
    ],
)
def test_a_session_that_cannot_be_opened_says_why(changes, message):
    with pytest.raises(SpaceError, match=message):
        from_session_file(json.dumps(SESSION | {"session": SESSION["session"] | changes}))


def test_every_figure_is_among_the_hostile_recipes():
    earlier = [json.loads(path.read_bytes())["figure"] for path in (EARLIER / "recipes").glob("*.json")]
    assert {*earlier, *NEWER} >= set(FIGURES)
