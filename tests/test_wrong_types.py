"""Every class that is read from JSON, with wrong values in every place: it is refused with one SpaceError, or
it is sound.

The files of earlier versions are the sound ones that are changed; what is accepted must hash and be written
as JSON again.
"""

import copy
import json
import math
from functools import partial
from pathlib import Path

import pytest

from app.workspace import MOST_ANCHORS, from_session_file, to_session_file
from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.names import FIGURES
from relcore.base.records import parse, read_file
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import encoder_from_json, encoder_to_json
from relcore.stitch.stitching import StitchSpec
from relcore.studies.study import StudySpec
from relcore.tasks.recipe import recipe_of

EARLIER = Path(__file__).parent / "data" / "earlier" / "v0.1.0"
LONGEST_MESSAGE = 700
DEEP = json.loads("[" * 300 + "]" * 300)
WRONG = [
    *(None, [], {}, "x", "", -1, 0, 1.5, True, [[1]], [{"a": 1}], DEEP),
    *(math.nan, math.inf, -math.inf, 1e308, 10**18, 2**70, 10**400, "\ud800", "y" * 10_000),
]
FEW = [None, {}, "x", -1, math.nan, 10**400, [[1]], DEEP, "\ud800"]


def places(value, place=()):
    """Where something can be put: the whole, each field, and the first two items of each list."""
    yield place
    inner = (
        value.items() if isinstance(value, dict) else enumerate(value[:2]) if isinstance(value, list) else ()
    )
    for step, one in inner:
        yield from places(one, (*place, step))


def with_wrong(value, place, wrong):
    if not place:
        return wrong
    value = copy.copy(value)
    value[place[0]] = with_wrong(value[place[0]], place[1:], wrong)
    return value


def figure(described):
    made = recipe_of(described)
    json.dumps(made.to_json(), allow_nan=False, ensure_ascii=False).encode()
    if described["figure"] != "study":  # which holds a study's options as JSON
        hash(made)


def space(described):
    made = SpaceSpec.from_json(described)
    hash((made, made.dataset, made.encoder))
    json.dumps(made.to_json(), allow_nan=False).encode()


def spec(read, write, described):
    made = read(described)
    hash(made)
    json.dumps(write(made), allow_nan=False, ensure_ascii=False).encode()


def session_file(described):
    workspace, digests = from_session_file(json.dumps(described))
    hash(workspace)
    to_session_file(workspace, digests).encode()


READERS = {
    "space": space,
    "dataset": partial(spec, DatasetSpec.from_json, DatasetSpec.to_json),
    "encoder": partial(spec, encoder_from_json, encoder_to_json),
    "study": partial(spec, StudySpec.from_json, StudySpec.to_json),
    "stitching": partial(spec, partial(records.from_json, StitchSpec), records.to_json),
}


_FILE = {"source": "file", "name": "here.npz"}
# Figures that version 0.1.0 had not.
_MIGRATION = {"n_pairs": 50, "judgements": [{"query": "q", "row": "a", "grade": 1.0}]}
NEWER = {
    "differences": {
        "figure": "differences",
        "spaces": [_FILE, _FILE],
        "anchors": ["a"],
        "groups": "clusters",
        "k": 5,
    },
    "anchor-audit": {
        "figure": "anchor-audit",
        "source": _FILE,
        "target": _FILE,
        "audit": {"anchors": ["a", "b"], "k": 5},
    },
    "drift": {
        "figure": "drift",
        "old": _FILE,
        "new": _FILE,
        "drift": {"k": 5, "shared": True},
        "thresholds": {"new_queries": {"lost": 0.5}},
    },
    "drift-series": {
        "figure": "drift-series",
        "spaces": [_FILE, _FILE],
        "series": {"k": 5},
        "against": "first",
    },
    "drift-map": {
        "figure": "drift-map",
        "spaces": [_FILE, _FILE],
        "digests": ["a", "b"],
        "series": {"jitter": 0.01},
    },
    "migration": {"figure": "migration", "spaces": [_FILE, _FILE], "migration": _MIGRATION},
    "migration-threshold": {
        "figure": "migration-threshold",
        "spaces": [_FILE, _FILE],
        "task": {"migration": _MIGRATION, "adapter": "ridge", "truth": "new", "threshold": 0.5},
    },
}


