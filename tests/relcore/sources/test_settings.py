"""Settings of encoders: what is allowed, what is read from text, and the rows whose labels an encoder has
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from types import SimpleNamespace
from typing import ClassVar, Literal

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.settings import UNSET, setting, settings_of
from relcore.catalog.catalog import SpaceSpec, encoding_spec, held_out_ids, numbered_spec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder
from relcore.encoders.graphs import GraphEncoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.small_vision import SmallVision, held_out_rows
from relcore.encoders.swept_vision import SweptVision
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class Made(Encoder):
    name: str
    side: Literal["left", "right"] = "left"
    count: int = setting(4, label="How many", low=1, high=9, usual=lambda data: min(9, data.n))
    share: float = setting(0.5, low=0, below=1)
    rate: float = setting(0.1, above=0)
    size: int | None = None
    layers: tuple[int, ...] = setting((1, 2), distinct=True, choices={1: "one", 2: "two", 3: "three"})
    fast: bool = False

    kind: ClassVar = "images"
    title: ClassVar = "Made"

    def prepare(self, dataset, report):
        raise NotImplementedError


KNOWN = settings_of(Made)


def test_fields_describe_themselves_where_nothing_else_does():
    assert list(KNOWN) == ["name", "side", "count", "share", "rate", "size", "layers", "fast"]
    assert (KNOWN["name"].default, KNOWN["name"].label, KNOWN["name"].option) == (UNSET, "Name", "name")
    assert KNOWN["side"].choices == {"left": "left", "right": "right"}
    assert (KNOWN["count"].label, KNOWN["count"].number, KNOWN["size"].number, KNOWN["layers"].number) == (
        "How many",
        int,
        int,
        None,
    )
    assert [KNOWN["count"].start(SimpleNamespace(n=n)) for n in (5, 50)] == [5, 9]
    assert KNOWN["share"].start(SimpleNamespace(n=5)) == 0.5


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"name": 3}, "name: expected a string, got 3"),
        ({"side": "top"}, "side: expected one of left, right, got 'top'"),
        ({"count": 0}, "count: expected a whole number from 1 to 9, got 0"),
        ({"count": 10}, "count: expected a whole number from 1 to 9, got 10"),
        ({"count": 2.5}, "count: expected a whole number from 1 to 9, got 2.5"),
        ({"count": True}, "count: expected a whole number from 1 to 9, got True"),
        ({"share": 1}, "share: expected a number from 0 to below 1, got 1"),
        ({"share": float("nan")}, "share: expected a number from 0 to below 1, got nan"),
        ({"rate": 0.0}, "rate: expected a number above 0, got 0.0"),
        ({"size": "8"}, "size: expected a whole number, got '8'"),
        ({"layers": ()}, r"layers: expected distinct whole numbers, such as \(4, 8, 12\), got \(\)"),
        ({"layers": (1, 4)}, "layers: expected one of 1, 2, 3, got 4"),
        ({"fast": 1}, "fast: expected true or false, got 1"),
    ],
)
def test_what_is_not_allowed_is_an_error_that_names_the_setting(settings, message):
    with pytest.raises(SpaceError, match=message):
        Made(**{"name": "x", **settings})


def test_bounds_themselves_are_allowed_where_they_say_so():
    assert Made("x", count=9, share=0, size=None, layers=(3,), fast=True) == Made(
        "x", "left", 9, 0, 0.1, None, (3,), True
    )
    assert Made("x", rate=np.float64(0.5)).rate == 0.5


def test_values_are_read_from_text():
    texts = {"name": " a b ", "count": "7", "share": ".25", "size": "8", "layers": "1, 3", "fast": "True"}
    expected = {"name": "a b", "count": 7, "share": 0.25, "size": 8, "layers": (1, 3), "fast": True}
    assert {name: KNOWN[name].read(text) for name, text in texts.items()} == expected
    for name, wanted in (
        ("count", "a whole number from 1 to 9"),
        ("layers", "whole numbers such as 4, 8, 12"),
    ):
        with pytest.raises(SpaceError, match=f"{name}: expected {wanted}, got 'many'"):
            KNOWN[name].read("many")


def test_held_out_rows_are_those_whose_labels_no_encoder_has_seen():
    ids = [f"d{row}" for row in range(60)]
    space = LatentSpace(
        np.random.default_rng(0).normal(size=(60, 3)), ids, name="made", labels=["a", "b"] * 30
    )
    unseen = tuple(f"d{row}" for row in held_out_rows(60))

    def spec(encoder):
        return encoding_spec(DatasetSpec("digits"), encoder, encoder.outputs[0], "0" * 16, encoder.title)

    small, swept, graph, texts, file = (
        *map(spec, (SmallVision(), SweptVision(), GraphEncoder(), TfidfSvd())),
        SpaceSpec("file", "x"),
    )
    for specs, expected in (
        ([small], unseen),
        ([swept, texts], unseen),
        ([small, swept, file], unseen),
        ([texts, file], ()),
        ([graph], ()),
        ([small, graph], ()),
        ([numbered_spec(small), texts], unseen),
    ):
        assert held_out_ids(specs, [space] * len(specs)) == expected
    assert held_out_ids([small], [space], [*reversed(unseen), "other"]) == tuple(reversed(unseen))
    assert [
        len(one.seen_rows(space)) for one in (SmallVision(), SweptVision(), GraphEncoder(), TfidfSvd())
    ] == [48, 48, 60, 0]
