"""What a stitching of frozen encoders gives a study: accuracies in the same space and stitched, as plain numbers."""

from __future__ import annotations

from typing import Any

import numpy as np

from relcore.spaces import LatentSpace
from relcore.stitching.classification import stitch_matrix
from relcore.stitching.spec import StitchSpec

OWN = "absolute, same space"
MEASURES = {
    "relative, same space": "relative heads, same space",
    "relative, stitched": "relative heads, stitched",
    "whitened, same space": "whitened heads, same space",
    "whitened, stitched": "whitened heads, stitched",
}
BASELINE = "absolute heads, not stitched"


def stitched_values(spaces: list[LatentSpace], spec: StitchSpec, metrics: tuple[str, ...] = ("accuracy",)) -> dict[str, Any]:
    """For each method of the spec ``"<method>, same space"`` and ``"<method>, stitched"``, means over encoders and over pairs.

    Accuracy without a prefix, weighted F1 as ``"F1, …"``; and "chance", always the most frequent class.
    """
    result = stitch_matrix(spaces, spec)
    values: dict[str, Any] = {}
    stitched = ~np.eye(len(spaces), dtype=bool)
    for metric in metrics:
        prefix = "" if metric == "accuracy" else f"{metric.upper()}, "
        for method in spec.methods:
            scores = result.matrix(method, metric)[0]
            values[f"{prefix}{method}, same space"] = float(scores[~stitched].mean())
            pairs = scores[stitched]
            values[f"{prefix}{method}, stitched"] = None if np.isnan(pairs).all() else float(np.nanmean(pairs))
    return values | {"chance": result.chance(), "test rows": result.n_test}
