"""`relcore.encode` and `relcore.layers` against forward passes by hand, and what is left after errors."""

import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import relcore
from relcore import SpaceError
from relcore.base.mapped_rows import MappedRows
from relcore.encode import row_files

torch = pytest.importorskip("torch")

TEXTS = ["a cat", "the dog sat on the mat under the house", "stocks fell", "bread and butter every Sunday"]


class Network(torch.nn.Module):
    """Counts its runs, and fails on request."""

    def __init__(self, most=None):
        super().__init__()
        torch.manual_seed(0)
        self.conv = torch.nn.Conv2d(1, 4, 3)
        self.norm = torch.nn.BatchNorm2d(4)
        self.head = torch.nn.Linear(144, 3)
        self.most = most
        self.runs = 0
        self.fails_at = None

    def forward(self, X):
        self.runs += 1
        if self.runs == self.fails_at:
            raise KeyboardInterrupt
        if self.most and len(X) > self.most:
            raise RuntimeError("CUDA out of memory. Tried to allocate 2 GiB")
        return self.head(self.norm(self.conv(X)).relu().flatten(1))


@pytest.fixture(scope="module")
def pictures():
    return torch.rand(70, 1, 8, 8, generator=torch.Generator().manual_seed(1))


@pytest.fixture(scope="module")
def by_hand(pictures):
    model = Network().eval()
    with torch.no_grad():
        conv = model.conv(pictures)
        return {"conv": conv.mean(dim=(2, 3)).numpy(), "output": model(pictures).numpy()}


def test_layers_of_a_network_in_batches(pictures, by_hand):
    model = Network().train()
    mean = model.norm.running_mean.clone()
    reports = []
    spaces = relcore.encode(
        model, pictures, layers=["conv", "output"], report=lambda *told: reports.append(told)
    )
    assert list(spaces) == ["conv", "output"]
    for layer, expected in by_hand.items():
        np.testing.assert_allclose(spaces[layer].vectors, expected, atol=1e-6)
    assert spaces["conv"].name == "Network, conv"
    assert spaces["conv"].labels is None
    assert model.runs == 3  # 32 + 32 + 6
    assert model.training
    assert torch.equal(model.norm.running_mean, mean)
    assert reports[0] == (0, 70, "encoding")
    assert reports[-1] == (70, 70, "encoding")


@pytest.mark.parametrize("form", ["array", "float64", "loader", "dataset", "list", "generator"])
def test_every_form_of_data_gives_the_same_rows(form, pictures, by_hand):
    from torch.utils.data import DataLoader, TensorDataset

    targets = torch.arange(70) % 3
    forms = {
        "array": pictures.numpy(),
        "float64": pictures.double().numpy(),
        "loader": DataLoader(TensorDataset(pictures, targets), batch_size=9),
        "dataset": TensorDataset(pictures, targets),
        "list": list(zip(pictures, targets.tolist(), strict=True)),
        "generator": (part for part in pictures.split(40)),
    }
    space = relcore.encode(Network(), forms[form])
    np.testing.assert_allclose(space.vectors, by_hand["output"], atol=1e-6)
    if form in ("loader", "dataset", "list"):
        assert space.labels.tolist() == [str(one) for one in targets.tolist()]
    else:
        assert space.labels is None


def test_memory_that_runs_out_halves_the_batch(pictures, by_hand):
    space = relcore.encode(Network(most=5), pictures)
    np.testing.assert_allclose(space.vectors, by_hand["output"], atol=1e-6)
    with pytest.raises(SpaceError, match="a single item does not fit"):
        relcore.encode(Network(most=0.5), pictures)


def test_an_error_of_the_network_tells_the_shape_of_its_batch(pictures):
    with pytest.raises(RuntimeError) as caught:
        relcore.encode(Network(), pictures[:5, 0])
    [note] = caught.value.__notes__
    assert f"a batch of shape {tuple(pictures[:5, 0].shape)}; each item" in note


