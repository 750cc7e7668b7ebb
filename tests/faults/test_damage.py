"""One bit of a stored file is changed, and nothing of it may be read as data."""

import logging
import random

import numpy as np

from relcore.runs.entries import digest_of
from relcore.runs.store import Store

KEY = digest_of("entry")
SEED = 12
FLIPS = 100


def test_a_flipped_bit_anywhere_is_no_data(tmp_path, caplog):
    """Positions of bytes, each with a bit to change: every byte of the header, and as many random bytes of
    the arrays."""
    store = Store(tmp_path)
    rows = np.random.default_rng(0).normal(size=(40, 3))
    arrays = {"rows": rows, "half": rows.astype(np.float16), "mask": rows > 0, "empty": np.empty((0, 3))}
    metadata = {"name": "Größe", "values": [1, 2.5, None]}
    store.put(KEY, arrays, metadata)
    path = store.root / "entries" / KEY[:2] / f"{KEY}.safetensors"
    whole = path.read_bytes()
    draw = random.Random(SEED)
    header = 8 + int.from_bytes(whole[:8], "little")
    with caplog.at_level(logging.CRITICAL, logger="relscope"):
        for place in [*range(header), *(draw.randrange(header, len(whole)) for _ in range(FLIPS))]:
            broken = bytearray(whole)
            broken[place] ^= 1 << draw.randrange(8)
            path.write_bytes(broken)
            summary = store.summary(KEY)
            entry = store.get(KEY)
            assert entry is None, place
            assert not path.exists()
            assert summary is None or (summary.metadata, summary.shapes["rows"]) == (metadata, (40, 3))
    path.write_bytes(whole)
    assert store.get(KEY).metadata == metadata
