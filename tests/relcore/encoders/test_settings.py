"""Settings of encoders: what is allowed, JSON and back, and the rows whose labels an encoder has seen."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.catalog.catalog import SpaceSpec, encoding_spec, held_out_ids, numbered_spec
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.encoder import Encoder, encoder_from_json
from relcore.encoders.sentences import TfidfSvd
from relcore.encoders.swept_vision import SweptVision
from relcore.encoders.transformers import PretrainedVision
from relcore.encoders.vision import SmallVision, held_out_rows
from relcore.spaces.space import LatentSpace


@dataclass(frozen=True)
class Made(Encoder):
    side: Literal["left", "right"] = "left"
    share: float = setting(0.5, low=0, below=1)
    layers: tuple[int, ...] = setting((1, 2), distinct=True, choices={1: "one", 2: "two", 3: "three"})

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
        Made(**settings)


def test_json_and_back():
    encoder = PretrainedVision("owner/model", layers=(2, -1), pooling="cls")
    again = encoder_from_json(json.loads(json.dumps(encoder.to_record())))
    assert again == encoder
    assert hash(again) == hash(encoder)
    own = Made().to_record()  # an encoder of a user's own is named, but not imported from JSON
    assert own == {"encoder": f"{__name__}:Made", "side": "left", "share": 0.5, "layers": [1, 2]}
    with pytest.raises(SpaceError, match=r"encoder: expected one of 'small-vision'.*:Made"):
        encoder_from_json(own)
    with pytest.raises(
        SpaceError, match=r"small-vision: expected settings among .*'architecture'.*got 'depth'"
    ):
        encoder_from_json({"encoder": "small-vision", "depth": 3})


def test_held_out_rows_are_those_whose_labels_no_encoder_has_seen():
    ids = [f"d{row}" for row in range(60)]
    space = LatentSpace(
        np.random.default_rng(0).normal(size=(60, 3)), ids, name="made", labels=["a", "b"] * 30
    )
    unseen = tuple(f"d{row}" for row in held_out_rows(60))

    def spec(encoder):
        return encoding_spec(DatasetSpec("digits"), encoder, encoder.outputs[0], "0" * 16, encoder.title)

    encoders = (SmallVision(), SweptVision(), TfidfSvd())
    small, swept, texts, file = *map(spec, encoders), SpaceSpec("file", "x")
    for specs, expected in (
        ([small], unseen),
        ([swept, texts], unseen),
        ([small, swept, file], unseen),
        ([texts, file], ()),
        ([numbered_spec(small), texts], unseen),
    ):
        assert held_out_ids(specs, [space] * len(specs)) == expected
    assert held_out_ids([small], [space], [*reversed(unseen), "other"]) == tuple(reversed(unseen))
    assert [len(one.seen_rows(space)) for one in encoders] == [48, 48, 0]