def test_wrong_data_are_refused_before_the_network_runs(pictures):
    from torch.utils.data import DataLoader, TensorDataset

    model = Network()
    wrong = [
        ({"data": pictures, "ids": ["a", "b"]}, "expected 70 ids, one per row"),
        ({"data": pictures, "labels": ["a"]}, "expected 70 labels"),
        ({"data": pictures, "ids": ["a"] * 70}, "repeat|distinct|once|twice"),
        ({"data": DataLoader(TensorDataset(pictures), shuffle=True)}, "got a RandomSampler"),
        ({"data": TEXTS}, "give the model's tokenizer"),
        ({"data": pictures, "layers": "cnv"}, "did you mean 'conv'"),
        ({"data": pictures, "layers": model.conv}, "got Conv2d; give its name, 'conv'"),
        ({"data": pictures, "layers": [model.conv, 3]}, "got Conv2d"),
        ({"data": pictures, "layers": [torch.nn.ReLU()]}, "got ReLU$"),
        ({"data": pictures, "pooling": "max"}, "pooling: expected one of auto, mean"),
        ({"data": pictures, "batch_size": 0}, "batch_size"),
        ({"data": pictures[:0]}, "expected at least one item"),
    ]
    for given, match in wrong:
        with pytest.raises(SpaceError, match=match):
            relcore.encode(model, **given)
    assert model.runs == 0
    for bad, match in ((pictures * np.nan, "NaN or infinity for item 0"), ([(1, 2, 3)], "got 3 parts")):
        with pytest.raises(SpaceError, match=match):
            relcore.encode(model, bad)


def test_rows_in_a_folder_are_mapped_and_can_be_loaded(pictures, by_hand, tmp_path):
    ids = [f"picture {row}" for row in range(70)]
    labels = [str(row % 3) for row in range(70)]
    folder = tmp_path / "rows"
    found = relcore.encode(
        Network(), pictures, layers=["conv", "output"], ids=ids, labels=labels, folder=folder
    )
    again = relcore.encode(Network(), pictures, layers="conv", folder=folder)  # into the same folder
    assert isinstance(again["conv"]._stored, MappedRows)
    loaded = relcore.load_space(folder / "output.npy")
    np.testing.assert_allclose(loaded.vectors, by_hand["output"], atol=1e-6)
    assert loaded.digest == found["output"].digest
    assert loaded.ids.tolist() == ids
    assert loaded.labels.tolist() == labels


def test_what_is_interrupted_leaves_nothing_half(pictures, tmp_path):
    model = Network().train()
    model.fails_at = 3
    folder = tmp_path / "rows"
    with pytest.raises(KeyboardInterrupt):
        relcore.encode(model, pictures, layers=["conv", "output"], folder=folder)
    assert list(tmp_path.iterdir()) == []
    assert not any(module._forward_hooks for module in model.modules())
    assert model.training
    assert model.norm.training
    assert torch.is_grad_enabled()


def test_many_rows_go_to_a_temporary_file(pictures, by_hand, monkeypatch):
    monkeypatch.setattr(row_files, "MOST_IN_MEMORY", 40 * 7 * 4)
    spaces = relcore.encode(Network(), pictures, layers=["conv", "output"])
    path = spaces["conv"]._stored.origin.stamp.path
    for layer, expected in by_hand.items():
        assert isinstance(spaces[layer]._stored, MappedRows)
        np.testing.assert_allclose(spaces[layer].vectors, expected, atol=1e-6)
        np.testing.assert_allclose(spaces[layer].norms, np.linalg.norm(expected, axis=1), rtol=1e-5)
    del spaces
    assert not Path(path).exists()


MUCH = """
import re
from pathlib import Path
import numpy as np, torch
import relcore

def megabytes(what):
    return int(re.search(what + r":\\s+(\\d+) kB", Path("/proc/self/status").read_text())[1]) / 1024

model = torch.nn.Linear(4, 768)
data = np.random.default_rng(0).normal(size=(200_000, 4)).astype(np.float32)
relcore.encode(model, data[:1000], folder="few")
before = megabytes("VmRSS")
space = relcore.encode(model, data, folder="all")
assert space.dimension == 768
print(megabytes("VmHWM") - before)
"""


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="needs /proc")
def test_many_rows_in_a_mapped_file_take_little_memory(tmp_path):
    """The process takes less than 100 MiB, although 200,000 × 768 numbers as an array take 586 MiB."""
    ran = subprocess.run([sys.executable, "-c", MUCH], cwd=tmp_path, capture_output=True, text=True)
    assert ran.returncode == 0, ran.stderr
    assert (tmp_path / "all" / "output.npy").stat().st_size > 200_000 * 768 * 4
    assert float(ran.stdout) < 100, ran.stdout


