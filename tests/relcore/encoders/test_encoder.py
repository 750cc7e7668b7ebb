import json
from dataclasses import dataclass
from typing import ClassVar

import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.encoder import Encoder, encoder_from_json
from relcore.encoders.transformers import PretrainedVision


@dataclass(frozen=True)
class Own(Encoder):
    sizes: tuple[int, ...] = (1, 2)

    kind: ClassVar = "images"
    title: ClassVar = "Own"

    def prepare(self, dataset, report):
        raise NotImplementedError


@pytest.mark.parametrize(
    "encoder",
    [PretrainedVision("owner/model", layers=(2, -1), pooling="cls")],
)
def test_json_and_back(encoder):
    record = json.loads(json.dumps(encoder.to_record()))
    again = encoder_from_json(record)
    assert again == encoder
    assert hash(again) == hash(encoder)


def test_encoder_of_users_own_is_named_but_not_imported_from_json():
    record = Own().to_record()
    assert record == {"encoder": f"{__name__}:Own", "sizes": [1, 2]}
    with pytest.raises(SpaceError, match=r"encoder: expected one of 'small-vision'.*:Own"):
        encoder_from_json(record)


@pytest.mark.parametrize(
    ("record", "message"),
    [
        (
            {"encoder": "small-vision", "depth": 3},
            "small-vision: expected settings among 'architecture'.*got 'depth'",
        )
    ],
)
def test_json_that_is_no_encoder(record, message):
    with pytest.raises(SpaceError, match=message):
        encoder_from_json(record)
