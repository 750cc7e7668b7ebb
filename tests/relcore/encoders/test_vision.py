"""Vision encoders against forward passes by hand: tiny models with random weights, from folders."""

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import DatasetSpec
from relcore.encoders.transformers import PretrainedVision
from tests.lazily import Lazily

torch = Lazily("torch")

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.5,
}
PATCHES = {"image_size": 12, "patch_size": 4}


def save(folder, model, processor=True):
    from transformers import ViTImageProcessorPil

    model.save_pretrained(folder)
    if processor:
        ViTImageProcessorPil(size={"height": 12, "width": 12}).save_pretrained(folder)
    return str(folder)


def random_weights(kind, config, **settings):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        return kind(config, **settings).eval()


@pytest.fixture(scope="module")
def models(tmp_path_factory):
    import transformers as tr

    text = {**SIZES, "vocab_size": 50, "bos_token_id": 1, "eos_token_id": 2}
    clip = tr.CLIPConfig(text_config=text, vision_config=SIZES | PATCHES, projection_dim=6)
    made = {
        "vit": random_weights(tr.ViTModel, tr.ViTConfig(**SIZES, **PATCHES)),
        "vit-without-pooler": random_weights(
            tr.ViTModel, tr.ViTConfig(**SIZES, **PATCHES), add_pooling_layer=False
        ),
        "dinov2": random_weights(
            tr.Dinov2WithRegistersModel,
            tr.Dinov2WithRegistersConfig(**SIZES, **PATCHES, num_register_tokens=2),
        ),
        "clip": random_weights(tr.CLIPModel, clip),
        "resnet": random_weights(
            tr.ResNetModel, tr.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1])
        ),
        "bert": random_weights(tr.BertModel, tr.BertConfig(vocab_size=50, **SIZES)),
    }
    root = tmp_path_factory.mktemp("models")
    return {name: (save(root / name, model), model) for name, model in made.items()}


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=40))


def encode_rows(encoder, dataset, images=None):
    return encoder.prepare(dataset, lambda *_: None)(images or dataset.items(0, len(dataset)))


def by_hand(folder, model, dataset):
    from transformers import AutoImageProcessor

    images = [image.convert("RGB") for image in dataset.items(0, len(dataset))]
    pixels = AutoImageProcessor.from_pretrained(folder)(images=images, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        return model(pixel_values=pixels, output_hidden_states=True)


def same(rows, expected):
    np.testing.assert_allclose(rows, expected.numpy(), rtol=1e-4, atol=1e-5)


def test_vit_any_layer_and_every_pooling(models, digits):
    folder, model = models["vit"]
    found = by_hand(folder, model, digits)
    mean = encode_rows(PretrainedVision(folder, layers=(0, 1, -1)), digits)
    assert list(mean) == ["layer 0", "layer 1", "last layer"]
    same(mean["layer 0"], found.hidden_states[0][:, 1:].mean(dim=1))
    same(mean["layer 1"], found.hidden_states[1][:, 1:].mean(dim=1))
    same(mean["last layer"], found.last_hidden_state[:, 1:].mean(dim=1))
    cls = encode_rows(PretrainedVision(folder, layers=(1, 2, -1), pooling="cls"), digits)
    same(cls["layer 1"], found.hidden_states[1][:, 0])
    same(cls["last layer"], found.last_hidden_state[:, 0])
    np.testing.assert_array_equal(cls["layer 2"], cls["last layer"])
    same(encode_rows(PretrainedVision(folder, pooling="pooled"), digits)["last layer"], found.pooler_output)
    assert mean["layer 1"].dtype == np.float32


def test_registers_are_no_patches(models, digits):
    folder, model = models["dinov2"]
    found = by_hand(folder, model, digits)
    assert found.last_hidden_state.shape[1] == 1 + 2 + 9
    same(
        encode_rows(PretrainedVision(folder), digits)["last layer"],
        found.last_hidden_state[:, 3:].mean(dim=1),
    )


def test_clip_gives_its_vision_tower_and_its_projection(models, digits):
    folder, model = models["clip"]
    found = by_hand(folder, model.vision_model, digits)
    same(
        encode_rows(PretrainedVision(folder, pooling="cls"), digits)["last layer"],
        found.last_hidden_state[:, 0],
    )
    pooled = encode_rows(PretrainedVision(folder, pooling="pooled"), digits)["last layer"]
    with torch.inference_mode():
        same(pooled, model.visual_projection(found.pooler_output))
    assert pooled.shape == (40, 6)


def test_feature_maps_are_averaged(models, digits):
    folder, model = models["resnet"]
    found = by_hand(folder, model, digits)
    rows = encode_rows(PretrainedVision(folder, layers=(1, -1)), digits)
    same(rows["layer 1"], found.hidden_states[1].mean(dim=(2, 3)))
    same(rows["last layer"], found.last_hidden_state.mean(dim=(2, 3)))
    same(
        encode_rows(PretrainedVision(folder, pooling="pooled"), digits)["last layer"],
        found.pooler_output.flatten(1),
    )


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("vit", {"layers": (1, 5)}, r"vit: expected layers from 0 \(the embedding\) to 2, .* got \(1, 5\)"),
        ("bert", {}, "expected a vision model, got a BertModel; choose a text encoder"),
    ],
)
def test_what_a_model_cannot_give(models, digits, model, settings, message):
    with pytest.raises(SpaceError, match=message):
        encode_rows(PretrainedVision(models[model][0], **settings), digits)


@pytest.mark.gpu
@pytest.mark.skipif("not torch.cuda.is_available()", reason="torch finds no CUDA device")
def test_a_gpu_gives_nearly_the_same(models, digits):
    folder, model = models["vit"]
    expected = by_hand(folder, model, digits).last_hidden_state[:, 1:].mean(dim=1).numpy()
    rows = encode_rows(PretrainedVision(folder), digits)["last layer"]
    cosine = (rows * expected).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.999
