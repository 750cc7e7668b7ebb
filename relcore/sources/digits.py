"""The handwritten digits that come with scikit-learn: 1,797 real scans of 8 × 8 pixels."""

from __future__ import annotations

import numpy as np

from relcore.sources.dataset import Dataset, DatasetSpec
from relcore.sources.digit_looks import look_of


def digits_dataset(spec: DatasetSpec) -> Dataset:
    """Grey images (mode "L", 0 to 255), labels "0" to "9"; the scans have 17 shades. Ids are the same in every look."""
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
