"""The handwritten digits that come with scikit-learn: 1,797 real scans of 8 × 8 pixels, as they are and in
other looks.
"""

from __future__ import annotations

import numpy as np

from relcore.base.errors import need_one_of
from relcore.encoders.dataset import Dataset, DatasetSpec

LOOKS = {
    "plain": "as scanned",
    "inverted": "black on white",
    "shifted": "one pixel to the right and down",
    "noisy": "Gaussian noise of deviation 48 on every pixel",
    "thick": "strokes one pixel wider",
}
_NOISE = 48.0


def digits_dataset(spec: DatasetSpec) -> Dataset:
    """Grey images (mode "L", 0 to 255), labels "0" to "9"; the scans have 17 shades. Ids are the same in
    every look.
    """
    from PIL import Image
    from sklearn.datasets import load_digits

    look = spec.settings(look="plain")["look"]
    digits = load_digits()
    pixels = np.round(digits.images[: spec.limit] * (255 / 16)).astype(np.uint8)
    pixels = look_of(pixels, look)
    return Dataset(
        lambda start, stop: [Image.fromarray(scan) for scan in pixels[start:stop]],
        [f"digits/{row}" for row in range(len(pixels))],
        name="digits" if look == "plain" else f"digits, {look}",
        kind="images",
        labels=digits.target[: spec.limit],
        content=lambda: [pixels.tobytes()],
    )


def look_of(pixels: np.ndarray, look: str) -> np.ndarray:
    """Scans (n, height, width) uint8 in a look of `LOOKS`, in the same form; row i stays the same digit.

    Raises
    ------
    SpaceError
        An unknown look.
    """
    need_one_of("look", look, LOOKS)
    if look == "plain":
        return pixels
    if look == "inverted":
        return 255 - pixels
    if (
        look == "noisy"
    ):  # the noise of a scan depends on its row alone: the first hundred are the same in any number
        noise = np.stack(
            [np.random.default_rng(row).normal(0, _NOISE, pixels.shape[1:]) for row in range(len(pixels))]
        )
        return np.clip(np.round(pixels + noise), 0, 255).astype(np.uint8)
    moved = np.zeros_like(pixels)
    if look == "shifted":
        moved[:, 1:, 1:] = pixels[:, :-1, :-1]
        return moved
    moved[:, :, 1:] = pixels[:, :, :-1]
    return np.maximum(
        pixels, moved
    )  # thick: each pixel as bright as the brighter of itself and the one to its left
