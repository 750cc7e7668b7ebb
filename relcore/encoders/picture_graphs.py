"""ONNX graphs of vision models, which `OnnxPictures` runs in a confined process."""

from __future__ import annotations

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from relcore.base.errors import SpaceError, quote
from relcore.encoders.onnx_graph import OnnxGraph, in_words, number, weight_bytes, weight_files
from relcore.encoders.pictures import Mode, eight_bits
from relcore.files import confined

LIBRARIES = ("onnxruntime",)
_AT_ONCE = 32  # number of pictures in a run of the graph
_BYTES_AT_ONCE = 1 << 25  # and of bytes of their pixels, because messages to the process are limited
_LARGEST = 2048  # maximum number of pixels per side
# A weight of a network is used at one pixel in this number or fewer: in ResNets at one in 300, in ViTs at one
# in 256, in small networks at one in 20.
_PIXELS_PER_USE = 16
_EMBEDDING = "image_embeds"  # as the export of CLIP and similar models names it
_READ = 1 << 20  # maximum number of bytes of a configuration


class PictureGraph(OnnxGraph):
    """A graph from pixels (n, channels, height, width), in the process that runs it. `patch` is the side of a
    patch, 0 if unknown."""

    def __init__(self, name: str, graph: Path, pooling: str, patch: int, size: int) -> None:
        super().__init__(name, graph, size, "an ONNX graph")
        self._pooling = pooling
        self._patch = patch
        inputs = [one for one in self.float_inputs() if len(one.shape) == 4]
        axes = {one.name: len(one.shape) for one in self.float_outputs() if len(one.shape) in (2, 3, 4)}
        if len(self.inputs) != 1 or len(inputs) != 1 or not axes:
            raise self.error(
                "a graph from pixel_values (n, channels, height, width) to vectors (n, d) or hidden states,"
                " all float32",
                f"inputs {quote(self.inputs)} and outputs {quote(sorted(axes)) or 'none'}",
            )
        n, *self._shape = map(number, inputs[0].shape)
        if n:
            raise self.error("a graph for any number of pictures", f"one for {n}")
        vectors = [output for output, n_axes in axes.items() if n_axes == 2]
        states = [output for output, n_axes in axes.items() if n_axes > 2]
        if _EMBEDDING in vectors:
            vectors = [_EMBEDDING]
            states = []
        if pooling == "pooled" and not (vectors or states[1:]):
            raise self.error(
                "an output (n, d) or (n, d, 1, 1), for pooling 'pooled'", f"{quote(sorted(axes))}"
            )
        self._output = self._chosen(vectors, states)

    def _chosen(self, vectors: list[str], states: list[str]) -> str:
        """The output that is read: vectors for pooling "pooled", otherwise hidden states, if any."""
        if self._pooling == "pooled":
            return (vectors or states[1:])[0]
        return (states or vectors)[0]

    def confined_facts(self) -> list[int]:
        """Channels, height and width of pictures; 0 where the graph takes any."""
        return self._shape

    def rows(self, pixels: np.ndarray) -> np.ndarray:
        """The vectors (m, d) of m pictures. Raises a SpaceError if the graph fails on these pixels, or
        returns another number of rows."""
        n, _, height, width = pixels.shape
        feed = {self.inputs[0]: pixels}
        uses = n * height * width // _PIXELS_PER_USE
        found = self.run(self._output, feed, uses, f"on pixels {in_words(pixels.shape)}")
        if found.ndim not in (2, 3, 4) or len(found) != n or not found.size:
            raise self.error(f"an output of {n} × d", in_words(found.shape))
        if not np.isfinite(found).all():
            raise self.error("an output of finite numbers", "NaN or infinite values")
        return np.ascontiguousarray(self._pooled(found, height, width), dtype=np.float32)

    def _pooled(self, found: np.ndarray, height: int, width: int) -> np.ndarray:
        if found.ndim == 2:
            return found
        if found.ndim == 4:
            if self._pooling == "cls":
                raise self.error("an output of tokens, for pooling 'cls'", "a map of features")
            return found.mean(axis=(2, 3))
        if self._pooling == "cls":
            return found[:, 0]
        special = 0  # class and register tokens, which come first
        if self._patch:
            patches = (height // self._patch) * (width // self._patch)
            special = max(0, found.shape[1] - patches) % found.shape[1]
        return found[:, special:].mean(axis=1)


def open_picture_graph(path: Path, model: str, pooling: str, patch: int, size: int) -> PictureGraph:
    return PictureGraph(model, path, pooling, patch, size)


class PictureRows:
    """A function that maps pictures to {"": rows}. `processor` is an image processor of transformers."""

    def __init__(
        self, name: str, graph: Path, pooling: str, patch: int, processor: Callable[..., Any], where: str
    ) -> None:
        self._name = name
        self._where = where
        self._processor = processor
        self._graph = confined.Opened(
            open_picture_graph,
            graph.absolute(),
            LIBRARIES,
            weight_files(graph),
            model=name,
            pooling=pooling,
            patch=patch,
            size=weight_bytes(graph),
        )
        self._channels, self._height, self._width = self._graph.facts
        if self._channels not in (0, 1, 3):
            raise SpaceError(
                f"model {name!r:.200}: expected a graph for grey pictures or colours, got {self._channels}"
                " channels"
            )

    def __call__(self, images: Sequence[Any]) -> dict[str, np.ndarray]:
        parts: list[np.ndarray] = []
        at_once = _AT_ONCE
        start = 0
        while start < len(images):
            pixels = self._pixels(images[start : start + at_once])
            at_once = max(1, min(at_once, _BYTES_AT_ONCE * len(pixels) // pixels.nbytes))
            for first in range(0, len(pixels), at_once):
                part = pixels[first : first + at_once]
                parts.append(self._graph.call("rows", np.ndarray, pixels=part))
                if parts[-1].shape != (len(part), parts[0].shape[1]):
                    raise SpaceError(
                        f"model {self._name!r:.200}: expected a vector of the same width for each picture,"
                        f" got {in_words(parts[-1].shape)} for {len(part)} pictures; export the model again"
                    )
            start += len(pixels)
        return {"": np.concatenate(parts)}

    def _pixels(self, images: Sequence[Any]) -> np.ndarray:
        """The pictures as the graph takes them: (m, channels, height, width) float32."""
        mode: Mode = "RGB"
        if self._channels == 1:
            mode = "L"
        pictures = [np.asarray(eight_bits(image, mode, self._where)) for image in images]
        if mode == "L":
            pictures = [picture[..., None] for picture in pictures]
        try:
            # Name the channel axis, which the processor would guess wrongly for pictures that are three
            # pixels high.
            processed = self._processor(
                images=pictures, return_tensors="np", input_data_format="channels_last"
            )
            pixels = np.asarray(processed["pixel_values"], dtype=np.float32)
        except Exception as error:  # a wrong configuration can raise any exception
            reason = " ".join(str(error).split())[:200]
            raise SpaceError(
                f"model {self._name!r:.200}: expected its preprocessor_config.json to prepare the pictures of"
                f" {self._where!r:.200}, got an error ({reason}); save the image processor of this model"
                " beside the graph, with do_resize for pictures of several sizes"
            ) from error
        wanted = (self._channels, self._height, self._width)
        if pixels.ndim != 4 or any(
            side not in (0, found) for side, found in zip(wanted, pixels.shape[1:], strict=True)
        ):
            axes = in_words([str(side or "any") for side in wanted])
            raise SpaceError(
                f"model {self._name!r:.200}: expected pixels of {axes}, which its graph reads, from its"
                f" preprocessor_config.json, got {in_words(pixels.shape[1:])}; save the image processor of"
                " this model beside the graph"
            )
        return pixels


def checked_processor(model: str, file: Path) -> None:
    """Raise a SpaceError unless the configuration of an image processor is a JSON object that makes pictures
    of at most 2,048 pixels per side."""
    try:
        if file.stat().st_size > _READ:
            raise ValueError("more than a megabyte")
        settings = json.loads(file.read_text(encoding="utf-8"))
        if not isinstance(settings, dict):
            raise TypeError("no object")
        sides = [*_numbers(settings.get("size")), *_numbers(settings.get("crop_size"))]
        if any(not 1 <= side <= _LARGEST for side in sides):
            raise ValueError(f"sides of {quote(map(str, sides))} pixels")
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise SpaceError(
            f"model {model!r:.200}: expected a preprocessor_config.json that image_processor.save_pretrained"
            f" wrote, for pictures of 1 to {_LARGEST:,} pixels per side, got {error!s:.100}; save it again"
        ) from error


def _numbers(size: Any) -> list[float]:
    if isinstance(size, dict):
        values = list(size.values())
    elif isinstance(size, list):
        values = size
    else:
        values = [size]
    return [value for value in values if isinstance(value, int | float) and not isinstance(value, bool)]


def patch_side(file: Path) -> int:
    """The side of a patch that a config.json names; 0 if there is none, or if it is not readable."""
    try:
        if file.stat().st_size > _READ:
            return 0
        settings = json.loads(file.read_text(encoding="utf-8"))
        vision = settings.get("vision_config", settings)
        side = vision.get("patch_size", 0)
    except (OSError, ValueError, AttributeError, RecursionError):
        return 0
    if isinstance(side, int) and 0 < side <= _LARGEST:
        return side
    return 0
