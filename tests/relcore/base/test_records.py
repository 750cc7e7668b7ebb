"""Records to JSON and back, numbers in texts, and results of arrays that nobody can write to."""

import json
import math
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
import pytest

from relcore.base import records
from relcore.base.errors import SpaceError
from relcore.base.memory import MadeOnce
from relcore.base.numbers import in_cell, percent, short
from relcore.catalog.catalog import SpaceSpec
from relcore.encoders.encoder import Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.scores.score import ChanceLevel, Score


@dataclass(frozen=True)
class Inner:
    ridge: float = 0.3
    omega: int = 8

    def __post_init__(self):
        if self.ridge <= 0:
            raise SpaceError(f"ridge: expected a number above 0, got {self.ridge}")


@dataclass(frozen=True)
class Outer:
    name: str
    methods: tuple[str, ...] = ("a",)
    inner: Inner = Inner()
    n: int | None = None
    curves: Mapping[str, tuple[float | None, ...]] = field(default_factory=dict)
    spaces: tuple[SpaceSpec, ...] = ()
    encoder: Encoder | None = None


@dataclass(frozen=True)
class Found:
    score: Score
    values: np.ndarray
    ids: np.ndarray
    runs: tuple[dict[str, np.ndarray], ...]


FULL = Outer(
    "é", ("x", "y"), Inner(1.0, 2), 3, {"loss": (0.5, None)}, (SpaceSpec("bundled", "words"),), TfidfSvd()
)


def test_settings_come_back_through_text_of_file():
    assert records.from_json(Outer, json.loads(json.dumps(records.to_json(FULL)))) == FULL
    assert records.from_json(Outer, {"name": "b"}) == Outer("b")


@pytest.mark.parametrize(
    ("given", "match"),
    [
        ({}, "settings: the setting 'name' is missing"),
        ({"name": "a", "inner": {"omega": 2.5}}, r"inner\.omega: expected a whole number, got 2.5"),
        ({"name": "a", "inner": {"ridge": -1}}, "^ridge: expected a number above 0, got -1"),
        (
            {"name": "a", "inner": {"colour": 1}},
            "settings: inner: expected settings among 'ridge', 'omega', got 'colour'",
        ),
    ],
)
def test_what_is_wrong_is_named_with_its_place(given, match):
    with pytest.raises(SpaceError, match=match):
        records.from_json(Outer, given)


def test_a_result_comes_back_from_arrays_and_json():
    score = Score(0.5, metric="mrr", n=10, k=3, interval=(0.4, 0.6), null=ChanceLevel(0.1, 0.0, 0.2))
    ids = np.array(["a", "b"], dtype=object)
    values = np.arange(6, dtype=np.float32).reshape(2, 3)
    runs = ({"x": np.ones(2)}, {"x": np.zeros(2)})
    found = Found(score, values, ids, runs)
    arrays, facts = records.pack(found)
    assert set(arrays) == {"values", "runs.0.x", "runs.1.x"}
    back = records.unpack(Found, arrays, json.loads(json.dumps(facts)))
    assert (back.score, back.score.__dict__) == (score, score.__dict__)
    np.testing.assert_array_equal(back.values, found.values)
    np.testing.assert_array_equal(back.ids, ids)
    np.testing.assert_array_equal(back.runs[1]["x"], np.zeros(2))


@pytest.mark.parametrize(
    ("write", "texts"),
    [
        (short, {-0.0212: "−.021", -0.0001: ".000", 20_000.4: "20,000.400", math.nan: "–"}),
        (in_cell, {0.784: ".78", 0.0042: ".004", 0.1: ".10", -0.5: "−.50", math.nan: ""}),
        (percent, {0: "0 %", 0.0096: "1 %", 0.007: "0.7 %", 1 / 19700: "0.005 %"}),
    ],
)
def test_numbers_as_texts(write, texts):
    assert [write(number) for number in texts] == list(texts.values())


def fixed(array):
    array.flags.writeable = False
    return array


def test_only_what_nobody_can_write_to_is_looked_at_once():
    calls = []
    total = MadeOnce(lambda array: calls.append(1) or float(array.sum()))
    array = fixed(np.arange(5.0))
    assert [total(array), total(array), len(calls)] == [10, 10, 1]
    array = np.arange(5.0)
    views = array, fixed(array[:])
    assert [total(view) for view in views] == [10, 10]
    array[0] = 7
    assert [total(view) for view in views] == [17, 17]
