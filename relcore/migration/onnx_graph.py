"""An adapter as ONNX: the same steps as a graph that onnxruntime and other programs run."""

from __future__ import annotations

from typing import Any

import numpy as np

from relcore.extras import extra
from relcore.migration.adapter_file import LoadedAdapter
from relcore.migration.steps import Affine, Step, Unit

OPSET = 18  # ReduceL2 takes its axes as an input from here on; onnxruntime knows it since 1.14
_IR = 8  # of the same time
_LEAST_LENGTH = 1e-30  # a shorter row is taken for a zero row, which stays zero


def graph_bytes(adapter: LoadedAdapter, side: str) -> bytes:
    """The graph of one side, ``"queries"`` or ``"corpus"``, checked by the package onnx.

    Input ``rows``, float32 (n, d) for any n; output ``mapped``, float32 (n, width) of length 1. The opset is `OPSET`.

    Raises
    ------
    SpaceError
        The package onnx is not installed.
    """
    with extra("onnx"):
        import onnx
    steps, width = {
        "queries": (adapter.query_steps_, adapter.card.new_width),
        "corpus": (adapter.corpus_steps_, adapter.card.old_width),
    }[side]
    graph = _Graph()
    for step in steps:
        graph.add(step)
    made = onnx.helper.make_graph(
        [*graph.nodes, onnx.helper.make_node("Identity", [graph.value], ["mapped"])],
        f"relscope adapter, {side}",
        [onnx.helper.make_tensor_value_info("rows", onnx.TensorProto.FLOAT, ["n", width])],
        [onnx.helper.make_tensor_value_info("mapped", onnx.TensorProto.FLOAT, ["n", adapter.card.width])],
        graph.tensors,
    )
    model = onnx.helper.make_model(
        made, producer_name="relscope", ir_version=_IR, opset_imports=[onnx.helper.make_opsetid("", OPSET)]
    )
    onnx.checker.check_model(model, full_check=True)
    return model.SerializeToString()


class _Graph:
    """Nodes and tensors so far; `value` is the name of the rows after the last one."""

    def __init__(self) -> None:
        self.nodes: list[Any] = []
        self.tensors: list[Any] = []
        self.value = "rows"

    def add(self, step: Step) -> None:
        if isinstance(step, Unit):
            length = self._node("ReduceL2", self.value, self._tensor(np.array([1], np.int64)), keepdims=1)
            floor = self._node("Max", length, self._tensor(np.array(_LEAST_LENGTH, np.float32)))
            self.value = self._node("Div", self.value, floor)
        elif isinstance(step, Affine):
            self.value = self._affine(self.value, step.matrix, step.offset)
        else:
            hidden = self._node("Relu", self._affine(self.value, step.inner, step.inner_offset))
            change = self._affine(hidden, step.outer, step.outer_offset)
            self.value = self._node("Add", self.value, change)

    def _affine(self, value: str, matrix: np.ndarray, offset: np.ndarray) -> str:
        product = self._node("MatMul", value, self._tensor(matrix))
        return self._node("Add", product, self._tensor(offset))

    def _node(self, kind: str, *inputs: str, **attributes: Any) -> str:
        from onnx.helper import make_node

        name = f"{kind}_{len(self.nodes)}"
        self.nodes.append(make_node(kind, inputs, [name], **attributes))
        return name

    def _tensor(self, array: np.ndarray) -> str:
        from onnx.numpy_helper import from_array

        name = f"tensor_{len(self.tensors)}"
        self.tensors.append(from_array(np.ascontiguousarray(array), name))
        return name
