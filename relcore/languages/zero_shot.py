"""Image–text classification without training: pairs of a picture and its caption are all that two encoders have in common."""

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
    """How well each prompt describes each image, through paired anchors only; ASIF, Norelli et al. 2023.

    Both are written as cosines to the anchors of their own kind, of which the `keep` largest are kept and raised to
    `exponent`; the similarity is the cosine of the two.

    Parameters
    ----------
    images, prompts : arrays (n, d_image), (C, d_text)
        A prompt a class, as the text encoder gives it.
    image_anchors, text_anchors : arrays (k, d_image), (k, d_text)
        Row for row a picture and its caption.
    keep : int
        The paper's 800 are of 1.6 million pairs; never more than there are.
    exponent : float

    Returns
    -------
    array (n, C) float32, 0 … 1. The answer is the largest of a row.

    Raises
    ------
    SpaceError
        Unpaired anchors, none, or widths that differ; a `keep` or an exponent that keeps nothing.
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
    """Centred by the anchors' mean, as both kinds have it."""
    mean = mean_row(anchors)
    cosines = np.maximum(unit_rows(rows, mean) @ unit_rows(anchors, mean).T, 0)
    if keep < len(anchors):
        least = np.partition(cosines, -keep, axis=1)[:, -keep, None]
        cosines[cosines < least] = 0
    return unit_rows(cosines**exponent)
