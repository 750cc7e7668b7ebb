"""Vision models as ONNX graphs equal the networks from which they were exported, with the pictures as the image
processor of transformers makes them."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from PIL import Image

from relcore.base.errors import SpaceError
from relcore.catalog.naming import space_spec
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import Encoder
from relcore.encoders.onnx_pictures import OnnxPictures
from relcore.encoders.transformers import PretrainedVision
from relcore.runs.work import silent
from tests.lazily import Lazily

torch = Lazily("torch")

MEAN = [0.2, 0.4, 0.6]
DEVIATION = [0.5, 0.25, 0.5]
PROCESSOR = {
    "image_processor_type": "CLIPImageProcessor",
    "do_resize": True,
    "size": {"shortest_edge": 20},
    "resample": 3,
    "do_center_crop": True,
    "crop_size": {"height": 16, "width": 16},
    "do_rescale": True,
    "rescale_factor": 1 / 255,
    "do_normalize": True,
    "image_mean": MEAN,
    "image_std": DEVIATION,
}


@pytest.fixture(scope="module")
def digits():
    return load_dataset(DatasetSpec("digits", limit=40))


@pytest.fixture(scope="module")
def network():
    """A small network from pixels to vectors (n, 10), and its map of features (n, 8, 4, 4)."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        layers = [torch.nn.Conv2d(3, 8, 3, 2, 1), torch.nn.ReLU(), torch.nn.Conv2d(8, 8, 3, 2, 1)]
        body = torch.nn.Sequential(*layers, torch.nn.BatchNorm2d(8))
        head = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(128, 10))
    return torch.nn.Sequential(body, head).eval()


def export(model, folder, pixels=(2, 3, 16, 16), names=("vectors",), processor=PROCESSOR, **settings):
    folder.mkdir(exist_ok=True)
    free = {name: {0: "n"} for name in ("pixel_values", *names)}
    torch.onnx.export(
        model,
        (torch.zeros(pixels),),
        folder / "model.onnx",
        dynamo=False,
        input_names=["pixel_values"],
        output_names=list(names),
        dynamic_axes=free,
    )
    (folder / "preprocessor_config.json").write_text(json.dumps(processor | settings))
    return str(folder)


@pytest.fixture(scope="module")
def folder(network, tmp_path_factory):
    return export(network, tmp_path_factory.mktemp("models") / "small")


def rows_of(dataset, folder, pooling="mean"):
    return OnnxPictures(folder, pooling).prepare(dataset, silent)(dataset.items(0, len(dataset)))[""]


def pixels_by_hand(images):
    """The pictures as the configuration says, by Pillow and NumPy."""
    made = []
    for image in images:
        image = image.convert("RGB")
        width, height = image.size
        scale = 20 / min(width, height)
        image = image.resize((int(width * scale), int(height * scale)), Image.Resampling.BICUBIC)
        left = (image.width - 16) // 2
        top = (image.height - 16) // 2
        cropped = np.asarray(image.crop((left, top, left + 16, top + 16))) / 255
        made.append(((cropped - MEAN) / DEVIATION).transpose(2, 0, 1))
    return np.stack(made).astype(np.float32)


def pictures():
    """Colour pictures of several sizes; the second is as wide as pictures of three channels would be high."""
    rng = np.random.default_rng(0)
    sizes = [(40, 24), (24, 3), (30, 30), *[(20, 21)] * 40]
    return [
        Image.fromarray(rng.integers(0, 256, (height, width, 3), dtype=np.uint8)) for width, height in sizes
    ]


def dataset_of(images):
    names = [str(row) for row in range(len(images))]
    return Dataset(lambda start, stop: images[start:stop], names, name="colours", kind="images")


@pytest.mark.parametrize("confined", ["", "1"])
def test_rows_are_those_of_the_network_for_resized_cropped_and_normalised_pictures(
    network, folder, monkeypatch, confined
):
    monkeypatch.setenv("RELSCOPE_CONFINED", confined)
    images = [one for one in pictures() if min(one.size) > 3]
    with torch.inference_mode():
        expected = network(torch.from_numpy(pixels_by_hand(images))).numpy()
    rows = rows_of(dataset_of(images), folder)
    assert (rows.shape, rows.dtype) == ((42, 10), np.float32)
    np.testing.assert_allclose(rows, expected, rtol=1e-4, atol=2e-5)
    alone = rows_of(dataset_of(images[5:6]), folder)
    np.testing.assert_allclose(alone[0], rows[5], rtol=1e-4, atol=1e-6)


def test_pictures_of_few_pixels_are_read_by_their_channels(network, folder):
    narrow = pictures()[1:2]
    with torch.inference_mode():
        expected = network(torch.from_numpy(pixels_by_hand(narrow))).numpy()
    np.testing.assert_allclose(rows_of(dataset_of(narrow), folder), expected, rtol=1e-4, atol=2e-5)


def test_maps_of_features_are_averaged(network, tmp_path, digits):
    folder = export(network[0], tmp_path / "map", names=("features",))
    with torch.inference_mode():
        expected = network[0](torch.from_numpy(pixels_by_hand(digits.items(0, 40)))).mean(dim=(2, 3)).numpy()
    np.testing.assert_allclose(rows_of(digits, folder), expected, rtol=1e-4, atol=2e-5)
    with pytest.raises(SpaceError, match="an output of tokens, for pooling 'cls', got a map of features"):
        rows_of(digits, folder, "cls")
    with pytest.raises(SpaceError, match=r"an output \(n, d\) .* for pooling 'pooled', got 'features'"):
        rows_of(digits, folder, "pooled")


