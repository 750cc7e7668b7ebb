import numpy as np
import pytest

from relcore.spaces.space import LatentSpace

CLASSES = ("low", "middle", "high")


@pytest.fixture
def make_encoders(rng):
    """Spaces over the same 240 rows of three classes: turned, scaled, shifted and slightly noisy versions
    of one.
    """

    def make(widths=(8, 8, 12), noise=0.05, labels=True):
        numbers = np.arange(240) % 3
        points = rng.normal(size=(3, 8))[numbers] * 2 + 0.5 * rng.normal(size=(240, 8))
        names = None
        if labels:
            names = [CLASSES[number] for number in numbers]
        spaces = []
        for position, width in enumerate(widths):
            turn = np.linalg.qr(rng.normal(size=(width, width)))[0][:8]
            vectors = (position + 1) * points @ turn + position + noise * rng.normal(size=(240, width))
            ids = [f"r{row}" for row in range(240)]
            spaces.append(
                LatentSpace(vectors.astype(np.float32), ids, name=f"encoder {position}", labels=names)
            )
        return spaces

    return make
