"""Hostile ONNX graphs of text models and heads: what they return, and what they take; the truth is a table of
vectors."""

import numpy as np

from tests.hostile.cases import Case, hole, pipe

WORDS = {"[UNK]": 0, "a": 1, "cat": 2, "dog": 3, "sat": 4}
TEXTS = ["a cat", "dog", *["a dog sat"] * 38]
TABLE = np.random.default_rng(0).normal(size=(5, 6)).astype(np.float32)
TRUTH = np.stack([TABLE[[WORDS[word] for word in text.split()]].mean(axis=0) for text in TEXTS])


def tokenizer():
    from tokenizers import Tokenizer
    from tokenizers.models import WordLevel
    from tokenizers.pre_tokenizers import Whitespace

    made = Tokenizer(WordLevel(WORDS, unk_token="[UNK]"))
    made.pre_tokenizer = Whitespace()
    return made.to_str().encode()


def graph(nodes, output="states", axes=3, table=TABLE, **constants):
    """A graph that looks up the tokens in a table as "rows", and then has these nodes."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = [
        helper.make_tensor_value_info(name, TensorProto.INT64, ["n", "t"])
        for name in ("input_ids", "attention_mask")
    ]
    outputs = [helper.make_tensor_value_info(output, TensorProto.FLOAT, [None] * axes)]
    made = [helper.make_node("Gather", ["table", "input_ids"], ["rows"]), *nodes]
    arrays = {"table": table, **constants}
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in arrays.items()]
    whole = helper.make_graph(made, "g", inputs, outputs, tensors)
    version = [helper.make_opsetid("", 17)]
    return helper.make_model(whole, opset_imports=version, ir_version=8).SerializeToString()


def loop_node():
    from onnx import TensorProto, helper

    body = helper.make_graph(
        [
            helper.make_node("Identity", ["on"], ["on_next"]),
            helper.make_node("Sin", ["state"], ["state_next"]),
        ],
        "body",
        [
            helper.make_tensor_value_info("step", TensorProto.INT64, []),
            helper.make_tensor_value_info("on", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state", TensorProto.FLOAT, None),
        ],
        [
            helper.make_tensor_value_info("on_next", TensorProto.BOOL, []),
            helper.make_tensor_value_info("state_next", TensorProto.FLOAT, None),
        ],
    )
    return helper.make_node("Loop", ["times", "yes", "rows"], ["states"], body=body)


def loop(times):
    return graph([loop_node()], times=np.int64(times), yes=np.bool_(True))


def encoded(folder):
    from relcore.encoders.dataset import Dataset
    from relcore.encoders.onnx_texts import OnnxText

    names = [str(row) for row in range(len(TEXTS))]
    dataset = Dataset(lambda start, stop: TEXTS[start:stop], names, name="texts", kind="texts")
    return OnnxText(str(folder / "model")).prepare(dataset, lambda *_: None)(TEXTS)[""]


def head(nodes, **constants):
    """A graph from rows (m, 6) to scores with these nodes."""
    from onnx import TensorProto, helper, numpy_helper

    inputs = [helper.make_tensor_value_info("rows", TensorProto.FLOAT, ["m", 6])]
    outputs = [helper.make_tensor_value_info("states", TensorProto.FLOAT, ["m", "c"])]
    tensors = [numpy_helper.from_array(np.asarray(array), name) for name, array in constants.items()]
    whole = helper.make_graph(nodes, "g", inputs, outputs, tensors)
    version = [helper.make_opsetid("", 17)]
    return helper.make_model(whole, opset_imports=version, ir_version=8)


def scores(folder):
    from relcore.stitch.onnx_heads import OnnxHead

    return OnnxHead(folder / "head.onnx").scores(TABLE)


def head_cases(node):
    """Heads of a stitching, which are such graphs, too."""
    from onnx import TensorProto

    def case(name, content, truth=None, **files):
        files = {"head.onnx": content, **files}
        return Case(f"head: {name}", scores, files, truth, accept=truth is not None, names=("head.onnx",))

    whole = head([node("Identity", ["rows"])])
    yield case("control", whole.SerializeToString(), TABLE)
    shaped = [
        node("Shape", ["rows"], "size"),
        node("Mul", ["size", "times"], "larger"),
        node("Expand", ["number", "larger"]),
    ]
    late = head(shaped, times=np.int64([3_000_000, 1_000_000]), number=np.float32(1))
    yield case("a shape of 400 TB that depends on the rows", late.SerializeToString())
    yield case(
        "a loop of 2⁴⁰", head([loop_node()], times=np.int64(2**40), yes=np.bool_(True)).SerializeToString()
    )
    for place in ("../secret", "/etc/hostname"):
        outside = head([node("Add", ["rows", "weights"])], weights=np.zeros(6, np.float32))
        (weights,) = outside.graph.initializer
        weights.ClearField("raw_data")
        weights.data_location = TensorProto.EXTERNAL
        entry = weights.external_data.add()
        entry.key = "location"
        entry.value = place
        yield case(f"weights in {place}", outside.SerializeToString())


def case(name, content, right=False, words=None):
    files = {"model/model.onnx": content, "model/tokenizer.json": words or tokenizer()}
    truth = None
    if right:
        truth = TRUTH
    return Case(name, encoded, files, truth, accept=right, names=("model",))


def cases():
    from onnx import helper

    def node(kind, inputs, output="states", **settings):
        return helper.make_node(kind, inputs, [output], **settings)

    whole = graph([node("Identity", ["rows"])])
    yield case("control", whole, right=True)
    one = {"first": np.int64([0]), "last": np.int64([1])}
    row = node("Slice", ["rows", "first", "last", "first"])
    yield case("states of one text for a batch", graph([row], **one))
    tall = node("ReduceMax", ["rows"], axes=[0, 1], keepdims=0)
    unsqueezed = node("Unsqueeze", ["high", "first"], "sentence_embedding")
    tall.output[0] = "high"
    pooled = graph([tall, unsqueezed], "sentence_embedding", 2, first=np.int64([0]))
    yield case("one sentence embedding for a batch", pooled)
    yield case("a table smaller than the vocabulary", graph([node("Identity", ["rows"])], table=TABLE[:3]))
    huge = {"shape": np.int64([200_000, 200_000, 1])}
    yield case("a shape of 160 GB", graph([node("ConstantOfShape", ["shape"])], **huge))
    shaped = [
        node("Shape", ["rows"], "size"),
        node("Mul", ["size", "times"], "larger"),
        node("Expand", ["number", "larger"]),
    ]
    late = graph(shaped, times=np.int64([30_000, 1000, 100]), number=np.float32(1))
    yield case("a shape of 100 TB that depends on the texts", late)
    yield case("a loop of 2⁴⁰", loop(2**40))
    nothing = node("Log", ["negative"])
    yield case("NaN", graph([node("Abs", ["rows"], "b"), node("Neg", ["b"], "negative"), nothing]))
    yield case("a width of zero", graph([node("Identity", ["rows"])], table=TABLE[:, :0]))
    for name, content in {
        "empty": b"",
        "cut": whole[: len(whole) // 2],
        "a named pipe": pipe,
        "2 GB of zeros": hole(2 * 10**9),
    }.items():
        yield case(f"model.onnx: {name}", content)
    for name, content in {
        "empty": b" ",
        "nested 100,000 deep": b"[" * 100_000,
        "another document": b'{"model": {"type": "Unigram", "vocab": [["a", -1e400]]}}',
    }.items():
        yield case(f"tokenizer.json: {name}", whole, words=content)
    yield from head_cases(node)