def test_a_transformer_equals_the_same_model_from_safetensors(tmp_path, digits):
    """The oracle is `PretrainedVision`, for each pooling."""
    import transformers as tr

    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    config = tr.ViTConfig(
        **sizes, image_size=12, patch_size=4, initializer_range=0.5, attn_implementation="eager"
    )
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        model = tr.ViTModel(config).eval()
    model.save_pretrained(tmp_path / "vit")
    processor = tr.ViTImageProcessorPil(size={"height": 12, "width": 12})
    processor.save_pretrained(tmp_path / "vit")

    class Exported(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.model = model

        def forward(self, pixel_values):
            found = self.model(pixel_values=pixel_values)
            return found.last_hidden_state, found.pooler_output

    names = ("last_hidden_state", "pooler_output")
    settings = json.loads((tmp_path / "vit" / "preprocessor_config.json").read_text())
    folder = export(Exported(), tmp_path / "onnx", (2, 3, 12, 12), names, settings)
    (tmp_path / "onnx" / "config.json").write_text((tmp_path / "vit" / "config.json").read_text())
    for pooling in ("mean", "cls", "pooled"):
        oracle = PretrainedVision(str(tmp_path / "vit"), pooling=pooling).prepare(digits, silent)
        expected = oracle(digits.items(0, 40))["last layer"]
        np.testing.assert_allclose(rows_of(digits, folder, pooling), expected, rtol=1e-4, atol=1e-5)
    before = OnnxPictures(folder).content()
    (tmp_path / "onnx" / "config.json").unlink()
    assert OnnxPictures(folder).content() != before  # the mean is over the class token, too
    assert np.abs(rows_of(digits, folder) - rows_of(digits, folder, "cls")).max() > 0.01


def test_grey_networks_read_grey_pictures(tmp_path, digits):
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(0)
        grey = torch.nn.Sequential(torch.nn.Conv2d(1, 4, 3, 2, 1), torch.nn.Flatten()).eval()
    folder = export(
        grey, tmp_path / "grey", (2, 1, 16, 16), image_mean=[0.5], image_std=[0.5], do_convert_rgb=False
    )
    rows = rows_of(digits, folder)
    assert rows.shape == (40, 256)
    assert np.linalg.matrix_rank(rows - rows.mean(axis=0)) > 20


def test_settings_make_titles_records_and_digests(folder, tmp_path, network):
    encoder = OnnxPictures(folder, "cls")
    assert encoder.title == "small CLS"
    assert Encoder.from_record(encoder.to_record()) == encoder
    other = export(network, tmp_path / "small", size={"shortest_edge": 18})
    assert OnnxPictures(other).content() != OnnxPictures(folder).content()


def wrong(folder, model):
    """Edits of a folder, each with what the sentence must say."""
    processor = folder / "preprocessor_config.json"
    for settings, match in (
        ({"size": {"shortest_edge": 10**7}}, "1 to 2,048 pixels per side, got sides of '10000000'"),
        ({"crop_size": {"height": 15, "width": 16}}, "pixels of 3 × 16 × 16, .* got 3 × 15 × 16"),
        ({"do_resize": False, "do_center_crop": False}, r"got an error|pixels of 3 × 16"),
        ({"image_processor_type": "NoSuchProcessor"}, "files of its image processor beside the weights"),
        (
            {"auto_map": {"AutoImageProcessor": "code.Mine"}, "image_processor_type": "Mine"},
            "image processor",
        ),
        ({"image_mean": "a"}, "prepare the pictures of 'digits', got an error"),
    ):
        processor.write_text(json.dumps(PROCESSOR | settings))
        yield match
    for content in ("", "[1]", "[" * 100_000):
        processor.write_text(content)
        yield "expected a preprocessor_config.json that"
    processor.write_text(json.dumps(PROCESSOR))
    for node, shape, match in (
        (
            helper.make_node("ReduceMean", ["pixel_values"], ["rows"], axes=[0]),
            ("n", 3, 16, 16),
            "output of 32 × d, got 1 × 3 × 16 × 16",
        ),
        (helper.make_node("Expand", ["zero", "huge"], ["rows"]), ("n", "d"), "model.*expected"),
    ):
        inputs = [helper.make_tensor_value_info("pixel_values", TensorProto.FLOAT, ["n", 3, 16, 16])]
        outputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, shape)]
        constants = [numpy_helper.from_array(np.float32(0), "zero")]
        constants.append(numpy_helper.from_array(np.int64([300_000, 300_000]), "huge"))
        graph = helper.make_graph([node], "g", inputs, outputs, constants)
        onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), model)
        yield match
    model.write_bytes(b"no graph")
    yield "expected an ONNX graph, got files that cannot"
    model.unlink()
    yield "expected a folder with model.onnx .* and preprocessor_config.json"


def test_wrong_and_hostile_folders_are_refused_in_one_sentence(network, tmp_path, digits, monkeypatch):
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    folder = export(network, tmp_path / "small")
    for match in wrong(tmp_path / "small", tmp_path / "small" / "model.onnx"):
        with pytest.raises(SpaceError, match=match) as refused:
            rows_of(digits, folder)
        assert "\n" not in str(refused.value)


def test_the_command_encodes_pictures(run, one_queue, own_store, folder, digits):
    (row,) = json.loads(run(f"encode digits --limit 40 --encoder onnx:{folder} --json"))["rows"]
    assert (row["name"], row["n"], row["d"]) == ("small · digits", 40, 10)
    space = space_spec(row["key"]).load()
    np.testing.assert_array_equal(space.vectors, rows_of(digits, folder))
    assert row["key"] in run(f"encode digits --limit 40 --encoder onnx-vision:{folder}")
