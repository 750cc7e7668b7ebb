"""Heads in ONNX files answer as the classifiers from which they were made. Wrong or hostile graphs are refused in
one sentence."""

import json

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper, numpy_helper
from sklearn.linear_model import LogisticRegression

from relcore import SpaceError, load_space, stitch_matrix
from relcore.files.saving import save_space
from tests.relcore.stitch.test_own_heads import CLASSES, IDS, LABELS, SPACES, SPEC, X

FITTED = LogisticRegression().fit(X[:200], LABELS[:200])


def save(path, nodes, inputs=(("rows", (None, 8)),), outputs=(("scores", (None, 3)),), **constants):
    """Save a graph of these nodes; shapes are those that it declares."""
    inputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in inputs]
    outputs = [helper.make_tensor_value_info(name, TensorProto.FLOAT, shape) for name, shape in outputs]
    tensors = [numpy_helper.from_array(np.asarray(value), name) for name, value in constants.items()]
    graph = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8), path)
    return path


def node(kind, inputs, output="scores", **settings):
    return helper.make_node(kind, inputs, [output], **settings)


def linear(path, weights=FITTED.coef_, bias=FITTED.intercept_, **declared):
    weights = np.asarray(weights, np.float32)
    nodes = [node("Gemm", ["rows", "weights", "bias"], transB=1)]
    return save(path, nodes, **declared, weights=weights, bias=np.asarray(bias, np.float32))


@pytest.mark.parametrize("confined", ["", "1"])
def test_a_head_in_a_file_answers_as_the_classifier_from_which_it_was_made(tmp_path, monkeypatch, confined):
    monkeypatch.setenv("RELSCOPE_CONFINED", confined)
    result = stitch_matrix(SPACES, SPEC, heads=[str(linear(tmp_path / "one.onnx")), None])
    expected = stitch_matrix(SPACES, SPEC, heads=[FITTED, None])
    for method in SPEC.methods:
        np.testing.assert_array_equal(result.runs[0].answers[method], expected.runs[0].answers[method])
    assert result.own_heads == ("one",)


def test_a_module_that_torch_exports_is_read_with_any_number_of_rows(tmp_path):
    torch = pytest.importorskip("torch")
    made = torch.nn.Linear(8, 3)
    with torch.no_grad():
        made.weight.copy_(torch.from_numpy(FITTED.coef_))
        made.bias.copy_(torch.from_numpy(FITTED.intercept_))
    path = tmp_path / "one.onnx"
    axes = {"rows": {0: "m"}, "scores": {0: "m"}}
    names = {"input_names": ["rows"], "output_names": ["scores"], "dynamic_axes": axes}
    torch.onnx.export(made, (torch.from_numpy(X[:2]),), path, dynamo=False, **names)
    accuracy, _ = stitch_matrix(SPACES, SPEC, heads=[path, None]).matrix("procrustes")
    assert accuracy[0, 0] == FITTED.score(X[200:], LABELS[200:])


def test_probabilities_are_preferred_to_other_outputs(tmp_path):
    """Converters of scikit-learn's classifiers write the probabilities beside other outputs."""
    weights = {"weights": FITTED.coef_.astype(np.float32), "bias": FITTED.intercept_.astype(np.float32)}
    nodes = [
        node("Gemm", ["rows", "weights", "bias"], "raw", transB=1),
        node("Softmax", ["raw"], "probabilities"),
        node("Neg", ["raw"], "other"),
    ]
    outputs = (("other", (None, 3)), ("probabilities", (None, 3)))
    path = save(tmp_path / "one.onnx", nodes, outputs=outputs, **weights)
    accuracy, _ = stitch_matrix(SPACES, SPEC, heads=[path, None]).matrix("procrustes")
    assert accuracy[0, 0] == FITTED.score(X[200:], LABELS[200:])


