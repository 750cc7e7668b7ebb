"""Shards that are made from a random state block by block and never stored: for tests and measurements."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any
from urllib.parse import parse_qsl, urlencode

import numpy as np

from relcore.base.errors import SpaceError
from relcore.runs.digest import digest_of
from relcore.sharded.shard import Shard, ShardBlock

PREFIX = "made://"
_BLOCK = 8192  # rows that one generator makes: what a row is does not depend on how it is read
_DEFAULTS = {"rows": 100_000, "width": 64, "shards": 4, "seed": 0, "side": 0, "noise": 1}


def made(**settings: int) -> str:
    """The address of a space that is made: rows, width, shards, seed; spaces of one seed and two `side`s have
    the same rows in different coordinates, with noise of their own where `noise` is not 0."""
    return PREFIX + urlencode(_settings(settings))


def made_shards(place: str) -> list[Shard]:
    """The shards of such an address."""
    given = _settings(dict(parse_qsl(place.removeprefix(PREFIX))))
    bounds = np.linspace(0, given["rows"], given["shards"] + 1).astype(np.int64).tolist()
    stamp = digest_of("made", 1, place)
    return [
        Shard(f"made-{number:05}", f"{place}#{number}", ".made", stop - start, given["width"], start, stamp)
        for number, (start, stop) in enumerate(pairwise(bounds))
    ]


def _settings(given: dict[str, Any]) -> dict[str, int]:
    if unknown := set(given) - set(_DEFAULTS):
        raise SpaceError(f"{PREFIX}: expected {', '.join(_DEFAULTS)}, got {', '.join(sorted(unknown))}")
    for name, value in given.items():
        if not str(value).isdecimal() or int(value) < (name in ("rows", "width", "shards")):
            raise SpaceError(
                f"{PREFIX}: expected whole numbers, rows, width and shards from 1, got {name} ="
                f" {str(value)!r:.80}; change it"
            )
    return {name: int(given.get(name, default)) for name, default in _DEFAULTS.items()}


class MadeShard:
    """Rows z R + e: z (m, d / 2) belongs to the rows, R (d / 2, d) and the noise e to the side."""

    def __init__(self, shard: Shard) -> None:
        place, number = shard.url.split("#")
        self.shard, self.number = shard, int(number)
        self.settings = _settings(dict(parse_qsl(place.removeprefix(PREFIX))))
        seed, side, width = (self.settings[name] for name in ("seed", "side", "width"))
        rng = np.random.default_rng((seed, 1, side))
        self.latent = max(1, width // 2)
        self.matrix = rng.standard_normal((self.latent, width), dtype=np.float32) / np.float32(
            np.sqrt(self.latent)
        )
        self.shift = rng.standard_normal(width, dtype=np.float32)

    def blocks(self, rows: int, labels: bool) -> Iterator[ShardBlock]:
        n, out, filled, first = self.shard.n, None, 0, 0
        for number in range(-(-n // _BLOCK)):
            part = self._made(number)
            while len(part):
                if out is None:
                    out, filled = np.empty((min(rows, n - first), self.shard.width), dtype=np.float32), 0
                m = min(len(part), len(out) - filled)
                out[filled : filled + m], part, filled = part[:m], part[m:], filled + m
                if filled == len(out):
                    yield ShardBlock(first, out)
                    out, first = None, first + filled

    def take(self, rows: np.ndarray) -> np.ndarray:
        out = np.empty((len(rows), self.shard.width), dtype=np.float32)
        for number in np.unique(rows // _BLOCK):
            here = rows // _BLOCK == number
            out[here] = self._made(int(number))[rows[here] - number * _BLOCK]
        return out

    def _made(self, number: int) -> np.ndarray:
        seed, side, noise = (self.settings[name] for name in ("seed", "side", "noise"))
        m = min(_BLOCK, self.shard.n - number * _BLOCK)
        common = np.random.default_rng((seed, 2, self.number, number)).standard_normal(
            (m, self.latent), dtype=np.float32
        )
        found = common @ self.matrix
        found += self.shift
        if noise:
            own = np.random.default_rng((seed, 3, side, self.number, number))
            found += np.float32(0.5 * noise) * own.standard_normal(found.shape, dtype=np.float32)
        return found
