"""Settings of encoders: what is allowed, what is read from text, and the rows whose labels an encoder has
seen.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, encoding_spec, held_out_ids, numbered_spec
from relcore.encoders.encoder import DatasetSpec, Encoder
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.vision import SmallVision, SweptVision, held_out_rows
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


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"side": "top"}, "side: expected one of left, right, got 'top'"),
        ({"share": 1}, "share: expected a number from 0 to below 1, got 1"),
        ({"layers": ()}, r"layers: expected distinct whole numbers, such as \(4, 8, 12\), got \(\)"),
    ],
)
def test_what_is_not_allowed_is_error_that_names_setting(settings, message):
    with pytest.raises(SpaceError, match=message):
        Made(**{"name": "x", **settings})


def test_held_out_rows_are_those_whose_labels_no_encoder_has_seen():
    ids = [f"d{row}" for row in range(60)]
    space = LatentSpace(
        np.random.default_rng(0).normal(size=(60, 3)), ids, name="made", labels=["a", "b"] * 30
    )
    unseen = tuple(f"d{row}" for row in held_out_rows(60))

    def spec(encoder):
        return encoding_spec(DatasetSpec("digits"), encoder, encoder.outputs[0], "0" * 16, encoder.title)

    small, swept, texts, file = (
        *map(spec, (SmallVision(), SweptVision(), TfidfSvd())),
        SpaceSpec("file", "x"),
    )
    for specs, expected in (
        ([small], unseen),
        ([swept, texts], unseen),
        ([small, swept, file], unseen),
        ([texts, file], ()),
        ([numbered_spec(small), texts], unseen),
    ):
        assert held_out_ids(specs, [space] * len(specs)) == expected
    assert held_out_ids([small], [space], [*reversed(unseen), "other"]) == tuple(reversed(unseen))
    encoders = (SmallVision(), SweptVision(), TfidfSvd())
    assert [len(one.seen_rows(space)) for one in encoders] == [48, 48, 0]