def graphs(folder):
    """Wrong and hostile files, each with what the sentence must say."""
    path = folder / "one.onnx"
    path.write_bytes(b"no graph")
    yield path, "expected an ONNX graph, got files that cannot be loaded"
    yield folder / "missing.onnx", "expected an ONNX file, got none"
    rng = np.random.default_rng(0)
    narrow = linear(folder / "narrow.onnx", rng.normal(size=(3, 5)), inputs=[("rows", (None, 5))])
    yield narrow, "to map the 8 dimensions of 'one' .* got a graph from 5 dimensions to 3 scores"
    wide = rng.normal(size=(4, 8)), rng.normal(size=4)
    four = linear(folder / "four.onnx", *wide, outputs=[("scores", (None, 4))])
    yield four, "score for each of 3 classes, got a graph from 8 dimensions to 4 scores"
    free = {"inputs": [("rows", ("m", "d"))], "outputs": [("scores", ("m", "c"))]}
    yield linear(folder / "d.onnx", rng.normal(size=(3, 5)), **free), "runs on rows 100 × 8, got an error"
    yield linear(folder / "c.onnx", *wide, **free), "from any dimensions to 4 scores|from 8 dimensions to 4"
    yield linear(folder / "batch.onnx", inputs=[("rows", (1, 8))]), "any number of rows, got one for 1"
    two = [node("Add", ["rows", "more"])]
    both = [("rows", (None, 8)), ("more", (None, 8))]
    yield save(folder / "two.onnx", two, both, [("scores", (None, 8))]), "got inputs 'rows', 'more'"
    deep = [node("Unsqueeze", ["rows", "first"])]
    cube = [("scores", (None, 1, 8))]
    yield save(folder / "deep.onnx", deep, outputs=cube, first=np.int64([1])), "outputs of floats none"
    weights = np.ones((8, 3), np.float32)
    one = [node("ReduceMax", ["rows"], "high", axes=[0], keepdims=1), node("MatMul", ["high", "weights"])]
    ends = {"outputs": free["outputs"], "weights": weights}
    yield save(folder / "all.onnx", one, **ends), "scores of 100 × C, got 1 × 3"
    nothing = [node("Mul", ["rows", "zero"], "zeros"), node("Div", ["zeros", "zeros"], "wide")]
    nothing.append(node("MatMul", ["wide", "weights"]))
    yield save(folder / "nan.onnx", nothing, zero=np.float32(0), weights=weights), "got NaN"
    huge = [node("ConstantOfShape", ["shape"])]
    ends = {"outputs": free["outputs"], "shape": np.int64([200_000, 200_000])}
    yield save(folder / "huge.onnx", huge, **ends), "8 dimensions to 200000 scores"


def test_wrong_and_hostile_graphs_are_refused_in_one_sentence(tmp_path, monkeypatch):
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    for path, match in graphs(tmp_path):
        with pytest.raises(SpaceError, match=match) as refused:
            stitch_matrix(SPACES, SPEC, heads=[path, None])
        assert "\n" not in str(refused.value)


@pytest.fixture
def files(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("RELSCOPE_CONFINED", "1")
    for space in SPACES:
        save_space(space, tmp_path / f"{space.name}.npz")
    linear(tmp_path / "one.onnx")
    return ["one.npz", "two.npz"]


def test_the_command_reads_heads_named_after_their_spaces(run, refuse, files, tmp_path):
    out = run("stitch", *files, "--head one.onnx --anchors 40 --delta 0.1 --csv")
    spaces = [load_space(name) for name in files]
    assert "relative" not in out  # by default the methods that such a head can read
    spec = json.loads(json.dumps({"methods": ["procrustes"], "n_anchors": 40, "test_ids": IDS[200:]}))
    (tmp_path / "spec.json").write_text(json.dumps(spec))
    run("stitch", *files, "--head one.onnx --spec spec.json -o cells.csv")
    expected = stitch_matrix(spaces, SPEC, heads=[FITTED, None]).matrix("procrustes")[0]
    cells = [line.split(",") for line in (tmp_path / "cells.csv").read_text().splitlines()]
    score = cells[0].index("score")
    found = {tuple(cell[1:3]): float(cell[score]) for cell in cells[1:] if cell[3] == "accuracy"}
    assert found["two", "one"] == pytest.approx(expected[1, 0])
    linear(tmp_path / "other.onnx")
    for options, match in (
        ("--head other.onnx", "'one.onnx', 'two.onnx', got 'other.onnx'; rename the file"),
        ("--head one.onnx --head one.onnx", "expected one file for a space"),
        ("--head one.onnx --methods relative", "expected methods that translate rows"),
        ("--head forest", "expected at most one of 'logistic', 'mlp'"),
        ("--head mlp --head logistic", "expected at most one of"),
    ):
        assert match in refuse("stitch", *files, options)


def test_a_head_of_permuted_labels_tells_nothing(tmp_path):
    """The negative control: 100 test rows of three classes, so chance is at most .37 ± .05."""
    order = np.random.default_rng(1).permutation(200)
    head = LogisticRegression().fit(X[:200], LABELS[:200][order])
    assert head.classes_.tolist() == list(CLASSES)
    path = linear(tmp_path / "one.onnx", head.coef_, head.intercept_)
    accuracy, _ = stitch_matrix(SPACES, SPEC, heads=[path, None]).matrix("procrustes")
    assert accuracy[1, 0] < 0.55
