"""`PixelComponents`, an encoder of pictures by principal components of their pixels."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, Literal

import numpy as np

from relcore.base.errors import SpaceError
from relcore.base.settings import setting
from relcore.encoders.dataset import Dataset
from relcore.encoders.encoder import EncodeBatch, Trained, TrainedEncoder
from relcore.encoders.pictures import pixel_array
from relcore.runs.work import Progress

# `PixelComponents` computes vectors of pictures from colours or edges, without labels or a pretrained model.

# pixels per side of resized pictures, for colours and for edges
_SIDE = 16
_EDGE_SIDE = 32
_CELL = 4
_ANGLES = 8
_SECONDS = {"pixels": 6e-4, "edges": 9e-4}  # seconds per small picture


@dataclass(frozen=True)
class PixelComponents(TrainedEncoder):
    """Principal components of small copies of the pictures, or of histograms of their edges. The histograms
    are like HOG (Dalal and Triggs 2005): for each cell of 4 × 4 pixels, one histogram of the directions of
    the gradient, weighted by the length of the gradient."""

    kind: ClassVar = "images"
    short: ClassVar = "pixels"
    of: Literal["pixels", "edges"] = setting(
        "pixels",
        label="Made of",
        choices={"pixels": "Pixels", "edges": "Edges"},
        several=True,
        usual=("pixels", "edges"),
        help="Pixels: the colour at each place. Edges: the directions of lines at each place.",
    )
    n_components: int = setting(
        64,
        label="Dimensions",
        option="dimensions",
        low=1,
        high=512,
        help="Maximum number. Few pictures give fewer.",
    )

    def seconds(self, n: int, pixels: int = 64) -> float:
        return 1.0 + 2 * n * (_SECONDS[self.of] + pixels * 2e-8)

    @property
    def title(self) -> str:
        return f"{self.of.capitalize()} {self.n_components}"

    def train(self, dataset: Dataset, report: Progress) -> Trained:
        from threadpoolctl import threadpool_limits

        if len(dataset) < 2:
            raise SpaceError(f"{dataset.name}: expected two pictures or more, got one; add others")
        rows_of = self._rows_of(dataset.name)
        n = 0
        total: Any = 0.0
        products: Any = 0.0
        with threadpool_limits(1, "blas"):  # another number of threads would change the last bits
            for start, images in dataset.blocks():
                report(start, len(dataset), f"reading {dataset.name}")
                rows = rows_of(images)
                n = n + len(rows)
                total = total + rows.sum(axis=0)
                products = products + rows.T @ rows
            mean = total / n
            _, axes = np.linalg.eigh(products / n - np.outer(mean, mean))
        width = min(self.n_components, n - 1, len(mean))
        return Trained(
            {"mean": mean, "axes": np.ascontiguousarray(axes[:, ::-1][:, :width])}, {"pictures": n}
        )

    def restore(self, trained: Trained, dataset: Dataset) -> EncodeBatch:
        rows_of = self._rows_of(dataset.name)
        mean = trained.arrays["mean"]
        axes = trained.arrays["axes"]
        return lambda images: {"": ((rows_of(images) - mean) @ axes).astype(np.float32)}

    def _rows_of(self, name: str) -> Callable[[list], np.ndarray]:
        """The function that computes features (m, n_features), as float64, from m pictures."""

        def pixels(images: list) -> np.ndarray:
            return pixel_array(images, "RGB", (_SIDE, _SIDE), name).reshape(len(images), -1) / 255

        def edges(images: list) -> np.ndarray:
            grey = pixel_array(images, "L", (_EDGE_SIDE, _EDGE_SIDE), name)[:, 0] / 255
            down, right = np.gradient(grey, axis=(1, 2))
            angle = np.floor((np.arctan2(down, right) / np.pi % 1) * _ANGLES).astype(int) % _ANGLES
            length = np.hypot(down, right)
            cells = _EDGE_SIDE // _CELL
            parts = [np.where(angle == one, length, 0) for one in range(_ANGLES)]
            summed = np.stack(parts, 1).reshape(len(images), _ANGLES, cells, _CELL, cells, _CELL).sum((3, 5))
            rows = summed.reshape(len(images), -1)
            return rows / np.maximum(np.linalg.norm(rows, axis=1, keepdims=True), 1e-9)

        return pixels if self.of == "pixels" else edges
