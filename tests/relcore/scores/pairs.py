"""Two noisy views of eight hidden numbers, in spaces of these widths."""

import numpy as np

from relcore.spaces.matching import match
from relcore.spaces.space import LatentSpace

N = 700
HIDDEN = 8


def pair_of(widths=(24, 24), labelled=None, moved=(0.5, -1.0), size=1.0):
    rng = np.random.default_rng(0)
    hidden = rng.normal(size=(N, HIDDEN))
    spaces = [
        size * (hidden @ rng.normal(size=(HIDDEN, width)) + 0.5 * rng.normal(size=(N, width)) + offset)
        for width, offset in zip(widths, moved, strict=True)
    ]
    ids = [f"w{row}" for row in range(N)]
    labels = None
    if labelled is not None:
        classes = (hidden[:, 0] > 0).astype(int) + (hidden[:, 1] > 0)
        labels = [f"c{number}" if rng.random() < labelled else "" for number in classes]
    return match(LatentSpace(spaces[0], ids, labels=labels), LatentSpace(spaces[1], ids))
