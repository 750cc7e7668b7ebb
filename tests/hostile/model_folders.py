"""Hostile folders of transformers models: safetensors only, nothing executed; the truth is what the model
was made of.
"""

import json
import pickle
import tempfile
from functools import cache
from pathlib import Path

import numpy as np

from tests.hostile.cases import Case, hole, link, pipe, spoiled
from tests.hostile.torch_file import Calls

FOLDER = "model"


@cache
def made():
    import torch
    from transformers import BertConfig, BertModel, BertTokenizer

    torch.manual_seed(0)
    sizes = {"hidden_size": 8, "num_hidden_layers": 1, "num_attention_heads": 1, "intermediate_size": 8}
    with tempfile.TemporaryDirectory() as folder:
        BertModel(BertConfig(**sizes, vocab_size=10, max_position_embeddings=16)).save_pretrained(folder)
        words = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", "[MASK]", "a", "b", "c", "d", "e"]
        (Path(folder) / "vocab.txt").write_text("\n".join(words))
        BertTokenizer(str(Path(folder) / "vocab.txt")).save_pretrained(folder)
        return {path.name: path.read_bytes() for path in sorted(Path(folder).iterdir())}


def encoded(folder):
    from relcore.encoders.dataset import Dataset
    from relcore.encoders.transformers import PretrainedText

    texts = ["a b", "c d e"]
    dataset = Dataset(lambda start, stop: texts[start:stop], ["0", "1"], name="texts", kind="texts")
    rows = PretrainedText(str(folder / FOLDER)).prepare(dataset, lambda *_: None)(texts)
    return np.concatenate([*rows.values()])


@cache
def truth():
    import torch
    from transformers import AutoModel, AutoTokenizer

    with tempfile.TemporaryDirectory() as folder:
        for name, content in made().items():
            (Path(folder) / name).write_bytes(content)
        model = AutoModel.from_pretrained(folder).eval()
        tokenizer = AutoTokenizer.from_pretrained(folder)
        with torch.inference_mode():
            found = [model(**tokenizer(text, return_tensors="pt")) for text in ("a b", "c d e")]
            rows = [one.last_hidden_state[0].mean(0).numpy() for one in found]
    return np.round(np.stack(rows), 4).tobytes()


def case(name, change, right=False, accept=False):
    there = {file: content for file, content in (made() | change).items() if content is not None}
    files = {f"{FOLDER}/{file}": content for file, content in there.items()}

    def read(folder):
        return np.round(encoded(folder), 4).tobytes()

    return Case(name, read, files, truth() if right else None, accept=accept, names=(FOLDER,))


def cases():
    weights = made()["model.safetensors"]
    config = json.loads(made()["config.json"])
    harmful = pickle.dumps(Calls(__import__("os").system, "touch executed"))
    yield case("control", {}, right=True, accept=True)
    yield case("pickled weights beside it", {"pytorch_model.bin": harmful}, right=True)
    yield case("pickled weights instead", {"pytorch_model.bin": harmful, "model.safetensors": None})
    yield case("a pickle called safetensors", {"model.safetensors": harmful})
    code = "import os\nos.system('touch executed')\nclass A: pass\n"
    own = {"auto_map": {"AutoModel": "code.A", "AutoConfig": "code.A", "AutoTokenizer": "code.A"}}
    files = {"config.json": json.dumps(config | own).encode(), "code.py": code.encode()}
    yield case("code of its own", files, right=True)
    only = json.dumps(own | {"model_type": "unheard-of"}).encode()
    yield case("only code of its own", files | {"config.json": only})
    for name, content in {
        "missing": None,
        "empty": b"",
        "nested 100,000 deep": b"[" * 100_000,
        "a named pipe": pipe,
        "a link to a device": link("/dev/zero"),
        "10⁹ layers": json.dumps(config | {"num_hidden_layers": 10**9}).encode(),
        "a width of 10⁹": json.dumps(config | {"hidden_size": 10**9}).encode(),
        "two layers, weights of one": json.dumps(config | {"num_hidden_layers": 2}).encode(),
    }.items():
        yield case(f"config.json: {name}", {"config.json": content})
    for name, content in {
        "missing": None,
        "empty": b"",
        "2 GB of zeros": hole(2 * 10**9),
        "a named pipe": pipe,
        "one tensor less": weights.replace(b"LayerNorm.weight", b"LayerNorm.weighx"),
    }.items():
        yield case(f"weights: {name}", {"model.safetensors": content})
    for name, content in spoiled(weights, n_flips=2):
        if "flipped" not in name and "edit" not in name:  # they may be other numbers
            yield case(f"weights: {name}", {"model.safetensors": content})
    tokenizer = {name: None for name in made() if "token" in name or "vocab" in name}
    yield case("no tokenizer", tokenizer)
    yield case("tokenizer.json: empty", {"tokenizer.json": b""})
