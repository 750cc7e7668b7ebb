"""Vision encoders against forward passes by hand: tiny models with random weights, from folders."""

import shutil
from dataclasses import replace

import numpy as np
import pytest
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.catalog import encoding_key
from relcore.catalog.encoding import encode
from relcore.encoders import network
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.transformers import PretrainedVision
from relcore.runs.store import Store
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
    """Folders by name; the models themselves beside them."""
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


def test_a_row_does_not_hang_on_the_others(models, digits):
    encode_batch = PretrainedVision(models["vit"][0]).prepare(digits, lambda *_: None)
    together = encode_batch(digits.items(0, 40))["last layer"]
    alone = np.concatenate([encode_batch([digits.item(row)])["last layer"] for row in range(40)])
    np.testing.assert_allclose(together, alone, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize(
    "image",
    [Image.new("1", (1, 1)), Image.new("RGB", (3, 5)), Image.new("RGBA", (50, 3)), Image.new("P", (9, 9))],
)
def test_pictures_of_any_mode_and_size(models, digits, image):
    rows = encode_rows(PretrainedVision(models["vit"][0]), digits, [digits.item(0), image])["last layer"]
    assert rows.shape == (2, 16)
    assert np.isfinite(rows).all()


def test_the_whole_way_into_the_store_and_layers_found_by_themselves(models, tmp_path, digits):
    folder, _ = models["vit"]
    store, spec = Store(tmp_path), DatasetSpec("digits", limit=40)
    both = encode(spec, PretrainedVision(folder, layers=(1, -1)), store)
    assert [space.name for space in both] == ["vit layer 1 · digits", "vit last layer · digits"]
    assert store.has(encoding_key(digits.digest, PretrainedVision(folder, layers=(1,)), "layer 1"))
    assert store.get(store.entries()[0]).metadata["encoder"]["encoder"] == "pretrained-vision"


def test_a_retrained_folder_is_another_encoder(models, tmp_path, digits):
    folder = tmp_path / "vit"
    shutil.copytree(models["vit"][0], folder)
    encoder = PretrainedVision(str(folder))
    before = encoding_key(digits.digest, encoder, "last layer")
    model = models["vit"][1]
    with torch.no_grad():
        model.pooler.dense.bias += 1
        try:
            model.save_pretrained(folder)
        finally:
            model.pooler.dense.bias -= 1
    assert encoding_key(digits.digest, encoder, "last layer") != before


@pytest.mark.parametrize(
    ("model", "settings", "message"),
    [
        ("vit", {"layers": (1, 5)}, r"vit: expected layers from 0 \(the embedding\) to 2, .* got \(1, 5\)"),
        (
            "vit",
            {"layers": (0,), "pooling": "cls"},
            "its class token is the same for every picture; choose pooling 'mean'",
        ),
        ("vit", {"layers": (-3,), "pooling": "cls"}, "its class token is the same for every picture"),
        (
            "resnet",
            {"pooling": "cls"},
            "resnet CLS: expected a model with a class token, got a ResNetModel without; choose",
        ),
        (
            "vit-without-pooler",
            {"pooling": "pooled"},
            "all weights of a ViTModel, got 2 missing, first 'pooler.dense.bias'.*'cls'",
        ),
        ("bert", {}, "expected a vision model, got a BertModel; choose a text encoder"),
    ],
)
def test_what_a_model_cannot_give(models, digits, model, settings, message):
    with pytest.raises(SpaceError, match=message):
        encode_rows(PretrainedVision(models[model][0], **settings), digits)


def test_a_model_without_pooler_pools_otherwise(models, digits):
    assert encode_rows(PretrainedVision(models["vit-without-pooler"][0]), digits)["last layer"].shape == (
        40,
        16,
    )


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": ()}, r"layers: expected distinct whole numbers, such as \(4, 8, 12\), got \(\)"),
        ({"layers": (1, 1)}, "layers: expected distinct whole numbers"),
        ({"layers": (True,)}, "layers: expected distinct whole numbers"),
        ({"pooling": "max"}, "pooling: expected one of mean, cls, pooled, got 'max'"),
        (
            {"pooling": "pooled", "layers": (1,)},
            r"'pooled' is of the last layer; expected layers \(-1,\), got \(1,\)",
        ),
    ],
)
def test_settings_that_make_no_sense(settings, message):
    with pytest.raises(SpaceError, match=message):
        PretrainedVision("model", **settings)


@pytest.fixture
def copy(models, tmp_path):
    return shutil.copytree(models["vit"][0], tmp_path / "vit")


def test_a_folder_without_an_image_processor(copy, digits):
    (copy / "preprocessor_config.json").unlink()
    with pytest.raises(
        SpaceError, match=r"expected an image processor \(preprocessor_config.json\) beside the weights, got"
    ):
        encode_rows(PretrainedVision(str(copy)), digits)


def test_a_folder_with_a_pickle_only(copy, digits, models):
    (copy / "model.safetensors").unlink()
    torch.save(models["vit"][1].state_dict(), copy / "pytorch_model.bin")
    with pytest.raises(
        SpaceError, match=r"expected weights as .safetensors, got 'pytorch_model.bin', which would run code"
    ):
        encode_rows(PretrainedVision(str(copy)), digits)


def test_damaged_weights(copy, digits):
    (copy / "model.safetensors").write_bytes((copy / "model.safetensors").read_bytes()[:1000])
    with pytest.raises(SpaceError, match="expected a transformers model, got one that cannot be loaded"):
        encode_rows(PretrainedVision(str(copy)), digits)


def test_a_processor_that_leaves_sizes_as_they_are(copy, digits):
    from transformers import ViTImageProcessorPil

    ViTImageProcessorPil(do_resize=False).save_pretrained(copy)
    images = [Image.new("L", (12, 12)), Image.new("L", (8, 8))]
    with pytest.raises(
        SpaceError, match="expected pictures that the model's image processor brings to one size"
    ):
        encode_rows(PretrainedVision(str(copy)), digits, images)


def test_a_name_that_is_not_here_and_no_network(tmp_path, digits, monkeypatch):
    from huggingface_hub import constants

    monkeypatch.setattr(constants, "HF_HUB_CACHE", str(tmp_path))
    monkeypatch.setattr(network, "answers", lambda *_: False)
    with pytest.raises(
        SpaceError, match="model 'owner/tiny-vit': expected it on this machine, or the network"
    ):
        encode_rows(replace(PretrainedVision("owner/tiny-vit"), pooling="cls"), digits)


@pytest.mark.gpu
@pytest.mark.skipif("not torch.cuda.is_available()", reason="torch finds no CUDA device")
def test_a_gpu_gives_nearly_the_same(models, digits):
    folder, model = models["vit"]
    expected = by_hand(folder, model, digits).last_hidden_state[:, 1:].mean(dim=1).numpy()
    rows = encode_rows(PretrainedVision(folder), digits)["last layer"]
    cosine = (rows * expected).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.999
