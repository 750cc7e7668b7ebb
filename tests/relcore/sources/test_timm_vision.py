"""timm is no requirement: where it is missing the encoder says so, where it is there it gives the model's
own features.
"""

import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders import timm_vision
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.timm_vision import TimmVision
from relcore.runs.store import Store
from tests.lazily import Lazily

torch = Lazily("torch")

DIGITS = DatasetSpec("digits", limit=12)


def test_without_timm_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setattr(timm_vision, "find_spec", lambda name: None)
    with pytest.raises(
        SpaceError, match="expected timm, which is not installed; pip install timm torchvision"
    ):
        encode(DIGITS, TimmVision("timm/resnet18.a1_in1k"), Store(tmp_path))