def test_half_precision(pictures, by_hand, tmp_path):
    space = relcore.encode(Network(), pictures, half=True, folder=tmp_path / "rows")
    error = np.abs(space.vectors - by_hand["output"]).max()
    assert 0 < error < 0.02  # bfloat16 has 8 bits
    assert np.load(tmp_path / "rows" / "output.npy").dtype == np.float16


def test_a_function_is_a_model_without_layers():
    def embed(texts):
        return np.array([[len(text), 1] for text in texts])

    space = relcore.encode(embed, TEXTS, batch_size=3, ids=list("abcd"))
    assert space.vectors.tolist() == [[len(text), 1] for text in TEXTS]
    assert space.name == "embed"
    assert list(space.payload) == TEXTS
    with pytest.raises(SpaceError, match="expected a PyTorch network"):
        relcore.encode(embed, TEXTS, layers="0")
    with pytest.raises(SpaceError, match="expected a row for each of 4 items, got 1"):
        relcore.encode(lambda texts: np.ones((1, 2)), TEXTS)
    with pytest.raises(SpaceError, match="expected a network or a function, got str"):
        relcore.encode("bert", TEXTS)


def test_the_table_of_layers_names_what_runs(pictures):
    model = Network()
    model.spare = torch.nn.Linear(2, 2)
    table = relcore.layers(model, pictures)
    assert table.layer.tolist() == ["conv", "norm", "head", "output"]
    assert table.kind.tolist() == ["Conv2d", "BatchNorm2d", "Linear", "Network"]
    assert table["shape"].tolist()[0] == (2, 4, 6, 6)
    assert table.d.tolist() == [4, 4, 3, 3]


# Models of transformers.


@pytest.fixture(scope="module")
def minilm():
    from transformers import AutoModel, AutoTokenizer

    from relcore.encoders.transformers import minilm_folder

    folder = minilm_folder()
    return AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder), str(folder)


@pytest.mark.parametrize("pooling", ["mean", "first", "last"])
def test_texts_are_pooled_by_their_tokens(minilm, pooling):
    model, tokenizer, _ = minilm
    spaces = relcore.encode(
        model, TEXTS, processor=tokenizer, layers=["encoder.layer.2", "output"], pooling=pooling, batch_size=3
    )
    for row, text in enumerate(TEXTS):
        with torch.no_grad():
            found = model(**tokenizer(text, return_tensors="pt"), output_hidden_states=True)
        for layer, state in (("encoder.layer.2", found.hidden_states[3]), ("output", found[0])):
            expected = {"mean": state[0].mean(0), "first": state[0, 0], "last": state[0, -1]}[pooling]
            np.testing.assert_allclose(spaces[layer].vectors[row], expected.numpy(), atol=1e-5)
    assert list(spaces["output"].payload) == TEXTS


def test_a_sentence_transformer_gives_what_it_encodes(minilm):
    pytest.importorskip("sentence_transformers")
    from sentence_transformers import SentenceTransformer, models

    model = SentenceTransformer(
        modules=[models.Transformer(minilm[2]), models.Pooling(384), models.Normalize()],
        prompts={"query": "search: "},
        default_prompt_name="query",
    )
    expected = model.encode(TEXTS)
    np.testing.assert_allclose(relcore.encode(model, TEXTS).vectors, expected, atol=1e-6)
    layer = relcore.encode(model, TEXTS, layers="0.model.encoder.layer.5")["0.model.encoder.layer.5"]
    units = layer.vectors / layer.norms[:, None]
    np.testing.assert_allclose(units, expected, atol=1e-5)


def test_the_class_token_of_pictures_does_not_count_in_means():
    import transformers

    torch.manual_seed(0)
    settings = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = transformers.ViTConfig(**settings, image_size=12, patch_size=4, initializer_range=0.5)
    model = transformers.ViTModel(config).eval()
    processor = transformers.ViTImageProcessorPil(size={"height": 12, "width": 12})
    from PIL import Image

    images = [Image.fromarray(np.full((20, 20, 3), shade, np.uint8)) for shade in (0, 90, 200)]
    mean = relcore.encode(model, images, processor=processor)
    first = relcore.encode(model, images, processor=processor, pooling="first")
    with torch.no_grad():
        state = model(**processor(images=images, return_tensors="pt")).last_hidden_state
    np.testing.assert_allclose(mean.vectors, state[:, 1:].mean(1).numpy(), atol=1e-5)
    np.testing.assert_allclose(first.vectors, state[:, 0].numpy(), atol=1e-5)
