"""Pictures of a dataset as grey arrays of one size, split into training and held-out pictures."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from relcore.progress import Report, silent
from relcore.sources.dataset import Dataset, DatasetSpec
from relcore.sources.pixels import pixel_array
from relcore.sources.small_vision import LARGEST, held_out_rows
from relcore.spaces import SpaceError

_READ = 256


@dataclass(frozen=True)
class PictureSpec:
    """Which pictures, and how many of them.

    Attributes
    ----------
    dataset : DatasetSpec
    n_train, n_test : int
        Maximum numbers of pictures to train on and to hold out, drawn with a fixed random state. Held-out pictures are drawn
        from the fifth that `held_out_rows` names, training pictures (anchors among them) from the rest. Another n_test does
        not change the training pictures.
    image_size : int, optional
        Side in pixels to which every picture is resized, at most 64. Without it the pictures must have one size.
    """

    dataset: DatasetSpec
    n_train: int = 5_000
    n_test: int = 1_000
    image_size: int | None = None

    def __post_init__(self) -> None:
        bounds = {"n_train": (10, 10**6), "n_test": (2, 10**5)}
        if self.image_size is not None:
            bounds["image_size"] = (4, LARGEST)
        for name, (least, most) in bounds.items():
            value = getattr(self, name)
            if not isinstance(value, int) or not least <= value <= most:
                raise SpaceError(f"{name}: expected a whole number from {least} to {most}, got {value!r}")


@dataclass(frozen=True)
class Pictures:
    """Grey pictures (n, height, width), 0 … 1; labels (n,) of str, or None."""

    train: np.ndarray
    test: np.ndarray
    train_labels: np.ndarray | None
    test_labels: np.ndarray | None

    def examples(self, most: int = 10) -> np.ndarray:
        """Rows of `test` to show: the first of each class, then the first of the remaining rows."""
        every = np.arange(len(self.test))
        if self.test_labels is None:
            return every[:most]
        firsts = np.unique(self.test_labels.astype(str), return_index=True)[1]
        return np.concatenate([firsts, np.setdiff1d(every, firsts)])[:most]


def part_sizes(n: int, spec: PictureSpec) -> tuple[int, int]:
    """Numbers of training and held-out pictures of a dataset of n."""
    held_out = len(held_out_rows(n))
    return min(spec.n_train, n - held_out), min(spec.n_test, held_out)


def load_pictures(dataset: Dataset, spec: PictureSpec, report: Report = silent) -> Pictures:
    """Read the pictures and convert colours to grey.

    Raises
    ------
    SpaceError
        Not a dataset of pictures, fewer than ten, several or too large sizes without `image_size`, an unreadable picture.
    """
    if dataset.kind != "images":
        raise SpaceError(f"{dataset.name}: expected pictures, got {dataset.kind}; choose a dataset of pictures")
    if len(dataset) < 10:
        raise SpaceError(f"{dataset.name}: expected ten pictures or more, got {len(dataset)}; choose a larger dataset")
    held_out = held_out_rows(len(dataset))
    others = np.setdiff1d(np.arange(len(dataset)), held_out)
    n_train, n_test = part_sizes(len(dataset), spec)
    test = np.sort(np.random.default_rng([0, 0]).choice(held_out, n_test, replace=False))
    train = np.sort(np.random.default_rng([0, 1]).choice(others, n_train, replace=False))
    rows = np.sort(np.concatenate([train, test]))
    pixels = _grey(dataset, rows, spec.image_size, report)
    labels = dataset.labels
    return Pictures(
        pixels[np.isin(rows, train)],
        pixels[np.isin(rows, test)],
        None if labels is None else labels[train],
        None if labels is None else labels[test],
    )


def _grey(dataset: Dataset, rows: np.ndarray, side: int | None, report: Report) -> np.ndarray:
    """(m, height, width), 0 … 1, read block by block."""
    first = dataset.item(int(rows[0]))
    width, height = (side, side) if side else first.size
    if max(width, height) > LARGEST:
        raise SpaceError(
            f"{dataset.name}: expected pictures of at most {LARGEST} × {LARGEST} pixels, got {width} × {height}; "
            "set image_size=32, say"
        )
    parts = []
    for start in range(0, len(dataset), _READ):
        stop = min(start + _READ, len(dataset))
        wanted = rows[(rows >= start) & (rows < stop)]
        if len(wanted):
            images = dataset.items(start, stop)
            images = [images[row - start] for row in wanted]
            others = {image.size for image in images} - {(width, height)}
            if others and not side:
                sizes = " and ".join(f"{one[0]} × {one[1]}" for one in ((width, height), min(others)))
                raise SpaceError(f"{dataset.name}: expected pictures of one size, got {sizes}; set image_size=32, say")
            parts.append(pixel_array(images, "L", (height, width), dataset.name)[:, 0])
        report(stop, len(dataset), "reading the pictures")
    return np.concatenate(parts).astype(np.float32) / 255
