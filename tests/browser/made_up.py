"""Made-up rows for linked panes: the demo draws them, and tests compute from them what it must show."""

import numpy as np

NAMES = ("countries", "capitals", "animals", "professions", "emotions", "colours")


def made_up(n: int, named: float) -> tuple[np.ndarray, np.ndarray, list[np.ndarray]]:
    """Blobs, a category each; the second absolute space is turned, the relative ones nearly agree.

    Ids and categories (n,), -1 for a share of 1 - `named`, and the coordinates (n, 2) of four panes.
    """
    rng = np.random.default_rng(0)
    categories = np.where(rng.random(n) < named, rng.integers(0, len(NAMES), n), -1)
    centres = rng.normal(size=(len(NAMES) + 1, 2)) * 2.2
    spread = np.where(categories < 0, 2.4, 0.6)[:, None]
    base = centres[categories] * (categories >= 0)[:, None] + rng.normal(size=(n, 2)) * spread
    turn = np.array([[np.cos(2.1), -np.sin(2.1)], [np.sin(2.1), np.cos(2.1)]])
    bent = np.c_[np.tanh(base[:, 0] / 3), np.tanh(base[:, 1] / 3) + 0.1 * base[:, 0] ** 2 / 9]
    ids = np.array([f"word {i}" for i in range(n)], dtype=object)
    return ids, categories, [base * 40, base @ turn, bent, bent + rng.normal(size=(n, 2)) * 0.02]
