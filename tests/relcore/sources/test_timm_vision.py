"""timm is no requirement: where it is missing the encoder says so, where it is there it gives the model's
own features.
"""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.catalog.encoding import encode
from relcore.encoders import timm_vision
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
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


def test_a_timm_that_cannot_be_imported_says_why(tmp_path, monkeypatch):
    (tmp_path / "timm.py").write_text("raise RuntimeError('operator torchvision::nms does not exist')")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setattr(timm_vision, "find_spec", lambda name: True)
    with pytest.raises(
        SpaceError, match=r"cannot be imported here .*nms does not exist.*install the torchvision that fits"
    ):
        encode(DIGITS, TimmVision("timm/resnet18.a1_in1k"), Store(tmp_path / "store"))


def test_rows_are_what_the_classifier_would_see(tmp_path):
    timm = pytest.importorskip("timm", reason="timm is not installed")
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = timm.create_model("test_resnet", pretrained=False, num_classes=5).eval()
    timm.models.save_for_hf(model, tmp_path / "model", safe_serialization=True)
    (space,) = encode(DIGITS, TimmVision(str(tmp_path / "model")), Store(tmp_path / "store"))
    transform = timm.data.create_transform(**timm.data.resolve_model_data_config(model), is_training=False)
    pixels = torch.stack([transform(image.convert("RGB")) for image in load_dataset(DIGITS).items(0, 12)])
    with torch.inference_mode():
        expected = model.forward_head(model.forward_features(pixels), pre_logits=True)
    np.testing.assert_allclose(space.vectors, expected.numpy(), atol=1e-5)
