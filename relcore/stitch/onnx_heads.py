"""Heads of users as ONNX files. A graph is a program, so it runs in a confined process, with limits on memory
and time."""

from __future__ import annotations

from pathlib import Path

import numpy as np

from relcore.base.access import readable_path
from relcore.base.errors import SpaceError, quote
from relcore.encoders.onnx_graph import OnnxGraph, in_words, number, weight_bytes, weight_files
from relcore.files import confined

_LIBRARIES = ("onnxruntime",)
_ROWS_AT_ONCE = 4096  # maximum number of rows in a run of the graph
_BYTES_AT_ONCE = 1 << 25  # and of bytes of these rows, because messages to the process are limited
_USUAL_OUTPUTS = ("probabilities", "output_probability")  # of converted scikit-learn classifiers


class HeadGraph(OnnxGraph):
    """A graph from rows (m, d) to scores (m, C), in the process that runs it."""

    def __init__(self, name: str, graph: Path, size: int) -> None:
        super().__init__(name, graph, size, "an ONNX graph", "head")
        inputs = [one for one in self.float_inputs() if len(one.shape) == 2]
        outputs = {one.name: one for one in self.float_outputs() if len(one.shape) == 2}
        if len(inputs) != 1 or len(self.inputs) != 1 or not outputs:
            raise self.error(
                "a graph from rows (m, d) to scores (m, C), both float32",
                f"inputs {quote(self.inputs)} and outputs of floats {quote(sorted(outputs)) or 'none'}",
            )
        n_rows, width = inputs[0].shape
        if isinstance(n_rows, int):
            raise self.error("a graph for any number of rows", f"one for {n_rows}")
        usual = [output for output in _USUAL_OUTPUTS if output in outputs]
        self._output = usual[0] if usual else next(iter(outputs))
        self._width = number(width)
        self._n_classes = number(outputs[self._output].shape[1])

    def confined_facts(self) -> list[int]:
        """The width d of rows and the number C of classes; 0 if the graph does not fix it."""
        return [self._width, self._n_classes]

    def scores(self, rows: np.ndarray) -> np.ndarray:
        """The scores (m, C) of rows (m, d). Raises a SpaceError if the graph fails on them, or gives another
        number of rows."""
        where = f"on rows {in_words(rows.shape)}"
        scores = self.run(self._output, {self.inputs[0]: rows}, len(rows), where)
        if scores.ndim != 2 or len(scores) != len(rows):
            raise self.error(f"scores of {len(rows)} × C", in_words(scores.shape))
        return scores


def open_head(path: Path, head: str, size: int) -> HeadGraph:
    return HeadGraph(head, path, size)


class OnnxHead:
    """A head in an ONNX file, a graph from rows (m, d) to scores (m, C), both float32.

    Attributes
    ----------
    name : str
        The name of the file.
    width, n_classes : int
        d and C; 0 if the graph takes any.

    Raises
    ------
    SpaceError
        The file is not readable or not such a graph, or reading it takes more time or memory than its size
        allows.
    """

    def __init__(self, path: str | Path) -> None:
        graph = readable_path(path, uploads=False).absolute()
        self.name = graph.name
        if not graph.is_file():
            raise SpaceError(f"head {self.name!r:.200}: expected an ONNX file, got none at this path")
        self._graph = confined.Opened(
            open_head, graph, _LIBRARIES, weight_files(graph), head=self.name, size=weight_bytes(graph)
        )
        self.width, self.n_classes = self._graph.facts

    def scores(self, X: np.ndarray) -> np.ndarray:
        """The scores (m, C) of rows (m, d)."""
        at_once = max(1, min(_ROWS_AT_ONCE, _BYTES_AT_ONCE // max(1, 4 * X.shape[1])))
        parts = []
        for start in range(0, len(X), at_once):
            rows = np.ascontiguousarray(X[start : start + at_once], dtype=np.float32)
            parts.append(self._graph.call("scores", np.ndarray, rows=rows))
        if len({part.shape[1] for part in parts}) != 1:
            raise SpaceError(f"head {self.name!r:.200}: expected as many scores for each row, got others")
        return np.concatenate(parts)
