"""Image–text classification without training (ASIF): two encoders share only pairs of a picture and its caption."""

from __future__ import annotations

import numpy as np

from relcore.similarity import mean_row, unit_rows
from relcore.spaces import SpaceError


def zero_shot_similarities(
    images: np.ndarray,
    prompts: np.ndarray,
    image_anchors: np.ndarray,
    text_anchors: np.ndarray,
    *,
    keep: int = 100,
    exponent: float = 8.0,
) -> np.ndarray:
    """Similarity of each image to each prompt through paired anchors (ASIF; Norelli et al. 2023).

    An image becomes its cosines to the image anchors, a prompt its cosines to the text anchors. The `keep` largest cosines of
    each are raised to `exponent`, all others are 0. The similarity is the cosine of the two.

    Parameters
    ----------
    images, prompts : arrays (n, d_image), (C, d_text)
        Encoded images, and one encoded prompt per class.
    image_anchors, text_anchors : arrays (k, d_image), (k, d_text)
        Row i is a picture and its caption.
    keep : int
        The paper keeps 800 of 1.6 million.
    exponent : float

    Returns
    -------
    array (n, C) float32, 0 … 1. The predicted class is the largest of a row.

    Raises
    ------
    SpaceError
        No anchors, unpaired anchors, widths that differ, or a `keep` or exponent not above 0.
    """
    for kind, rows, anchors in (("image", images, image_anchors), ("text", prompts, text_anchors)):
        if rows.ndim != 2 or anchors.ndim != 2 or rows.shape[1] != anchors.shape[1]:
            raise SpaceError(f"expected {kind} rows and anchors of one width, got shapes {rows.shape} and {anchors.shape}")
    if len(image_anchors) != len(text_anchors) or not len(image_anchors):
        raise SpaceError(
            f"anchors: expected pairs, a picture and its caption, got {len(image_anchors)} pictures and {len(text_anchors)} "
            "captions"
        )
    if keep < 1 or not exponent > 0:
        raise SpaceError(f"expected keep of 1 or more and an exponent above 0, got {keep} and {exponent}")
    found = [_sparse(images, image_anchors, keep, exponent), _sparse(prompts, text_anchors, keep, exponent)]
    return found[0] @ found[1].T


def _sparse(rows: np.ndarray, anchors: np.ndarray, keep: int, exponent: float) -> np.ndarray:
    """The kept cosines of the rows to the anchors, both centred by the mean of the anchors."""
    mean = mean_row(anchors)
    cosines = np.maximum(unit_rows(rows, mean) @ unit_rows(anchors, mean).T, 0)
    if keep < len(anchors):
        least = np.partition(cosines, -keep, axis=1)[:, -keep, None]
        cosines[cosines < least] = 0
    return unit_rows(cosines**exponent)
