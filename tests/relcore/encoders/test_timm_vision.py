"""timm is no requirement: where it is missing the encoder says so, where it is there it gives the model's
own features.
"""

import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encode
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.transformers import TimmVision
from relcore.runs.store import Store
from tests.lazily import Lazily

torch = Lazily("torch")

DIGITS = DatasetSpec("digits", limit=12)


def test_without_timm_it_says_what_to_install(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "timm", None)
    with pytest.raises(
        SpaceError, match=r"expected timm, which cannot be imported here .*; pip install timm"
    ):
        encode(DIGITS, TimmVision("timm/resnet18.a1_in1k"), Store(tmp_path))


def test_timm_gets_no_pickle_beside_the_weights(tmp_path, monkeypatch):
    for name in ("config.json", "model.safetensors", "pytorch_model.bin"):
        (tmp_path / name).write_bytes(b"{}")
    given = []

    def create_model(name, **_):
        given.extend(sorted(path.name for path in Path(name.removeprefix("local-dir:")).iterdir()))
        raise ValueError("stop")

    monkeypatch.setitem(sys.modules, "timm", SimpleNamespace(create_model=create_model))
    with pytest.raises(SpaceError, match="expected a timm model, got one that cannot be loaded"):
        encode(DIGITS, TimmVision(str(tmp_path)), Store(tmp_path / "store"))
    assert given == ["config.json", "model.safetensors"]
