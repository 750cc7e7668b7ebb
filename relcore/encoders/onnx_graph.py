"""What all ONNX graphs share. A graph is a program that may need any time and memory, so it runs in a
confined process, with limits on both."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.access import readable_path
from relcore.base.errors import SpaceError, extra, quote
from relcore.files.confined_process import allow_seconds

# Processor seconds of a run: a fixed part, and one for this many bytes of weights times items (tokens, rows,
# places). Models need about two operations for each weight and item, and a slow processor computes 5 · 10⁹ in
# a second.
_SECONDS = 5
_WORK_PER_SECOND = 1 << 30


class OnnxGraph:
    """A graph in the process that runs it. `size` is the number of bytes of its weights, and `kind` names it
    in messages, for example "model".

    Raises
    ------
    SpaceError
        The file is no graph. `expected` says what was expected instead.
    """

    def __init__(self, name: str, graph: Path, size: int, expected: str, kind: str = "model") -> None:
        with extra("onnx"):
            import onnxruntime

        self._name = name
        self._kind = kind
        self._size = size
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 4  # the errors are raised, too
        options.enable_cpu_mem_arena = False  # it would round sizes up to a power of two, beyond the limit
        try:
            self._session = onnxruntime.InferenceSession(
                str(graph), options, providers=["CPUExecutionProvider"]
            )
        except Exception as error:  # onnxruntime has a type for each of its errors
            raise self.error(expected, f"files that cannot be loaded ({reason_of(error)})") from error
        self.inputs = [one.name for one in self._session.get_inputs()]

    def float_inputs(self) -> list[Any]:
        """The inputs of 32-bit floats, each with `name` and `shape`. Axes of any length are names or None."""
        return [one for one in self._session.get_inputs() if one.type == "tensor(float)"]

    def float_outputs(self) -> list[Any]:
        """The outputs of 32-bit floats, as `float_inputs`."""
        return [one for one in self._session.get_outputs() if one.type == "tensor(float)"]

    def run(self, output: str, feed: Mapping[str, np.ndarray], items: int, where: str) -> np.ndarray:
        """One output of the graph for these inputs, which have this number of `items`. `where` says in a
        message on which inputs the graph failed.

        Raises
        ------
        SpaceError
            The graph fails. The process ends if the graph needs more time or memory than its limits.
        """
        allow_seconds(_SECONDS + self._size * items // _WORK_PER_SECOND)
        try:
            (values,) = self._session.run([output], dict(feed))
        except Exception as error:  # onnxruntime has a type for each of its errors
            raise self.error(f"a graph that runs {where}", f"an error ({reason_of(error)})") from error
        return np.asarray(values)

    def error(self, expected: str, got: str) -> SpaceError:
        return SpaceError(
            f"{self._kind} {self._name!r:.200}: expected {expected}, got {got}; export the {self._kind} again"
        )


def beside(graph: Path) -> list[Path]:
    """The files beside a graph. Large graphs have their weights in further files of the same folder."""
    return [path for path in sorted(graph.parent.iterdir()) if path.is_file() and path != graph]


def weight_files(graph: Path) -> list[Path]:
    """The further files of a graph whose names begin with its own, as exporters write weights beyond 2 GB."""
    return [path for path in sorted(graph.parent.glob("*.onnx?*")) if path.name.startswith(graph.name)]


def weight_bytes(graph: Path) -> int:
    """The size of the largest file of a graph."""
    return max(path.stat().st_size for path in [graph, *weight_files(graph)])


def graph_beside(model: str, needed: str) -> tuple[Path, Path]:
    """The paths of the graph that `model` names, a file or a folder, and of the file `needed` in its folder.
    If a folder has several graphs, model.onnx is used, in the folder or in its sub-folder onnx.

    Raises
    ------
    SpaceError
        One of them is missing, or there are several graphs.
    """
    place = readable_path(model, uploads=False)
    if place.is_dir():
        folder = place
    else:
        folder = place.parent
    if place.suffix == ".onnx":
        named = [place]
    else:
        named = [folder / "model.onnx", folder / "onnx" / "model.onnx"]
    graphs = [path for path in named if path.is_file()]
    if not graphs:
        graphs = [path for path in sorted(folder.glob("*.onnx")) if path.is_file()]
    other = folder / needed
    if len(graphs) != 1 or not other.is_file():
        files = []
        if folder.is_dir():
            files = sorted(path.name for path in folder.iterdir())
        raise SpaceError(
            f"model {model!r:.200}: expected a folder with model.onnx (or one .onnx file) and {needed}, got"
            f" {quote(files[:5]) or 'nothing'}; give the folder that the export wrote"
        )
    return graphs[0], other


def number(axis: int | str | None) -> int:
    """The length of an axis of a graph; 0 if it is free."""
    if isinstance(axis, int):
        return axis
    return 0


def in_words(shape: Sequence[int]) -> str:
    """A shape such as ``"3 × 6"``."""
    return " × ".join(map(str, shape)) or "one number"


def reason_of(error: Exception) -> str:
    """The first 200 characters of an error in one line."""
    return " ".join(str(error).split())[:200] or type(error).__name__
