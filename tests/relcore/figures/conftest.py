import numpy as np
import pandas as pd
import pytest

from relcore.figures.colorings import Pane
from relcore.figures.scene import Scene

TITLES = ("Absolute, A", "Absolute, B", "Relative, A", "Relative, B")
NAMES = ("music", "<unk>", "$x$ & y", "river")


@pytest.fixture
def make_scene():
    def make(n=60, n_panes=4, dimension=2, n_anchors=5, names=NAMES):
        rng = np.random.default_rng(7)
        panes = tuple(
            Pane(title, rng.normal(size=(n, dimension)), "PCA, 34 % of the variance")
            for title in TITLES[:n_panes]
        )
        categories = np.arange(n) % (len(names) + 1) - 1
        ids = np.array([f"word{i}" for i in range(n)], dtype=object)
        return Scene(
            panes, ids, categories, names, rng.choice(n, n_anchors, replace=False), "Two spaces of words."
        )

    return make


@pytest.fixture
def scores():
    bands = {"Jaccard, k = 10": (0.004, 0.21, 0, 0.001), "linear CKA": (0.61, 0.71, 0.02, 0.09)}
    rows = [
        (metric, form, score, *band)
        for metric, (*scores, low, high) in bands.items()
        for form, score, band in zip(("absolute", "relative"), scores, [(low, high)] * 2, strict=True)
    ]
    return pd.DataFrame(rows, columns=["metric", "form", "score", "null_low", "null_high"])
