"""The digits in other looks: the same scans inverted, shifted, noisy or thickened, always in the same way."""

from __future__ import annotations

import numpy as np

from relcore.spaces import need_one_of

LOOKS = {
    "plain": "as scanned",
    "inverted": "black on white",
    "shifted": "one pixel to the right and down",
    "noisy": "Gaussian noise of deviation 48 on every pixel",
    "thick": "strokes one pixel wider",
}
_NOISE = 48.0


def look_of(pixels: np.ndarray, look: str) -> np.ndarray:
    """Scans (n, height, width) uint8 in a look of `LOOKS`, in the same form; row i stays the same digit.

    Raises
    ------
    SpaceError
        An unknown look.
    """
    need_one_of("look", look, LOOKS)
    return {"plain": _plain, "inverted": _inverted, "shifted": _shifted, "noisy": _noisy, "thick": _thick}[look](pixels)


def _plain(pixels: np.ndarray) -> np.ndarray:
    return pixels


def _inverted(pixels: np.ndarray) -> np.ndarray:
    return 255 - pixels


def _shifted(pixels: np.ndarray) -> np.ndarray:
    moved = np.zeros_like(pixels)
    moved[:, 1:, 1:] = pixels[:, :-1, :-1]
    return moved


def _noisy(pixels: np.ndarray) -> np.ndarray:
    """The noise of a scan depends on its row alone, so that the first hundred are the same in any number."""
    noise = np.stack([np.random.default_rng(row).normal(0, _NOISE, pixels.shape[1:]) for row in range(len(pixels))])
    return np.clip(np.round(pixels + noise), 0, 255).astype(np.uint8)


def _thick(pixels: np.ndarray) -> np.ndarray:
    """Each pixel as bright as the brightest of itself and the one to its left."""
    wide = pixels.copy()
    np.maximum(wide[:, :, 1:], pixels[:, :, :-1], out=wide[:, :, 1:])
    return wide