def sound():
    """The name of what is read, its reader, and a sound JSON value."""
    for name, described in NEWER.items():
        yield name, figure, described
    for path in sorted((EARLIER / "recipes").glob("*.json")):
        described = json.loads(path.read_text(encoding="utf-8"))
        if described["figure"] in FIGURES:
            yield path.stem, figure, described
    for kind, described in json.loads((EARLIER / "specs.json").read_text(encoding="utf-8")).items():
        for number, one in enumerate(described):
            yield f"{kind}-{number}", READERS[kind], one
    yield "session", session_file, json.loads((EARLIER / "session.json").read_text(encoding="utf-8"))


def refused_otherwise(read, described, values):
    """The places and values that ended in another error than one short SpaceError."""
    found = []
    for place in places(described):
        for wrong in values:
            try:
                read(with_wrong(described, place, wrong))
            except SpaceError as error:
                if len(str(error)) > LONGEST_MESSAGE:
                    found.append((place, repr(wrong)[:20], f"a message of {len(str(error))} characters"))
            except Exception as error:
                found.append((place, repr(wrong)[:20], repr(error)[:80]))
    return found


@pytest.mark.parametrize(("read", "described"), [pytest.param(*rest, id=name) for name, *rest in sound()])
def test_a_wrong_value_in_any_place_is_one_error_or_none(read, described):
    assert refused_otherwise(read, described, FEW) == []


@pytest.mark.slow
@pytest.mark.parametrize(("read", "described"), [pytest.param(*rest, id=name) for name, *rest in sound()])
def test_every_wrong_value_in_any_place_is_one_error_or_none(read, described):
    assert refused_otherwise(read, described, WRONG) == []


def test_every_figure_is_among_them():
    assert {described["figure"] for name, read, described in sound() if read is figure} == set(FIGURES)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ('{"a": NaN}', "the number NaN, which JSON does not have"),
        ('{"a": -Infinity}', "the number -Infinity"),
        ('{"a": 1e400}', "the file: a: expected a number that is finite, got inf"),
        ('{"a": 1, "b": 2, "a": 3}', "the name 'a' twice"),
        (
            '{"a": ' + "1" * 400 + "}",
            "the file: a: expected whole numbers of up to 64 bits, got one of 1,326 bits",
        ),
        ('{"a": ' + "1" * 5000 + "}", "invalid JSON"),
        ('["\\ud800"]', "half a surrogate pair"),
        ('{"\\udfff": 1}', "half a surrogate pair"),
        ("[" * 41 + "]" * 41, "at most 40 levels"),
        ("[" * 100_000, "too many levels"),
        (b"\xff\xfe\x00", "invalid JSON"),
        ("", "invalid JSON"),
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
        (
            {"spaces": [], "source": 0},
            "source: expected the number of one of the 0 spaces, counted from 0, got 0",
        ),
        ({"source": 3}, "source: expected the number of one of the 3 spaces, counted from 0, got 3"),
        ({"target": -1}, "target: expected the number of one of the 3 spaces, counted from 0, got -1"),
        ({"target": True}, "target: expected a whole number, got True"),
        (
            {"anchors": [str(row) for row in range(10**5)]},
            f"anchors: expected at most {MOST_ANCHORS:,} in the app, got 100,000",
        ),
        ({"named_sets": [["mine", []]]}, "named_sets: expected an object"),
    ],
)
def test_a_session_that_cannot_be_opened_says_why(changes, message):
    with pytest.raises(SpaceError, match=message):
        from_session_file(json.dumps(SESSION | {"session": SESSION["session"] | changes}))
