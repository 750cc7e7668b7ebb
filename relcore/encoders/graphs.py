"""ONNX graphs of text models, which `OnnxText` runs in a confined process."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from relcore.base.errors import SpaceError, extra, quote
from relcore.encoders.onnx_graph import OnnxGraph, beside, in_words, reason_of
from relcore.encoders.transformers import padded
from relcore.files import confined
from relcore.files.confined_process import allow_seconds

LIBRARIES = ("onnxruntime", "tokenizers")
_AT_ONCE = 32  # number of texts in a run of the graph
_TEXTS_AT_ONCE = 1000  # maximum number of texts in a message to the confined process
_TOKENIZING_SECONDS = 60


class TextGraph(OnnxGraph):
    """A graph with its tokenizer, in the process that runs it."""

    def __init__(
        self, name: str, graph: Path, tokenizer: Path, pooling: str, max_tokens: int, size: int
    ) -> None:
        with extra("onnx"):
            from tokenizers import Tokenizer

        super().__init__(name, graph, size, "an ONNX graph and its tokenizer.json")
        self._pooling = pooling
        try:
            self._tokenizer = Tokenizer.from_file(str(tokenizer))
        except Exception as error:  # the library has errors of its own
            raise self.error(
                "an ONNX graph and its tokenizer.json", f"files that cannot be loaded ({reason_of(error)})"
            ) from error
        self._tokenizer.no_padding()
        self._tokenizer.enable_truncation(max_tokens)
        floats = {one.name: len(one.shape) for one in self.float_outputs()}
        states = [name for name, axes in floats.items() if axes == 3]
        self._is_pooled = floats.get("sentence_embedding") == 2
        unknown = set(self.inputs) - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self.inputs or not (states or self._is_pooled):
            raise SpaceError(
                f"model {name!r:.200}: expected a graph from input_ids and attention_mask to hidden"
                f" states (texts, tokens, d), got inputs {quote(self.inputs)} and outputs"
                f" {quote(sorted(floats))}; export it for feature extraction"
            )
        if self._is_pooled:
            self._output = "sentence_embedding"
        else:
            self._output = states[0]

    def confined_facts(self) -> None:
        pass

    def tokens(self, texts: list[str]) -> list[list[int]]:
        """The token numbers of each text."""
        allow_seconds(_TOKENIZING_SECONDS)
        return [one.ids for one in self._tokenizer.encode_batch(texts)]

    def rows(self, tokens: list[list[int]]) -> np.ndarray:
        """The vectors (m, d) of m texts, float32. Raises a SpaceError if the graph fails on these tokens, or
        returns another number of rows."""
        ids, known = padded(tokens)  # the attention mask hides the padding
        feed = {"input_ids": ids, "attention_mask": known.astype(np.int64)}
        feed["token_type_ids"] = np.zeros_like(ids)
        rows = self.run(
            self._output,
            {name: feed[name] for name in self.inputs},
            ids.size,
            f"on the token numbers 0 to {ids.max()} of its tokenizer",
        )
        self._check(rows, ids.shape)
        if not self._is_pooled and self._pooling == "cls":
            rows = rows[:, 0]
        elif not self._is_pooled:
            weights = known / np.maximum(known.sum(axis=1, keepdims=True), 1)
            rows = np.einsum("nt,ntd->nd", weights, rows)
        return np.asarray(rows, dtype=np.float32)

    def _check(self, output: np.ndarray, shape: tuple[int, int]) -> None:
        """Raise a SpaceError unless the output has finite numbers for tokens of this shape."""
        wanted: tuple[int, ...] = shape
        axes = "texts × tokens × d"
        if self._is_pooled:
            wanted = shape[:1]
            axes = "texts × d"
        got = in_words(output.shape)
        if output.shape[:-1] != wanted or not output.shape[-1]:
            raise self.error(f"an output of {in_words(wanted)} × d ({axes})", got)
        if not np.isfinite(output).all():
            raise self.error("an output of finite numbers", f"NaN or infinite values among {got}")


def open_graph(path: Path, model: str, tokenizer: str, pooling: str, max_tokens: int, size: int) -> TextGraph:
    return TextGraph(model, path, Path(tokenizer), pooling, max_tokens, size)


class GraphRows:
    """A function that maps texts to {"": rows}. It runs the graph on batches of texts of similar length."""

    def __init__(self, name: str, graph: Path, tokenizer: Path, pooling: str, max_tokens: int) -> None:
        self._name = name
        self._graph = confined.Opened(
            open_graph,
            graph.absolute(),
            LIBRARIES,
            [tokenizer, *beside(graph)],
            model=name,
            tokenizer=str(tokenizer.absolute()),
            pooling=pooling,
            max_tokens=max_tokens,
            size=max(path.stat().st_size for path in [graph, *beside(graph)]),
        )

    def __call__(self, texts: Sequence[str]) -> dict[str, np.ndarray]:
        tokens: list[list[int]] = []
        for first in range(0, len(texts), _TEXTS_AT_ONCE):
            some = list(texts[first : first + _TEXTS_AT_ONCE])
            tokens += self._graph.call("tokens", list[list[int]], texts=some)
        order = np.argsort([len(ids) for ids in tokens], kind="stable")
        parts = []
        for first in range(0, len(order), _AT_ONCE):
            batch = [tokens[row] for row in order[first : first + _AT_ONCE]]
            rows = self._graph.call("rows", np.ndarray, tokens=batch)
            parts.append(rows)
            if rows.ndim != 2 or len(rows) != len(batch) or rows.shape[1] != parts[0].shape[1]:
                raise SpaceError(
                    f"model {self._name!r:.200}: expected a vector of the same width for each text, got"
                    f" {in_words(rows.shape)} for {len(batch)} texts; export the model again"
                )
        return {"": np.concatenate(parts)[np.argsort(order)]}
