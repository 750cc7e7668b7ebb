"""Shards that are made from a random state block by block and never stored: for tests and measurements."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise

import numpy as np

from relcore.runs.digest import digest_of
from relcore.sharded.space import Shard, ShardBlock, ShardedSpace

_BLOCK = 8192  # rows that one generator makes: what a row is does not depend on how it is read


def made(
    rows: int = 100_000, width: int = 64, shards: int = 4, seed: int = 0, side: int = 0, noise: int = 1
) -> ShardedSpace:
    """Spaces of one seed and two `side`s have the same rows in different coordinates, with noise of their own
    where `noise` is not 0."""
    bounds = np.linspace(0, rows, shards + 1).astype(np.int64).tolist()
    stamp = digest_of("made", rows, width, shards, seed, side, noise)
    made = (
        MadeShard(
            f"made-{place:05}",
            f"made#{place}",
            stop - start,
            width,
            start,
            stamp,
            "",
            "",
            "",
            place,
            seed,
            side,
            noise,
        )
        for place, (start, stop) in enumerate(pairwise(bounds))
    )
    return ShardedSpace("made", f"made {stamp}", tuple(shard for shard in made if shard.n))


@dataclass(frozen=True)
class MadeShard(Shard):
    """Rows z R + e: z (m, d / 2) belongs to the rows, R (d / 2, d) and the noise e to the side."""

    place: int = 0
    seed: int = 0
    side: int = 0
    noise: int = 1

    @cached_property
    def coordinates(self) -> tuple[np.ndarray, np.ndarray]:
        """R, and where the rows lie."""
        rng, latent = np.random.default_rng((self.seed, 1, self.side)), max(1, self.width // 2)
        matrix = rng.standard_normal((latent, self.width), dtype=np.float32) / np.float32(np.sqrt(latent))
        return matrix, rng.standard_normal(self.width, dtype=np.float32)

    def stamped(self) -> MadeShard:
        return self  # it has no file

    def read(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        n, out, filled, first = self.n, None, 0, 0
        for number in range(-(-n // _BLOCK)):
            part = self._made(number)
            while len(part):
                if out is None:
                    out, filled = np.empty((min(rows, n - first), self.width), dtype=np.float32), 0
                m = min(len(part), len(out) - filled)
                out[filled : filled + m], part, filled = part[:m], part[m:], filled + m
                if filled == len(out):
                    yield ShardBlock(first, out)
                    out, first = None, first + filled

    def take(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), self.width), dtype=np.float32)
        for number in np.unique(rows // _BLOCK):
            here = rows // _BLOCK == number
            out[here] = self._made(int(number))[rows[here] - number * _BLOCK]
        return out

    def _made(self, number: int) -> np.ndarray:
        matrix, shift = self.coordinates
        m = min(_BLOCK, self.n - number * _BLOCK)
        common = np.random.default_rng((self.seed, 2, self.place, number)).standard_normal(
            (m, len(matrix)), dtype=np.float32
        )
        found = common @ matrix
        found += shift
        if self.noise:
            own = np.random.default_rng((self.seed, 3, self.side, self.place, number))
            found += np.float32(0.5 * self.noise) * own.standard_normal(found.shape, dtype=np.float32)
        return found
