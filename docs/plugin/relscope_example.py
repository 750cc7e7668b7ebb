"""A metric, an encoder and a file format for Relscope."""

from dataclasses import dataclass

import numpy as np
from scipy.spatial.distance import pdist, squareform

from relcore.base.settings import setting
from relcore.encoders.encoder import Encoder
from relcore.files.formats import Description, Format, float32, in_blocks
from relcore.scores.comparison import Metric
from relcore.scores.measures import paired_rows
from relcore.scores.score import ChanceLevel, Score


class DistanceCorrelation(Metric):
    """Correlation of the distances between rows, −1 … 1; 1: the same but for rotation, offset and scale."""

    def score(self, pair):
        sides = paired_rows(pair.source, pair.target, 300, pair.split.ids[pair.split.test])
        D, E = (squareform(pdist(side)) for side in sides)
        n, upper, rng = len(D), np.triu_indices(len(D), 1), np.random.default_rng(0)

        def value(order):
            return np.corrcoef(D[upper], E[np.ix_(order, order)][upper])[0, 1]

        null = ChanceLevel.from_draws(np.array([value(rng.permutation(n)) for _ in range(200)]))
        facts = {"n": n, "drawn_from": len(pair.source) if n < len(pair.source) else None, "null": null}
        return Score(value(np.arange(n)), metric="distance correlation", **facts)


@dataclass(frozen=True)
class Letters(Encoder):
    """How often each of the first `n_letters` letters occurs in a text."""

    n_letters: int = setting(26, low=1, high=26, help="Dimension of the space.")
    kind = "texts"

    @property
    def title(self):
        return f"Letters {self.n_letters}"

    def seconds(self, n, pixels=64):
        return n / 1e5

    def prepare(self, dataset, report):
        letters = "abcdefghijklmnopqrstuvwxyz"[: self.n_letters]
        return lambda texts: {
            "": np.array([[t.lower().count(x) for x in letters] for t in texts], np.float32)
        }


class Floats(Format):
    """The width as a 32-bit number, then rows of 32-bit floats."""

    def describe(self, path):
        width = int(np.fromfile(path, "<u4", 1)[0])
        return Description({"": ((path.stat().st_size - 4) // (4 * width), width)}, "")

    def blocks(self, path, request):
        n, width = self.describe(path).shape
        rows = np.memmap(path, "<f4", "r", 4).reshape(-1, width)
        for some in in_blocks(request.rows(path, n, width), 4 * width):
            yield float32(rows[some], path.name)
        return {}
